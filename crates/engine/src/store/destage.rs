//! Destaging: which log entries go in place, and when.
//!
//! The destager keeps a **window** of stripes on their way. Each stripe takes its own steps: it is
//! planned, its intent becomes durable, it is written, its drives are flushed, and its entries are
//! settled. So no stripe waits for the slowest drive of another one. Intents that wait at the same
//! time share an entry of the intent log, and flushes of a drive serve all who wait for it.
//!
//! Stripes enter the window in **sweeps**: the oldest ones, in the order in which they lie on the
//! drives, so that an arm passes over its disk instead of jumping about.
//!
//! The window ([`super::window`]) is small while little waits in the log: host reads find the drives
//! free. It grows with what waits, and is whole before writes wait (see [`super::admission`]). It gets
//! smaller again the more sums are to be written, so that these keep up and nobody stops for them.
//!
//! Invariants:
//! - A sweep takes the oldest stripes, and ends before the next one begins: entries go in place in
//!   about the order in which they came.
//! - A stripe in the window is locked.
//! - An entry is settled only when it is durable in place.

use super::Store;
use super::address::ZoneAddress;
use super::plan::Job;
use crate::error::PoolError;
use crate::world::World;
use futures_util::future::select;
use std::collections::VecDeque;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// Once so many parts of the log, of so many, wait to go in place, young entries go, too.
const FILLING_LOG_PARTS: (u64, u64) = (1, 2);

/// The same, where records of sums take their part of the log: before writes wait there, too.
const FILLING_BESIDE_RECORDS_PARTS: (u64, u64) = (3, 8);

/// The window is whole once so many parts of the log, of so many, wait to go in place.
const WHOLE_WINDOW_LOG_PARTS: (u64, u64) = (5, 8);

/// The same, where records of sums take their part of the log: before writes wait there, too.
const WHOLE_WINDOW_BESIDE_RECORDS_PARTS: (u64, u64) = (7, 16);

/// One in so many of the stripes that wait makes a sweep. Entries that are in place keep their room
/// in the log until the oldest ones of the sweep are: so a sweep is a small part of the log.
const SWEEP_PARTS: usize = 8;

/// Stripes of a sweep, at least and at most.
const SWEEP_MIN: usize = 64;
const SWEEP_MAX: usize = 8192;

/// Stripes of the window at least, however much is to be written beside them.
const WINDOW_MIN: usize = 8;

/// How often the tasks look around without being woken, and how long an entry may
/// lie in an idle log.
pub(super) const TICK: Duration = Duration::from_millis(500);

/// A stripe's place in the window; dropping it calls the destager for the next one.
struct Slot<W: World>(Rc<Store<W>>);

impl<W: World> Slot<W> {
    fn take(store: &Rc<Store<W>>) -> Self {
        store.window.begin();
        Slot(Rc::clone(store))
    }
}

impl<W: World> Drop for Slot<W> {
    fn drop(&mut self) {
        self.0.window.end();
        self.0.destager.set();
    }
}

impl<W: World> Store<W> {
    /// From here on young entries go in place, too.
    pub(super) fn log_is_filling(&self) -> bool {
        let filling = self.log_bytes(FILLING_LOG_PARTS, FILLING_BESIDE_RECORDS_PARTS);
        self.waiting_bytes() > filling || self.log.waits_for_room()
    }

    /// Has at most so many stripes be on their way in place at the same time.
    pub fn set_window_stripes(&self, stripes: Option<usize>) {
        self.window.set_limit(stripes);
    }

    /// Stripes that may be on their way.
    fn window_stripes(&self) -> usize {
        let enough = self.log_bytes(WHOLE_WINDOW_LOG_PARTS, WHOLE_WINDOW_BESIDE_RECORDS_PARTS);
        let drives = self.drives.count();
        let all = self.window.stripes(drives, self.waiting_bytes(), enough);
        if self.window.is_draining() {
            return all;
        }
        // What goes in place changes sums, whose blocks the same drives are to write.
        let (parts, of) = self.integrity.window_share(&self.log);
        if parts < of {
            self.world.reached("window of stripes makes room for sums");
        }
        ((all as u64 * parts / of) as usize).max(WINDOW_MIN.min(all))
    }

