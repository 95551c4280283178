//! Drives of a pool that was destroyed: however often that is cut short, they end up empty.

use super::bench::{Bench, LANES};
use base::{DriveOffset, Uuid};
use engine::{Drive, Lane, Level, World};
use std::rc::Rc;
use world_sim::{SimDrive, SimWorld};

async fn unlabel(bench: &Bench, world: &SimWorld, uuid: Uuid) -> bool {
    let drive = Rc::new(SimDrive::adversarial(world, &bench.media("d0")));
    Lane::unlabel(world, drive, |_, found| found == uuid)
        .await
        .unwrap()
}

/// The pool that a drive says it is of, and how far the lanes' labels lie apart.
async fn identity(bench: &Bench, world: &SimWorld) -> Option<(Uuid, u64)> {
    let drive = SimDrive::adversarial(world, &bench.media("d0"));
    let label = Lane::probe(world, &drive).await.unwrap()?;
    Some((label.pool_uuid, label.part.front_bytes))
}

#[test]
fn a_drive_loses_the_labels_of_all_lanes_wherever_that_is_cut_short() {
    let made = Bench::new(Level::Raid5, 3, 0);
    let (uuid, front_bytes) = made
        .run(None, async |bench, world| identity(bench, world).await)
        .unwrap();
    let polls = made.copy().polls_of(async |bench, world| {
        assert!(unlabel(bench, world, uuid).await);
    });
    for cut in 1..=polls {
        let bench = made.copy();
        let was_cut = bench.run_for(cut, async |bench, world| {
            unlabel(bench, world, uuid).await;
        });
        bench.run(None, async |bench, world| {
            let is_left = unlabel(bench, world, uuid).await;
            assert!(was_cut || !is_left);
            assert_eq!(identity(bench, world).await, None, "cut at {cut}");
            let drive = SimDrive::adversarial(world, &bench.media("d0"));
            for lane in 0..u64::from(LANES) {
                let len = front_bytes.min(1 << 20) as usize;
                let buf = world.buffers().zeroed(len);
                let at = DriveOffset(lane * front_bytes);
                let (start, read) = drive.read(at, buf).await;
                read.unwrap();
                let start = start.freeze();
                let is_blank = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
                assert!(
                    start.bytes().is_none_or(is_blank),
                    "lane {lane}, cut at {cut}"
                );
            }
        });
    }
}

#[test]
fn a_drive_of_another_pool_keeps_its_label() {
    let bench = Bench::new(Level::Raid5, 3, 0);
    bench.run(None, async |bench, world| {
        let before = identity(bench, world).await;
        assert!(before.is_some());
        assert!(!unlabel(bench, world, Uuid::from_u128(7)).await);
        assert_eq!(identity(bench, world).await, before);
    });
}
