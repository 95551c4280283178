//! Each change of a pool, cut off and stopped between two lanes: after the next opening all
//! lanes have it, or none.

use super::RAID6;
use super::bench::{Bench, LANES, Lanes, NEW, OLD, slowly};
use engine::lane::steps;
use engine::pool::maintenance::candidates::Candidate;
use engine::{GroupRole, Level, MemberState, PoolError, PoolErrorKind};
use std::future::ready;
use world_sim::SimWorld;

const RAID10: Level = Level::Raid10 { copies: 2 };

/// A change, of one lane.
#[derive(Clone, Copy, Debug)]
enum Change {
    Grow,
    Shrink,
    Convert,
    AddSpare,
    PartWithSpare,
    Replace,
    Fail,
}

impl Change {
    /// The lanes in the order in which they are asked.
    fn order(self) -> Vec<usize> {
        let lanes = 0..usize::from(LANES);
        match self {
            Change::PartWithSpare | Change::Fail => lanes.rev().collect(),
            _ => lanes.collect(),
        }
    }

    /// What a pool has to have for it.
    async fn prepare(self, bench: &Bench, world: &SimWorld, lanes: &Lanes) {
        match self {
            Change::Shrink => bench.grow(world, lanes, RAID6).await.unwrap(),
            Change::PartWithSpare => {
                for pool in &lanes.pools {
                    pool.add_spare(bench.door(world, "n0")).await.unwrap();
                }
            }
            _ => {}
        }
    }

    async fn make(self, bench: &Bench, world: &SimWorld, lanes: &Lanes, lane: usize) {
        let pool = &lanes.pools[lane];
        let done = match self {
            Change::Grow => {
                let doors = bench.doors(world, &NEW);
                pool.add_group((RAID6, GroupRole::Data), doors)
                    .await
                    .map(drop)
            }
            Change::Shrink => pool.remove_group(0).await,
            Change::Convert => pool.convert_group(0, RAID6).await,
            Change::AddSpare => pool.add_spare(bench.door(world, "n0")).await,
            Change::PartWithSpare => pool.fail_drive("n0").await,
            Change::Replace => pool.replace_drive("d1", bench.door(world, "n0")).await,
            Change::Fail => pool.fail_drive("d1").await,
        };
        done.unwrap();
    }

    fn level(self) -> Level {
        match self {
            Change::Convert => RAID10,
            _ => RAID6,
        }
    }

    /// That all lanes have it, or none; which of both.
    fn is_made(self, lanes: &Lanes, lane: usize) -> bool {
        let info = lanes.pools[lane].info();
        let group = |index| info.groups.iter().find(|group| group.index == index);
        let at = |name: &str| info.members.iter().find(|member| member.name == name);
        let waits = info.spares.iter().any(|spare| spare.name == "n0");
        match self {
            Change::Grow => group(1).is_some_and(|group| group.members.len() == NEW.len()),
            Change::Shrink => group(0).is_none(),
            Change::Convert => group(0).is_some_and(|group| group.level == RAID6),
            Change::AddSpare | Change::PartWithSpare => waits,
            Change::Replace => at("n0").is_some_and(|m| m.state == MemberState::Healthy) || waits,
            Change::Fail => at("d1").is_some_and(|m| m.state == MemberState::Failed),
        }
    }
}

fn made(change: Change) -> Bench {
    let bench = Bench::new(change.level(), OLD.len(), 1);
    bench.run(None, async |bench, world| {
        let lanes = bench.open(world).await.unwrap();
        change.prepare(bench, world, &lanes).await;
        lanes.close().await;
    });
    bench
}

async fn all_or_none(change: Change, bench: &Bench, world: &SimWorld, what: &str) -> bool {
    let lanes = bench.open(world).await.unwrap();
    lanes.holds().await;
    lanes.settled().await;
    lanes.holds().await;
    let has: Vec<bool> = (0..lanes.pools.len())
        .map(|lane| change.is_made(&lanes, lane))
        .collect();
    let all_same = has.iter().all(|made| *made == has[0]);
    assert!(all_same, "{change:?}, {what}: {:#?}", lanes.pictures());
    lanes.close().await;
    has[0]
}

const ALL: [Change; 7] = [
    Change::Grow,
    Change::Shrink,
    Change::Convert,
    Change::AddSpare,
    Change::PartWithSpare,
    Change::Replace,
    Change::Fail,
];

