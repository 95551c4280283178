//! Reads of data whose sums are not in RAM: what they cost, and that a drive which lost writes
//! proves nothing of itself.

use crate::common::{PAGE, Shelf, bytes, content, end};
use base::{BLOCK_BYTES, DriveOffset, VolumeOffset};
use engine::label::{Label, SLOT_BYTES, SLOT_OFFSETS, Slot};
use engine::{Drive, Lane, Level, World};
use world_sim::{SimDrive, SimWorld};

/// Pages of the volume `v` of a shelf with a pool.
const PAGES: usize = 8;

fn drive_reads(pool: &Lane<SimWorld>) -> u64 {
    let members = pool.info().members;
    members.iter().map(|member| member.reads).sum()
}

/// Reads a block in a pool that has just been opened, and has no sums in RAM: its content, and what
/// that took of drives.
fn read_cold(shelf: &Shelf, at: usize, bug: Option<&'static str>) -> (Vec<u8>, u64) {
    shelf.open(async |pool| {
        pool.world().plant(bug);
        let volume = pool.volume("v").unwrap();
        let before = drive_reads(&pool);
        let found = volume.read(VolumeOffset(at as u64), BLOCK_BYTES).await;
        let taken = drive_reads(&pool) - before;
        pool.world().plant(None);
        pool.close().await.unwrap();
        (found.unwrap().to_vec(), taken)
    })
}

#[test]
fn a_read_takes_one_copy_of_its_sums_fewer_than_there_are() {
    let whole = bytes(1, PAGES * PAGE);
    let levels = [(4, Level::Raid5, 2), (5, Level::Raid6, 3)];
    for (drives, level, copies) in levels {
        let shelf = Shelf::with_pool(drives, level);
        for at in (0..PAGES * PAGE).step_by(PAGE) {
            let (found, taken) = read_cold(&shelf, at, None);
            assert_eq!(found, whole[at..at + BLOCK_BYTES]);
            // The data, and the copies but one.
            assert_eq!(taken, copies, "{level:?}, {at}");
        }
    }
}

/// All of a drive from its first zone on.
async fn zones_of(world: &SimWorld, drive: &SimDrive) -> Vec<(DriveOffset, Vec<u8>)> {
    let mut start = None;
    for at in SLOT_OFFSETS {
        let buf = world.buffers().bytes(SLOT_BYTES);
        let (buf, read) = drive.read(DriveOffset(at), buf).await;
        read.unwrap();
        if let Slot::Label(label) = Label::decode(buf.bytes().unwrap()) {
            let label: Label = *label;
            start = Some(label.pool.data_start);
        }
    }
    let mut blocks = Vec::new();
    let end = drive.geometry().capacity_bytes;
    for at in (start.unwrap()..end).step_by(BLOCK_BYTES) {
        let buf = world.buffers().bytes(BLOCK_BYTES);
        let (buf, read) = drive.read(DriveOffset(at), buf).await;
        read.unwrap();
        blocks.push((DriveOffset(at), buf.bytes().unwrap().to_vec()));
    }
    blocks
}

/// A pool whose volume was overwritten while this drive lost all that was written to its zones.
fn with_lost_writes(name: &str) -> Shelf {
    let shelf = Shelf::with_pool(4, Level::Raid5);
    let world = shelf.world();
    let drive = SimDrive::adversarial(&world, shelf.named(name));
    let before = end(&world, zones_of(&world, &drive));
    shelf.open(async |pool| {
        let volume = pool.volume("v").unwrap();
        let new = content(pool.world(), 2, PAGES * PAGE);
        for at in (0..PAGES * PAGE).step_by(PAGE) {
            // Not whole pages: these would go elsewhere.
            let part = new.slice(at, PAGE - BLOCK_BYTES);
            volume.write(VolumeOffset(at as u64), part).await.unwrap();
        }
        pool.close().await.unwrap();
    });
    let world = shelf.world();
    let drive = SimDrive::adversarial(&world, shelf.named(name));
    end(&world, async {
        for (at, bytes) in before {
            let bytes = world.buffers().copy_of(&bytes).freeze();
            drive.write_durable(at, bytes).await.unwrap();
        }
    });
    shelf
}

#[test]
fn a_drive_that_lost_writes_does_not_vouch_for_itself() {
    let wanted = bytes(2, PAGES * PAGE);
    for bug in [None, Some("sums vouch for their own drive")] {
        let mut old = 0;
        for name in ["d0", "d1", "d2", "d3"] {
            for block in (0..PAGES * PAGE / BLOCK_BYTES).step_by(3) {
                let at = block * BLOCK_BYTES;
                if at % PAGE == PAGE - BLOCK_BYTES {
                    continue;
                }
                let shelf = with_lost_writes(name);
                let (found, _) = read_cold(&shelf, at, bug);
                old += usize::from(found != wanted[at..at + BLOCK_BYTES]);
            }
        }
        assert_eq!(old > 0, bug.is_some(), "{bug:?}: {old} blocks are old");
    }
}
