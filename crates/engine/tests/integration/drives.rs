//! Drives that are missing, foreign, stale, short or failing.

use crate::common::{DRIVE_BYTES, PAGE, Shelf, bytes, content, copy, media, spec};
use base::VolumeOffset;
use engine::pool::MemberInfo;
use engine::{IoErrorKind, Lane, Level, MemberState, NamedDrive, PoolErrorKind, World};
use std::time::Duration;
use world_sim::SimDrive;

fn holds(shelf: &Shelf, tag: u64) {
    shelf.open(async |pool| {
        let whole = pool
            .volume("v")
            .unwrap()
            .read(VolumeOffset(0), 8 * PAGE)
            .await
            .unwrap();
        assert!(whole.to_vec() == bytes(tag, 8 * PAGE));
    });
}

#[test]
fn a_pool_is_found_in_any_order_and_under_any_name() {
    let mut shelf = Shelf::with_pool(6, Level::Raid10 { copies: 2 });
    shelf.media.reverse();
    shelf.media.swap(1, 3);
    shelf
        .media
        .iter_mut()
        .enumerate()
        .for_each(|(n, (name, _))| *name = format!("new{n}"));
    holds(&shelf, 1);
}

#[test]
fn what_redundancy_covers_is_named_and_done_without() {
    for (level, drives, lost) in [
        (Level::Raid10 { copies: 2 }, 6, vec![1, 2]),
        (Level::Raid10 { copies: 3 }, 3, vec![0, 2]),
        (Level::Raid5, 4, vec![0]),
        (Level::Raid50, 6, vec![2, 3]),
        (Level::Raid6, 5, vec![0, 1]),
    ] {
        let mut shelf = Shelf::with_pool(drives, level);
        for place in &lost {
            shelf.media[*place] = ("blank".into(), media("blank", DRIVE_BYTES));
        }
        shelf.open(async |pool| {
            let events = pool.events(0);
            for place in &lost {
                let name = format!("drive 'd{place}'");
                let named = |event: &engine::drives::Event| event.text.contains(&name);
                assert!(events.iter().any(named), "{name} at {level}: {events:?}");
                let member = &pool.info().members[*place];
                assert_eq!(member.state, MemberState::Failed);
            }
        });
        holds(&shelf, 1);
        // One more is one too many.
        let more = (0..drives).find(|place| !lost.contains(place)).unwrap();
        let span_mate = match level {
            Level::Raid10 { copies: 2 } => 0,
            Level::Raid50 => 0,
            _ => more,
        };
        let name = shelf.media[span_mate].0.clone();
        shelf.media.remove(span_mate);
        let (kind, context) = shelf.refusal();
        assert_eq!(kind, PoolErrorKind::Unlabelled, "{context}");
        // Without any label nobody knows who is missing.
        let known = shelf.media.iter().any(|(name, _)| name != "blank");
        assert!(
            !known || context.contains(&format!("'{name}'")),
            "{context}"
        );
    }
}

#[test]
fn a_drive_that_does_not_belong_is_named() {
    let mut shelf = Shelf::with_pool(4, Level::Raid10 { copies: 2 });
    let other = Shelf::with_pool_of_seed(2, Level::Raid10 { copies: 2 }, 1000);
    let own = shelf.media[1].clone();

    shelf.media[1] = ("other".into(), other.media[0].1.clone());
    let (kind, context) = shelf.refusal();
    assert_eq!(kind, PoolErrorKind::Foreign);
    assert!(context.contains("'other'"), "{context}");

    shelf.media[1] = ("twin".into(), shelf.media[0].1.clone());
    let (kind, context) = shelf.refusal();
    assert_eq!(kind, PoolErrorKind::Invalid);
    assert!(
        context.contains("'twin'") && context.contains("'d0'"),
        "{context}"
    );

    shelf.media[1] = own;
    holds(&shelf, 1);
}

#[test]
fn labelled_drives_are_not_taken_for_a_new_pool() {
    let shelf = Shelf::with_pool(2, Level::Raid10 { copies: 2 });
    let refused = shelf.create(spec("new", Level::Raid10 { copies: 2 }), async |_| ());
    let error = refused.unwrap_err();
    assert_eq!(error.kind, PoolErrorKind::Exists);
    assert!(error.context.contains("'d0'"), "{error}");
    assert!(error.context.contains("pool 'pool'"), "{error}");
    holds(&shelf, 1);
}

