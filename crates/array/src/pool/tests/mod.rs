#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
//! Tests of changes that all lanes of a pool make, or none; and of planted bugs that these find.

pub(super) mod bench;

use super::*;
use base::VolumeOffset;
use bench::{Bench, Fit, New};
use engine::pool::maintenance::Rates;
use engine::pool::{GroupRole, MemberState};
use engine::{Provisioning, VolumeSpec};
use site::SpreadKeys;
use std::time::Duration;
use world_sim::SimWorld;

const ASKED_TOO_LATE: &str = "lanes change before all are asked";
const KEPT: &str = "refused drives not taken back";
const TOO_EARLY: &str = "old drive fails before the new one is judged";

/// The groups that each lane has, or had: a number is never used again.
fn groups_ever(bench: &Bench) -> Vec<usize> {
    bench.lanes.iter().map(Lane::groups_ever).collect()
}

/// Whether a lane has a drive of this name.
fn some_have(bench: &Bench, name: &str) -> bool {
    let infos = bench.lanes.iter().map(Lane::info);
    infos
        .flat_map(|info| info.members.into_iter().chain(info.spares))
        .any(|drive| drive.name == name)
}

/// The states that a drive has in the lanes.
fn states(bench: &Bench, name: &str) -> Vec<MemberState> {
    let infos = bench.lanes.iter().map(Lane::info);
    let members = infos.flat_map(|info| info.members);
    let of_it = members.filter(|member| member.name == name);
    of_it.map(|member| member.state).collect()
}

/// Whether a group that the last lane refuses leaves nothing behind, not even its number.
fn a_refused_group_is_nothing(bug: Option<&str>) -> bool {
    bench::run(bug, async |bench| {
        let new = New::of(&["n0", "n1"], Fit::NotInLane(1));
        let refused = bench
            .pool
            .add_group((None, SpreadKeys::default(), GroupRole::Data), &new, false)
            .await
            .unwrap_err();
        assert_eq!(refused.kind, ArrayErrorKind::Invalid);
        groups_ever(bench) == [1, 1] && new.makings() == 0
    })
}

#[test]
fn all_lanes_judge_a_group_before_anything_is_made() {
    assert!(a_refused_group_is_nothing(None));
    assert!(!a_refused_group_is_nothing(Some(ASKED_TOO_LATE)));
}

/// Whether nothing is left of a spare that the last lane could not take after all had judged it.
fn a_spare_is_taken_back(bug: Option<&str>) -> bool {
    bench::run(bug, async |bench| {
        let new = New::of(&["n0"], Fit::UntilOpenedInLane(1));
        bench.pool.add_spares(None, &new).await.unwrap_err();
        !some_have(bench, "n0") && new.makings() == 0
    })
}

#[test]
fn what_one_lane_can_not_take_is_taken_back_in_all() {
    assert!(a_spare_is_taken_back(None));
    assert!(!a_spare_is_taken_back(Some(KEPT)));
}

/// Whether a drive stays in use whose replacement is refused.
fn a_refused_replacement_takes_nothing_out(bug: Option<&str>, fit: Fit) -> bool {
    bench::run(bug, async |bench| {
        let old = bench.member("d0").await;
        let new = New::of(&["n0"], fit);
        bench.pool.replace_drive(&old, &new).await.unwrap_err();
        states(bench, "d0") == [MemberState::Healthy; 2]
    })
}

#[test]
fn a_drive_fails_when_all_lanes_have_its_replacement() {
    for fit in [Fit::NotInLane(1), Fit::UntilOpenedInLane(1)] {
        assert!(a_refused_replacement_takes_nothing_out(None, fit));
        let planted = Some(TOO_EARLY);
        assert!(!a_refused_replacement_takes_nothing_out(planted, fit));
    }
}

