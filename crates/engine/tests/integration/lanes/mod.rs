//! Pools of several lanes: a change of the pool is made in all of them or in none, over
//! crashes and stops between two of them.

mod bench;
mod changes;
mod lending;
mod requests;
mod salvage;
mod spares;
mod unlabel;

use crate::common::{PAGE, spec};
use base::VolumeOffset;
use bench::{Bench, HASTY, LANES, NEW, OLD, slowly};
use engine::label::Spacing;
use engine::pool::PoolErrorKind;
use engine::pool::maintenance::Rates;
use engine::{Level, MemberState, PoolSpec, World};
use futures_util::future::join;
use std::time::Duration;

const RAID6: Level = Level::Raid6;

/// Two groups; the first one leaves, and only the last lane has anything in it.
fn leaving() -> Bench {
    leaving_with(Spacing::Own)
}

/// The same of a pool with such page numbers.
fn leaving_with(spacing: Spacing) -> Bench {
    let spec = PoolSpec {
        spacing,
        ..spec("pool", RAID6)
    };
    let bench = Bench::of(&spec, 4, LANES - 1);
    bench.run(None, async |bench, world| {
        let lanes = bench.open(world).await.unwrap();
        bench.grow(world, &lanes, RAID6).await.unwrap();
        lanes.close().await;
    });
    bench
}

#[test]
fn drives_of_a_group_are_the_pools_until_the_last_lane_has_left() {
    for is_closed in [true, false] {
        let bench = leaving();
        bench.run(None, async |bench, world| {
            let lanes = bench.open(world).await.unwrap();
            lanes.set_rates(slowly());
            lanes.shrink(0).await.unwrap();
            bench.sleep(world, 20).await;
            assert!(lanes.zones_in_use(0) > 0, "the last lane has it still");
            for name in OLD {
                assert!(bench.label(world, name).await.is_some(), "{name}");
            }
            assert_eq!(lanes.told("its drives are free"), 0);
            if is_closed {
                lanes.close().await;
            }
        });
        // Labels of the first lane are all that a start looks for first.
        bench.run(None, async |bench, world| {
            let lanes = bench.open_by_first_lane(world).await.unwrap();
            lanes.holds().await;
            lanes.set_rates(Rates::default());
            lanes.settled().await;
            lanes.holds().await;
            assert_eq!(lanes.told("its drives are free"), 1, "{:?}", lanes.events());
            for name in OLD {
                assert!(bench.label(world, name).await.is_none(), "{name}");
                assert!(bench.has_no_label_at_all(world, name).await, "{name}");
            }
            lanes.close().await;
        });
        bench.run(None, async |bench, world| {
            let lanes = bench.open(world).await.unwrap();
            lanes.holds().await;
            assert_eq!(lanes.told("its drives are free"), 0, "it is told once");
        });
    }
}

#[test]
fn wiped_too_early_a_group_is_found_by_the_labels_of_other_lanes() {
    let bench = leaving();
    bench.run(Some(HASTY), async |bench, world| {
        let lanes = bench.open(world).await.unwrap();
        lanes.set_rates(slowly());
        lanes.shrink(0).await.unwrap();
        bench.sleep(world, 20).await;
        for name in OLD {
            assert!(bench.label(world, name).await.is_none(), "{name}");
        }
        lanes.close().await;
    });
    bench.run(None, async |bench, world| {
        let error = bench.open_by_first_lane(world).await.err().unwrap();
        assert!(error.context.contains("missing"), "{error}");
    });
    bench.run(None, async |bench, world| {
        let lanes = bench.open(world).await.unwrap();
        lanes.holds().await;
        lanes.settled().await;
        lanes.holds().await;
        for name in OLD {
            assert!(bench.has_no_label_at_all(world, name).await, "{name}");
        }
        assert_eq!(lanes.told("its drives are free"), 1);
    });
}

#[test]
fn drives_that_a_crash_kept_labels_on_are_wiped_by_the_next_opening() {
    // Cut at many places of the last steps: some lanes have left, some are wiped.
    let shrink = async |bench: &Bench, world: &world_sim::SimWorld| {
        let lanes = bench.open(world).await.unwrap();
        lanes.delete("v").await;
        lanes.shrink(0).await.unwrap();
        while lanes.told("its drives are free") == 0 {
            bench.sleep(world, 1).await;
        }
    };
    let made = leaving();
    let whole = made.copy().polls_of(shrink);
    let mut freed_later = 0;
    for cut in (whole / 2..whole).step_by((whole / 100) as usize) {
        let bench = made.copy();
        bench.run_for(cut, shrink);
        bench.run(None, async |bench, world| {
            let lanes = bench.open(world).await.unwrap();
            // Where it was cut before it began, this does it.
            lanes.shrink(0).await.ok();
            lanes.settled().await;
            freed_later += lanes.told("its drives are free");
            for name in OLD {
                assert!(
                    bench.has_no_label_at_all(world, name).await,
                    "{name}, {cut}"
                );
            }
            for name in NEW {
                assert!(bench.label(world, name).await.is_some(), "{name}, {cut}");
            }
            lanes.close().await;
        });
    }
    assert!((10..50).contains(&freed_later), "{freed_later}");
}

