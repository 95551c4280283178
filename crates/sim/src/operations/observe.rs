//! The array as it says itself.

use super::model::{Export, Id, Model, Trashed, Volume};
use array::control::attributes::{description, tags};
use array::control::consistency::group_of;
use array::control::{ArrayError, ControlPlane, PlacedVolume, schedule};
use array::directory::Initiators;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use world_sim::SimWorld;

/// Whether a schedule took it: its own name says so.
pub(super) fn is_by_schedule(name: &str) -> bool {
    let own = name.split_once('@').map(|(_, own)| own);
    own.is_some_and(|own| own.starts_with("auto") || own.starts_with("grp"))
}

/// What it says.
///
/// # Errors
/// A shard has stopped.
pub(super) async fn observe(array: &Arc<ControlPlane<SimWorld>>) -> Result<Model, ArrayError> {
    let mut model = Model::default();
    for placed in array.volumes().await? {
        if !is_by_schedule(&placed.info.name) {
            model
                .volumes
                .insert(placed.info.name.clone(), volume(&placed));
        }
    }
    for placed in array.trash().await? {
        if !is_by_schedule(&placed.info.name) {
            model.trash.push(Trashed {
                name: placed.info.name.clone(),
                volume: volume(&placed),
                since_unix_s: placed.about.trashed_unix_s,
            });
        }
    }
    for one in array.exports() {
        let initiators = match one.access.initiators {
            Initiators::Named(names) => names,
            Initiators::Any => BTreeSet::new(),
        };
        let export = Export {
            luns: one.luns.into_iter().zip(one.volumes).collect(),
            initiators,
            hosts: one.access.hosts,
            host_groups: one.access.host_groups,
        };
        model.exports.insert(one.target, export);
    }
    let hosts = array.hosts().into_iter();
    model.hosts = hosts.map(|host| (host.name, host.initiators)).collect();
    let groups = array.host_groups().into_iter();
    model.host_groups = groups.map(|group| (group.name, group.hosts)).collect();
    Ok(model)
}

fn volume(placed: &PlacedVolume) -> Volume {
    let own = schedule::of(placed).into_iter();
    let mut schedules: BTreeMap<String, (u64, u64)> = own
        .map(|one| (one.number.to_string(), (one.every_s, one.keep)))
        .collect();
    let of_group = schedule::of_group(placed).into_iter();
    schedules.extend(of_group.map(|one| (format!("g{}", one.number), (one.every_s, one.keep))));
    Volume {
        id: Id::Known(placed.info.uuid),
        pool: placed.pool.clone(),
        size_bytes: placed.info.size_bytes,
        is_snapshot: placed.is_snapshot(),
        of: placed
            .about
            .origin
            .as_ref()
            .map(|origin| Id::Known(origin.uuid)),
        tags: tags(&placed.about),
        description: description(&placed.about),
        group: group_of(placed).cloned(),
        schedules,
    }
}
