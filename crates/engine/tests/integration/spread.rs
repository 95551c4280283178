//! Groups with distributed spares: lost drives, without any drive that stands in.

use crate::common::{PAGE, Shelf, bytes, content, end, spec, thin};
use crate::log_group::until;
use base::VolumeOffset;
use engine::pool::maintenance::{Rates, ScrubFindings};
use engine::raid::{Protection, Spread};
use engine::{Lane, Level, MemberState, NamedDrive, PoolErrorKind, World};
use std::time::Duration;
use world_sim::{SimDrive, SimWorld};

const BLOCK: u64 = 4096;

/// Bytes of the volume: some zones of each shape.
const VOLUME: usize = 48 * PAGE;

fn spread(level: Level, width: u8, spares: u8) -> Protection {
    Protection {
        level,
        spread: Some(Spread { width, spares }),
    }
}

/// A shelf with a pool of one group with distributed spares, and a volume full of data.
fn with_pool(drives: usize, protection: Protection) -> Shelf {
    let shelf = Shelf::new(drives);
    let world = shelf.world();
    let groups = vec![(protection, shelf.drives(&world))];
    let root = async {
        let spec = spec("pool", protection.level);
        let made = Lane::create_groups(world.clone(), spec, groups, Vec::new()).await;
        let pool = made.unwrap();
        let volume = pool.create_volume(thin("v", VOLUME as u64)).await.unwrap();
        let data = content(&world, 1, VOLUME);
        volume.write(VolumeOffset(0), data).await.unwrap();
        pool.close().await.unwrap();
    };
    end(&world, root);
    shelf
}

async fn assert_holds(pool: &Lane<SimWorld>, tag: u64) {
    let volume = pool.volume("v").unwrap();
    let whole = volume.read(VolumeOffset(0), VOLUME).await.unwrap();
    assert!(whole.to_vec() == bytes(tag, VOLUME));
}

async fn write(pool: &Lane<SimWorld>, tag: u64) {
    let data = content(pool.world(), tag, VOLUME);
    let volume = pool.volume("v").unwrap();
    volume.write(VolumeOffset(0), data).await.unwrap();
}

fn lost(pool: &Lane<SimWorld>) -> u64 {
    pool.info().groups[0].places.lost
}

fn away(pool: &Lane<SimWorld>) -> u64 {
    pool.info().groups[0].places.away
}

fn scrubbed_clean(pool: &Lane<SimWorld>) -> bool {
    let info = pool.info();
    let found = info.last_scrub.map(|scrub| scrub.found);
    info.scrubs_ended > 0 && found == Some(ScrubFindings::default())
}

const SHAPES: [(Level, u8, u8, usize); 5] = [
    (Level::Raid10 { copies: 2 }, 2, 2, 8),
    (Level::Raid10 { copies: 3 }, 3, 1, 7),
    (Level::Raid5, 3, 2, 8),
    (Level::Raid6, 4, 1, 9),
    (Level::Raid6, 5, 3, 8),
];

#[test]
fn lost_drives_are_rebuilt_on_the_spares_one_after_the_other() {
    for (level, width, spares, drives) in SHAPES {
        let mut shelf = with_pool(drives, spread(level, width, spares));
        for gone in 0..usize::from(spares) {
            shelf.media.remove(0);
            shelf.open(async |pool| {
                assert!(lost(&pool) > 0, "{level}: nothing lay on drive {gone}");
                assert_holds(&pool, 1).await;
                until(&pool, |pool| lost(pool) == 0).await;
                pool.start_scrub().unwrap();
                until(&pool, scrubbed_clean).await;
                assert_holds(&pool, 1).await;
            });
        }
        // As many more as the level covers, and no spare room for what they held.
        for _ in 0..level.redundancy() {
            shelf.media.remove(0);
        }
        shelf.open(async |pool| {
            assert_holds(&pool, 1).await;
            assert!(lost(&pool) > 0);
        });
        shelf.media.remove(0);
        let (kind, context) = shelf.refusal();
        assert_eq!(kind, PoolErrorKind::Missing, "{level}: {context}");
    }
}

#[test]
fn what_is_written_meanwhile_is_where_the_places_went() {
    for (level, width, spares, drives) in SHAPES {
        let mut shelf = with_pool(drives, spread(level, width, spares));
        let gone = shelf.media.remove(3);
        shelf.open(async |pool| {
            for tag in 2..5 {
                write(&pool, tag).await;
            }
            until(&pool, |pool| lost(pool) == 0).await;
            write(&pool, 5).await;
            pool.store().drain().await.unwrap();
            pool.start_scrub().unwrap();
            until(&pool, scrubbed_clean).await;
        });
        // A drive that was away holds nothing that counts.
        shelf.media.push(gone);
        shelf.media.remove(1);
        shelf.open(async |pool| assert_holds(&pool, 5).await);
    }
}

