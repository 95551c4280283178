//! What was missing at the start, looked for until it is there.
//!
//! A pool that could not be opened is opened when its drives are there, with its volumes, and
//! the targets that show them. A drive that an open pool came up without holds old data when
//! it comes back: an event says so, and which command takes it in. Nothing is rebuilt onto a
//! drive that nobody asked for.
//!
//! Invariants:
//! - Nothing is made here but volumes of the site file, and those only when all pools are
//!   open: never a pool.
//! - A round that has begun runs to its end before the array stops.

use super::data_dir::DataDir;
use super::drives::{self, Found, Place};
use super::made::Made;
use super::pools::{self, Known, Outcome};
use super::{BringUpError, exports, renamed, said, volumes};
use crate::array::{self, Array, MissingDrive};
use crate::images::Images;
use crate::shard::{ShardHandle, ShardState};
use engine::pool::PoolInfo;
use engine::pool::drives::EventKind;
use site::Site;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long to rest between two looks.
const PAUSE: Duration = Duration::from_secs(2);

/// The task that looks.
#[derive(Debug)]
pub(super) struct Late {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// What it looks with.
struct Looker {
    site: Site,
    data: Weak<DataDir>,
    shards: Vec<ShardHandle>,
    array: Weak<Array>,
}

impl Late {
    /// Looks from now on.
    pub(super) fn begin(
        site: Site,
        data: &Arc<DataDir>,
        shards: Vec<ShardHandle>,
        array: &Arc<Array>,
    ) -> Self {
        let (stop, mut stopped) = watch::channel(false);
        let looker = Looker {
            site,
            data: Arc::downgrade(data),
            shards,
            array: Arc::downgrade(array),
        };
        let task = tokio::spawn(async move {
            loop {
                // Ends also when nobody could stop it any more.
                let wait = stopped.wait_for(|stop| *stop);
                if tokio::time::timeout(PAUSE, wait).await.is_ok() || !looker.look().await {
                    return;
                }
            }
        });
        Late { stop, task }
    }

    /// Ends the looking, once a round under way has ended.
    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        if let Err(error) = self.task.await {
            tracing::error!("looking for what was missing ended early: {error}");
        }
    }
}

impl Looker {
    /// One round; false when there is no array any more.
    async fn look(&self) -> bool {
        let (Some(array), Some(data)) = (self.array.upgrade(), self.data.upgrade()) else {
            return false;
        };
        for closed in array.closed_pools() {
            if let Some(name) = &closed.clash
                && array.volume(name).await.is_ok()
            {
                continue;
            }
            if let Err(error) = self.open(&closed.name, &array, &data).await {
                tracing::error!("pool {}: {error}", closed.name);
            }
        }
        // A shard that has stopped was told of elsewhere.
        let Ok(open) = array.pools().await else {
            return false;
        };
        for (shard, info) in open {
            for drive in array.missing_drives(&info) {
                if !drive.is_back
                    && let Err(error) = self.look_for(drive, (shard, &info), &array).await
                {
                    tracing::warn!("pool {}: {error}", info.name);
                }
            }
        }
        true
    }

    /// Opens a pool, if it can be by now.
    async fn open(
        &self,
        name: &str,
        array: &Arc<Array>,
        data: &DataDir,
    ) -> Result<(), BringUpError> {
        let made = Made::read(data)?;
        let added = array::added(data.path())?;
        let known = Known {
            site: &self.site,
            data,
            made: &made,
            added: &added,
        };
        let plan = match pools::plan_one(&known, &self.shards, name).await? {
            Ok(Some(plan)) => plan,
            Ok(None) => return Ok(()),
            Err(why) => {
                array.pool_is_closed(name, why, None);
                return Ok(());
            }
        };
        let outcome = pools::open(&plan, &self.shards).await?;
        let outcome = outcome.unwrap_or_else(|| {
            let why = "none of its drives is there by now, and it is not made anew";
            Outcome::Closed(vec![format!("pool {name}: {why}")])
        });
        pools::take_note(&plan, outcome, array, &self.shards).await?;
        if array.is_closed(name) {
            return Ok(());
        }
        tracing::info!("pool {name} is open now");
        self.settle_in(name, array).await
    }

    /// What a start does once pools are open, for one that came late.
    async fn settle_in(&self, name: &str, array: &Arc<Array>) -> Result<(), BringUpError> {
        let (_, info) = array.pool(name).await?;
        for line in array.differences(&info) {
            tracing::warn!("pool {name}: {line}");
        }
        Images::settle(array).await?;
        let offload = array.directory().offload();
        offload.forget_leftovers(&self.shards, Some(name)).await?;
        let moving = array.images().moving();
        array.settle_moves(&moving, Some(name)).await?;
        let site = renamed::follow(&self.site, array).await?;
        let plan = volumes::plan(&site, array).await?;
        if let Err(error) = volumes::apply(plan, &site, array).await {
            tracing::error!("{error}");
        }
        said::apply(&site, array).await?;
        exports::again(&site, array).await?;
        array.learn_all_schedules().await?;
        array.watch_departures();
        Images::resume(array);
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
        let place = Place {
            name: drive.name.clone(),
            path: drive.path.clone(),
            size_bytes: None,
        };
        let look = drives::glance(shard, place).await?;
        let (name, path) = (&drive.name, drive.path.display());
        let what = match look.found {
            Found::Labelled(label) if label.pool_uuid == info.uuid => {
                format!("drive '{name}' is back at {path}, with what it held before")
            }
            Found::Empty => format!("there is an empty drive at {path}, where '{name}' was"),
            _ => return Ok(()),
        };
        let text = format!("{what}: `ashlar drive replace {name}` takes it in and rebuilds it");
        tracing::info!("pool {}: {text}", info.name);
        array.drive_is_back(&info.name, name);
        let pool = info.name.clone();
        let visit = move |state: Rc<ShardState>| async move {
            if let Some(pool) = state.pool(&pool) {
                pool.tell(EventKind::DriveMissing, text);
            }
        };
        Ok(shard.call(visit).await?)
    }
}
