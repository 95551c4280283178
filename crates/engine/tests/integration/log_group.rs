//! A group for the logs: made with the pool, added, without a drive, and taken away.

use crate::common::{DRIVE_BYTES, PAGE, Shelf, bytes, content, media, spec, thin};
use base::VolumeOffset;
use engine::pool::maintenance::Rates;
use engine::{GroupRole, Lane, Level, MemberState, NamedDrive, PoolErrorKind, PoolSpec, World};
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Media, SimDrive, SimWorld};

pub(super) const RAID10: Level = Level::Raid10 { copies: 2 };
const RAID10X3: Level = Level::Raid10 { copies: 3 };
pub(super) const LOG: GroupRole = GroupRole::Log;

pub(super) type Named = (String, Rc<Media>);

/// Blank drives of this size.
pub(super) fn blank(prefix: &str, count: usize, bytes: u64) -> Vec<Named> {
    let drive = |n| {
        (
            format!("{prefix}{n}"),
            media(&format!("{prefix}{n}"), bytes),
        )
    };
    (0..count).map(drive).collect()
}

pub(super) fn doors(world: &SimWorld, media: &[Named]) -> Vec<NamedDrive<SimWorld>> {
    let drive = |(name, media): &Named| NamedDrive {
        name: name.clone(),
        drive: SimDrive::adversarial(world, media),
    };
    media.iter().map(drive).collect()
}

pub(super) async fn until(pool: &Lane<SimWorld>, is_so: impl Fn(&Lane<SimWorld>) -> bool) {
    for _ in 0..1000 {
        if is_so(pool) {
            return;
        }
        pool.world().sleep(Duration::from_millis(100)).await;
    }
    panic!("{:?}", pool.events(0));
}

pub(super) fn carries(pool: &Lane<SimWorld>, drives: &[&str]) -> bool {
    pool.info().log_drives == drives
}

pub(super) async fn write(pool: &Lane<SimWorld>, page: u64) {
    let volume = pool.volume("v").unwrap();
    let data = content(pool.world(), 100 + page, PAGE);
    let at = VolumeOffset(page * PAGE as u64);
    // In two parts: whole pages may go around the log.
    let half = PAGE / 2;
    volume.write(at, data.slice(0, half)).await.unwrap();
    volume
        .write(at + half as u64, data.slice(half, half))
        .await
        .unwrap();
}

pub(super) async fn has(pool: &Lane<SimWorld>, page: u64) {
    let volume = pool.volume("v").unwrap();
    let at = VolumeOffset(page * PAGE as u64);
    let read = volume.read(at, PAGE).await.unwrap();
    assert!(read.to_vec() == bytes(100 + page, PAGE), "page {page}");
}

/// A pool of two drives for data and two for the logs.
pub(super) fn with_log_group() -> Shelf {
    let mut shelf = Shelf::new(2);
    let logs = blank("l", 2, DRIVE_BYTES / 2);
    let world = shelf.world();
    let data = shelf.drives(&world);
    let spec = PoolSpec {
        log_group: Some(1),
        ..spec("pool", RAID10)
    };
    let groups = vec![(RAID10, data), (RAID10, doors(&world, &logs))];
    crate::common::end(&world, async {
        let made = Lane::create_groups(world.clone(), spec, groups, Vec::new()).await;
        let pool = made.unwrap();
        assert!(
            carries(&pool, &["l0", "l1"]),
            "{:?}",
            pool.info().log_drives
        );
        pool.create_volume(thin("v", 8 * PAGE as u64))
            .await
            .unwrap();
        write(&pool, 0).await;
        pool.close().await.unwrap();
    });
    shelf.media.extend(logs);
    shelf
}

#[test]
fn a_pool_is_made_with_a_log_group_that_holds_no_data() {
    let shelf = with_log_group();
    shelf.open(async |pool| {
        let info = pool.info();
        assert_eq!(info.level, RAID10);
        assert_eq!(info.groups[1].role, LOG);
        assert_eq!(info.groups[1].zones, 0);
        assert!(carries(&pool, &["l0", "l1"]));
        has(&pool, 0).await;
    });
}

