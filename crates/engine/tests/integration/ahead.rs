//! Reads ahead: sequential readers find their next data in the cache, and other readers cause none.

use crate::common::{PAGE, Shelf, bytes, content};
use base::{Prng, VolumeOffset};
use engine::store::counts::Purpose;
use engine::{Lane, Level, World};
use std::time::Duration;
use world_sim::SimWorld;

const BLOCK: usize = 4096;
const WHOLE: usize = 8 * PAGE;

/// Reads all of a volume in order, and checks it.
async fn read_through(pool: &Lane<SimWorld>, (name, whole): (&str, Vec<u8>)) {
    let volume = pool.volume(name).unwrap();
    for at in (0..WHOLE).step_by(BLOCK) {
        let found = volume.read(VolumeOffset(at as u64), BLOCK).await.unwrap();
        assert!(found.to_vec() == whole[at..at + BLOCK], "at {at}");
        // The reader looks at what it got.
        pool.world().sleep(Duration::from_micros(50)).await;
    }
}

async fn with_cache(pool: &Lane<SimWorld>) {
    pool.store().drain().await.unwrap();
    pool.store().cache.set_capacity(4 << 20);
}

#[test]
fn a_sequential_reader_finds_most_in_the_cache_and_nothing_is_read_twice() {
    for (level, drives) in [(Level::Raid10 { copies: 2 }, 4), (Level::Raid5, 4)] {
        let shelf = Shelf::with_pool(drives, level);
        shelf.open(async |pool| {
            with_cache(&pool).await;
            read_through(&pool, ("v", bytes(1, WHOLE))).await;
            let (stats, counts) = (pool.store().cache.stats(), &pool.store().counts);
            assert!(stats.hits * 4 > stats.misses * 3 * 4, "{level}: {stats:?}");
            assert!(stats.ahead_bytes > WHOLE as u64 / 2, "{level}: {stats:?}");
            assert_eq!(stats.ahead_used_bytes, stats.ahead_bytes, "{level}");
            let read = counts.bytes(Purpose::HostRead) + counts.bytes(Purpose::AheadRead);
            assert_eq!(read, WHOLE as u64, "{level}");
        });
    }
}

#[test]
fn a_reader_of_a_clone_is_in_order_wherever_its_pages_lie() {
    for (level, drives) in [(Level::Raid10 { copies: 2 }, 4), (Level::Raid5, 4)] {
        let shelf = Shelf::with_pool(drives, level);
        shelf.open(async |pool| {
            pool.clone_volume("v", "snapshot", true, 1).await.unwrap();
            pool.clone_volume("snapshot", "clone", false, 2)
                .await
                .unwrap();
            let (world, mut whole) = (pool.world().clone(), bytes(1, WHOLE));
            // A block over a page of the snapshot's, blocks of two such pages, and a page of its own.
            let changes = [
                (2 * PAGE + BLOCK, BLOCK),
                (4 * PAGE - BLOCK, 2 * BLOCK),
                (6 * PAGE, PAGE),
            ];
            for (tag, (at, len)) in (7..).zip(changes) {
                let volume = pool.volume("clone").unwrap();
                let data = content(&world, tag, len);
                volume.write(VolumeOffset(at as u64), data).await.unwrap();
                whole[at..at + len].copy_from_slice(&bytes(tag, len));
            }
            with_cache(&pool).await;
            read_through(&pool, ("clone", whole)).await;
            let stats = pool.store().cache.stats();
            assert!(stats.hits > stats.misses * 3, "{level}: {stats:?}");
            assert!(
                stats.ahead_used_bytes > WHOLE as u64 / 2,
                "{level}: {stats:?}"
            );
        });
    }
}

#[test]
fn a_block_that_stays_keeps_no_more_than_itself() {
    let shelf = Shelf::with_pool(2, Level::Raid10 { copies: 2 });
    shelf.open(async |pool| {
        pool.store().drain().await.unwrap();
        let buffers = pool.world().buffers().clone();
        let (volume, before) = (pool.volume("v").unwrap(), buffers.outstanding_bytes());
        let capacity = 16 * BLOCK as u64;
        pool.store().cache.set_capacity(capacity);
        for page in (0..WHOLE as u64).step_by(PAGE) {
            // The first block of each page is wanted again, the others are not.
            for len in [PAGE, BLOCK, BLOCK] {
                drop(volume.read(VolumeOffset(page), len).await.unwrap());
            }
        }
        assert!(pool.store().cache.stats().hits >= 16);
        let held = buffers.outstanding_bytes() - before;
        assert!(held as u64 <= capacity, "{held} bytes for {capacity}");
    });
}

#[test]
fn without_a_cache_nothing_is_read_ahead() {
    let shelf = Shelf::with_pool(4, Level::Raid5);
    shelf.open(async |pool| {
        pool.store().drain().await.unwrap();
        read_through(&pool, ("v", bytes(1, WHOLE))).await;
        assert_eq!(pool.store().counts.operations(Purpose::AheadRead), 0);
        assert_eq!(pool.store().cache.stats().ahead_bytes, 0);
    });
}

#[test]
fn what_can_not_be_read_ahead_is_left_to_the_read() {
    let shelf = Shelf::with_pool(4, Level::Raid5);
    shelf.open(async |pool| {
        with_cache(&pool).await;
        let blocks = crate::common::DRIVE_BYTES / 4096;
        let faulty = shelf.named("d1");
        faulty.with_faults(|faults| faults.unreadable.extend(100..blocks));
        read_through(&pool, ("v", bytes(1, WHOLE))).await;
        assert!(pool.info().mended_bytes > 0);
    });
}

#[test]
fn writes_beside_the_reader_are_seen_at_once() {
    for seed in 0..20 {
        let shelf = Shelf::with_pool_of_seed(4, Level::Raid5, 100 * seed);
        shelf.open(async |pool| {
            with_cache(&pool).await;
            let (world, volume) = (pool.world().clone(), pool.volume("v").unwrap());
            let mut prng = Prng::from_seed(seed);
            let mut expected = bytes(1, WHOLE);
            for at in (0..WHOLE).step_by(BLOCK) {
                let found = volume.read(VolumeOffset(at as u64), BLOCK).await.unwrap();
                assert!(found.to_vec() == expected[at..at + BLOCK], "at {at}");
                // Into what is being read ahead.
                let to = (at + prng.between(1, 16) as usize * BLOCK).min(WHOLE - BLOCK);
                let tag = 1_000 + at as u64;
                let data = content(&world, tag, BLOCK);
                volume.write(VolumeOffset(to as u64), data).await.unwrap();
                expected[to..to + BLOCK].copy_from_slice(&bytes(tag, BLOCK));
                if prng.chance(1, 4) {
                    // What is in place is what is read from now on.
                    pool.store().drain().await.unwrap();
                }
            }
            pool.store().drain().await.unwrap();
            for at in (0..WHOLE).step_by(BLOCK) {
                let found = volume.read(VolumeOffset(at as u64), BLOCK).await.unwrap();
                assert!(found.to_vec() == expected[at..at + BLOCK], "at {at}");
            }
        });
    }
}
