//! Drives that are slow, have errors, or hang: noticed in time, read last, taken out,
//! trusted again.

use crate::common::{DRIVE_BYTES, PAGE, Shelf, bytes, content, media};
use base::{Prng, Time, VolumeOffset};
use engine::drives::EventKind;
use engine::pool::NamedDrive;
use engine::pool::maintenance::health::Limits;
use engine::{Lane, Level, MemberState, World};
use futures_util::future::join_all;
use std::time::Duration;
use world_sim::{SimDrive, SimWorld};

const BLOCK: usize = 4096;
const RAID10: Level = Level::Raid10 { copies: 2 };

/// Reads blocks anywhere, four at a time, `count` each, and checks them.
async fn read_some(pool: &Lane<SimWorld>, count: u64) {
    let whole = bytes(1, 8 * PAGE);
    let volume = pool.volume("v").unwrap();
    let readers = (0..4).map(async |reader| {
        let mut prng = Prng::from_seed(reader);
        for _ in 0..count {
            let at = prng.below((8 * PAGE / BLOCK) as u64) as usize * BLOCK;
            let found = volume.read(VolumeOffset(at as u64), BLOCK).await.unwrap();
            assert!(found.to_vec() == whole[at..at + BLOCK]);
            pool.world().sleep(Duration::from_millis(25)).await;
        }
    });
    join_all(readers).await;
}

fn state(pool: &Lane<SimWorld>, place: usize) -> MemberState {
    pool.info().members[place].state
}

/// Reads, or waits where nothing is to be read, until the drive has that state; how
/// long that took.
async fn wait_for(pool: &Lane<SimWorld>, place: usize, wanted: MemberState) -> Duration {
    let began = pool.world().now();
    while state(pool, place) != wanted {
        match wanted {
            MemberState::Healthy => pool.world().sleep(Duration::from_millis(500)).await,
            _ => read_some(pool, 8).await,
        }
        let waited = pool.world().now().since(began);
        assert!(waited < Duration::from_secs(200), "{:?}", pool.events(0));
    }
    pool.world().now().since(began)
}

fn told(pool: &Lane<SimWorld>, kind: EventKind, drive: &str) -> Option<String> {
    let events = pool.events(0).into_iter();
    let mut of_kind = events.filter(|event| event.kind == kind);
    let found = of_kind.find(|event| event.text.contains(&format!("'{drive}'")));
    found.map(|event| event.text)
}

#[test]
fn a_slow_drive_is_suspect_and_read_last_until_it_is_fast_again() {
    for (level, drives) in [
        (RAID10, 2),
        (RAID10, 4),
        (Level::Raid5, 3),
        (Level::Raid6, 5),
    ] {
        let shelf = Shelf::with_pool(drives, level);
        shelf.open(async |pool| {
            pool.store().drain().await.unwrap();
            read_some(&pool, 8).await;
            shelf
                .named("d1")
                .with_faults(|faults| faults.slowdown = 1_000);
            let limits = Limits::default();
            let took = wait_for(&pool, 1, MemberState::Suspect).await;
            // Two windows, the one that had begun, and the reads under way.
            let bound = limits.window * (limits.bad_windows + 1) + Duration::from_secs(40);
            assert!(took <= bound, "{level}: {took:?}");
            let text = told(&pool, EventKind::DriveSuspect, "d1").unwrap();
            assert!(text.contains("reads of 5s took"), "{text}");
            // The others are not.
            let others = (0..drives).filter(|place| *place != 1);
            others.for_each(|place| assert_eq!(state(&pool, place), MemberState::Healthy));

            let before = pool.info().members[1].reads;
            read_some(&pool, 100).await;
            let after = pool.info().members[1].reads;
            assert_eq!(before, after, "{level}: a suspect drive was read");

            // It stays so while it is slow, and not longer.
            pool.world()
                .sleep(limits.window * limits.quiet_windows * 2)
                .await;
            assert_eq!(state(&pool, 1), MemberState::Suspect, "{level}");
            shelf.named("d1").with_faults(|faults| faults.slowdown = 0);
            let took = wait_for(&pool, 1, MemberState::Healthy).await;
            assert!(
                took <= limits.window * (limits.quiet_windows + 3),
                "{took:?}"
            );
            assert!(told(&pool, EventKind::DriveHealthy, "d1").is_some());
            read_some(&pool, 100).await;
            assert!(pool.info().members[1].reads > after);
        });
    }
}

