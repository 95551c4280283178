//! Pools over all shards, and what is done to their lanes.

use super::{ArrayError, ControlPlane, PlacedVolume, hearsay};
use crate::pool::{Pool, Waiter};
use crate::shard::{ShardHandle, ShardState};
use engine::pool::PoolInfo;
use engine::{Lane, World};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

impl<W: World> ControlPlane<W> {
    /// The pools, by name, each with the shard it is homed on.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn pools(&self) -> Result<Vec<(usize, PoolInfo)>, ArrayError> {
        Ok(hearsay::merged(self.lanes().await?))
    }

    /// The lanes of all pools, each with its number and its shard.
    pub async fn lanes(&self) -> Result<Vec<(u16, usize, PoolInfo)>, ArrayError> {
        let mut lanes = Vec::new();
        for shard in &self.shards {
            let visit = |state: Rc<ShardState<W>>| async move { hearsay::lanes_on(&state) };
            let infos: Vec<(u16, PoolInfo)> = shard.call(visit).await?;
            let here = |(lane, info)| (lane, shard.index(), info);
            lanes.extend(infos.into_iter().map(here));
        }
        Ok(lanes)
    }

    /// The pool called `name`.
    ///
    /// # Errors
    /// There is none, or its shard has stopped.
    pub async fn pool(&self, name: &str) -> Result<(usize, PoolInfo), ArrayError> {
        let mut pools = self.pools().await?.into_iter();
        let found = pools.find(|(_, info)| info.name == name);
        found.ok_or_else(|| self.no_such_pool(name))
    }

    /// The shards that the lanes of the pool called `name` are on.
    pub fn homes(&self, pool: &str) -> Result<Vec<ShardHandle<W>>, ArrayError> {
        if self.is_closed(pool) {
            return Err(self.no_such_pool(pool));
        }
        self.turns.check_pool(pool)?;
        let homes = self.home_map().get(pool).cloned();
        let homes = homes.ok_or_else(|| self.no_such_pool(pool))?;
        let shard = |index: &usize| self.shards[*index].clone();
        Ok(homes.iter().map(shard).collect())
    }

    /// The shard that a volume is on.
    pub fn home_of(&self, volume: &PlacedVolume) -> Result<ShardHandle<W>, ArrayError> {
        let homes = self.homes(&volume.pool)?;
        let home = homes.get(usize::from(volume.lane));
        let home = home.ok_or_else(|| ArrayError::no_pool(&volume.pool))?;
        Ok(home.clone())
    }

    /// The open pool called `name`, over its lanes.
    ///
    /// # Errors
    /// There is none, it is not open, or another change waits for it.
    pub fn pool_of(&self, name: &str) -> Result<Pool<W>, ArrayError> {
        let waiter: Arc<dyn Waiter> = Arc::new(self.turns.clone());
        Ok(Pool::new(name.to_owned(), self.homes(name)?, waiter))
    }

    /// Begins or ends a scrub.
    ///
    /// # Errors
    /// No such pool, or it has stopped.
    pub async fn scrub(&self, pool: &str, wanted: bool) -> Result<(), ArrayError> {
        self.pool_of(pool)?.scrub(wanted).await
    }

    /// Does something to a lane of a pool, on its shard.
    pub async fn with_lane<T, F, Fut>(
        &self,
        pool: &str,
        lane: u16,
        visit: F,
    ) -> Result<T, ArrayError>
    where
        T: Send + 'static,
        F: FnOnce(Rc<ShardState<W>>, Lane<W>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ArrayError>> + 'static,
    {
        self.pool_of(pool)?.visit(lane, visit).await
    }
}
