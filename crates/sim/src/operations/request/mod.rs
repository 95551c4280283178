//! Requests of administrators, and what the array is afterwards.

mod access;
mod groups;
mod jobs;
mod settings;
mod trash;
mod volumes;

pub(super) use jobs::End;
pub(super) use settings::Pace;

use super::model::{Export, Model, Volume};
use engine::Provisioning;
use std::collections::BTreeSet;
use trash::{half_emptied, last_trashed, recovered, without_trashed};

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Create {
        name: String,
        pool: String,
        size_bytes: u64,
    },
    Resize {
        name: String,
        size_bytes: u64,
    },
    Delete {
        name: String,
        at_once: bool,
    },
    Recover {
        name: String,
        new: Option<String>,
    },
    DeleteTrashed {
        name: String,
    },
    /// What is in the trash while it is looked through.
    EmptyTrash,
    /// As `Delete`, of snapshots only.
    DeleteSnapshot {
        name: String,
        at_once: bool,
    },
    /// How a volume takes space; nothing stays as it is.
    Convert {
        name: String,
        provisioning: Option<Provisioning>,
        detects_zeroes: Option<bool>,
    },
    Rename {
        name: String,
        new: String,
    },
    Tag {
        name: String,
        key: String,
        value: String,
    },
    Describe {
        name: String,
        text: String,
    },
    Snapshot {
        volumes: Vec<String>,
        own: String,
    },
    SnapshotGroup {
        group: String,
        own: String,
    },
    Clone {
        source: String,
        name: String,
    },
    Restore {
        volume: String,
        own: String,
        keep: Option<String>,
    },
    CreateGroup {
        group: String,
        volumes: Vec<String>,
    },
    ChangeGroup {
        group: String,
        add: Vec<String>,
        remove: Vec<String>,
    },
    DeleteGroup {
        group: String,
    },
    /// Volumes of no group, or of others.
    Gather {
        group: String,
        volumes: Vec<String>,
    },
    AddSchedule {
        name: String,
        every_s: u64,
        keep: u64,
    },
    RemoveSchedule {
        name: String,
        number: u64,
    },
    AddGroupSchedule {
        group: String,
        every_s: u64,
        keep: u64,
    },
    RemoveGroupSchedule {
        group: String,
        number: u64,
    },
    CreateExport {
        target: String,
        export: Export,
    },
    ChangeExport {
        target: String,
        hosts: BTreeSet<String>,
        host_groups: BTreeSet<String>,
    },
    DeleteExport {
        target: String,
    },
    AddLun {
        target: String,
        volume: String,
    },
    RemoveLun {
        target: String,
        volume: String,
    },
    CreateHost {
        host: String,
        initiators: BTreeSet<String>,
    },
    ChangeHost {
        host: String,
        add: String,
        remove: String,
    },
    DeleteHost {
        host: String,
    },
    CreateHostGroup {
        group: String,
        hosts: BTreeSet<String>,
    },
    ChangeHostGroup {
        group: String,
        add: String,
        remove: String,
    },
    DeleteHostGroup {
        group: String,
    },
    Move {
        volume: String,
        to: String,
        leave_snapshots: bool,
    },
    /// To a volume that is made.
    Copy {
        source: String,
        target: String,
        pool: Option<String>,
    },
    /// The job that is at work on a volume.
    CancelJob {
        volume: String,
    },
    /// One that has ended.
    ForgetJob {
        id: u64,
    },
    /// Bytes a second; none is as fast as it goes.
    LimitScrub {
        pool: String,
        bytes_per_s: Option<u64>,
    },
    /// As above, and whether commands go first.
    LimitRebuild {
        pool: String,
        bytes_per_s: Option<u64>,
        yields: bool,
    },
    ChangeThresholds {
        pool: String,
        warn_percent: u8,
        alarm_percent: u8,
    },
    ChangeCache {
        pool: String,
        capacity_bytes: u64,
    },
    /// All of a pool's rates, thresholds and cache, as a site file says them.
    Pace {
        pool: String,
        pace: Pace,
    },
    /// The name of what initiators prove before they may ask for targets; none for nothing.
    ChangeDiscovery {
        account: Option<String>,
    },
    /// A setting of the array.
    LimitSessions {
        sessions: u16,
    },
    /// Another one.
    LimitLogins {
        logins: u16,
    },
    /// Nobody asks for this: a volume that moves is where it goes.
    Arrives {
        volume: String,
    },
    /// Nor for this.
    JobEnds {
        volume: String,
        end: End,
    },
}

