//! Blocks of which one is there while the other is written lie apart, so that a unit of
//! flash that breaks takes one of them only.

use crate::common::{PAGE, Shelf, bytes, content, spec, thin};
use base::{DriveOffset, VolumeOffset};
use engine::label::{Label, PoolIdentity, Slot};
use engine::layout::Layout;
use engine::{Drive, Level, PoolSpec, World};
use std::collections::BTreeMap;
use std::time::Duration;
use world_sim::SimDrive;

const BLOCK: u64 = 4096;

/// What flash is written in, and breaks in.
const UNIT: u64 = 16 << 10;

fn spec_of(layout: Layout, level: Level) -> PoolSpec {
    PoolSpec {
        layout,
        ..spec("pool", level)
    }
}

/// A pool with the volume `v` of eight pages, closed cleanly.
fn shelf_of(layout: Layout, (drives, level): (usize, Level)) -> Shelf {
    let shelf = Shelf::new(drives);
    let made = shelf.create(spec_of(layout, level), async |pool| {
        let volume = pool
            .create_volume(thin("v", 8 * PAGE as u64))
            .await
            .unwrap();
        let data = content(&pool.world().clone(), 1, 8 * PAGE);
        volume.write(VolumeOffset(0), data).await.unwrap();
        pool.close().await.unwrap();
    });
    made.unwrap();
    shelf
}

/// What the label of the first drive says of the pool.
fn identity(shelf: &Shelf) -> PoolIdentity {
    let world = shelf.world();
    let drive = SimDrive::adversarial(&world, &shelf.media[0].1);
    let read = async {
        let buf = world.buffers().bytes(16 << 10);
        let (buf, outcome) = drive.read(DriveOffset(0), buf).await;
        outcome.unwrap();
        match Label::decode(buf.bytes().unwrap()) {
            Slot::Label(label) => label.pool,
            other => panic!("{other:?}"),
        }
    };
    match world.run(u64::MAX, read) {
        Ok(world_sim::Outcome::Done(pool)) => pool,
        _ => panic!("a label can be read"),
    }
}

fn holds(shelf: &Shelf) -> bool {
    let read = shelf.try_open(async |pool| {
        let volume = pool.volume("v").unwrap();
        let read = volume.read(VolumeOffset(0), 8 * PAGE).await;
        read.is_ok_and(|read| read.to_vec() == bytes(1, 8 * PAGE))
    });
    read.unwrap_or(false)
}

#[test]
fn a_pool_keeps_the_layout_that_it_was_made_with() {
    for layout in [Layout::Adjacent, Layout::Apart] {
        let shelf = shelf_of(layout, (2, Level::Raid10 { copies: 2 }));
        for _ in 0..2 {
            assert!(holds(&shelf));
            assert_eq!(identity(&shelf).layout, layout);
        }
    }
}

#[test]
fn a_broken_unit_of_the_logs_takes_one_superblock() {
    for (layout, survived) in [(Layout::Adjacent, false), (Layout::Apart, true)] {
        let mut broken = Vec::new();
        let pool = identity(&shelf_of(layout, (1, Level::Simple)));
        let logs = pool.logs_offset() / UNIT..pool.data_start.div_ceil(UNIT);
        for unit in logs {
            let shelf = shelf_of(layout, (1, Level::Simple));
            for block in unit * UNIT / BLOCK..(unit + 1) * UNIT / BLOCK {
                shelf.named("d0").corrupt(block);
            }
            if !holds(&shelf) {
                broken.push(unit * UNIT - pool.logs_offset().min(unit * UNIT));
            }
        }
        assert_eq!(broken.is_empty(), survived, "{layout:?}: {broken:?}");
    }
}

#[test]
fn sums_that_are_not_in_ram_cost_one_read_of_each_copy_wherever_slots_lie() {
    let mut costs = BTreeMap::new();
    for layout in [Layout::Adjacent, Layout::Apart] {
        for (drives, level, copies) in [
            (2, Level::Raid10 { copies: 2 }, 2),
            (3, Level::Raid10 { copies: 3 }, 3),
            (4, Level::Raid5, 2),
            (5, Level::Raid6, 3),
        ] {
            let shelf = shelf_of(layout, (drives, level));
            let (cold, loads) = shelf.open(async |pool| {
                // What the opening reads is over by then.
                pool.world().sleep(Duration::from_millis(100)).await;
                let store = pool.store();
                store.integrity.set_budget(1);
                store.cache.set_capacity(0);
                let volume = pool.volume("v").unwrap();
                let reads = || pool.info().members.iter().map(|member| member.reads).sum();
                let (before, loaded): (u64, u64) = (reads(), store.integrity.stats().loads);
                for at in [0, 5, 2, 7, 1, 6] {
                    let at = VolumeOffset(at * PAGE as u64);
                    volume.read(at, BLOCK as usize).await.unwrap();
                }
                let after: u64 = reads();
                (after - before, store.integrity.stats().loads - loaded)
            });
            assert!(loads > 0);
            // A read of the block itself, and one of each copy of its sums.
            assert_eq!(cold, 6 + loads * copies, "{layout:?} {level}");
            costs.entry(format!("{level}")).or_insert(cold);
            assert_eq!(costs[&format!("{level}")], cold, "{layout:?} {level}");
        }
    }
}
