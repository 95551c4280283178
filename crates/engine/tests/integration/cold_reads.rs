//! Reads of data whose sums are not in RAM: what they cost, and that no drive which lost writes has
//! them give out what was there before.

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

/// Reads a block in a pool that has just been opened, and has no sums in RAM: its content, if it can
/// be read, and what that took of drives.
fn read_cold(shelf: &Shelf, at: usize, bug: Option<&'static str>) -> (Option<Vec<u8>>, u64) {
    shelf.open(async |pool| {
        pool.world().plant(bug);
        let volume = pool.volume("v").unwrap();
        let before = drive_reads(&pool);
        let found = volume.read(VolumeOffset(at as u64), BLOCK_BYTES).await;
        let taken = drive_reads(&pool) - before;
        pool.world().plant(None);
        pool.close().await.unwrap();
        (found.ok().map(|found| found.to_vec()), taken)
    })
}

#[test]
fn a_read_takes_the_data_and_each_copy_of_its_sums_once() {
    let whole = bytes(1, PAGES * PAGE);
    let mirror = Level::Raid10 { copies: 2 };
    let levels = [(4, Level::Raid5, 2), (5, Level::Raid6, 3), (2, mirror, 2)];
    for (drives, level, copies) in levels {
        let shelf = Shelf::with_pool(drives, level);
        for at in (0..PAGES * PAGE).step_by(PAGE) {
            let (found, taken) = read_cold(&shelf, at, None);
            assert_eq!(found.unwrap(), whole[at..at + BLOCK_BYTES]);
            assert_eq!(taken, 1 + copies, "{level:?}, {at}");
        }
    }
}

/// All of a drive from its first zone on.
pub async fn zones_of(world: &SimWorld, drive: &SimDrive) -> Vec<(DriveOffset, Vec<u8>)> {
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

/// A pool whose volume was changed while this drive lost all that was written to its zones. The last
/// block of each page stays, the block before it is cleared, and the others are overwritten.
fn with_lost_writes((drives, level): (usize, Level), name: &str) -> Shelf {
    let shelf = Shelf::with_pool(drives, level);
    let world = shelf.world();
    let drive = SimDrive::adversarial(&world, shelf.named(name));
    let before = end(&world, zones_of(&world, &drive));
    shelf.open(async |pool| {
        let volume = pool.volume("v").unwrap();
        let new = content(pool.world(), 2, PAGES * PAGE);
        for at in (0..PAGES * PAGE).step_by(PAGE) {
            // Not whole pages: these would go elsewhere.
            let part = new.slice(at, PAGE - 2 * BLOCK_BYTES);
            volume.write(VolumeOffset(at as u64), part).await.unwrap();
            let cleared = VolumeOffset((at + PAGE - 2 * BLOCK_BYTES) as u64);
            let len = BLOCK_BYTES as u64;
            volume.clear(cleared, len).await.unwrap();
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

/// What a block holds by now.
fn wanted(at: usize) -> Vec<u8> {
    let of = |tag| bytes(tag, PAGES * PAGE)[at..at + BLOCK_BYTES].to_vec();
    match (PAGE - at % PAGE) / BLOCK_BYTES {
        1 => of(1),
        2 => vec![0; BLOCK_BYTES],
        _ => of(2),
    }
}

/// Blocks of the volume that are read as they were before, or not at all, over all drives that may
/// have lost their writes.
fn old_blocks(shape: (usize, Level), bug: Option<&'static str>) -> usize {
    let mut old = 0;
    for drive in 0..shape.0 {
        let kept = with_lost_writes(shape, &format!("d{drive}"));
        for page in 0..PAGES {
            for block in [0, 2, PAGE / BLOCK_BYTES - 2, PAGE / BLOCK_BYTES - 1] {
                let at = page * PAGE + block * BLOCK_BYTES;
                let shelf = kept.copied(7);
                old += usize::from(read_cold(&shelf, at, bug).0 != Some(wanted(at)));
            }
        }
    }
    old
}

#[test]
fn no_drive_that_lost_writes_has_old_data_given_out() {
    let mirror = Level::Raid10 { copies: 2 };
    for shape in [(4, Level::Raid5), (5, Level::Raid6), (4, mirror)] {
        assert_eq!(old_blocks(shape, None), 0, "{shape:?}");
    }
    let bug = Some("integrity read from one copy");
    assert!(old_blocks((4, Level::Raid5), bug) > 0);
}
