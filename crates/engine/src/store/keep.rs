//! Keeping the logs short: sums of what is in place are made durable, and then the logs let go of it.
//!
//! Pools with disks make sums durable as records in the data log ([`crate::integrity`], `record`).
//! Another task writes their blocks meanwhile, a part at a time: the logs do not wait for the arms.
//! Who drains the log writes all blocks by itself.
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
use std::fmt::Display;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// A log is short of room once so many parts of it, of so many, are in use. Late: the more is in
/// place by then, the more of it shares a block of sums.
const SHORT_PARTS: (u64, u64) = (3, 4);

/// The same, where records are made: what takes time on busy disks is done before writes wait for
/// room.
const SHORT_BESIDE_RECORDS_PARTS: (u64, u64) = (1, 2);

/// Where records are made, a log that is short of room is let go of each time one in so many parts of
/// it has been put in place.
const TRIM_PARTS: u64 = 16;

impl<W: World> Store<W> {
    /// Starts the tasks; they end with the store, or when the pool stops.
    pub fn start(self: &Rc<Self>) {
        let world = self.world.clone();
        world.spawn(destage(world.clone(), Rc::downgrade(self)));
        world.spawn(keep(world.clone(), Rc::downgrade(self)));
    }

    /// Ends the tasks: nobody uses the store any more.
    pub fn end(&self) {
        self.ended.set(true);
        self.destager.set();
        self.keeper.set();
    }

    fn wants_trim(&self) -> bool {
        self.window.is_draining()
            || (self.integrity.wants_flush() && !self.integrity.keeps_records())
            || self.log_wants_trim()
            || is_short(&self.intents, SHORT_PARTS)
    }

    fn log_wants_trim(&self) -> bool {
        if !self.integrity.keeps_records() {
            return is_short(&self.log, SHORT_PARTS);
        }
        let all = self.log.capacity_bytes();
        let settled = self.settled.borrow().len();
        self.log.waits_for_room()
            || (self.log_wants_room() && self.bytes_of(settled) * TRIM_PARTS > all)
    }

    /// Whether records that lie at the log's tail are to be made anew, so that it can move.
    fn log_wants_room(&self) -> bool {
        is_short(&self.log, SHORT_BESIDE_RECORDS_PARTS)
    }

    /// Calls the keeper when `ring` is short of room.
    pub(super) fn see_to_room(&self, ring: &Ring<W>) {
        if is_short(ring, SHORT_PARTS) {
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
        if !self.integrity.keeps_records() {
            return self.let_go(flush).await;
        }
        // That takes long, and the keeper lets go of entries meanwhile.
        flush()
            .await
            .map_err(|error| self.stop(cant_write(error)))?;
        self.relieve().await
    }

    /// Reads all copies of a zone's sums again and puts stale ones right, but for blocks that are in
    /// use now.
    ///
    /// # Errors
    /// When the pool has stopped, or stops now.
    pub(crate) async fn scrub_sums(&self, zone: u32) -> Result<(), PoolError> {
        if self.integrity.keeps_records() {
            let flushed = self.integrity.flush_zone(zone).await;
            flushed.map_err(|error| self.stop(cant_write(error)))?;
        }
        self.integrity.scrub_zone(zone).await;
        Ok(())
    }

    /// Makes the sums of everything that is in place durable, in their blocks or in the log, and
    /// lets it go in the logs.
    pub(super) async fn relieve(&self) -> Result<(), PoolError> {
        let make_durable = async || {
            let wants_room = self.log_wants_room();
            let head_bytes = self.integrity.record(&self.log, wants_room).await?;
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
            durable.map_err(|error| self.stop(cant_write(error)))?;
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

    /// Whether the log has entries that a block may have let go of when it was written.
    fn may_let_go_of_records(&self) -> bool {
        self.integrity.keeps_records() && self.log.used_bytes() > 0
    }

    /// Has blocks of sums be written beside the logs' work: where records of them take much of the
    /// log, until they do not, and a part at rest.
    fn write_sums(self: &Rc<Self>, is_idle: bool) {
        let may_rest = !(is_idle && self.integrity.has_unflushed());
        if !self.integrity.keeps_records()
            || self.writes_sums.get()
            || (may_rest && !self.integrity.wants_part(&self.log))
        {
            return;
        }
        self.writes_sums.set(true);
        let store = Rc::clone(self);
        self.world.spawn(async move {
            let mut is_idle = !may_rest;
            while is_idle || store.integrity.wants_part(&store.log) {
                if store.check().is_err() || store.ended.get() {
                    break;
                }
                if let Err(error) = store.integrity.write_part(is_idle).await {
                    // Everybody hears of that.
                    let _ = store.stop(cant_write(error));
                    break;
                }
                is_idle = false;
            }
            store.writes_sums.set(false);
            store.keeper.set();
        });
    }

    /// Ends when all that was in the log at the call is in place and both logs are
    /// trimmed, or the pool has stopped.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub async fn drain(&self) -> Result<(), PoolError> {
        let _draining = self.window.drain();
        self.drain_now().await
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

fn cant_write(error: impl Display) -> String {
    format!("the checksums can't be written: {error}")
}

/// Whether a log is to be let go as far as may be.
fn is_short<W: World>(ring: &Ring<W>, (parts, of): (u64, u64)) -> bool {
    ring.waits_for_room() || ring.used_bytes() * of > ring.capacity_bytes() * parts
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
        let something = !store.settled.borrow().is_empty()
            || store.integrity.has_unflushed()
            || store.may_let_go_of_records()
            || store.log.waits_for_room()
            || store.intents.waits_for_room();
        store.write_sums(idle);
        if something && (idle || store.wants_trim()) {
            let before = store.log.ends();
            if store.relieve().await.is_err() {
                return;
            }
            // What has moved nothing would not the next time, and others would not get to work.
            let has_moved = store.log.ends() != before;
            if has_moved && store.log.waits_for_room() && store.integrity.keeps_tail(&store.log) {
                continue;
            }
        }
        let (waited, ticked) = (pin!(store.keeper.wait()), pin!(world.sleep(TICK)));
        idle = matches!(select(waited, ticked).await, Either::Right(_));
    }
}
