//! The FS7500 before PS6100X arrays: load at 20 ms, and the load that a group of links carries.

use crate::row::{Section, asked, given};
use crate::run::{Outcomes, Run};

const SHOP: Run = Run::of("fs7500", "", (5, 15)).to_the_cap();
const SHOP_TWO: Run = Run::of("fs7500", "1 NAS, 6 arrays, 2 blocks", (5, 15));
const SHOP_TWO_CAP: Run = Run::of("fs7500", "1 NAS, 6 arrays, 2 blocks", (5, 15)).to_the_cap();
const SHOP_THREE_CAP: Run = Run::of("fs7500", "2 NAS, 6 arrays, 2 blocks", (5, 15)).to_the_cap();
const READS_ONE: Run = Run::of("fs7500-network", "reads, ip-hash", (5, 20));
const READS_TWO: Run = Run::of("fs7500-network", "reads, ip-hash, two hosts", (5, 20));
const WRITES_PORT: Run = Run::of("fs7500-network", "writes, port", (5, 20));
const WRITES_MAC: Run = Run::of("fs7500-network", "writes, mac", (5, 20));
const WRITES_IP: Run = Run::of("fs7500-network", "writes, ip-hash", (5, 20));

const CLONE_ONE: Run = Run::of("fs7500-network", "clone of 1 over 1", (5, 600));
const CLONE_FOUR: Run = Run::of("fs7500-network", "clone of 4 over 4", (5, 600));
const CLONE_EIGHT: Run = Run::of("fs7500-network", "clone of 8 over 8", (5, 900));

/// How long clones took, minutes, if one had taken the published 60.
fn clone_min(o: &Outcomes, run: Run) -> Option<f64> {
    let took = |run| {
        let cloned = o.undertook(run, "clone of VM group")?;
        cloned.has_ended.then_some(cloned.took.as_secs_f64())
    };
    Some(60.0 * took(run)? / took(CLONE_ONE)?)
}

/// What one clone carried.
fn clone_megabytes(o: &Outcomes) -> Option<f64> {
    let cloned = o.undertook(CLONE_ONE, "clone of VM group")?;
    Some(cloned.bytes as f64 / 1e6 / cloned.took.as_secs_f64())
}

const RUNS: &[Run] = &[
    SHOP,
    SHOP_TWO,
    SHOP_TWO_CAP,
    SHOP_THREE_CAP,
    READS_ONE,
    READS_TWO,
    WRITES_PORT,
    WRITES_MAC,
    WRITES_IP,
    CLONE_ONE,
    CLONE_FOUR,
    CLONE_EIGHT,
];

/// Why the NAS does more in a rehearsal than it was measured to do.
const NAS: &str = "how the NAS maps files is not published: a pointer for each 4 KiB, on two volumes; the arrays' own \
    caches and mapping are not modelled";

pub fn section() -> Section {
    Section {
        title: "D. FS7500 before PS6100X, vSphere 5",
        runs: RUNS,
        rows: vec![
            given("one block at 20 ms", "IO/s", 5593.0, |o| o.iops(SHOP), NAS),
            given(
                "of the planned load",
                "%",
                67.0,
                |o| Some(o.factor(SHOP)? * 67.0),
                "the site file has 0.67 of the plan",
            )
            .restated(),
            given(
                "two hosts that read in order, of one",
                "%",
                194.0,
                |o| Some(o.megabytes(READS_TWO)? / o.megabytes(READS_ONE)? * 100.0),
                "",
            ),
            asked(
                "writes by port",
                "MB/s",
                |o| o.megabytes(WRITES_PORT),
                "four uplinks",
            ),
            asked(
                "writes by MAC",
                "MB/s",
                |o| o.megabytes(WRITES_MAC),
                "four uplinks",
            ),
            asked(
                "writes by IP hash",
                "MB/s",
                |o| o.megabytes(WRITES_IP),
                "four uplinks, eight addresses",
            ),
            asked(
                "two blocks, six arrays, same load per VM",
                "ms",
                |o| o.random_ms(SHOP_TWO),
                "mean of random I/O",
            ),
            asked("the same at 20 ms", "IO/s", |o| o.iops(SHOP_TWO_CAP), ""),
            asked(
                "two NAS systems, six arrays, at 20 ms",
                "IO/s",
                |o| o.iops(SHOP_THREE_CAP),
                "",
            ),
            asked(
                "clone of one VM over one address",
                "MB/s",
                clone_megabytes,
                "by the host, 15 GB for the VM: the published 60 min are 300 GB at 83 MB/s",
            ),
            asked(
                "clone of four VMs over four addresses",
                "min",
                |o| clone_min(o, CLONE_FOUR),
                "at once, by one host over four links; the time of one is scaled to the given 60 min",
            ),
            asked(
                "clone of eight VMs over eight addresses",
                "min",
                |o| clone_min(o, CLONE_EIGHT),
                "as above",
            ),
        ],
    }
}