#[test]
fn places_go_home_when_the_drive_is_replaced() {
    for (level, width, spares, drives) in SHAPES {
        let mut shelf = with_pool(drives, spread(level, width, spares));
        shelf.media.remove(2);
        let new = ("new".to_owned(), crate::common::media("new", 4 << 20));
        shelf.open(async |pool| {
            until(&pool, |pool| lost(pool) == 0).await;
            assert!(away(&pool) > 0, "{level}");
            let drive = SimDrive::adversarial(pool.world(), &new.1);
            let named = NamedDrive {
                name: new.0.clone(),
                drive,
            };
            pool.add_spare(named).await.unwrap();
            write(&pool, 2).await;
            until(&pool, |pool| away(pool) == 0).await;
            write(&pool, 3).await;
            pool.store().drain().await.unwrap();
            let info = pool.info();
            let is_healthy = |state| state == MemberState::Healthy;
            assert!(info.members.iter().all(|member| is_healthy(member.state)));
            pool.start_scrub().unwrap();
            until(&pool, scrubbed_clean).await;
        });
        shelf.media.push(new);
        // Any others may be lost now.
        for _ in 0..level.redundancy() {
            shelf.media.remove(1);
        }
        shelf.open(async |pool| assert_holds(&pool, 3).await);
    }
}

#[test]
fn a_move_that_is_cut_short_begins_anew() {
    let mut shelf = with_pool(8, spread(Level::Raid5, 3, 2));
    shelf.media.remove(3);
    let mut left = u64::MAX;
    for boot in 0..12 {
        left = shelf.open(async |pool| {
            pool.set_rates(Rates {
                rebuild_bytes_per_s: Some(1 << 20),
                ..Rates::default()
            });
            write(&pool, boot).await;
            let before = lost(&pool);
            until(&pool, |pool| lost(pool) < before || lost(pool) == 0).await;
            assert!(
                before <= left,
                "boot {boot}: {before} lost, and {left} before"
            );
            lost(&pool)
        });
    }
    shelf.open(async |pool| {
        until(&pool, |pool| lost(pool) == 0).await;
        assert_holds(&pool, 11).await;
    });
    assert!(left < 12, "{left}");
}

#[test]
fn zones_taken_into_use_without_a_drive_stand_on_the_others() {
    let mut shelf = with_pool(8, spread(Level::Raid6, 5, 3));
    for _ in 0..3 {
        shelf.media.remove(0);
        shelf.open(async |pool| until(&pool, |pool| lost(pool) == 0).await);
    }
    shelf.open(async |pool| {
        let more = thin("more", VOLUME as u64);
        let volume = pool.create_volume(more).await.unwrap();
        let data = content(pool.world(), 7, VOLUME);
        volume.write(VolumeOffset(0), data).await.unwrap();
        assert_eq!(lost(&pool), 0, "a new zone stands on a drive that is gone");
    });
    shelf.media.remove(0);
    shelf.media.remove(0);
    shelf.open(async |pool| {
        let volume = pool.volume("more").unwrap();
        let whole = volume.read(VolumeOffset(0), VOLUME).await.unwrap();
        assert!(whole.to_vec() == bytes(7, VOLUME));
    });
}

#[test]
fn a_group_with_distributed_spares_comes_to_a_pool_and_leaves_it() {
    let mut shelf = Shelf::with_pool(4, Level::Raid6);
    let names: Vec<String> = (0..8).map(|n| format!("n{n}")).collect();
    let new: Vec<_> = names
        .iter()
        .map(|name| (name.clone(), crate::common::media(name, 4 << 20)))
        .collect();
    shelf.open(async |pool| {
        let drives = new.iter().map(|(name, media)| NamedDrive {
            name: name.clone(),
            drive: SimDrive::adversarial(pool.world(), media),
        });
        let of = (spread(Level::Raid6, 5, 3), engine::label::GroupRole::Data);
        assert_eq!(pool.add_group(of, drives.collect()).await.unwrap(), 1);
        pool.remove_group(0).await.unwrap();
        until(&pool, |pool| pool.info().groups.len() == 1).await;
        write_old(&pool).await;
        pool.close().await.unwrap();
    });
    shelf.media = new;
    shelf.media.remove(5);
    shelf.media.remove(1);
    shelf.open(async |pool| {
        let volume = pool.volume("v").unwrap();
        let whole = volume.read(VolumeOffset(0), 8 * PAGE).await.unwrap();
        assert!(whole.to_vec() == bytes(9, 8 * PAGE));
        until(&pool, |pool| lost(pool) == 0).await;
    });
}

async fn write_old(pool: &Lane<SimWorld>) {
    let data = content(pool.world(), 9, 8 * PAGE);
    let volume = pool.volume("v").unwrap();
    volume.write(VolumeOffset(0), data).await.unwrap();
}

