//! `ashlar trash`: lists, restores and finally deletes volumes in the trash.

use crate::client::Client;
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, utc};
use crate::volume::show;
use api::{TrashRestore, Trashed, Volume};
use site::human;

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the trash: volumes and snapshots, and when Ashlar deletes them
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Restore a volume or a snapshot from the trash, with its data
    Restore {
        /// Name or UUID; if several have the name, the last one that was deleted
        volume: String,
        /// New name, if the old one is taken; of a snapshot, the part after the @
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Delete everything in the trash, or one volume or snapshot, with its data
    Empty {
        /// Name or UUID of one volume or snapshot
        volume: Option<String>,
        #[command(flatten)]
        confirm: Confirm,
        #[command(flatten)]
        format: Format,
    },
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { format } => format.list(client, &["trash"], table),
        Command::Restore {
            volume,
            name,
            format,
        } => {
            let restore = TrashRestore { name };
            let path = ["trash", &volume, "restore"];
            let volume: Volume = client.post(&path, &restore)?;
            format.print_text(&volume, show)
        }
        Command::Empty {
            volume,
            confirm,
            format,
        } => {
            let what = match &volume {
                Some(volume) => format!("{} {volume} in the trash", kind(volume)),
                None => "everything in the trash".to_owned(),
            };
            if volume.is_none() && client.get::<Vec<Trashed>>(&["trash"])?.is_empty() {
                return format.done("the trash is empty");
            }
            if let Some(volume) = volume.as_deref().filter(|_| !confirm.is_given()) {
                check_there(&client.get::<Vec<Trashed>>(&["trash"])?, volume)?;
            }
            let word = volume.as_deref().unwrap_or("empty");
            confirm.deletion(&what, word)?;
            match &volume {
                Some(volume) => client.delete(&["trash", volume])?,
                None => client.delete(&["trash"])?,
            }
            format.done(&format!("{what} is deleted"))
        }
    }
}

/// That a volume is in the trash.
fn check_there(trash: &[Trashed], volume: &str) -> Result<(), Failure> {
    let mut all = trash.iter();
    if all.any(|trashed| trashed.name == volume || trashed.uuid == volume) {
        return Ok(());
    }
    let what = format!("{} {volume} in the trash", kind(volume));
    Err(Failure::not_there(&what, "trash list"))
}

/// What has this name; only that of a snapshot has an @.
fn kind(name: &str) -> &'static str {
    match name.contains('@') {
        true => "snapshot",
        false => "volume",
    }
}

fn table(trash: &[Trashed]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("NAME", Left),
        ("POOL", Left),
        ("SIZE", Right),
        ("MAPPED", Right),
        ("SINCE (UTC)", Left),
        ("UNTIL (UTC)", Left),
        ("UUID", Left),
    ]);
    for volume in trash {
        table.row(vec![
            volume.name.clone(),
            volume.pool.clone(),
            human(volume.size_bytes),
            human(volume.mapped_bytes),
            utc(volume.since_unix_s),
            utc(volume.until_unix_s),
            volume.uuid.clone(),
        ]);
    }
    table
}
