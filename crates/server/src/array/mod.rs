//! The array over all shards, as the API and the bring-up see it: the control plane
//! ([`::array::control`]), and what it has of this machine: drive files, records, portals, jobs.

pub(crate) mod configuration;
mod drives;
mod history;
mod made;
mod places;
mod roster;
mod scrubs;
#[cfg(test)]
mod silent_shards;

pub(crate) use ::array::control::{
    AddedDrive, AttributeChange, ClosedPool, ConsistencyGroup, Deleted, Deletion, DrivePlaces,
    Export, Glance, Host, HostChange, HostGroup, KnownDrive, Loss, NewAttributes, NewDrive,
    NewGroup, NewLun, NewPlace, PlacedVolume, PoolEvent, Present, ROUTINE, Restoring, Roster,
    Schedule, TakeBack, WaitingReplacement, in_brief, limits,
};
pub use ::array::control::{ArrayError, ArrayErrorKind};
pub(crate) use ::array::control::{attributes, consistency, hosts, schedule};
pub use configuration::kept_settings;
use history::EventFile;
pub(crate) use history::History;
pub(crate) use made::made_pools;
pub use places::added;
pub(crate) use places::{drive_places, drive_record};
pub(crate) use roster::roster;
pub(crate) use scrubs::scrubs;

use crate::data_dir::DataDir;
use crate::directory::Directory;
use crate::jobs::{ImagePlaces, JobFile};
use crate::machine_memory;
use crate::offload::Offload;
use crate::runtime::Executor;
use crate::shard::ShardHandle;
use ::array::control::jobs::{ImageWork, JobRecord, Jobs};
use ::array::control::{Configuration, ControlPlane, Machine, Recorder, Runtime};
use ::array::openings::Openings;
use ::array::records::Store;
use site::Site;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use world_real::RealWorld;

/// What an array has to do with jobs.
pub(crate) struct JobEdges {
    pub(crate) file: JobFile,
    /// What is on record of them.
    pub(crate) kept: JobRecord,
    pub(crate) image_places: Arc<ImagePlaces>,
    /// The work of jobs on images.
    pub(crate) images: Arc<dyn ImageWork<RealWorld>>,
}

/// The machine that this process runs on.
struct ThisMachine {
    image_places: Arc<ImagePlaces>,
}

impl Machine for ThisMachine {
    fn memory_bytes(&self) -> Option<u64> {
        machine_memory::memory_bytes()
    }

    fn follow(&self, settings: &Site) {
        let directories = settings.images.directories.clone();
        self.image_places.set_directories(directories);
    }
}

/// The array: its control plane, and what that has of this machine. Shared by everything beside the
/// data path.
#[derive(Clone)]
pub struct Array {
    name: String,
    control: Arc<ControlPlane<RealWorld>>,
    image_places: Arc<ImagePlaces>,
    /// Where its records are. Gone when the array has ended.
    data: Weak<DataDir>,
    openings: Arc<Openings<RealWorld>>,
}

impl Deref for Array {
    type Target = Arc<ControlPlane<RealWorld>>;

    fn deref(&self) -> &Self::Target {
        &self.control
    }
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
        shared: (Arc<Directory>, Arc<Offload>),
        (store, history): (Arc<dyn Store<Configuration>>, History),
        (drives, roster, jobs): (DrivePlaces, Roster, JobEdges),
        (site, data, openings): (&Site, Weak<DataDir>, Arc<Openings<RealWorld>>),
    ) -> Arc<Self> {
        let runtime: Arc<dyn Runtime> = Arc::new(Executor::current());
        let kept = Jobs::new(Arc::clone(&runtime), Arc::new(jobs.file), jobs.kept);
        let recorder = Recorder::new(history.kept(), Arc::new(EventFile::new(history)));
        let machine = ThisMachine {
            image_places: Arc::clone(&jobs.image_places),
        };
        let of_drives = (drives, roster, Arc::new(machine) as Arc<dyn Machine>);
        let control = ControlPlane::new(
            runtime,
            (shards, homes),
            shared,
            (store, recorder),
            (kept, jobs.images),
            of_drives,
            site,
        );
        Arc::new(Array {
            name,
            control,
            image_places: jobs.image_places,
            data,
            openings,
        })
    }

    /// What the site calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The data directory.
    ///
    /// # Errors
    /// The array has ended.
    pub(crate) fn data(&self) -> Result<Arc<DataDir>, ArrayError> {
        let ended = || ArrayError::new(ArrayErrorKind::Unavailable, "the array ends".to_owned());
        self.data.upgrade().ok_or_else(ended)
    }

    /// Its pools, and what it takes to open, make and destroy them.
    pub(crate) fn openings(&self) -> &Arc<Openings<RealWorld>> {
        &self.openings
    }

    /// The control plane.
    pub(crate) fn control(&self) -> &Arc<ControlPlane<RealWorld>> {
        &self.control
    }

    /// Where images may be.
    pub(crate) fn image_places(&self) -> &ImagePlaces {
        &self.image_places
    }

    /// Seconds since it was brought up.
    pub fn uptime_s(&self) -> u64 {
        self.uptime().as_secs()
    }

    /// Fails an assertion, on a shard or in a change that somebody waits for: for tests of
    /// what that does.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    pub async fn fail_an_assertion(self: &Arc<Self>, on_shard: bool) {
        let fail = || assert!(std::env::args().count() == 0, "a test has asked for it");
        if on_shard {
            // It has no answer.
            let _ = self.shards()[0].call(move |_| async move { fail() }).await;
            return;
        }
        let failed = self.control.change(move |_| async move {
            fail();
            Ok(())
        });
        if let Err(error) = failed.await {
            tracing::error!("{error}");
        }
    }
}
