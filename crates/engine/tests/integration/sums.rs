//! Sums that the logs have, beside newer ones on the drives.

use crate::common::{PAGE, Shelf, bytes, content, thin};
use base::{DriveOffset, VolumeOffset};
use engine::{Drive, Lane, Level, World};
use std::time::Duration;
use world_sim::{Outcome, SimDrive, SimWorld};

const BLOCK: usize = 4096;
const UNIT: usize = 8 << 10;

/// The drive and its block that hold `wanted`.
async fn find(shelf: &Shelf, world: &SimWorld, wanted: &[u8]) -> (usize, u64) {
    for (at, (_, media)) in shelf.media.iter().enumerate() {
        let drive = SimDrive::adversarial(world, media);
        for block in 0..drive.geometry().capacity_bytes / BLOCK as u64 {
            let place = DriveOffset(block * BLOCK as u64);
            let (buf, read) = drive.read(place, world.buffers().bytes(BLOCK)).await;
            read.unwrap();
            if buf.bytes().unwrap() == wanted {
                return (at, block);
            }
        }
    }
    panic!("it is on no drive");
}

/// Writes a page around the log, and loses a block of it: the log has the sums of the page
/// still, since something older has to be put in place first. The drives have newer ones.
/// Which drive has the block beside the lost one.
async fn lose(shelf: &Shelf, pool: &Lane<SimWorld>) -> String {
    let world = pool.world().clone();
    let store = pool.store();
    store.integrity.set_budget(1);
    let older = pool.volume("v").unwrap();
    older
        .write(VolumeOffset(0), content(&world, 2, BLOCK))
        .await
        .unwrap();
    let volume = pool.create_volume(thin("w", PAGE as u64)).await.unwrap();
    volume
        .write(VolumeOffset(0), content(&world, 3, PAGE))
        .await
        .unwrap();
    let whole = bytes(3, PAGE);
    let (lost, block) = find(shelf, &world, &whole[..BLOCK]).await;
    let (beside, same) = find(shelf, &world, &whole[UNIT..UNIT + BLOCK]).await;
    assert_eq!(block, same, "they are of one row");
    let parity = 3 - lost - beside;
    for drive in [lost, parity] {
        shelf.media[drive].1.corrupt(block);
    }
    pool.start_scrub().unwrap();
    while pool.scrubs_ended() == 0 || store.integrity.stats().dirty > 0 {
        world.sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(pool.info().lost_bytes, BLOCK as u64);
    assert!(pool.info().log_used_bytes > 0, "all is in place already");
    shelf.media[beside].0.clone()
}

/// Reads what lies beside the lost block when its drive is gone; the parity has it, without
/// the lost one.
async fn read_beside(pool: &Lane<SimWorld>) -> bool {
    let volume = pool.volume("w").unwrap();
    let read = volume.read(VolumeOffset(UNIT as u64), BLOCK).await;
    let whole = bytes(3, PAGE);
    read.is_ok_and(|found| found.to_vec() == whole[UNIT..UNIT + BLOCK])
}

#[test]
fn a_log_is_not_believed_above_newer_sums() {
    let shelf = Shelf::with_pool(3, Level::Raid5);
    let beside = shelf.open(async |pool| lose(&shelf, &pool).await);
    for (bug, is_kept) in [(Some("log believed above newer sums"), false), (None, true)] {
        let shelf = shelf.copied(1);
        let gone = shelf.named(&beside);
        gone.with_faults(|faults| faults.gone = true);
        let world = shelf.world();
        world.plant(bug);
        let read = world.run(u64::MAX, async {
            let pool = Lane::open(world.clone(), shelf.drives(&world)).await;
            read_beside(&pool.unwrap()).await
        });
        assert_eq!(read, Ok(Outcome::Done(is_kept)), "{bug:?}");
    }
}
