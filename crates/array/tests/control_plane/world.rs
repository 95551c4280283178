//! A control plane over one pool of one lane, in virtual time.

use array::control::jobs::{JobRecord, Jobs, NoImages};
use array::control::{
    AddedDrive, Configuration, ControlPlane, DrivePlaces, EventRecord, NoMachine, OneThread,
    PoolEvent, Recorder, Roster, Runtime,
};
use array::directory::{Directory, Portal};
use array::offload::Offload;
use array::records::Store;
use array::shard::{Link, ShardHandle, ShardState, Visit};
use base::{BufPool, Prng, Time};
use engine::pool::{Level, NamedDrive};
use engine::{Lane, PoolSpec, Provisioning, VolumeSpec, World};
use futures_channel::mpsc;
use futures_util::future::{BoxFuture, ready};
use futures_util::{FutureExt, StreamExt};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::{Media, MediaSpec, Order, Outcome, SimDrive, SimWorld};

pub(crate) const SITE: &str = r#"[site]
name = "test"
[[portal]]
address = "127.0.0.1:3260"
[[drive]]
name = "d"
device = "/dev/sdx"
[[pool]]
name = "p"
level = "simple"
drives = ["d"]
"#;

/// When the first boot begins.
pub(crate) const BEGAN: u64 = 1_800_000_000;

pub(crate) type Array = Arc<ControlPlane<SimWorld>>;

struct Inbox(mpsc::UnboundedSender<Visit<SimWorld>>);

impl Link<SimWorld> for Inbox {
    fn send(&self, visit: Visit<SimWorld>) -> bool {
        self.0.unbounded_send(visit).is_ok()
    }
}

struct Nothing;

impl<T> Store<T> for Nothing {
    fn keep(&self, _: T) -> BoxFuture<'static, Result<(), String>> {
        ready(Ok(())).boxed()
    }
}

impl EventRecord for Nothing {
    fn add(&self, _: Vec<PoolEvent>) -> BoxFuture<'static, Result<(), String>> {
        ready(Ok(())).boxed()
    }
}

pub(crate) fn media() -> Rc<Media> {
    let spec = MediaSpec::new("d", 64 << 20);
    Rc::new(Media::new(spec, Prng::from_seed(7)))
}

/// A boot over `media` that begins `at_s` seconds after the first; then the power goes.
pub(crate) fn boot(media: &Rc<Media>, at_s: u64, test: impl AsyncFnOnce(Array)) {
    boot_with(media, at_s, Arc::new(Nothing), test);
}

/// As [`boot`], with a record.
pub(crate) fn boot_with(
    media: &Rc<Media>,
    at_s: u64,
    store: Arc<dyn Store<Configuration>>,
    test: impl AsyncFnOnce(Array),
) {
    let drives = Arc::new(Nothing);
    boot_from(
        media,
        at_s,
        (store, drives, Vec::new()),
        async |_, array| {
            test(array).await;
        },
    );
}

/// The records of the configuration and of added drives, and which drives that one has.
pub(crate) type Records = (
    Arc<dyn Store<Configuration>>,
    Arc<dyn Store<Vec<AddedDrive>>>,
    Vec<AddedDrive>,
);

/// As [`boot_with`], with these records.
pub(crate) fn boot_from(
    media: &Rc<Media>,
    at_s: u64,
    records: Records,
    test: impl AsyncFnOnce(SimWorld, Array),
) {
    let start = Time(0) + Duration::from_secs(at_s);
    let world = SimWorld::new(Prng::from_seed(7), Order::Shuffled, BufPool::new(), start);
    let here = world.clone();
    let root = async {
        let array = begin(&here, media, at_s == 0, records).await;
        test(here.clone(), array).await;
    };
    let outcome = world.run(10_000_000, root);
    assert!(matches!(outcome, Ok(Outcome::Done(()))), "it does not end");
    world.power_cut([media]);
}

async fn begin(
    world: &SimWorld,
    media: &Rc<Media>,
    is_first: bool,
    (store, drives, added): Records,
) -> Array {
    let drive = NamedDrive {
        name: "d".to_owned(),
        drive: SimDrive::adversarial(world, media),
    };
    let spec = PoolSpec::new("p", Level::Simple);
    let pool = match is_first {
        true => Lane::create(world.clone(), spec, vec![drive]).await,
        false => Lane::open(world.clone(), vec![drive]).await,
    };
    let state = ShardState::new(0, world.clone());
    state.add_pool(pool.unwrap());
    let (visits, mut inbox) = mpsc::unbounded();
    let shards = vec![ShardHandle::new(0, Arc::new(Inbox(visits)))];
    let here = world.clone();
    world.spawn(async move {
        while let Some(visit) = inbox.next().await {
            here.spawn(visit(Rc::clone(&state)));
        }
    });
    let runtime: Arc<dyn Runtime> = Arc::new(OneThread::new(world.clone(), BEGAN));
    let offload = Arc::new(Offload::new(None, Default::default()));
    offload.set_shards(&shards);
    let homes = BTreeMap::from([("p".to_owned(), vec![0])]);
    let jobs = Jobs::new(
        Arc::clone(&runtime),
        Arc::new(Nothing),
        JobRecord::default(),
    );
    let of_jobs = (jobs, Arc::new(NoImages) as Arc<_>);
    let kept = (store, Recorder::new(Vec::new(), Arc::new(Nothing)));
    let site = site::parse("test", SITE).unwrap();
    let directory = Arc::new(Directory::new());
    directory.set_portals(site.portals.iter().map(Portal::from).collect());
    let shared = (directory, offload);
    let places = DrivePlaces::new("/data".into(), &site, added, drives);
    let roster = Roster::new(Vec::new(), Arc::new(Nothing));
    let of_drives = (places, roster, Arc::new(NoMachine) as Arc<_>);
    let shards = (shards, homes);
    let array = ControlPlane::new(runtime, shards, shared, kept, of_jobs, of_drives, &site);
    array.keep_schedules().await.unwrap();
    array
}

pub(crate) async fn create(array: &Array, name: &str) {
    let spec = VolumeSpec {
        name: name.to_owned(),
        size_bytes: 64 << 10,
        provisioning: Provisioning::Thin,
    };
    let made = array.create_volume("p".to_owned(), spec, Vec::new()).await;
    made.unwrap();
}
