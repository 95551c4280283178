//! The smallest mix of drives that meets the limits: what is found meets them, and one
//! group fewer does not.

use crate::common::plan;
use rehearse::sizing::{Candidate, built, candidates, ranked, size};
use site::Level;

fn raid_5(model: &str) -> Candidate {
    Candidate {
        model: model.to_owned(),
        level: Level::Raid5,
        group_drives: 5,
    }
}

#[test]
fn the_smallest_meets_the_limits_and_one_group_fewer_does_not() {
    let plan = plan(&[
        "run.limit=\"11 ms\"",
        "block.vm.outstanding=64",
        "run.measure=\"1 s\"",
    ]);
    let sized = size(&plan, "data", &raid_5("sas-10k-600")).unwrap();
    let (groups, outcome) = sized.met.as_ref().unwrap();
    assert!(*groups > 4, "a limit that few groups meet tests nothing");
    assert!(outcome.load.total.read.response.mean_ms < 11.0);
    assert!(sized.tried.contains(&(*groups, true)), "{:?}", sized.tried);
    assert!(
        sized.tried.contains(&(groups - 1, false)),
        "{:?}",
        sized.tried
    );
    let active = u32::from(*groups) * 5;
    assert_eq!(sized.drives(), Some(active + active.div_ceil(30)));
}

#[test]
fn a_limit_that_no_disk_meets_is_told_with_the_figures() {
    let plan = plan(&["run.limit=\"1 ms\""]);
    let slow = size(&plan, "data", &raid_5("nl-sas-1000")).unwrap();
    assert!(slow.met.is_none());
    assert!(
        slow.reason.contains("with 120 drives reads take"),
        "{}",
        slow.reason
    );
    let fast = size(&plan, "data", &raid_5("slc-200")).unwrap();
    assert_eq!(fast.met.as_ref().map(|(groups, _)| *groups), Some(1));
    let all = [slow, fast];
    let good = ranked(&all);
    assert_eq!(good.len(), 1);
    assert_eq!(good[0].candidate.name(), "RAID 5 of 5 × slc-200");
}

#[test]
fn volumes_that_120_drives_do_not_hold_are_told() {
    let plan = plan(&["block.vm.count=1000"]);
    let sized = size(&plan, "data", &raid_5("slc-100")).unwrap();
    assert!(sized.met.is_none() && sized.tried.is_empty());
    assert!(sized.reason.contains("do not hold"), "{}", sized.reason);
}

#[test]
fn a_pool_is_built_with_its_groups_and_a_spare_for_every_thirty_drives() {
    let plan = plan(&[]);
    let built = built(&plan, "data", &raid_5("sas-15k-600"), 7);
    let pool = &built.pools[0];
    assert_eq!((pool.groups.len(), pool.groups[0].count), (1, 7));
    assert_eq!(pool.spares[0].count, 2);
    let lot = built
        .lots
        .iter()
        .find(|lot| lot.name == pool.groups[0].from);
    let lot = lot.unwrap();
    assert_eq!(
        (lot.count, lot.model.as_str(), lot.bus.as_str()),
        (37, "sas-15k-600", "shelf")
    );
    assert_eq!(candidates(&["slc-100".to_owned()]).len(), 4);
}
