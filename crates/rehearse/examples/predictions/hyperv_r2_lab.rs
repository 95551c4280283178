//! The Hyper-V 2012 R2 lab: VMs that move, and fixed disks that are made.

use crate::at_rest::cleared_s;
use crate::row::{Row, Section, asked, given};
use crate::run::{Outcomes, Run};
use model::link::{Ethernet, Link};
use model::migration::MEMORY_GB;
use site::Provisioning;

/// The lab, with a VM that moves half a minute into what is measured.
const fn lab(variant: &'static str, measure_s: u32) -> Run {
    Run::of("hyperv-r2-lab", variant, (60, measure_s))
}

const TCP_8: Run = lab("8 GiB over 1 GbE", 180);
const COMPRESSED_8: Run = lab("8 GiB over 1 GbE, compressed", 180);
const RDMA_8: Run = lab("8 GiB over 10 GbE with RDMA", 180);
const RDMA_8_TWO: Run = lab("8 GiB over two 10 GbE with RDMA", 180);
const RDMA_56_TWO: Run = lab("56 GiB over two 10 GbE with RDMA", 180);
const TCP_35: Run = lab("35 GiB over 6 Gb/s", 180);
const TCP_250: Run = lab("250 GiB over 1 GbE", 3600);
const COMPRESSED_250: Run = lab("250 GiB over 1 GbE, compressed", 3600);
const TEN_250: Run = lab("250 GiB over 10 GbE", 900);
const TEN_COMPRESSED_250: Run = lab("250 GiB over 10 GbE, compressed", 900);
const RDMA_250: Run = lab("250 GiB over 10 GbE with RDMA", 900);
const RDMA_250_TWO: Run = lab("250 GiB over two 10 GbE with RDMA", 900);
const SQL_IDLE: Run = lab("61 GiB over 1 GbE", 900);
const SQL_ONE: Run = lab("61 GiB under load over one 1 GbE", 1500);
const SQL_TWO: Run = lab("61 GiB under load over two 1 GbE", 600);
const SQL_FOUR: Run = lab("61 GiB under load over four 1 GbE", 300);
const LAB: Run = lab("", 1);
/// What is cleared of a pool that has room for all of it.
const LARGE: Run = lab("", 1).with(&[
    ("drives.nl.count", "17"),
    ("pool.spindles.groups.0.drives", "16"),
]);
const FIXED: Run = lab("a fixed disk is written", 60);
/// The spindles are not published, nor where on them the disks lie. As few as make a mirror, with data over
/// the whole stroke.
pub const FEW_SPINDLES: &[(&str, &str)] = &[
    ("controller.ctl1.placement", "spread"),
    ("pool.spindles.groups.0.drives", "2"),
];
/// As many as a shelf may have, with data on the outermost tracks.
pub const MANY_SPINDLES: &[(&str, &str)] = &[
    ("drives.nl.count", "9"),
    ("pool.spindles.groups.0.drives", "8"),
];
const FIXED_FEW: Run = FIXED.with(FEW_SPINDLES);
const FIXED_MANY: Run = FIXED.with(MANY_SPINDLES);

/// The longest ones first: they are begun in this order.
const RUNS: &[Run] = &[
    SQL_ONE,
    SQL_TWO,
    SQL_FOUR,
    TCP_250,
    COMPRESSED_250,
    TEN_250,
    TEN_COMPRESSED_250,
    RDMA_250,
    RDMA_250_TWO,
    SQL_IDLE,
    TCP_8,
    COMPRESSED_8,
    RDMA_8,
    RDMA_8_TWO,
    RDMA_56_TWO,
    TCP_35,
    FIXED,
    FIXED_FEW,
    FIXED_MANY,
];

fn drained(outcomes: &Outcomes, run: Run) -> Option<f64> {
    outcomes.took_s(run, "drain of host node1")
}

/// How long it takes, to be predicted.
fn takes(what: &'static str, run: Run, note: &'static str) -> Row {
    asked(what, "s", move |o| drained(o, run), note)
}

/// What 8 GB in so many seconds are of what a link of 1 GbE carries, percent.
fn use_of_gigabit(seconds: f64) -> f64 {
    let link = Link::ethernet(1_000_000_000, Ethernet::STANDARD);
    (8 * MEMORY_GB) as f64 / seconds / link.payload_bytes_per_second() * 100.0
}