#[test]
fn one_of_a_pair_is_lost_and_nothing_with_it() {
    for lost in [0, 1] {
        let mut shelf = with_log_group();
        // Not closed: what was acknowledged is in the log only.
        shelf.open(async |pool| write(&pool, 1).await);
        let gone = shelf.media.remove(2 + lost);
        shelf.open(async |pool| {
            has(&pool, 0).await;
            has(&pool, 1).await;
            assert!(pool.info().copies_are_short);
            let new = blank("n", 1, DRIVE_BYTES / 2);
            let door = doors(pool.world(), &new).remove(0);
            pool.replace_drive(&gone.0, door).await.unwrap();
            let carries_logs = |name: &str| pool.info().log_drives.contains(&name.to_owned());
            until(&pool, |_| carries_logs("n0")).await;
            assert!(!pool.info().copies_are_short);
            write(&pool, 2).await;
        });
    }
}

/// A rebuild may take days, and a drive without zones is whole at once.
#[test]
fn a_drive_that_is_replaced_carries_the_logs_while_a_rebuild_goes_on() {
    let mut shelf = with_log_group();
    let (log, data) = (shelf.media.remove(3), shelf.media.remove(1));
    shelf.open(async |pool| {
        let slowly = Rates {
            rebuild_bytes_per_s: Some(16 << 10),
            ..Rates::default()
        };
        pool.set_rates(slowly);
        for page in 1..8 {
            write(&pool, page).await;
        }
        let mut new = doors(pool.world(), &blank("n", 2, DRIVE_BYTES));
        pool.replace_drive(&data.0, new.remove(0)).await.unwrap();
        let is_rebuilding = |pool: &Lane<SimWorld>| {
            let info = pool.info();
            let mut members = info.members.iter();
            members.any(|member| member.name == "n0" && member.state == MemberState::Rebuilding)
        };
        until(&pool, is_rebuilding).await;
        pool.replace_drive(&log.0, new.remove(0)).await.unwrap();
        until(&pool, |pool| carries(pool, &["l0", "n1"])).await;
        assert!(is_rebuilding(&pool), "{:?}", pool.events(0));
    });
}

#[test]
fn without_both_of_a_pair_the_pool_stays_closed() {
    let mut shelf = with_log_group();
    shelf.media.truncate(2);
    let (kind, context) = shelf.refusal();
    assert_eq!(kind, PoolErrorKind::Missing);
    assert!(
        context.contains("no drive left that carries its logs"),
        "{context}"
    );
}

#[test]
fn logs_go_to_a_group_that_is_added_and_back_when_it_leaves() {
    let mut shelf = Shelf::with_pool(2, RAID10);
    let logs = blank("l", 2, DRIVE_BYTES / 2);
    shelf.media.extend(logs.iter().cloned());
    let (old, new) = shelf.media.split_at(2);
    let (old, new) = (old.to_vec(), new.to_vec());
    shelf.media = old;
    shelf.open(async |pool| {
        let added = pool.add_group((RAID10, LOG), doors(pool.world(), &new));
        assert_eq!(added.await.unwrap(), 1);
        write(&pool, 1).await;
        until(&pool, |pool| carries(pool, &["l0", "l1"])).await;
        write(&pool, 2).await;
    });
    shelf.media.extend(new);
    // Its label says so, and what was in the log is there.
    shelf.open(async |pool| {
        assert!(carries(&pool, &["l0", "l1"]));
        has(&pool, 1).await;
        has(&pool, 2).await;
        write(&pool, 3).await;
        pool.remove_group(1).await.unwrap();
        until(&pool, |pool| pool.info().groups.len() == 1).await;
        assert!(carries(&pool, &["d0", "d1"]));
        write(&pool, 4).await;
    });
    shelf.media.truncate(2);
    shelf.open(async |pool| {
        for page in 1..5 {
            has(&pool, page).await;
        }
    });
}

#[test]
fn a_bug_that_lets_the_log_go_too_early_is_no_pool_any_more() {
    let mut shelf = with_log_group();
    let world = shelf.world();
    world.plant(Some("log group leaves with the logs"));
    let drives = shelf.drives(&world);
    crate::common::end(&world, async {
        let pool = Lane::open(world.clone(), drives).await.unwrap();
        pool.remove_group(1).await.unwrap();
        until(&pool, |pool| pool.info().groups.len() == 1).await;
    });
    shelf.media.truncate(2);
    let (kind, context) = shelf.refusal();
    assert_eq!(kind, PoolErrorKind::Missing);
    assert!(context.contains("carries its logs"), "{context}");
}

