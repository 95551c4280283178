//! Bring-up: from a site file and a data directory to an array that serves.
//!
//! Invariants:
//! - Everything that can be checked is checked before anything is made, and
//!   what fails later undoes what it made itself.
//! - The site file is applied once, at the first start; later ones change nothing but that they
//!   make pools that are missing. What the array keeps of itself counts.
//! - A drive that holds something is never made anew: not one with a label, not
//!   one of a pool that was made before, not one that isn't empty.
//! - Two servers never work on one data directory.
//! - What is there is served: a pool that can't be opened, for drives that it can't do
//!   without, holds up itself and the targets that show its volumes, and is looked for until
//!   it is there ([`late`]).

mod budget;
mod descriptors;
mod error;
mod late;

pub use crate::bring_up_error::{BringUpError, BringUpErrorKind};
pub use crate::drive_files::Patience;

use crate::api::{self, ApiListener};
use crate::array::configuration::{Configuration, InFile, before};
use crate::array::{self, AddedDrive, Array, History, JobEdges, Roster};
use crate::data_dir::DataDir;
use crate::directory::{Directory, PORTAL_GROUP, Portal};
use crate::drive_files::FileBays;
use crate::drive_health::SmartDrives;
use crate::front::{Front, FrontLimits, Timeouts};
use crate::images::Images;
use crate::jobs::{ImagePlaces, JobFile};
use crate::offload::{self, Offload};
use crate::shard::{DRAIN_MAX, Shard, ShardHandle, ShardState};
use ::array::bring_up::{self, BeforeStart, PoolsOpen, RecordFiles};
use ::array::openings::{MadePools, Openings};
use ::array::records::Store;
use futures_util::future::join_all;
use late::Late;
use site::{ApiAddress, Site};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use world_real::RealWorld;

/// What to bring up.
#[derive(Clone, Debug)]
pub struct Options {
    /// What it is to be, at the first start; needed then only.
    pub site: Option<Site>,
    /// Where its drive files and records are. Made if it isn't there.
    pub data: PathBuf,
    /// Serve here instead of at the site's portals.
    pub portal: Option<SocketAddr>,
    /// Offer the API here instead of where the settings say.
    pub api: Option<ApiAddress>,
    /// Offer it here when nothing is said.
    pub usual_api: Option<ApiAddress>,
}

/// An array that serves. Ends with [`Running::stop`]; dropped without it, it ends
/// as after a power cut, and recovers at the next start.
pub struct Running {
    array: Arc<Array>,
    front: Front,
    shards: Vec<Shard>,
    api: ApiAddress,
    stop_api: oneshot::Sender<()>,
    api_ended: JoinHandle<std::io::Result<()>>,
    late: Late,
    _data: Arc<DataDir>,
}

/// Brings up an array.
///
/// # Errors
/// What stands in the way, by name, with what can be done. Nothing is left
/// running, and no data directory that was not there before and holds nothing.
pub async fn bring_up(options: Options) -> Result<Running, BringUpError> {
    let data = Arc::new(DataDir::take(&options.data)?);
    let brought_up = bring_up_in(Arc::clone(&data), options).await;
    if brought_up.is_err() {
        data.take_back();
    }
    brought_up
}

async fn bring_up_in(data: Arc<DataDir>, options: Options) -> Result<Running, BringUpError> {
    let Options {
        site,
        data: _,
        portal,
        api,
        usual_api,
    } = options;
    let store = Arc::new(InFile::new(data.configuration_file()));
    let kept = store.read()?;
    let made = array::made_pools(&data)?;
    let described = bring_up::described(site.as_ref(), kept.as_ref(), (data.path(), &made))?;
    let portals = portals(&described, portal);
    let api = api.or_else(|| described.api.listen.clone());
    let api = api.or(usual_api).ok_or_else(no_api_address)?;
    let shard_count = described.shards.unwrap_or_else(fitting_shards);
    let limits = descriptors::fitted(&described, data.path(), shard_count, portals.len())?;
    let (limits, memory_bytes) = budget::fitted(limits);
    let limits = front_limits(&limits, memory_bytes);
    let portals = free_portals(portals, kept.is_none())?;
    let api = open_api(&api).await?;
    let shards = start_shards(shard_count).await?;
    let handles: Vec<ShardHandle> = shards.iter().map(|shard| shard.handle().clone()).collect();
    let known = KnownBeforeStart {
        file: site,
        described,
        store,
        kept,
        openings: openings_in(&data, made),
        added: array::added(data.path())?,
    };
    match furnish(known, &data, &handles, (&portals, &limits)).await {
        Ok((array, front, site)) => {
            let late = Late::begin(site, &array);
            Ok(offer(api, (array, front), shards, late, data))
        }
        Err(error) => {
            stop_shards(shards).await;
            Err(error)
        }
    }
}

