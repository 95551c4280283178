//! `ashlar snapshot`.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, pairs, utc};
use server::api::types::{
    Schedule, ScheduleCreate, Snapshot, SnapshotCreate, SnapshotOf, SnapshotsCreate, Volume,
    VolumeRestore,
};
use site::human;
use std::time::Duration;

/// Shorter than a second is no schedule.
fn every(text: &str) -> Result<u64, String> {
    let span = site::parse_span(text).filter(|span| !span.is_zero());
    let span = span.ok_or_else(|| format!("allowed: {}", site::SPAN_RULE))?;
    Ok(span.as_secs())
}

/// Snapshots by the clock.
#[derive(Debug, clap::Args)]
pub struct ScheduleArgs {
    /// Name of the volume; without more, its schedules are listed
    volume: String,
    /// Take a snapshot so often, such as "1h" or "15 min", the first one now
    #[arg(long, value_parser = every, requires = "keep", conflicts_with = "remove")]
    every: Option<u64>,
    /// Keep the newest so many of them, up to 1000; older ones of this schedule are deleted
    #[arg(long, requires = "every")]
    keep: Option<u64>,
    /// End the schedule of this number; its snapshots stay
    #[arg(long, value_name = "NUMBER")]
    remove: Option<u64>,
    #[command(flatten)]
    format: Format,
}

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
    /// Take snapshots: at once, and without space until the volumes change; several at one
    /// instant, all or none
    Create {
        /// Volume, and a name for the snapshot: VOLUME@NAME
        #[arg(required = true, value_name = "SNAPSHOT")]
        snapshots: Vec<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Have snapshots taken by the clock, list what is taken so, or end it
    Schedule(ScheduleArgs),
    /// Give a volume what a snapshot of it has, at once; what it has now becomes a snapshot
    Restore {
        /// Name of the snapshot: VOLUME@NAME
        snapshot: String,
        /// Name for the snapshot that the present state becomes [default: before-TIME]
        #[arg(long, value_name = "NAME", conflicts_with = "discard")]
        keep: Option<String>,
        /// Don't keep the present state
        #[arg(long)]
        discard: bool,
        /// Also while initiators use the volume
        #[arg(long)]
        force: bool,
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
        Command::Create { snapshots, format } => create(client, &snapshots, format),
        Command::Restore {
            snapshot,
            keep,
            discard,
            force,
            format,
        } => {
            let there: Snapshot = client.get(&["snapshots", &snapshot])?;
            let volume = there.volume.ok_or_else(|| {
                Failure::Failed(format!("the volume of {snapshot} is gone: clone it"))
            })?;
            let restore = VolumeRestore {
                snapshot,
                keep,
                discard,
                force,
            };
            let path = ["volumes", &volume, "restore"];
            let volume: Volume = client.post(&path, &restore)?;
            format.print_text(&volume, crate::volume::show)
        }
        Command::Schedule(args) => schedule(client, args),
        Command::Delete { snapshot, format } => {
            client.delete(&["snapshots", &snapshot])?;
            format.done(&format!("snapshot {snapshot} is deleted"))
        }
    }
}

fn schedule(client: &Client, args: ScheduleArgs) -> Result<(), Failure> {
    let ScheduleArgs {
        volume,
        every,
        keep,
        remove,
        format,
    } = args;
    let path = ["volumes", &volume, "schedules"];
    if let Some(number) = remove {
        let number = number.to_string();
        client.delete(&["volumes", &volume, "schedules", &number])?;
        return format.done(&format!("schedule {number} of volume {volume} is ended"));
    }
    match (every, keep) {
        (Some(every_s), Some(keep)) => {
            let made: Schedule = client.post(&path, &ScheduleCreate { every_s, keep })?;
            format.print(&made, |made| schedules(std::slice::from_ref(made)))
        }
        _ => {
            let all: Vec<Schedule> = client.get(&path)?;
            format.print(&all, |all| schedules(all))
        }
    }
}

fn schedules(all: &[Schedule]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("NUMBER", Right),
        ("EVERY", Right),
        ("KEEP", Right),
        ("NEXT (UTC)", Left),
    ]);
    for schedule in all {
        table.row(vec![
            schedule.number.to_string(),
            site::span_words(Duration::from_secs(schedule.every_s)),
            schedule.keep.to_string(),
            utc(schedule.next_unix_s),
        ]);
    }
    table
}

/// Volume and own name of a snapshot.
fn split(snapshot: &str) -> Result<(String, String), Failure> {
    let parts = snapshot.split_once('@');
    let (volume, name) = parts.ok_or_else(|| {
        let rule = "the name of a volume, '@', and a name for the snapshot";
        Failure::Wrong(format!("snapshot: found {snapshot:?}; allowed: {rule}"))
    })?;
    Ok((volume.to_owned(), name.to_owned()))
}

fn create(client: &Client, snapshots: &[String], format: Format) -> Result<(), Failure> {
    if let [snapshot] = snapshots {
        let (volume, name) = split(snapshot)?;
        let path = ["volumes", &volume, "snapshots"];
        let taken: Snapshot = client.post(&path, &SnapshotCreate { name })?;
        return format.print_text(&taken, show);
    }
    let of = |snapshot: &String| {
        let (volume, name) = split(snapshot)?;
        Ok(SnapshotOf { volume, name })
    };
    let snapshots = snapshots.iter().map(of).collect::<Result<_, Failure>>()?;
    let taken: Vec<Snapshot> = client.post(&["snapshots"], &SnapshotsCreate { snapshots })?;
    format.print(&taken, |taken| table(taken))
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
