//! Drives that are copied to others before they leave.

use crate::cold_reads::zones_of;
use crate::common::{DRIVE_BYTES, PAGE, Shelf, bytes, content, copy, media};
use crate::log_group::{Named, doors, until};
use base::VolumeOffset;
use engine::pool::MemberInfo;
use engine::pool::maintenance::Rates;
use engine::{Lane, Level, MemberState, NamedDrive, PoolErrorKind, World};
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Media, SimDrive, SimWorld};

pub const RAID10: Level = Level::Raid10 { copies: 2 };
pub const NEW: &str = "new";

/// A pool, and a drive that is to take a place in it.
pub fn shelf_of(level: Level, drives: usize) -> (Shelf, Named) {
    let shelf = Shelf::with_pool(drives, level);
    (shelf, (NEW.to_owned(), media(NEW, DRIVE_BYTES)))
}

pub async fn add(pool: &Lane<SimWorld>, (name, media): &Named) {
    let drive = SimDrive::adversarial(pool.world(), media);
    let name = name.clone();
    pool.add_spare(NamedDrive { name, drive }).await.unwrap();
}

/// Begins to copy `old`, as slowly as that copies not a zone in the next moments.
pub async fn begin(pool: &Lane<SimWorld>, old: &str, new: &Named) {
    set_rate(pool, Some(4 << 10));
    add(pool, new).await;
    pool.copy_drive(old, &new.0).await.unwrap();
    assert_eq!(member(pool, old).successor.as_deref(), Some(&new.0[..]));
}

pub fn set_rate(pool: &Lane<SimWorld>, rebuild_bytes_per_s: Option<u64>) {
    pool.set_rates(Rates {
        rebuild_bytes_per_s,
        ..Rates::default()
    });
}

pub fn found(pool: &Lane<SimWorld>, name: &str) -> Option<MemberInfo> {
    let info = pool.info();
    let mut all = info.members.into_iter().chain(info.spares);
    all.find(|member| member.name == name)
}

pub fn member(pool: &Lane<SimWorld>, name: &str) -> MemberInfo {
    found(pool, name).unwrap()
}

pub fn has_place(pool: &Lane<SimWorld>, name: &str) -> bool {
    let members = pool.info().members;
    let is_it = |member: &&MemberInfo| member.name == name;
    let found = members.iter().find(is_it);
    found.is_some_and(|member| member.state == MemberState::Healthy)
}

pub async fn ended(pool: &Lane<SimWorld>) {
    set_rate(pool, None);
    until(pool, |pool| {
        has_place(pool, NEW) && !pool.info().copies_are_short
    })
    .await;
}

pub fn told(pool: &Lane<SimWorld>, text: &str) -> usize {
    let events = pool.events(0);
    let about = events.iter().filter(|event| event.text.contains(text));
    about.count()
}

pub async fn write(pool: &Lane<SimWorld>, tag: u64) {
    let data = content(pool.world(), tag, 8 * PAGE);
    let volume = pool.volume("v").unwrap();
    volume.write(VolumeOffset(0), data).await.unwrap();
}

pub async fn assert_holds(pool: &Lane<SimWorld>, tag: u64) {
    let volume = pool.volume("v").unwrap();
    let whole = volume.read(VolumeOffset(0), 8 * PAGE).await.unwrap();
    assert!(whole.to_vec() == bytes(tag, 8 * PAGE));
}

/// The drives of a shelf without `old`, and `new`.
pub fn with(shelf: &Shelf, old: &str, new: &Named) -> Shelf {
    let mut after = Shelf::new(0);
    let kept = shelf.media.iter().filter(|(name, _)| name != old);
    after.media = kept.cloned().chain([new.clone()]).collect();
    after
}

pub fn holds(shelf: &Shelf, tag: u64) {
    shelf.open(async |pool| assert_holds(&pool, tag).await);
}

