//! What requests of groups and schedules come to.

use super::super::model::Model;
use super::{Change, Request, changed};
use std::collections::BTreeMap;

impl Request {
    /// As above.
    pub(super) fn change_groups(&self, model: &mut Model) -> Option<Change> {
        Some(match self {
            Request::CreateGroup { group, volumes } => match model.members(group).is_empty() {
                true => regroup(model, group, volumes, &[]),
                false => Change::Refused,
            },
            Request::ChangeGroup { group, add, remove } => change_group(model, group, add, remove),
            Request::DeleteGroup { group } => match model.members(group) {
                members if members.is_empty() => Change::Refused,
                members => regroup(model, group, &[], &members),
            },
            Request::Gather { group, volumes } => gather(model, group, volumes),
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
            Request::RemoveSchedule { name, number } => {
                let volume = model.volumes.get_mut(name);
                let gone = volume.and_then(|one| one.schedules.remove(&number.to_string()));
                changed(gone.is_some())
            }
            Request::AddGroupSchedule {
                group,
                every_s,
                keep,
            } => add_group_schedule(model, group, (*every_s, *keep)),
            Request::RemoveGroupSchedule { group, number } => {
                remove_group_schedule(model, group, &format!("g{number}"))
            }
            _ => return None,
        })
    }
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

/// Volumes come into a group, out of others.
fn gather(model: &mut Model, group: &str, names: &[String]) -> Change {
    let schedules = model.schedules_of(group);
    for name in names {
        let Some(volume) = model.volumes.get_mut(name).filter(|one| !one.is_snapshot) else {
            return Change::Refused;
        };
        if volume.group.as_deref() == Some(group) {
            continue;
        }
        volume.group = Some(group.to_owned());
        volume
            .schedules
            .retain(|number, _| !number.starts_with('g'));
        volume.schedules.extend(schedules.clone());
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

/// All members have it, under the first number that is free.
fn add_group_schedule(model: &mut Model, group: &str, times: (u64, u64)) -> Change {
    let mut schedules = model.schedules_of(group);
    let members = model.members(group);
    if members.is_empty() {
        return Change::Refused;
    }
    let before = schedules.clone();
    let change = add_schedule(&mut schedules, "g", times);
    let mut new = schedules.into_iter();
    if let Some((number, times)) = new.find(|(one, _)| !before.contains_key(one)) {
        set_schedule(model, &members, &number, Some(times));
    }
    change
}

fn remove_group_schedule(model: &mut Model, group: &str, number: &str) -> Change {
    let members = model.members(group);
    let is_there = model.schedules_of(group).contains_key(number);
    set_schedule(model, &members, number, None);
    changed(is_there)
}

fn change_group(model: &mut Model, group: &str, add: &[String], remove: &[String]) -> Change {
    let both = add.iter().any(|name| remove.contains(name));
    match model.members(group).is_empty() || both {
        true => Change::Refused,
        false => regroup(model, group, add, remove),
    }
}
