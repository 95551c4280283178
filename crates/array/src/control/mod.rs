//! The control plane over all shards: pools, volumes, exports, hosts, snapshots, schedules.
//!
//! It runs over any [`World`], and reaches shards by their [`ShardHandle`]s. Its records are kept by
//! a [`Store`] each: configuration, jobs, added drives, roster, scrubs. Six more traits are its edges.
//! [`EventRecord`] adds events to their record. [`Runtime`] has time and tasks, [`jobs::ImageWork`] the
//! work on images, [`Sockets`] opens portals, [`HealthReader`] asks drives for their health, [`Machine`] has
//! what else settings are about. New drives are at places that [`bays`](crate::bays) knows.
//!
//! Invariants:
//! - A volume's name is unique over the array, and so is a target's.
//! - A volume is behind at most one target.
//! - Changes happen one at a time, and each runs to its end even when the one who asked goes away.
//!   A change that waits for a pool which does not answer lets others go on ([`turns`]).
//! - An export is on stable media before it can be logged in to, so it is there again after a
//!   restart. So is each change of who may log in before it counts ([`configuration`]).
//! - A change of several volumes is whole after a crash, or has not begun ([`unfinished`]).

pub mod absent;
mod adoption;
mod answers;
pub mod attributes;
mod checksum_memory;
pub mod configuration;
pub mod consistency;
mod departures;
mod drive_health;
mod drives;
mod events;
pub mod exports;
mod groups;
mod hearsay;
pub mod hosts;
pub mod jobs;
mod limits;
pub(crate) mod line;
pub mod luns;
mod machine;
mod moves;
mod new_names;
mod one_thread;
mod paces;
mod pools;
mod portals;
mod restore;
mod roster;
mod runtime;
pub mod schedule;
mod schedules;
mod scrubs;
mod sessions;
mod settings;
mod snapshot_barrier;
mod snapshots;
mod space;
mod space_reclaim;
mod space_warnings;
mod start;
mod statistics;
mod trash;
mod turns;
mod unfinished;
mod unlisted;
mod volumes;
mod watching;

pub use crate::error::{ArrayError, ArrayErrorKind};
pub use absent::{ClosedPool, MissingDrive, in_brief};
pub use adoption::{AccessToAdopt, Adopted, NewAccess};
pub use attributes::NewAttributes;
pub use configuration::Configuration;
pub use consistency::ConsistencyGroup;
pub use drive_health::HealthReader;
pub use drives::{
    AddedDrive, DrivePlaces, NewDrive, Replaced, WaitingReplacement, kept_path, names,
};
pub use events::{EventRecord, Loss, Losses, PoolEvent, ROUTINE, Recorder};
pub use exports::Export;
pub use groups::NewGroup;
pub use hearsay::{Glance, lanes_on, merged};
pub use hosts::{Host, HostChange, HostGroup};
pub use limits::{Accounts, limits};
pub use luns::NewLun;
pub use machine::{Machine, NoMachine};
pub use moves::{CopyPlace, NewPlace, Unsettled};
pub use new_names::{Renamed, by_name, renamed};
pub use one_thread::OneThread;
pub use portals::{BoundSocket, Sockets};
pub use roster::{Failure, KnownDrive, Roster};
pub use runtime::Runtime;
pub use schedule::Schedule;
pub use scrubs::{EndNote, FoundNote, ScrubNote};
pub use snapshot_barrier::{NotTaken, Present, Restoring, STANDSTILL_MAX, SnapshotBarrier};
pub use space_warnings::SentWarnings;
pub use start::{Basis, Settled};
pub use trash::{Deleted, Deletion};
pub use unfinished::{AttributeChange, TakeBack};
pub use volumes::PlacedVolume;
pub use watching::{KEPT, WATCH_MAX, Watching};

use crate::directory::Directory;
use crate::offload::Offload;
use crate::records::Store;
use crate::shard::ShardHandle;
use base::Time;
use engine::World;
use jobs::{ImageWork, Jobs};
use site::Site;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The array, as far as it needs no threads, files and sockets. Shared by all who ask it; a change
/// has one of its own, which knows that it has the turn.
pub struct ControlPlane<W: World> {
    shared: Arc<ArrayState<W>>,
    turns: turns::Turns,
}