#[test]
fn a_drive_leaves_when_its_successor_holds_everything() {
    for (level, drives) in [
        (Level::Simple, 1),
        (RAID10, 2),
        (Level::Raid5, 3),
        (Level::Raid6, 4),
    ] {
        let (shelf, new) = shelf_of(level, drives);
        shelf.open(async |pool| {
            begin(&pool, "d0", &new).await;
            write(&pool, 2).await;
            pool.store().drain().await.unwrap();
            assert!(has_place(&pool, "d0"), "{level}");
            assert_eq!(member(&pool, NEW).state, MemberState::Rebuilding);
            ended(&pool).await;
            assert!(found(&pool, "d0").is_none(), "{level}");
            write(&pool, 3).await;
            pool.close().await.unwrap();
        });
        let after = with(&shelf, "d0", &new);
        holds(&after, 3);
        // The old one knows that it is out of use.
        let mut old = Shelf::new(0);
        old.media = vec![shelf.media[0].clone()];
        let (kind, context) = old.refusal();
        assert_eq!(kind, PoolErrorKind::Missing, "{level}: {context}");
        // The new one carries what the old one carried: one more may be lost than before.
        if level != Level::Simple {
            let mut fewer = with(&after, "d1", &new);
            fewer.media.pop();
            holds(&fewer, 3);
        }
    }
}

#[test]
fn as_many_others_may_be_lost_as_before() {
    for (level, drives, lost) in [
        (RAID10, 2, &["d1"][..]),
        (Level::Raid5, 3, &["d2"]),
        (Level::Raid6, 4, &["d1", "d3"]),
    ] {
        for bug in [None, Some("copied drive leaves at once")] {
            let (shelf, new) = shelf_of(level, drives);
            let world = shelf.world();
            world.plant(bug);
            let doors = shelf.drives(&world);
            let root = async {
                let pool = Lane::open(world.clone(), doors).await.unwrap();
                set_rate(&pool, Some(4 << 10));
                add(&pool, &new).await;
                pool.copy_drive("d0", NEW).await.unwrap();
                pool.store().drain().await.unwrap();
                lost.iter().for_each(|name| gone(&shelf, name));
                let volume = pool.volume("v").unwrap();
                let data = content(&world, 2, 8 * PAGE);
                let written = volume.write(VolumeOffset(0), data).await;
                let drained = pool.store().drain().await;
                assert_eq!(written.is_ok() && drained.is_ok(), bug.is_none(), "{level}");
                if bug.is_none() {
                    assert_holds(&pool, 2).await;
                    set_rate(&pool, None);
                    until(&pool, |pool| has_place(pool, NEW)).await;
                    assert_holds(&pool, 2).await;
                }
            };
            world.run(u64::MAX, root).unwrap();
        }
    }
}

pub fn gone(shelf: &Shelf, name: &str) {
    shelf.named(name).with_faults(|faults| faults.gone = true);
}

/// Reads of all drives but the one that leaves and its successor.
/// Its copy of the sums may be the only one: a cut must not tear that.
#[test]
fn a_copy_writes_nothing_to_the_zones_of_the_old_drive() {
    let (shelf, new) = shelf_of(Level::Simple, 1);
    shelf.open(async |pool| {
        pool.store().drain().await.unwrap();
        pool.store().integrity.flush().await.unwrap();
        let drive = SimDrive::adversarial(pool.world(), shelf.named("d0"));
        let before = zones_of(pool.world(), &drive).await;
        begin(&pool, "d0", &new).await;
        ended(&pool).await;
        assert!(zones_of(pool.world(), &drive).await == before);
        assert_holds(&pool, 1).await;
        pool.close().await.unwrap();
    });
    holds(&with(&shelf, "d0", &new), 1);
}

fn reads_of_others(pool: &Lane<SimWorld>) -> u64 {
    let members = pool.info().members;
    let others = members
        .iter()
        .filter(|one| one.name != "d0" && one.name != NEW);
    others.map(|member| member.reads).sum()
}