    /// The log is to be emptied, however young its entries are.
    fn destages_at_once(&self) -> bool {
        self.window.is_draining() || self.log_is_filling()
    }

    /// Fills the window with stripes that are due.
    fn fill_window(self: &Rc<Self>) {
        let most = self.window_stripes();
        while self.window.under_way() < most {
            let Some(job) = self.next_job() else { return };
            if self.window.under_way() + 1 == most {
                self.world.reached("window of stripes is full");
            }
            let slot = Slot::take(self);
            let store = Rc::clone(self);
            self.world.spawn(async move {
                // The pool has stopped otherwise, and everybody hears of that.
                let _ = store.destage_stripe(job).await;
                drop(slot);
            });
        }
    }

    /// Puts the entries of one stripe in place.
    async fn destage_stripe(self: &Rc<Self>, job: Job<W>) -> Result<(), PoolError> {
        // Its future is large, and in a box it is moved about only once.
        let change = Box::pin(self.plan(&job)).await;
        let early = self.world.planted("log entry let go before it is in place");
        match early {
            true => {
                self.settle(job);
                self.put_in_place(&change).await
            }
            false => {
                self.put_in_place(&change).await?;
                self.settle(job);
                Ok(())
            }
        }
    }

    /// The entries of a job are in place: the keeper may let go of them.
    fn settle(&self, job: Job<W>) {
        let now = self.world.now();
        let settled = self.index.borrow_mut().settle(job.stripe, job.entries, now);
        self.exchange(settled.len());
        self.admit_next();
        self.settled.borrow_mut().extend(settled);
        self.keeper.set();
    }

    /// The next stripe that nobody else has, locked. Those that somebody has stay in the sweep, as
    /// its last ones.
    fn next_job(&self) -> Option<Job<W>> {
        let mut busy = Vec::new();
        let job = loop {
            let Some(stripe) = self.window.next(|| self.new_sweep()) else {
                break None;
            };
            let Some(alone) = self.locks.try_lock(stripe) else {
                if self.destages_at_once() {
                    // Writes may wait for the room that it has in the log.
                    self.locks.want(stripe);
                }
                busy.push(stripe);
                continue;
            };
            self.index.borrow_mut().begin(stripe);
            let entries = self.index.borrow().snapshot(stripe);
            let zone = self.drives.zone(stripe.zone);
            if let Some(zone) = zone.filter(|_| !entries.is_empty()) {
                break Some(Job {
                    zone,
                    stripe,
                    entries,
                    _alone: alone,
                });
            }
        };
        if !busy.is_empty() {
            self.world.reached("stripe of a sweep is busy");
        }
        self.window.put_off(busy);
        job
    }

    /// The oldest stripes that are due, in the order in which they lie on the drives.
    fn new_sweep(&self) -> VecDeque<super::StripeRef> {
        // What came in just now may become a whole stripe yet.
        let now = self.world.now();
        let at_once = self.destages_at_once();
        let is_due = |since| at_once || now.since(since) >= TICK;
        let mut index = self.index.borrow_mut();
        let most = (index.stripes() / SWEEP_PARTS).clamp(SWEEP_MIN, SWEEP_MAX);
        let mut stripes = index.take_oldest(most, is_due);
        drop(index);
        // Groups have drives of their own: their zones are passed over side by side.
        stripes.sort_by_cached_key(|stripe| {
            let zone = self.drives.zone(stripe.zone);
            (zone.map(|zone| zone.on_drive(*stripe, 0)), *stripe)
        });
        stripes.into()
    }
}

/// The destager: ends with the store, or when the pool stops.
pub(super) async fn destage<W: World>(world: W, store: Weak<Store<W>>) {
    loop {
        let Some(store) = store.upgrade() else { return };
        store.admit_next();
        if store.check().is_err() || store.ended.get() {
            return;
        }
        store.fill_window();
        select(pin!(store.destager.wait()), pin!(world.sleep(TICK))).await;
    }
}
