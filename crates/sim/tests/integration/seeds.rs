//! A handful of seeds, and the proof that the checker can fail.

use sim::config::Config;
use sim::scenario::{Scenario, Verdict};
use sim::seed::Seed;
use sim::{rate, seeds};

/// Enough to reach every kind of boot; `make sim` runs many more.
const SEEDS: std::ops::Range<u64> = 1..13;

#[test]
fn seeds_are_clean_and_replay_to_the_same_trace() {
    for seed in SEEDS {
        if let Err(failure) = seeds::check(&Seed::of(seed), Some(300)) {
            panic!("seed {seed} (--ops 300): {failure}");
        }
    }
}

#[test]
fn different_seeds_are_different_runs() {
    let hash = |seed| {
        seeds::once(&Seed::of(seed), Some(50), None)
            .unwrap()
            .trace_hash
    };
    assert_ne!(hash(1), hash(2));
}

fn over_lying_drives(seed: u64) -> Verdict {
    let root = Seed::of(seed);
    let mut config = Config::draw(&root, Some(400));
    config.drives_ignore_flush = true;
    config.damage = false;
    Scenario::new(root, config, None).run()
}

/// The canary: on drives that ignore flushes acknowledged writes are lost, and a
/// checker that did not say so would say nothing.
#[test]
fn a_drive_that_ignores_flushes_is_found_out() {
    let found = SEEDS
        .filter(|&seed| over_lying_drives(seed).failure.is_some())
        .count();
    assert!(
        found >= 6,
        "only {found} of 12 seeds noticed that nothing is ever flushed"
    );
}

#[test]
fn a_run_does_not_end_before_its_requests_are_issued() {
    // A seed without a run beside it, whose requests would count, too.
    let verdict = seeds::once(&Seed::of(7), Some(500), None).unwrap();
    assert_eq!(verdict.failure, None);
    assert_eq!(verdict.operations, 500);
    assert!(verdict.boots > 1, "a run of one boot never recovers");
}

#[test]
fn a_commit_gives_one_seed_that_can_be_typed() {
    let seed = seeds::seed_of_commit("58a88a1\n");
    assert_eq!(seed, seeds::seed_of_commit("58a88a1"));
    assert_ne!(seed, seeds::seed_of_commit("58a88a2"));
    assert!(seed <= u64::from(u32::MAX));
}

#[test]
fn the_regressions_list_has_seeds_without_its_comments() {
    assert_eq!(seeds::regressions().first(), Some(&202));
}

#[test]
fn the_smoke_benchmark_gives_the_same_figures_every_time() {
    let run = || {
        rate::Bench::prepare(rate::Load::RAID5, 7)
            .unwrap()
            .run(2_000)
            .unwrap()
    };
    let (first, second) = (run(), run());
    assert_eq!(first, second);
    assert_eq!(first.ios, 2_000);
    // 80 µs is what the modelled drive takes for a read that waits for nothing; a few
    // are of what is still in the log.
    assert!(first.mean_read_latency.as_micros() >= 70, "{first:?}");
}
