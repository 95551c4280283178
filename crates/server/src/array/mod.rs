//! The array over all shards, as the API and the bring-up see it.
//!
//! Invariants:
//! - A volume's name is unique over the array, and so is a target's.
//! - A volume is behind at most one target.
//! - Changes happen one at a time, and each runs to its end even when the one
//!   who asked goes away; one that waits for a pool which does not answer lets others go on
//!   ([`turns`]).
//! - An export is on stable media before it can be logged in to, so it is there again after a
//!   restart. So is each change of who may log in before it counts ([`configuration`]).

mod absent;
mod answers;
pub(crate) mod configuration;
pub(crate) mod consistency;
mod departures;
mod drive_files;
mod drives;
mod events;
mod exports;
mod groups;
mod hearsay;
mod history;
pub(crate) mod hosts;
mod losses;
mod luns;
mod moves;
mod paces;
mod places;
mod portals;
mod roster;
pub(crate) mod schedule;
mod schedules;
mod sessions;
mod settings;
mod snapshot_barrier;
mod snapshots;
mod space;
mod space_reclaim;
mod space_warnings;
mod statistics;
mod trash;
mod turns;
mod unlisted;
mod volumes;
mod waiting;
pub(crate) mod words;

pub(crate) use crate::array_error::{ArrayError, ArrayErrorKind};
pub(crate) use absent::{ClosedPool, MissingDrive, in_brief};
pub(crate) use consistency::ConsistencyGroup;
pub(crate) use exports::Export;
pub(crate) use groups::NewGroup;
pub(crate) use hearsay::Glance;
pub(crate) use history::{History, PoolEvent};
pub(crate) use hosts::{Host, HostChange, HostGroup};
pub(crate) use losses::Loss;
pub(crate) use luns::NewLun;
pub(crate) use moves::{CopyPlace, NewPlace, Unsettled};
pub(crate) use paces::settle;
pub use places::added;
pub(crate) use places::{AddedDrive, DrivePlaces, NewDrive, keep_added};
pub(crate) use roster::{KnownDrive, Roster};
pub(crate) use schedule::Schedule;
pub use settings::kept_settings;
pub(crate) use snapshot_barrier::{Present, Restoring};
pub(crate) use trash::{Deleted, Deletion};
pub(crate) use volumes::PlacedVolume;
pub(crate) use waiting::Waiting;
pub(crate) use words::NewAttributes;

use crate::data_dir::DataDir;
use crate::directory::Directory;
use crate::front::Portals;
use crate::jobs::Jobs;
use crate::offload::Offload;
use crate::panics;
use crate::shard::{ShardHandle, ShardState};
use engine::pool::{Lane, MemberInfo, PoolInfo};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use world_real::RealWorld;

/// The array. Shared by everything beside the data path.
pub struct Array {
    name: String,
    shards: Vec<ShardHandle>,
    /// The shards, by index, that the lanes of each pool are on.
    homes: Mutex<BTreeMap<String, Vec<usize>>>,
    /// Pools that are not open, and drives that open ones are without.
    absent: Mutex<absent::Absent>,
    directory: Arc<Directory>,
    offload: Arc<Offload>,
    exports: Mutex<BTreeMap<String, Export>>,
    hosts: Mutex<hosts::Known>,
    /// Where exports, hosts and the like are kept.
    store: Arc<dyn configuration::Store>,
    is_complete: AtomicBool,
    /// The configuration was lost once.
    was_lost: AtomicBool,
    recorder: events::Recorder,
    drives: DrivePlaces,
    roster: Roster,
    jobs: Jobs,
    /// What it was told of pools, drives, portals and the like.
    settings: Mutex<Arc<site::Site>>,
    /// Where its records are. Gone when the array has ended.
    data: Weak<DataDir>,
    /// Names of the volumes that the site file describes; none without a file.
    of_site: BTreeSet<String>,
    /// Opens and closes portals, once there is a front.
    portals: OnceLock<Portals>,
    schedules: Mutex<schedules::Known>,
    turns: turns::Turns,
    began: Instant,
    hearsay: hearsay::Hearsay,
}

