//! The allocation of pages when they run out: thick volumes, full pools, zeroes, thresholds.

use crate::common::{DRIVE_BYTES, PAGE, Shelf, bytes, content, spec, thick, thin};
use base::{BLOCK_BYTES, VolumeOffset};
use engine::pool::maintenance::fullness::{Fullness, Thresholds};
use engine::pool::{EventKind, VolumeChange, planned_capacity_bytes};
use engine::{IoErrorKind, Lane, Level, PoolErrorKind, Provisioning, Volume, World};
use futures_util::future::join;
use std::time::Duration;
use world_sim::{Outcome, SimWorld};

const RAID10: Level = Level::Raid10 { copies: 2 };
const P: u64 = PAGE as u64;

fn page(index: u64) -> VolumeOffset {
    VolumeOffset(index * P)
}

/// Writes a block into each page from the first on until the pool is full; how many it
/// took.
async fn fill(pool: &Lane<SimWorld>, volume: &Volume<SimWorld>) -> u64 {
    for index in 0.. {
        let data = content(pool.world(), index, BLOCK_BYTES);
        match volume.write(page(index), data).await {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.kind, IoErrorKind::PoolFull, "{error}");
                return index;
            }
        }
    }
    unreachable!("a pool has an end")
}

async fn reads(volume: &Volume<SimWorld>, at: VolumeOffset, expected: &[u8]) {
    let read = volume.read(at, expected.len()).await.unwrap().to_vec();
    assert!(read == expected, "at {at}");
}

#[test]
fn what_a_pool_will_hold_is_known_before_it_is_made() {
    for (level, drives) in [
        (RAID10, 4),
        (Level::Raid5, 4),
        (Level::Raid6, 5),
        (Level::Simple, 1),
    ] {
        let planned = planned_capacity_bytes(&spec("p", level), 1, &[(level, drives, DRIVE_BYTES)]);
        let planned = planned.unwrap();
        Shelf::with_pool(drives, level).open(async |pool| {
            assert_eq!(pool.info().capacity_bytes, planned, "{level}");
        });
    }
    let small = planned_capacity_bytes(&spec("p", RAID10), 1, &[(RAID10, 4, 64 << 10)]);
    assert_eq!(small.unwrap_err().kind, PoolErrorKind::TooSmall);
}

#[test]
fn thick_volumes_take_no_page_at_first_and_never_find_the_pool_full() {
    let shelf = Shelf::with_pool(4, RAID10);
    shelf.open(async |pool| {
        // Leave old content where the new pages will be.
        pool.delete_volume("v").await.unwrap();
        let size = 3 * P + 512;
        let volume = pool.create_volume(thick("t", size)).await.unwrap();
        assert_eq!(volume.info().mapped_bytes, 0);
        assert_eq!(volume.info().promised_bytes, 4 * P);
        reads(&volume, page(0), &vec![0; size as usize]).await;
        pool.resize_volume("t", 6 * P).await.unwrap();
        assert_eq!(pool.info().promised_bytes, 6 * P);

        let capacity = pool.info().capacity_bytes;
        let free = capacity - 6 * P;
        let error = pool.create_volume(thick("u", free + 512)).await;
        let error = error.err().unwrap();
        assert_eq!(error.kind, PoolErrorKind::Full);
        let (needed, left) = base::size::human_pair(free + P, free);
        let named = format!("needs {needed} more, and pool 'pool' has {left} left");
        assert!(error.context.contains(&named), "{error}");
        assert_eq!(pool.info().promised_bytes, 6 * P, "nothing is left behind");

        let greedy = pool.create_volume(thin("g", 2 * capacity)).await.unwrap();
        assert_eq!(fill(&pool, &greedy).await, free / P);
        let error = pool.resize_volume("t", 7 * P).await.unwrap_err();
        assert_eq!(error.kind, PoolErrorKind::Full);
        for index in 0..6 {
            let data = content(pool.world(), 100 + index, 512);
            volume.write(page(index), data).await.unwrap();
        }
        let info = pool.info();
        assert_eq!((info.promised_bytes, info.mapped_bytes), (0, capacity));
    });
    shelf.open(async |pool| {
        let volume = pool.volume("t").unwrap();
        for index in 0..6 {
            reads(&volume, page(index), &bytes(100 + index, 512)).await;
        }
        assert_eq!(volume.info().provisioning, Provisioning::Thick);
    });
}