/// What a volume of these names would be called.
pub(super) fn snapshot_name(volume: &str, own: &str) -> String {
    format!("{volume}@{own}")
}

impl Request {
    /// What the array may be when the request is done; nothing when it has to be refused. `number`
    /// is the request's.
    pub(super) fn outcomes(&self, before: &Model, number: u64) -> Vec<Model> {
        self.outcome(before, number).unwrap_or_default()
    }

    /// What it may be as well when a power cut ends the request in the middle.
    pub(super) fn halfway(&self, before: &Model, number: u64) -> Vec<Model> {
        match self {
            // It is back, and has the schedules that its group had when it went.
            Request::Recover { name, new } => {
                let rejoins = false;
                recovered(before, name, new.as_deref(), rejoins).unwrap_or_default()
            }
            Request::Copy { .. } => self.without_its_volume(before, number),
            Request::EmptyTrash => vec![half_emptied(before)],
            _ => Vec::new(),
        }
    }

    /// What it is when the request is refused.
    pub(super) fn refused(&self, before: &Model) -> Model {
        match self {
            // Each volume goes by itself.
            Request::EmptyTrash => half_emptied(before),
            _ => before.clone(),
        }
    }

    /// Whether it may be refused for something that a model does not know:
    /// - the lane of a volume, where a snapshot of another volume is restored;
    /// - names of snapshots that schedules took;
    /// - snapshots that schedules took, which a volume that moves may not have;
    /// - what has gone from the trash since, of all that came before `expired_unix_s`.
    pub(super) fn may_be_refused(&self, before: &Model, expired_unix_s: u64) -> bool {
        let has_expired = |name: &String| {
            let mut of_name = before.trash.iter().filter(|one| one.name == *name);
            of_name.any(|one| {
                let since = one.since_unix_s;
                one.may_be_gone || since.is_some_and(|since| since <= expired_unix_s)
            })
        };
        match self {
            Request::Restore { volume, own, .. } => {
                let snapshot = before.volumes.get(&snapshot_name(volume, own));
                let id = before.volumes.get(volume).map(|volume| volume.id);
                snapshot.is_some_and(|snapshot| snapshot.of != id)
            }
            Request::Rename { .. } => true,
            Request::Recover { name, new } => new.is_some() || has_expired(name),
            Request::DeleteTrashed { name } => has_expired(name),
            Request::Move {
                leave_snapshots, ..
            } => !leave_snapshots,
            Request::ForgetJob { .. } => true,
            _ => false,
        }
    }

    fn outcome(&self, before: &Model, number: u64) -> Option<Vec<Model>> {
        let mut after = before.clone();
        match self {
            Request::Recover { name, new } => return recovered(before, name, new.as_deref(), true),
            Request::DeleteTrashed { name } => {
                let last = last_trashed(before, name)?;
                return Some(
                    last.into_iter()
                        .map(|at| without_trashed(before, at))
                        .collect(),
                );
            }
            Request::EmptyTrash => after.trash.clear(),
            _ => {}
        }
        let change = self
            .change_volumes(&mut after, number)
            .or_else(|| self.change_groups(&mut after))
            .or_else(|| self.change_access(&mut after))
            .or_else(|| self.change_jobs(&mut after, number))
            .or_else(|| self.change_settings(&mut after))
            .or_else(|| (*self == Request::EmptyTrash).then_some(Change::Done));
        (change == Some(Change::Done)).then(|| vec![after])
    }
}

/// What came of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Done,
    Refused,
}

fn changed(is_done: bool) -> Change {
    match is_done {
        true => Change::Done,
        false => Change::Refused,
    }
}

fn insert_new(model: &mut Model, name: &str, volume: Volume) -> Change {
    let is_new = !model.volumes.contains_key(name);
    if is_new {
        model.volumes.insert(name.to_owned(), volume);
    }
    changed(is_new)
}