#[test]
fn pools_that_make_no_sense_are_refused() {
    let kinds = [
        (
            1,
            spec("p", Level::Raid10 { copies: 2 }),
            PoolErrorKind::Invalid,
        ),
        (
            3,
            spec("p", Level::Raid10 { copies: 2 }),
            PoolErrorKind::Invalid,
        ),
        (2, spec("p", Level::Simple), PoolErrorKind::Invalid),
        (0, spec("p", Level::Simple), PoolErrorKind::Invalid),
        (1, spec("p q", Level::Simple), PoolErrorKind::Invalid),
        (
            1,
            engine::PoolSpec {
                page_bytes: 5000,
                ..spec("p", Level::Simple)
            },
            PoolErrorKind::Invalid,
        ),
        (
            1,
            engine::PoolSpec {
                journal_bytes: Some(4096),
                ..spec("p", Level::Simple)
            },
            PoolErrorKind::Invalid,
        ),
        (
            1,
            engine::PoolSpec {
                volumes_max: 1 << 20,
                ..spec("p", Level::Simple)
            },
            PoolErrorKind::TooSmall,
        ),
    ];
    for (drives, spec, kind) in kinds {
        let shelf = Shelf::new(drives);
        let refused = shelf.create(spec.clone(), async |_| ());
        assert_eq!(refused.unwrap_err().kind, kind, "{drives} drives, {spec:?}");
        assert!(
            shelf
                .media
                .iter()
                .all(|(_, media)| media.unsynced_writes() == 0)
        );
    }
}

#[test]
fn a_drive_that_fails_is_out_of_use_for_good() {
    let shelf = Shelf::with_pool(4, Level::Raid10 { copies: 2 });
    shelf.open(async |pool| {
        shelf.named("d1").with_faults(|faults| faults.gone = true);
        let volume = pool.volume("v").unwrap();
        volume
            .write(VolumeOffset(0), content(pool.world(), 2, 8 * PAGE))
            .await
            .unwrap();
        let members = pool.info().members;
        assert_eq!(members[1].state, MemberState::Failed);
        assert!(members[1].errors > 0);
        assert!(
            [0, 2, 3]
                .iter()
                .all(|n| members[*n].state == MemberState::Healthy)
        );
    });
    // It comes back with its old content, and must not be believed.
    shelf.named("d1").with_faults(|faults| faults.gone = false);
    holds(&shelf, 2);
    // Nor is it needed.
    let mut without = Shelf::new(0);
    without.media = shelf
        .media
        .iter()
        .filter(|(name, _)| name != "d1")
        .cloned()
        .collect();
    holds(&without, 2);
    // Its mirror is needed now.
    without.media.remove(0);
    let (kind, context) = without.refusal();
    assert_eq!(kind, PoolErrorKind::Missing);
    assert!(context.contains("'d0'"), "{context}");
}

#[test]
fn what_only_one_copy_has_lost_is_read_from_the_other() {
    let shelf = Shelf::with_pool(2, Level::Raid10 { copies: 2 });
    let blocks = DRIVE_BYTES / 4096;
    // Everything but the label area of the first drive can't be read.
    shelf.open(async |pool| {
        // Out of the log, where it would be read from RAM.
        pool.store().drain().await.unwrap();
        shelf
            .named("d0")
            .with_faults(|faults| faults.unreadable.extend(16..blocks));
        for _ in 0..4 {
            let whole = pool
                .volume("v")
                .unwrap()
                .read(VolumeOffset(0), 8 * PAGE)
                .await
                .unwrap();
            assert!(whole.to_vec() == bytes(1, 8 * PAGE));
        }
        let members = pool.info().members;
        assert!(members[0].errors > 0);
        assert_eq!(
            members[0].state,
            MemberState::Healthy,
            "bad blocks are no dead drive"
        );
        // What could not be read has been written anew from the other copy.
        assert!(pool.info().mended_bytes > 0);
        for name in ["d0", "d1"] {
            let struck = shelf.named(name);
            struck.with_faults(|faults| faults.unreadable.extend(16..blocks));
        }
        let error = pool
            .volume("v")
            .unwrap()
            .read(VolumeOffset(4096), 4096)
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind, error.at),
            (IoErrorKind::Media, VolumeOffset(4096))
        );
    });
}

