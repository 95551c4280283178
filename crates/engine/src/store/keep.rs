//! Keeping the logs short: sums of what is in place are flushed, and then the logs let go of it.
//!
//! The keeper is a task of its own, because stripes on their way in place may wait for room in the
//! intent log, which the keeper makes.

use super::Store;
use super::destage::{TICK, destage};
use crate::error::PoolError;
use crate::ring::Ring;
use crate::world::World;
use futures_util::future::{Either, join, select};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;

impl<W: World> Store<W> {
    /// Starts both tasks; they end with the store, or when the pool stops.
    pub fn start(self: &Rc<Self>) {
        let world = self.world.clone();
        world.spawn(destage(world.clone(), Rc::downgrade(self)));
        world.spawn(keep(world.clone(), Rc::downgrade(self)));
    }

    /// Ends both tasks: nobody uses the store any more.
    pub fn end(&self) {
        self.ended.set(true);
        self.destager.set();
        self.keeper.set();
    }

    fn wants_trim(&self) -> bool {
        self.draining.get() > 0
            || self.integrity.wants_flush()
            || is_short(&self.log)
            || is_short(&self.intents)
    }

    /// Calls the keeper when `ring` is short of room.
    pub(super) fn see_to_room(&self, ring: &Ring<W>) {
        if is_short(ring) {
            self.keeper.set();
        }
    }

    /// Makes the sums of everything that is in place durable, and lets it go in the
    /// logs.
    pub(crate) async fn trim(&self) -> Result<(), PoolError> {
        let settled = self.settled.take();
        if !self
            .world
            .planted("log trimmed before the sums are flushed")
        {
            let flushed = self.integrity.flush().await;
            flushed
                .map_err(|error| self.stop(format!("the checksums can't be written: {error}")))?;
        }
        drop(settled);
        let (log, intents) = join(self.log.trim(), self.intents.trim()).await;
        log.and(intents)
            .map_err(|error| self.stop(format!("the log can't be trimmed: {error}")))?;
        let tail = self.log.tail_stamp();
        self.freed.borrow_mut().forget_before(tail);
        let tail = self.intents.tail_stamp();
        self.last_intents
            .borrow_mut()
            .retain(|_, stamp| *stamp >= tail);
        Ok(())
    }

    /// Ends when all that was in the log at the call is in place and both logs are
    /// trimmed, or the pool has stopped.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub async fn drain(&self) -> Result<(), PoolError> {
        self.draining.set(self.draining.get() + 1);
        let drained = self.drain_now().await;
        self.draining.set(self.draining.get() - 1);
        drained
    }

    async fn drain_now(&self) -> Result<(), PoolError> {
        while self.blocks_logged() > 0 {
            self.check()?;
            self.destager.set();
            self.world.sleep(Duration::from_millis(1)).await;
        }
        self.trim().await
    }
}

/// Whether a log is to be let go as far as may be. Late: the more is in place by then,
/// the more of it shares a block of sums.
fn is_short<W: World>(ring: &Ring<W>) -> bool {
    ring.waits_for_room() || ring.used_bytes() * 4 > ring.capacity_bytes() * 3
}

async fn keep<W: World>(world: W, store: Weak<Store<W>>) {
    let mut idle = false;
    loop {
        let Some(store) = store.upgrade() else { return };
        if store.check().is_err() || store.ended.get() {
            return;
        }
        // A copy of sums that is put right was told of: it does not wait for writes.
        let something = !store.settled.borrow().is_empty() || store.integrity.has_unflushed();
        if something && (idle || store.wants_trim()) && store.trim().await.is_err() {
            return;
        }
        let (waited, ticked) = (pin!(store.keeper.wait()), pin!(world.sleep(TICK)));
        idle = matches!(select(waited, ticked).await, Either::Right(_));
    }
}