/// The pools of this machine.
fn openings_in(data: &DataDir, made: MadePools) -> Arc<Openings<RealWorld>> {
    let path = data.path().to_owned();
    let bays = Arc::new(FileBays::new(path.clone()));
    Arc::new(Openings::new(bays, made, path))
}

fn no_api_address() -> BringUpError {
    let context = "no place for the API's socket: this user has no XDG_RUNTIME_DIR; say one with \
                   --api unix:PATH";
    BringUpError::new(BringUpErrorKind::Address, context)
}

/// What is known before anything is looked at.
struct KnownBeforeStart {
    /// The site file, if there is one.
    file: Option<Site>,
    /// The array's settings; and volumes, hosts and exports as the site file has them.
    described: Site,
    store: Arc<InFile>,
    kept: Option<Configuration>,
    openings: Arc<Openings<RealWorld>>,
    /// The drives that the API added.
    added: Vec<AddedDrive>,
}

impl KnownBeforeStart {
    /// The same, with what versions of before have kept, and the `record` of drives.
    fn in_order<'a>(
        &'a self,
        data: &DataDir,
        record: &'a dyn Store<Vec<AddedDrive>>,
        (configuration, hosts): (&'a Path, &'a Path),
    ) -> BeforeStart<'a> {
        // Versions of before had files of their own.
        let was_kept = self.kept.is_none() && (data.exports_file().exists() || hosts.exists());
        let of_before = || before(&data.exports_file(), hosts).map_err(|error| error.to_string());
        BeforeStart {
            file: self.file.clone(),
            described: self.described.clone(),
            kept: self.kept.clone(),
            of_before: was_kept.then(of_before),
            store: &*self.store,
            added: (self.added.clone(), record),
            files: RecordFiles {
                configuration,
                hosts,
            },
        }
    }

    /// The array over pools that are open.
    fn array(
        &self,
        (data, shards): (&Arc<DataDir>, &[ShardHandle]),
        pools: &PoolsOpen<'_>,
        shared: (Arc<Directory>, Arc<Offload>),
        (roster, jobs): (Roster, JobEdges),
    ) -> Arc<Array> {
        let site = &pools.described;
        let store = Arc::clone(&self.store) as Arc<dyn Store<Configuration>>;
        let drives = array::drive_places(data.path(), site, pools.added.clone());
        Array::new(
            site.name.clone(),
            shards.to_vec(),
            pools.homes(),
            shared,
            (store, History::read(data.events_file())),
            (drives, roster, jobs),
            (site, Arc::downgrade(data), Arc::clone(&self.openings)),
        )
    }
}

/// Everything on the shards: pools, volumes, exports; then the portals. Gives the site, too, that late
/// pools may have to be completed by.
async fn furnish(
    known: KnownBeforeStart,
    data: &Arc<DataDir>,
    shards: &[ShardHandle],
    (portals, limits): (&[Portal], &FrontLimits),
) -> Result<(Arc<Array>, Front, Option<Site>), BringUpError> {
    let shared = (Arc::new(Directory::new()), offload::begin());
    shared.0.allow_algorithms(&known.described.chap);
    let (array, site) = bring_up_array(&known, (data, shards), shared.clone()).await?;
    array.keep_by_itself(array::scrubs(data.path())).await?;
    array.keep_drive_health(Arc::new(SmartDrives::default()));
    let front = Front::open(portals, shared, shards.to_vec(), limits.clone()).await?;
    array.attach_sockets(Arc::new(front.changes()));
    tell_unseen(&array);
    array.resume_jobs();
    Ok((array, front, site))
}

