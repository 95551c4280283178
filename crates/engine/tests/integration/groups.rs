//! Groups that get another level, come and go while the pool is used.

use crate::common::{PAGE, Shelf, bytes, copy, media, spec};
use base::VolumeOffset;
use engine::pool::EventKind;
use engine::pool::maintenance::{Rates, TaskKind};
use engine::{GroupRole, Lane, Level, MemberState, NamedDrive, PoolErrorKind, PoolSpec, World};
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Media, SimDrive, SimWorld};

const RAID10: Level = Level::Raid10 { copies: 2 };

async fn holds(pool: &Lane<SimWorld>) {
    let volume = pool.volume("v").unwrap();
    let whole = volume.read(VolumeOffset(0), 8 * PAGE).await.unwrap();
    assert!(whole.to_vec() == bytes(1, 8 * PAGE));
}

/// Waits until nothing is left to be moved, or to leave.
async fn settled(pool: &Lane<SimWorld>) {
    let is_settled = |pool: &Lane<SimWorld>| {
        let groups = pool.info().groups;
        groups.iter().all(|g| !g.leaving && g.zones_to_empty == 0)
    };
    for _ in 0..1000 {
        if is_settled(pool) {
            return;
        }
        pool.world().sleep(Duration::from_millis(100)).await;
    }
    panic!("{:?}", pool.events(0));
}

/// Drives under these names.
fn named(world: &SimWorld, media: &[(String, Rc<Media>)]) -> Vec<NamedDrive<SimWorld>> {
    let drive = |(name, media): &(String, Rc<Media>)| NamedDrive {
        name: name.clone(),
        drive: SimDrive::adversarial(world, media),
    };
    media.iter().map(drive).collect()
}

/// Blank drives called `n0` and so on.
fn blank(count: usize, bytes: u64) -> Vec<(String, Rc<Media>)> {
    let drive = |n| (format!("n{n}"), media(&format!("n{n}"), bytes));
    (0..count).map(drive).collect()
}

#[test]
fn a_group_goes_to_another_level_and_says_how_far_it_is() {
    for (from, drives, level) in [
        (RAID10, 4, Level::Raid6),
        (RAID10, 6, Level::Raid50),
        (Level::Raid50, 6, Level::Raid6),
    ] {
        let shelf = Shelf::with_pool(drives, from);
        shelf.open(async |pool| {
            let slowly = Rates {
                rebuild_bytes_per_s: Some(PAGE as u64),
                ..Rates::default()
            };
            pool.set_rates(slowly);
            pool.convert_group(0, level).await.unwrap();
            let mut last = 0;
            while last == 0 {
                pool.world().sleep(Duration::from_millis(100)).await;
                let task = pool.info().tasks.pop().expect("it is under way");
                assert_eq!(task.subject, "group 0");
                last = task.done_bytes;
                assert_eq!(task.total_bytes, 8 * PAGE as u64, "what the volume has");
            }
            settled(&pool).await;
            assert_eq!(pool.info().groups[0].level, level);
            holds(&pool).await;
            pool.close().await.unwrap();
        });
        shelf.open(async |pool| {
            assert_eq!(pool.info().groups[0].level, level);
            holds(&pool).await;
        });
    }
}

#[test]
fn a_map_of_many_chunks_is_looked_through_in_turns_while_it_changes() {
    // A page in each chunk of a map: far more of them than are looked at in one turn.
    const CHUNKS: u64 = 100;
    let at = |chunk: u64| VolumeOffset(chunk * 1024 * PAGE as u64);
    let shelf = Shelf::with_pool(4, RAID10);
    let block = |pool: &Lane<SimWorld>, tag| crate::common::content(pool.world(), tag, 4096);
    let holds_all = async |pool: &Lane<SimWorld>| {
        let volume = pool.volume("w").unwrap();
        for chunk in 0..CHUNKS {
            let read = volume.read(at(chunk), 4096).await.unwrap();
            assert!(read.to_vec() == bytes(chunk + 1000, 4096), "chunk {chunk}");
        }
    };
    shelf.open(async |pool| {
        let size = CHUNKS * 1024 * PAGE as u64;
        let volume = pool
            .create_volume(crate::common::thin("w", size))
            .await
            .unwrap();
        for chunk in 0..CHUNKS / 2 {
            let data = block(&pool, chunk);
            volume.write(at(chunk), data).await.unwrap();
        }
        pool.delete_volume("v").await.unwrap();
        pool.convert_group(0, Level::Raid6).await.unwrap();
        for chunk in (0..CHUNKS).rev() {
            let data = block(&pool, chunk + 1000);
            volume.write(at(chunk), data).await.unwrap();
        }
        settled(&pool).await;
        holds_all(&pool).await;
        pool.close().await.unwrap();
    });
    shelf.open(async |pool| holds_all(&pool).await);
}