#[test]
fn a_copy_reads_the_others_less_than_a_rebuild() {
    for (level, drives, least) in [(RAID10, 4, 5), (Level::Raid5, 5, 2)] {
        let reads = [true, false].map(|is_copied| {
            let (shelf, new) = shelf_of(level, drives);
            shelf.open(async |pool| {
                let volume = pool.create_volume(crate::common::thin("w", 1 << 20));
                let volume = volume.await.unwrap();
                let data = content(pool.world(), 3, 1 << 20);
                volume.write(VolumeOffset(0), data).await.unwrap();
                pool.store().drain().await.unwrap();
                let before = reads_of_others(&pool);
                match is_copied {
                    true => begin(&pool, "d0", &new).await,
                    false => {
                        let door = doors(pool.world(), std::slice::from_ref(&new)).remove(0);
                        pool.replace_drive("d0", door).await.unwrap();
                    }
                }
                ended(&pool).await;
                reads_of_others(&pool) - before
            })
        });
        let [copied, rebuilt] = reads;
        println!("{level}: {copied} reads of the others by a copy, {rebuilt} by a rebuild");
        assert!(copied * least <= rebuilt, "{level}: {copied}, {rebuilt}");
    }
}

#[test]
fn what_the_old_drive_can_not_give_is_put_together() {
    for (level, drives) in [(RAID10, 2), (Level::Raid5, 3)] {
        let (shelf, new) = shelf_of(level, drives);
        shelf.open(async |pool| {
            pool.store().drain().await.unwrap();
            begin(&pool, "d0", &new).await;
            let first = pool.info().data_start / 4096;
            shelf.named("d0").with_faults(|faults| {
                faults.unreadable.extend(first..DRIVE_BYTES / 4096);
            });
            ended(&pool).await;
            assert_eq!(pool.info().lost_bytes, 0, "{level}");
            pool.close().await.unwrap();
        });
        // Its successor alone holds what it held.
        let mut after = with(&shelf, "d0", &new);
        after.media.retain(|(name, _)| name != "d1");
        holds(&after, 1);
    }
}

#[test]
fn a_block_that_nobody_has_is_lost_and_the_copy_ends() {
    let (shelf, new) = shelf_of(Level::Simple, 1);
    shelf.open(async |pool| {
        pool.store().drain().await.unwrap();
        let volume = pool.volume("v").unwrap();
        let strike = |block| {
            shelf.named("d0").with_faults(|faults| {
                faults.unreadable.clear();
                faults.unreadable.insert(block);
            });
        };
        let mut found = false;
        for block in pool.info().data_start / 4096..DRIVE_BYTES / 4096 {
            strike(block);
            found = volume.read(VolumeOffset(0), 4096).await.is_err();
            if found {
                break;
            }
        }
        assert!(found, "it lies somewhere");
        begin(&pool, "d0", &new).await;
        ended(&pool).await;
        assert_eq!(pool.info().lost_bytes, 4096);
        assert!(volume.read(VolumeOffset(0), 4096).await.is_err());
        let rest = volume.read(VolumeOffset(4096), 8 * PAGE - 4096).await;
        assert!(rest.unwrap().to_vec() == bytes(1, 8 * PAGE)[4096..]);
        write(&pool, 2).await;
        assert_holds(&pool, 2).await;
    });
}

#[test]
fn the_old_drive_stays_when_its_successor_fails() {
    let (shelf, new) = shelf_of(Level::Raid5, 3);
    shelf.open(async |pool| {
        begin(&pool, "d0", &new).await;
        new.1.with_faults(|faults| faults.gone = true);
        write(&pool, 2).await;
        pool.store().drain().await.unwrap();
        assert!(has_place(&pool, "d0"));
        assert_eq!(member(&pool, "d0").successor, None);
        assert!(found(&pool, NEW).is_none());
        assert_eq!(told(&pool, "'d0' stays"), 1, "{:?}", pool.events(0));
        // Another may be tried.
        let other = ("other".to_owned(), media("other", DRIVE_BYTES));
        begin(&pool, "d0", &other).await;
        set_rate(&pool, None);
        until(&pool, |pool| has_place(pool, "other")).await;
        assert_holds(&pool, 2).await;
    });
}