#[test]
fn the_block_that_can_not_be_read_is_the_one_that_is_named() {
    let shelf = Shelf::with_pool(1, Level::Simple);
    shelf.open(async |pool| {
        pool.store().drain().await.unwrap();
        let volume = pool.volume("v").unwrap();
        let at = VolumeOffset(5 * 4096);
        let blocks = 16..DRIVE_BYTES / 4096;
        let strike = |block| {
            shelf.named("d0").with_faults(|faults| {
                faults.unreadable.clear();
                faults.unreadable.insert(block);
            });
        };
        let mut found = false;
        for block in blocks {
            strike(block);
            found = volume.read(at, 4096).await.is_err();
            if found {
                break;
            }
        }
        assert!(found, "it lies somewhere");
        // In a run, and where it begins before what is asked for.
        let inside = VolumeOffset(at.0 + 1024);
        for (from, len, named) in [
            (VolumeOffset(0), 8 * PAGE, at),
            (VolumeOffset(3 * 4096 + 512), 3 * 4096, at),
            (inside, 512, inside),
        ] {
            let error = volume.read(from, len).await.unwrap_err();
            assert_eq!((error.kind, error.at), (IoErrorKind::Media, named));
        }
    });
}

#[test]
fn the_last_copy_fails_its_writes_and_nothing_is_acknowledged() {
    let shelf = Shelf::with_pool(2, Level::Raid10 { copies: 2 });
    shelf.open(async |pool| {
        for name in ["d0", "d1"] {
            shelf.named(name).with_faults(|faults| faults.gone = true);
        }
        let volume = pool.volume("v").unwrap();
        let data = content(pool.world(), 2, 4096);
        assert!(volume.write(VolumeOffset(0), data.clone()).await.is_err());
        assert!(volume.write(VolumeOffset(0), data).await.is_err());
    });
    for name in ["d0", "d1"] {
        shelf.named(name).with_faults(|faults| faults.gone = false);
    }
    holds(&shelf, 1);
}

#[test]
fn an_old_copy_of_a_drive_is_stale() {
    let shelf = Shelf::with_pool(4, Level::Raid10 { copies: 2 });
    let old = copy(shelf.named("d3"), DRIVE_BYTES);
    shelf.open(async |pool| {
        let volume = pool.volume("v").unwrap();
        volume
            .write(VolumeOffset(0), content(pool.world(), 2, 8 * PAGE))
            .await
            .unwrap();
        // No close: as after kill -9.
    });
    let mut swapped = Shelf::new(0);
    swapped.media = shelf.media.clone();
    swapped.media[3].1 = old;
    swapped.open(async |pool| {
        let members = pool.info().members;
        assert_eq!(members[3].state, MemberState::Failed);
        let stale = |event: &engine::drives::Event| {
            event.text.contains("'d3'") && event.text.contains("old state")
        };
        assert!(pool.events(0).iter().any(stale));
    });
    holds(&swapped, 2);
}

#[test]
fn a_drive_cut_short_is_too_small() {
    let shelf = Shelf::with_pool(2, Level::Raid10 { copies: 2 });
    let mut short = Shelf::new(0);
    short.media = shelf.media.clone();
    short.media[1].1 = copy(shelf.named("d1"), DRIVE_BYTES / 2);
    short.open(async |pool| {
        assert_eq!(pool.info().members[1].state, MemberState::Failed);
        let text = &pool.events(0)[0].text;
        assert!(
            text.contains("'d1'") && text.contains("cut short"),
            "{text}"
        );
    });
    short.media.remove(0);
    let (kind, context) = short.refusal();
    assert_eq!(kind, PoolErrorKind::Missing);
    assert!(context.contains("'d0'"), "{context}");
}

#[test]
fn metadata_is_there_as_long_as_the_data_is() {
    let mut shelf = Shelf::with_pool(6, Level::Raid10 { copies: 3 });
    let spare = media("spare", DRIVE_BYTES);
    shelf.open(async |pool| {
        // One of the three that carry it: another does, and has to give it back.
        pool.fail_drive("d5").await.unwrap();
        let settled = async || {
            for _ in 0..1000 {
                pool.world().sleep(Duration::from_millis(100)).await;
                let info = pool.info();
                let whole = |member: &MemberInfo| member.state == MemberState::Healthy;
                if !info.copies_are_short && info.members.iter().all(whole) {
                    return;
                }
            }
            panic!("{:?}", pool.info());
        };
        pool.world().sleep(Duration::from_secs(5)).await;
        let drive = SimDrive::adversarial(pool.world(), &spare);
        let name = "spare".to_owned();
        pool.add_spare(NamedDrive { name, drive }).await.unwrap();
        settled().await;
        pool.close().await.unwrap();
    });
    shelf.media[5] = ("spare".to_owned(), spare);
    // All but one drive of each three are lost, whichever one is left.
    for (first, second) in [(0, 4), (1, 3), (2, 5), (2, 4)] {
        let mut rest = Shelf::new(0);
        rest.media = [first, second]
            .map(|at: usize| (format!("d{at}"), copy(&shelf.media[at].1, DRIVE_BYTES)))
            .to_vec();
        holds(&rest, 1);
    }
}