#[test]
fn a_pool_is_closed_in_the_middle_of_a_conversion() {
    let shelf = Shelf::with_pool(4, RAID10);
    shelf.open(async |pool| {
        let slowly = Rates {
            rebuild_bytes_per_s: Some(64),
            ..Rates::default()
        };
        pool.set_rates(slowly);
        pool.convert_group(0, Level::Raid6).await.unwrap();
        pool.world().sleep(Duration::from_secs(2)).await;
        pool.close().await.unwrap();
        let left = pool.info().groups[0].zones_to_empty;
        assert!(left > 0, "closing waits for all of it");
    });
    shelf.open(async |pool| {
        settled(&pool).await;
        holds(&pool).await;
    });
}

/// Adds a spare, has a drive fail, and waits until the one stands in for the other; how
/// long that took.
async fn time_to_stand_in(pool: &Lane<SimWorld>) -> Duration {
    let spare = named(pool.world(), &blank(1, crate::common::DRIVE_BYTES)).remove(0);
    pool.add_spare(spare).await.unwrap();
    let began = pool.world().now();
    pool.fail_drive("d1").await.unwrap();
    while pool.info().members[1].name == "d1" {
        pool.world().sleep(Duration::from_millis(100)).await;
    }
    pool.world().now().since(began)
}

#[test]
fn a_drive_that_has_failed_waits_for_neither_scrub_nor_conversion() {
    // Four steps of eight seconds each: zones of a scrub, parts of a zone that is emptied.
    for (what, zone_bytes, bytes_per_s) in [
        (TaskKind::Scrub, 64 << 10, 32 << 10),
        (TaskKind::Move, 256 << 10, 16 << 10),
    ] {
        let shelf = Shelf::new(4);
        let spec = PoolSpec {
            zone_bytes: Some(zone_bytes),
            ..spec("pool", RAID10)
        };
        let made = shelf.create(spec, async |pool| {
            let size = 16 * PAGE as u64;
            let volume = pool
                .create_volume(crate::common::thin("v", size))
                .await
                .unwrap();
            let data = crate::common::content(pool.world(), 1, size as usize);
            volume.write(base::VolumeOffset(0), data).await.unwrap();
            pool.store().drain().await.unwrap();
            pool.set_rates(Rates {
                rebuild_bytes_per_s: Some(bytes_per_s),
                scrub_bytes_per_s: Some(bytes_per_s),
                yields: true,
                ..Rates::default()
            });
            match what {
                TaskKind::Scrub => pool.start_scrub().unwrap(),
                _ => pool.convert_group(0, Level::Raid6).await.unwrap(),
            }
            pool.world().sleep(Duration::from_secs(1)).await;
            assert_eq!(pool.info().tasks[0].kind, what);
            let took = time_to_stand_in(&pool).await;
            // It goes on then.
            pool.set_rates(Rates::default());
            settled(&pool).await;
            while what == TaskKind::Scrub && pool.info().scrubs_ended == 0 {
                pool.world().sleep(Duration::from_secs(1)).await;
            }
            let members = pool.info().members;
            assert!(members.iter().all(|m| m.state == MemberState::Healthy));
            took
        });
        let took = made.unwrap();
        assert!(took < Duration::from_secs(10), "{what:?}: {took:?}");
    }
}

#[test]
fn a_conversion_that_would_survive_fewer_losses_is_refused() {
    let shelf = Shelf::with_pool(6, Level::Raid10 { copies: 3 });
    shelf.open(async |pool| {
        let error = pool.convert_group(0, Level::Raid50).await.unwrap_err();
        assert_eq!(error.kind, PoolErrorKind::Invalid);
        let why = "from level 10x3 to 50 while it is used, where it would survive the loss of fewer \
                   drives: possible is 6";
        assert!(error.context.contains(why), "{error}");
        assert_eq!(pool.info().groups[0].level, Level::Raid10 { copies: 3 });
        pool.convert_group(0, Level::Raid6).await.unwrap();
        settled(&pool).await;
        assert_eq!(pool.info().groups[0].level, Level::Raid6);
        holds(&pool).await;
    });
}

