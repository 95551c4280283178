//! `ashlar pool create` and `ashlar pool destroy`: make a pool of drives, or end it.

use crate::client::Client;
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::output::Format;
use crate::pool::new_drive;
use crate::raid_group::SpreadArgs;
use api::{Pool, PoolCreate, Trashed};
use site::human;

/// Create a pool of new drives
#[derive(Debug, clap::Args)]
pub struct CreateArgs {
    /// Name of the pool
    name: String,
    /// RAID level: 10, 10x3, 5, 50, 6 or simple
    #[arg(long)]
    level: String,
    #[command(flatten)]
    spread: SpreadArgs,
    /// Drives, in order of their places: files, or block devices below /dev
    ///
    /// A file is relative to the data directory or absolute. Ashlar creates it if it does not
    /// exist. A drive has the name of its file or device, without the extension, unless you give
    /// NAME=.
    #[arg(required = true, value_name = "[NAME=]DRIVE")]
    drives: Vec<String>,
    /// A spare, which stands in for a drive that fails; may be given more than once
    #[arg(long, value_name = "[NAME=]DRIVE")]
    spare: Vec<String>,
    /// Size of new files; required for files that do not exist
    #[arg(long, value_parser = new_size)]
    size: Option<u64>,
    /// Parts of the pool that different threads serve; fixed once the pool exists [default: 1]
    #[arg(long)]
    lanes: Option<u16>,
    /// RAM that caches reads, or none [default: 64 MiB]
    #[arg(long, value_parser = cache)]
    cache: Option<u64>,
    /// Size of the write log on each drive that carries it [default: a sixteenth of a drive, 64 MiB
    /// at most]
    #[arg(long, value_parser = crate::volume::size)]
    log: Option<u64>,
    /// Data that one drive holds before the next drive's turn, a power of two [default: 64 KiB]
    #[arg(long, value_parser = power)]
    stripe_unit: Option<u32>,
    /// Unit of thin allocation, a power of two [default: 256 KiB]
    #[arg(long, value_parser = power)]
    page: Option<u32>,
    #[command(flatten)]
    format: Format,
}

/// Destroy a pool that holds no volumes
///
/// Ashlar deletes the pool's trash, too. The drives are empty afterwards. The command asks for the
/// pool's name.
#[derive(Debug, clap::Args)]
pub struct DestroyArgs {
    /// Name of the pool
    name: String,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    format: Format,
}

/// RAM for reads; 0 is none.
pub fn cache(text: &str) -> Result<u64, String> {
    match text {
        "none" | "0" => Ok(0),
        _ => crate::volume::size(text),
    }
}

fn new_size(text: &str) -> Result<u64, String> {
    site::DRIVE_SIZES.parse(text)
}

fn power(text: &str) -> Result<u32, String> {
    let bytes = crate::volume::size(text)?;
    u32::try_from(bytes).map_err(|_| "allowed: less than 4 GiB".to_owned())
}

pub fn create(client: &Client, args: CreateArgs) -> Result<(), Failure> {
    let drives = |texts: &[String]| {
        texts
            .iter()
            .map(|text| new_drive(text, args.size))
            .collect()
    };
    let create = PoolCreate {
        drives: drives(&args.drives),
        spares: drives(&args.spare),
        name: args.name,
        level: args.level,
        stripe_width: args.spread.stripe_width,
        distributed_spares: args.spread.distributed_spares,
        groups: Vec::new(),
        lanes: args.lanes,
        stripe_unit_bytes: args.stripe_unit,
        page_bytes: args.page,
        cache_bytes: args.cache,
        log_bytes: args.log,
    };
    let pool: Pool = client.post(&["pools"], &create)?;
    args.format.print_text(&pool, |pool| {
        let capacity = human(pool.capacity_bytes);
        format!(
            "pool {} of level {} has {capacity}\n",
            pool.name, pool.level
        )
    })
}

pub fn destroy(client: &Client, args: DestroyArgs) -> Result<(), Failure> {
    let DestroyArgs {
        name,
        confirm,
        format,
    } = args;
    if !confirm.is_given() {
        client.try_delete(&["pools", &name], &[])?;
        confirm.deletion(&with_trash(client, &name)?, &name)?;
    }
    client.delete(&["pools", &name])?;
    format.done(&format!("pool {name} is destroyed; its drives are free"))
}

/// A pool with what goes with it: what is in its trash can't be restored then.
fn with_trash(client: &Client, name: &str) -> Result<String, Failure> {
    let trash: Vec<Trashed> = client.get(&["trash"])?;
    let trash = trash.iter().filter(|trashed| trashed.pool == name);
    let names: Vec<&str> = trash.map(|trashed| trashed.name.as_str()).collect();
    Ok(match names.is_empty() {
        true => format!("pool {name}"),
        false => format!("pool {name}, with {} in its trash,", names.join(", ")),
    })
}