#[test]
fn a_stop_between_two_lanes_leaves_all_or_none() {
    for change in ALL {
        let made = made(change);
        for asked in 1..usize::from(LANES) {
            for is_closed in [true, false] {
                let bench = made.copy();
                bench.run(None, async |bench, world| {
                    let lanes = bench.open(world).await.unwrap();
                    lanes.set_rates(slowly());
                    for lane in change.order().into_iter().take(asked) {
                        change.make(bench, world, &lanes, lane).await;
                    }
                    if is_closed {
                        lanes.close().await;
                    }
                });
                bench.run(None, async |bench, world| {
                    let what = format!("{asked} lanes asked, closed: {is_closed}");
                    all_or_none(change, bench, world, &what).await;
                });
            }
        }
    }
}

#[test]
fn a_crash_at_any_point_leaves_all_or_none() {
    for change in ALL {
        let made = made(change);
        let all = async |bench: &Bench, world: &SimWorld| {
            let lanes = bench.open(world).await.unwrap();
            world.mark(7);
            for lane in change.order() {
                change.make(bench, world, &lanes, lane).await;
            }
        };
        let opened = made.copy().polls_of(async |bench, world| {
            bench.open(world).await.unwrap();
        });
        let whole = made.copy().polls_of(all);
        let mut outcomes = [0, 0];
        let step = ((whole - opened) / 12).max(1);
        // In the poll in which it is open, the change begins.
        for cut in (opened - 1..whole + step).step_by(step as usize) {
            let bench = made.copy();
            bench.run_for(cut, all);
            bench.run(None, async |bench, world| {
                let what = format!("cut after {cut} of {whole} polls");
                let made = all_or_none(change, bench, world, &what).await;
                outcomes[usize::from(made)] += 1;
            });
        }
        assert!(
            outcomes.iter().all(|count| *count > 0),
            "{change:?}: {outcomes:?}"
        );
    }
}

/// Groups that the lanes have, or had, once a group was refused since the last lane has stopped.
fn groups_after_a_refusal(bug: Option<&str>) -> Vec<usize> {
    let bench = Bench::new(RAID6, OLD.len(), 1);
    bench.run(bug, async |bench, world| {
        let lanes = bench.open(world).await.unwrap();
        lanes.pools[2].close().await.unwrap();
        bench.grow(world, &lanes, RAID6).await.unwrap_err();
        let is_untouched = bench.has_no_label_at_all(world, "n0").await;
        assert!(is_untouched || bug.is_some());
        lanes.pools.iter().map(|pool| pool.groups_ever()).collect()
    })
}

#[test]
fn a_group_that_one_lane_refuses_leaves_nothing() {
    assert_eq!(groups_after_a_refusal(None), [1, 1, 1]);
    let bug = "group added without asking all lanes";
    assert_eq!(groups_after_a_refusal(Some(bug)), [2, 2, 1]);
}

#[test]
fn a_spare_that_one_lane_refuses_leaves_nothing() {
    let bench = Bench::new(RAID6, OLD.len(), 1);
    bench.run(None, async |bench, world| {
        let lanes = bench.open(world).await.unwrap();
        lanes.pools[1].close().await.unwrap();
        let door = bench.door(world, "n0");
        let mut said = Vec::new();
        for pool in &lanes.pools {
            let asked = pool.check_add_spare(None, Candidate::from(&door)).await;
            said.push(asked.is_ok());
        }
        assert_eq!(said, [true, false, true]);
        assert!(bench.has_no_label_at_all(world, "n0").await);
        assert!(lanes.info().spares.is_empty());
    });
}

#[test]
fn what_one_lane_can_not_take_is_taken_back_from_the_others() {
    let bench = Bench::new(RAID6, OLD.len(), 1);
    bench.run(None, async |bench, world| {
        let lanes = bench.open(world).await.unwrap();
        let names: Vec<String> = NEW.iter().map(|name| (*name).to_owned()).collect();
        for pool in &lanes.pools[..2] {
            let doors = bench.doors(world, &NEW);
            pool.add_group((RAID6, GroupRole::Data), doors)
                .await
                .unwrap();
        }
        bench.media("n2").with_faults(|faults| faults.gone = true);
        let doors = bench.doors(world, &NEW);
        assert!(
            lanes.pools[2]
                .add_group((RAID6, GroupRole::Data), doors)
                .await
                .is_err()
        );
        for pool in lanes.pools.iter().rev() {
            pool.take_back(&names, true).await.unwrap();
        }
        bench.media("n2").with_faults(|faults| faults.gone = false);
        lanes.settled().await;
        for pool in &lanes.pools {
            assert_eq!(pool.groups_ever(), 2);
            assert_eq!(pool.info().groups.len(), 1);
        }
        assert!(bench.has_no_label_at_all(world, "n0").await);
        // It can grow again: the number of a group is the same in all lanes.
        bench.grow(world, &lanes, RAID6).await.unwrap();
        for pool in &lanes.pools {
            assert_eq!(pool.info().groups[1].index, 2);
        }
        lanes.holds().await;
        lanes.close().await;
    });
    bench.run(None, async |bench, world| {
        let lanes = bench.open(world).await.unwrap();
        lanes.holds().await;
        assert_eq!(lanes.info().groups.len(), 2);
    });
}

