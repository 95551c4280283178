//! The array as it says itself.

use super::model::{Export, Id, Job, Limits, Model, Task, Trashed, Volume};
use array::control::attributes::{description, tags};
use array::control::consistency::group_of;
use array::control::{self, jobs};
use array::control::{ArrayError, Configuration, ControlPlane, PlacedVolume, schedule};
use array::directory::Initiators;
use array::pool::Paces;
use engine::pool::PoolInfo;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use world_sim::SimWorld;

/// Whether a schedule took it: its own name says so.
pub(super) fn is_by_schedule(name: &str) -> bool {
    let own = name.split_once('@').map(|(_, own)| own);
    own.is_some_and(|own| own.starts_with("auto") || own.starts_with("grp"))
}

/// What it says, when it says so twice: jobs go on meanwhile.
///
/// # Errors
/// A shard has stopped.
pub(super) async fn observe(array: &Arc<ControlPlane<SimWorld>>) -> Result<Model, ArrayError> {
    let mut said = look(array).await?;
    loop {
        let again = look(array).await?;
        if said == again {
            return Ok(said);
        }
        said = again;
    }
}

async fn look(array: &Arc<ControlPlane<SimWorld>>) -> Result<Model, ArrayError> {
    let pools = array.pools().await?;
    let mut model = Model {
        pools: pools.iter().map(|(_, info)| info.name.clone()).collect(),
        paces: pools.iter().map(|(_, info)| paces(info)).collect(),
        limits: Limits::of(&array.settings()),
        discovery: discovery_of(&array.configuration()),
        ..Model::default()
    };
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
                since_unix_s: placed.properties.trashed_unix_s,
                may_be_gone: false,
            });
        }
    }
    let exports = array.exports().into_iter();
    model.exports = exports
        .map(|one| (one.target.clone(), export(one)))
        .collect();
    let hosts = array.hosts().into_iter();
    model.hosts = hosts.map(|host| (host.name, host.initiators)).collect();
    let groups = array.host_groups().into_iter();
    model.host_groups = groups.map(|group| (group.name, group.hosts)).collect();
    let pending = array.jobs().pending().into_iter();
    model.jobs = pending
        .map(|one| (one.order.volume.clone(), job_of(one)))
        .collect();
    Ok(model)
}

/// The name of what initiators prove before they may ask for targets.
pub(super) fn discovery_of(configuration: &Configuration) -> Option<String> {
    let account = configuration.discovery.as_ref();
    account.map(|account| account.initiator.name.clone())
}

/// What a pool goes by.
fn paces(info: &PoolInfo) -> (String, Paces) {
    let paces = Paces {
        rates: info.rates,
        thresholds: info.fullness.thresholds,
        cache_bytes: info.cache.capacity_bytes,
    };
    (info.name.clone(), paces)
}

fn export(one: control::Export) -> Export {
    let initiators = match one.access.initiators {
        Initiators::Named(names) => names,
        Initiators::Any => BTreeSet::new(),
    };
    Export {
        luns: one.luns.into_iter().zip(one.volumes).collect(),
        initiators,
        hosts: one.access.hosts,
        host_groups: one.access.host_groups,
    }
}

/// A job that has not ended.
pub(super) fn job_of(job: jobs::Job) -> Job {
    let task = match (job.order.to_pool, job.order.copy) {
        (Some(to), _) => Task::Move {
            from: job.order.pool,
            to,
            leaves_snapshots: job.order.leave_snapshots,
        },
        (None, copy) => Task::Copy {
            source: copy.map(|copy| copy.source).unwrap_or_default(),
            size_bytes: job.size_bytes,
        },
    };
    Job {
        task,
        is_cancelled: false,
    }
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
        provisioning: placed.info.provisioning,
        detects_zeroes: placed.info.detects_zeroes,
        is_snapshot: placed.is_snapshot(),
        of: placed
            .properties
            .origin
            .as_ref()
            .map(|origin| Id::Known(origin.uuid)),
        tags: tags(&placed.properties),
        description: description(&placed.properties),
        group: group_of(placed).cloned(),
        schedules,
    }
}
