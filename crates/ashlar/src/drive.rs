//! `ashlar drive`: what drives there are, and what is done to them.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, pairs, print};
use server::api::types::{Drive, DriveAdd, DriveReplace, DriveState, Pool};
use site::human;

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the drives
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Show a drive
    Show {
        /// Name of the drive
        name: String,
        #[command(flatten)]
        format: Format,
    },
    /// Take a drive out of use; refused when its pool would lose data
    ///
    /// A spare leaves its pool and is free then.
    Fail {
        /// Name of the drive
        name: String,
    },
    /// Put another drive in the place of one; its content is rebuilt from the others
    ///
    /// Without --file and --device, the new drive is what is now where the old one was: a
    /// file is made there when there is none.
    Replace {
        /// Name of the drive that goes
        name: String,
        /// Name of the drive that comes [default: the same]
        #[arg(long, value_name = "NAME")]
        with: Option<String>,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Add a drive that stands in for one that fails, or has failed
    AddSpare {
        /// Name that the drive is to have
        name: String,
        /// The pool that it is for
        #[arg(long)]
        pool: String,
        #[command(flatten)]
        place: PlaceArgs,
    },
}

/// Where a drive is.
#[derive(clap::Args)]
pub struct PlaceArgs {
    /// A file, relative to the data directory or absolute; made when it is not there
    #[arg(long, conflicts_with = "device")]
    file: Option<String>,
    /// A block device
    #[arg(long)]
    device: Option<String>,
    /// Size to make the file with [default: that of the pool's largest drive]
    #[arg(long, requires = "file", value_parser = size)]
    size: Option<u64>,
}

/// The size of a drive to make.
pub fn size(text: &str) -> Result<u64, String> {
    site::parse_size(text).ok_or_else(|| format!("allowed: {}", site::SIZE_RULE))
}

impl PlaceArgs {
    fn named(self, name: String) -> DriveAdd {
        DriveAdd {
            name,
            file: self.file,
            device: self.device,
            size_bytes: self.size,
        }
    }
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { format } => format.list(client, &["drives"], table),
        Command::Fail { name } => {
            client.act(&["drives", &name, "fail"], &())?;
            print(&format!("drive {name} is out of use\n"))
        }
        Command::Replace { name, with, place } => {
            let is_elsewhere = place.file.is_some() || place.device.is_some();
            if with.is_some() && !is_elsewhere {
                let wrong = "--with: found no --file or --device with it; allowed: one of the two";
                return Err(Failure::Wrong(wrong.to_owned()));
            }
            let new = with.unwrap_or_else(|| name.clone());
            let with = is_elsewhere.then(|| place.named(new.clone()));
            client.act(&["drives", &name, "replace"], &DriveReplace { with })?;
            let what = match new == name {
                true => format!("drive {name} is replaced by the one that is now there"),
                false => format!("drive {name} is replaced by {new}"),
            };
            print(&format!("{what}; ashlar pool show shows its rebuild\n"))
        }
        Command::AddSpare { name, pool, place } => {
            let add = place.named(name.clone());
            let _: Pool = client.post(&["pools", &pool, "spares"], &add)?;
            print(&format!("drive {name} is a spare of pool {pool}\n"))
        }
        Command::Show { name, format } => {
            let drive: Drive = client.get(&["drives", &name])?;
            format.print_text(&drive, |drive| {
                pairs(&[
                    ("name", drive.name.clone()),
                    ("state", word(drive.state).to_owned()),
                    ("pool", drive.pool.clone()),
                    ("place", long_place(drive)),
                    ("capacity", human(drive.capacity_bytes)),
                    ("reads", drive.reads.to_string()),
                    ("writes", drive.writes.to_string()),
                    ("flushes", drive.flushes.to_string()),
                    ("errors", drive.errors.to_string()),
                    ("mends", drive.mends.to_string()),
                    ("read latency", latency(drive.read_latency_us)),
                    ("write latency", latency(drive.write_latency_us)),
                    ("uuid", drive.uuid.clone()),
                ])
            })
        }
    }
}

fn table(drives: &[Drive]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("NAME", Left),
        ("POOL", Left),
        ("PLACE", Right),
        ("STATE", Left),
        ("CAPACITY", Right),
        ("READS", Right),
        ("WRITES", Right),
        ("FLUSHES", Right),
        ("ERRORS", Right),
        ("MENDS", Right),
        ("READ LATENCY", Right),
        ("WRITE LATENCY", Right),
    ]);
    for drive in drives {
        table.row(vec![
            drive.name.clone(),
            drive.pool.clone(),
            place(drive),
            word(drive.state).to_owned(),
            human(drive.capacity_bytes),
            drive.reads.to_string(),
            drive.writes.to_string(),
            drive.flushes.to_string(),
            drive.errors.to_string(),
            drive.mends.to_string(),
            latency(drive.read_latency_us),
            latency(drive.write_latency_us),
        ]);
    }
    table
}

/// Group and place; a spare has neither.
fn place(drive: &Drive) -> String {
    match drive.state {
        DriveState::Spare => "spare".to_owned(),
        _ => format!("{}.{}", drive.group, drive.place),
    }
}

fn long_place(drive: &Drive) -> String {
    match drive.state {
        DriveState::Spare => format!("spare of pool {}", drive.pool),
        _ => format!("group {}, place {}", drive.group, drive.place),
    }
}

/// A mean latency; a dash before the first operation.
fn latency(us: u64) -> String {
    match us {
        0 => "-".to_owned(),
        1..10_000 => format!("{us} µs"),
        _ => format!("{} ms", us / 1000),
    }
}

fn word(state: DriveState) -> &'static str {
    match state {
        DriveState::Healthy => "healthy",
        DriveState::Suspect => "suspect",
        DriveState::Failed => "failed",
        DriveState::Rebuilding => "rebuilding",
        DriveState::Spare => "spare",
    }
}
