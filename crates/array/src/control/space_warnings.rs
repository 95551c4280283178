//! Warns initiators of thin volumes that their pool runs out of space.
//!
//! Invariants:
//! - Each crossing of the threshold is told once for each volume.
//! - A shard that is silent when its pool crosses is owed the warning: its volumes come when it
//!   answers. Nothing piles up for it until then.

use super::volumes::volumes_on;
use super::{ArrayError, ControlPlane};
use crate::shard::ShardState;
use engine::{Provisioning, World};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What initiators were told.
#[derive(Debug, Default)]
pub struct SentWarnings {
    /// By pool, how often it had crossed its threshold by the last look.
    warnings: BTreeMap<String, u64>,
    /// By shard, the pools whose volumes there are still to be told of.
    owed: BTreeMap<usize, BTreeSet<String>>,
}

impl SentWarnings {
    /// A pool has crossed its threshold so often by now. Whether it has again since the last look;
    /// a pool that is made or opened again counts from zero.
    fn note(&mut self, pool: &str, warnings: u64) -> bool {
        let before = self.warnings.insert(pool.to_owned(), warnings);
        before.unwrap_or(0) < warnings
    }

    /// Shards are owed the warning of a pool.
    fn owe(&mut self, pool: &str, shards: impl Iterator<Item = usize>) {
        for shard in shards {
            self.owed.entry(shard).or_default().insert(pool.to_owned());
        }
    }

    /// Pools that a shard is owed the warning of.
    pub fn owed_to(&self, shard: usize) -> usize {
        self.owed.get(&shard).map_or(0, BTreeSet::len)
    }
}

impl<W: World> ControlPlane<W> {
    /// Tells the initiators of thin volumes whose pool has come to be above its soft threshold
    /// since the last look at `told`. How many volumes that are.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn warn_initiators(&self, told: &mut SentWarnings) -> Result<usize, ArrayError> {
        self.note_crossings(told).await?;
        if told.owed.is_empty() {
            return Ok(0);
        }
        let owed: BTreeSet<usize> = told.owed.keys().copied().collect();
        let visit = |shard| {
            let is_owed = owed.contains(&shard);
            move |state: Rc<ShardState<W>>| async move { is_owed.then(|| volumes_on(&state)) }
        };
        let mut thin = BTreeSet::new();
        for (shard, said) in self.ask_all(false, visit).await? {
            let Some(volumes) = said.flatten() else {
                continue;
            };
            let low = told.owed.remove(&shard).unwrap_or_default();
            let of_low = volumes.into_iter().filter(|one| low.contains(&one.pool));
            let of_low = of_low.filter(|one| one.info.provisioning == Provisioning::Thin);
            thin.extend(of_low.map(|volume| volume.info.uuid));
        }
        if !thin.is_empty() {
            for shard in &self.shards {
                let thin = thin.clone();
                let tell =
                    move |state: Rc<ShardState<W>>| async move { state.space_runs_out(&thin) };
                // A silent one tells its initiators later.
                shard.post(tell)?;
            }
        }
        Ok(thin.len())
    }

    /// Notes the pools that have crossed their threshold since the last look.
    ///
    /// # Errors
    /// A shard has stopped.
    async fn note_crossings(&self, told: &mut SentWarnings) -> Result<(), ArrayError> {
        let visit = |_| {
            |state: Rc<ShardState<W>>| async move {
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
                if told.note(&pool, warnings) {
                    // One that is gone by now has no volumes.
                    let homes = self.homes(&pool).unwrap_or_default();
                    told.owe(&pool, homes.iter().map(|shard| shard.index()));
                }
            }
        }
        Ok(())
    }
}
