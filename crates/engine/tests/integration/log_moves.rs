//! Logs that change their drives: to drives that can't take them, without a drive, and half-way.

use crate::common::{DRIVE_BYTES, Shelf};
use crate::log_group::{
    LOG, Named, RAID10, blank, carries, doors, has, until, with_log_group, write,
};
use engine::pool::MemberInfo;
use engine::{GroupRole, Lane, Level, World};
use std::time::Duration;
use world_sim::SimWorld;

/// Writes to most of the room of the logs on this drive fail, and no others.
fn takes_no_logs(pool: &Lane<SimWorld>, (_, media): &Named) {
    let end = pool.info().data_start / 4096;
    media.with_faults(|faults| faults.unwritable.extend(end - 100..end));
}

fn member(pool: &Lane<SimWorld>, name: &str) -> MemberInfo {
    let members = pool.info().members;
    members.into_iter().find(|is| is.name == name).unwrap()
}

/// How many events say all of this.
fn told(pool: &Lane<SimWorld>, parts: &[&str]) -> usize {
    let events = pool.events(0);
    let says = |text: &str| parts.iter().all(|part| text.contains(part));
    events.iter().filter(|event| says(&event.text)).count()
}

/// A pool of so many drives, and blank ones for its logs, which are added as a group.
async fn add_log_group(pool: &Lane<SimWorld>, drives: &[Named]) {
    let added = pool.add_group((RAID10, LOG), doors(pool.world(), drives));
    added.await.unwrap();
}

#[test]
fn another_pair_carries_the_logs_where_one_cannot() {
    for bad in [0, 1] {
        let shelf = Shelf::with_pool(2, RAID10);
        let logs = blank("l", 4, DRIVE_BYTES / 2);
        shelf.open(async |pool| {
            takes_no_logs(&pool, &logs[bad]);
            write(&pool, 1).await;
            add_log_group(&pool, &logs).await;
            until(&pool, |pool| carries(pool, &["l2", "l3"])).await;
            assert_eq!(told(&pool, &[&logs[bad].0, "can't carry the logs"]), 1);
            has(&pool, 1).await;
        });
    }
}

#[test]
fn the_middle_pair_of_a_log_group_carries_the_logs_as_any() {
    let shelf = Shelf::with_pool(2, RAID10);
    let logs = blank("l", 6, DRIVE_BYTES / 2);
    shelf.open(async |pool| {
        takes_no_logs(&pool, &logs[0]);
        takes_no_logs(&pool, &logs[5]);
        add_log_group(&pool, &logs).await;
        until(&pool, |pool| carries(pool, &["l2", "l3"])).await;
    });
}

#[test]
fn a_drive_that_cannot_take_the_logs_is_tried_less_and_less_often() {
    let shelf = Shelf::with_pool(2, RAID10);
    let logs = blank("l", 2, DRIVE_BYTES / 2);
    shelf.open(async |pool| {
        takes_no_logs(&pool, &logs[1]);
        add_log_group(&pool, &logs).await;
        pool.world().sleep(Duration::from_secs(1200)).await;
        let tries = member(&pool, "l1").errors;
        assert!((2..=16).contains(&tries), "{tries}");
        assert_eq!(told(&pool, &["'l1' can't carry the logs"]), 1);
        logs[1].1.with_faults(|faults| faults.unwritable.clear());
        pool.world().sleep(Duration::from_secs(600)).await;
        assert!(carries(&pool, &["l0", "l1"]), "{:?}", pool.events(0));
    });
}

#[test]
fn logs_leave_their_group_for_drives_that_can_take_them() {
    let shelf = Shelf::with_pool(4, Level::Raid5);
    let logs = blank("l", 2, DRIVE_BYTES / 2);
    shelf.open(async |pool| {
        add_log_group(&pool, &logs).await;
        until(&pool, |pool| carries(pool, &["l0", "l1"])).await;
        write(&pool, 1).await;
        takes_no_logs(&pool, &shelf.media[0]);
        pool.remove_group(1).await.unwrap();
        until(&pool, |pool| pool.info().groups.len() == 1).await;
        let carriers = pool.info().log_drives;
        assert_eq!(carriers.len(), 2);
        assert!(!carriers.contains(&"d0".to_owned()), "{carriers:?}");
        has(&pool, 1).await;
    });
}

