//! Requests of administrators, and what the array is afterwards.

use super::model::{Export, Id, Model, Trashed, Volume};
use std::collections::{BTreeMap, BTreeSet};

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
}

/// What a volume of these names would be called.
pub(super) fn snapshot_name(volume: &str, own: &str) -> String {
    format!("{volume}@{own}")
}

impl Request {
    /// What the array may be when the request is done; nothing when it has to be refused. `number`
    /// is the request's.
    pub(super) fn outcomes(&self, before: &Model, number: u64) -> Vec<Model> {
        match self.outcome(before, number) {
            Some(outcomes) => outcomes,
            None => Vec::new(),
        }
    }

    /// What it may be as well when a power cut ends the request in the middle: those requests change
    /// several volumes, one after the other.
    pub(super) fn halfway(&self, before: &Model, number: u64) -> Vec<Model> {
        let names: BTreeSet<String> = match self {
            Request::CreateGroup { .. }
            | Request::ChangeGroup { .. }
            | Request::DeleteGroup { .. }
            | Request::AddGroupSchedule { .. }
            | Request::RemoveGroupSchedule { .. }
            | Request::Snapshot { .. }
            | Request::SnapshotGroup { .. }
            | Request::Recover { .. } => before.volumes.keys().cloned().collect(),
            _ => return Vec::new(),
        };
        let mut all = Vec::new();
        for after in self.outcomes(before, number) {
            let changed: Vec<&String> = after
                .volumes
                .iter()
                .filter(|(name, volume)| before.volumes.get(*name) != Some(*volume))
                .map(|(name, _)| name)
                .collect();
            // Any of them, and the others not yet.
            for some in 0..1u32 << changed.len().min(6) {
                let mut model = after.clone();
                for (nth, name) in changed.iter().enumerate() {
                    if some & (1 << nth.min(31)) == 0 {
                        match before.volumes.get(*name) {
                            Some(was) if names.contains(*name) => {
                                model.volumes.insert((*name).clone(), was.clone());
                            }
                            _ => drop(model.volumes.remove(*name)),
                        }
                    }
                }
                all.push(model);
            }
        }
        all
    }

    /// Whether it may be refused for what a model does not know: the lane of a volume, where a
    /// snapshot that was taken of another volume is restored.
    pub(super) fn may_be_refused(&self, before: &Model) -> bool {
        let Request::Restore { volume, own, .. } = self else {
            return false;
        };
        let snapshot = before.volumes.get(&snapshot_name(volume, own));
        let id = before.volumes.get(volume).map(|volume| volume.id);
        snapshot.is_some_and(|snapshot| snapshot.of != id)
    }

    fn outcome(&self, before: &Model, number: u64) -> Option<Vec<Model>> {
        let mut after = before.clone();
        match self {
            Request::Recover { name, new } => return recovered(before, name, new.as_deref()),
            Request::DeleteTrashed { name } => {
                let last = last_trashed(before, name)?;
                return Some(
                    last.into_iter()
                        .map(|at| without_trashed(before, at))
                        .collect(),
                );
            }
            _ => {}
        }
        self.change_volumes(&mut after, number)
            .or_else(|| self.change_groups(&mut after))
            .or_else(|| self.change_access(&mut after))
            .flatten_refusal()?;
        Some(vec![after])
    }