/// Writes whose successor has not got them are acknowledged when no label says that it is one.
#[test]
fn a_successor_that_missed_a_write_is_none_after_a_crash() {
    for (bug, stays) in [
        (None, false),
        (Some("successor that missed a write stays one"), true),
    ] {
        let (shelf, new) = shelf_of(RAID10, 2);
        let world = shelf.world();
        world.plant(bug);
        let doors = shelf.drives(&world);
        let root = async {
            let pool = Lane::open(world.clone(), doors).await.unwrap();
            begin(&pool, "d0", &new).await;
            let first = pool.info().data_start / 4096;
            let data = first..DRIVE_BYTES / 4096;
            new.1.with_faults(|faults| faults.unwritable.extend(data));
            write(&pool, 2).await;
            pool.store().drain().await.unwrap();
        };
        world.run(u64::MAX, root).unwrap();
        world.power_off();
        new.1.with_faults(|faults| faults.unwritable.clear());
        let mut after = Shelf::new(0);
        after.media = shelf.media.iter().cloned().chain([new]).collect();
        after.open(async |pool| {
            let successor = member(&pool, "d0").successor;
            assert_eq!(successor.is_some(), stays, "{bug:?}");
            assert_holds(&pool, 2).await;
        });
    }
}

#[test]
fn a_copied_drive_that_is_lost_leaves_a_rebuild() {
    let (shelf, new) = shelf_of(Level::Raid5, 3);
    shelf.open(async |pool| {
        begin(&pool, "d0", &new).await;
        gone(&shelf, "d0");
        write(&pool, 2).await;
        pool.store().drain().await.unwrap();
        assert!(found(&pool, "d0").is_none(), "{:?}", pool.info().members);
        let members = pool.info().members;
        let state = members.iter().find(|member| member.name == NEW);
        assert_eq!(state.unwrap().state, MemberState::Rebuilding);
        assert_holds(&pool, 2).await;
        ended(&pool).await;
        gone(&shelf, "d1");
        assert_holds(&pool, 2).await;
    });
    holds(&with(&shelf, "d0", &new), 2);
}

/// A pool that ended while `d0` was copied, some zones of it already.
fn half_copied(level: Level, drives: usize) -> (Shelf, Named) {
    let (shelf, new) = shelf_of(level, drives);
    shelf.open(async |pool| {
        pool.store().drain().await.unwrap();
        begin(&pool, "d0", &new).await;
        set_rate(&pool, Some(256 << 10));
        let done = |pool: &Lane<SimWorld>| {
            let tasks = pool.info().tasks;
            let mut tasks = tasks.iter().filter(|task| task.subject == NEW);
            tasks.any(|task| task.done_bytes > 64 << 10)
        };
        until(&pool, done).await;
        assert_eq!(member(&pool, "d0").successor.as_deref(), Some(NEW));
        // No close: as after kill -9.
    });
    (shelf, new)
}

#[test]
fn a_copy_goes_on_after_a_crash() {
    for (level, drives) in [(Level::Simple, 1), (Level::Raid5, 3)] {
        let (shelf, new) = half_copied(level, drives);
        let mut both = Shelf::new(0);
        both.media = shelf.media.iter().cloned().chain([new.clone()]).collect();
        both.open(async |pool| {
            assert_eq!(member(&pool, "d0").successor.as_deref(), Some(NEW));
            ended(&pool).await;
            let goes_on = "copy of drive 'd0' to 'new' continues";
            assert_eq!(told(&pool, goes_on), 1, "{:?}", pool.events(0));
            assert_holds(&pool, 1).await;
            pool.close().await.unwrap();
        });
        holds(&with(&shelf, "d0", &new), 1);
    }
}

