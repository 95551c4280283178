//! Pools of drives that were measured: a rehearsal gives back what the drives did, and drives that are
//! parts of one device share it.

use crate::common::run;
use rehearse::Outcome;
use rehearse::run::share::Part;
use site::plan::parse;

/// Random reads that no cache holds, of drives with 1,000 to 4,000 of them a second.
const SITE: &str = r#"
[site]
name = "measured"
[run]
warmup = "1 s"
measure = "4 s"
[[controller]]
name = "array"
model = "ashlar"
cores = 16
cache = "none"
ports = [{ network = "san", count = 4 }]
[[bus]]
name = "pcie"
kind = "pcie"
[[drive_model]]
name = "here"
capacity = "4 GiB"
shared = false
sizes = ["4 KiB", "64 KiB"]
reads = [[1000, 1800, 3000, 4000], [500, 900, 1000, 1000]]
read_spread = [0.6, 0.8, 1.0, 1.6]
writes = [[1000], [500]]
durable_writes = [[400, 600], [100]]
flushes = [2000, 3000]
[[drives]]
name = "drive"
model = "here"
count = 4
bus = "pcie"
[[pool]]
name = "pool"
controller = "array"
groups = [{ level = "simple", drives = 1, from = "drive", count = 4 }]
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
[[profile]]
name = "own"
disk = "2 GiB"
streams = [{ name = "io", rate = 20000, sizes = ["4 KiB"], reads = 100, outstanding = 256 }]
[[vm_group]]
name = "load"
profile = "own"
hosts = ["host"]
pools = ["pool"]
"#;

fn outcome(changes: &[(&str, &str)]) -> Outcome {
    let mut text = SITE.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let plan = parse("measured.toml", &text, &[]).unwrap().base;
    run(&plan, 1).unwrap()
}

/// More is asked for than the drive does: it is always as deep as it was measured.
#[test]
fn a_drive_does_what_was_measured_of_it() {
    let one = ("from = \"drive\", count = 4", "from = \"drive\", count = 1");
    let rate = outcome(&[one]).load.total.reads_per_s;
    assert!((rate / 4_000.0 - 1.0).abs() < 0.03, "{rate}");
}

#[test]
fn drives_that_are_parts_of_one_device_share_it() {
    let together = outcome(&[("shared = false", "shared = true")]);
    let rate = together.load.total.reads_per_s;
    assert!((rate / 4_000.0 - 1.0).abs() < 0.03, "one device: {rate}");
    // Busy all the time with all of them: 250 us of the device for each.
    let drives = together
        .shares
        .iter()
        .filter(|share| share.part == Part::Drive);
    let service_ms: Vec<f64> = drives.map(|share| share.service_ms).collect();
    assert_eq!(service_ms.len(), 4);
    let is_quarter = |ms: &f64| (ms / 0.25 - 1.0).abs() < 0.05;
    assert!(service_ms.iter().all(is_quarter), "{service_ms:?}");
    let rate = outcome(&[]).load.total.reads_per_s;
    assert!(rate > 12_000.0, "four devices: {rate}");
}

/// One of them alone: what a read takes with one outstanding.
#[test]
fn an_idle_drive_answers_in_the_measured_time() {
    let few = ("rate = 20000", "rate = 20");
    let mean_ms = outcome(&[few]).load.total.read.response.mean_ms;
    assert!((1.0..1.3).contains(&mean_ms), "{mean_ms}");
}

/// A write is durable in the log before it ends: a flush and a volatile write are not what it takes.
#[test]
fn a_write_takes_as_long_as_one_that_is_durable() {
    let writes = [("rate = 20000", "rate = 20"), ("reads = 100", "reads = 0")];
    let mean_ms = outcome(&writes).load.total.write.response.mean_ms;
    assert!((2.4..4.0).contains(&mean_ms), "{mean_ms}");
}
