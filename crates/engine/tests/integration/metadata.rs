//! Openings without some copies of the metadata, and the copies that they read.

use crate::common::{Shelf, thin};
use base::{BLOCK_BYTES, DriveOffset};
use engine::label::{Label, PoolIdentity, SLOT_BYTES, Slot};
use engine::meta::checkpoint;
use engine::{Drive, Lane, Level, PoolErrorKind, World};
use futures_util::future::join;
use std::time::Duration;
use world_sim::{Faults, Outcome, SimDrive};

const DRIVES: [&str; 3] = ["d0", "d1", "d2"];
const BLOCK: u64 = BLOCK_BYTES as u64;

/// Volumes made after `v`, one journal batch each: four times as many as make a full
/// journal.
const MADE: usize = 7;

/// A pool whose two checkpoints follow each other, with records after the newer one.
fn shelf() -> Shelf {
    let shelf = Shelf::with_pool(3, Level::Raid10 { copies: 3 });
    shelf.open(async |pool| {
        for volume in 0..MADE {
            let spec = thin(&format!("made{volume}"), 4096);
            pool.create_volume(spec).await.unwrap();
        }
        pool.close().await.unwrap();
    });
    shelf
}

/// `len` bytes of a drive.
fn raw(shelf: &Shelf, drive: &str, at: u64, len: usize) -> Vec<u8> {
    let world = shelf.world();
    let drive = SimDrive::adversarial(&world, shelf.named(drive));
    let read = async {
        let (buf, outcome) = drive
            .read(DriveOffset(at), world.buffers().bytes(len))
            .await;
        outcome.unwrap();
        buf.bytes().unwrap().to_vec()
    };
    match world.run(u64::MAX, read) {
        Ok(Outcome::Done(bytes)) => bytes,
        _ => panic!("it does not end"),
    }
}

fn identity(shelf: &Shelf) -> PoolIdentity {
    match Label::decode(&raw(shelf, "d0", 0, SLOT_BYTES)) {
        Slot::Label(label) => label.pool,
        other => panic!("{other:?}"),
    }
}

/// The generation in a checkpoint slot.
fn generation(shelf: &Shelf, slot: u64) -> u64 {
    generation_on(shelf, "d0", slot)
}

fn generation_on(shelf: &Shelf, drive: &str, slot: u64) -> u64 {
    let identity = identity(shelf);
    let block = raw(shelf, drive, identity.checkpoint_offset(slot), BLOCK_BYTES);
    checkpoint::decode_header(&block, identity.uuid)
        .unwrap()
        .generation
}

/// The first block of the payload in a slot.
fn payload(shelf: &Shelf, slot: u64) -> u64 {
    identity(shelf).checkpoint_offset(slot) / BLOCK + 1
}

fn opens(shelf: &Shelf) {
    let volumes = shelf.open(async |pool| pool.volumes().len());
    assert_eq!(volumes, 1 + MADE);
}

#[test]
fn one_whole_copy_is_enough_whichever_it_is() {
    for whole in DRIVES {
        let shelf = shelf();
        for drive in DRIVES.iter().filter(|drive| **drive != whole) {
            for slot in 0..2 {
                shelf.named(drive).corrupt(payload(&shelf, slot));
            }
        }
        opens(&shelf);
    }
}

#[test]
fn a_copy_that_can_not_be_read_is_one_copy_fewer() {
    for unreadable in DRIVES {
        let shelf = shelf();
        let identity = identity(&shelf);
        let (from, end) = (
            identity.journal_offset(0) / BLOCK,
            identity.logs_offset() / BLOCK,
        );
        shelf
            .named(unreadable)
            .with_faults(|faults| faults.unreadable.extend(from..end));
        opens(&shelf);
    }
}

#[test]
fn the_older_checkpoint_and_both_journals_make_up_for_the_newer() {
    let shelf = shelf();
    let (one, other) = (generation(&shelf, 0), generation(&shelf, 1));
    assert_eq!(one.abs_diff(other), 1, "they don't follow each other");
    let newer = u64::from(other > one);
    for drive in DRIVES {
        shelf.named(drive).corrupt(payload(&shelf, newer));
    }
    opens(&shelf);
}

