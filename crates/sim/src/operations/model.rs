//! What administrators believe the array to be, and whether it is that.
//!
//! Invariant: a model has no opinion on what nobody has said: identities of new volumes, and
//! snapshots that a schedule takes.

use array::pool::Paces;
use base::Uuid;
use engine::Provisioning;
use site::Site;
use std::collections::{BTreeMap, BTreeSet};

/// Which volume it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Id {
    /// The array has said so.
    Known(Uuid),
    /// Of a request that nobody has seen the outcome of, by its number.
    New(u64),
}

/// A volume or a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) id: Id,
    pub(super) pool: String,
    pub(super) size_bytes: u64,
    pub(super) provisioning: Provisioning,
    pub(super) detects_zeroes: bool,
    pub(super) is_snapshot: bool,
    /// What it was taken from.
    pub(super) of: Option<Id>,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) description: String,
    pub(super) group: Option<String>,
    /// Seconds between runs and snapshots kept, by number; those of its group begin with `g`.
    pub(super) schedules: BTreeMap<String, (u64, u64)>,
}

/// A volume in the trash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trashed {
    pub(super) name: String,
    pub(super) volume: Volume,
    /// Unknown until the array has said it.
    pub(super) since_unix_s: Option<u64>,
    /// Who emptied the trash came to no end.
    pub(super) may_be_gone: bool,
}

/// A target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Export {
    /// Names of volumes.
    pub(super) luns: BTreeMap<u16, String>,
    pub(super) initiators: BTreeSet<String>,
    pub(super) hosts: BTreeSet<String>,
    pub(super) host_groups: BTreeSet<String>,
}

/// What a job does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Move {
        from: String,
        to: String,
        leaves_snapshots: bool,
    },
    /// Makes its volume.
    Copy { source: String, size_bytes: u64 },
}

/// A job that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) task: Task,
    /// Somebody has ended it, and was told so.
    pub(super) is_cancelled: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Model {
    /// Never changes.
    pub(super) pools: BTreeSet<String>,
    /// By the name of its volume.
    pub(super) jobs: BTreeMap<String, Job>,
    pub(super) volumes: BTreeMap<String, Volume>,
    pub(super) trash: Vec<Trashed>,
    pub(super) exports: BTreeMap<String, Export>,
    /// Initiators of each host.
    pub(super) hosts: BTreeMap<String, BTreeSet<String>>,
    /// Hosts of each group.
    pub(super) host_groups: BTreeMap<String, BTreeSet<String>>,
    /// Rates, thresholds and cache of each pool.
    pub(super) paces: BTreeMap<String, Paces>,
    pub(super) limits: Limits,
    /// The name of what initiators prove before they may ask for targets.
    pub(super) discovery: Option<String>,
}

/// Settings that count from the next start on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) sessions: u16,
    pub(super) logins: u16,
}

impl Limits {
    pub(super) fn of(settings: &Site) -> Limits {
        Limits {
            sessions: settings.limits.sessions,
            logins: settings.limits.logins,
        }
    }
}

impl Model {
    /// An array that has done nothing yet.
    pub(super) fn of(settings: &Site) -> Model {
        let pools = settings.pools.iter();
        Model {
            paces: pools
                .map(|one| (one.name.clone(), Paces::of(one)))
                .collect(),
            limits: Limits::of(settings),
            ..Model::default()
        }
    }

    /// The target that shows a volume.
    pub(super) fn target_of(&self, volume: &str) -> Option<&String> {
        let shows = |export: &Export| export.luns.values().any(|name| name == volume);
        let mut targets = self.exports.iter();
        targets
            .find(|(_, export)| shows(export))
            .map(|(name, _)| name)
    }

    /// Whether a job moves a volume that has to be without snapshots.
    pub(super) fn moves_without_snapshots(&self, volume: &str) -> bool {
        let task = self.jobs.get(volume).map(|job| &job.task);
        matches!(
            task,
            Some(Task::Move {
                leaves_snapshots: false,
                ..
            })
        )
    }

    /// Whether a job moves a volume.
    pub(super) fn is_moving(&self, volume: &str) -> bool {
        let task = self.jobs.get(volume).map(|job| &job.task);
        matches!(task, Some(Task::Move { .. }))
    }

    /// Names of the volumes of a group.
    pub(super) fn members(&self, group: &str) -> Vec<String> {
        let of = self.volumes.iter();
        let of = of.filter(|(_, volume)| volume.group.as_deref() == Some(group));
        of.map(|(name, _)| name.clone()).collect()
    }

    /// The schedules of a group: those of any member.
    pub(super) fn schedules_of(&self, group: &str) -> BTreeMap<String, (u64, u64)> {
        let members = self.volumes.values();
        let members = members.filter(|volume| volume.group.as_deref() == Some(group));
        let all = members.flat_map(|volume| volume.schedules.clone());
        all.filter(|(number, _)| number.starts_with('g')).collect()
    }

    /// Whether an initiator may log in to a target.
    pub(super) fn admits(&self, initiator: &str, target: &str) -> bool {
        let Some(export) = self.exports.get(target) else {
            return false;
        };
        let of_groups = export.host_groups.iter();
        let of_groups = of_groups
            .filter_map(|group| self.host_groups.get(group))
            .flatten();
        let mut hosts = export.hosts.iter().chain(of_groups);
        export.initiators.contains(initiator)
            || hosts.any(|host| {
                let host = self.hosts.get(host);
                host.is_some_and(|initiators| initiators.contains(initiator))
            })
    }