    /// `None` when it is no request of this kind.
    fn change_volumes(&self, model: &mut Model, number: u64) -> Option<Change> {
        Some(match self {
            Request::Create {
                name,
                pool,
                size_bytes,
            } => {
                let volume = Volume {
                    id: Id::New(number * 8),
                    pool: pool.clone(),
                    size_bytes: *size_bytes,
                    is_snapshot: false,
                    of: None,
                    tags: BTreeMap::new(),
                    description: String::new(),
                    group: None,
                    schedules: BTreeMap::new(),
                };
                insert_new(model, name, volume)
            }
            Request::Resize { name, size_bytes } => with_volume(model, name, |volume| {
                volume.size_bytes = *size_bytes;
            }),
            Request::Delete { name, at_once } => {
                if model.target_of(name).is_some() {
                    return Some(Change::Refused);
                }
                match model.volumes.remove(name) {
                    None => Change::Refused,
                    Some(_) if *at_once => Change::Done,
                    Some(volume) => {
                        let (name, since_unix_s) = (name.clone(), None);
                        model.trash.push(Trashed {
                            name,
                            volume,
                            since_unix_s,
                        });
                        Change::Done
                    }
                }
            }
            Request::Rename { name, new } => rename(model, name, new),
            Request::Tag { name, key, value } => {
                with_volume(model, name, |volume| match value.is_empty() {
                    true => drop(volume.tags.remove(key)),
                    false => drop(volume.tags.insert(key.clone(), value.clone())),
                })
            }
            Request::Describe { name, text } => with_volume(model, name, |volume| {
                volume.description.clone_from(text);
            }),
            Request::Snapshot { volumes, own } => snapshot(model, volumes, own, number),
            Request::SnapshotGroup { group, own } => match model.members(group) {
                members if members.is_empty() => Change::Refused,
                members => snapshot(model, &members, own, number),
            },
            Request::Clone { source, name } => match model.volumes.get(source).cloned() {
                None => Change::Refused,
                Some(source) => {
                    let clone = taken(&source, number * 8, false);
                    insert_new(model, name, clone)
                }
            },
            Request::Restore { volume, own, keep } => restore(model, volume, own, keep, number),
            _ => return None,
        })
    }

    /// As above.
    fn change_groups(&self, model: &mut Model) -> Option<Change> {
        Some(match self {
            Request::CreateGroup { group, volumes } => match model.members(group).is_empty() {
                true => regroup(model, group, volumes, &[]),
                false => Change::Refused,
            },
            Request::ChangeGroup { group, add, remove } => {
                let both = add.iter().any(|name| remove.contains(name));
                match model.members(group).is_empty() || both {
                    true => Change::Refused,
                    false => regroup(model, group, add, remove),
                }
            }
            Request::DeleteGroup { group } => match model.members(group) {
                members if members.is_empty() => Change::Refused,
                members => regroup(model, group, &[], &members),
            },
            Request::AddSchedule {
                name,
                every_s,
                keep,
            } => {
                let volume = model.volumes.get_mut(name).filter(|one| !one.is_snapshot);
                match volume {
                    None => Change::Refused,
                    Some(volume) => add_schedule(&mut volume.schedules, "", (*every_s, *keep)),
                }
            }
            Request::RemoveSchedule { name, number } => match model.volumes.get_mut(name) {
                None => Change::Refused,
                Some(volume) => changed(volume.schedules.remove(&number.to_string()).is_some()),
            },
            Request::AddGroupSchedule {
                group,
                every_s,
                keep,
            } => {
                let mut schedules = model.schedules_of(group);
                let members = model.members(group);
                if members.is_empty() {
                    return Some(Change::Refused);
                }
                let before = schedules.clone();
                let change = add_schedule(&mut schedules, "g", (*every_s, *keep));
                let mut new = schedules.into_iter();
                if let Some((number, times)) = new.find(|(one, _)| !before.contains_key(one)) {
                    set_schedule(model, &members, &number, Some(times));
                }
                change
            }
            Request::RemoveGroupSchedule { group, number } => {
                let number = format!("g{number}");
                let members = model.members(group);
                let is_there = model.schedules_of(group).contains_key(&number);
                set_schedule(model, &members, &number, None);
                changed(is_there)
            }
            _ => return None,
        })
    }