/// The array over its pools, as its records and the site file say; and that site.
async fn bring_up_array(
    known: &KnownBeforeStart,
    (data, shards): (&Arc<DataDir>, &[ShardHandle]),
    shared: (Arc<Directory>, Arc<Offload>),
) -> Result<(Arc<Array>, Option<Site>), BringUpError> {
    let (record, openings) = (array::drive_record(data.path()), &known.openings);
    let (configuration, hosts) = (data.configuration_file(), data.hosts_file());
    let before = known.in_order(data, &*record, (&configuration, &hosts));
    let roster = array::roster(data.path());
    let pools = before.open_pools(openings, shards, &roster).await?;
    let jobs = jobs_of(&pools.described, data)?;
    let array = known.array((data, shards), &pools, shared, (roster, jobs));
    let site = pools.configure((array.control(), openings)).await?;
    Ok((array, site))
}

/// Jobs of before, and what they need of this machine.
///
/// # Errors
/// Their record can't be read or understood.
fn jobs_of(site: &Site, data: &DataDir) -> Result<JobEdges, BringUpError> {
    let file = JobFile::new(data.path());
    let kept = file.read()?;
    let directories = site.images.directories.clone();
    let image_places = Arc::new(ImagePlaces::new(directories, data.path()));
    Ok(JobEdges {
        file,
        kept,
        images: Arc::new(Images(Arc::clone(&image_places))),
        image_places,
    })
}

/// Names the targets that one portal instead of all does not show, since they are limited to
/// others.
fn tell_unseen(array: &Array) {
    let portals = array.directory().portals();
    let Some(instead) = portals.iter().find(|portal| portal.described.is_none()) else {
        return;
    };
    for export in array.exports() {
        let Some(only) = export.access.portals else {
            continue;
        };
        if !only.contains(&instead.address) {
            let only: Vec<String> = only.iter().map(ToString::to_string).collect();
            tracing::warn!(
                "target {} is limited to {}: --portal {} does not show it",
                export.target,
                only.join(", "),
                instead.address
            );
        }
    }
}

/// The portals of the site, or one instead of all of them.
fn portals(site: &Site, instead: Option<SocketAddr>) -> Vec<Portal> {
    match instead {
        Some(address) => vec![Portal {
            described: None,
            address,
            group: PORTAL_GROUP,
        }],
        None => site.portals.iter().map(Portal::from).collect(),
    }
}

fn front_limits(limits: &site::Limits, memory_bytes: u64) -> FrontLimits {
    FrontLimits {
        login_timeout: limits.login_time,
        half_open_max: limits.logins.into(),
        half_open_per_address_max: limits.logins_per_address.into(),
        sessions_max: limits.sessions.into(),
        sessions_per_initiator_max: limits.sessions_per_initiator.into(),
        memory_bytes,
        timeouts: Timeouts {
            silence: limits.silence,
            logout: limits.logout_time,
            data: limits.data_time,
        },
        ..FrontLimits::default()
    }
}

/// The portals that can be opened. Each is opened and closed, so that a port that is taken is
/// found before anything is made. A later start goes without those that can't be, as long as one
/// is left; they are tried again while it serves.
///
/// # Errors
/// The first that can't be opened, where all have to be, or none can.
fn free_portals(portals: Vec<Portal>, is_first: bool) -> Result<Vec<Portal>, BringUpError> {
    let (mut free, mut failed) = (Vec::new(), None);
    for portal in portals {
        let address = portal.address;
        let Err(error) = std::net::TcpListener::bind(address) else {
            free.push(portal);
            continue;
        };
        let error = BringUpError::address(
            &format!("portal {address}"),
            &error,
            "the portal: --portal serves at another one instead, and `ashlar portal` changes \
             what the array keeps",
        );
        if is_first {
            return Err(error);
        }
        tracing::error!("{error}; it is tried again by itself");
        failed.get_or_insert(error);
    }
    match failed.filter(|_| free.is_empty()) {
        Some(error) => Err(error),
        None => Ok(free),
    }
}