#[test]
fn volumes_become_thick_and_thin_while_they_are_used() {
    let shelf = Shelf::with_pool(2, RAID10);
    let to = |provisioning| VolumeChange {
        provisioning: Some(provisioning),
        ..VolumeChange::default()
    };
    shelf.open(async |pool| {
        let capacity = pool.info().capacity_bytes;
        let big = pool.create_volume(thin("big", 2 * capacity)).await.unwrap();
        let error = pool.change_volume("big", to(Provisioning::Thick)).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind, PoolErrorKind::Full);
        assert!(error.context.contains("'big' needs"), "{error}");
        assert_eq!(big.info().promised_bytes, 0);

        let small = pool.create_volume(thin("small", 4 * P)).await.unwrap();
        let data = content(pool.world(), 1, 512);
        small.write(page(1), data).await.unwrap();
        let info = pool.change_volume("small", to(Provisioning::Thick)).await;
        assert_eq!(info.unwrap().promised_bytes, 3 * P);
        fill(&pool, &big).await;
        let data = content(pool.world(), 2, 512);
        small.write(page(3), data).await.unwrap();
        // Cleared, it keeps its page; thin again, it gives what it does not use.
        small.clear(page(1), P).await.unwrap();
        assert_eq!(small.info().mapped_bytes, 2 * P);
    });
    shelf.open(async |pool| {
        let small = pool.volume("small").unwrap();
        assert_eq!(small.info().promised_bytes, 2 * P, "after a crash, too");
        let info = pool.change_volume("small", to(Provisioning::Thin)).await;
        assert_eq!(info.unwrap().promised_bytes, 0);
        let big = pool.volume("big").unwrap();
        let pages = pool.info().mapped_bytes / P - 2;
        let data = content(pool.world(), 3, 512);
        big.write(page(pages), data).await.unwrap();
        reads(&small, page(3), &bytes(2, 512)).await;
    });
}

#[test]
fn a_full_pool_takes_overwrites_and_gives_space_back_in_every_way() {
    let shelf = Shelf::with_pool(2, RAID10);
    shelf.open(async |pool| {
        let capacity = pool.info().capacity_bytes;
        // What is kept back counts once there is enough to keep.
        assert!(pool.info().kept_bytes > 0, "{:?}", pool.info());
        let big = pool.create_volume(thin("big", 2 * capacity)).await.unwrap();
        let pages = fill(&pool, &big).await;
        assert_eq!(pool.info().mapped_bytes, capacity);
        let v = pool.volume("v").unwrap();
        let snapshot = pool.clone_volume("v", "v@s", true, 0).await.unwrap();
        let data = content(pool.world(), 7, 2 * PAGE);
        big.write(page(0), data).await.unwrap();
        reads(&big, page(0), &bytes(7, 2 * PAGE)).await;

        // A part of a page that a snapshot has: it is copied, out of what is kept back.
        v.clear(VolumeOffset(512), 1024).await.unwrap();
        let mut expected = bytes(1, 8 * PAGE);
        reads(&snapshot, page(0), &expected).await;
        expected[512..1536].fill(0);
        reads(&v, page(0), &expected).await;
        let data = content(pool.world(), 8, 512);
        let refused = v.write(page(1), data).await.unwrap_err();
        assert_eq!(
            refused.kind,
            IoErrorKind::PoolFull,
            "that is for nobody else"
        );

        // Whole pages, one volume, another one: nothing of it needs a page.
        big.clear(page(0), P).await.unwrap();
        let data = content(pool.world(), 9, 512);
        assert!(
            v.write(page(1), data).await.is_err(),
            "kept back again first"
        );
        big.clear(page(1), P).await.unwrap();
        let data = content(pool.world(), 9, 512);
        v.write(page(1), data).await.unwrap();
        let data = content(pool.world(), 10, 512);
        big.write(page(pages), data).await.unwrap_err();
        pool.delete_volume("v@s").await.unwrap();
        pool.delete_volume("big").await.unwrap();
        assert_eq!(pool.info().mapped_bytes, 8 * P);
        let data = content(pool.world(), 11, 512);
        v.write(page(2), data).await.unwrap();
    });
}

