//! Drives that fail, or fall silent, at any moment of an opening.

use crate::common::{PAGE, Shelf, bytes, content, end};
use base::VolumeOffset;
use engine::drives::EventKind;
use engine::{Lane, Level, MemberState, PoolError, World};
use futures_util::future::join;
use std::time::Duration;
use world_sim::{Faults, SimWorld};

const RAID10: Level = Level::Raid10 { copies: 2 };
const BLOCK: u64 = 4096;

/// Opens the pool while `event` happens to the drives, so long `after` the start.
fn open_with<T>(
    shelf: &Shelf,
    after: Duration,
    event: impl Fn(&SimWorld),
    test: impl AsyncFnOnce(Result<Lane<SimWorld>, PoolError>) -> T,
) -> T {
    let world = shelf.world();
    let root = async {
        let happens = async {
            world.sleep(after).await;
            event(&world);
        };
        let opening = Lane::open(world.clone(), shelf.drives(&world));
        let (pool, ()) = join(opening, happens).await;
        test(pool).await
    };
    end(&world, root)
}

async fn holds(pool: &Lane<SimWorld>, tag: u64) -> bool {
    let volume = pool.volume("v").unwrap();
    let read = volume.read(VolumeOffset(0), 8 * PAGE).await;
    read.is_ok_and(|found| found.to_vec() == bytes(tag, 8 * PAGE))
}

/// A drive missed a write, as the labels of the other say. The newest of these can't be read at
/// first, and the one before it says nothing of that.
#[test]
fn a_newer_label_that_can_not_be_read_at_first_is_waited_for() {
    let shelf = Shelf::with_pool(2, RAID10);
    shelf.open(async |pool| {
        pool.fail_drive("d1").await.unwrap();
        let volume = pool.volume("v").unwrap();
        let data = content(pool.world(), 2, 8 * PAGE);
        volume.write(VolumeOffset(0), data).await.unwrap();
    });
    let slots = engine::label::SLOT_OFFSETS;
    let moments = [
        (&slots[..1], 250),
        (&slots[1..], 250),
        (&slots[..], 450),
        (&slots[..], 550),
    ];
    for (step, (slots, back_ms)) in (0..).zip(moments) {
        let shelf = shelf.copied(step);
        let blocks = slots.iter().map(|slot| slot / BLOCK);
        let away = |faults: &mut Faults| faults.unreadable.extend(blocks);
        shelf.named("d0").with_faults(away);
        let back = |_: &SimWorld| {
            let back = |faults: &mut Faults| faults.unreadable.clear();
            shelf.named("d0").with_faults(back);
        };
        let after = Duration::from_millis(back_ms);
        open_with(&shelf, after, back, async |pool| {
            let pool = pool.unwrap();
            assert_eq!(pool.info().members[1].state, MemberState::Failed);
            assert!(holds(&pool, 2).await);
        });
    }
}

/// A shelf of two drives stands still for longer than a drive may hang: that is no reason to
/// do without the one that is asked first.
#[test]
fn drives_that_stand_still_together_in_an_opening_stay() {
    let shelf = Shelf::with_pool(4, Level::Raid5);
    let mut silent = 0;
    for step in 0..100 {
        let shelf = shelf.copied(step);
        let stands_still = |world: &SimWorld| {
            let until = world.now() + Duration::from_secs(8);
            for name in ["d0", "d1"] {
                let stall = |faults: &mut Faults| faults.stalled_until = Some(until);
                shelf.named(name).with_faults(stall);
            }
        };
        let after = Duration::from_micros(step * 20);
        let opens_without_one = open_with(&shelf, after, stands_still, async |pool| {
            let Ok(pool) = pool else { return false };
            pool.world().sleep(Duration::from_secs(10)).await;
            // The label of one had not been read yet: it is a missing drive, as any other.
            let events = pool.events(0);
            events.iter().any(|e| e.kind == EventKind::DriveMissing)
        });
        if opens_without_one {
            continue;
        }
        silent += 1;
        let go_on = |faults: &mut Faults| faults.stalled_until = None;
        for name in ["d0", "d1"] {
            shelf.named(name).with_faults(go_on);
        }
        shelf.open(async |pool| {
            let members = pool.info().members;
            let out = members.iter().find(|m| m.state != MemberState::Healthy);
            assert!(out.is_none(), "step {step}: {out:?}");
            assert!(holds(&pool, 1).await, "step {step}");
        });
    }
    assert!(silent > 50, "{silent}");
}

/// A drive dies at any moment of an opening, with batches in the logs, and without.
#[test]
fn an_opening_does_without_a_drive_that_dies_meanwhile() {
    let shelf = Shelf::with_pool(2, RAID10);
    opens_though_one_dies(&shelf, 1);
    shelf.open(async |pool| {
        // In the log only: as after a kill.
        let data = content(pool.world(), 2, 8 * PAGE);
        let volume = pool.volume("v").unwrap();
        volume.write(VolumeOffset(0), data).await.unwrap();
    });
    opens_though_one_dies(&shelf, 2);
}

fn opens_though_one_dies(shelf: &Shelf, tag: u64) {
    for step in 0..250 {
        let shelf = shelf.copied(step);
        let dies = |_: &SimWorld| {
            let dies = |faults: &mut Faults| faults.gone = true;
            shelf.named("d0").with_faults(dies);
        };
        let after = Duration::from_micros(step * 17);
        open_with(&shelf, after, dies, async |pool| {
            let pool = pool.unwrap_or_else(|error| panic!("step {step}: {error}"));
            assert!(holds(&pool, tag).await, "step {step}");
        });
    }
}