#[test]
fn suspect_is_kept_through_an_opening() {
    let shelf = Shelf::with_pool(2, RAID10);
    let slow = |slowdown| {
        shelf
            .named("d1")
            .with_faults(|faults| faults.slowdown = slowdown)
    };
    shelf.open(async |pool| {
        pool.store().drain().await.unwrap();
        slow(1_000);
        wait_for(&pool, 1, MemberState::Suspect).await;
        slow(0);
        pool.close().await.unwrap();
    });
    shelf.open(async |pool| {
        assert_eq!(state(&pool, 1), MemberState::Suspect);
        wait_for(&pool, 1, MemberState::Healthy).await;
    });
}

#[test]
fn all_drives_slow_is_no_fault_of_one() {
    let shelf = Shelf::with_pool(4, Level::Raid5);
    shelf.open(async |pool| {
        pool.store().drain().await.unwrap();
        for (_, media) in &shelf.media {
            media.with_faults(|faults| faults.slowdown = 1_000);
        }
        // Three windows of it.
        while pool.world().now() <= Time(15_000_000_000) {
            read_some(&pool, 20).await;
        }
        for place in 0..4 {
            assert_eq!(state(&pool, place), MemberState::Healthy);
        }
        let member = &pool.info().members[0];
        assert!(
            member.read_latency > Duration::from_millis(50),
            "{member:?}"
        );
    });
}

#[test]
fn a_drive_with_errors_is_suspect() {
    let shelf = Shelf::with_pool(2, RAID10);
    shelf.open(async |pool| {
        pool.store().drain().await.unwrap();
        let limits = Limits {
            errors: 4,
            ..Limits::default()
        };
        pool.set_health_limits(limits);
        let blocks = crate::common::DRIVE_BYTES / 4096;
        // What is put right is readable again: so over and over.
        let began = pool.world().now();
        while state(&pool, 1) == MemberState::Healthy {
            let faulty = shelf.named("d1");
            faulty.with_faults(|faults| faults.unreadable.extend(100..blocks));
            read_some(&pool, 8).await;
            pool.world().sleep(Duration::from_millis(100)).await;
            assert!(pool.world().now().since(began) < Duration::from_secs(20));
        }
        assert_eq!(state(&pool, 1), MemberState::Suspect);
        let text = told(&pool, EventKind::DriveSuspect, "d1").unwrap();
        assert!(text.contains("operations failed"), "{text}");
        let member = &pool.info().members[1];
        assert!(member.mends > 0 && member.errors > 0, "{member:?}");
    });
}

#[test]
fn too_many_errors_take_a_drive_out_of_use() {
    let shelf = Shelf::with_pool(2, RAID10);
    shelf.open(async |pool| {
        pool.store().drain().await.unwrap();
        pool.set_health_limits(Limits {
            errors_out: 5,
            ..Limits::default()
        });
        let blocks = crate::common::DRIVE_BYTES / 4096;
        let faulty = shelf.named("d1");
        faulty.with_faults(|faults| faults.unreadable.extend(100..blocks));
        read_some(&pool, 30).await;
        wait_for(&pool, 1, MemberState::Failed).await;
        // The last copy stays, whatever it does.
        let left = shelf.named("d0");
        left.with_faults(|faults| faults.unreadable.extend(4..16));
        pool.world().sleep(Duration::from_secs(20)).await;
        assert_ne!(state(&pool, 0), MemberState::Failed);
        read_some(&pool, 30).await;
    });
}

#[test]
fn nobody_waits_for_a_drive_that_hangs() {
    for (level, drives) in [(RAID10, 2), (Level::Raid5, 4)] {
        let shelf = Shelf::with_pool(drives, level);
        shelf.open(async |pool| {
            let hung = shelf.named("d1");
            hung.with_faults(|faults| faults.slowdown = u32::MAX);
            let began = pool.world().now();
            let volume = pool.volume("v").unwrap();
            let data = content(pool.world(), 1, 8 * PAGE);
            volume.write(VolumeOffset(0), data).await.unwrap();
            let took = pool.world().now().since(began);
            let limits = Limits::default();
            assert!(took >= limits.hung, "{level}: {took:?}");
            assert!(took <= limits.hung + limits.window, "{level}: {took:?}");
            assert_eq!(state(&pool, 1), MemberState::Failed);
            let text = told(&pool, EventKind::DriveFailed, "d1").unwrap();
            assert!(text.contains("not ended"), "{text}");
            read_some(&pool, 8).await;
        });
        // It is not believed when it comes back.
        shelf.named("d1").with_faults(|faults| faults.slowdown = 0);
        shelf.open(async |pool| {
            assert_eq!(state(&pool, 1), MemberState::Failed);
            read_some(&pool, 8).await;
        });
    }
}

