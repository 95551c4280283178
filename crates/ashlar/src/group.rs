//! `ashlar group`: creates, changes and deletes consistency groups.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, pairs, utc};
use crate::snapshot::{self, When};
use api::{
    ConsistencyGroup, ConsistencyGroupChange, ConsistencyGroupCreate, Schedule, Snapshot,
    SnapshotCreate,
};
use std::time::Duration;

/// The resource that groups are.
const GROUPS: &str = "consistency-groups";

#[derive(clap::Subcommand)]
pub enum Command {
    /// List groups
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Show a group: its volumes and schedules
    Show {
        /// Name of the group
        group: String,
        #[command(flatten)]
        format: Format,
    },
    /// Create a group of volumes, which may be in several pools
    Create(Members),
    /// Add volumes to a group; they get its schedules
    Add(Members),
    /// Remove volumes from a group and its schedules; the group ends with its last volume
    Remove(Members),
    /// Delete a group; its volumes and all snapshots stay
    Delete {
        /// Name of the group
        group: String,
        #[command(flatten)]
        format: Format,
    },
    /// Take snapshots of all volumes of a group at one instant, all or none: VOLUME@SNAPSHOT
    Snapshot {
        /// Name of the group
        group: String,
        /// A name for the snapshots
        snapshot: String,
        #[command(flatten)]
        format: Format,
    },
    /// Take snapshots of a group regularly; list or end such schedules
    ///
    /// A run takes snapshots of all volumes at one instant, or of none. An event reports a failed
    /// run. --keep counts for each volume.
    Schedule {
        /// Name of the group; without options, its schedules are listed
        group: String,
        #[command(flatten)]
        when: When,
    },
}

/// A group and volumes.
#[derive(Debug, clap::Args)]
pub struct Members {
    /// Name of the group
    group: String,
    /// Names of volumes; each is in one group at most
    #[arg(required = true)]
    volumes: Vec<String>,
    #[command(flatten)]
    format: Format,
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { format } => format.list(client, &[GROUPS], table),
        Command::Show { group, format } => format.show(client, &[GROUPS, &group], show),
        Command::Create(Members {
            group,
            volumes,
            format,
        }) => {
            let create = ConsistencyGroupCreate {
                name: group,
                volumes,
            };
            let group: ConsistencyGroup = client.post(&[GROUPS], &create)?;
            format.print_text(&group, show)
        }
        Command::Add(members) => {
            let add = |volumes| ConsistencyGroupChange {
                add: volumes,
                ..ConsistencyGroupChange::default()
            };
            change(client, members, add)
        }
        Command::Remove(members) => {
            let remove = |volumes| ConsistencyGroupChange {
                remove: volumes,
                ..ConsistencyGroupChange::default()
            };
            change(client, members, remove)
        }
        Command::Delete { group, format } => {
            client.delete(&[GROUPS, &group])?;
            format.done(&format!(
                "consistency group {group} is deleted; its volumes stay"
            ))
        }
        Command::Snapshot {
            group,
            snapshot,
            format,
        } => {
            let create = SnapshotCreate { name: snapshot };
            let taken: Vec<Snapshot> = client.post(&[GROUPS, &group, "snapshots"], &create)?;
            format.print(&taken, |taken| snapshot::table(taken))
        }
        Command::Schedule { group, when } => {
            let what = format!("consistency group {group}");
            snapshot::schedule(client, (&[GROUPS, &group, "schedules"], &what), when)
        }
    }
}

fn change(
    client: &Client,
    members: Members,
    change: impl FnOnce(Vec<String>) -> ConsistencyGroupChange,
) -> Result<(), Failure> {
    let change = change(members.volumes);
    let group: ConsistencyGroup = client.patch(&[GROUPS, &members.group], &change)?;
    members
        .format
        .print_text(&group, |group| match group.volumes.is_empty() {
            true => format!(
                "consistency group {} is gone with its last volume\n",
                group.name
            ),
            false => show(group),
        })
}

fn table(groups: &[ConsistencyGroup]) -> Table {
    let mut table = Table::new(&[
        ("NAME", Align::Left),
        ("SCHEDULES", Align::Right),
        ("VOLUMES", Align::Left),
    ]);
    for group in groups {
        table.row(vec![
            group.name.clone(),
            group.schedules.len().to_string(),
            group.volumes.join(" "),
        ]);
    }
    table
}

fn show(group: &ConsistencyGroup) -> String {
    let mut lines = vec![
        ("name", group.name.clone()),
        ("volumes", group.volumes.join(" ")),
    ];
    let schedules = group.schedules.iter();
    lines.extend(schedules.map(|schedule| ("schedule", schedule_words(schedule))));
    pairs(&lines)
}

fn schedule_words(schedule: &Schedule) -> String {
    let every = site::span_words(Duration::from_secs(schedule.every_s));
    let (number, keep) = (schedule.number, schedule.keep);
    let next = utc(schedule.next_unix_s);
    format!("{number}: every {every}, keep {keep}, next {next} UTC")
}
