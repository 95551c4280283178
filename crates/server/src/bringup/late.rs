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
//! - A pool that does not open, or settle, for it waits for a drive, holds up no other, and not
//!   the end of the array.

use super::{BringUpError, make_volumes};
use crate::apply;
use crate::array::{Array, MissingDrive};
use crate::shard::{ShardHandle, ShardState};
use ::array::openings::{DriveContent, DrivePlace};
use engine::drives::EventKind;
use engine::pool::PoolInfo;
use site::Site;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout};

/// How long to rest between two looks.
const PAUSE: Duration = Duration::from_secs(2);

/// A round waits no longer for pools that open; those go on by themselves.
const OPEN_TIME: Duration = Duration::from_secs(2);

/// Nor for one that settles in, or targets that are tried again: what a shard has begun for
/// that goes on there.
const SETTLE_TIME: Duration = Duration::from_secs(20);

/// The longest pause before a pool that did not settle in is tried again.
const AGAIN_MAX: Duration = Duration::from_secs(300);

/// What is under way when the array stops has so long to end.
const STOP_TIME: Duration = Duration::from_secs(5);

/// The task that looks.
#[derive(Debug)]
pub(super) struct Late {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// What it looks with.
struct Looker {
    /// For the volumes that the first start could not make.
    site: Site,
    shards: Vec<ShardHandle>,
    array: Weak<Array>,
}

/// What is under way, and what came of it before.
struct Rounds {
    looker: Arc<Looker>,
    opening: JoinSet<String>,
    under_way: BTreeSet<String>,
    failed: BTreeMap<String, Failed>,
    /// Targets that are not served, with the reason that the log has.
    not_served: BTreeMap<String, String>,
}

/// A pool that did not settle in.
struct Failed {
    why: String,
    pause: Duration,
    again_at: Instant,
}

impl Late {
    /// Looks from now on.
    pub(super) fn begin(site: Site, shards: Vec<ShardHandle>, array: &Arc<Array>) -> Self {
        let (stop, mut stopped) = watch::channel(false);
        let mut rounds = Rounds {
            looker: Arc::new(Looker {
                site,
                shards,
                array: Arc::downgrade(array),
            }),
            opening: JoinSet::new(),
            under_way: BTreeSet::new(),
            failed: BTreeMap::new(),
            not_served: BTreeMap::new(),
        };
        let task = tokio::spawn(async move {
            loop {
                // Ends also when nobody could stop it any more.
                let wait = stopped.wait_for(|stop| *stop);
                if timeout(PAUSE, wait).await.is_ok() || !rounds.look().await {
                    break;
                }
            }
            // What does not end is cut off, as by a crash.
            let _ = timeout(STOP_TIME, rounds.opening.join_all()).await;
        });
        Late { stop, task }
    }

    /// Ends the looking: once what is under way has ended, but soon.
    pub(super) async fn stop(mut self) {
        self.stop.send_replace(true);
        match timeout(STOP_TIME, &mut self.task).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::error!("looking for what was missing ended early: {error}");
            }
            Err(_) => {
                self.task.abort();
                tracing::warn!(
                    "a pool that opens, or has opened just now, does not answer: it is left as it is"
                );
            }
        }
    }
}

impl Rounds {
    /// One round; false when there is no array any more.
    async fn look(&mut self) -> bool {
        let looker = Arc::clone(&self.looker);
        let Some(array) = looker.array.upgrade() else {
            return false;
        };
        self.open(&array).await;
        if let Err(why) = array.openings().made().settle().await {
            tracing::error!("the record of pools may be wrong, and is written again: {why}");
        }
        self.settle(&array).await;
        self.show_again(&array).await;
        // A change that does not end was told of elsewhere.
        let _ = timeout(SETTLE_TIME, array.open_closed_portals()).await;
        // A shard that has stopped was told of elsewhere.
        let Ok(open) = array.pools().await else {
            return false;
        };
        for (shard, info) in open {
            let spares = array.missing_spares(&info);
            for drive in array.missing_drives(&info).into_iter().chain(spares) {
                if !drive.is_back
                    && let Err(error) = looker.look_for(drive, (shard, &info), &array).await
                {
                    tracing::warn!("pool {}: {error}", info.name);
                }
            }
        }
        true
    }

    /// Opens the pools that can be by now.
    async fn open(&mut self, array: &Arc<Array>) {
        for closed in array.closed_pools() {
            if let Some(name) = &closed.clash
                && array.volume(name).await.is_ok()
            {
                continue;
            }
            let name = closed.name;
            if !self.under_way.insert(name.clone()) {
                continue;
            }
            let array = Arc::clone(array);
            self.opening.spawn(async move {
                if let Err(error) = array.openings().open_late(&name, array.control()).await {
                    tracing::error!("pool {name}: {error}");
                }
                name
            });
        }
        let end = Instant::now() + OPEN_TIME;
        while let Ok(Some(Ok(name))) = tokio::time::timeout_at(end, self.opening.join_next()).await
        {
            self.under_way.remove(&name);
        }
    }