#[test]
fn what_is_not_possible_is_refused_with_the_reason() {
    let shelf = Shelf::with_pool(4, RAID10);
    shelf.open(async |pool| {
        let refused = async |index, level, kind, part: &str| {
            let error = pool.convert_group(index, level).await.unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.context.contains(part), "{part:?} is not in: {error}");
        };
        use PoolErrorKind::{Invalid, NotFound};
        let possible = "group 0 of pool 'pool' can't go from level 10 to 5 while it is used: \
                        possible is 50 or 6";
        refused(0, Level::Raid5, Invalid, possible).await;
        refused(0, Level::Raid50, Invalid, "has 4 drives: level 50 takes").await;
        refused(3, Level::Raid6, NotFound, "there is no group 3 in pool").await;
        let error = pool.remove_group(0).await.unwrap_err();
        assert!(error.context.contains("no other group"), "{error}");

        let small = named(pool.world(), &blank(3, 256 << 10));
        let error = pool
            .add_group((Level::Raid5, GroupRole::Data), small)
            .await
            .unwrap_err();
        assert_eq!(error.kind, PoolErrorKind::TooSmall);
        let text = "drive 'n0' has 256 KiB and is too small for pool 'pool'";
        assert!(error.context.contains(text), "{error}");
        holds(&pool).await;
    });
}

#[test]
fn a_group_does_not_go_to_a_level_that_needs_drives_which_are_out_of_use() {
    for (out, possible) in [
        (&["d0"][..], true),
        (&["d0", "d3"], true),
        (&["d0", "d2"], false),
    ] {
        let shelf = Shelf::with_pool(6, RAID10);
        shelf.open(async |pool| {
            for name in out {
                pool.fail_drive(name).await.unwrap();
            }
            let converted = pool.convert_group(0, Level::Raid50).await;
            assert_eq!(converted.is_ok(), possible, "{out:?}: {converted:?}");
            if let Err(error) = converted {
                assert_eq!(error.kind, PoolErrorKind::Invalid);
                assert!(error.context.contains("out of use"), "{error}");
            }
        });
        shelf.open(async |pool| holds(&pool).await);
    }
}

#[test]
fn drives_of_a_group_that_has_left_are_free() {
    let mut shelf = Shelf::with_pool(2, RAID10);
    let new = blank(3, crate::common::DRIVE_BYTES);
    let before = shelf.open(async |pool| {
        let drives = named(pool.world(), &new);
        assert_eq!(
            pool.add_group((Level::Raid5, GroupRole::Data), drives)
                .await
                .unwrap(),
            1
        );
        let taken = named(pool.world(), &new);
        let error = pool
            .add_group((Level::Raid5, GroupRole::Data), taken)
            .await
            .unwrap_err();
        assert_eq!(error.kind, PoolErrorKind::Exists, "{error}");
        // What it was while it was part of the pool.
        let before = copy(&new[0].1, crate::common::DRIVE_BYTES);
        pool.remove_group(1).await.unwrap();
        let has_left = |event: &engine::pool::Event| {
            event.kind == EventKind::Group && event.text.contains("has left")
        };
        while !pool.events(0).iter().any(has_left) {
            pool.world().sleep(Duration::from_millis(100)).await;
        }
        holds(&pool).await;
        for drive in named(pool.world(), &new) {
            let label = Lane::probe(pool.world(), &drive.drive).await.unwrap();
            assert_eq!(label, None, "{}", drive.name);
        }
        pool.close().await.unwrap();
        before
    });

    // Another pool takes them, and so does their own, whatever they hold.
    shelf.media.push(("old".to_owned(), before));
    let old = shelf.media.pop().unwrap();
    shelf.open(async |pool| {
        let drives = [old, new[1].clone(), new[2].clone()];
        let drives = named(pool.world(), &drives);
        assert_eq!(
            pool.add_group((Level::Raid5, GroupRole::Data), drives)
                .await
                .unwrap(),
            2
        );
        holds(&pool).await;
    });
    let world = shelf.world();
    let outcome = world.run(u64::MAX, async {
        let drives = named(&world, &new[..1]);
        Lane::create(world.clone(), spec("other", Level::Simple), drives).await
    });
    assert!(matches!(outcome, Ok(world_sim::Outcome::Done(Ok(_)))));
}
