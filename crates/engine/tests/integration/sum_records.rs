//! Records of sums in the log: blocks of sums wait for many changes, and a crash loses none of them.

use crate::common::{DRIVE_BYTES, PAGE, Shelf, bytes, content, spec, thin};
use base::VolumeOffset;
use engine::store::counts::IoCounts;
use engine::{Lane, Level, World};
use std::time::Duration;
use world_sim::SimWorld;

const BLOCK: usize = 4096;
const PAGES: usize = 48;
const ROUNDS: usize = 12;

/// The block of each page that a round writes.
fn place(page: usize, round: usize) -> VolumeOffset {
    VolumeOffset((page * PAGE + round % (PAGE / BLOCK) * BLOCK) as u64)
}

fn seed_of(page: usize, round: usize) -> u64 {
    (100 + round * PAGES + page) as u64
}

/// Writes a block of each page in each round. The log goes round several times, and is never at rest.
async fn write_busily(pool: &Lane<SimWorld>, rounds: usize) -> (IoCounts, IoCounts) {
    let volume = pool.volume("v").unwrap();
    let before = pool.store().io();
    for round in 0..rounds {
        for page in 0..PAGES {
            let data = content(pool.world(), seed_of(page, round), BLOCK);
            volume.write(place(page, round), data).await.unwrap();
        }
    }
    (before, pool.store().io())
}

/// A pool whose last owner ended after so many rounds, while its log had records; `bug` was planted there.
fn ended_busily(level: Level, (rounds, bug): (usize, Option<&str>)) -> Shelf {
    let shelf = Shelf::of_disks(4, DRIVE_BYTES);
    let size = PAGES * PAGE;
    shelf
        .create(spec("pool", level), async |pool| {
            let volume = pool.create_volume(thin("v", size as u64)).await.unwrap();
            let data = content(pool.world(), 1, size);
            volume.write(VolumeOffset(0), data).await.unwrap();
            pool.store().drain().await.unwrap();
            pool.world().plant(bug);
            let (before, after) = write_busily(&pool, rounds).await;
            let records = pool.store().integrity.stats().records;
            assert!(records > 0, "no record in {} writes", PAGES * rounds);
            let sum_writes = after.sum_writes.count - before.sum_writes.count;
            assert!(
                sum_writes * 3 < (PAGES * rounds) as u64,
                "{sum_writes} writes of sums for {} blocks",
                PAGES * rounds
            );
        })
        .unwrap();
    shelf
}

/// Blocks that read as what was written last, and blocks that did not match their sums.
async fn read_all(pool: &Lane<SimWorld>, rounds: usize) -> (usize, u64) {
    let volume = pool.volume("v").unwrap();
    let mut right = 0;
    for round in rounds - PAGE / BLOCK..rounds {
        for page in 0..PAGES {
            let read = volume.read(place(page, round), BLOCK).await;
            let wanted = bytes(seed_of(page, round), BLOCK);
            right += usize::from(read.is_ok_and(|found| found.to_vec() == wanted));
        }
    }
    (right, pool.store().counts.bad_blocks.get())
}

#[test]
fn a_busy_pool_records_sums_and_a_crash_loses_none() {
    for level in [Level::Raid5, Level::Raid10 { copies: 2 }] {
        let shelf = ended_busily(level, (ROUNDS, None));
        shelf.open(async |pool| {
            let all = PAGES * PAGE / BLOCK;
            assert_eq!(read_all(&pool, ROUNDS).await, (all, 0), "{level:?}");
            pool.store().drain().await.unwrap();
            assert_eq!(pool.info().log_used_bytes, 0);
            assert_eq!(pool.store().integrity.stats().dirty, 0);
            assert_eq!(read_all(&pool, ROUNDS).await, (all, 0), "{level:?}");
        });
    }
}

#[test]
fn without_its_records_a_log_has_not_all_sums() {
    // Where the log ends decides what of its records has gone.
    let shows = |rounds: usize| {
        let shelf = ended_busily(Level::Raid5, (rounds, Some("records of sums not held")));
        let opened = shelf.try_open(async |pool| read_all(&pool, rounds).await);
        opened.is_err() || opened.is_ok_and(|(_, bad_blocks)| bad_blocks > 0)
    };
    assert!((ROUNDS..ROUNDS + 8).any(shows));
}

#[test]
fn records_that_an_opening_found_are_written_in_time() {
    let shelf = ended_busily(Level::Raid5, (ROUNDS, None));
    shelf.open(async |pool| {
        let store = pool.store();
        assert!(store.integrity.has_unflushed());
        while store.integrity.has_unflushed() || pool.info().log_used_bytes > 0 {
            pool.world().sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(read_all(&pool, ROUNDS).await, (PAGES * PAGE / BLOCK, 0));
    });
}
