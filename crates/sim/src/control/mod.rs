//! The array's own control plane in the simulated world.
//!
//! Time is virtual, records outlive boots, and there are no images and no machine. What a run asks
//! of the control plane, and what it knows of the answers, is the run's own business.
//!
//! - `record`: what is on stable media. `settings`: those that a run begins with.

mod record;
mod settings;

pub(crate) use record::{Record, UNWRITTEN};
pub(crate) use settings::settings;

use crate::shards::Shards;
use array::bring_up::{BeforeStart, RecordFiles, StartError, described, late_rounds};
use array::control::jobs::{JobRecord, Jobs, NoImages};
use array::control::{
    AddedDrive, ArrayError, Configuration, ControlPlane, DrivePlaces, KnownDrive, NoMachine,
    OneThread, PoolEvent, Recorder, Roster, Runtime, ScrubNote, Settled,
};
use array::directory::{Directory, Portal};
use array::offload::Offload;
use array::openings::{LATE_PAUSE, Made, MadePools, Openings};
use array::records::Store;
use engine::{PoolSpec, World};
use record::{EventWriter, Writer};
use site::Site;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::{Media, SimWorld};

/// When time begins, in seconds since 1970.
const BEGAN_UNIX_S: u64 = 1_800_000_000;

/// Where an array would take logins whose run has none.
pub(crate) const PORTAL: ([u8; 4], u16) = ([10, 0, 0, 1], 3260);

/// How long things stay in the trash, as the settings say it.
pub(crate) const TRASH_S: u64 = 100;

/// What control planes keep. It outlives boots.
#[derive(Default)]
pub(crate) struct Records {
    pub(crate) configuration: Record<Configuration>,
    pub(crate) jobs: Record<JobRecord>,
    pub(crate) drives: Record<Vec<AddedDrive>>,
    pub(crate) roster: Record<Vec<KnownDrive>>,
    pub(crate) events: Record<Vec<PoolEvent>>,
    pub(crate) scrubs: Record<Vec<ScrubNote>>,
    /// Of pools that were made.
    pub(crate) made: Record<Made>,
    /// One write in so many fails; none for 0.
    pub(crate) fail_one_of: u64,
}

impl Records {
    /// When a write failed last, in seconds since 1970; 0 for never.
    pub(crate) fn failed_unix_s(&self) -> u64 {
        let of_pools = [&self.made.failed_unix_s(), &self.drives.failed_unix_s()];
        let of_array = [
            &self.configuration.failed_unix_s(),
            &self.roster.failed_unix_s(),
            &self.jobs.failed_unix_s(),
            &self.events.failed_unix_s(),
        ];
        let all = of_pools.into_iter().chain(of_array);
        all.copied().max().unwrap_or(0)
    }
}

/// How often it is looked whether a job has ended: at first, and after a while.
const LOOK_MIN: Duration = Duration::from_micros(20);
const LOOK_MAX: Duration = Duration::from_millis(20);

/// Settles what a crash has left, where all volumes can be had.
///
/// # Errors
/// As the array's, or a volume that was on its way can't be had.
pub(crate) async fn settle(
    control: &Arc<ControlPlane<SimWorld>>,
) -> Result<Settled<SimWorld>, ArrayError> {
    let settled = control.settle().await?;
    match settled.withheld.first() {
        Some(first) => Err(first.error.clone()),
        None => Ok(settled),
    }
}

/// Looks for what an array is without until the boot ends, as a server does. It was to be as `site`
/// says.
pub(crate) fn look_late(
    world: &SimWorld,
    (openings, array): (&Arc<Openings<SimWorld>>, &Arc<ControlPlane<SimWorld>>),
    site: Option<Site>,
) {
    let mut rounds = late_rounds(openings, array, site);
    let here = world.clone();
    world.spawn(async move {
        loop {
            here.sleep(LATE_PAUSE).await;
            if !rounds.look().await {
                return;
            }
        }
    });
}

/// Waits for the end of a job, and gives what came of it; nothing for one that is forgotten.
pub(crate) async fn end_of_job(control: &ControlPlane<SimWorld>, id: u64) -> Option<api::Job> {
    let runtime = control.runtime();
    let began = runtime.now();
    loop {
        let job = control.jobs().job(id).ok()?;
        if job.state.is_ended() {
            return Some(job);
        }
        let passed = runtime.now().since(began);
        runtime.sleep((passed / 8).clamp(LOOK_MIN, LOOK_MAX)).await;
    }
}

/// A control plane that is about to begin.
pub(crate) struct Start<'a> {
    world: &'a SimWorld,
    records: &'a Records,
    runtime: Arc<dyn Runtime>,
    /// The configuration that it finds on record.
    pub(crate) found: Configuration,
    /// One write in so many fails; none for 0. Of the configuration, and of others.
    fail_one_of: (u64, u64),
}

impl<'a> Start<'a> {
    /// Of this boot. At the `first` one its configuration is written without failures.
    pub(crate) fn new(world: &'a SimWorld, records: &'a Records, is_first: bool) -> Self {
        Start {
            world,
            records,
            runtime: Arc::new(OneThread::new(world.clone(), BEGAN_UNIX_S)),
            found: records.configuration.read(&mut world.prng("record")),
            fail_one_of: match is_first {
                true => (0, records.fail_one_of),
                false => (records.fail_one_of, records.fail_one_of),
            },
        }
    }

    /// No record fails that it writes.
    pub(crate) fn without_failures(self) -> Self {
        let fail_one_of = (0, 0);
        Start {
            fail_one_of,
            ..self
        }
    }

