//! Readers in order that share disks: none of them starves, and no disk is taken for slow.

use crate::common::run;
use site::plan::parse;

/// A pool of RAID 6, and VMs that each read a disk of their own in order, in requests of 1 MiB.
const SITE: &str = r#"
[site]
name = "readers"
[run]
warmup = "3 s"
measure = "8 s"
[[controller]]
name = "array"
model = "ashlar"
ports = [{ network = "san", count = 4 }]
[[bus]]
name = "pcie"
kind = "pcie"
[[drives]]
name = "disk"
model = "sas-10k-600"
count = 8
bus = "pcie"
[[pool]]
name = "pool"
controller = "array"
groups = [{ level = "6", drives = 8, from = "disk" }]
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
profile = "seq-read-1m"
hosts = ["host"]
pools = ["pool"]
outstanding = 1
count = 10
"#;

/// A disk prefers the nearest command, and the next read of each reader lies beside its last. Before
/// reads made way for old commands, the longest of these took 4 s.
#[test]
fn no_reader_starves() {
    let plan = parse("readers.toml", SITE, &[]).unwrap().base;
    let outcome = run(&plan, 1).unwrap();
    let total = &outcome.load.total;
    let longest_ms = total.read.response.max_ms;
    assert!(longest_ms < 1000.0, "{longest_ms:.0} ms");
    assert!(total.megabytes_per_s > 200.0, "{total:?}");
    let told: Vec<&str> = outcome
        .told
        .iter()
        .map(|event| event.text.as_str())
        .collect();
    assert!(
        !told.iter().any(|text| text.contains("suspect")),
        "{told:?}"
    );
}
