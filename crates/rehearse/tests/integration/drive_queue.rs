//! What an array lets a drive have at once.

use crate::common::{plan, run};
use rehearse::run::share::{Part, Share};

fn data_drives(settings: &[&str]) -> (Share, f64) {
    let of_all = [
        "vm_group.vm.profile=\"sqlio-8k\"",
        "controller.ctl1.cache=\"none\"",
        "run.warmup=\"5 s\"",
        "run.measure=\"10 s\"",
    ];
    let settings: Vec<&str> = of_all.iter().chain(settings).copied().collect();
    let outcome = run(&plan(&settings), 7).unwrap();
    let reads = outcome.load.total.read.service.mean_ms;
    let mut shares = outcome.shares.into_iter();
    let data = shares.find(|share| share.part == Part::Drives && share.name == "data, SAS 10k");
    (data.unwrap(), reads)
}

#[test]
fn a_drive_has_no_more_than_its_array_lets_it_have() {
    let (free, _) = data_drives(&[]);
    let (alone, response_ms) = data_drives(&["controller.ctl1.drive_queue=1"]);
    assert!(free.waiting_ms > 2.0, "{free:?}");
    // The next one waits in the array, and the drive cannot choose. What is left is not of the arm.
    assert!(alone.waiting_ms < 0.3, "{alone:?}");
    assert!(
        response_ms > 2.0 * alone.service_ms,
        "{response_ms}, {alone:?}"
    );
    assert!(alone.per_s < 0.95 * free.per_s, "{alone:?} and {free:?}");
    let (four, _) = data_drives(&["controller.ctl1.drive_queue=4"]);
    assert!(
        alone.per_s < four.per_s && four.per_s < free.per_s,
        "{four:?}"
    );
}
