//! Changes how volumes take space, and warns initiators when space runs out.

use super::volumes::volumes_on;
use super::{Array, ArrayError, PlacedVolume};
use crate::shard::ShardState;
use engine::pool::{Holdings, VolumeChange};
use engine::{Pool, Provisioning};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use world::real::RealWorld;

impl Array {
    /// Changes how the volume called `name` takes space, and tells its initiators.
    ///
    /// # Errors
    /// No such volume, or what the pool says.
    pub async fn convert_volume(
        self: &Arc<Self>,
        name: String,
        change: VolumeChange,
    ) -> Result<PlacedVolume, ArrayError> {
        self.change(move |array| async move {
            let there = array.volume(&name).await?;
            let visit = move |_, pool: Pool<RealWorld>| async move {
                Ok(pool.change_volume(&name, change).await?)
            };
            let info = array.with_lane(&there.pool, there.lane, visit).await?;
            let (uuid, provisioning) = (info.uuid, info.provisioning);
            if provisioning != there.info.provisioning {
                // Its target may be on any shard.
                for shard in &array.shards {
                    let told = move |state: Rc<ShardState>| async move {
                        state.volume_converted(uuid, provisioning);
                    };
                    shard.call(told).await?;
                }
            }
            Ok(PlacedVolume { info, ..there })
        })
        .await
    }

    /// What the volume called `name` holds alone and what it shares.
    ///
    /// # Errors
    /// No such volume, or a shard has stopped.
    pub async fn holdings(&self, name: &str) -> Result<Holdings, ArrayError> {
        let there = self.volume(name).await?;
        let name = name.to_owned();
        let visit = move |_, pool: Pool<RealWorld>| async move { Ok(pool.holdings(&name).await?) };
        self.with_lane(&there.pool, there.lane, visit).await
    }

    /// The pools that have come to be above their soft threshold since `told`, and how often they have.
    ///
    /// # Errors
    /// A shard has stopped.
    async fn newly_low(
        &self,
        told: &BTreeMap<String, u64>,
    ) -> Result<BTreeMap<String, u64>, ArrayError> {
        let mut low = BTreeMap::new();
        let visit = |_| {
            |state: Rc<ShardState>| async move {
                let mut pools = state.pools();
                pools.retain(|pool| pool.lane() == 0);
                let said = pools
                    .iter()
                    .map(|pool| (pool.name().to_owned(), pool.fullness().warnings));
                said.collect::<Vec<_>>()
            }
        };
        for (_, said) in self.ask_all(false, visit).await? {
            for (pool, warnings) in said.into_iter().flatten() {
                if told.get(&pool).copied().unwrap_or(0) < warnings {
                    low.insert(pool, warnings);
                }
            }
        }
        Ok(low)
    }

    /// Tells the initiators of thin volumes whose pool has come to be above its soft
    /// threshold since `told`.
    ///
    /// # Errors
    /// A shard has stopped.
    pub(super) async fn warn_initiators(
        &self,
        told: &mut BTreeMap<String, u64>,
    ) -> Result<(), ArrayError> {
        let low = self.newly_low(told).await?;
        if low.is_empty() {
            return Ok(());
        }
        let visit = |_| |state: Rc<ShardState>| async move { volumes_on(&state) };
        let answers = self.ask_all(false, visit).await?;
        // The volumes of a silent shard come with the next look, if their pool has a lane there.
        let silent = answers.iter().filter(|(_, said)| said.is_none());
        let silent: BTreeSet<usize> = silent.map(|(shard, _)| *shard).collect();
        let is_whole = |pool: &String| {
            let homes = self.homes(pool).unwrap_or_default();
            homes.iter().all(|shard| !silent.contains(&shard.index()))
        };
        told.extend(low.clone().into_iter().filter(|(pool, _)| is_whole(pool)));
        let volumes = answers.into_iter().filter_map(|(_, said)| said).flatten();
        let thin = volumes.filter(|volume| {
            low.contains_key(&volume.pool) && volume.info.provisioning == Provisioning::Thin
        });
        let thin: BTreeSet<_> = thin.map(|volume| volume.info.uuid).collect();
        for shard in &self.shards {
            let thin = thin.clone();
            let tell = move |state: Rc<ShardState>| async move { state.space_runs_out(&thin) };
            // A silent one tells its initiators later.
            shard.post(tell)?;
        }
        Ok(())
    }
}
