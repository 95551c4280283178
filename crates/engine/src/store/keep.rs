//! Keeping the logs short: sums of what is in place are made durable, and then the logs let go of it.
//!
//! While the pool is busy, most sums become durable as records in the data log, and a part of them in
//! their blocks ([`crate::integrity`], `record`). Who drains the log writes all blocks by itself.
//!
//! The keeper is a task of its own, because stripes on their way in place may wait for room in the
//! intent log, which the keeper makes.

use super::Store;
use super::destage::{TICK, destage};
use crate::error::PoolError;
use crate::integrity::RecordError;
use crate::ring::Ring;
use crate::world::World;
use futures_util::future::{Either, join, select};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// The log is let go of once one in so many parts of it is in place, or is all that is left of it.
const TRIM_PARTS: u64 = 16;

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
            || (is_short(&self.log) && self.would_trim_enough())
            || is_short(&self.intents)
    }

    /// Whether enough of the log is in place that it pays to let go of it, or the log is nearly full.
    /// Where no records are made, blocks are written, and that takes its time.
    fn would_trim_enough(&self) -> bool {
        let (used, all) = (self.log.used_bytes(), self.log.capacity_bytes());
        let in_place = used.saturating_sub(self.waiting_bytes());
        !self.integrity.keeps_records()
            || self.log.waits_for_room()
            || used > all - all / TRIM_PARTS
            || in_place > all / TRIM_PARTS
    }

    /// Calls the keeper when `ring` is short of room.
    pub(super) fn see_to_room(&self, ring: &Ring<W>) {
        if is_short(ring) {
            self.keeper.set();
        }
    }

    /// Makes the sums of everything that is in place durable in their blocks, and lets it go in the
    /// logs.
    ///
    /// # Errors
    /// When the pool has stopped, or stops now.
    pub(crate) async fn trim(&self) -> Result<(), PoolError> {
        let flush = async || self.integrity.flush().await.map_err(RecordError::Drive);
        self.let_go(flush).await
    }

    /// Makes the sums of everything that is in place durable, in their blocks or in the log, and
    /// lets it go in the logs.
    pub(super) async fn relieve(&self, is_idle: bool) -> Result<(), PoolError> {
        let make_durable = async || {
            self.integrity.flush_due(&self.log, is_idle).await?;
            let is_short = is_short(&self.log);
            let head_bytes = self.integrity.record(&self.log, is_short).await?;
            self.note_logged_sums(head_bytes);
            Ok(())
        };
        self.let_go(make_durable).await
    }

    /// Lets go in the logs of everything that is in place, once its sums are made durable.
    async fn let_go(
        &self,
        make_durable: impl AsyncFnOnce() -> Result<(), RecordError>,
    ) -> Result<(), PoolError> {
        let mut settled = self.settled.take();
        if !self
            .world
            .planted("log trimmed before the sums are flushed")
        {
            let durable = make_durable().await;
            durable
                .map_err(|error| self.stop(format!("the checksums can't be written: {error}")))?;
        }
        if self.world.planted("sums settled after their records") {
            settled.append(&mut self.settled.borrow_mut());
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
        self.trim().await?;
        // The keeper may be about to let go of some of it.
        let stamp = self.log.last_stamp();
        self.let_go_up_to(stamp, &[&self.log, &self.intents]).await
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
        store.integrity.choose_records(&store.log);
        // A copy of sums that is put right was told of: it does not wait for writes.
        let something = !store.settled.borrow().is_empty() || store.integrity.has_unflushed();
        if something && (idle || store.wants_trim()) {
            if store.relieve(idle).await.is_err() {
                return;
            }
            if store.log.waits_for_room() && store.integrity.keeps_tail(&store.log) {
                continue;
            }
        }
        let (waited, ticked) = (pin!(store.keeper.wait()), pin!(world.sleep(TICK)));
        idle = matches!(select(waited, ticked).await, Either::Right(_));
    }
}