/// Seconds in which a host writes a disk of 50 GB at so many megabytes a second.
fn written_s(megabytes_per_s: f64) -> f64 {
    (50 * MEMORY_GB) as f64 / 1e6 / megabytes_per_s
}

/// Why moving 35 GB takes longer here.
const CORE: &str = "one connection gets what a core does for TCP, 4 Gb/s in the source of the model \
    (Models), which does not state its clock; 35 GB in 68 s are 4.6 Gb/s";

const ARRAY: &str = "the published array is not described; here are the lab's four drives of \
    7,200 rpm, which are assumed, and the host writes zeros in order, 16 MiB under way; the range is from two \
    drives, with data over the whole stroke, to eight";

const ZEROS: &str = "a thick volume that was written before; Ashlar answers once it has noted that \
    all of it reads as zeros, where the published array was busy writing them";

const GIVEN_BACK: &str = "a thin volume that was written before: its pages are given back, which is \
    a change of the map; what the published array did besides is not known";

const TEN_VMS: &str = "ten VMs of 25 GB, two at a time; assumed";

const LOADED: &str = "vSphere 5; 10,000 reads a second of 8 KiB through a cache of all its memory";

pub fn section() -> Section {
    Section {
        title: "F. Hyper-V 2012 R2",
        runs: RUNS,
        rows: [migrations(), drains(), disks()]
            .into_iter()
            .flatten()
            .collect(),
    }
}

fn migrations() -> Vec<Row> {
    vec![
        given("8 GB over 1 GbE, TCP", "s", 78.0, |o| drained(o, TCP_8), ""),
        given(
            "the same, use of the link",
            "%",
            95.0,
            |o| drained(o, TCP_8).map(use_of_gigabit),
            "payload, over all of the move: building and tearing down count",
        )
        .restated(),
        given(
            "35 GB over 6 Gb/s, TCP",
            "s",
            68.0,
            |o| drained(o, TCP_35),
            CORE,
        ),
        given(
            "SQL Server of 61 GB, idle, one 1 GbE NIC, vSphere 5",
            "s",
            579.0,
            |o| drained(o, SQL_IDLE),
            "",
        ),
        takes("8 GB over 1 GbE, compressed", COMPRESSED_8, ""),
        takes("8 GB over 10 GbE, RDMA", RDMA_8, ""),
        takes("8 GB over two 10 GbE, RDMA", RDMA_8_TWO, ""),
        takes("56 GB over two 10 GbE, RDMA", RDMA_56_TWO, ""),
        takes("SQL Server at 10,000 IO/s, one 1 GbE NIC", SQL_ONE, LOADED),
        takes("the same over two", SQL_TWO, ""),
        takes("the same over four", SQL_FOUR, ""),
        asked(
            "its load in the run over one",
            "IO/s",
            |o| o.iops(SQL_ONE),
            "as it came of think times; it is to be 10,000",
        ),
    ]
}

fn drains() -> Vec<Row> {
    vec![
        takes("host of 250 GB over 1 GbE, TCP", TCP_250, TEN_VMS),
        takes("host of 250 GB over 1 GbE, compressed", COMPRESSED_250, ""),
        takes("host of 250 GB over 10 GbE, TCP", TEN_250, ""),
        takes(
            "host of 250 GB over 10 GbE, compressed",
            TEN_COMPRESSED_250,
            "",
        ),
        takes("host of 250 GB over 10 GbE, RDMA", RDMA_250, ""),
        takes("host of 250 GB over two 10 GbE, RDMA", RDMA_250_TWO, ""),
    ]
}

fn disks() -> Vec<Row> {
    vec![
        given(
            "fixed disk of 50 GB without offload",
            "s",
            390.0,
            |o| o.megabytes(FIXED).map(written_s),
            ARRAY,
        )
        .over(
            |o| o.megabytes(FIXED_FEW).map(written_s),
            |o| o.megabytes(FIXED_MANY).map(written_s),
        ),
        given(
            "fixed disk of 50 GB with offload",
            "s",
            150.0,
            |_| cleared_s(LAB, 50, Provisioning::Thick),
            ZEROS,
        ),
        given(
            "ten of 50 GB and ten of 475 GB with offload, another array",
            "s",
            42.0,
            |_| cleared_s(LARGE, 10 * 50 + 10 * 475, Provisioning::Thin),
            GIVEN_BACK,
        ),
    ]
}