/// A new user read of the metadata first, and not of the drives that were away.
#[test]
fn a_pool_whose_metadata_is_on_drives_that_are_away_names_those_first() {
    let shelf = Shelf::with_pool(6, Level::Raid10 { copies: 2 });
    let mut rest = Shelf::new(0);
    // The first pair carries the logs, and of the others these do not carry the metadata.
    rest.media = [0, 1, 3].map(|at: usize| shelf.media[at].clone()).to_vec();
    let (kind, context) = rest.refusal();
    assert_eq!(kind, PoolErrorKind::Missing);
    let first = context.lines().next().unwrap();
    assert!(first.contains("'d2'"), "{context}");
    assert!(!first.contains("metadata"), "{context}");
    assert!(context.contains("metadata"), "{context}");
}

#[test]
fn a_drive_that_was_taken_out_by_command_opens_no_pool_with_its_old_data() {
    for (bug, is_kept) in [
        (Some("drive not told that it is out of use"), false),
        (None, true),
    ] {
        let shelf = Shelf::with_pool(2, Level::Raid10 { copies: 2 });
        let world = shelf.world();
        world.plant(bug);
        let drives = shelf.drives(&world);
        let root = async {
            let pool = Lane::open(world.clone(), drives).await.unwrap();
            pool.fail_drive("d0").await.unwrap();
            let volume = pool.volume("v").unwrap();
            let new = content(&world, 2, 8 * PAGE);
            volume.write(VolumeOffset(0), new).await.unwrap();
            pool.close().await.unwrap();
        };
        world.run(u64::MAX, root).unwrap();
        let newest = shelf.named("d1");
        newest.with_faults(|faults| faults.gone = true);
        let opened = shelf.try_open(async |_| ());
        match is_kept {
            true => {
                let error = opened.unwrap_err();
                assert!(error.context.contains("'d1'"), "{error}");
            }
            false => assert!(opened.is_ok(), "the bug is no bug"),
        }
        newest.with_faults(|faults| faults.gone = false);
        holds(&shelf, 2);
    }
}

/// Whether another drive is there still shows when labels are written.
#[test]
fn a_drive_that_is_ordered_out_stays_when_another_turns_out_to_be_gone() {
    let bug = "drive ordered out although another failed";
    for (bug, is_kept) in [(Some(bug), false), (None, true)] {
        let shelf = Shelf::with_pool(3, Level::Raid5);
        shelf.open(async |pool| {
            pool.world().plant(bug);
            shelf.named("d2").with_faults(|faults| faults.gone = true);
            let ordered = pool.fail_drive("d1").await.map_err(|error| error.kind);
            match is_kept {
                true => assert_eq!(ordered, Err(PoolErrorKind::Invalid)),
                false => assert_eq!(ordered, Ok(())),
            }
        });
        let opened = shelf.try_open(async |_| ());
        assert_eq!(opened.is_ok(), is_kept, "{bug:?}");
    }
}

/// What was written in place may be lost when the flush behind it fails.
#[test]
fn a_drive_whose_flush_fails_is_out_of_use() {
    let bug = "failed flush taken for done";
    for (bug, state) in [
        (None, MemberState::Failed),
        (Some(bug), MemberState::Healthy),
    ] {
        let shelf = Shelf::with_pool(4, Level::Raid10 { copies: 2 });
        shelf.open(async |pool| {
            pool.store().drain().await.unwrap();
            pool.world().plant(bug);
            // It carries no log: only what goes in place is flushed there.
            let drive = shelf.named("d3");
            drive.with_faults(|faults| faults.failing_flushes = 1);
            let volume = pool.volume("v").unwrap();
            let data = content(pool.world(), 2, 8 * PAGE);
            volume.write(VolumeOffset(0), data).await.unwrap();
            pool.store().drain().await.unwrap();
            assert_eq!(pool.info().members[3].state, state, "{bug:?}");
            assert_eq!(drive.with_faults(|faults| faults.failing_flushes), 0);
        });
    }
}
