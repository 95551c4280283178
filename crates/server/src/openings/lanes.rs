//! The lanes of a pool, on the shards of this server, and its drives as they reach them.
//!
//! In which order lanes are opened, created, completed and closed is the array's to say
//! ([`array::pool::opening`](::array::pool::opening)).

use super::pool_plan::PoolPlan;
use crate::shard::{ShardHandle, ShardState};
use ::array::pool::Paces;
use ::array::pool::opening::{Opening, PoolDrive};
use engine::pool::NamedDrive;
use world_real::{OpenDrive, RealDrive, RealWorld};

/// A drive that is open, under its name in the pool.
#[derive(Clone, Debug)]
pub(crate) struct OpenedDrive {
    pub(crate) name: String,
    pub(crate) open: OpenDrive,
}

impl PoolDrive<RealWorld> for OpenedDrive {
    fn name(&self) -> &str {
        &self.name
    }

    fn door(&self, state: &ShardState) -> NamedDrive<RealWorld> {
        NamedDrive {
            name: self.name.clone(),
            drive: RealDrive::of(state.world(), &self.open),
        }
    }
}

/// The lanes of a pool, on the shards that it is to be on, as fast as the settings say.
pub(super) fn of(plan: &PoolPlan, shards: &[ShardHandle]) -> Opening<RealWorld> {
    let homes = plan.shards.iter().map(|index| shards[*index].clone());
    Opening::new(plan.spec.name.clone(), homes.collect()).paced(Paces::of(&plan.spec))
}