#[test]
fn a_start_without_the_old_drive_rebuilds_its_successor() {
    let (shelf, new) = half_copied(Level::Raid5, 3);
    with(&shelf, "d0", &new).open(async |pool| {
        assert!(found(&pool, "d0").is_none());
        ended(&pool).await;
        assert_holds(&pool, 1).await;
        pool.close().await.unwrap();
    });
    // The old one comes back, and is nobody any more.
    let mut all = Shelf::new(0);
    all.media = shelf.media.iter().cloned().chain([new]).collect();
    all.open(async |pool| {
        assert!(has_place(&pool, NEW) && found(&pool, "d0").is_none());
        assert_holds(&pool, 1).await;
    });
}

#[test]
fn a_start_without_the_successor_leaves_the_old_drive_in_its_place() {
    let (shelf, new) = half_copied(RAID10, 2);
    shelf.open(async |pool| {
        assert!(has_place(&pool, "d0") && found(&pool, NEW).is_none());
        write(&pool, 2).await;
        pool.close().await.unwrap();
    });
    // It has missed what was written since.
    let mut all = Shelf::new(0);
    all.media = shelf.media.iter().cloned().chain([new]).collect();
    all.open(async |pool| {
        assert_eq!(member(&pool, "d0").successor, None);
        assert_holds(&pool, 2).await;
    });
}

#[test]
fn a_copy_is_called_off_by_taking_its_successor_out() {
    let (shelf, new) = shelf_of(RAID10, 2);
    shelf.open(async |pool| {
        begin(&pool, "d0", &new).await;
        pool.fail_drive(NEW).await.unwrap();
        assert!(has_place(&pool, "d0") && found(&pool, NEW).is_none());
        assert_eq!(member(&pool, "d0").successor, None);
        write(&pool, 2).await;
        pool.world().sleep(Duration::from_secs(5)).await;
        assert!(pool.info().tasks.is_empty());
    });
    holds(&shelf, 2);
}

#[test]
fn a_drive_that_is_taken_out_by_command_is_not_waited_for() {
    let (shelf, new) = shelf_of(RAID10, 2);
    shelf.open(async |pool| {
        begin(&pool, "d0", &new).await;
        pool.fail_drive("d0").await.unwrap();
        assert!(found(&pool, "d0").is_none());
        ended(&pool).await;
        assert_holds(&pool, 1).await;
    });
}

#[test]
fn drives_that_can_not_be_copied_are_named() {
    let (shelf, new) = shelf_of(Level::Raid5, 3);
    shelf.open(async |pool| {
        let refused = async |old: &str, new: &str| {
            let error = pool.copy_drive(old, new).await.unwrap_err();
            assert!(error.context.contains(&format!("'{old}'")), "{error}");
            error.kind
        };
        assert_eq!(refused("d9", NEW).await, PoolErrorKind::NotFound);
        assert_eq!(refused("d0", NEW).await, PoolErrorKind::Invalid, "no spare");
        begin(&pool, "d0", &new).await;
        pool.copy_drive("d0", NEW).await.unwrap();
        assert_eq!(refused("d1", NEW).await, PoolErrorKind::Invalid, "taken");
        let other: Rc<Media> = copy(&media("x", DRIVE_BYTES), DRIVE_BYTES);
        add(&pool, &("other".to_owned(), other)).await;
        assert_eq!(
            refused("d0", "other").await,
            PoolErrorKind::Invalid,
            "copied"
        );
        // It is out of use: the spare stands in for it.
        pool.fail_drive("d1").await.unwrap();
        set_rate(&pool, None);
        until(&pool, |pool| {
            has_place(pool, NEW) && has_place(pool, "other")
        })
        .await;
    });
}

#[test]
fn a_hung_successor_is_given_up() {
    let (shelf, new) = shelf_of(RAID10, 2);
    shelf.open(async |pool| {
        begin(&pool, "d0", &new).await;
        let now = pool.world().now();
        new.1.with_faults(|faults| faults.hangs_from = Some(now));
        write(&pool, 2).await;
        pool.store().drain().await.unwrap();
        assert!(has_place(&pool, "d0") && found(&pool, NEW).is_none());
        assert_holds(&pool, 2).await;
    });
    holds(&shelf, 2);
}
