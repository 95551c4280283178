//! A lane that has no room waits for others, which may have to empty a zone first.

use super::bench::{Bench, LANES, Lanes};
use crate::common::{PAGE, bytes, content, thin};
use base::VolumeOffset;
use engine::lane::{LaneSlot, Purpose};
use engine::pool::maintenance::Rates;
use engine::pool::{PoolError, PoolErrorKind};
use engine::{Level, Provisioning, Volume, VolumeSpec, World};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use world_sim::SimWorld;

/// Pages of a zone of the bench's pools of RAID 6.
const ZONE_PAGES: u64 = 4;

/// How long a page takes that is moved out of a zone.
const PAGE_S: u64 = 15;

fn place(page: u64) -> VolumeOffset {
    VolumeOffset(page * PAGE as u64)
}

/// The second lane takes all zones, and fills them; with how many pages.
async fn all_zones(world: &SimWorld, lanes: &Lanes) -> (Volume<SimWorld>, u64) {
    let info = lanes.info();
    let pages = info.capacity_bytes / PAGE as u64;
    let big = thin("big", pages * PAGE as u64);
    let big = lanes.pools[1].create_volume(big).await.unwrap();
    let mut written = 0;
    while big
        .write(place(written), content(world, written, PAGE))
        .await
        .is_ok()
    {
        written += 1;
    }
    (big, written)
}

/// The second lane takes all zones, and keeps one page in each of them.
async fn one_page_in_each_zone(world: &SimWorld, lanes: &Lanes) {
    let (big, written) = all_zones(world, lanes).await;
    for page in (0..written).filter(|page| page % ZONE_PAGES != 0) {
        big.clear(place(page), PAGE as u64).await.unwrap();
    }
    assert!(lanes.info().free_zones_bytes == 0, "{:?}", lanes.info());
}

/// Has the first lane make a thick volume as large as a zone; how long that took.
fn make_thick(bug: Option<&str>) -> Result<Duration, PoolError> {
    let bench = Bench::new(Level::Raid6, 4, 0);
    bench.run(bug, async |bench, world| {
        let lanes = bench.open(world).await.unwrap();
        one_page_in_each_zone(world, &lanes).await;
        lanes.set_rates(Rates {
            rebuild_bytes_per_s: Some(PAGE as u64 / PAGE_S),
            ..Rates::default()
        });
        let began = world.now();
        let made = lanes.pools[0].create_volume(VolumeSpec {
            name: "thick".to_owned(),
            size_bytes: ZONE_PAGES * PAGE as u64,
            provisioning: Provisioning::Thick,
        });
        let made = made.await.map(|_| world.now().since(began));
        lanes.close().await;
        made
    })
}

#[test]
fn a_lane_waits_as_long_as_another_takes_to_empty_a_zone() {
    let took = make_thick(None).unwrap();
    assert!(took >= Duration::from_secs(PAGE_S - 1), "{took:?}");
    let error = make_thick(Some("lanes are not waited for")).unwrap_err();
    assert_eq!(error.kind, PoolErrorKind::Full);
}

/// The first lane empties a zone for the third one, and has no free page left. It writes over a
/// whole page before the third one takes the zone.
fn write_over_without_room(bug: Option<&str>) {
    let bench = Bench::new(Level::Raid6, 4, 0);
    bench.run(bug, async |bench, world| {
        let lanes = LaneSlot::all(LANES);
        let registry = lanes[2].registry.clone();
        let lanes = bench.open_as(world, lanes).await.unwrap();
        all_zones(world, &lanes).await;
        let volume = lanes.pools[0].volume("v").unwrap();
        for page in [0, 1, 4, 5] {
            volume.clear(place(page), PAGE as u64).await.unwrap();
        }
        let request = registry.request_zone(2, Purpose::Write);
        while lanes.info().free_zones_bytes == 0 {
            world.sleep(Duration::from_millis(100)).await;
        }
        let data = content(world, 2, PAGE);
        volume.write(place(2), data).await.unwrap();
        drop(request);
        let read = volume.read(place(2), PAGE).await.unwrap();
        assert!(read.to_vec() == bytes(2, PAGE));
        lanes.close().await;
    });
}

#[test]
fn a_write_does_not_ask_without_end_for_a_zone_that_is_for_another_lane() {
    write_over_without_room(None);
    // The simulator ends a task that asks and never waits.
    let bug = Some("page asked for without end");
    let ended = catch_unwind(AssertUnwindSafe(|| write_over_without_room(bug)));
    let why = ended.unwrap_err();
    let why = why.downcast_ref::<String>().unwrap();
    assert!(why.contains("without waiting"), "{why}");
}
