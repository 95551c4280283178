//! `ashlar pool`.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, pairs, percent};
use crate::status::word;
use server::api::types::Pool;
use site::human;

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the pools
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Show a pool
    Show {
        /// Name of the pool
        name: String,
        #[command(flatten)]
        format: Format,
    },
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { format } => {
            let pools: Vec<Pool> = client.get(&["pools"])?;
            format.print(&pools, |pools| table(pools))
        }
        Command::Show { name, format } => {
            let pool: Pool = client.get(&["pools", &name])?;
            format.print_text(&pool, show)
        }
    }
}

fn table(pools: &[Pool]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("NAME", Left),
        ("LEVEL", Left),
        ("HEALTH", Left),
        ("DRIVES", Right),
        ("CAPACITY", Right),
        ("MAPPED", Right),
        ("USED", Right),
        ("PROVISIONED", Right),
    ]);
    for pool in pools {
        table.row(vec![
            pool.name.clone(),
            pool.level.clone(),
            word(pool.health).to_owned(),
            pool.drives.len().to_string(),
            human(pool.capacity_bytes),
            human(pool.mapped_bytes),
            percent(pool.mapped_bytes, pool.capacity_bytes),
            human(pool.provisioned_bytes),
        ]);
    }
    table
}

fn show(pool: &Pool) -> String {
    let used = percent(pool.mapped_bytes, pool.capacity_bytes);
    let mut lines = vec![
        ("name", pool.name.clone()),
        ("health", word(pool.health).to_owned()),
        ("level", pool.level.clone()),
        ("drives", pool.drives.join(", ")),
        ("capacity", human(pool.capacity_bytes)),
        ("mapped", format!("{} ({used})", human(pool.mapped_bytes))),
        ("provisioned", human(pool.provisioned_bytes)),
        ("page", human(u64::from(pool.page_bytes))),
        ("shard", pool.shard.to_string()),
        ("epoch", pool.epoch.to_string()),
        ("uuid", pool.uuid.clone()),
    ];
    if let Some(failure) = &pool.failure {
        lines.insert(2, ("failure", failure.clone()));
    }
    pairs(&lines)
}