#[test]
fn a_stopped_lane_keeps_no_other_from_taking_back() {
    let bench = Bench::new(RAID6, OLD.len(), 1);
    bench.run(None, async |bench, world| {
        let lanes = bench.open(world).await.unwrap();
        for pool in &lanes.pools[..2] {
            let doors = bench.doors(world, &NEW);
            pool.add_group((RAID6, GroupRole::Data), doors)
                .await
                .unwrap();
        }
        lanes.pools[1].close().await.unwrap();
        let names: Vec<String> = NEW.iter().map(|name| (*name).to_owned()).collect();
        let take_back = async |lane: u16, others_have| {
            let pool = &lanes.pools[usize::from(lane)];
            pool.take_back(&names, others_have).await
        };
        let take_back = &take_back;
        let refuse = |_| {
            ready(Err(PoolError {
                kind: PoolErrorKind::Failed,
                context: "as if a lane had stopped".to_owned(),
            }))
        };
        let halted = steps::change_all(LANES, refuse, take_back).await;
        let kept: Vec<u16> = halted
            .unwrap_err()
            .kept
            .iter()
            .map(|(lane, _)| *lane)
            .collect();
        assert_eq!(kept, [1]);
        let first = &lanes.pools[0].info().groups;
        assert!(first.iter().all(|group| group.index == 0 || group.leaving));
    });
    bench.run(None, async |bench, world| {
        let lanes = bench.open(world).await.unwrap();
        lanes.settled().await;
        lanes.holds().await;
        assert!(lanes.pools.iter().all(|pool| pool.info().groups.len() == 1));
    });
}

/// Adds the group to so many lanes, as the last of them is cut off at many points; what the
/// first openings after it say of drives that are free again.
fn cut_in_the_last_of(asked: usize) -> usize {
    let made = made(Change::Grow);
    let add = async |bench: &Bench, world: &SimWorld, lanes: usize| {
        let opened = bench.open(world).await.unwrap();
        for lane in 0..lanes {
            Change::Grow.make(bench, world, &opened, lane).await;
        }
    };
    let polls = |lanes| {
        made.copy()
            .polls_of(async |bench, world| add(bench, world, lanes).await)
    };
    let (before, whole) = (polls(asked - 1), polls(asked));
    let step = ((whole - before) / 24).max(1);
    let mut told = 0;
    for cut in (before..whole).step_by(step as usize) {
        let bench = made.copy();
        bench.run_for(cut, async |bench, world| add(bench, world, asked).await);
        bench.run(None, async |bench, world| {
            let lanes = bench.open(world).await.unwrap();
            told += usize::from(lanes.told("the addition of its group was cut short") > 0);
            lanes.settled().await;
            let what = format!("cut after {cut} of {whole} polls: {:#?}", lanes.pictures());
            assert!(lanes.info().spares.is_empty(), "{what}");
            let has = lanes.pools.iter().map(|pool| pool.groups_ever());
            let has: Vec<usize> = has.collect();
            assert!(has.iter().all(|groups| *groups == has[0]), "{what}");
            if has[0] == 1 {
                bench.grow(world, &lanes, RAID6).await.unwrap();
            }
            lanes.close().await;
        });
        bench.run(None, async |bench, world| {
            let lanes = bench.open(world).await.unwrap();
            lanes.holds().await;
            let pictures = lanes.pictures();
            assert!(pictures.iter().all(|picture| *picture == pictures[0]));
            assert!(Change::Grow.is_made(&lanes, 0), "{pictures:#?}");
        });
    }
    told
}

#[test]
fn a_group_cut_off_between_its_labels_is_taken_back_or_made() {
    // The first lane decides; the others have it then.
    assert!(cut_in_the_last_of(1) > 0, "no cut hit the gap");
    assert_eq!(cut_in_the_last_of(2), 0);
}
