//! Drives that answer nothing, or nothing true, for a while: their content is not given up.

use crate::common::{PAGE, Shelf, bytes, content};
use base::VolumeOffset;
use engine::drives::EventKind;
use engine::pool::maintenance::health::Limits;
use engine::{Lane, Level, World};
use futures_util::future::join;
use std::time::Duration;
use world_sim::{Outcome, SimWorld};

const BLOCK: usize = 4096;

async fn read(pool: &Lane<SimWorld>) -> Option<Vec<u8>> {
    let volume = pool.volume("v").unwrap();
    let read = volume.read(VolumeOffset(0), 8 * PAGE).await;
    read.ok().map(|found| found.to_vec())
}

/// A cable that is pulled: the kernel says EIO, as it does of a damaged block.
#[test]
fn blocks_of_a_drive_that_says_eio_to_everything_for_a_while_are_not_lost() {
    let shelf = Shelf::with_pool(5, Level::Raid5);
    let mut written = bytes(1, 8 * PAGE);
    shelf.open(async |pool| {
        pool.fail_drive("d0").await.unwrap();
        // Others carry logs and metadata for it from now on, and labels say so.
        pool.world().sleep(Duration::from_secs(3)).await;
        let all = 0..(crate::common::DRIVE_BYTES / BLOCK as u64);
        let cut_off = shelf.named("d4");
        cut_off.with_faults(|faults| {
            faults.unreadable.extend(all.clone());
            faults.unwritable.extend(all);
        });
        // Parts of stripes, whose rest has to be read.
        let volume = pool.volume("v").unwrap();
        for page in 0..8 {
            let data = content(pool.world(), 50 + page, BLOCK);
            let at = page as usize * PAGE;
            if volume.write(VolumeOffset(at as u64), data).await.is_ok() {
                written[at..at + BLOCK].copy_from_slice(&bytes(50 + page, BLOCK));
            }
        }
        let _ = volume.read(VolumeOffset(BLOCK as u64), BLOCK).await;
        let _ = pool.store().drain().await;
        pool.world().sleep(Duration::from_secs(20)).await;
        cut_off.with_faults(|faults| {
            faults.unreadable.clear();
            faults.unwritable.clear();
        });
        let events = pool.events(0);
        let lost = events
            .iter()
            .find(|event| event.kind == EventKind::BlockLost);
        assert!(lost.is_none(), "{lost:?}");
    });
    shelf.open(async |pool| assert!(read(&pool).await.unwrap() == written));
}

/// Hosts write a block of pages that a snapshot shares, and the rest is copied from it later:
/// not while a drive is away that has a part of it.
#[test]
fn a_page_is_not_filled_without_a_drive_that_is_away() {
    let shelf = Shelf::with_pool(5, Level::Raid5);
    shelf.open(async |pool| {
        pool.fail_drive("d0").await.unwrap();
        pool.clone_volume("v", "s", true, 0).await.unwrap();
        pool.store().drain().await.unwrap();
        pool.close().await.unwrap();
    });
    let bug = "copied without what a drive has that is away";
    for (bug, is_kept) in [(Some(bug), false), (None, true)] {
        let shelf = shelf.copied(1);
        let world = shelf.world();
        world.plant(bug);
        let test = async {
            let pool = Lane::open(world.clone(), shelf.drives(&world)).await;
            fill_without(&shelf, &pool.unwrap(), "d4").await
        };
        assert_eq!(world.run(u64::MAX, test), Ok(Outcome::Done(is_kept)));
    }
}

/// Writes a block of each page while nothing on a drive can be read. Whether all is as it was
/// written when the drive is back, and the pages have been filled.
async fn fill_without(shelf: &Shelf, pool: &Lane<SimWorld>, drive: &str) -> bool {
    let (away, mut whole) = (shelf.named(drive), bytes(1, 8 * PAGE));
    // What is written can be read again. Of a suspect drive labels are written.
    pool.set_health_limits(Limits {
        errors: u64::MAX,
        ..Limits::default()
    });
    let all = 0..(crate::common::DRIVE_BYTES / BLOCK as u64);
    away.with_faults(|faults| faults.unreadable.extend(all));
    let volume = pool.volume("v").unwrap();
    for page in 0..8 {
        let (tag, at) = (50 + page as u64, page * PAGE);
        let data = content(pool.world(), tag, BLOCK);
        volume.write(VolumeOffset(at as u64), data).await.unwrap();
        whole[at..at + BLOCK].copy_from_slice(&bytes(tag, BLOCK));
    }
    pool.world().sleep(Duration::from_secs(30)).await;
    away.with_faults(|faults| faults.unreadable.clear());
    pool.world().sleep(Duration::from_secs(30)).await;
    read(pool).await.is_some_and(|found| found == whole)
}

/// One failed read, wherever it comes, of the one drive that there is.
#[test]
fn an_opening_that_misses_a_read_refuses_or_has_everything() {
    let (refused, opened) = open_with_failures(1, false);
    assert!(refused >= 5 && opened >= 5, "{refused}, {opened}");
}

/// The drive calls its blocks damaged, as kernels do of one that is cut off for a moment.
#[test]
fn an_opening_that_is_told_of_damage_for_a_moment_has_everything() {
    for failures in [1, 2, 4] {
        let (_, opened) = open_with_failures(failures, true);
        assert!(opened >= 100, "{failures} failures: {opened} opened");
    }
}

/// Opens a pool again and again, with so many failures at all times of the opening. How
/// often that is refused, and how often not.
fn open_with_failures(failures: u32, as_damaged: bool) -> (u32, u32) {
    let (mut refused, mut opened) = (0, 0);
    for step in 0..300 {
        let shelf = Shelf::with_pool(1, Level::Simple);
        let newer = bytes(9, PAGE);
        if step % 2 == 1 {
            // The newest checkpoint is in the other slot.
            shelf.open(async |_| ());
        }
        shelf.open(async |pool| {
            // In the journal and the log only: as after a kill.
            let data = content(pool.world(), 9, PAGE);
            let spec = crate::common::thin("w", PAGE as u64);
            let volume = pool.create_volume(spec).await.unwrap();
            volume.write(VolumeOffset(0), data).await.unwrap();
        });
        let world = shelf.world();
        let test = async {
            let drives = shelf.drives(&world);
            let fail = async {
                world.sleep(Duration::from_micros(step / 2 * 6)).await;
                shelf.named("d0").with_faults(|faults| {
                    faults.failing = failures;
                    faults.failing_as_damaged = as_damaged;
                });
            };
            let (pool, ()) = join(Lane::open(world.clone(), drives), fail).await;
            shelf.named("d0").with_faults(|faults| faults.failing = 0);
            match pool {
                Err(_) => refused += 1,
                Ok(pool) => {
                    opened += 1;
                    let Some(volume) = pool.volume("w") else {
                        panic!("step {step}: the opening has forgotten a volume");
                    };
                    let found = volume.read(VolumeOffset(0), PAGE).await;
                    if let Ok(found) = found {
                        assert!(found.to_vec() == newer, "step {step}");
                    }
                }
            }
        };
        assert!(world.run(u64::MAX, test).is_ok());
        world.power_off();
        shelf.open(async |pool| {
            let volume = pool.volume("w").unwrap();
            let found = volume.read(VolumeOffset(0), PAGE).await.unwrap();
            assert!(found.to_vec() == newer, "step {step}: reopened");
            assert!(read(&pool).await.unwrap() == bytes(1, 8 * PAGE));
        });
    }
    (refused, opened)
}