#[test]
fn zeroes_take_no_space_where_that_is_asked_for() {
    let shelf = Shelf::with_pool(2, RAID10);
    let size = 8 * P;
    let zeroes = |pool: &Lane<SimWorld>, len| pool.world().buffers().zeroed(len).freeze();
    let mut model = vec![0; size as usize];
    shelf.open(async |pool| {
        let volume = pool.create_volume_as(thin("z", size), true).await.unwrap();
        assert!(volume.info().detects_zeroes);
        volume
            .write(page(0), zeroes(&pool, 2 * PAGE))
            .await
            .unwrap();
        volume
            .write(VolumeOffset(512), zeroes(&pool, 512))
            .await
            .unwrap();
        assert_eq!(volume.info().mapped_bytes, 0);
        // Data, with a page of zeroes in the middle.
        let mut data = pool.world().buffers().copy_of(&bytes(1, 3 * PAGE));
        data.bytes_mut().unwrap()[PAGE..2 * PAGE].fill(0);
        let data = data.freeze();
        model[512..512 + 3 * PAGE].copy_from_slice(data.bytes().unwrap());
        volume.write(VolumeOffset(512), data).await.unwrap();
        reads(&volume, page(0), &model).await;
        assert_eq!(volume.info().mapped_bytes, 4 * P);
        // A part of a page, in which the rest stays; then all of it.
        volume
            .write(VolumeOffset(4096), zeroes(&pool, 8192))
            .await
            .unwrap();
        model[4096..4096 + 8192].fill(0);
        reads(&volume, page(0), &model).await;
        volume.write(page(1), zeroes(&pool, PAGE)).await.unwrap();
        model[PAGE..2 * PAGE].fill(0);
        reads(&volume, page(0), &model).await;
        assert_eq!(volume.info().mapped_bytes, 3 * P);
        // Without the option, zeroes are data.
        let off = VolumeChange {
            detects_zeroes: Some(false),
            ..VolumeChange::default()
        };
        pool.change_volume("z", off).await.unwrap();
        volume.write(page(5), zeroes(&pool, PAGE)).await.unwrap();
        assert_eq!(volume.info().mapped_bytes, 4 * P);
    });
    shelf.open(async |pool| {
        let volume = pool.volume("z").unwrap();
        reads(&volume, page(0), &model).await;
        assert!(!volume.info().detects_zeroes);
    });
}

#[test]
fn thresholds_are_told_once_on_the_way_up_and_once_on_the_way_down() {
    let shelf = Shelf::with_pool(2, RAID10);
    shelf.open(async |pool| {
        pool.set_thresholds(Thresholds {
            warn_percent: 50,
            alarm_percent: 90,
        });
        let capacity = pool.info().capacity_bytes;
        let look = async || pool.world().sleep(Duration::from_secs(11)).await;
        let told = || {
            let events = pool.events(0).into_iter();
            let kinds = [EventKind::Space, EventKind::SpaceFreed];
            let events = events.filter(|event| kinds.contains(&event.kind));
            events.map(|event| event.text).collect::<Vec<_>>()
        };
        look().await;
        assert_eq!(told(), Vec::<String>::new());
        pool.create_volume(thick("t", capacity / 2 / P * P))
            .await
            .unwrap();
        look().await;
        look().await;
        assert_eq!(pool.fullness().fullness, Fullness::Warn);
        assert_eq!(
            (told().len(), pool.fullness().warnings),
            (1, 1),
            "{:?}",
            told()
        );
        assert!(told()[0].contains("of 50 %"), "{:?}", told());
        let big = pool.create_volume(thin("big", capacity)).await.unwrap();
        fill(&pool, &big).await;
        pool.world().sleep(Duration::from_secs(1)).await;
        assert_eq!(pool.fullness().fullness, Fullness::Full);
        assert!(told()[1].contains("no free page"), "{:?}", told());
        pool.delete_volume("big").await.unwrap();
        look().await;
        pool.delete_volume("t").await.unwrap();
        look().await;
        assert_eq!(pool.fullness().fullness, Fullness::Ample);
        assert_eq!(
            (told().len(), pool.fullness().warnings),
            (4, 1),
            "{:?}",
            told()
        );
        assert!(told()[3].contains("below the warning"), "{:?}", told());
    });
}