#[test]
fn a_replacement_reaches_all_lanes_also_one_that_has_lost_the_old_drive() {
    bench::run(None, async |bench| {
        let old = bench.member("d0").await;
        // One lane puts a spare in its place, and the other has not followed yet.
        bench.lanes[1].fail_drive("d0").await.unwrap();
        let new = New::of(&["n0"], Fit::Everywhere);
        bench.pool.replace_drive(&old, &new).await.unwrap();
        assert_eq!(new.makings(), 1);
        bench.wait_until(|| !some_have(bench, "d0")).await;
        for lane in &bench.lanes {
            let members = lane.info().members;
            assert!(members.iter().any(|member| member.name == "n0"));
        }
    });
}

/// Begins to have `n0` take the place of `d0`, as slowly as that takes for ever.
async fn begin_copy(bench: &Bench) {
    let rates = Rates {
        rebuild_bytes_per_s: Some(1 << 10),
        ..Rates::default()
    };
    for lane in &bench.lanes {
        lane.set_rates(rates);
        let volume = lane.create_volume(VolumeSpec {
            name: format!("v{}", lane.lane()),
            size_bytes: 64 << 10,
            provisioning: Provisioning::Thin,
        });
        let data = bench.world.buffers().zeroed(64 << 10).freeze();
        let written = volume.await.unwrap().write(VolumeOffset(0), data).await;
        written.unwrap();
        lane.store().drain().await.unwrap();
        assert!(lane.info().groups[0].zones_in_use > 0);
    }
    let old = bench.member("d0").await;
    let new = New::of(&["n0"], Fit::Everywhere);
    assert!(bench.pool.replace_drive(&old, &new).await.unwrap());
    let copied = bench.lanes.iter().map(|lane| successor_of(lane, "d0"));
    let copied: Vec<Option<String>> = copied.collect();
    assert_eq!(copied, [Some("n0".to_owned()), Some("n0".to_owned())]);
    assert_eq!(states(bench, "d0"), [MemberState::Healthy; 2]);
}

fn successor_of(lane: &Lane<SimWorld>, name: &str) -> Option<String> {
    let members = lane.info().members;
    let found = members.into_iter().find(|member| member.name == name);
    found.and_then(|member| member.successor)
}

#[test]
fn a_drive_that_answers_is_copied_first_in_all_lanes() {
    bench::run(None, async |bench| {
        begin_copy(bench).await;
        let full = |lane: &Lane<SimWorld>| lane.set_rates(Rates::default());
        // None lets the old one go before the last has all.
        full(&bench.lanes[0]);
        bench.world.sleep(Duration::from_secs(20)).await;
        assert_eq!(states(bench, "d0"), [MemberState::Healthy; 2]);
        full(&bench.lanes[1]);
        bench.wait_until(|| !some_have(bench, "d0")).await;
        for lane in &bench.lanes {
            let members = lane.info().members;
            assert!(members.iter().any(|member| member.name == "n0"));
        }
    });
}

#[test]
fn a_copy_that_one_lane_gives_up_ends_in_all() {
    bench::run(None, async |bench| {
        bench.lanes.iter().for_each(Lane::say_completed);
        begin_copy(bench).await;
        bench.lanes[1].fail_drive("n0").await.unwrap();
        bench.lanes[0].set_rates(Rates::default());
        let is_over = || successor_of(&bench.lanes[0], "d0").is_none();
        bench.wait_until(is_over).await;
        assert_eq!(states(bench, "d0"), [MemberState::Healthy; 2]);
    });
}

#[test]
fn a_drive_whose_name_the_new_one_has_goes_at_once() {
    bench::run(None, async |bench| {
        let old = bench.member("d0").await;
        let new = New::of(&["d0"], Fit::Everywhere);
        assert!(!bench.pool.replace_drive(&old, &new).await.unwrap());
        let is_out = |lane: &Lane<SimWorld>| {
            let members = lane.info().members;
            let mut old = members.iter().filter(|member| member.uuid == old.uuid);
            old.all(|member| member.state == MemberState::Failed)
        };
        assert!(bench.lanes.iter().all(is_out));
    });
}