    /// As above.
    fn change_access(&self, model: &mut Model) -> Option<Change> {
        Some(match self {
            Request::CreateExport { target, export } => {
                let is_new = !model.exports.contains_key(target) && !export.luns.is_empty();
                let mut names = export.luns.values();
                let are_free = names.all(|name| {
                    model.volumes.contains_key(name) && model.target_of(name).is_none()
                });
                if !is_new || !are_free || !may_admit(model, export) {
                    return Some(Change::Refused);
                }
                model.exports.insert(target.clone(), export.clone());
                Change::Done
            }
            Request::ChangeExport {
                target,
                hosts,
                host_groups,
            } => {
                let Some(mut export) = model.exports.get(target).cloned() else {
                    return Some(Change::Refused);
                };
                (export.hosts, export.host_groups) = (hosts.clone(), host_groups.clone());
                if !may_admit(model, &export) {
                    return Some(Change::Refused);
                }
                model.exports.insert(target.clone(), export);
                Change::Done
            }
            Request::DeleteExport { target } => changed(model.exports.remove(target).is_some()),
            Request::AddLun { target, volume } => {
                let is_free =
                    model.volumes.contains_key(volume) && model.target_of(volume).is_none();
                match model.exports.get_mut(target).filter(|_| is_free) {
                    None => Change::Refused,
                    Some(export) => {
                        let mut free = (0..).filter(|lun| !export.luns.contains_key(lun));
                        let lun = free.next().unwrap_or_default();
                        export.luns.insert(lun, volume.clone());
                        Change::Done
                    }
                }
            }
            Request::RemoveLun { target, volume } => match model.exports.get_mut(target) {
                None => Change::Refused,
                Some(export) => {
                    let before = export.luns.len();
                    export.luns.retain(|_, name| name != volume);
                    changed(export.luns.len() < before && !export.luns.is_empty())
                }
            },
            _ => return self.change_hosts(model),
        })
    }

    /// As above.
    fn change_hosts(&self, model: &mut Model) -> Option<Change> {
        Some(match self {
            Request::CreateHost { host, initiators } => {
                let is_new = !model.hosts.contains_key(host);
                model.hosts.insert(host.clone(), initiators.clone());
                changed(is_new && are_disjoint(model))
            }
            Request::ChangeHost { host, add, remove } => match model.hosts.get_mut(host) {
                None => Change::Refused,
                Some(initiators) => {
                    let had = initiators.remove(remove);
                    initiators.insert(add.clone());
                    changed(had && are_disjoint(model))
                }
            },
            Request::DeleteHost { host } => {
                let in_group = model.host_groups.values().any(|hosts| hosts.contains(host));
                let is_named = model.exports.values().any(|one| one.hosts.contains(host));
                changed(!in_group && !is_named && model.hosts.remove(host).is_some())
            }
            Request::CreateHostGroup { group, hosts } => {
                let is_new = !model.host_groups.contains_key(group);
                let are_there = hosts.iter().all(|host| model.hosts.contains_key(host));
                model.host_groups.insert(group.clone(), hosts.clone());
                changed(is_new && are_there)
            }
            Request::ChangeHostGroup { group, add, remove } => {
                let is_there = model.hosts.contains_key(add);
                match model.host_groups.get_mut(group) {
                    None => Change::Refused,
                    Some(hosts) => {
                        let had = hosts.remove(remove);
                        hosts.insert(add.clone());
                        changed(had && is_there)
                    }
                }
            }
            Request::DeleteHostGroup { group } => {
                let mut exports = model.exports.values();
                let is_named = exports.any(|one| one.host_groups.contains(group));
                changed(!is_named && model.host_groups.remove(group).is_some())
            }
            _ => return None,
        })
    }
}

/// What came of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Done,
    Refused,
}

trait OrRefused {
    /// None for a refusal; also of what is no request at all.
    fn flatten_refusal(self) -> Option<()>;
}

impl OrRefused for Option<Change> {
    fn flatten_refusal(self) -> Option<()> {
        (self == Some(Change::Done)).then_some(())
    }
}

fn changed(is_done: bool) -> Change {
    match is_done {
        true => Change::Done,
        false => Change::Refused,
    }
}

fn with_volume(model: &mut Model, name: &str, change: impl FnOnce(&mut Volume)) -> Change {
    let volume = model.volumes.get_mut(name).filter(|one| !one.is_snapshot);
    let is_there = volume.map(change).is_some();
    changed(is_there)
}

fn insert_new(model: &mut Model, name: &str, volume: Volume) -> Change {
    let is_new = !model.volumes.contains_key(name);
    if is_new {
        model.volumes.insert(name.to_owned(), volume);
    }
    changed(is_new)
}

