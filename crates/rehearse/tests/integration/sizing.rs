//! The smallest mix of drives that meets the limits: what is found meets them, and one
//! group fewer does not. Short windows give the verdicts of whole ones.

use crate::common::plan;
use rehearse::brief::{Judged, judge};
use rehearse::fit::fit;
use rehearse::sizing::{
    self, Candidate, Sized, Tried, Windows, built, candidates, fewest, proposed, ranked,
};
use rehearse::workload;
use site::Level;
use site::plan::Plan;
use std::time::Duration;

fn raid_5(model: &str) -> Candidate {
    Candidate {
        model: model.to_owned(),
        level: Level::Raid5,
        group_drives: 5,
    }
}

/// Sizes the site's pool over whole windows.
fn size(plan: &Plan, candidate: &Candidate) -> Sized {
    let least = fewest(plan, "data", candidate).unwrap();
    sizing::size(plan, "data", candidate, (least, Windows::Whole)).unwrap()
}

/// The numbers of groups that were tried, and whether they met the limits.
fn verdicts(tried: &[Tried]) -> Vec<(u16, bool)> {
    tried
        .iter()
        .map(|tried| (tried.groups, tried.met))
        .collect()
}

#[test]
fn the_smallest_meets_the_limits_and_one_group_fewer_does_not() {
    let plan = plan(&[
        "run.limit=\"11 ms\"",
        "block.vm.outstanding=64",
        "run.measure=\"1 s\"",
    ]);
    let sized = size(&plan, &raid_5("sas-10k-600"));
    let (groups, outcome) = sized.met.as_ref().unwrap();
    assert!(*groups > 4, "a limit that few groups meet tests nothing");
    assert!(outcome.load.total.read.response.mean_ms < 11.0);
    let tried = verdicts(&sized.tried);
    assert!(tried.contains(&(*groups, true)), "{tried:?}");
    assert!(tried.contains(&(groups - 1, false)), "{tried:?}");
    let active = u32::from(*groups) * 5;
    assert_eq!(sized.drives(), Some(active + active.div_ceil(30)));
}

#[test]
fn a_limit_that_no_disk_meets_is_told_with_the_figures() {
    let plan = plan(&["run.limit=\"1 ms\""]);
    let slow = size(&plan, &raid_5("nl-sas-1000"));
    assert!(slow.met.is_none());
    assert!(
        slow.reason.contains("with 120 drives reads take"),
        "{}",
        slow.reason
    );
    let fast = size(&plan, &raid_5("slc-200"));
    assert_eq!(fast.met.as_ref().map(|(groups, _)| *groups), Some(1));
    let all = [slow, fast];
    let good = ranked(&all);
    assert_eq!(good.len(), 1);
    assert_eq!(good[0].candidate.name(), "RAID 5 of 5 × slc-200");
}

