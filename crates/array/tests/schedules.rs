//! Tests of snapshots by the clock, in virtual time.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use array::control::{
    Configuration, ControlPlane, Deletion, NoJobs, OneThread, PlacedVolume, Runtime, Store,
};
use array::directory::Directory;
use array::offload::Offload;
use array::shard::{Link, ShardHandle, ShardState, Visit};
use base::{BufPool, Prng, Time};
use engine::pool::{Level, NamedDrive};
use engine::{Lane, PoolSpec, Provisioning, VolumeSpec, World};
use futures_channel::mpsc;
use futures_util::future::{BoxFuture, ready};
use futures_util::{FutureExt, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::{Media, MediaSpec, Order, Outcome, SimDrive, SimWorld};

const SITE: &str = r#"[site]
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
const BEGAN: u64 = 1_800_000_000;

type Array = Arc<ControlPlane<SimWorld>>;

struct Inbox(mpsc::UnboundedSender<Visit<SimWorld>>);

impl Link<SimWorld> for Inbox {
    fn send(&self, visit: Visit<SimWorld>) -> bool {
        self.0.unbounded_send(visit).is_ok()
    }
}

struct Nothing;

impl Store for Nothing {
    fn keep(&self, _: Configuration) -> BoxFuture<'static, Result<(), String>> {
        ready(Ok(())).boxed()
    }
}

fn media() -> Rc<Media> {
    let spec = MediaSpec::new("d", 64 << 20);
    Rc::new(Media::new(spec, Prng::from_seed(7)))
}

/// A boot over `media` that begins `at_s` seconds after the first; then the power goes.
fn boot(media: &Rc<Media>, at_s: u64, test: impl AsyncFnOnce(Array)) {
    let start = Time(0) + Duration::from_secs(at_s);
    let world = SimWorld::new(Prng::from_seed(7), Order::Shuffled, BufPool::new(), start);
    let here = world.clone();
    let root = async {
        let array = begin(&here, media, at_s == 0).await;
        test(array).await;
    };
    let outcome = world.run(10_000_000, root);
    assert!(matches!(outcome, Ok(Outcome::Done(()))), "it does not end");
    world.power_cut([media]);
}

async fn begin(world: &SimWorld, media: &Rc<Media>, is_first: bool) -> Array {
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
    let edges = (Arc::new(Nothing) as Arc<_>, Arc::new(NoJobs) as Arc<_>);
    let shared = (Arc::new(Directory::new()), offload);
    let site = site::parse("test", SITE).unwrap();
    let array = ControlPlane::new(runtime, (shards, homes), shared, edges, &site);
    array.keep_schedules().await.unwrap();
    array
}

async fn create(array: &Array, name: &str) {
    let spec = VolumeSpec {
        name: name.to_owned(),
        size_bytes: 64 << 10,
        provisioning: Provisioning::Thin,
    };
    let made = array.create_volume("p".to_owned(), spec, Vec::new()).await;
    made.unwrap();
}

async fn rest(array: &Array, seconds: u64) {
    array.runtime().sleep(Duration::from_secs(seconds)).await;
}

async fn snapshots(array: &Array) -> Vec<PlacedVolume> {
    array.snapshots(None).await.unwrap()
}

async fn names(array: &Array) -> BTreeSet<String> {
    let all = snapshots(array).await.into_iter();
    all.map(|one| one.info.name).collect()
}

/// When snapshots were taken, in seconds since the first boot.
async fn times(array: &Array) -> Vec<u64> {
    let all = snapshots(array).await.into_iter();
    let mut times: Vec<u64> = all
        .map(|one| one.about.origin.unwrap().at_unix_s - BEGAN)
        .collect();
    times.sort_unstable();
    times
}

#[test]
fn the_newest_are_kept_and_only_its_own_are_deleted() {
    boot(&media(), 0, async |array| {
        create(&array, "v").await;
        let own = array.take_snapshot("v".to_owned(), "auto1-mine").await;
        let own = own.unwrap().info.name;
        array.add_schedule("v", 60, 2).await.unwrap();
        rest(&array, 1).await;
        assert_eq!(snapshots(&array).await.len(), 2, "the first comes at once");
        rest(&array, 600).await;
        let left = names(&array).await;
        assert_eq!(left.len(), 3, "{left:?}");
        assert!(left.contains(&own));
        let times = times(&array).await;
        assert!(
            (600..=601).contains(&times[2]) && times[2] - times[1] == 60,
            "{times:?}"
        );
        array.remove_schedule("v", 1).await.unwrap();
        // A new one of the same number takes no account of them.
        array.add_schedule("v", 3600, 1).await.unwrap();
        rest(&array, 1).await;
        let now = names(&array).await;
        assert_eq!((now.len(), now.is_superset(&left)), (4, true), "{now:?}");
    });
}

#[test]
fn runs_that_were_missed_are_made_up_for_by_one() {
    let media = media();
    boot(&media, 0, async |array| {
        create(&array, "v").await;
        array.add_schedule("v", 60, 99).await.unwrap();
        rest(&array, 130).await;
        assert_eq!(times(&array).await, [0, 60, 120]);
    });
    boot(&media, 1000, async |array| {
        rest(&array, 5).await;
        assert_eq!(times(&array).await, [0, 60, 120, 1000], "one for all");
        // The next one comes when it would have been anyway.
        rest(&array, 120).await;
        assert_eq!(times(&array).await, [0, 60, 120, 1000, 1020, 1080]);
    });
}

#[test]
fn a_schedule_rests_while_its_volume_is_in_the_trash() {
    boot(&media(), 0, async |array| {
        create(&array, "w").await;
        array.add_schedule("w", 10, 99).await.unwrap();
        rest(&array, 25).await;
        let deleted = array
            .delete_volume("w".to_owned(), Deletion::default())
            .await;
        let stayed = names(&array).await;
        let said: BTreeSet<String> = deleted.unwrap().snapshots.into_iter().collect();
        assert_eq!((said.len(), &said), (3, &stayed));
        rest(&array, 60).await;
        assert_eq!(names(&array).await, stayed);
        array.recover_volume("w".to_owned(), None).await.unwrap();
        rest(&array, 1).await;
        let times = times(&array).await;
        assert_eq!(times.len(), 4, "one for those that were missed: {times:?}");
    });
}

#[test]
fn a_schedule_that_takes_the_place_of_another_in_the_same_second_takes_its_own() {
    boot(&media(), 0, async |array| {
        create(&array, "v").await;
        array.add_schedule("v", 60, 9).await.unwrap();
        rest(&array, 0).await;
        array.runtime().sleep(Duration::from_millis(510)).await;
        array.remove_schedule("v", 1).await.unwrap();
        array.add_schedule("v", 60, 9).await.unwrap();
        array.runtime().sleep(Duration::from_millis(480)).await;
        rest(&array, 1).await;
        let all = names(&array).await;
        assert_eq!(all.len(), 2, "{all:?}");
    });
}