/// What is taken from a volume says nothing of its own yet.
fn taken(from: &Volume, number: u64, is_snapshot: bool) -> Volume {
    Volume {
        id: Id::New(number),
        of: Some(from.id),
        is_snapshot,
        tags: BTreeMap::new(),
        description: String::new(),
        group: None,
        schedules: BTreeMap::new(),
        ..from.clone()
    }
}

fn snapshot(model: &mut Model, volumes: &[String], own: &str, number: u64) -> Change {
    for (nth, name) in volumes.iter().enumerate() {
        let Some(volume) = model.volumes.get(name).filter(|one| !one.is_snapshot) else {
            return Change::Refused;
        };
        let taken = taken(volume, number * 8 + nth as u64, true);
        if insert_new(model, &snapshot_name(name, own), taken) == Change::Refused {
            return Change::Refused;
        }
    }
    changed(!volumes.is_empty())
}

fn restore(model: &mut Model, name: &str, own: &str, keep: &Option<String>, number: u64) -> Change {
    let snapshot = model.volumes.get(&snapshot_name(name, own));
    let volume = model.volumes.get(name).filter(|one| !one.is_snapshot);
    let (Some(snapshot), Some(volume)) = (snapshot, volume) else {
        return Change::Refused;
    };
    let is_near = snapshot.pool == volume.pool && snapshot.is_snapshot;
    if !is_near || snapshot.size_bytes > volume.size_bytes || model.target_of(name).is_some() {
        return Change::Refused;
    }
    match keep {
        None => Change::Done,
        Some(keep) => {
            let kept = taken(volume, number * 8, true);
            insert_new(model, &snapshot_name(name, keep), kept)
        }
    }
}

/// A volume and its snapshots, and what shows them, have other names.
fn rename(model: &mut Model, name: &str, new: &str) -> Change {
    let Some(volume) = model.volumes.get(name).filter(|one| !one.is_snapshot) else {
        return Change::Refused;
    };
    if name == new {
        return Change::Done;
    }
    let id = volume.id;
    let prefix = snapshot_name(name, "");
    let follows = |other: &Volume| other.is_snapshot && other.of == Some(id);
    let renamed: Vec<(String, String)> = model
        .volumes
        .iter()
        .filter_map(|(called, other)| {
            let own = called.strip_prefix(&prefix).filter(|_| follows(other))?;
            Some((called.clone(), snapshot_name(new, own)))
        })
        .chain([(name.to_owned(), new.to_owned())])
        .collect();
    if renamed
        .iter()
        .any(|(_, new)| model.volumes.contains_key(new))
    {
        return Change::Refused;
    }
    for (old, new) in renamed {
        if let Some(volume) = model.volumes.remove(&old) {
            model.volumes.insert(new.clone(), volume);
        }
        for shown in model
            .exports
            .values_mut()
            .flat_map(|one| one.luns.values_mut())
        {
            if *shown == old {
                shown.clone_from(&new);
            }
        }
    }
    Change::Done
}

/// Volumes come into a group, and others leave it.
fn regroup(model: &mut Model, group: &str, add: &[String], remove: &[String]) -> Change {
    let schedules = model.schedules_of(group);
    for name in remove {
        let member = model.volumes.get_mut(name);
        let Some(volume) = member.filter(|one| one.group.as_deref() == Some(group)) else {
            return Change::Refused;
        };
        volume.group = None;
        volume
            .schedules
            .retain(|number, _| !number.starts_with('g'));
    }
    for name in add {
        let Some(volume) = model.volumes.get_mut(name).filter(|one| !one.is_snapshot) else {
            return Change::Refused;
        };
        if volume.group.as_ref().is_some_and(|other| other != group) {
            return Change::Refused;
        }
        if volume.group.is_none() {
            volume.group = Some(group.to_owned());
            volume.schedules.extend(schedules.clone());
        }
    }
    Change::Done
}