impl Array {
    /// An array called `name` whose pools are open on `shards`, each on the one
    /// that `homes` says, without exports and hosts. They are kept in
    /// `store`, and events in `history`; `drives` says where the drives are, `roster`
    /// which they were, `jobs` which jobs there are, and `site` what it was told of
    /// pools and volumes.
    ///
    /// # Panics
    /// When `homes` names a shard that isn't there.
    pub(crate) fn new(
        name: String,
        shards: Vec<ShardHandle>,
        homes: BTreeMap<String, Vec<usize>>,
        (directory, offload): (Arc<Directory>, Arc<Offload>),
        (store, history): (Arc<dyn configuration::Store>, History),
        (drives, roster, jobs): (DrivePlaces, Roster, Jobs),
        (site, data): (&site::Site, Weak<DataDir>),
    ) -> Arc<Self> {
        assert!(
            homes.values().flatten().all(|shard| *shard < shards.len()),
            "a pool on a shard not there"
        );
        let described = site.volumes.iter().map(|volume| volume.name.clone());
        Arc::new(Array {
            name,
            shards,
            homes: Mutex::new(homes),
            absent: Mutex::default(),
            directory,
            offload,
            exports: Mutex::default(),
            hosts: Mutex::default(),
            store,
            is_complete: AtomicBool::new(false),
            was_lost: AtomicBool::new(false),
            portals: OnceLock::new(),
            recorder: events::Recorder::new(history),
            drives,
            roster,
            settings: Mutex::new(Arc::new(site.settings())),
            data,
            of_site: described.collect(),
            jobs,
            schedules: Mutex::default(),
            turns: turns::Turns::default(),
            began: Instant::now(),
            hearsay: hearsay::Hearsay::default(),
        })
    }

    /// What the site calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long what is deleted stays in the trash.
    pub fn trash_kept(&self) -> Duration {
        self.settings().trash
    }

    /// Its shards, by index.
    pub(crate) fn shards(&self) -> &[ShardHandle] {
        &self.shards
    }

    /// Where its drives are.
    pub(crate) fn places(&self) -> &DrivePlaces {
        &self.drives
    }

    /// The data directory.
    ///
    /// # Errors
    /// The array has ended.
    pub(crate) fn data(&self) -> Result<Arc<DataDir>, ArrayError> {
        let ended = || ArrayError::new(ArrayErrorKind::Unavailable, "the array ends".to_owned());
        self.data.upgrade().ok_or_else(ended)
    }

    /// Images on their way in and out, volumes that are moved or copied.
    pub(crate) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Seconds since it was brought up.
    pub fn uptime_s(&self) -> u64 {
        self.began.elapsed().as_secs()
    }

    /// The directory of targets, access and portals, which all shards share.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The tokens of copies, which all shards share.
    pub fn offload(&self) -> &Offload {
        &self.offload
    }

