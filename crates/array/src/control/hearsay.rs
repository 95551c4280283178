//! Shows the array at a glance, also while a shard does not answer.
//!
//! The last answer of a silent shard stands for it, and the report names the shard.
//!
//! Invariant: a look ends in bounded time, whatever a shard does.

use super::answers::Silent;
use super::volumes::volumes_on;
use super::{ArrayError, ControlPlane};
use crate::shard::{ShardHandle, ShardState};
use engine::World;
use engine::pool::PoolInfo;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What a shard says of itself.
#[derive(Clone, Debug, Default)]
struct ShardReport {
    /// With their lanes.
    pools: Vec<(u16, PoolInfo)>,
    volumes: usize,
    sessions: usize,
}

/// What shards said last, by index, and which are silent.
#[derive(Debug, Default)]
pub(super) struct Hearsay {
    said: Mutex<BTreeMap<usize, ShardReport>>,
    pub(super) silent: Silent,
}

/// The array, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Glance {
    /// By name, each with the shard that its first lane is on.
    pub pools: Vec<(usize, PoolInfo)>,
    /// How many volumes, without snapshots.
    pub volumes: usize,
    /// How many sessions are connected.
    pub sessions: usize,
    /// Shards that do not answer: of these it is what they said last.
    pub silent: Vec<usize>,
}

impl Hearsay {
    /// What a shard said now; without that, what it said last.
    fn keep(&self, shard: usize, said: Option<ShardReport>) -> ShardReport {
        // A map is whole after each step.
        let mut all = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        match said {
            Some(said) => {
                all.insert(shard, said.clone());
                said
            }
            None => all.get(&shard).cloned().unwrap_or_default(),
        }
    }
}

fn look<W: World>(state: &ShardState<W>) -> ShardReport {
    let volumes = volumes_on(state);
    ShardReport {
        pools: lanes_on(state),
        volumes: volumes.iter().filter(|one| !one.is_snapshot()).count(),
        sessions: state.sessions().len(),
    }
}

/// The lanes on a shard, each with its number.
pub fn lanes_on<W: World>(state: &ShardState<W>) -> Vec<(u16, PoolInfo)> {
    let pools = state.pools();
    pools
        .iter()
        .map(|pool| (pool.lane(), pool.info()))
        .collect()
}

/// One for each pool, by name, of its lanes with the shards that they are on.
pub fn merged(mut lanes: Vec<(u16, usize, PoolInfo)>) -> Vec<(usize, PoolInfo)> {
    lanes.sort_by_key(|(lane, _, _)| *lane);
    let mut by_name: BTreeMap<String, (usize, Vec<PoolInfo>)> = BTreeMap::new();
    for (_, shard, info) in lanes {
        let pool = by_name.entry(info.name.clone());
        pool.or_insert_with(|| (shard, Vec::new())).1.push(info);
    }
    let pools = by_name.into_values();
    pools
        .filter_map(|(shard, lanes)| Some((shard, PoolInfo::of_lanes(lanes)?)))
        .collect()
}

impl<W: World> ControlPlane<W> {
    /// What is known of the array. A shard has `patience` to answer.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn glance(&self, patience: Duration) -> Result<Glance, ArrayError> {
        let ask = |shard: &ShardHandle<W>| {
            let visit = |state: Rc<ShardState<W>>| async move { look(&state) };
            let (index, asked) = (shard.index(), shard.clone());
            async move {
                (
                    index,
                    self.runtime.in_time(patience, asked.call(visit)).await,
                )
            }
        };
        let answers = join_all(self.shards.iter().map(ask)).await;
        let mut glance = Glance::default();
        let mut lanes = Vec::new();
        for (shard, answer) in answers {
            let said = answer.transpose()?;
            if said.is_none() {
                glance.silent.push(shard);
            }
            let said = self.hearsay.keep(shard, said);
            lanes.extend(
                said.pools
                    .into_iter()
                    .map(|(lane, info)| (lane, shard, info)),
            );
            glance.volumes += said.volumes;
            glance.sessions += said.sessions;
        }
        glance.pools = merged(lanes);
        for (_, info) in &mut glance.pools {
            let silent = self.silent_homes(&info.name, &glance.silent);
            if let Some(shard) = silent.first() {
                let why = format!("shard {shard} does not answer: this is what it said last");
                info.failure.get_or_insert(why);
            }
        }
        Ok(glance)
    }

    /// Those among `silent` that lanes of this pool are on.
    pub fn silent_homes(&self, pool: &str, silent: &[usize]) -> Vec<usize> {
        let homes = self.home_map().get(pool).cloned().unwrap_or_default();
        let is_home = |shard: &&usize| homes.contains(shard);
        silent.iter().filter(is_home).copied().collect()
    }

    /// The pools with a lane on this shard, by name.
    pub fn pools_at(&self, shard: usize) -> Vec<String> {
        let homes = self.home_map();
        let at = homes.iter().filter(|(_, homes)| homes.contains(&shard));
        at.map(|(pool, _)| pool.clone()).collect()
    }

    /// The shards that do not answer within `patience`.
    pub async fn silent_shards(&self, patience: Duration) -> Vec<usize> {
        let ask = |shard: &ShardHandle<W>| {
            let (index, asked) = (shard.index(), shard.clone());
            let visit = |_: Rc<ShardState<W>>| async {};
            // One that has stopped says so.
            async move {
                (
                    index,
                    self.runtime
                        .in_time(patience, asked.call(visit))
                        .await
                        .is_none(),
                )
            }
        };
        let answers = join_all(self.shards.iter().map(ask)).await;
        let silent = answers.into_iter().filter(|(_, silent)| *silent);
        silent.map(|(shard, _)| shard).collect()
    }
}
