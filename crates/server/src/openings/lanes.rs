//! Opens all lanes of a pool, each on its shard, or none.

use super::pools::{OpenDrives, PoolPlan, doors};
use crate::bring_up_error::BringUpError;
use crate::shard::{ShardHandle, ShardState};
use ::array::pool::Paces;
use engine::lane::LaneSlot;
use engine::pool::{Lane, PoolError, PoolErrorKind, PoolInfo};
use futures_util::future::join_all;
use std::rc::Rc;

/// Opens a pool, and gives the names of its drives.
///
/// # Errors
/// A shard that has stopped; inside, why the pool can't be opened.
pub(super) async fn open(
    plan: &PoolPlan,
    shards: &[ShardHandle],
    drives: &OpenDrives,
) -> Result<Result<Vec<String>, String>, BringUpError> {
    let lanes = LaneSlot::all(plan.shards.len() as u16);
    let opening = lanes.into_iter().zip(&plan.shards).map(|(lane, shard)| {
        let (spec, drives) = (plan.spec.clone(), drives.clone());
        let visit = move |state: Rc<ShardState>| async move {
            let drives = doors(&state, &drives);
            let pool = Lane::open_lane(state.world().clone(), lane, drives).await?;
            Paces::of(&spec).set_on(&pool);
            let info = pool.info();
            state.add_pool(pool);
            Ok(info)
        };
        shards[*shard].call::<Result<PoolInfo, PoolError>, _, _>(visit)
    });
    let mut infos = Vec::new();
    let mut failure: Option<PoolError> = None;
    for outcome in join_all(opening).await {
        match outcome? {
            Ok(info) => infos.push(info),
            // That another lane can't be opened says nothing of why.
            Err(error) if error.kind == PoolErrorKind::Failed => {
                failure = failure.or(Some(error));
            }
            Err(error) => failure = Some(error),
        }
    }
    if let Some(error) = failure {
        // Those that did open would be half a pool.
        shut(&plan.spec.name, plan.shards.len(), shards).await?;
        return Ok(Err(format!("pool {}: {error}", plan.spec.name)));
    }
    if let Some(first) = infos.first().filter(|first| first.lanes > 1) {
        complete(plan, shards, drives, first).await?;
    }
    let members = PoolInfo::of_lanes(infos).into_iter();
    let members = members.flat_map(|info| info.members);
    Ok(Ok(members.map(|member| member.name).collect()))
}

/// Closes all lanes of a pool that are open, and takes them off their shards.
///
/// # Errors
/// A shard has stopped.
pub(super) async fn shut(
    name: &str,
    lanes: usize,
    shards: &[ShardHandle],
) -> Result<(), BringUpError> {
    for shard in shards {
        let name = name.to_owned();
        let visit = move |state: Rc<ShardState>| async move {
            for lane in 0..lanes {
                let Some(pool) = state.take_pool(&name, lane as u16) else {
                    continue;
                };
                if let Err(error) = pool.close().await {
                    tracing::warn!("lane {lane} of pool {name}: {error}");
                }
                // Somebody may have a look at the pool just now.
                pool.release();
            }
        };
        shard.call(visit).await?;
    }
    Ok(())
}

/// Gives the other lanes what only the first one has, because adding it was cut short.
async fn complete(
    plan: &PoolPlan,
    shards: &[ShardHandle],
    drives: &OpenDrives,
    first: &PoolInfo,
) -> Result<(), BringUpError> {
    for (lane, shard) in plan.shards.iter().enumerate().skip(1) {
        let (name, first, drives) = (plan.spec.name.clone(), first.clone(), drives.clone());
        let visit = move |state: Rc<ShardState>| async move {
            let Some(pool) = state.lane(&name, lane as u16) else {
                return Ok(());
            };
            complete_groups(&state, &pool, &first, &drives).await?;
            for missing in pool.drives_missing(&first) {
                let mut missed = drives.clone();
                missed.retain(|(name, _)| *name == missing);
                for door in doors(&state, &missed) {
                    // One that is not taken keeps back none of the others.
                    if let Err(error) = pool.add_spare(door).await {
                        tracing::warn!("lane {lane} of pool {name}: drive {missing}: {error}");
                    }
                }
            }
            Ok(())
        };
        let completed: Result<(), PoolError> = shards[*shard].call(visit).await?;
        if let Err(error) = completed {
            tracing::warn!("lane {lane} of pool {}: {error}", plan.spec.name);
        }
    }
    Ok(())
}

async fn complete_groups(
    state: &ShardState,
    pool: &Lane<world_real::RealWorld>,
    first: &PoolInfo,
    drives: &OpenDrives,
) -> Result<(), PoolError> {
    while pool.groups_missing() > 0 {
        let index = pool.groups_ever();
        let group = first
            .groups
            .iter()
            .find(|group| usize::from(group.index) == index);
        let Some(group) = group else {
            return Ok(());
        };
        let of_group = group.members.iter().filter_map(|member| {
            let mut all = drives.iter();
            all.find(|(name, _)| *name == member.name).cloned()
        });
        let of_group: OpenDrives = of_group.collect();
        pool.add_group(group.level, doors(state, &of_group)).await?;
    }
    Ok(())
}
