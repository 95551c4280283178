//! Looks for pools and drives that were missing at the start, until they are there.
//!
//! A pool that could not be opened is opened when its drives are there, with its volumes, and
//! the targets that show them. A drive that an open pool came up without holds old data when
//! it comes back: an event says so, and which command takes it in. Nothing is rebuilt onto a
//! drive that nobody asked for.
//!
//! Invariants:
//! - Nothing is made here but volumes of the site file that the first start could not make, and
//!   those only when all pools are open: never a pool.
//! - A pool that has opened is settled in when every step of it has ended well; until then each
//!   round tries again, later and later. What can't be settled keeps nothing else from it.
//! - A pool that does not open, or settle, for it waits for a drive, holds up no other.

use super::Openings;
use super::look::{DriveContent, DrivePlace};
use crate::control::{ControlPlane, MissingDrive, Runtime};
use crate::shard::{ShardGone, ShardState};
use base::Time;
use engine::World;
use engine::drives::EventKind;
use engine::pool::PoolInfo;
use futures_channel::oneshot;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long to rest between two rounds.
pub const PAUSE: Duration = Duration::from_secs(2);

/// A round waits no longer for pools that open; those go on by themselves.
const OPEN_TIME: Duration = Duration::from_secs(2);

/// Nor for one that settles in, or targets that are tried again: what a shard has begun for
/// that goes on there.
const SETTLE_TIME: Duration = Duration::from_secs(20);

/// The longest pause before a pool that did not settle in is tried again.
const AGAIN_MAX: Duration = Duration::from_secs(300);

/// What a round does that is not about pools.
pub trait LateWork: Send + Sync {
    /// Makes what the first start could not make, now that a pool has opened.
    ///
    /// # Errors
    /// Why it can't be made.
    fn complete(&self) -> BoxFuture<'_, Result<(), String>>;
}

/// What is under way, and what came of it before.
pub struct LateRounds<W: World> {
    openings: Arc<Openings<W>>,
    array: Weak<ControlPlane<W>>,
    work: Arc<dyn LateWork>,
    /// Each gives the name of its pool when it has ended.
    opening: FuturesUnordered<oneshot::Receiver<String>>,
    under_way: BTreeSet<String>,
    failed: BTreeMap<String, Failed>,
    /// Targets that are not served, with the reason that the log has.
    not_served: BTreeMap<String, String>,
}

/// A pool that did not settle in.
struct Failed {
    why: String,
    pause: Duration,
    again_at: Time,
}

impl<W: World> LateRounds<W> {
    /// Rounds that look for what `array` is without, as long as it is there.
    pub fn new(
        openings: Arc<Openings<W>>,
        array: &Arc<ControlPlane<W>>,
        work: Arc<dyn LateWork>,
    ) -> Self {
        LateRounds {
            openings,
            array: Arc::downgrade(array),
            work,
            opening: FuturesUnordered::new(),
            under_way: BTreeSet::new(),
            failed: BTreeMap::new(),
            not_served: BTreeMap::new(),
        }
    }

    /// One round; false when there is no array any more.
    pub async fn look(&mut self) -> bool {
        let Some(array) = self.array.upgrade() else {
            return false;
        };
        self.open(&array).await;
        if let Err(why) = self.openings.made().settle().await {
            tracing::error!("the record of pools may be wrong, and is written again: {why}");
        }
        if let Err(why) = array.keep_again().await {
            tracing::error!("the configuration may hold a change that was refused: {why}");
        }
        self.settle(&array).await;
        self.show_again(&array).await;
        // A change that does not end was told of elsewhere.
        let opened = array.open_closed_portals();
        let _ = array.runtime().in_time(SETTLE_TIME, opened).await;
        // A shard that has stopped was told of elsewhere.
        let Ok(open) = array.pools().await else {
            return false;
        };
        for (shard, info) in open {
            let spares = array.missing_spares(&info);
            for drive in array.missing_drives(&info).into_iter().chain(spares) {
                if !drive.is_back
                    && let Err(gone) = self.look_for(drive, (shard, &info), &array).await
                {
                    tracing::warn!("pool {}: {gone}", info.name);
                }
            }
        }
        true
    }

    /// Ends when no pool opens any more.
    pub async fn end(mut self) {
        while self.opening.next().await.is_some() {}
    }

    /// Opens the pools that can be by now.
    async fn open(&mut self, array: &Arc<ControlPlane<W>>) {
        for closed in array.closed_pools() {
            if let Some(name) = &closed.clash
                && array.volume(name).await.is_ok()
            {
                continue;
            }
            if self.under_way.insert(closed.name.clone()) {
                self.begin(closed.name, array);
            }
        }
        let (opening, under_way) = (&mut self.opening, &mut self.under_way);
        let all = async {
            while let Some(ended) = opening.next().await {
                // One that was cut off is not begun again.
                let _ = ended.map(|name| under_way.remove(&name));
            }
        };
        // Those that take longer are waited for in the next round, too.
        let _ = array.runtime().in_time(OPEN_TIME, all).await;
    }