    /// Whether the array is this, as it says itself; where it is not, the first difference. What has
    /// been in the trash for `kept_s` by `now` may be gone, and is `late_s` later.
    pub(super) fn differs(
        &self,
        said: &Model,
        (now, kept_s, late_s): (u64, u64, u64),
    ) -> Option<String> {
        let mut ids = BTreeMap::new();
        self.volumes_differ(said, &mut ids)
            .or_else(|| self.trash_differs(said, &mut ids, (now, kept_s, late_s)))
            .or_else(|| first_difference("job of", &self.jobs, &said.jobs))
            .or_else(|| first_difference("target", &self.exports, &said.exports))
            .or_else(|| first_difference("host", &self.hosts, &said.hosts))
            .or_else(|| first_difference("host group", &self.host_groups, &said.host_groups))
            .or_else(|| first_difference("pool", &self.paces, &said.paces))
            .or_else(|| {
                let (expected, said) = (self.limits, said.limits);
                (expected != said).then(|| format!("limits: expected {expected:?}, found {said:?}"))
            })
            .or_else(|| {
                let (expected, said) = (&self.discovery, &said.discovery);
                (expected != said)
                    .then(|| format!("discovery: expected {expected:?}, found {said:?}"))
            })
    }

    /// Whether some volume of the model is known to be this.
    fn knows(&self, id: Id) -> bool {
        let trashed = self.trash.iter().map(|one| &one.volume);
        let mut all = self.volumes.values().chain(trashed);
        all.any(|one| one.id == id)
    }

    fn volumes_differ(&self, said: &Model, ids: &mut BTreeMap<Id, Id>) -> Option<String> {
        for (name, volume) in &self.volumes {
            if let (Id::New(_), Some(there)) = (volume.id, said.volumes.get(name)) {
                ids.insert(volume.id, there.id);
            }
        }
        for trashed in &self.trash {
            let mut there = said.trash.iter();
            let is_free = |id: Id| !ids.values().any(|known| *known == id) && !self.knows(id);
            let there = there.find(|other| other.name == trashed.name && is_free(other.volume.id));
            if let (Id::New(_), Some(there)) = (trashed.volume.id, there) {
                ids.insert(trashed.volume.id, there.volume.id);
            }
        }
        // What a volume was taken from may have come and gone since: only this says which it was.
        for (name, volume) in &self.volumes {
            let there = said.volumes.get(name).and_then(|there| there.of);
            if let (Some(of @ Id::New(_)), Some(there)) = (volume.of, there) {
                ids.entry(of).or_insert(there);
            }
        }
        let distinct: BTreeSet<&Id> = ids.values().collect();
        if distinct.len() < ids.len() {
            return Some(format!("two new volumes are one: {ids:?}"));
        }
        let own = self.volumes.iter();
        let own = own.map(|(name, volume)| (name.clone(), known(volume, ids)));
        first_difference("volume", &own.collect(), &said.volumes)
    }

    fn trash_differs(
        &self,
        said: &Model,
        ids: &mut BTreeMap<Id, Id>,
        (now, kept_s, late_s): (u64, u64, u64),
    ) -> Option<String> {
        let mut left: Vec<&Trashed> = said.trash.iter().collect();
        for trashed in &self.trash {
            let id = ids.get(&trashed.volume.id).copied();
            let id = id.unwrap_or(trashed.volume.id);
            let at = left.iter().position(|other| other.volume.id == id);
            let age_s = trashed.since_unix_s.map(|since| now.saturating_sub(since));
            match (at, age_s) {
                (Some(at), Some(age_s)) if age_s > kept_s + late_s => {
                    let name = &left.swap_remove(at).name;
                    return Some(format!("{name} is in the trash after {age_s} s"));
                }
                (Some(at), _) => {
                    let there = left.swap_remove(at);
                    let volume = known(&trashed.volume, ids);
                    if (&trashed.name, &volume) != (&there.name, &there.volume) {
                        return Some(format!(
                            "in the trash: expected {trashed:?}, found {there:?}"
                        ));
                    }
                }
                (None, Some(age_s)) if age_s >= kept_s => {}
                (None, _) if trashed.may_be_gone => {}
                (None, _) => return Some(format!("{} is not in the trash", trashed.name)),
            }
        }
        let more = left.first()?;
        Some(format!("{} is in the trash", more.name))
    }
}

/// A volume with the identities that are known by now.
fn known(volume: &Volume, ids: &BTreeMap<Id, Id>) -> Volume {
    Volume {
        id: ids.get(&volume.id).copied().unwrap_or(volume.id),
        of: volume.of.map(|of| ids.get(&of).copied().unwrap_or(of)),
        ..volume.clone()
    }
}

fn first_difference<T: PartialEq + std::fmt::Debug>(
    what: &str,
    expected: &BTreeMap<String, T>,
    said: &BTreeMap<String, T>,
) -> Option<String> {
    let names: BTreeSet<&String> = expected.keys().chain(said.keys()).collect();
    names.into_iter().find_map(|name| {
        let (expected, said) = (expected.get(name), said.get(name));
        (expected != said).then(|| format!("{what} {name}: expected {expected:?}, found {said:?}"))
    })
}