/// What all changes and all who ask share.
pub struct ArrayState<W: World> {
    runtime: Arc<dyn Runtime>,
    shards: Vec<ShardHandle<W>>,
    /// The shards, by index, that the lanes of each pool are on.
    homes: Mutex<BTreeMap<String, Vec<usize>>>,
    /// Pools that are not open, and drives that open ones are without.
    absent: Mutex<absent::Absent>,
    directory: Arc<Directory>,
    offload: Arc<Offload<W>>,
    exports: Mutex<BTreeMap<String, Export>>,
    hosts: Mutex<hosts::KnownHosts>,
    /// Where exports, hosts and the like are kept.
    store: Arc<dyn Store<Configuration>>,
    is_complete: AtomicBool,
    /// The last write of the configuration failed: the record may say what that was to say.
    is_unkept: AtomicBool,
    /// The configuration was lost once.
    was_lost: AtomicBool,
    jobs: Jobs,
    images: Arc<dyn ImageWork<W>>,
    drives: DrivePlaces,
    roster: Roster,
    healths: drive_health::Healths,
    recorder: Recorder,
    machine: Arc<dyn Machine>,
    /// Opens and closes portals, once there is a front.
    sockets: OnceLock<Arc<dyn Sockets>>,
    /// What it was told of pools, drives, portals and the like.
    settings: Mutex<Arc<Site>>,
    /// Names of the volumes that the site file describes; none without a file.
    of_site: BTreeSet<String>,
    schedules: Mutex<schedules::KnownSchedules>,
    unfinished: unfinished::Unfinished,
    began: Time,
    hearsay: hearsay::Hearsay,
    /// What is counted for a capture.
    watching: watching::Place,
    /// Of the limits of volumes.
    accounts: Arc<Accounts>,
}

/// That lanes of pools are on shards that are there.
fn checked(homes: BTreeMap<String, Vec<usize>>, shards: usize) -> BTreeMap<String, Vec<usize>> {
    let mut on = homes.values().flatten();
    assert!(on.all(|shard| *shard < shards), "no such shard");
    homes
}

impl<W: World> Deref for ControlPlane<W> {
    type Target = ArrayState<W>;

    fn deref(&self) -> &ArrayState<W> {
        &self.shared
    }
}

impl<W: World> ControlPlane<W> {
    /// An array whose pools are open on `shards`, each on those that `homes` says, without exports
    /// and hosts. `recorder` puts events on record. `jobs` are those on record, and `images` does the
    /// work of those that need files. `drives` says where the drives are, `roster` which they were,
    /// `site` is what it was told of pools and volumes.
    ///
    /// # Panics
    /// When `homes` names a shard that isn't there.
    pub fn new(
        runtime: Arc<dyn Runtime>,
        (shards, homes): (Vec<ShardHandle<W>>, BTreeMap<String, Vec<usize>>),
        (directory, offload): (Arc<Directory>, Arc<Offload<W>>),
        (store, recorder): (Arc<dyn Store<Configuration>>, Recorder),
        (jobs, images): (Jobs, Arc<dyn ImageWork<W>>),
        (drives, roster, machine): (DrivePlaces, Roster, Arc<dyn Machine>),
        site: &Site,
    ) -> Arc<Self> {
        let turns = turns::Turns::new(Arc::clone(&runtime));
        let shared = Arc::new(ArrayState {
            homes: Mutex::new(checked(homes, shards.len())),
            shards,
            absent: Mutex::default(),
            directory,
            offload,
            exports: Mutex::default(),
            hosts: Mutex::default(),
            store,
            is_complete: AtomicBool::new(false),
            is_unkept: AtomicBool::new(false),
            was_lost: AtomicBool::new(false),
            jobs,
            images,
            drives,
            roster: roster.begun(&*runtime),
            healths: drive_health::Healths::default(),
            recorder,
            machine,
            sockets: OnceLock::new(),
            settings: Mutex::new(Arc::new(site.settings())),
            of_site: volume_names(site),
            schedules: Mutex::default(),
            unfinished: unfinished::Unfinished::default(),
            began: runtime.now(),
            hearsay: hearsay::Hearsay::default(),
            watching: watching::Place::default(),
            accounts: Arc::default(),
            runtime,
        });
        Arc::new(ControlPlane { shared, turns })
    }

