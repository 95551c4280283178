//! What requests of exports and hosts come to.

use super::super::model::{Export, Model};
use super::{Change, Request, changed};
use std::collections::BTreeSet;

impl Request {
    /// As above.
    pub(super) fn change_access(&self, model: &mut Model) -> Option<Change> {
        Some(match self {
            Request::CreateExport { target, export } => create_export(model, target, export),
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
            Request::AddLun { target, volume } => add_lun(model, target, volume),
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
                change_host_group(model, group, add, remove)
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

fn create_export(model: &mut Model, target: &str, export: &Export) -> Change {
    let is_new = !model.exports.contains_key(target) && !export.luns.is_empty();
    let is_free =
        |name: &String| model.volumes.contains_key(name) && model.target_of(name).is_none();
    if !is_new || !export.luns.values().all(is_free) || !may_admit(model, export) {
        return Change::Refused;
    }
    model.exports.insert(target.to_owned(), export.clone());
    Change::Done
}

/// At the first LUN that is free.
fn add_lun(model: &mut Model, target: &str, volume: &str) -> Change {
    let is_free = model.volumes.contains_key(volume) && model.target_of(volume).is_none();
    match model.exports.get_mut(target).filter(|_| is_free) {
        None => Change::Refused,
        Some(export) => {
            let mut free = (0..).filter(|lun| !export.luns.contains_key(lun));
            let lun = free.next().unwrap_or_default();
            export.luns.insert(lun, volume.to_owned());
            Change::Done
        }
    }
}

fn change_host_group(model: &mut Model, group: &str, add: &str, remove: &str) -> Change {
    let is_there = model.hosts.contains_key(add);
    match model.host_groups.get_mut(group) {
        None => Change::Refused,
        Some(hosts) => {
            let had = hosts.remove(remove);
            hosts.insert(add.to_owned());
            changed(had && is_there)
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
