//! A pool over its lanes: what changes in a pool changes in all of them, or in none.
//!
//! A lane is an engine of its own, on a shard of its own ([`engine::Lane`]). A [`Pool`] has them in
//! order, and offers each change of the whole pool as one method. The order of the lanes is decided
//! here and nowhere else, also that in which they are created, opened and closed ([`opening`]). The
//! server and the simulator call the same methods.
//!
//! Invariants:
//! - Every lane is asked before the first one changes. A lane that is asked changes nothing.
//! - The first lane decides: what its labels say, the others do, too, at once or after the next
//!   opening. So it is the first to take something in, and the last to let something go.
//! - What one lane could not take in is taken back in all lanes ([`engine::lane::steps`]).
//! - A lane that had a change before is no failure, as long as some lane has something to change.
//!
//! - [`opening`]: a pool is opened, created and closed.
//! - [`new_drives`]: what a pool has to know of drives that it is to have.
//! - [`paces`]: rates, thresholds and cache.

pub mod distributed_spares;
mod drives;
mod groups;
pub mod new_drives;
pub mod opening;
pub mod paces;
mod purpose;
mod room;
mod taking;
#[cfg(test)]
mod tests;

pub use new_drives::{Holder, NewDrive, NewDrives};
pub use paces::Paces;
pub use room::is_short;

use crate::error::{ArrayError, ArrayErrorKind};
use crate::shard::{ShardGone, ShardHandle, ShardState};
use engine::pool::PoolInfo;
use engine::{Lane, World};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

/// Waits for visits to the lanes of pools.
pub trait Waiter: Send + Sync {
    /// Waits for a visit to a lane of the pool called `pool`, to its end.
    fn wait<'a>(&'a self, pool: &'a str, visit: BoxFuture<'a, ()>) -> BoxFuture<'a, ()>;

    /// As [`World::planted`].
    fn planted(&self, bug: &'static str) -> bool {
        let _ = bug;
        false
    }
}

/// An open pool, reached by the shards of its lanes.
pub struct Pool<W: World> {
    name: String,
    /// The shard of each lane.
    lanes: Vec<ShardHandle<W>>,
    waiter: Arc<dyn Waiter>,
}

impl<W: World> Pool<W> {
    /// The pool called `name`, whose lanes are on these shards, the first lane first.
    pub fn new(name: String, lanes: Vec<ShardHandle<W>>, waiter: Arc<dyn Waiter>) -> Self {
        Pool {
            name,
            lanes,
            waiter,
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many lanes it has.
    pub fn lanes(&self) -> u16 {
        self.lanes.len() as u16
    }

    /// What each lane says of itself, the first lane first.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn lane_infos(&self) -> Result<Vec<PoolInfo>, ArrayError> {
        let mut infos = Vec::new();
        for lane in 0..self.lanes() {
            let visit = |_, lane: Lane<W>| async move { Ok(lane.info()) };
            infos.push(self.visit(lane, visit).await?);
        }
        Ok(infos)
    }

    /// The pool at a glance.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn info(&self) -> Result<PoolInfo, ArrayError> {
        let merged = PoolInfo::of_lanes(self.lane_infos().await?);
        merged.ok_or_else(|| ArrayError::no_pool(&self.name))
    }