    /// How long what is deleted stays in the trash.
    pub fn trash_kept(&self) -> Duration {
        self.settings().trash
    }

    /// The settings as they are.
    pub fn settings(&self) -> Arc<Site> {
        // Whoever panicked with this lock held has left whole settings behind.
        let settings = self.settings.lock();
        Arc::clone(&settings.unwrap_or_else(PoisonError::into_inner))
    }

    /// Has the settings be these; they are kept already.
    pub fn settings_are(&self, settings: Arc<Site>) {
        // As above.
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Where its drives are.
    pub fn places(&self) -> &DrivePlaces {
        &self.drives
    }

    /// Its shards, by index.
    pub fn shards(&self) -> &[ShardHandle<W>] {
        &self.shards
    }

    /// Images on their way in and out, volumes that are moved or copied.
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// The time of day, pauses and tasks.
    pub fn runtime(&self) -> &dyn Runtime {
        &*self.runtime
    }

    /// Seconds since 1970.
    fn unix_s(&self) -> u64 {
        self.runtime.unix_s()
    }

    /// How long it has been up.
    pub fn uptime(&self) -> Duration {
        self.runtime.now().since(self.began)
    }

    /// The directory of targets, access and portals, which all shards share.
    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// The tokens of copies, which all shards share.
    pub fn offload(&self) -> &Arc<Offload<W>> {
        &self.offload
    }

    /// That no change which has given its turn away has to do with a pool.
    ///
    /// # Errors
    /// One has.
    pub fn check_turn(&self, pool: &str) -> Result<(), ArrayError> {
        self.turns.check_pool(pool)
    }

    /// Whether a change waits for a pool that does not answer, but this one.
    pub fn others_wait_for(&self, pool: &str) -> bool {
        self.turns.others_wait_for(pool)
    }

    /// Waits for `work` in a pool; other changes go on meanwhile when it takes long.
    pub async fn wait_for<T>(&self, pool: &str, work: impl Future<Output = T>) -> T {
        self.turns.wait(pool, work).await
    }

    /// Makes one change to its end, after those before it. It has the turn as long as it uses the
    /// control plane that it is given.
    ///
    /// # Errors
    /// What `change` says, or that it ended early.
    pub async fn change<T, F, Fut>(self: &Arc<Self>, change: F) -> Result<T, ArrayError>
    where
        T: Send + 'static,
        F: FnOnce(Arc<Self>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ArrayError>> + Send + 'static,
    {
        let (shared, turns) = (Arc::clone(&self.shared), self.turns.clone());
        let whole = async move {
            let in_turn = |turns| async move {
                let array = Arc::new(ControlPlane { shared, turns });
                array.check_notes().await?;
                change(array).await
            };
            turns.take(in_turn).await
        };
        let ended = self.runtime.outcome(whole).await;
        ended.unwrap_or_else(|why| {
            let context = format!("a change ended early: {why}");
            Err(ArrayError::new(ArrayErrorKind::Internal, context))
        })
    }

    // As below.
    fn home_map(&self) -> MutexGuard<'_, BTreeMap<String, Vec<usize>>> {
        self.homes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // As below.
    fn schedule_map(&self) -> MutexGuard<'_, schedules::KnownSchedules> {
        self.schedules
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    // Whoever panicked with this lock held has left a whole map behind.
    fn export_map(&self) -> MutexGuard<'_, BTreeMap<String, Export>> {
        self.exports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The names of the volumes that a site file describes.
fn volume_names(site: &Site) -> BTreeSet<String> {
    let names = site.volumes.iter().map(|volume| volume.name.clone());
    names.collect()
}
