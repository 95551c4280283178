//! Volumes that move from one simulated pool to another while they are used.

use crate::common::{PAGE, Shelf, bytes, content, spec, thick, thin};
use base::VolumeOffset;
use engine::pool::OtherPool;
use engine::volume::{Mirror, Stage, VolumeIo};
use engine::{IoErrorKind, Lane, Level, PoolErrorKind, PoolSpec, Volume, World};
use futures_util::future::{join, join_all};
use std::rc::Rc;
use std::time::Duration;
use world_sim::SimWorld;

const MIRROR: Level = Level::Raid10 { copies: 2 };
const SIZE: usize = 40 * PAGE;

/// Drives of two pools, `a` and `b`.
struct Two {
    a: Shelf,
    b: Shelf,
}

fn other(pool: &Lane<SimWorld>) -> OtherPool {
    let info = pool.info();
    OtherPool {
        uuid: info.uuid,
        name: info.name,
    }
}

impl Two {
    /// Pool `a` has the volume `v` with content in it, pool `b` nothing.
    fn new() -> Two {
        Two::with(spec("b", MIRROR))
    }

    fn with(b: PoolSpec) -> Two {
        let (a, shelf) = (Shelf::new(2), Shelf::new(2));
        let made = a.create(spec("a", MIRROR), async |pool| {
            let volume = pool.create_volume(thin("v", SIZE as u64)).await.unwrap();
            let world = pool.world().clone();
            let data = content(&world, 1, 8 * PAGE);
            volume.write(VolumeOffset(0), data).await.unwrap();
            let data = content(&world, 2, PAGE);
            let at = VolumeOffset(20 * PAGE as u64);
            volume.write(at, data).await.unwrap();
            pool.close().await.unwrap();
        });
        made.unwrap();
        let made = shelf.create(b, async |pool| pool.close().await.unwrap());
        made.unwrap();
        Two { a, b: shelf }
    }

    /// Runs `test` over both, in one world, which then ends as if the power went.
    fn open<T>(&self, test: impl AsyncFnOnce(Lane<SimWorld>, Lane<SimWorld>) -> T) -> T {
        self.a.open(async |a| {
            let world = a.world().clone();
            let drives = self.b.drives(&world);
            let b = Lane::open(world, drives).await.unwrap();
            test(a, b).await
        })
    }
}

async fn begin(
    a: &Lane<SimWorld>,
    b: &Lane<SimWorld>,
    name: &str,
) -> (Volume<SimWorld>, Rc<Mirror>) {
    let there = a.volume(name).unwrap();
    let to = copy_of(&there, a, b).await;
    a.begin_departure(name, to, None).await.unwrap()
}

async fn copy_of(
    there: &Volume<SimWorld>,
    a: &Lane<SimWorld>,
    b: &Lane<SimWorld>,
) -> Rc<dyn VolumeIo> {
    let (info, properties, from) = (there.info(), there.properties(), other(a));
    let copy = b.begin_arrival(&info, &properties, &from).await;
    Rc::new(copy.unwrap())
}

async fn hand_over(a: &Lane<SimWorld>, b: &Lane<SimWorld>, volume: &Volume<SimWorld>) -> Duration {
    let arrive = async |info, properties| b.arrive(&info, &properties).await;
    let uuid = volume.info().uuid;
    a.hand_over(uuid, &other(b), arrive).await.unwrap()
}

async fn finish(a: &Lane<SimWorld>, b: &Lane<SimWorld>, volume: &Volume<SimWorld>) {
    let uuid = VolumeIo::info(volume).uuid;
    a.end_departure(uuid).await.unwrap();
    b.end_arrival(uuid).await.unwrap();
}

async fn move_to(a: &Lane<SimWorld>, b: &Lane<SimWorld>, name: &str) -> Volume<SimWorld> {
    let (volume, mirror) = begin(a, b, name).await;
    volume.copy_to(&mirror).await.unwrap();
    hand_over(a, b, &volume).await;
    finish(a, b, &volume).await;
    volume
}

async fn read(volume: &Volume<SimWorld>, at: usize, len: usize) -> Vec<u8> {
    let read = volume.read(VolumeOffset(at as u64), len).await;
    read.unwrap().to_vec()
}

async fn check_content(volume: &Volume<SimWorld>) {
    assert!(read(volume, 0, 8 * PAGE).await == bytes(1, 8 * PAGE));
    assert!(read(volume, 20 * PAGE, PAGE).await == bytes(2, PAGE));
    assert!(read(volume, 21 * PAGE, 4 * PAGE).await == vec![0; 4 * PAGE]);
}