async fn open_api(address: &ApiAddress) -> Result<ApiListener, BringUpError> {
    let listener = ApiListener::open(address).await.map_err(|error| {
        let what = format!("API address {address}");
        let place = "[api] listen in the site file, or --api";
        match address {
            ApiAddress::Tcp(_) => BringUpError::address(&what, &error, place),
            ApiAddress::Unix(_) => BringUpError::socket(&what, &error, place),
        }
    })?;
    if let ApiAddress::Tcp(_) = address {
        tracing::warn!(
            "the API listens on TCP: every program of this machine can connect to it, and those of \
             root and of the server's user are answered; a Unix socket is safer"
        );
    }
    Ok(listener)
}

/// The most shards when the site file says nothing.
const FITTING_SHARDS_MAX: u16 = 4;

/// How many shards fit this machine.
fn fitting_shards() -> u16 {
    // A machine that does not say gets one.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    u16::try_from(processors).map_or(FITTING_SHARDS_MAX, |count| count.min(FITTING_SHARDS_MAX))
}

async fn start_shards(count: u16) -> Result<Vec<Shard>, BringUpError> {
    let mut shards = Vec::new();
    for index in 0..usize::from(count) {
        match Shard::start(index).await {
            Ok(shard) => shards.push(shard),
            Err(error) => {
                stop_shards(shards).await;
                let context = format!("shard {index} can't start: {error}");
                return Err(BringUpError::new(BringUpErrorKind::System, context));
            }
        }
    }
    Ok(shards)
}

async fn stop_shards(shards: Vec<Shard>) -> Vec<(String, engine::PoolError)> {
    let mut failures = Vec::new();
    // Targets on one shard may show volumes of another: sessions end before any pool.
    let drained = shards.iter().map(|shard| {
        let drain = |state: Rc<ShardState>| async move { state.end_sessions().await };
        shard.handle().call(drain)
    });
    // One that has stopped has no sessions; one that does not answer is left alone.
    let _ = tokio::time::timeout(DRAIN_MAX + DRAIN_MAX / 6, join_all(drained)).await;
    for failed in join_all(shards.into_iter().map(Shard::stop)).await {
        failures.extend(failed);
    }
    failures
}

/// Offers the API and gives the whole.
fn offer(
    listener: ApiListener,
    (array, front): (Arc<Array>, Front),
    shards: Vec<Shard>,
    late: Late,
    data: Arc<DataDir>,
) -> Running {
    let api = listener.address();
    let (stop_api, stopped) = oneshot::channel();
    let until_stopped = async move {
        // Also when the array is dropped.
        let _ = stopped.await;
    };
    let api_ended = tokio::spawn(api::serve(
        listener,
        Arc::clone(&array),
        api::Patience::default(),
        until_stopped,
    ));
    Running {
        array,
        front,
        shards,
        api,
        stop_api,
        api_ended,
        late,
        _data: data,
    }
}

impl Running {
    /// The array that was brought up, for requests.
    pub fn array(&self) -> &Arc<Array> {
        &self.array
    }

    /// Where targets are served.
    pub fn portals(&self) -> &[SocketAddr] {
        self.front.portals()
    }

    /// Where the API is.
    pub fn api(&self) -> &ApiAddress {
        &self.api
    }

    /// Takes no more logins, ends commands in flight, closes sessions and pools. What waits for
    /// a drive that hangs is waited for no longer than it has time.
    ///
    /// # Errors
    /// A pool that could not be closed cleanly; it recovers at the next start.
    pub async fn stop(self) -> Result<(), BringUpError> {
        self.array.directory().close();
        tokio::join!(self.late.stop(), self.front.stop());
        // The API may have ended by itself.
        let _ = self.stop_api.send(());
        let api_ended = self.api_ended.await;
        self.array.jobs().stop().await;
        // A shard that has stopped has no news.
        let _ = self.array.record_events(true).await;
        let failures = stop_shards(self.shards).await;
        if let Ok(Err(error)) = api_ended {
            tracing::warn!("the API ended with an error: {error}");
        }
        if failures.is_empty() {
            return Ok(());
        }
        let said = failures
            .iter()
            .map(|(pool, error)| format!("pool {pool}: {error}"));
        let context = format!(
            "not closed cleanly, recovered at the next start: {}",
            said.collect::<Vec<_>>().join("; ")
        );
        Err(BringUpError::new(BringUpErrorKind::Pool, context))
    }
}
