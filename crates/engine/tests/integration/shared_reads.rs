//! Clones that are read for the same blocks at the same time: drives are asked once.

use crate::common::{PAGE, Shelf, bytes};
use base::VolumeOffset;
use engine::store::counts::Purpose;
use engine::{Level, Volume};
use futures_util::future::join_all;
use world_sim::SimWorld;

const WHOLE: usize = 8 * PAGE;
const CLONES: usize = 6;

async fn read_through(volume: &Volume<SimWorld>, step: usize) {
    let whole = bytes(1, WHOLE);
    for at in (0..WHOLE).step_by(step) {
        let found = volume.read(VolumeOffset(at as u64), step).await.unwrap();
        assert!(found.to_vec() == whole[at..at + step], "at {at}");
    }
}

#[test]
fn what_many_clones_read_at_once_is_read_from_drives_once() {
    for (level, drives) in [(Level::Raid10 { copies: 2 }, 4), (Level::Raid5, 4)] {
        for step in [4096, 2 * 4096, PAGE, 2 * PAGE] {
            let shelf = Shelf::with_pool(drives, level);
            // Nothing of it is in RAM, no sums either.
            shelf.open(async |pool| {
                pool.store().drain().await.unwrap();
                pool.store().cache.set_capacity(4 << 20);
                let mut all = vec![pool.volume("v").unwrap()];
                for clone in 0..CLONES {
                    let name = format!("c{clone}");
                    pool.clone_volume("v", &name, false, 0).await.unwrap();
                    all.push(pool.volume(&name).unwrap());
                }
                join_all(all.iter().map(|volume| read_through(volume, step))).await;
                let counts = &pool.store().counts;
                let read = counts.bytes(Purpose::HostRead) + counts.bytes(Purpose::AheadRead);
                assert_eq!(read, WHOLE as u64, "{level}, {step} bytes at a time");
            });
        }
    }
}
