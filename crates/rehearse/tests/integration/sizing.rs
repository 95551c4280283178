//! The smallest mix of drives that meets the limits: what is found meets them, and one
//! group fewer does not. Short windows give the verdicts of whole ones.

use crate::common::plan;
use crate::common::run;
use rehearse::plan::fit::fit;
use rehearse::plan::profiles::shipped;
use rehearse::search::brief::{Fallen, Judged, judge};
use rehearse::search::sizing::{
    Candidate, Contest, Sized, Trial, Tried, Windows, built, candidates, fewest, ranked,
};
use rehearse::{Outcome, RehearseError};
use site::Level;
use site::plan::Plan;
use std::cell::RefCell;
use std::time::Duration;

fn raid_5(model: &str) -> Candidate {
    Candidate {
        model: model.to_owned(),
        level: Level::Raid5,
        group_drives: 5,
    }
}

/// Sizes the site's pool with each of these.
fn size_all(plan: &Plan, candidates: &[Candidate], windows: Windows) -> Vec<Sized> {
    let contest = Contest::new((plan, "data"), candidates, (windows, true), &shipped);
    let judge = |trials: &[Trial]| trials.iter().map(|trial| trial.judge(&shipped)).collect();
    contest.settle(judge).unwrap()
}

/// Sizes the site's pool over whole windows.
fn size(plan: &Plan, candidate: &Candidate) -> Sized {
    size_all(plan, std::slice::from_ref(candidate), Windows::Whole).remove(0)
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
        "vm_group.vm.outstanding=64",
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
    assert!(slow.reason.contains("with 120 drives"), "{}", slow.reason);
    let fast = size(&plan, &raid_5("slc-200"));
    assert_eq!(fast.met.as_ref().map(|(groups, _)| *groups), Some(1));
    let all = [slow, fast];
    let good = ranked(&all);
    assert_eq!(good.len(), 1);
    assert_eq!(good[0].candidate.name(), "RAID 5 groups of 5 × slc-200");
}

#[test]
fn volumes_that_120_drives_do_not_hold_are_told() {
    let plan = plan(&["vm_group.vm.count=1000"]);
    let why = fewest(&plan, "data", &raid_5("slc-100"), &shipped).unwrap_err();
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
            "vm_group.vm.profile=\"hetero10\"",
            "vm_group.vm.roles=[\"MBX01\", \"SQL01\", \"WEB01\", \"WEB02\"]",
            "host.esx.memory=\"1 TiB\"",
            "pool.data.page=\"16 MiB\"",
            write_cache,
        ])
    };
    let candidate = raid_5("slc-100");
    let site = office("controller.ctl1.write_cache=\"8 GiB\"");
    let fits = |groups| {
        let built = built(&site, "data", &candidate, groups);
        fit(&built, &shipped).is_empty()
    };
    assert!(fits(6) && !fits(5));
    assert_eq!(fewest(&site, "data", &candidate, &shipped), Ok(6));
    let good = Fake::new(&site, |_, _| Some(true)).laid_out();
    let sized = good.settle(std::slice::from_ref(&candidate), false);
    assert_eq!(
        verdicts(&sized[0].tried),
        [(12, true), (9, true), (7, true), (7, true)]
    );
    assert_eq!(sized[0].met.as_ref().map(|met| met.0), Some(7));
    // Logs that no drive of the model has room for.
    let site = office("controller.ctl1.write_cache=\"1 TiB\"");
    let good = Fake::new(&site, |_, _| Some(true)).laid_out();
    let sized = good.settle(&[candidate], false);
    let why = &sized[0].reason;
    assert!(why.contains("laid out: "), "{why}");
    assert!(sized[0].met.is_none() && sized[0].larger.is_none());
    assert!(sized[0].tried.is_empty(), "it was rehearsed");
}

/// Two web servers, whose rates are multiplied.
fn web(scale: &str, limit: &str) -> Plan {
    let scale = format!("vm_group.vm.scale={scale}");
    let limit = format!("run.limit=\"{limit}\"");
    plan(&[
        "vm_group.vm.profile=\"hetero10\"",
        "vm_group.vm.roles=[\"WEB01\", \"WEB02\"]",
        "run.measure=\"15 s\"",
        "controller.ctl1.cache=\"none\"",
        &scale,
        &limit,
    ])
}