#[test]
fn a_drive_comes_back_to_its_own_place() {
    bench::run(None, async |bench| {
        let old = bench.member("d1").await;
        let new = New::in_place("d1");
        bench.pool.replace_drive(&old, &new).await.unwrap();
        let is_new = || {
            let infos = bench.lanes.iter().map(Lane::info);
            infos.into_iter().all(|info| {
                let mut all = info.members.iter();
                all.any(|member| member.name == "d1" && member.uuid != old.uuid)
            })
        };
        bench.wait_until(is_new).await;
    });
}

#[test]
fn no_group_weakens_a_pool_or_leaves_it_full_unless_by_force() {
    bench::run(None, async |bench| {
        let pool = &bench.pool;
        let new = New::of(&["n0"], Fit::Everywhere);
        let weak = pool.add_group(
            (
                Some(engine::Level::Simple),
                SpreadKeys::default(),
                GroupRole::Data,
            ),
            &new,
            false,
        );
        assert_eq!(weak.await.unwrap_err().kind, ArrayErrorKind::Invalid);
        let odd = pool
            .add_group((None, SpreadKeys::default(), GroupRole::Data), &new, true)
            .await
            .unwrap_err();
        assert!(odd.context.contains("1 drive"), "{odd}");
        let new = New::of(&["n0", "n1"], Fit::Everywhere);
        pool.add_group((None, SpreadKeys::default(), GroupRole::Data), &new, false)
            .await
            .unwrap();
        bench.promise_a_quarter().await;
        let thresholds = engine::pool::maintenance::fullness::Thresholds {
            warn_percent: 10,
            alarm_percent: 20,
        };
        pool.set_thresholds(thresholds).await.unwrap();
        let full = pool.remove_group(0, false).await.unwrap_err();
        assert_eq!(full.kind, ArrayErrorKind::Full);
        assert!(full.context.contains("20 %"), "{full}");
        pool.remove_group(0, true).await.unwrap();
        assert_eq!(groups_ever(bench), [2, 2]);
    });
}

#[test]
fn a_drive_fails_in_all_lanes_and_a_spare_goes_from_all() {
    bench::run(None, async |bench| {
        let new = New::of(&["n0"], Fit::Everywhere);
        bench.pool.add_spares(None, &new).await.unwrap();
        assert!(bench.lanes.iter().all(|lane| lane.info().spares.len() == 1));
        let spare = bench.member("n0").await;
        bench.pool.fail_drive(&spare).await.unwrap();
        assert!(!some_have(bench, "n0"));
        let old = bench.member("d0").await;
        bench.pool.fail_drive(&old).await.unwrap();
        assert_eq!(states(bench, "d0"), [MemberState::Failed; 2]);
        let needed = bench.member("d1").await;
        let refused = bench.pool.fail_drive(&needed).await.unwrap_err();
        assert_eq!(refused.kind, ArrayErrorKind::Invalid);
    });
}

#[test]
fn lanes_have_shares_of_rates_and_cache() {
    bench::run(None, async |bench| {
        let paces = Paces {
            cache_bytes: 8 << 20,
            rates: engine::pool::maintenance::Rates {
                scrub_bytes_per_s: Some(100),
                ..Default::default()
            },
            thresholds: Default::default(),
        };
        bench.pool.set_paces(paces).await.unwrap();
        let infos = bench.pool.lane_infos().await.unwrap();
        let shares = infos.iter().map(|info| info.rates.scrub_bytes_per_s);
        assert_eq!(shares.collect::<Vec<_>>(), [Some(50); 2]);
        let info = bench.pool.info().await.unwrap();
        assert_eq!(info.rates.scrub_bytes_per_s, Some(100));
        bench.pool.scrub(true).await.unwrap();
        bench.lanes[1].close().await.unwrap();
        assert!(bench.pool.scrub(true).await.is_err());
    });
}