#[test]
fn a_drive_that_another_lane_is_ordered_to_take_out_holds_nobody_up() {
    let bench = Bench::new(RAID6, 4, 0);
    bench.run(None, async |bench, world| {
        let lanes = bench.open(world).await.unwrap();
        let volume = lanes.pools[0].volume("v").unwrap();
        let until = world.now() + Duration::from_secs(10_000);
        bench
            .media("d0")
            .with_faults(|faults| faults.stalled_until = Some(until));
        let began = world.now();
        let data = crate::common::content(world, 7, PAGE);
        let write = async {
            volume.write(VolumeOffset(0), data).await.unwrap();
            world.now().since(began)
        };
        // Lane 0 hears of it from the others only, with a write under way.
        let order = async {
            world.sleep(Duration::from_millis(500)).await;
            lanes.pools[1].fail_drive("d0").await.unwrap();
        };
        let (took, ()) = join(write, order).await;
        assert!(took < Duration::from_secs(3), "{took:?}");
        let info = lanes.pools[0].info();
        let d0 = info.members.iter().find(|member| member.name == "d0");
        assert_eq!(d0.unwrap().state, MemberState::Failed);
        lanes.close().await;
    });
}

/// A drive that failed one lane's write, and nobody else's.
async fn failed_in_first_lane(bench: &Bench, world: &world_sim::SimWorld) -> bench::Lanes {
    let lanes = bench.open(world).await.unwrap();
    let volume = lanes.pools[0].volume("v").unwrap();
    bench.media("d0").with_faults(|faults| faults.failing = 1);
    let data = crate::common::content(world, 1, 8 * PAGE);
    volume.write(VolumeOffset(0), data).await.unwrap();
    let state = |lane: usize| {
        let members = lanes.pools[lane].info().members;
        members.iter().find(|one| one.name == "d0").unwrap().state
    };
    assert_eq!(state(0), MemberState::Failed);
    assert_eq!(state(1), MemberState::Healthy);
    lanes
}

#[test]
fn a_drive_comes_back_to_the_first_lane_when_no_other_uses_it() {
    let bench = Bench::new(RAID6, 4, 0);
    bench.run(None, async |bench, world| {
        let lanes = failed_in_first_lane(bench, world).await;
        let added = lanes.pools[0].add_spare(bench.door(world, "d0")).await;
        let error = added.unwrap_err();
        assert_eq!(error.kind, PoolErrorKind::Exists);
        assert!(error.context.contains("in lane 1"), "{error}");
        for pool in &lanes.pools[1..] {
            pool.fail_drive("d0").await.unwrap();
        }
        for pool in &lanes.pools {
            pool.add_spare(bench.door(world, "d0")).await.unwrap();
        }
        lanes.settled().await;
        lanes.holds().await;
        lanes.close().await;
    });
}

#[test]
fn a_lane_takes_no_drive_that_it_uses_as_another() {
    const BUG: &str = "drive in two places of a lane";
    let bench = Bench::new(RAID6, 4, 0);
    // The first lane has it as another, as one did before it asked the others.
    bench.run(Some(BUG), async |bench, world| {
        let lanes = failed_in_first_lane(bench, world).await;
        let door = bench.door(world, "d0");
        lanes.pools[0].add_spare(door).await.unwrap();
        lanes.settled().await;
        lanes.close().await;
    });
    bench.has_drive_twice.set(true);
    bench.run(None, async |bench, world| {
        let lanes = bench.open(world).await.unwrap();
        let first = lanes.pools[0].info();
        for pool in &lanes.pools[1..] {
            assert_eq!(pool.drives_missing(&first), ["d0"]);
            let added = pool.add_spare(bench.door(world, "d0")).await;
            assert_eq!(added.unwrap_err().kind, PoolErrorKind::Exists);
        }
        lanes.holds().await;
        lanes.close().await;
    });
}