fn add_schedule(
    schedules: &mut BTreeMap<String, (u64, u64)>,
    mark: &str,
    times: (u64, u64),
) -> Change {
    let mut free = (1..=site::SCHEDULES_MAX).map(|number| format!("{mark}{number}"));
    match free.find(|number| !schedules.contains_key(number)) {
        None => Change::Refused,
        Some(number) => {
            schedules.insert(number, times);
            Change::Done
        }
    }
}

fn set_schedule(model: &mut Model, names: &[String], number: &str, times: Option<(u64, u64)>) {
    for name in names {
        let Some(volume) = model.volumes.get_mut(name) else {
            continue;
        };
        match times {
            Some(times) => drop(volume.schedules.insert(number.to_owned(), times)),
            None => drop(volume.schedules.remove(number)),
        }
    }
}

fn may_admit(model: &Model, export: &Export) -> bool {
    let someone = export.initiators.len() + export.hosts.len() + export.host_groups.len() > 0;
    let hosts = export
        .hosts
        .iter()
        .all(|host| model.hosts.contains_key(host));
    let mut groups = export.host_groups.iter();
    someone && hosts && groups.all(|group| model.host_groups.contains_key(group))
}

/// An initiator is of one host at most.
fn are_disjoint(model: &Model) -> bool {
    let mut seen = BTreeSet::new();
    let mut all = model.hosts.values().flatten();
    all.all(|initiator| seen.insert(initiator))
}

/// Places in the trash of those of a name that may have come in last.
fn last_trashed(model: &Model, name: &str) -> Option<Vec<usize>> {
    let of = model.trash.iter().enumerate();
    let of: Vec<(usize, Option<u64>)> = of
        .filter(|(_, one)| one.name == name)
        .map(|(at, one)| (at, one.since_unix_s))
        .collect();
    // One of this round is the last, and of the same second as it may be.
    let newest = of.iter().filter_map(|(_, since)| *since).max();
    let is_last =
        |since: &Option<u64>| since.is_none() || *since >= newest.map(|at| at.saturating_sub(1));
    let last: Vec<usize> = of
        .iter()
        .filter(|(_, since)| is_last(since))
        .map(|(at, _)| *at)
        .collect();
    (!last.is_empty()).then_some(last)
}

fn without_trashed(model: &Model, at: usize) -> Model {
    let mut after = model.clone();
    after.trash.remove(at);
    after
}

/// A volume comes out of the trash, with its snapshots' names as they are.
fn recovered(before: &Model, name: &str, new: Option<&str>) -> Option<Vec<Model>> {
    let mut all = Vec::new();
    for at in last_trashed(before, name)? {
        let mut after = without_trashed(before, at);
        let mut volume = before.trash[at].volume.clone();
        let called = match (new, name.split_once('@').filter(|_| volume.is_snapshot)) {
            (None, _) => name.to_owned(),
            (Some(new), None) => new.to_owned(),
            (Some(new), Some((of, _))) => snapshot_name(of, new),
        };
        let renames = called != name && !volume.is_snapshot;
        if let Some(group) = volume.group.clone()
            && !before.members(&group).is_empty()
        {
            volume
                .schedules
                .retain(|number, _| !number.starts_with('g'));
            volume.schedules.extend(before.schedules_of(&group));
        }
        let id = volume.id;
        if insert_new(&mut after, &called, volume) == Change::Refused {
            continue;
        }
        if renames && !follow(&mut after, id, name, &called) {
            continue;
        }
        all.push(after);
    }
    (!all.is_empty()).then_some(all)
}

/// Snapshots of a volume follow its new name. False when one can't.
fn follow(model: &mut Model, id: Id, old: &str, new: &str) -> bool {
    let prefix = snapshot_name(old, "");
    let names: Vec<String> = model.volumes.keys().cloned().collect();
    for name in names {
        let Some(own) = name.strip_prefix(&prefix) else {
            continue;
        };
        let is_its = |one: &Volume| one.is_snapshot && one.of == Some(id);
        if !model.volumes.get(&name).is_some_and(is_its) {
            continue;
        }
        let Some(volume) = model.volumes.remove(&name) else {
            continue;
        };
        if insert_new(model, &snapshot_name(new, own), volume) == Change::Refused {
            return false;
        }
    }
    true
}
