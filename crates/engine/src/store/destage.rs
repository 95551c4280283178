//! Destaging: when log entries go in place, and when the logs are trimmed.
//!
//! Two tasks: the destager puts stripes in place, oldest first; the keeper flushes
//! the sums of what is in place and lets the logs go. They are two because the
//! destager may wait for room in the intent log, which the keeper makes.

use super::Store;
use super::plan::Job;
use crate::error::PoolError;
use crate::ring::Ring;
use crate::world::World;
use futures_util::future::{Either, join, join_all, select};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// Stripes put in place together.
const STRIPES_AT_ONCE: usize = 64;

/// How often the tasks look around without being woken, and how long an entry may
/// lie in an idle log.
const TICK: Duration = Duration::from_millis(500);

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

    /// Half full: from here on the log is emptied.
    pub(super) fn log_is_filling(&self) -> bool {
        self.log.used_bytes() * 2 > self.log.capacity_bytes()
    }

    fn wants_destage(&self) -> bool {
        let index = self.index.borrow();
        let Some(oldest) = index.oldest() else {
            return false;
        };
        self.draining.get() > 0 || self.world.now().since(oldest) >= TICK || self.log_is_filling()
    }

    /// Puts the oldest stripes of the log in place. False when there were none to be
    /// had.
    async fn destage_some(&self) -> Result<bool, PoolError> {
        let jobs = self.take_jobs();
        if jobs.is_empty() {
            return Ok(false);
        }
        // Their futures are large, and in a box they are moved about only once.
        let plans = jobs
            .iter()
            .map(|job| async move { Box::pin(self.plan(job)).await });
        let changes = join_all(plans).await;
        let settle = |jobs: Vec<Job<W>>| {
            let now = self.world.now();
            let mut settled = Vec::new();
            for job in jobs {
                settled.extend(self.index.borrow_mut().settle(job.stripe, job.entries, now));
            }
            settled
        };
        let settled = match self.world.planted("log entry let go before it is in place") {
            true => {
                let settled = settle(jobs);
                self.make(&changes).await?;
                settled
            }
            false => {
                self.make(&changes).await?;
                settle(jobs)
            }
        };
        self.settled.borrow_mut().extend(settled);
        self.keeper.set();
        Ok(true)
    }

    fn take_jobs(&self) -> Vec<Job<W>> {
        let mut jobs: Vec<Job<W>> = Vec::new();
        let mut busy = Vec::new();
        let at_once = self.draining.get() > 0 || self.log_is_filling();
        let now = self.world.now();
        while jobs.len() < STRIPES_AT_ONCE {
            // What came in just now may become a whole stripe yet.
            let oldest = self.index.borrow().oldest();
            if !at_once && oldest.is_none_or(|oldest| now.since(oldest) < TICK) {
                break;
            }
            let Some(stripe) = self.index.borrow_mut().next() else {
                break;
            };
            let Some(alone) = self.locks.try_lock(stripe) else {
                busy.push(stripe);
                continue;
            };
            let entries = self.index.borrow().snapshot(stripe);
            let Some(zone) = self
                .drives
                .zone(stripe.zone)
                .filter(|_| !entries.is_empty())
            else {
                continue;
            };
            jobs.push(Job {
                zone,
                stripe,
                entries,
                _alone: alone,
            });
        }
        let mut index = self.index.borrow_mut();
        busy.into_iter()
            .for_each(|stripe| index.put_back(stripe, now));
        jobs
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

async fn destage<W: World>(world: W, store: Weak<Store<W>>) {
    loop {
        let Some(store) = store.upgrade() else { return };
        if store.check().is_err() || store.ended.get() {
            return;
        }
        if store.wants_destage() {
            match store.destage_some().await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(_) => return,
            }
        }
        select(pin!(store.destager.wait()), pin!(world.sleep(TICK))).await;
    }
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