    /// The time of its boot.
    pub(crate) fn runtime(&self) -> &dyn Runtime {
        &*self.runtime
    }

    /// The settings on record. At first they are those of an array that has these pools, on these
    /// drives, and these portals.
    ///
    /// # Errors
    /// They break a rule of a site file.
    pub(crate) fn settings(
        &self,
        (specs, media): (&[PoolSpec], &[Vec<Rc<Media>>]),
        portals: &[SocketAddr],
    ) -> Result<Site, String> {
        match &self.found.settings {
            Some(kept) => Ok(kept.as_ref().clone()),
            None => settings(specs, media, portals),
        }
    }

    /// The control plane over `shards`, with each pool on those that `homes` says, before it has
    /// taken over what is on record.
    pub(crate) fn control_plane(
        &self,
        (shards, homes): (&Shards, BTreeMap<String, Vec<usize>>),
        offload: Arc<Offload<SimWorld>>,
        site: &Site,
    ) -> Arc<ControlPlane<SimWorld>> {
        let store = Arc::new(self.configuration_writer());
        offload.set_shards(&shards.handles);
        let directory = Arc::new(Directory::new());
        directory.set_portals(site.portals.iter().map(Portal::from).collect());
        let shared = (directory, offload);
        let kept = (store as Arc<_>, self.recorder());
        let of_jobs = (self.jobs(), Arc::new(NoImages) as Arc<_>);
        let machine = Arc::new(NoMachine) as Arc<_>;
        let of_drives = (self.places(site), self.roster(), machine);
        let handles = (shards.handles.clone(), homes);
        let runtime = Arc::clone(&self.runtime);
        ControlPlane::new(runtime, handles, shared, kept, of_jobs, of_drives, site)
    }

    /// The control plane over the pools on `shards`, once it is what its record and the site `file`
    /// say. Gives, too, the site that late pools may have to be completed by.
    ///
    /// # Errors
    /// As those of a start.
    pub(crate) async fn bring_up(
        &self,
        shards: &Shards,
        openings: &Arc<Openings<SimWorld>>,
        file: Option<&Site>,
    ) -> Result<(Arc<ControlPlane<SimWorld>>, Option<Site>), StartError> {
        let kept = self.found.settings.is_some().then(|| self.found.clone());
        let data = openings.data();
        let described = described(file, kept.as_ref(), (data, openings.made()))?;
        let store = self.configuration_writer();
        let (added, drives) = self.added();
        let before = BeforeStart {
            file: file.cloned(),
            described,
            kept,
            of_before: None,
            store: &store,
            added: (added, &drives),
            files: RecordFiles {
                configuration: data,
                hosts: data,
            },
        };
        let roster = self.roster();
        let pools = before.open_pools(openings, &shards.handles, &roster);
        let pools = pools.await?;
        let offload = Arc::new(Offload::new(None, Default::default()));
        let array = self.control_plane((shards, pools.homes()), offload, &pools.described);
        let site = pools.configure((&array, openings)).await?;
        Ok((array, site))
    }

    fn configuration_writer(&self) -> Writer<Configuration> {
        let (fails_one_of, _) = self.fail_one_of;
        let writes = self.world.prng("record").stream("writes");
        let record = &self.records.configuration;
        Writer::new(record, &self.runtime, writes, fails_one_of)
    }

    /// The jobs that it finds.
    fn jobs(&self) -> Jobs {
        let (kept, store) = self.kept("record of jobs", &self.records.jobs);
        Jobs::new(Arc::clone(&self.runtime), Arc::new(store), kept)
    }

    /// The roster that it finds.
    pub(crate) fn roster(&self) -> Roster {
        let (known, record) = self.kept("record of the roster", &self.records.roster);
        Roster::new(known, Arc::new(record))
    }

    /// The events that it finds, and what adds to them.
    fn recorder(&self) -> Recorder {
        let (earlier, record) = self.kept("record of events", &self.records.events);
        let record = EventWriter::new(record, earlier.clone());
        Recorder::new(earlier, Arc::new(record))
    }

    /// How far it finds that scrubs were, and what keeps that.
    pub(crate) fn scrubs(&self) -> (Arc<dyn Store<Vec<ScrubNote>>>, Vec<ScrubNote>) {
        let (notes, record) = self.kept("record of scrubs", &self.records.scrubs);
        (Arc::new(record), notes)
    }

    /// Where it finds that drives are.
    fn places(&self, site: &Site) -> DrivePlaces {
        let (added, record) = self.added();
        DrivePlaces::new("/data".into(), site, added, Arc::new(record))
    }

    /// The drives that it finds were added, and what keeps them.
    pub(crate) fn added(&self) -> (Vec<AddedDrive>, Writer<Vec<AddedDrive>>) {
        self.kept("record of drives", &self.records.drives)
    }

    /// The pools that it finds were made.
    pub(crate) fn made(&self) -> MadePools {
        let (made, record) = self.kept("record of pools", &self.records.made);
        MadePools::new(made, Arc::new(record))
    }

    /// What it finds on a record, and what writes that; `name` is that of their stream of chances.
    fn kept<T>(&self, name: &str, record: &Record<T>) -> (T, Writer<T>)
    where
        T: Clone + Default + Send + 'static,
    {
        let prng = &mut self.world.prng(name);
        let kept = record.read(prng);
        let (writes, fails_one_of) = (prng.stream("writes"), self.fail_one_of.1);
        let writer = Writer::new(record, &self.runtime, writes, fails_one_of);
        (kept, writer)
    }
}