    /// Fails an assertion, on a shard or in a change that somebody waits for: for tests of
    /// what that does.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    pub async fn fail_an_assertion(self: &Arc<Self>, on_shard: bool) {
        let fail = || assert!(std::env::args().count() == 0, "a test has asked for it");
        if on_shard {
            // It has no answer.
            let _ = self.shards[0].call(move |_| async move { fail() }).await;
            return;
        }
        let failed = self.change(move |_| async move {
            fail();
            Ok(())
        });
        if let Err(error) = failed.await {
            tracing::error!("{error}");
        }
    }

    /// The pools, by name, each with the shard it is homed on.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn pools(&self) -> Result<Vec<(usize, PoolInfo)>, ArrayError> {
        Ok(hearsay::merged(self.lanes().await?))
    }

    /// The lanes of all pools, each with its number and its shard.
    async fn lanes(&self) -> Result<Vec<(u16, usize, PoolInfo)>, ArrayError> {
        let mut lanes = Vec::new();
        for shard in &self.shards {
            let visit = |state: Rc<ShardState>| async move { hearsay::lanes_on(&state) };
            let infos: Vec<(u16, PoolInfo)> = shard.call(visit).await?;
            let here = |(lane, info)| (lane, shard.index(), info);
            lanes.extend(infos.into_iter().map(here));
        }
        Ok(lanes)
    }

    /// The pool called `name`.
    ///
    /// # Errors
    /// There is none, or its shard has stopped.
    pub async fn pool(&self, name: &str) -> Result<(usize, PoolInfo), ArrayError> {
        let mut pools = self.pools().await?.into_iter();
        let found = pools.find(|(_, info)| info.name == name);
        found.ok_or_else(|| self.no_such_pool(name))
    }

    /// The shards that the lanes of the pool called `name` are on.
    fn homes(&self, pool: &str) -> Result<Vec<ShardHandle>, ArrayError> {
        if self.is_closed(pool) {
            return Err(self.no_such_pool(pool));
        }
        self.turns.check_pool(pool)?;
        let homes = self.home_map().get(pool).cloned();
        let homes = homes.ok_or_else(|| self.no_such_pool(pool))?;
        let shard = |index: &usize| self.shards[*index].clone();
        Ok(homes.iter().map(shard).collect())
    }

    /// That no change which has given its turn away has to do with a pool.
    ///
    /// # Errors
    /// One has.
    pub(crate) fn check_turn(&self, pool: &str) -> Result<(), ArrayError> {
        self.turns.check_pool(pool)
    }

    /// Waits for `work` in a pool; other changes go on meanwhile when it takes long.
    pub(crate) async fn wait_for<T>(&self, pool: &str, work: impl Future<Output = T>) -> T {
        self.turns.wait(pool, work).await
    }

    /// The shard that a volume is on.
    pub(crate) fn home_of(&self, volume: &PlacedVolume) -> Result<ShardHandle, ArrayError> {
        let homes = self.homes(&volume.pool)?;
        let home = homes.get(usize::from(volume.lane));
        let home = home.ok_or_else(|| ArrayError::no_pool(&volume.pool))?;
        Ok(home.clone())
    }

    /// Does something to a lane of a pool, on its shard.
    async fn with_lane<T, F, Fut>(&self, pool: &str, lane: u16, visit: F) -> Result<T, ArrayError>
    where
        T: Send + 'static,
        F: FnOnce(Rc<ShardState>, Lane<RealWorld>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ArrayError>> + 'static,
    {
        let homes = self.homes(pool)?;
        let home = homes.get(usize::from(lane));
        let home = home.ok_or_else(|| ArrayError::no_pool(pool))?;
        let name = pool.to_owned();
        let visit = move |state: Rc<ShardState>| async move {
            match state.lane(&name, lane) {
                Some(pool) => visit(state, pool).await,
                None => Err(ArrayError::no_pool(&name)),
            }
        };
        self.turns.wait(pool, home.call(visit)).await?
    }

    /// Does something to all lanes of a pool, the first one first, and gives what the
    /// first one said.
    ///
    /// # Errors
    /// What the first lane that fails says; those after it were not asked. In a lane
    /// after the first, nothing there to be changed is no failure: the lane has had the
    /// change before.
    async fn with_pool<T, F, Fut>(&self, pool: &str, visit: F) -> Result<T, ArrayError>
    where
        T: Send + 'static,
        F: FnOnce(Rc<ShardState>, Lane<RealWorld>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<T, ArrayError>> + 'static,
    {
        let said = self.with_lane(pool, 0, visit.clone()).await;
        let lanes = self.homes(pool)?.len() as u16;
        let mut first = match said {
            // The first lane may have had it before, and others not yet.
            Err(error) if lanes > 1 && error.kind == ArrayErrorKind::NotFound => Err(error),
            said => Ok(said?),
        };
        for lane in 1..lanes {
            match self.with_lane(pool, lane, visit.clone()).await {
                Err(error) if error.kind == ArrayErrorKind::NotFound => {}
                said => first = first.or(Ok(said?)),
            }
        }
        first
    }

    /// As [`Array::with_pool`], the last lane first: for what is taken out of a pool. What a
    /// crash cuts short, the next opening gives back to the lanes after the first.
    async fn with_pool_backwards<F, Fut>(&self, pool: &str, visit: F) -> Result<(), ArrayError>
    where
        F: FnOnce(Rc<ShardState>, Lane<RealWorld>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<(), ArrayError>> + 'static,
    {
        let lanes = self.homes(pool)?.len() as u16;
        let mut found = Err(ArrayError::no_pool(pool));
        for lane in (0..lanes).rev() {
            found = match (self.with_lane(pool, lane, visit.clone()).await, found) {
                (Err(error), before) if error.kind == ArrayErrorKind::NotFound => {
                    before.or(Err(error))
                }
                (said, _) => Ok(said?),
            };
        }
        found
    }

    /// Makes one change to its end, after those before it.
    pub(crate) async fn change<T, F, Fut>(self: &Arc<Self>, change: F) -> Result<T, ArrayError>
    where
        T: Send + 'static,
        F: FnOnce(Arc<Self>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ArrayError>> + Send + 'static,
    {
        let array = Arc::clone(self);
        let whole = tokio::spawn(async move {
            let change = panics::heard(change(Arc::clone(&array)));
            array.turns.take(change).await
        });
        let ended = match whole.await {
            Ok(Ok(outcome)) => return outcome,
            Ok(Err(panic)) => panic,
            Err(error) => error.to_string(),
        };
        let context = format!("a change ended early: {ended}");
        Err(ArrayError::new(ArrayErrorKind::Internal, context))
    }

    // As below.
    fn home_map(&self) -> MutexGuard<'_, BTreeMap<String, Vec<usize>>> {
        self.homes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // As below.
    fn schedule_map(&self) -> MutexGuard<'_, schedules::Known> {
        self.schedules
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    // Whoever panicked with this lock held has left a whole map behind.
    fn export_map(&self) -> MutexGuard<'_, BTreeMap<String, Export>> {
        self.exports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a description is not what a pool is by now; for people, one line each.
pub(crate) fn differences_from(site: &site::Pool, info: &PoolInfo) -> Vec<String> {
    let names = |members: &[MemberInfo]| -> Vec<String> {
        members.iter().map(|member| member.name.clone()).collect()
    };
    let groups = info.groups.iter().map(|group| site::diff::ExistingGroup {
        index: group.index,
        level: group.level,
        drives: names(&group.members),
        leaves: group.leaving,
    });
    let groups: Vec<_> = groups.collect();
    site::diff::pool(site, &groups, &names(&info.spares))
}