#[test]
fn shapes_that_can_not_be_are_refused_by_name() {
    for (protection, drives, allowed) in [
        (
            spread(Level::Raid6, 10, 2),
            13,
            "a multiple of 10 drives and 2 more",
        ),
        (spread(Level::Raid6, 3, 2), 8, "a stripe of 4 to 32 drives"),
        (spread(Level::Raid5, 3, 0), 6, "1 to 8 distributed spares"),
        (spread(Level::Raid50, 6, 2), 8, "level 10, 10x3, 5 or 6"),
        (
            spread(Level::Raid10 { copies: 2 }, 3, 1),
            7,
            "a stripe of 2 drives",
        ),
        (spread(Level::Raid6, 10, 5), 65, "up to 64 in all"),
    ] {
        let shelf = Shelf::new(drives);
        let world = shelf.world();
        let groups = vec![(protection, shelf.drives(&world))];
        let spec = spec("pool", protection.level);
        let made = Lane::create_groups(world.clone(), spec, groups, Vec::new());
        let error = end(&world, async { made.await.err() }).unwrap();
        assert_eq!(error.kind, PoolErrorKind::Invalid);
        assert!(error.context.contains(allowed), "{}", error.context);
    }
}

/// Zones of the volume, and a few more.
const ZONES: u64 = 8;

/// How it ends when a drive misses writes to one zone while places are about to stand elsewhere:
/// whether it has failed, and whether all is right.
fn with_a_miss(shelf: &Shelf, (zone, drive): (u64, usize), bug: Option<&str>) -> (bool, bool) {
    let world = shelf.world();
    world.plant(bug);
    let doors = shelf.drives(&world);
    let root = async {
        let pool = Lane::open(world.clone(), doors).await.unwrap();
        // All that is copied waits for the journal.
        let journal = (64 << 10) / BLOCK..((64 << 10) + (16 << 10)) / BLOCK;
        for (_, media) in &shelf.media {
            media.with_faults(|faults| {
                faults.slow_blocks.extend(journal.clone());
                faults.slow_by = Duration::from_secs(2);
            });
        }
        world.sleep(Duration::from_secs(1)).await;
        let (name, media) = &shelf.media[drive];
        let (info, stride) = (pool.info(), pool.info().groups[0].zone_stride_bytes);
        let first = (info.data_start + zone * stride) / BLOCK;
        let blocks = first..first + stride / BLOCK;
        media.with_faults(|faults| faults.unwritable.extend(blocks));
        let volume = pool.volume("v").unwrap();
        for page in 0..VOLUME / PAGE {
            let data = content(&world, page as u64, BLOCK as usize);
            let at = VolumeOffset((page * PAGE) as u64);
            volume.write(at, data).await.unwrap();
        }
        pool.store().drain().await.unwrap();
        for (_, media) in &shelf.media {
            media.with_faults(|faults| {
                faults.unwritable.clear();
                faults.slow_blocks.clear();
            });
        }
        until(&pool, |pool| lost(pool) == 0).await;
        let members = pool.info().members;
        let member = members.iter().find(|member| member.name == *name);
        let has_failed = member.is_some_and(|member| member.state == MemberState::Failed);
        pool.start_scrub().unwrap();
        until(&pool, |pool| pool.info().scrubs_ended > 0).await;
        (has_failed, scrubbed_clean(&pool))
    };
    end(&world, root)
}

#[test]
fn a_drive_that_misses_a_write_of_a_place_that_settles_has_failed() {
    let mut shelf = with_pool(8, spread(Level::Raid6, 5, 3));
    shelf.media.remove(3);
    let hidden = "fault of a place that settles hidden";
    let parity = "parity on its way left as it was";
    let forgotten = "place on its way gets no writes";
    let (mut hits, mut wrong, mut missed) = (0, 0, 0);
    for zone in 0..ZONES {
        for drive in 0..7 {
            let (has_failed, is_right) = with_a_miss(&shelf.copied(7), (zone, drive), None);
            assert!(is_right, "zone {zone}, drive {drive}");
            let hidden = with_a_miss(&shelf.copied(7), (zone, drive), Some(hidden));
            // Others hold no place there that was on its way, or are no part of the zone.
            hits += u32::from(has_failed && hidden == (false, false));
            let (_, is_right) = with_a_miss(&shelf.copied(7), (zone, drive), Some(parity));
            wrong += u32::from(!is_right);
            let (_, is_right) = with_a_miss(&shelf.copied(7), (zone, drive), Some(forgotten));
            missed += u32::from(!is_right);
        }
    }
    assert!(
        hits > 0,
        "no fault came while a place was about to stand elsewhere"
    );
    assert!(wrong > 0, "no parity changed that was on its way");
    assert!(missed > 0, "nothing was written to a place on its way");
}
