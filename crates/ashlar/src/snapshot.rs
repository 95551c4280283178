//! `ashlar snapshot`: takes, schedules, restores and deletes snapshots.

use crate::client::Client;
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, pairs, utc};
use crate::shared_space;
use crate::volume::{told, users_of};
use api::{
    Deleted, Schedule, ScheduleCreate, Snapshot, SnapshotCreate, SnapshotOf, SnapshotsCreate,
    Volume, VolumeRestore, VolumeSpace,
};
use site::human;
use std::time::Duration;

/// Shorter than a second is no schedule.
fn every(text: &str) -> Result<u64, String> {
    let span = site::parse_span(text).filter(|span| !span.is_zero());
    let span = span.ok_or_else(|| format!("allowed: {}", site::SPAN_RULE))?;
    Ok(span.as_secs())
}

/// Which schedules: without any of these they are listed.
#[derive(Debug, clap::Args)]
pub struct When {
    /// Interval between snapshots, such as "1h" or "15 min"; the first is taken now
    #[arg(long, value_parser = every, requires = "keep", conflicts_with = "remove")]
    every: Option<u64>,
    /// Number of snapshots to keep, up to 1000; the schedule deletes older ones
    #[arg(long, requires = "every")]
    keep: Option<u64>,
    /// Number of a schedule to end; its snapshots stay
    #[arg(long, value_name = "NUMBER")]
    remove: Option<u64>,
    #[command(flatten)]
    format: Format,
}