/// Copies in two groups are no copies of one span: losing one drive of each loses them all.
#[test]
fn a_rebuilt_drive_carries_the_logs_though_one_of_another_group_does() {
    let shelf = Shelf::with_pool(2, RAID10);
    let logs = blank("l", 2, DRIVE_BYTES / 2);
    shelf.open(async |pool| {
        takes_no_logs(&pool, &logs[1]);
        add_log_group(&pool, &logs).await;
        let is_half_done = |pool: &Lane<SimWorld>| carries(pool, &["d0", "d1", "l0"]);
        until(&pool, is_half_done).await;
        pool.fail_drive("d1").await.unwrap();
        assert!(pool.info().copies_are_short);
        let spare = doors(pool.world(), &blank("s", 1, DRIVE_BYTES)).remove(0);
        pool.add_spare(spare).await.unwrap();
        until(&pool, |pool| {
            pool.info().log_drives.contains(&"s0".to_owned())
        })
        .await;
        assert!(!pool.info().copies_are_short);
    });
}

#[test]
fn logs_go_to_a_whole_pair_of_their_group_first() {
    let shelf = Shelf::with_pool(2, RAID10);
    let logs = blank("l", 4, DRIVE_BYTES / 2);
    shelf.open(async |pool| {
        add_log_group(&pool, &logs).await;
        until(&pool, |pool| carries(pool, &["l0", "l1"])).await;
        write(&pool, 1).await;
        pool.fail_drive("l0").await.unwrap();
        until(&pool, |pool| carries(pool, &["l2", "l3"])).await;
        has(&pool, 1).await;
    });
}

#[test]
fn logs_lie_on_drives_of_data_while_their_group_has_one_drive_left() {
    let mut shelf = with_log_group();
    shelf.open(async |pool| {
        write(&pool, 1).await;
        pool.fail_drive("l0").await.unwrap();
        until(&pool, |pool| carries(pool, &["d0", "d1"])).await;
        assert!(!pool.info().copies_are_short);
        assert_eq!(told(&pool, &["carry the logs now"]), 1);
        write(&pool, 2).await;
        // What it has is of no use any more.
        pool.fail_drive("l1").await.unwrap();
    });
    let logs = shelf.media.split_off(2);
    shelf.open(async |pool| {
        has(&pool, 1).await;
        has(&pool, 2).await;
        write(&pool, 3).await;
        for (old, new) in logs
            .iter()
            .zip(doors(pool.world(), &blank("n", 2, DRIVE_BYTES)))
        {
            pool.replace_drive(&old.0, new).await.unwrap();
        }
        until(&pool, |pool| carries(pool, &["n0", "n1"])).await;
        has(&pool, 3).await;
    });
}

#[test]
fn logs_stay_in_their_group_where_a_spare_stands_in() {
    let shelf = with_log_group();
    shelf.open(async |pool| {
        let spare = doors(pool.world(), &blank("s", 1, DRIVE_BYTES)).remove(0);
        pool.add_spare(spare).await.unwrap();
        pool.fail_drive("l0").await.unwrap();
        until(&pool, |pool| carries(pool, &["s0", "l1"])).await;
        assert_eq!(told(&pool, &["drives of data"]), 0);
    });
}

#[test]
fn a_group_with_the_logs_leaves_while_the_log_group_lacks_a_drive() {
    let shelf = Shelf::with_pool(2, RAID10);
    let (more, logs) = (blank("e", 2, DRIVE_BYTES), blank("l", 2, DRIVE_BYTES / 2));
    shelf.open(async |pool| {
        let data = (RAID10, GroupRole::Data);
        let added = pool.add_group(data, doors(pool.world(), &more));
        added.await.unwrap();
        takes_no_logs(&pool, &logs[1]);
        add_log_group(&pool, &logs).await;
        pool.fail_drive("l1").await.unwrap();
        pool.remove_group(0).await.unwrap();
        until(&pool, |pool| pool.info().groups.len() == 2).await;
        assert!(
            carries(&pool, &["e0", "e1"]),
            "{:?}",
            pool.info().log_drives
        );
    });
}

#[test]
fn a_group_says_why_it_cannot_leave() {
    let shelf = Shelf::with_pool(2, RAID10);
    let more = blank("e", 2, DRIVE_BYTES);
    shelf.open(async |pool| {
        let data = (RAID10, GroupRole::Data);
        let added = pool.add_group(data, doors(pool.world(), &more));
        added.await.unwrap();
        pool.fail_drive("e1").await.unwrap();
        pool.remove_group(0).await.unwrap();
        let why = ["group 0 can't leave yet", "carry the logs", "replace"];
        until(&pool, |pool| told(pool, &why) > 0).await;
        pool.world().sleep(Duration::from_secs(60)).await;
        assert_eq!(told(&pool, &why), 1);
        let spare = doors(pool.world(), &blank("s", 1, DRIVE_BYTES)).remove(0);
        pool.add_spare(spare).await.unwrap();
        until(&pool, |pool| pool.info().groups.len() == 1).await;
        assert!(
            carries(&pool, &["e0", "s0"]),
            "{:?}",
            pool.info().log_drives
        );
    });
}
