//! A lane that has no room waits for others, which may have to empty a zone first.

use super::bench::{Bench, Lanes};
use crate::common::{PAGE, content, thin};
use base::VolumeOffset;
use engine::pool::life::Rates;
use engine::pool::{PoolError, PoolErrorKind};
use engine::{Level, Provisioning, VolumeSpec, World};
use std::time::Duration;
use world::sim::SimWorld;

/// Pages of a zone of the bench's pools of RAID 6.
const ZONE_PAGES: u64 = 4;

/// How long a page takes that is moved out of a zone.
const PAGE_S: u64 = 15;

/// The second lane takes all zones, and keeps one page in each of them.
async fn one_page_in_each_zone(world: &SimWorld, lanes: &Lanes) {
    let info = lanes.info();
    let pages = info.capacity_bytes / PAGE as u64;
    let big = thin("big", pages * PAGE as u64);
    let big = lanes.pools[1].create_volume(big).await.unwrap();
    let place = |page: u64| VolumeOffset(page * PAGE as u64);
    let mut written = 0;
    while big
        .write(place(written), content(world, written, PAGE))
        .await
        .is_ok()
    {
        written += 1;
    }
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
