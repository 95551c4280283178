//! Drives that fail while they are copied to others, and slow ones that are copied unasked.

use crate::common::{DRIVE_BYTES, PAGE, Shelf, bytes, content, media};
use crate::succession::{
    NEW, RAID10, add, assert_holds, begin, ended, found, gone, has_place, holds, member, set_rate,
    shelf_of, told, with,
};
use base::VolumeOffset;
use engine::pool::maintenance::health::Limits;
use engine::{Lane, Level, MemberState, PoolErrorKind, World};
use std::collections::BTreeSet;
use std::time::Duration;
use world_sim::{Outcome, SimWorld};

const BLOCK: u64 = 4096;

fn state(pool: &Lane<SimWorld>, name: &str) -> Option<MemberState> {
    found(pool, name).map(|member| member.state)
}

/// Runs `test` over the pool on `shelf`, with a bug or without.
fn run(shelf: &Shelf, bug: Option<&str>, test: impl AsyncFnOnce(Lane<SimWorld>)) {
    let world = shelf.world();
    world.plant(bug);
    let doors = shelf.drives(&world);
    let root = async { test(Lane::open(world.clone(), doors).await.unwrap()).await };
    world.run(u64::MAX, root).unwrap();
}

#[test]
fn an_old_drive_that_fails_a_write_is_found_out_though_its_successor_hangs() {
    let hidden = "failed write hidden by a successor that is given up";
    for (level, drives) in [(RAID10, 2), (Level::Simple, 1)] {
        for bug in [None, Some(hidden)] {
            let (shelf, new) = shelf_of(level, drives);
            run(&shelf, bug, async |pool| {
                begin(&pool, "d0", &new).await;
                let data = pool.info().data_start / BLOCK..DRIVE_BYTES / BLOCK;
                let old = shelf.named("d0");
                old.with_faults(|faults| faults.unwritable.extend(data));
                let now = pool.world().now();
                new.1.with_faults(|faults| faults.hangs_from = Some(now));
                let data = content(pool.world(), 2, 8 * PAGE);
                let volume = pool.volume("v").unwrap();
                let writing = async {
                    let written = volume.write(VolumeOffset(0), data).await;
                    written.is_ok() && pool.store().drain().await.is_ok()
                };
                // What comes later is written again.
                let mending = async {
                    pool.world().sleep(Limits::default().hung / 2).await;
                    old.with_faults(|faults| faults.unwritable.clear());
                };
                let (is_good, ()) = futures_util::future::join(writing, mending).await;
                let is_needed = level == Level::Simple;
                assert_eq!(is_good, !is_needed || bug.is_some(), "{level}, {bug:?}");
                let is_out = state(&pool, "d0") == Some(MemberState::Failed);
                assert_eq!(is_out, !is_needed && bug.is_none(), "{level}, {bug:?}");
            });
        }
    }
}

/// How many operations are on their way when an opening has failed in which no drive can be flushed.
fn left_by_failed_opening(bug: Option<&str>) -> u32 {
    let (shelf, new) = shelf_of(Level::Raid5, 5);
    run(&shelf, None, async |pool| {
        begin(&pool, "d0", &new).await;
        pool.close().await.unwrap();
    });
    let shelf = with(&shelf, "none", &new);
    for (_, media) in &shelf.media {
        media.with_faults(|faults| faults.failing_flushes = 1);
    }
    // The successor is none any more, and the labels are begun, before this one has failed. Its
    // heartbeat is done by then.
    let slow = shelf.named("d1");
    slow.with_faults(|faults| faults.slowdown = 30);
    let world = shelf.world();
    world.plant(bug);
    let doors = shelf.drives(&world);
    let root = async {
        let opened = Lane::open(world.clone(), doors).await;
        let failed = opened.err().map(|error| error.kind);
        assert_eq!(failed, Some(PoolErrorKind::Drive));
        slow.running()
    };
    let Outcome::Done(left) = world.run(u64::MAX, root).unwrap() else {
        panic!("the opening does not end");
    };
    slow.with_faults(|faults| faults.slowdown = 1);
    holds(&shelf, 1);
    left
}

#[test]
fn an_opening_that_fails_leaves_no_labels_on_their_way() {
    assert_eq!(left_by_failed_opening(None), 0);
    assert_eq!(
        left_by_failed_opening(Some("failed opening goes on with labels")),
        1
    );
}

/// The block of a drive of two copies where the volume begins; the next is of the same stripe.
async fn first_block(pool: &Lane<SimWorld>, shelf: &Shelf) -> u64 {
    let volume = pool.volume("v").unwrap();
    let strike = |blocks: BTreeSet<u64>| {
        for (_, media) in &shelf.media {
            media.with_faults(|faults| faults.unreadable.clone_from(&blocks));
        }
    };
    for block in pool.info().data_start / BLOCK..DRIVE_BYTES / BLOCK {
        strike(BTreeSet::from([block]));
        if volume.read(VolumeOffset(0), BLOCK as usize).await.is_err() {
            strike(BTreeSet::new());
            return block;
        }
    }
    panic!("it lies nowhere");
}