#[test]
fn a_volume_keeps_what_it_is_and_sparse_stays_sparse() {
    let two = Two::new();
    let (uuid, properties) = two.open(async |a, b| {
        let change = engine::pool::AttributesChange {
            name: None,
            attributes: vec![("vm".to_owned(), "web01".to_owned())],
        };
        a.change_attributes("v", &change).await.unwrap();
        let (info, properties) = {
            let there = a.volume("v").unwrap();
            (there.info(), there.properties())
        };
        let old = move_to(&a, &b, "v").await;
        let there = b.volume("v").unwrap();
        assert_eq!(there.info().uuid, info.uuid);
        assert_eq!(there.info().mapped_bytes, info.mapped_bytes);
        assert_eq!(there.properties(), properties);
        assert!(a.volume("v").is_none() && a.volumes().is_empty());
        assert_eq!(a.info().mapped_bytes, 0, "it leaves nothing behind");
        // Who had it before goes on there.
        check_content(&old).await;
        let data = content(a.world(), 7, 4096);
        old.write(VolumeOffset(0), data).await.unwrap();
        assert!(read(&there, 0, 4096).await == bytes(7, 4096));
        old.clear(VolumeOffset(0), 4096).await.unwrap();
        assert!(read(&there, 0, 4096).await == vec![0; 4096]);
        old.flush().await.unwrap();
        let mapping = VolumeIo::mapping(&old, VolumeOffset(0)).await.unwrap();
        assert!(mapping.is_mapped);
        (info.uuid, properties)
    });
    two.open(async |a, b| {
        assert!(a.volumes().is_empty());
        let there = b.volume("v").unwrap();
        assert_eq!((there.info().uuid, there.properties()), (uuid, properties));
        // And back again.
        move_to(&b, &a, "v").await;
        let back = a.volume("v").unwrap();
        assert!(read(&back, 4096, PAGE).await == bytes(1, 2 * PAGE)[4096..4096 + PAGE]);
        assert_eq!(b.info().mapped_bytes, 0);
    });
}

#[test]
fn what_is_written_while_it_moves_is_there_afterwards() {
    let two = Two::new();
    two.open(async |a, b| {
        let world = a.world().clone();
        let volume = a.volume("v").unwrap();
        // Odd sectors, in and across blocks, pages, and what is copied together.
        let writes = (0..200u64).map(|n| {
            let (world, volume) = (world.clone(), volume.clone());
            async move {
                world.sleep(Duration::from_micros(n * 150)).await;
                let at = VolumeOffset(n * 6 * 512);
                if n % 5 == 4 {
                    volume.clear(at, 3 * 512).await.unwrap();
                    return;
                }
                let data = content(&world, 1000 + n, 3 * 512);
                volume.write(at, data).await.unwrap();
            }
        });
        let moving = async {
            let (volume, mirror) = begin(&a, &b, "v").await;
            volume.copy_to(&mirror).await.unwrap();
            world.sleep(Duration::from_millis(5)).await;
            hand_over(&a, &b, &volume).await;
            finish(&a, &b, &volume).await;
        };
        join(moving, join_all(writes)).await;
        let there = b.volume("v").unwrap();
        let first = bytes(1, 8 * PAGE);
        for n in 0..200usize {
            let at = n * 6 * 512;
            let expected = match n % 5 {
                4 => vec![0; 3 * 512],
                _ => bytes(1000 + n as u64, 3 * 512),
            };
            assert!(read(&there, at, 3 * 512).await == expected, "write {n}");
            let beside = at + 3 * 512;
            let expected = first.get(beside..beside + 3 * 512);
            let expected = expected.map_or(vec![0; 3 * 512], <[u8]>::to_vec);
            assert!(
                beside + 3 * 512 > first.len() || read(&there, beside, 3 * 512).await == expected
            );
        }
    });
}

#[test]
fn a_move_that_was_cut_short_is_gone_on_with_and_what_differs_is_put_right() {
    let two = Two::new();
    two.open(async |a, b| {
        let (volume, mirror) = begin(&a, &b, "v").await;
        volume.copy_to(&mirror).await.unwrap();
    });
    two.open(async |a, b| {
        assert!(b.volume("v").is_none() && b.volumes().is_empty());
        assert_eq!(b.transits()[0].1.stage, Stage::Incoming);
        let volume = a.volume("v").unwrap();
        check_content(&volume).await;
        let data = content(a.world(), 3, 512);
        let at = VolumeOffset(5 * PAGE as u64 + 512);
        volume.write(at, data).await.unwrap();
        let at = VolumeOffset(20 * PAGE as u64);
        volume.clear(at, PAGE as u64).await.unwrap();
        let (volume, mirror) = begin(&a, &b, "v").await;
        volume.copy_to(&mirror).await.unwrap();
        assert_eq!(mirror.progress().data_bytes, PAGE as u64, "what differs");
        hand_over(&a, &b, &volume).await;
        finish(&a, &b, &volume).await;
        let there = b.volume("v").unwrap();
        assert!(read(&there, 5 * PAGE + 512, 512).await == bytes(3, 512));
        assert!(read(&there, 0, 5 * PAGE).await == bytes(1, 8 * PAGE)[..5 * PAGE]);
        assert_eq!(there.info().mapped_bytes, 8 * PAGE as u64);
    });
}

