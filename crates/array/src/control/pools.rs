//! Pools over all shards, and what is done to their lanes.

use super::{ArrayError, ArrayErrorKind, ControlPlane, PlacedVolume, hearsay};
use crate::shard::{ShardHandle, ShardState};
use engine::pool::PoolInfo;
use engine::{Lane, World};
use std::future::Future;
use std::rc::Rc;

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
        let homes = self.homes(pool)?;
        let home = homes.get(usize::from(lane));
        let home = home.ok_or_else(|| ArrayError::no_pool(pool))?;
        let name = pool.to_owned();
        let visit = move |state: Rc<ShardState<W>>| async move {
            match state.lane(&name, lane) {
                Some(pool) => visit(state, pool).await,
                None => Err(ArrayError::no_pool(&name)),
            }
        };
        self.turns.wait(pool, home.call(visit)).await?
    }

    /// Does something to all lanes of a pool, the first one first, and gives what the
    /// first one said.
    ///
    /// # Errors
    /// What the first lane that fails says; those after it were not asked. In a lane
    /// after the first, nothing there to be changed is no failure: the lane has had the
    /// change before.
    pub async fn with_pool<T, F, Fut>(&self, pool: &str, visit: F) -> Result<T, ArrayError>
    where
        T: Send + 'static,
        F: FnOnce(Rc<ShardState<W>>, Lane<W>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<T, ArrayError>> + 'static,
    {
        let said = self.with_lane(pool, 0, visit.clone()).await;
        let lanes = self.homes(pool)?.len() as u16;
        let mut first = match said {
            // The first lane may have had it before, and others not yet.
            Err(error) if lanes > 1 && error.kind == ArrayErrorKind::NotFound => Err(error),
            said => Ok(said?),
        };
        for lane in 1..lanes {
            match self.with_lane(pool, lane, visit.clone()).await {
                Err(error) if error.kind == ArrayErrorKind::NotFound => {}
                said => first = first.or(Ok(said?)),
            }
        }
        first
    }

    /// As [`ControlPlane::with_pool`], the last lane first: for what is taken out of a pool. What a
    /// crash cuts short, the next opening gives back to the lanes after the first.
    pub async fn with_pool_backwards<F, Fut>(&self, pool: &str, visit: F) -> Result<(), ArrayError>
    where
        F: FnOnce(Rc<ShardState<W>>, Lane<W>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<(), ArrayError>> + 'static,
    {
        let lanes = self.homes(pool)?.len() as u16;
        let mut found = Err(ArrayError::no_pool(pool));
        for lane in (0..lanes).rev() {
            found = match (self.with_lane(pool, lane, visit.clone()).await, found) {
                (Err(error), before) if error.kind == ArrayErrorKind::NotFound => {
                    before.or(Err(error))
                }
                (said, _) => Ok(said?),
            };
        }
        found
    }
}