#[test]
fn what_no_log_group_can_be_is_refused_with_the_reason() {
    let shelf = Shelf::with_pool(4, Level::Raid6);
    shelf.open(async |pool| {
        let refused = async |level, count, bytes, kind, part: &str| {
            let drives = doors(pool.world(), &blank("l", count, bytes));
            let error = pool.add_group((level, LOG), drives).await.unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.context.contains(part), "{part:?} is not in: {error}");
        };
        use PoolErrorKind::{Exists, Invalid, TooSmall};
        let weak = "beside a group of level 6, which survives 2 lost drives: allowed is \"10x3\"";
        refused(Level::Simple, 1, DRIVE_BYTES, Invalid, weak).await;
        refused(RAID10, 2, DRIVE_BYTES, Invalid, weak).await;
        refused(Level::Raid6, 4, DRIVE_BYTES, Invalid, weak).await;
        refused(RAID10X3, 2, DRIVE_BYTES, Invalid, "a multiple of 3 drives").await;
        let small = "too small for the log of pool 'pool': a drive of its log group needs";
        refused(RAID10X3, 3, 256 << 10, TooSmall, small).await;
        let others = Shelf::with_pool_of_seed(3, Level::Raid5, 7);
        let drives = others.drives(pool.world());
        let error = pool.add_group((RAID10X3, LOG), drives).await.unwrap_err();
        assert_eq!(error.kind, Exists, "{error}");
        assert!(error.context.contains("belongs to pool"), "{error}");

        let drives = doors(pool.world(), &blank("l", 3, DRIVE_BYTES));
        pool.add_group((RAID10X3, LOG), drives).await.unwrap();
        refused(
            RAID10X3,
            3,
            DRIVE_BYTES,
            Invalid,
            "has a log group already, group 1",
        )
        .await;
        let error = pool.convert_group(1, Level::Raid6).await.unwrap_err();
        assert!(error.context.contains("keeps its level"), "{error}");
        let error = pool.remove_group(0).await.unwrap_err();
        assert!(error.context.contains("no other group"), "{error}");
    });
}

#[test]
fn data_is_not_protected_better_than_the_log() {
    let shelf = Shelf::with_pool(4, RAID10);
    shelf.open(async |pool| {
        let drives = doors(pool.world(), &blank("l", 2, DRIVE_BYTES));
        pool.add_group((RAID10, LOG), drives).await.unwrap();
        let weak = "log group of level 10 in pool 'pool', beside a group of level 6";
        let error = pool.convert_group(0, Level::Raid6).await.unwrap_err();
        assert!(error.context.contains(weak), "{error}");
        let drives = doors(pool.world(), &blank("n", 4, DRIVE_BYTES));
        let added = pool.add_group((Level::Raid6, GroupRole::Data), drives);
        let error = added.await.unwrap_err();
        assert!(error.context.contains(weak), "{error}");
    });
}

/// No drives of data could take the logs over.
#[test]
fn a_drive_of_the_log_group_fails_while_the_pool_serves() {
    let shelf = with_log_group();
    shelf.open(async |pool| {
        pool.fail_drive("d1").await.unwrap();
        pool.fail_drive("l0").await.unwrap();
        let state = |pool: &Lane<SimWorld>| pool.info().groups[1].members[0].state;
        assert_eq!(state(&pool), MemberState::Failed);
        write(&pool, 1).await;
        let error = pool.fail_drive("l1").await.unwrap_err();
        assert_eq!(error.kind, PoolErrorKind::Invalid, "{error}");
        assert!(!pool.is_covered_without("l1").unwrap_or(false));
        for spare in doors(pool.world(), &blank("s", 2, DRIVE_BYTES)) {
            pool.add_spare(spare).await.unwrap();
        }
        until(&pool, |pool| carries(pool, &["s1", "l1"])).await;
        has(&pool, 1).await;
    });
}