#[test]
fn a_window_ends_early_only_when_that_tells() {
    let measured = |plan: &Plan| match judge(plan, (1, &shipped), 1000.0).unwrap() {
        Judged::Rehearsed(meets, outcome) => (meets, outcome.load.measured_s),
        Judged::GivenUp(fallen) => panic!("{fallen:?}"),
    };
    let mean_ms = |plan: &Plan| match judge(plan, (1, &shipped), 1e9).unwrap() {
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
    let plan = web("8.0", "11 ms");
    let of = |windows| {
        let candidates = [raid_5("sas-10k-600"), raid_5("slc-200")];
        size_all(&plan, &candidates, windows)
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
    assert!(
        best(&short).is_whole(&plan),
        "the proposal is measured whole"
    );
    assert!(short.iter().any(|one| !one.is_whole(&plan)));
    let hash = |sized: &Sized| sized.met.as_ref().unwrap().1.trace_hash;
    assert_eq!(hash(&best(&short)), hash(&best(&whole)), "the same run");
}

/// Verdicts without rehearsals: by the trial's name, and whether its window is whole. None
/// gives it up.
struct Fake<'a, F> {
    plan: &'a Plan,
    outcome: Outcome,
    is_good: F,
    /// Whether the volumes are laid out first.
    lays_out: bool,
    asked: RefCell<Vec<String>>,
}

impl<'a, F: Fn(&str, bool) -> Option<bool>> Fake<'a, F> {
    fn new(plan: &'a Plan, is_good: F) -> Self {
        let small = self::plan(&["run.measure=\"100 ms\"", "run.warmup=\"100 ms\""]);
        Fake {
            plan,
            outcome: run(&small, 1).unwrap(),
            is_good,
            lays_out: false,
            asked: RefCell::default(),
        }
    }

    fn laid_out(mut self) -> Self {
        self.lays_out = true;
        self
    }

    fn settle(&self, candidates: &[Candidate], every: bool) -> Vec<Sized> {
        let windows = (Windows::Brief(1000.0), every);
        let contest = Contest::new((self.plan, "data"), candidates, windows, &shipped);
        let judge = |trials: &[Trial]| trials.iter().map(|trial| self.judge(trial)).collect();
        contest.settle(judge).unwrap()
    }

    fn judge(&self, trial: &Trial) -> Result<Judged, RehearseError> {
        if self.lays_out {
            rehearse::rig::Rig::build(trial.plan(), 1, &shipped)?;
        }
        let name = trial.name();
        self.asked.borrow_mut().push(name.to_owned());
        let mut outcome = self.outcome.clone();
        let is_whole = name.ends_with("whole window");
        if is_whole {
            outcome.load.warmup_s = self.plan.run.warmup.as_secs_f64();
            outcome.load.measured_s = self.plan.run.measure.as_secs_f64();
        }
        let fallen = Fallen {
            behind: Duration::from_secs(3),
            at_s: 6,
        };
        Ok(match (self.is_good)(name, is_whole) {
            Some(is_good) => Judged::Rehearsed(is_good, Box::new(outcome)),
            None => Judged::GivenUp(fallen),
        })
    }
}

/// Drives of a trial.
fn drives(name: &str) -> u32 {
    name.split(' ').next().unwrap().parse().unwrap()
}

/// RAID 5 of these models.
fn of_models(models: &[&str]) -> Vec<Candidate> {
    models.iter().map(|model| raid_5(model)).collect()
}

#[test]
fn no_mix_is_tried_with_more_drives_than_one_that_is_good() {
    let site = plan(&[]);
    let candidates = [
        of_models(&["sas-10k-600", "slc-200"]),
        candidates(&["nl-sas-1000".to_owned()]),
    ]
    .concat();
    let fake = Fake::new(&site, |name, _| {
        Some(name.contains("slc") || name.contains("RAID 50"))
    });
    let sized = fake.settle(&candidates, false);
    let small = [
        "6 × sas-10k-600: 1 RAID 5 group of 5, 1 spare",
        "6 × slc-200: 1 RAID 5 group of 5, 1 spare",
        "6 × nl-sas-1000: 1 RAID 5 group of 5, 1 spare",
        "6 × slc-200: 1 RAID 5 group of 5, 1 spare, whole window",
    ];
    assert_eq!(*fake.asked.borrow(), small);
    let larger: Vec<Option<u32>> = sized.iter().map(|one| one.larger).collect();
    assert_eq!(
        larger,
        [Some(11), None, Some(9), Some(11), Some(9), Some(11)]
    );
    assert_eq!(ranked(&sized).len(), 1);
    let reason = &sized[0].reason;
    assert_eq!(
        reason,
        "needs 11 drives or more, and the smallest good mix has 6"
    );
    // All of them, when that is asked for.
    let every = fake.settle(&candidates, true);
    assert!(every.iter().all(|one| one.larger.is_none()));
    let groups = |one: &Sized| one.met.as_ref().map(|met| met.0);
    let groups: Vec<Option<u16>> = every.iter().map(groups).collect();
    assert_eq!(groups, [None, Some(1), None, None, None, Some(1)]);
    assert_eq!(verdicts(&every[0].tried).last(), Some(&(24, false)));
}

#[test]
fn a_good_mix_is_undercut_by_one_that_needs_fewer_drives() {
    let site = plan(&[]);
    let fake = Fake::new(&site, |name, _| {
        Some(drives(name) >= if name.contains("slc") { 31 } else { 26 })
    });
    let sized = fake.settle(&of_models(&["slc-200", "sas-10k-600"]), false);
    let good = ranked(&sized);
    assert_eq!(good[0].candidate, raid_5("sas-10k-600"));
    assert_eq!(good[0].drives(), Some(26));
    assert_eq!(good[1].drives(), Some(31));
    let again = fake.settle(&of_models(&["slc-200", "sas-10k-600"]), false);
    let tried = |sized: &[Sized]| -> Vec<Vec<Tried>> {
        sized.iter().map(|one| one.tried.clone()).collect()
    };
    assert_eq!(tried(&again), tried(&sized));
}

#[test]
fn a_mix_that_was_given_up_is_tried_again_with_the_drives_of_a_good_one() {
    let site = plan(&[]);
    let fake = Fake::new(&site, |name, _| {
        match (name.contains("slc"), drives(name)) {
            (true, 6) => None,
            (true, drives) => Some(drives >= 16),
            (false, drives) => Some(drives >= 21),
        }
    });
    let sized = fake.settle(&of_models(&["slc-200", "sas-10k-600"]), false);
    let slc = [(1, false), (4, true), (2, false), (3, true), (3, true)];
    assert_eq!(verdicts(&sized[0].tried), slc, "without the most groups");
    let good: Vec<Option<u32>> = ranked(&sized).iter().map(|one| one.drives()).collect();
    assert_eq!(good, [Some(16), Some(21)]);
}

#[test]
fn a_mix_that_is_good_only_in_the_short_window_is_not_proposed() {
    let site = plan(&[]);
    // One group of the first is good enough in a short window; two of the second in any.
    let fake = Fake::new(&site, |name, is_whole| match name.contains("slc") {
        true => Some(!is_whole),
        false => Some(name.starts_with("11 ")),
    });
    let sized = fake.settle(&of_models(&["slc-200", "sas-10k-600"]), false);
    let whole = [(1, true), (1, false)];
    assert_eq!(verdicts(&sized[0].tried)[..2], whole);
    assert_eq!(
        verdicts(&sized[1].tried),
        [(1, false), (2, true), (2, true)]
    );
    let good = ranked(&sized);
    assert_eq!(good.len(), 1);
    assert_eq!(
        (good[0].drives(), good[0].is_whole(&site)),
        (Some(11), true)
    );
}

#[test]
fn a_load_beyond_the_drives_is_given_up() {
    match judge(&web("100.0", "20 ms"), (1, &shipped), 1000.0).unwrap() {
        Judged::GivenUp(fallen) => {
            assert!(fallen.behind > Duration::from_secs(1), "{fallen:?}");
            assert!(fallen.at_s <= 10, "{fallen:?}");
        }
        Judged::Rehearsed(meets, _) => panic!("rehearsed to the end: {meets}"),
    }
}