#[test]
fn a_pool_is_not_full_any_more_once_space_is_given_back() {
    let shelf = Shelf::with_pool(2, RAID10);
    shelf.open(async |pool| {
        let second = async || pool.world().sleep(Duration::from_secs(1)).await;
        let capacity = pool.info().capacity_bytes;
        let one = pool.create_volume(thin("one", capacity)).await.unwrap();
        fill(&pool, &one).await;
        second().await;
        assert_eq!(pool.fullness().fullness, Fullness::Full);
        // Nothing is given back: it stays so for a while.
        second().await;
        assert_eq!(pool.fullness().fullness, Fullness::Full);
        pool.delete_volume("one").await.unwrap();
        second().await;
        assert_eq!(pool.fullness().fullness, Fullness::Ample);
    });
}

#[test]
fn what_a_volume_holds_alone_is_what_its_deletion_gives_back() {
    let shelf = Shelf::with_pool(2, RAID10);
    shelf.open(async |pool| {
        let of = async |name: &str| {
            let held = pool.holdings(name).await.unwrap();
            assert_eq!(held.mapped_bytes, held.exclusive_bytes + held.shared_bytes);
            (held.exclusive_bytes / P, held.shared_bytes / P)
        };
        assert_eq!(of("v").await, (8, 0));
        pool.clone_volume("v", "v@a", true, 0).await.unwrap();
        assert_eq!((of("v").await, of("v@a").await), ((0, 8), (0, 8)));
        let v = pool.volume("v").unwrap();
        let data = content(pool.world(), 3, 2 * 512);
        v.write(page(1) + (P - 512), data).await.unwrap();
        // The snapshot's are needed for what is not written of the new ones yet.
        assert_eq!((of("v").await, of("v@a").await), ((2, 6), (0, 8)));
        while pool.info().backed_bytes > 0 {
            pool.world().sleep(Duration::from_millis(100)).await;
        }
        assert_eq!((of("v").await, of("v@a").await), ((2, 6), (2, 6)));
        pool.clone_volume("v", "c", false, 0).await.unwrap();
        assert_eq!((of("v").await, of("c").await), ((0, 8), (0, 8)));
        assert_eq!(pool.info().mapped_bytes, 10 * P);
        pool.delete_volume("v").await.unwrap();
        assert_eq!((of("c").await, of("v@a").await), ((2, 6), (2, 6)));
        pool.delete_volume("v@a").await.unwrap();
        assert_eq!((of("c").await, pool.info().mapped_bytes), ((8, 0), 8 * P));
        assert!(pool.holdings("v").await.is_err());
    });
}

/// A volume becomes thick at each moment while a page is given back that its snapshot has, too,
/// so that no room comes of it. How often more was promised than the pool has.
fn promised_too_much(bug: Option<&'static str>) -> usize {
    let shelf = Shelf::with_pool(2, RAID10);
    shelf.open(async |pool| {
        pool.clone_volume("v", "s", true, 0).await.unwrap();
        let info = pool.info();
        let left = info.capacity_bytes - info.mapped_bytes;
        pool.create_volume(thick("all", left)).await.unwrap();
        pool.close().await.unwrap();
    });
    let promises = |step: u64| {
        let shelf = shelf.copied(step);
        let world = shelf.world();
        world.plant(bug);
        let test = async {
            let pool = Lane::open(world.clone(), shelf.drives(&world)).await;
            let pool = pool.unwrap();
            let volume = pool.volume("v").unwrap();
            let becomes_thick = async {
                world.sleep(Duration::from_micros(step)).await;
                let change = VolumeChange {
                    provisioning: Some(Provisioning::Thick),
                    ..VolumeChange::default()
                };
                let _ = pool.change_volume("v", change).await;
            };
            // What is kept has to be copied first, and there is no room.
            let (_, ()) = join(volume.clear(page(1), P), becomes_thick).await;
            let info = pool.info();
            info.mapped_bytes + info.promised_bytes > info.capacity_bytes
        };
        match world.run(u64::MAX, test) {
            Ok(Outcome::Done(too_much)) => too_much,
            other => panic!("step {step}: {other:?}"),
        }
    };
    (0..40).filter(|step| promises(step * 5)).count()
}

#[test]
fn no_more_is_promised_than_there_is_when_a_page_is_given_back() {
    assert_eq!(promised_too_much(None), 0);
    assert!(promised_too_much(Some("thick while pages are given back")) > 0);
}
