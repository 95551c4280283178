//! What requests of volumes and snapshots come to.

use super::super::model::{Id, Model, Trashed, Volume};
use super::trash::rename_trashed;
use super::{Change, Request, changed, insert_new, snapshot_name};
use engine::Provisioning;
use std::collections::BTreeMap;

impl Request {
    /// `None` when it is no request of this kind.
    pub(super) fn change_volumes(&self, model: &mut Model, number: u64) -> Option<Change> {
        Some(match self {
            Request::Create {
                name,
                pool,
                size_bytes,
            } => insert_new(model, name, new_volume(number, pool, *size_bytes)),
            _ if self.is_in_the_way_of_a_job(model) => Change::Refused,
            Request::Resize { name, size_bytes } => with_volume(model, name, |volume| {
                volume.size_bytes = *size_bytes;
            }),
            Request::Delete { name, at_once } => delete(model, name, *at_once),
            Request::DeleteSnapshot { name, at_once } => match model.volumes.get(name) {
                Some(one) if one.is_snapshot => delete(model, name, *at_once),
                _ => Change::Refused,
            },
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
            _ => return self.convert(model),
        })
    }

    /// The same, of how a volume takes space.
    fn convert(&self, model: &mut Model) -> Option<Change> {
        let Request::Convert {
            name,
            provisioning,
            detects_zeroes,
        } = self
        else {
            return None;
        };
        let converted = |volume: &mut Volume| {
            volume.provisioning = provisioning.unwrap_or(volume.provisioning);
            volume.detects_zeroes = detects_zeroes.unwrap_or(volume.detects_zeroes);
        };
        Some(match model.is_moving(name) {
            true => Change::Refused,
            false => with_volume(model, name, converted),
        })
    }

    /// Whether it changes a volume that a job is at work on.
    fn is_in_the_way_of_a_job(&self, model: &Model) -> bool {
        match self {
            Request::Resize { name, .. }
            | Request::Delete { name, .. }
            | Request::DeleteSnapshot { name, .. }
            | Request::Rename { name, .. }
            | Request::Restore { volume: name, .. } => model.jobs.contains_key(name),
            _ => false,
        }
    }
}

fn new_volume(number: u64, pool: &str, size_bytes: u64) -> Volume {
    Volume {
        id: Id::New(number * 8),
        pool: pool.to_owned(),
        size_bytes,
        provisioning: Provisioning::Thin,
        detects_zeroes: false,
        is_snapshot: false,
        of: None,
        tags: BTreeMap::new(),
        description: String::new(),
        group: None,
        schedules: BTreeMap::new(),
    }
}

fn delete(model: &mut Model, name: &str, at_once: bool) -> Change {
    if model.target_of(name).is_some() {
        return Change::Refused;
    }
    match model.volumes.remove(name) {
        None => Change::Refused,
        Some(_) if at_once => Change::Done,
        Some(volume) => {
            model.trash.push(Trashed {
                name: name.to_owned(),
                volume,
                since_unix_s: None,
                may_be_gone: false,
            });
            Change::Done
        }
    }
}

fn with_volume(model: &mut Model, name: &str, change: impl FnOnce(&mut Volume)) -> Change {
    let volume = model.volumes.get_mut(name).filter(|one| !one.is_snapshot);
    let is_there = volume.map(change).is_some();
    changed(is_there)
}

/// What is taken from a volume is thin, and says nothing of its own yet.
fn taken(from: &Volume, number: u64, is_snapshot: bool) -> Volume {
    Volume {
        id: Id::New(number),
        of: Some(from.id),
        provisioning: Provisioning::Thin,
        detects_zeroes: false,
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
        if model.moves_without_snapshots(name) {
            return Change::Refused;
        }
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

/// A volume and its snapshots, and what shows them, have other names. Snapshots that stayed in a pool
/// which the volume has left keep theirs.
fn rename(model: &mut Model, name: &str, new: &str) -> Change {
    let Some(volume) = model.volumes.get(name).filter(|one| !one.is_snapshot) else {
        return Change::Refused;
    };
    if name == new {
        return Change::Done;
    }
    let id = volume.id;
    let prefix = snapshot_name(name, "");
    let pool = volume.pool.clone();
    let follows = |other: &Volume| other.is_snapshot && other.of == Some(id) && other.pool == pool;
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
        show_as(model, &old, &new);
    }
    rename_trashed(model, (id, &pool), name, new);
    Change::Done
}

/// Targets that show a volume show it under its new name.
fn show_as(model: &mut Model, old: &str, new: &str) {
    let exports = model.exports.values_mut();
    for shown in exports.flat_map(|one| one.luns.values_mut()) {
        if *shown == old {
            new.clone_into(shown);
        }
    }
}

/// Snapshots of a volume follow its new name. False when one can't.
pub(super) fn follow(model: &mut Model, (id, pool): (Id, &str), old: &str, new: &str) -> bool {
    let prefix = snapshot_name(old, "");
    let names: Vec<String> = model.volumes.keys().cloned().collect();
    for name in names {
        let Some(own) = name.strip_prefix(&prefix) else {
            continue;
        };
        let is_its = |one: &Volume| one.is_snapshot && one.of == Some(id) && one.pool == pool;
        if !model.volumes.get(&name).is_some_and(is_its) {
            continue;
        }
        let Some(volume) = model.volumes.remove(&name) else {
            continue;
        };
        let called = snapshot_name(new, own);
        if insert_new(model, &called, volume) == Change::Refused {
            return false;
        }
        show_as(model, &name, &called);
    }
    rename_trashed(model, (id, pool), old, new);
    true
}