/// Snapshots by the clock.
#[derive(Debug, clap::Args)]
pub struct ScheduleArgs {
    /// Name of the volume; without options, its schedules are listed
    volume: String,
    #[command(flatten)]
    when: When,
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
    /// Take snapshots; several are taken at one instant, all or none
    ///
    /// A snapshot takes no space until its volume changes.
    Create {
        /// Volume, and a name for the snapshot: VOLUME@NAME; may be given more than once
        #[arg(required = true)]
        snapshots: Vec<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Restore a volume to the content of a snapshot, at once
    ///
    /// The content that the volume has now becomes a snapshot. Ashlar refuses to restore an
    /// exported volume, because its hosts would not notice; --force restores it anyway. With
    /// --discard, or --force and an exported volume, the command asks first.
    Restore {
        /// Name of the snapshot: VOLUME@NAME
        snapshot: String,
        /// The volume to restore [default: the volume of the snapshot]
        #[arg(long)]
        to: Option<String>,
        /// Name for the snapshot of the present content [default: before-NAME]
        #[arg(long, conflicts_with = "discard")]
        keep: Option<String>,
        /// Discard the present content
        #[arg(long)]
        discard: bool,
        /// Restore even an exported volume
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        confirm: Confirm,
        #[command(flatten)]
        format: Format,
    },
    /// Take snapshots of a volume regularly; list or end such schedules
    Schedule(ScheduleArgs),
    /// Delete a snapshot: it stays in the trash for a time; the volume and its clones stay
    Delete {
        /// Name of the snapshot: VOLUME@NAME
        snapshot: String,
        /// Skip the trash: the space is free at once
        #[arg(long)]
        at_once: bool,
        #[command(flatten)]
        confirm: Confirm,
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
        Command::Show { snapshot, format } => format.show(client, &["snapshots", &snapshot], show),
        Command::Create { snapshots, format } => create(client, &snapshots, format),
        Command::Restore {
            snapshot,
            to,
            keep,
            discard,
            force,
            confirm,
            format,
        } => {
            let (of, name) = split(&snapshot)?;
            let keep = keep.unwrap_or_else(|| format!("before-{name}"));
            let restore = VolumeRestore {
                keep: (!discard).then_some(keep),
                snapshot: snapshot.clone(),
                force,
            };
            let volume = to.as_deref().unwrap_or(of);
            if !confirm.is_given() {
                agree_to_restore(client, volume, &restore, confirm)?;
            }
            let restored: Volume = client.post(&["volumes", volume, "restore"], &restore)?;
            format.print_text(&restored, |_| match &restore.keep {
                Some(keep) => {
                    format!("{volume} has the content of {snapshot}; its former content is {volume}@{keep}\n")
                }
                None => format!("{volume} has the content of {snapshot}\n"),
            })
        }
        Command::Schedule(ScheduleArgs { volume, when }) => {
            let what = format!("volume {volume}");
            schedule(client, (&["volumes", &volume, "schedules"], &what), when)
        }
        Command::Delete {
            snapshot,
            at_once,
            confirm,
            format,
        } => {
            let query: &[_] = match at_once {
                true => &[("at_once", "true")],
                false => &[],
            };
            let path = ["snapshots", snapshot.as_str()];
            let what = format!("snapshot {snapshot}");
            // One that is not there is told of below.
            let space: Result<VolumeSpace, Failure> = client.get(&["volumes", &snapshot, "space"]);
            let freed = space.ok().map(|space| freed(&space)).unwrap_or_default();
            if !confirm.is_given() {
                client.try_delete(&path, query)?;
                if !format.is_json() {
                    eprint!("{freed}");
                }
            }
            confirm.deletion(&what, &snapshot)?;
            let deleted: Deleted = client.remove(&path, query)?;
            format.print_text(&deleted, |deleted| told("snapshot", deleted) + &freed)
        }
    }
}

/// A line that says that the deletion of a snapshot frees no space, if that is so.
fn freed(space: &VolumeSpace) -> String {
    match (space.reclaimable_bytes, space.mapped_bytes) {
        (0, mapped @ 1..) => format!(
            "the deletion of {} frees nothing: volumes, clones or other snapshots share all of its {}\n",
            space.name,
            human(mapped)
        ),
        _ => String::new(),
    }
}

/// Has somebody agree to what is lost when `volume` is restored so.
fn agree_to_restore(
    client: &Client,
    volume: &str,
    restore: &VolumeRestore,
    confirm: Confirm,
) -> Result<(), Failure> {
    client.try_post(&["volumes", volume, "restore"], restore)?;
    let there: Volume = client.get(&["volumes", volume])?;
    let is_discarded = restore.keep.is_none();
    let mut loss = match (is_discarded, &there.export) {
        (false, None) => return Ok(()),
        (true, None) => format!("what volume {volume} has now is lost"),
        (false, Some(place)) => format!(
            "volume {volume} changes under the initiators of {}, which are not told",
            place.target
        ),
        (true, Some(place)) => format!(
            "what volume {volume} has now is lost, and it changes under the initiators of {}, \
             which are not told",
            place.target
        ),
    };
    loss += &users_of(client, &there)?;
    confirm.loss(&loss, &format!("Restore volume {volume}"))
}

/// Volume and own name of a snapshot.
fn split(snapshot: &str) -> Result<(&str, &str), Failure> {
    snapshot.split_once('@').ok_or_else(|| {
        let rule = "the name of a volume, '@', and a name for the snapshot";
        Failure::Wrong(format!("snapshot: found {snapshot:?}; allowed: {rule}"))
    })
}

fn create(client: &Client, snapshots: &[String], format: Format) -> Result<(), Failure> {
    if let [snapshot] = snapshots {
        let (volume, name) = split(snapshot)?;
        let name = name.to_owned();
        let path = ["volumes", volume, "snapshots"];
        let taken: Snapshot = client.post(&path, &SnapshotCreate { name })?;
        format.print_text(&taken, show)?;
        return shared_space::warn(client, &[volume], format);
    }
    let of = |snapshot: &String| {
        let (volume, name) = split(snapshot)?;
        let (volume, name) = (volume.to_owned(), name.to_owned());
        Ok(SnapshotOf { volume, name })
    };
    let snapshots: Vec<SnapshotOf> = snapshots.iter().map(of).collect::<Result<_, Failure>>()?;
    let wanted = SnapshotsCreate { snapshots };
    let taken: Vec<Snapshot> = client.post(&["snapshots"], &wanted)?;
    format.print(&taken, |taken| table(taken))?;
    let volumes = wanted.snapshots.iter().map(|of| &of.volume[..]);
    shared_space::warn(client, &volumes.collect::<Vec<_>>(), format)
}

/// What `when` asks for of the schedules at `path`, which are those of `what`.
pub fn schedule(
    client: &Client,
    (path, what): (&[&str; 3], &str),
    when: When,
) -> Result<(), Failure> {
    let When {
        every,
        keep,
        remove,
        format,
    } = when;
    if let Some(number) = remove {
        let number = number.to_string();
        client.delete(&[&path[..], &[&number]].concat())?;
        return format.done(&format!("schedule {number} of {what} is ended"));
    }
    match (every, keep) {
        (Some(every_s), Some(keep)) => {
            let made: Schedule = client.post(path, &ScheduleCreate { every_s, keep })?;
            format.print(&made, |made| schedules(std::slice::from_ref(made)))
        }
        _ => {
            let all: Vec<Schedule> = client.get(path)?;
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

pub fn table(snapshots: &[Snapshot]) -> Table {
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