    /// Has the pools that have opened be part of the array.
    async fn settle(&mut self, array: &Arc<Array>) {
        for name in array.unsettled_pools() {
            let before = self.failed.get(&name);
            if before.is_some_and(|before| Instant::now() < before.again_at) {
                continue;
            }
            let settling = self.looker.settle_in(&name, array);
            let settled = timeout(SETTLE_TIME, settling).await.unwrap_or_else(|_| {
                Err(vec![format!(
                    "it has no end after {SETTLE_TIME:?}: a drive may hang"
                )])
            });
            match settled {
                Ok(()) => {
                    array.pool_is_settled(&name, true);
                    self.failed.remove(&name);
                }
                Err(why) => self.try_later(name, why.join("; ")),
            }
        }
    }

    fn try_later(&mut self, name: String, why: String) {
        let before = self.failed.get(&name);
        if before.is_none_or(|before| before.why != why) {
            tracing::error!("pool {name} is open, but not all is done, and is tried again: {why}");
        }
        let pause = before.map_or(PAUSE, |before| (before.pause * 2).min(AGAIN_MAX));
        let again_at = Instant::now() + pause;
        self.failed.insert(
            name,
            Failed {
                why,
                pause,
                again_at,
            },
        );
    }

    /// Serves targets that are withheld, where there is no reason any more.
    async fn show_again(&mut self, array: &Arc<Array>) {
        if array
            .exports()
            .iter()
            .all(|export| export.withheld.is_none())
        {
            return;
        }
        let again = timeout(SETTLE_TIME, array.restore_withheld()).await;
        // Without an answer a shard has stopped, or a change does not end: both are told of.
        let Ok(Ok(failed)) = again else {
            return;
        };
        for (target, why) in &failed {
            if self.not_served.get(target) != Some(why) {
                tracing::error!("target {target} is not served: {why}");
            }
        }
        self.not_served = failed;
    }
}

impl Looker {
    /// What a start does once pools are open, for one that came late. What can't be done is no
    /// reason to leave the rest.
    ///
    /// # Errors
    /// All that could not be done.
    async fn settle_in(&self, name: &str, array: &Arc<Array>) -> Result<(), Vec<String>> {
        let of_pool = array.settle_late(name).await;
        let completed = match array.is_complete() {
            true => Ok(()),
            false => self.complete(array).await,
        };
        let shown = array.show_late().await;
        let mut wrong: Vec<BringUpError> = of_pool.into_iter().map(BringUpError::from).collect();
        wrong.extend(completed.err());
        wrong.extend(shown.into_iter().map(BringUpError::from));
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(wrong.iter().map(BringUpError::to_string).collect()),
        }
    }

    /// Makes what the first start could not make.
    async fn complete(&self, array: &Arc<Array>) -> Result<(), BringUpError> {
        apply::forget(&self.site, array).await?;
        let renamed = apply::renamed(&self.site, array).await?;
        let site = apply::follow(&self.site, &renamed);
        let plan = apply::plan(&site, array).await?;
        make_volumes(plan, &site, array).await?;
        if array.closed_names().is_none() {
            array.settle_configuration(true).await?;
        }
        Ok(())
    }

    /// Whether a drive that a pool is without is there again; an event says so then.
    async fn look_for(
        &self,
        drive: MissingDrive,
        (shard, info): (usize, &PoolInfo),
        array: &Array,
    ) -> Result<(), BringUpError> {
        let Some(shard) = self.shards.get(shard) else {
            return Ok(());
        };
        let (name, path) = (drive.name.clone(), drive.path.clone());
        let place = DrivePlace::at(name, path);
        let look = array.openings().glance(shard, place).await?;
        let (name, path) = (&drive.name, drive.path.display());
        let is_spare = info.members.iter().all(|member| member.name != *name);
        let what = match look.found {
            DriveContent::Labelled(label) if label.pool_uuid == info.uuid && is_spare => {
                format!("spare '{name}' is back at {path}")
            }
            DriveContent::Labelled(label) if label.pool_uuid == info.uuid => {
                format!("drive '{name}' is back at {path}, with what it held before")
            }
            DriveContent::Empty => format!("there is an empty drive at {path}, where '{name}' was"),
            _ => return Ok(()),
        };
        let then = match is_spare {
            true => "makes it a spare again",
            false => "takes it in and rebuilds it",
        };
        let text = format!("{what}: `ashlar drive replace {name}` {then}");
        tracing::info!("pool {}: {text}", info.name);
        array.drive_is_back(&info.name, name);
        let pool = info.name.clone();
        let visit = move |state: Rc<ShardState>| async move {
            if let Some(pool) = state.pool(&pool) {
                pool.tell(EventKind::DriveBack, text);
            }
        };
        Ok(shard.call(visit).await?)
    }
}