/// A row is read while the old drive is there, and the other copy of it is mended: the old drive goes
/// meanwhile.
#[test]
fn a_row_reaches_the_successor_of_a_drive_that_is_lost_meanwhile() {
    for bug in [None, Some("row skipped of a copied drive that is lost")] {
        let (shelf, new) = shelf_of(RAID10, 2);
        run(&shelf, bug, async |pool| {
            pool.store().drain().await.unwrap();
            let block = first_block(&pool, &shelf).await;
            // It is looked at row by row, and the second row takes long.
            shelf.named("d0").with_faults(|faults| {
                faults.unreadable.insert(block);
            });
            shelf.named("d1").with_faults(|faults| {
                faults.unreadable.insert(block + 1);
                faults.slow_blocks.insert(block + 1);
                faults.slow_by = Duration::from_secs(2);
            });
            begin(&pool, "d0", &new).await;
            set_rate(&pool, None);
            pool.world().sleep(Duration::from_secs(1)).await;
            pool.fail_drive("d0").await.unwrap();
            ended(&pool).await;
            assert_eq!(member(&pool, "d1").mends, 1, "the row was looked at");
            gone(&shelf, "d1");
            let volume = pool.volume("v").unwrap();
            let whole = volume.read(VolumeOffset(0), 8 * PAGE).await;
            let is_whole = whole.is_ok_and(|whole| whole.to_vec() == bytes(1, 8 * PAGE));
            assert_eq!(is_whole, bug.is_none(), "{bug:?}");
        });
    }
}

/// A pool with a spare whose drive `d1` is slow, until `ends` says so.
async fn slow(
    (pool, shelf): (&Lane<SimWorld>, &Shelf),
    copied_after: Option<Duration>,
    ends: impl Fn() -> bool,
) {
    pool.set_health_limits(Limits {
        copied_after,
        ..Limits::default()
    });
    pool.store().drain().await.unwrap();
    let is_slow = |slowdown| {
        let media = shelf.named("d1");
        media.with_faults(|faults| faults.slowdown = slowdown);
    };
    is_slow(1_000);
    let began = pool.world().now();
    while !ends() {
        assert_holds(pool, 1).await;
        pool.world().sleep(Duration::from_millis(100)).await;
        let waited = pool.world().now().since(began);
        assert!(waited < Duration::from_secs(400), "{:?}", pool.events(0));
    }
    is_slow(0);
}

#[test]
fn a_drive_that_is_slow_for_long_is_copied_to_a_spare() {
    let (shelf, new) = shelf_of(RAID10, 2);
    shelf.open(async |pool| {
        add(&pool, &new).await;
        let after = Duration::from_secs(60);
        let began = pool.world().now();
        slow((&pool, &shelf), Some(after), || has_place(&pool, NEW)).await;
        assert!(pool.world().now().since(began) > after);
        assert_eq!(
            told(&pool, "drive 'd1' is suspect"),
            1,
            "{:?}",
            pool.events(0)
        );
        assert!(found(&pool, "d1").is_none());
        assert_holds(&pool, 1).await;
        pool.close().await.unwrap();
    });
    holds(&with(&shelf, "d1", &new), 1);
}

#[test]
fn a_drive_is_not_copied_that_is_fast_again_in_time_or_must_not_be() {
    for after in [Some(Duration::from_secs(300)), None] {
        let (shelf, new) = shelf_of(RAID10, 2);
        shelf.open(async |pool| {
            add(&pool, &new).await;
            let is_suspect = || state(&pool, "d1") == Some(MemberState::Suspect);
            slow((&pool, &shelf), after, is_suspect).await;
            pool.world().sleep(Duration::from_secs(400)).await;
            assert_eq!(state(&pool, NEW), Some(MemberState::Spare));
            assert_eq!(state(&pool, "d1"), Some(MemberState::Healthy));
        });
    }
}

/// One that waits for its spare is copied at once, and not again after that has failed.
#[test]
fn a_copy_of_a_slow_drive_that_fails_is_not_begun_again_soon() {
    let (shelf, new) = shelf_of(RAID10, 2);
    let other = ("other".to_owned(), media("other", DRIVE_BYTES));
    shelf.open(async |pool| {
        set_rate(&pool, Some(4 << 10));
        add(&pool, &new).await;
        let after = Some(Duration::from_secs(20));
        let is_copied = || member(&pool, "d1").successor.as_deref() == Some(NEW);
        slow((&pool, &shelf), after, is_copied).await;
        pool.fail_drive(NEW).await.unwrap();
        add(&pool, &other).await;
        let since = pool.world().now();
        let is_late = || pool.world().now().since(since) > Duration::from_secs(60);
        slow((&pool, &shelf), after, is_late).await;
        assert_eq!(state(&pool, "d1"), Some(MemberState::Suspect));
        assert_eq!(member(&pool, "d1").successor, None);
        let is_tried = || member(&pool, "d1").successor.as_deref() == Some("other");
        slow((&pool, &shelf), after, is_tried).await;
    });
}