    /// Does something to a lane, on its shard.
    ///
    /// # Errors
    /// What `visit` says; there is no such lane, or its shard has stopped.
    pub async fn visit<T, F, Fut>(&self, lane: u16, visit: F) -> Result<T, ArrayError>
    where
        T: Send + 'static,
        F: FnOnce(Rc<ShardState<W>>, Lane<W>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ArrayError>> + 'static,
    {
        let home = self.lanes.get(usize::from(lane));
        let home = home.ok_or_else(|| ArrayError::no_pool(&self.name))?;
        let name = self.name.clone();
        let visit = move |state: Rc<ShardState<W>>| async move {
            match state.lane(&name, lane) {
                Some(lane) => visit(state, lane).await,
                None => Err(ArrayError::no_pool(&name)),
            }
        };
        let mut said = Err(ShardGone(home.index()));
        let call = async { said = home.call(visit).await };
        self.waiter.wait(&self.name, call.boxed()).await;
        said?
    }

    /// Does something to all lanes, the first one first, and gives what the first one said.
    ///
    /// # Errors
    /// What the first lane that fails says; those after it were not visited. Nothing there to be
    /// changed is no failure, but where all lanes say so.
    async fn visit_all<T, F, Fut>(&self, visit: F) -> Result<T, ArrayError>
    where
        T: Send + 'static,
        F: FnOnce(Rc<ShardState<W>>, Lane<W>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<T, ArrayError>> + 'static,
    {
        self.visit_each(0..self.lanes(), visit).await
    }

    /// As [`Pool::visit_all`], the last lane first: for what is taken out of a pool. What a crash
    /// cuts short, the next opening gives back to the lanes after the first.
    async fn visit_backwards<F, Fut>(&self, visit: F) -> Result<(), ArrayError>
    where
        F: FnOnce(Rc<ShardState<W>>, Lane<W>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<(), ArrayError>> + 'static,
    {
        self.visit_each((0..self.lanes()).rev(), visit).await
    }

    async fn visit_each<T, F, Fut>(
        &self,
        lanes: impl Iterator<Item = u16>,
        visit: F,
    ) -> Result<T, ArrayError>
    where
        T: Send + 'static,
        F: FnOnce(Rc<ShardState<W>>, Lane<W>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<T, ArrayError>> + 'static,
    {
        let mut all = Err(ArrayError::no_pool(&self.name));
        let mut was_asked = false;
        for lane in lanes {
            let said = match self.visit(lane, visit.clone()).await {
                // It may have had the change before, and others not yet.
                Err(error) if error.kind == ArrayErrorKind::NotFound => Err(error),
                said => Ok(said?),
            };
            if all.is_err() && (said.is_ok() || !was_asked) {
                all = said;
            }
            was_asked = true;
        }
        all
    }

    /// Asks every lane whether it could make a change, before the first one makes it.
    ///
    /// # Errors
    /// What the first lane that could not says.
    async fn ask<F, Fut>(&self, visit: F) -> Result<(), ArrayError>
    where
        F: FnOnce(Rc<ShardState<W>>, Lane<W>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<(), ArrayError>> + 'static,
    {
        self.visit_each(0..self.lanes_asked(), visit).await
    }

    /// How many lanes are asked before the first one changes.
    fn lanes_asked(&self) -> u16 {
        match self.waiter.planted("lanes change before all are asked") {
            true => 1,
            false => self.lanes(),
        }
    }

    /// Begins or ends a scrub.
    ///
    /// # Errors
    /// A lane has stopped: no lane begins.
    pub async fn scrub(&self, wanted: bool) -> Result<(), ArrayError> {
        if wanted {
            let check = |_, lane: Lane<W>| async move { Ok(lane.check_start_scrub()?) };
            self.ask(check).await?;
        }
        let visit = move |_, lane: Lane<W>| async move {
            match wanted {
                true => lane.start_scrub()?,
                false => lane.stop_scrub(),
            }
            Ok(())
        };
        self.visit_all(visit).await
    }

    /// Has pages that lie over others become whole, and what they lie over be free.
    ///
    /// # Errors
    /// As the first lane that fails.
    pub async fn free_backings(&self) -> Result<(), ArrayError> {
        let visit = |_, lane: Lane<W>| async move { Ok(lane.free_backings().await?) };
        self.visit_all(visit).await
    }
}

/// Nothing there to be changed is no failure.
fn is_settled(changed: Result<(), ArrayError>) -> Result<(), ArrayError> {
    match changed {
        Err(error) if error.kind == ArrayErrorKind::NotFound => Ok(()),
        changed => changed,
    }
}