#[test]
fn a_drive_that_the_pool_needs_is_waited_for() {
    let shelf = Shelf::with_pool(1, Level::Simple);
    shelf.open(async |pool| {
        let slow = shelf.named("d0");
        // Minutes for an operation, not hours: each second of the world has its price.
        slow.with_faults(|faults| faults.slowdown = 1_000_000);
        let volume = pool.volume("v").unwrap();
        let data = content(pool.world(), 1, 8 * PAGE);
        volume.write(VolumeOffset(0), data).await.unwrap();
        let member = &pool.info().members[0];
        let mean = member.write_latency;
        assert!(mean > Limits::default().hung, "none took long: {mean:?}");
        assert_eq!(member.state, MemberState::Healthy);
    });
}

#[test]
fn a_drive_that_the_next_start_will_not_find_is_suspect_at_once() {
    let shelf = Shelf::with_pool(2, RAID10);
    shelf.open(async |pool| {
        let window = Limits::default().window;
        let mislay = |is_so| {
            let media = shelf.named("d1");
            media.with_faults(|faults| faults.mislaid = is_so);
        };
        mislay(true);
        pool.world().sleep(window + window / 2).await;
        let suspect = pool.info().members[1].clone();
        assert_eq!(suspect.state, MemberState::Suspect);
        let trouble = suspect.trouble.unwrap();
        let text = told(&pool, EventKind::DriveSuspect, "d1").unwrap();
        assert!(text.ends_with(&trouble), "{text}");
        mislay(false);
        pool.world().sleep(window * 2).await;
        let well = pool.info().members[1].clone();
        assert_eq!((well.state, well.trouble), (MemberState::Healthy, None));
    });
}

#[test]
fn a_spare_that_the_next_start_will_not_find_stands_in_for_none() {
    let shelf = Shelf::with_pool(2, RAID10);
    shelf.open(async |pool| {
        let window = Limits::default().window;
        let spare = media("s", DRIVE_BYTES);
        let drive = SimDrive::adversarial(pool.world(), &spare);
        let name = "s".to_owned();
        pool.add_spare(NamedDrive { name, drive }).await.unwrap();
        let mislay = |is_so| spare.with_faults(|faults| faults.mislaid = is_so);
        mislay(true);
        pool.world().sleep(window + window / 2).await;
        let trouble = pool.info().spares[0].trouble.clone().unwrap();
        let text = told(&pool, EventKind::DriveSuspect, "s").unwrap();
        assert!(text.ends_with(&trouble), "{text}");
        pool.fail_drive("d1").await.unwrap();
        pool.world().sleep(window * 3).await;
        assert_eq!(state(&pool, 1), MemberState::Failed);
        mislay(false);
        pool.world().sleep(window * 3).await;
        assert_eq!(pool.info().members[1].name, "s");
        assert_eq!(pool.info().spares.len(), 0);
    });
}

#[test]
fn a_drive_that_was_cut_off_goes_out_of_use_before_anybody_asks_for_what_is_gone() {
    let shelf = Shelf::with_pool(2, RAID10);
    shelf.open(async |pool| {
        let window = Limits::default().window;
        pool.world().sleep(window * 3).await;
        assert_eq!(state(&pool, 1), MemberState::Healthy);
        let shrink = |name| shelf.named(name).with_faults(|faults| faults.shrunk = true);
        shrink("d1");
        pool.world().sleep(window * 2).await;
        assert_eq!(state(&pool, 1), MemberState::Failed);
        let text = told(&pool, EventKind::DriveFailed, "d1").unwrap();
        assert!(text.contains("check of"), "{text}");
        // The other one is needed: nothing is acknowledged that the next opening can't find.
        shrink("d0");
        pool.world().sleep(window * 2).await;
        let text = told(&pool, EventKind::PoolStopped, "d0").unwrap();
        assert!(text.contains("check of"), "{text}");
        let volume = pool.volume("v").unwrap();
        let data = content(pool.world(), 1, PAGE);
        let error = volume.write(VolumeOffset(0), data).await.unwrap_err();
        assert!(error.to_string().contains("has stopped"), "{error}");
        shelf
            .named("d0")
            .with_faults(|faults| faults.shrunk = false);
    });
    // It is there again, as large as it was.
    shelf.open(async |pool| read_some(&pool, 4).await);
}