    /// Begins to open a pool; that goes on by itself.
    fn begin(&mut self, name: String, array: &Arc<ControlPlane<W>>) {
        let (openings, own) = (Arc::clone(&self.openings), Arc::clone(array));
        let (ended, ends) = oneshot::channel();
        let open = async move {
            if let Err(error) = openings.open_late(&name, &own).await {
                tracing::error!("pool {name}: {error}");
            }
            // The rounds may have ended.
            let _ = ended.send(name);
        };
        array.runtime().spawn(open.boxed());
        self.opening.push(ends);
    }

    /// Has the pools that have opened be part of the array.
    async fn settle(&mut self, array: &Arc<ControlPlane<W>>) {
        let runtime = array.runtime();
        for name in array.unsettled_pools() {
            let before = self.failed.get(&name);
            if before.is_some_and(|before| runtime.now() < before.again_at) {
                continue;
            }
            let settling = self.settle_in(&name, array);
            let settled = runtime.in_time(SETTLE_TIME, settling).await;
            let settled = settled.unwrap_or_else(|| {
                Err(vec![format!(
                    "it has no end after {SETTLE_TIME:?}: a drive may hang"
                )])
            });
            match settled {
                Ok(()) => {
                    array.pool_is_settled(&name, true);
                    self.failed.remove(&name);
                }
                Err(why) => self.try_later(name, why.join("; "), runtime),
            }
        }
    }

    fn try_later(&mut self, name: String, why: String, runtime: &dyn Runtime) {
        let before = self.failed.get(&name);
        if before.is_none_or(|before| before.why != why) {
            tracing::error!("pool {name} is open, but not all is done, and is tried again: {why}");
        }
        let pause = before.map_or(PAUSE, |before| (before.pause * 2).min(AGAIN_MAX));
        let failed = Failed {
            why,
            pause,
            again_at: runtime.now() + pause,
        };
        self.failed.insert(name, failed);
    }

    /// What a start does once pools are open, for one that came late. What can't be done is no
    /// reason to leave the rest.
    ///
    /// # Errors
    /// All that could not be done.
    async fn settle_in(&self, name: &str, array: &Arc<ControlPlane<W>>) -> Result<(), Vec<String>> {
        let mut wrong: Vec<String> = Vec::new();
        let of_pool = array.settle_late(name).await.into_iter();
        wrong.extend(of_pool.map(|error| error.to_string()));
        if !array.is_complete() {
            wrong.extend(self.work.complete().await.err());
        }
        let shown = array.show_late().await.into_iter();
        wrong.extend(shown.map(|error| error.to_string()));
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(wrong),
        }
    }

    /// Serves targets that are withheld, where there is no reason any more.
    async fn show_again(&mut self, array: &Arc<ControlPlane<W>>) {
        let exports = array.exports();
        if exports.iter().all(|export| export.withheld.is_none()) {
            return;
        }
        let restored = array.restore_withheld();
        let again = array.runtime().in_time(SETTLE_TIME, restored).await;
        // Without an answer a shard has stopped, or a change does not end: both are told of.
        let Some(Ok(failed)) = again else {
            return;
        };
        for (target, why) in &failed {
            if self.not_served.get(target) != Some(why) {
                tracing::error!("target {target} is not served: {why}");
            }
        }
        self.not_served = failed;
    }

    /// Whether a drive that a pool is without is there again; an event says so then.
    async fn look_for(
        &self,
        drive: MissingDrive,
        (shard, info): (usize, &PoolInfo),
        array: &ControlPlane<W>,
    ) -> Result<(), ShardGone> {
        let Some(shard) = array.shards().get(shard) else {
            return Ok(());
        };
        let place = DrivePlace::at(drive.name.clone(), drive.path.clone());
        let look = self.openings.glance(shard, place).await?;
        let Some(text) = what_is_back(&drive, &look.found, info) else {
            return Ok(());
        };
        tracing::info!("pool {}: {text}", info.name);
        array.drive_is_back(&info.name, &drive.name);
        let pool = info.name.clone();
        let visit = move |state: Rc<ShardState<W>>| async move {
            if let Some(pool) = state.pool(&pool) {
                pool.tell(EventKind::DriveBack, text);
            }
        };
        shard.call(visit).await
    }
}

/// What is to be said of what is found where a drive is missing, if that is news.
fn what_is_back(drive: &MissingDrive, found: &DriveContent, info: &PoolInfo) -> Option<String> {
    let (name, path) = (&drive.name, drive.path.display());
    let is_spare = info.members.iter().all(|member| member.name != *name);
    let what = match found {
        DriveContent::Labelled(label) if label.pool_uuid == info.uuid && is_spare => {
            format!("spare '{name}' is back at {path}")
        }
        DriveContent::Labelled(label) if label.pool_uuid == info.uuid => {
            format!("drive '{name}' is back at {path}, with what it held before")
        }
        DriveContent::Empty => format!("there is an empty drive at {path}, where '{name}' was"),
        _ => return None,
    };
    let then = match is_spare {
        true => "makes it a spare again",
        false => "takes it in and rebuilds it",
    };
    Some(format!("{what}: `ashlar drive replace {name}` {then}"))
}
