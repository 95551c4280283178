//! Pools of several lanes: each has a log of its own, on drives of its own where there are enough.

use crate::common::run;
use rehearse::Outcome;
use site::plan::parse;

/// Random writes to mirrored disks, which take their whole rate.
const SITE: &str = r#"
[site]
name = "lanes"
[run]
warmup = "6 s"
measure = "6 s"
[[controller]]
name = "array"
model = "ashlar"
cores = 16
ports = [{ network = "san", count = 4 }]
[[bus]]
name = "pcie"
kind = "pcie"
[[drives]]
name = "disk"
model = "sas-10k-600"
count = 24
bus = "pcie"
[[pool]]
name = "pool"
controller = "array"
lanes = 1
log = "64 MiB"
groups = [{ level = "10", drives = 24, from = "disk" }]
[[network]]
name = "san"
kind = "ethernet"
speed = "100 Gb/s"
mtu = 9000
[[host]]
name = "host"
cores = 32
clock_ghz = 2.8
memory = "256 GiB"
initiator = "iscsi"
ports = [{ network = "san", count = 2 }]
[[vm_group]]
name = "load"
profile = "rand-8k-write"
hosts = ["host"]
pools = ["pool"]
outstanding = 48
count = 8
"#;

fn with_lanes(lanes: u16) -> Outcome {
    let text = SITE.replace("lanes = 1", &format!("lanes = {lanes}"));
    let plan = parse("lanes.toml", &text, &[]).unwrap().base;
    run(&plan, 1).unwrap()
}

/// The log of one lane lies on two disks, which are all that limits it.
#[test]
fn logs_of_several_lanes_lie_on_more_disks() {
    let [one, four] = [1, 4].map(with_lanes);
    let rate = |outcome: &Outcome| outcome.load.total.writes_per_s;
    assert!(
        rate(&four) > rate(&one) * 1.1,
        "{} with four lanes, {} with one",
        rate(&four),
        rate(&one)
    );
    assert_eq!(
        four.trace_hash,
        with_lanes(4).trace_hash,
        "one seed, one run"
    );
}
