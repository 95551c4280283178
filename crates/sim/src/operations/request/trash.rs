//! What is in the trash, comes out of it, and goes for good.

use super::super::model::{Id, Model};
use super::volumes::follow;
use super::{Change, insert_new, snapshot_name};

/// Of what is in the trash, some may be gone.
pub(super) fn half_emptied(model: &Model) -> Model {
    let mut after = model.clone();
    after
        .trash
        .iter_mut()
        .for_each(|one| one.may_be_gone = true);
    after
}

/// Places in the trash of those of a name that may have come in last.
pub(super) fn last_trashed(model: &Model, name: &str) -> Option<Vec<usize>> {
    let of = model.trash.iter().enumerate();
    let of: Vec<(usize, Option<u64>)> = of
        .filter(|(_, one)| one.name == name)
        .map(|(at, one)| (at, one.since_unix_s))
        .collect();
    // One of this round is the last, and of the same second as it may be. So is one before those
    // that may be gone.
    let there = of.iter().filter(|(at, _)| !model.trash[*at].may_be_gone);
    let newest = there.filter_map(|(_, since)| *since).max();
    let is_last =
        |since: &Option<u64>| since.is_none() || *since >= newest.map(|at| at.saturating_sub(1));
    let last: Vec<usize> = of
        .iter()
        .filter(|(_, since)| is_last(since))
        .map(|(at, _)| *at)
        .collect();
    (!last.is_empty()).then_some(last)
}

pub(super) fn without_trashed(model: &Model, at: usize) -> Model {
    let mut after = model.clone();
    after.trash.remove(at);
    after
}

/// A volume comes out of the trash. When it `rejoins` its group, it has the schedules of now.
pub(super) fn recovered(
    before: &Model,
    name: &str,
    new: Option<&str>,
    rejoins: bool,
) -> Option<Vec<Model>> {
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
        if let Some(group) = volume.group.clone().filter(|_| rejoins)
            && !before.members(&group).is_empty()
        {
            volume
                .schedules
                .retain(|number, _| !number.starts_with('g'));
            volume.schedules.extend(before.schedules_of(&group));
        }
        let (id, pool) = (volume.id, volume.pool.clone());
        if insert_new(&mut after, &called, volume) == Change::Refused {
            continue;
        }
        if renames && !follow(&mut after, (id, &pool), name, &called) {
            continue;
        }
        all.push(after);
    }
    (!all.is_empty()).then_some(all)
}

/// Snapshots of a volume that are in the trash follow its new name, too.
pub(super) fn rename_trashed(model: &mut Model, (id, pool): (Id, &str), old: &str, new: &str) {
    let prefix = snapshot_name(old, "");
    for trashed in &mut model.trash {
        let one = &trashed.volume;
        let is_its = one.is_snapshot && one.of == Some(id) && one.pool == pool;
        if let Some(own) = trashed.name.strip_prefix(&prefix).filter(|_| is_its) {
            trashed.name = snapshot_name(new, own);
        }
    }
}
