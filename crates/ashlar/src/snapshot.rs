//! `ashlar snapshot`.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, pairs, utc};
use server::api::types::{Snapshot, SnapshotCreate};
use site::human;

#[derive(clap::Subcommand)]
pub enum Command {
    /// List snapshots: all, or those of one volume
    List {
        /// Name of the volume
        volume: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Show a snapshot
    Show {
        /// Name of the snapshot: VOLUME@NAME
        snapshot: String,
        #[command(flatten)]
        format: Format,
    },
    /// Take a snapshot of a volume: at once, and without space until the volume changes
    Create {
        /// Volume, and a name for the snapshot: VOLUME@NAME
        snapshot: String,
        #[command(flatten)]
        format: Format,
    },
    /// Delete a snapshot; the volume, other snapshots and clones stay as they are
    Delete {
        /// Name of the snapshot: VOLUME@NAME
        snapshot: String,
        #[command(flatten)]
        format: Format,
    },
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { volume, format } => {
            let query: Vec<_> = volume
                .iter()
                .map(|name| ("volume", name.as_str()))
                .collect();
            let snapshots: Vec<Snapshot> = client.find(&["snapshots"], &query)?;
            format.print(&snapshots, |snapshots| table(snapshots))
        }
        Command::Show { snapshot, format } => {
            let snapshot: Snapshot = client.get(&["snapshots", &snapshot])?;
            format.print_text(&snapshot, show)
        }
        Command::Create { snapshot, format } => {
            let (volume, name) = snapshot.split_once('@').ok_or_else(|| {
                let rule = "the name of a volume, '@', and a name for the snapshot";
                Failure::Wrong(format!("snapshot: found {snapshot:?}; allowed: {rule}"))
            })?;
            let name = name.to_owned();
            let path = ["volumes", volume, "snapshots"];
            let taken: Snapshot = client.post(&path, &SnapshotCreate { name })?;
            format.print_text(&taken, show)
        }
        Command::Delete { snapshot, format } => {
            client.delete(&["snapshots", &snapshot])?;
            format.done(&format!("snapshot {snapshot} is deleted"))
        }
    }
}

fn table(snapshots: &[Snapshot]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("NAME", Left),
        ("TAKEN (UTC)", Left),
        ("SIZE", Right),
        ("MAPPED", Right),
        ("VOLUME", Left),
        ("TARGET", Left),
    ]);
    for snapshot in snapshots {
        let target = snapshot.export.as_ref().map(|place| place.target.clone());
        table.row(vec![
            snapshot.name.clone(),
            utc(snapshot.at_unix_s),
            human(snapshot.size_bytes),
            human(snapshot.mapped_bytes),
            snapshot.volume.clone().unwrap_or_else(|| "-".to_owned()),
            target.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table
}

fn show(snapshot: &Snapshot) -> String {
    let volume = snapshot.volume.clone();
    let export = snapshot.export.as_ref();
    let export = export.map(|place| format!("{}, LUN {}", place.target, place.lun));
    pairs(&[
        ("name", snapshot.name.clone()),
        ("volume", volume.unwrap_or_else(|| "- (gone)".to_owned())),
        ("taken", format!("{} UTC", utc(snapshot.at_unix_s))),
        ("pool", snapshot.pool.clone()),
        ("size", human(snapshot.size_bytes)),
        ("mapped", human(snapshot.mapped_bytes)),
        ("export", export.unwrap_or_else(|| "-".to_owned())),
        ("uuid", snapshot.uuid.clone()),
    ])
}