#[test]
fn it_is_withheld_where_it_may_be_old() {
    let two = Two::new();
    let uuid = two.open(async |a, b| {
        let (volume, mirror) = begin(&a, &b, "v").await;
        volume.copy_to(&mirror).await.unwrap();
        hand_over(&a, &b, &volume).await;
        b.volume("v").unwrap().info().uuid
        // Neither pool lets go: a crash.
    });
    let is_withheld = async |pool: &Lane<SimWorld>| {
        let volume = pool.volume("v").unwrap();
        assert!(pool.is_withheld(uuid));
        let refused = volume.read(VolumeOffset(0), 512).await.unwrap_err();
        assert_eq!(refused.kind, IoErrorKind::Withheld);
        let data = content(pool.world(), 1, 512);
        let refused = volume.write(VolumeOffset(0), data).await.unwrap_err();
        assert_eq!(refused.kind, IoErrorKind::Withheld);
        let refused = pool.delete_volume("v").await.unwrap_err();
        assert_eq!(refused.kind, PoolErrorKind::Busy);
    };
    two.open(async |a, b| {
        is_withheld(&a).await;
        is_withheld(&b).await;
        assert_eq!(a.transits()[0].1.stage, Stage::Leaving);
        assert_eq!(b.transits()[0].1.stage, Stage::Arrived);
        a.end_departure(uuid).await.unwrap();
        b.end_arrival(uuid).await.unwrap();
        check_content(&b.volume("v").unwrap()).await;
        assert!(a.volume("v").is_none());
    });
}

#[test]
fn when_it_does_not_arrive_it_stays_and_is_served() {
    let two = Two::new();
    two.open(async |a, b| {
        let (volume, mirror) = begin(&a, &b, "v").await;
        let uuid = volume.info().uuid;
        let early = a.hand_over(uuid, &other(&b), async |_, _| Ok(())).await;
        assert_eq!(early.unwrap_err().kind, PoolErrorKind::Busy, "not copied");
        volume.copy_to(&mirror).await.unwrap();
        b.create_volume(thin("v", 512)).await.unwrap();
        let arrive = async |info, properties| b.arrive(&info, &properties).await;
        let refused = a.hand_over(uuid, &other(&b), arrive).await.unwrap_err();
        assert_eq!(refused.kind, PoolErrorKind::Exists);
        a.call_off_departure(uuid).await.unwrap();
        b.call_off_arrival(uuid).await.unwrap();
        check_content(&volume).await;
        assert_eq!(b.info().mapped_bytes, 0);
        assert!(a.transits().is_empty() && b.transits().is_empty());
    });
    two.open(async |a, _| check_content(&a.volume("v").unwrap()).await);
}

#[test]
fn a_pool_that_gets_full_ends_the_move_and_no_write() {
    // A thick volume has what is free in `b` but for a few pages.
    let two = Two::new();
    two.open(async |a, b| {
        let info = b.info();
        let pages = info.capacity_bytes / PAGE as u64 - 5;
        let size_bytes = pages * PAGE as u64;
        b.create_volume(thick("t", size_bytes)).await.unwrap();
        let (volume, mirror) = begin(&a, &b, "v").await;
        let why = volume.copy_to(&mirror).await.unwrap_err();
        assert!(why.contains("full"), "{why}");
        let data = content(a.world(), 9, PAGE);
        volume.write(VolumeOffset(0), data).await.unwrap();
        let uuid = volume.info().uuid;
        a.call_off_departure(uuid).await.unwrap();
        b.call_off_arrival(uuid).await.unwrap();
        assert!(read(&volume, 0, PAGE).await == bytes(9, PAGE));
        assert_eq!(b.info().mapped_bytes, 0);
    });
}

