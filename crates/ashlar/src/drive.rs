//! `ashlar drive`.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, pairs};
use server::api::types::{Drive, DriveState};
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
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { format } => {
            let drives: Vec<Drive> = client.get(&["drives"])?;
            format.print(&drives, |drives| table(drives))
        }
        Command::Show { name, format } => {
            let drive: Drive = client.get(&["drives", &name])?;
            format.print_text(&drive, |drive| {
                pairs(&[
                    ("name", drive.name.clone()),
                    ("state", word(drive.state).to_owned()),
                    ("pool", drive.pool.clone()),
                    (
                        "place",
                        format!("group {}, place {}", drive.group, drive.place),
                    ),
                    ("capacity", human(drive.capacity_bytes)),
                    ("reads", drive.reads.to_string()),
                    ("writes", drive.writes.to_string()),
                    ("flushes", drive.flushes.to_string()),
                    ("errors", drive.errors.to_string()),
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
    ]);
    for drive in drives {
        table.row(vec![
            drive.name.clone(),
            drive.pool.clone(),
            format!("{}.{}", drive.group, drive.place),
            word(drive.state).to_owned(),
            human(drive.capacity_bytes),
            drive.reads.to_string(),
            drive.writes.to_string(),
            drive.flushes.to_string(),
            drive.errors.to_string(),
        ]);
    }
    table
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
