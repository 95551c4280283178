//! Runs that settle, and runs that the write log carries for a while.

use crate::common::{plan, profile};
use rehearse::findings::bottleneck::finding;
use rehearse::search::load_factor::{Capped, find};
use rehearse::{Outcome, run_lasting};

/// The site with a small write cache, and writers that fill it within seconds.
const FAST: [&str; 6] = [
    r#"controller.ctl1.write_cache="256 MiB""#,
    r#"controller.ctl2.write_cache="256 MiB""#,
    r#"vm_group.vm.profile="rand-8k-write""#,
    "vm_group.vm.outstanding=4",
    r#"run.warmup="100 ms""#,
    r#"run.measure="400 ms""#,
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    FAST.into_iter().chain(more.iter().copied()).collect()
}

fn lasting(settings: &[&str]) -> Outcome {
    run_lasting(&plan(settings), 3, &profile).unwrap()
}

fn iops(outcome: &Outcome) -> f64 {
    outcome.load.total.reads_per_s + outcome.load.total.writes_per_s
}

#[test]
fn a_log_that_fills_is_a_burst_and_the_figures_are_those_that_last() {
    let outcome = lasting(&with(&[]));
    let settling = &outcome.settling;
    let burst = settling.burst.as_ref().unwrap();
    assert!(burst.iops > 2.0 * iops(&outcome), "{settling:?}");
    let lasts_s = burst.lasts_s.unwrap();
    assert!(lasts_s > 0.1 && lasts_s < 120.0, "{lasts_s} s");
    // Warm-up and window, once more warm-up, and perhaps more windows.
    assert!(settling.after_s >= 0.6, "{settling:?}");
    let pool = &settling.pools[0];
    assert!(settling.is_settled && pool.is_held_back(), "{pool:?}");
    let said = settling.sentences();
    assert!(
        said.len() == 1 && said[0].starts_with("Burst, for"),
        "{said:?}"
    );
    let found = finding(&outcome);
    assert!(
        found.sentence.contains("write log of pool data"),
        "{}",
        found.sentence
    );
    assert_eq!(found.headroom, None);
}

#[test]
fn writes_that_drives_take_are_settled_at_once() {
    let outcome = lasting(&["vm_group.vm.outstanding=1"]);
    assert!(outcome.settling.is_settled && outcome.settling.burst.is_none());
    assert_eq!(outcome.settling.after_s, 0.5);
    assert!(outcome.settling.sentences().is_empty());
    assert!(finding(&outcome).headroom.is_some());
}

#[test]
fn what_is_accepted_goes_to_drives_or_is_owed() {
    accepts_what_hosts_write(&with(&[]));
}

/// Maps are written besides, and no host wrote them. Nor does a log fill so far that they wait for ever.
#[test]
fn maps_of_a_file_system_are_no_writes_of_hosts() {
    let mapped = r#"controller.ctl1.file_system="mapped""#;
    accepts_what_hosts_write(&with(&[mapped]));
    let small = [
        r#"controller.ctl1.write_cache="8 MiB""#,
        r#"controller.ctl2.write_cache="8 MiB""#,
    ];
    accepts_what_hosts_write(&with(&[mapped, small[0], small[1]]));
}

fn accepts_what_hosts_write(settings: &[&str]) {
    let outcome = lasting(settings);
    let pool = &outcome.settling.pools[0];
    let by_hosts = outcome.load.total.writes_per_s * 8192.0;
    assert!(
        (pool.accepted_per_s / by_hosts - 1.0).abs() < 0.1,
        "{pool:?}"
    );
    // In a window of 400 ms.
    let most = (0.02 * pool.accepted_per_s * 0.4).max(1048576.0);
    assert!(pool.log_growth_per_s.abs() * 0.4 <= most, "{pool:?}");
}

#[test]
fn a_load_search_finds_what_lasts() {
    let plan = plan(&with(&[r#"run.limit="20 ms""#]));
    let found = find(&plan, (3, &profile), (Capped::Mean, 20.0), |_, _| {});
    let found = found.unwrap().found.unwrap();
    assert!(
        found.outcome.settling.is_settled,
        "{:?}",
        found.outcome.settling
    );
    assert!(found.response_ms <= 20.0);
}

/// What happens in a run happens once: it is measured as it says, and not settled is told.
#[test]
fn a_run_with_events_is_measured_once() {
    let events = r#"event=[{ at = "100 ms", what = "drive-fails", drive = "sas-03" }]"#;
    let outcome = lasting(&with(&[events]));
    assert!(outcome.settling.burst.is_none() && !outcome.settling.is_settled);
    assert_eq!(outcome.settling.after_s, 0.1);
    let said = outcome.settling.sentences();
    assert!(
        said[0].starts_with("Not settled: the write log of pool data grows"),
        "{said:?}"
    );
    assert_eq!(finding(&outcome).headroom, None);
}