#[test]
fn a_write_that_fails_half_way_is_in_the_copy_as_it_is_in_the_volume() {
    let two = Two::new();
    two.open(async |a, b| {
        let info = a.info();
        let taken = info.mapped_bytes / PAGE as u64;
        let pages = info.capacity_bytes / PAGE as u64 - taken - 5;
        let size_bytes = pages * PAGE as u64;
        a.create_volume(thick("t", size_bytes)).await.unwrap();
        let (volume, mirror) = begin(&a, &b, "v").await;
        volume.copy_to(&mirror).await.unwrap();
        // Over pages that are there and pages that are not, more than are free.
        let at = 6 * PAGE + 512;
        let data = content(a.world(), 9, 12 * PAGE);
        let full = volume.write(VolumeOffset(at as u64), data).await;
        assert_eq!(full.unwrap_err().kind, IoErrorKind::PoolFull);
        let now = read(&volume, 0, SIZE).await;
        assert!(now[at..at + PAGE] == bytes(9, PAGE), "some of it happened");
        hand_over(&a, &b, &volume).await;
        finish(&a, &b, &volume).await;
        assert!(read(&b.volume("v").unwrap(), 0, SIZE).await == now);
        // Where it is now there is room.
        let data = content(a.world(), 9, 12 * PAGE);
        volume.write(VolumeOffset(at as u64), data).await.unwrap();
    });
}

#[test]
fn a_thick_volume_is_promised_its_pages_before_anything_is_copied() {
    let two = Two::new();
    two.open(async |a, b| {
        let size_bytes = 30 * PAGE as u64;
        a.create_volume(thick("t", size_bytes)).await.unwrap();
        begin(&a, &b, "t").await;
        assert_eq!(b.info().promised_bytes, size_bytes);
        let uuid = a.volume("t").unwrap().info().uuid;
        a.call_off_departure(uuid).await.unwrap();
        b.call_off_arrival(uuid).await.unwrap();
        assert_eq!(b.info().promised_bytes, 0);
        let free = b.info().capacity_bytes;
        b.create_volume(thick("ballast", free - PAGE as u64))
            .await
            .unwrap();
        let there = a.volume("t").unwrap();
        let (info, properties, from) = (there.info(), there.properties(), other(&a));
        let refused = b.begin_arrival(&info, &properties, &from).await;
        assert_eq!(refused.err().unwrap().kind, PoolErrorKind::Full);
        assert!(b.transits().is_empty());
    });
}

#[test]
fn while_it_moves_it_is_not_resized_restored_converted_or_deleted() {
    let two = Two::new();
    two.open(async |a, b| {
        a.clone_volume("v", "v@s", true, 0).await.unwrap();
        let snapshot = a.volume("v@s").unwrap();
        let to: Rc<dyn VolumeIo> = Rc::new(snapshot.clone());
        let refused = a.begin_departure("v@s", to, None).await;
        assert_eq!(refused.err().unwrap().kind, PoolErrorKind::Invalid);
        let (volume, mirror) = begin(&a, &b, "v").await;
        let busy = |outcome: Result<(), engine::PoolError>| {
            assert_eq!(outcome.unwrap_err().kind, PoolErrorKind::Busy);
        };
        busy(a.resize_volume("v", 2 * SIZE as u64).await);
        busy(a.restore("v", "v@s", None, 0).await);
        busy(a.delete_volume("v").await);
        busy(a.trash_volume("v", 0).await);
        let change = engine::pool::VolumeChange::default();
        busy(a.change_volume("v", change).await.map(drop));
        let again: Rc<dyn VolumeIo> = Rc::new(volume.clone());
        busy(a.begin_departure("v", again, None).await.map(drop));
        mirror.fail("called off".to_owned());
        let ended = volume.copy_to(&mirror).await;
        assert_eq!(ended.unwrap_err(), "called off");
        let uuid = volume.info().uuid;
        a.call_off_departure(uuid).await.unwrap();
        b.call_off_arrival(uuid).await.unwrap();
        a.resize_volume("v", 2 * SIZE as u64).await.unwrap();
    });
}

#[test]
fn a_rate_is_kept_to_by_the_clock_of_the_world() {
    let two = Two::new();
    two.open(async |a, b| {
        let there = a.volume("v").unwrap();
        let data = content(a.world(), 3, PAGE);
        let at = VolumeOffset(32 * PAGE as u64);
        there.write(at, data).await.unwrap();
        let to = copy_of(&there, &a, &b).await;
        let rate = Some(64 << 10);
        let (volume, mirror) = a.begin_departure("v", to, rate).await.unwrap();
        let began = a.world().now();
        volume.copy_to(&mirror).await.unwrap();
        // Two pieces of 1 MiB, of which the second waits for the first.
        let took = a.world().now() - began;
        assert!(took >= Duration::from_secs(16), "{took:?}");
    });
}
