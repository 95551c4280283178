//! A drive that one lane could not use, and that is back there, while others use it.

use super::bench::{Bench, NEW, slowly};
use crate::common::{PAGE, content, thin};
use base::VolumeOffset;
use engine::{Level, MemberState, PoolErrorKind};
use world_sim::SimWorld;

/// Has the second lane fail to use `d0`, and ends as soon as a spare stands in for it there.
/// The others do not follow: another drive is being rebuilt, slowly.
async fn fail_in_second_lane(bench: &Bench, world: &SimWorld) {
    let lanes = bench.open(world).await.unwrap();
    lanes.set_rates(slowly());
    let pages = 16 * PAGE;
    let held = lanes.pools[0].create_volume(thin("held", pages as u64));
    let held = held.await.unwrap();
    held.write(VolumeOffset(0), content(world, 2, pages))
        .await
        .unwrap();
    for name in &NEW[..2] {
        for pool in &lanes.pools {
            pool.add_spare(bench.door(world, name)).await.unwrap();
        }
    }
    for pool in &lanes.pools {
        // One may have heard of it, and have another drive in its place.
        match pool.fail_drive("d1").await {
            Err(error) if error.kind == PoolErrorKind::NotFound => {}
            failed => failed.unwrap(),
        }
    }
    bench.sleep(world, 1).await;
    let volume = lanes.pools[1].volume("v").unwrap();
    bench.media("d0").with_faults(|faults| faults.failing = 1);
    let data = content(world, 1, 8 * PAGE);
    volume.write(VolumeOffset(0), data).await.unwrap();
    while lanes.told("stands in for 'd0'") == 0 {
        bench.sleep(world, 1).await;
    }
    let members = lanes.pools[0].info().members;
    assert_eq!(members[0].state, MemberState::Healthy, "{members:?}");
}

/// The drives that the first two lanes have in the first place, when the second has `d0`
/// back, to stand in.
fn in_place(bug: Option<&str>) -> [String; 2] {
    let bench = Bench::new(Level::Raid6, 4, 1);
    bench.run(None, fail_in_second_lane);
    bench.run(bug, async |bench, world| {
        let lanes = bench.open(world).await.unwrap();
        lanes.settled().await;
        lanes.holds().await;
        let spares = lanes.pools[1].info().spares;
        let is_back = spares.iter().any(|spare| spare.name == "d0");
        assert!(is_back || bug.is_some(), "{spares:?}");
        [0, 1].map(|lane| lanes.pools[lane].info().members[0].name.clone())
    })
}

#[test]
fn a_lane_keeps_a_drive_that_another_one_has_back() {
    assert_eq!(in_place(None), ["d0", NEW[1]]);
    // One gives up a sound drive for the one that the other has.
    let given_up = in_place(Some("usable drive given up for another lane"));
    assert_ne!(given_up, ["d0", NEW[1]]);
}