#[test]
fn a_drive_without_the_newest_checkpoint_gets_it_before_the_next_one_is_written() {
    let shelf = shelf();
    let (one, other) = (generation(&shelf, 0), generation(&shelf, 1));
    let newest = one.max(other);
    // As if an opening had been cut short when only one drive had its checkpoint.
    for drive in &DRIVES[1..] {
        shelf.named(drive).corrupt(payload(&shelf, newest) - 1);
    }
    opens(&shelf);
    for drive in DRIVES {
        assert_eq!(generation_on(&shelf, drive, newest % 2), newest, "{drive}");
        assert_eq!(generation_on(&shelf, drive, (newest + 1) % 2), newest + 3);
    }
}

/// The only drive that has the newest checkpoint dies at any moment of an opening: the others
/// get that checkpoint, or keep the one before.
#[test]
fn no_checkpoint_is_written_over_the_only_one_of_a_drive() {
    let shelf = shelf();
    let (one, other) = (generation(&shelf, 0), generation(&shelf, 1));
    let (newest, identity) = (one.max(other), identity(&shelf));
    for drive in &DRIVES[1..] {
        shelf.named(drive).corrupt(payload(&shelf, newest) - 1);
    }
    for step in 0..250 {
        let shelf = shelf.copied(step);
        let world = shelf.world();
        let root = async {
            let dies = async {
                world.sleep(Duration::from_micros(step * 10)).await;
                let dies = |faults: &mut Faults| faults.gone = true;
                shelf.named("d0").with_faults(dies);
            };
            let opening = Lane::open(world.clone(), shelf.drives(&world));
            join(opening, dies).await.0.is_ok()
        };
        assert_eq!(world.run(u64::MAX, root), Ok(Outcome::Done(true)));
        world.power_off();
        for drive in &DRIVES[1..] {
            let has = |generation: u64| {
                let at = identity.checkpoint_offset(generation);
                let header = raw(&shelf, drive, at, BLOCK_BYTES);
                let header = checkpoint::decode_header(&header, identity.uuid);
                header.is_some_and(|header| header.generation == generation)
            };
            assert!(has(newest) || has(newest - 1), "step {step}: {drive}");
        }
        opens(&shelf);
    }
}

#[test]
fn a_drive_without_the_newest_superblock_gets_it_before_the_next_one_is_written() {
    let shelf = shelf();
    let identity = identity(&shelf);
    let first = identity.logs_offset();
    let last = first + identity.log_bytes - BLOCK;
    let both = |drive| {
        let slots = [first, last].map(|at| raw(&shelf, drive, at, BLOCK_BYTES));
        slots.concat()
    };
    assert_eq!(both("d0"), both("d1"), "both carry the logs");
    for at in [first, last] {
        let before = both("d1");
        shelf.named("d1").corrupt(at / BLOCK);
        assert_ne!(both("d1"), before);
    }
    opens(&shelf);
    assert_eq!(both("d1"), both("d0"));
}

#[test]
fn without_any_whole_checkpoint_there_is_no_pool() {
    let shelf = shelf();
    for drive in DRIVES {
        for slot in 0..2 {
            shelf.named(drive).corrupt(payload(&shelf, slot));
        }
    }
    let (kind, context) = shelf.refusal();
    assert_eq!(kind, PoolErrorKind::Corrupt);
    assert!(context.contains("no copy"), "{context}");
}

#[test]
fn a_checkpoint_on_demand_leaves_nothing_in_the_journal() {
    let shelf = shelf();
    shelf.open(async |pool| {
        pool.checkpoint().await.unwrap();
        pool.close().await.unwrap();
    });
    let newest = generation(&shelf, 0).max(generation(&shelf, 1));
    let identity = identity(&shelf);
    // Journals of both areas are gone, and nothing is missing.
    for drive in DRIVES {
        for area in 0..2 {
            let first = identity.journal_offset(newest + area) / BLOCK;
            let blocks = u64::from(identity.journal_bytes) / BLOCK;
            (first..first + blocks).for_each(|block| shelf.named(drive).corrupt(block));
        }
    }
    opens(&shelf);
}
