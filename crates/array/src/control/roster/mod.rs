//! The roster of all drives that pools have, and of those that failed.
//!
//! The array remembers a failed drive after a spare has its place: where it was, its serial number,
//! and the reason.
//!
//! A pool's labels forget a drive when another has its place. So the array keeps a roster, and
//! compares: whoever was in a place that another has by now has failed, however that came about.
//!
//! Invariants:
//! - A failed drive is told of until another drive takes its name, somebody replaces or removes
//!   it, or its group has left.
//! - The roster is only told of. No pool is opened, and no drive is used, because of it; nor does
//!   a start fail.
//! - Changes happen one at a time, each from what it looks at to the record. The record comes
//!   first: what can't be kept has not changed. A write that failed may have changed the record all
//!   the same, so it is written again.
//!
//! - `known`: a drive of the roster; `following`: what becomes of it as its pool changes; `noting`:
//!   when the array looks; `forgetting`: who may remove a failed drive.

mod following;
mod forgetting;
mod known;
mod noting;

pub use known::{Failure, KnownDrive};

use super::line::{Line, LinePlace};
use super::{ArrayError, ArrayErrorKind, PoolEvent, Runtime};
use crate::calendar::utc;
use crate::records::Store;
use engine::pool::PoolInfo;
use following::{followed, is_it, members, untold};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kinds of events after which drives may be others, or in other states.
const KINDS: [&str; 6] = [
    "drive_failed",
    "drive_missing",
    "drive_back",
    "spare_taken",
    "rebuild",
    "group",
];

/// Which drives there are, and where that is kept.
pub struct Roster {
    known: Arc<Mutex<Vec<KnownDrive>>>,
    record: Arc<dyn Store<Vec<KnownDrive>>>,
    /// At its head stands a change.
    changing: Arc<Line>,
    /// Something has changed that no event tells of.
    is_due: AtomicBool,
    /// A write has failed: the record may say what it was to say, or what it said before.
    is_stale: Arc<AtomicBool>,
}

impl Roster {
    /// The roster of these drives, which are on `record`.
    pub fn new(known: Vec<KnownDrive>, record: Arc<dyn Store<Vec<KnownDrive>>>) -> Self {
        Roster {
            known: Arc::new(Mutex::new(known)),
            record,
            changing: Arc::default(),
            is_due: AtomicBool::new(true),
            is_stale: Arc::default(),
        }
    }

    /// The drives that are out of use, by identity; why, to be read after the drive's name.
    pub fn failed(&self) -> BTreeMap<String, String> {
        let known = self.known();
        let failed = known.iter().filter_map(|drive| {
            let failure = drive.failure.as_ref()?;
            let why = format!("is out of use since {}", utc(failure.since_unix_s));
            Some((drive.uuid.clone(), why))
        });
        failed.collect()
    }

    /// All drives that are known.
    pub fn drives(&self) -> Vec<KnownDrive> {
        self.known().clone()
    }

    /// The failed drives of a pool that have no place in it any more.
    fn departed_failures(&self, info: &PoolInfo, now_unix_s: u64) -> Vec<KnownDrive> {
        let known = self.drives();
        let mut followed = followed(&known, info, |_| untold(now_unix_s));
        let has_no_place = |drive: &KnownDrive| !members(info).any(|one| is_it(drive, one));
        followed.retain(|drive| drive.failure.is_some() && has_no_place(drive));
        followed
    }

    /// The roster as an array begins with it.
    pub(super) fn begun(self, runtime: &dyn Runtime) -> Self {
        if runtime.planted("failed drives are forgotten at a start") {
            self.known().retain(|drive| drive.failure.is_none());
            self.is_stale.store(true, Ordering::Relaxed);
        }
        self
    }

    fn known(&self) -> MutexGuard<'_, Vec<KnownDrive>> {
        lock(&self.known)
    }

    /// Waits until no other change is under way.
    async fn turn(&self) -> LinePlace {
        self.changing.stand().await
    }

    /// Has the next look at events compare, too.
    pub(super) fn look_again(&self) {
        self.is_due.store(true, Ordering::Relaxed);
    }

    /// Whether to compare after these events.
    pub(super) fn is_due(&self, events: &[PoolEvent]) -> bool {
        let tells = |event: &PoolEvent| KINDS.contains(&event.kind.as_str());
        self.is_due.swap(false, Ordering::Relaxed) || events.iter().any(tells)
    }

    /// Changes what is known, durably. The turn lasts until the record is written, also when
    /// nobody waits for that any more.
    async fn keep(
        &self,
        runtime: &dyn Runtime,
        turn: LinePlace,
        change: impl FnOnce(&mut Vec<KnownDrive>),
    ) -> Result<(), ArrayError> {
        let before = self.drives();
        let mut after = before.clone();
        change(&mut after);
        let is_stale = self.is_stale.load(Ordering::Relaxed);
        if after == before && !is_stale {
            return Ok(());
        }
        let (kept, known) = (self.record.keep(after.clone()), Arc::clone(&self.known));
        let counts_at_once = runtime.planted("roster counts before it is kept");
        if counts_at_once {
            *lock(&known) = after.clone();
        }
        let is_stale = Arc::clone(&self.is_stale);
        let stays_stale = runtime.planted("roster stays as a failed write has left it");
        let written = runtime.outcome(async move {
            let _turn = turn;
            is_stale.store(!stays_stale, Ordering::Relaxed);
            kept.await?;
            is_stale.store(false, Ordering::Relaxed);
            *lock(&known) = after;
            Ok::<(), String>(())
        });
        let failed = |why: String| {
            self.look_again();
            ArrayError::new(ArrayErrorKind::Internal, why)
        };
        match written.await {
            Ok(written) => written.map_err(failed),
            Err(why) => Err(failed(format!("writing the roster ended early: {why}"))),
        }
    }
}

// Whoever panicked with this lock held has left a whole list behind.
fn lock(known: &Mutex<Vec<KnownDrive>>) -> MutexGuard<'_, Vec<KnownDrive>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