#[test]
fn volumes_that_120_drives_do_not_hold_are_told() {
    let plan = plan(&["block.vm.count=1000"]);
    let why = fewest(&plan, "data", &raid_5("slc-100")).unwrap_err();
    assert!(why.contains("do not hold"), "{why}");
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

#[test]
fn a_pool_that_has_room_by_arithmetic_only_is_not_rehearsed() {
    // Their disks fill the data drives of six groups but for what the pool keeps for itself.
    // Large pages are quickly laid out.
    let office = |write_cache: &str| {
        plan(&[
            "block.vm.profile=\"hetero10\"",
            "block.vm.roles=[\"MBX01\", \"SQL01\", \"WEB01\", \"WEB02\"]",
            "host.esx.memory=\"1 TiB\"",
            "pool.data.page=\"16 MiB\"",
            write_cache,
        ])
    };
    let candidate = raid_5("slc-100");
    let site = office("controller.ctl1.write_cache=\"8 GiB\"");
    let fits = |groups| {
        let built = built(&site, "data", &candidate, groups);
        fit(&built, &workload::named).is_empty()
    };
    assert!(fits(6) && !fits(5));
    assert_eq!(fewest(&site, "data", &candidate), Ok(7));
    // Logs that no drive of the model has room for.
    let site = office("controller.ctl1.write_cache=\"1 TiB\"");
    let why = fewest(&site, "data", &candidate).unwrap_err();
    assert!(why.starts_with("can't be laid out: "), "{why}");
}

/// Two web servers, whose rates are multiplied.
fn web(scale: &str, limit: &str) -> Plan {
    let scale = format!("block.vm.scale={scale}");
    let limit = format!("run.limit=\"{limit}\"");
    plan(&[
        "block.vm.profile=\"hetero10\"",
        "block.vm.roles=[\"WEB01\", \"WEB02\"]",
        "run.measure=\"15 s\"",
        &scale,
        &limit,
    ])
}

#[test]
fn a_window_ends_early_only_when_that_tells() {
    let measured = |plan: &Plan| match judge(plan, 1, 1000.0).unwrap() {
        Judged::Rehearsed(meets, outcome) => (meets, outcome.load.measured_s),
        Judged::GivenUp(fallen) => panic!("{fallen:?}"),
    };
    let mean_ms = |plan: &Plan| match judge(plan, 1, 1e9).unwrap() {
        Judged::Rehearsed(_, outcome) => outcome.load.total.read.response.mean_ms,
        Judged::GivenUp(fallen) => panic!("{fallen:?}"),
    };
    assert_eq!(measured(&web("1.0", "100 ms")), (true, 10.0));
    assert_eq!(measured(&web("1.0", "1 ms")), (false, 10.0));
    let near = mean_ms(&web("1.0", "100 ms")) * 1.05;
    let (_, measured_s) = measured(&web("1.0", &format!("{near} ms")));
    assert_eq!(measured_s, 15.0, "a limit of {near} ms is not clear");
    // What happens belongs to the whole window.
    let mut with_event = web("1.0", "100 ms");
    with_event.events =
        plan(&["event=[{ at = \"1 s\", what = \"drive-fails\", drive = \"sas-03\" }]"]).events;
    assert_eq!(measured(&with_event).1, 15.0);
}

#[test]
fn short_windows_give_the_verdicts_of_whole_ones_and_the_proposal_is_measured_whole() {
    // One group of the first misses the limit, two meet it.
    let plan = web("8.0", "9 ms");
    let of = |windows| {
        let candidates = [raid_5("sas-10k-600"), raid_5("slc-200")];
        candidates.map(|one| {
            let least = fewest(&plan, "data", &one).unwrap();
            sizing::size(&plan, "data", &one, (least, windows)).unwrap()
        })
    };
    let (short, whole) = (of(Windows::Brief(1000.0)), of(Windows::Whole));
    let groups = |sized: &[Sized]| -> Vec<Option<u16>> {
        let groups = sized.iter().map(|one| one.met.as_ref().map(|met| met.0));
        groups.collect()
    };
    assert_eq!(groups(&short), groups(&whole));
    let met = |sized: &Sized| verdicts(&sized.tried);
    assert_eq!(met(&whole[0]), [(1, false), (2, true)], "both verdicts");
    assert!(
        whole
            .iter()
            .all(|one| one.met.is_none() || one.is_whole(&plan))
    );
    let best = |sized: &[Sized]| ranked(sized)[0].clone();
    assert!(!best(&short).is_whole(&plan), "a short window would do");
    let short = proposed(&plan, "data", short.to_vec()).unwrap();
    assert!(best(&short).is_whole(&plan));
    assert_eq!(groups(&short), groups(&whole));
    let hash = |sized: &Sized| sized.met.as_ref().unwrap().1.trace_hash;
    assert_eq!(hash(&best(&short)), hash(&best(&whole)), "the same run");
}

#[test]
fn a_mix_that_is_good_only_in_the_short_window_is_not_proposed() {
    let of = |limit, measure| plan(&[limit, "block.vm.outstanding=16", measure]);
    let candidate = raid_5("sas-10k-600");
    // As if one group had been good enough in half a second.
    let short = of("run.limit=\"1 s\"", "run.measure=\"500 ms\"");
    let good = size(&short, &candidate);
    assert_eq!(verdicts(&good.tried), [(1, true)]);
    let whole = of("run.limit=\"11 ms\"", "run.measure=\"1 s\"");
    let found = proposed(&whole, "data", vec![good]).unwrap();
    assert_eq!(
        verdicts(&found[0].tried),
        [(1, true), (1, false), (2, true)]
    );
    assert_eq!(found[0].met.as_ref().map(|met| met.0), Some(2));
    assert!(found[0].is_whole(&whole));
}

#[test]
fn a_load_beyond_the_drives_is_given_up() {
    match judge(&web("100.0", "20 ms"), 1, 1000.0).unwrap() {
        Judged::GivenUp(fallen) => {
            assert!(fallen.behind > Duration::from_secs(1), "{fallen:?}");
            assert!(fallen.at_s <= 10, "{fallen:?}");
        }
        Judged::Rehearsed(meets, _) => panic!("rehearsed to the end: {meets}"),
    }
}
