//! The tables of loads that a file describes itself, and of captures, with their keys.

use super::keys::{Key, REQUIRED, Section, key, table};
use super::modelled::inside;

const PROFILE: &[Key] = &[
    key(
        "name",
        "The profile's name, for `profile` of `[[vm_group]]`.",
        REQUIRED,
    ),
    key(
        "disk",
        "Size of the disk of its VM, which is called `vm`.",
        REQUIRED,
    ),
    key(
        "streams",
        "What the VM does, all at the same time: see `streams`.",
        REQUIRED,
    ),
];

const STREAM: &[Key] = &[
    key("name", "The stream's name.", REQUIRED),
    key("rate", "Operations per second.", REQUIRED),
    key("sizes", "Sizes of operations.", REQUIRED),
    key(
        "shares",
        "How often each size is used, against the others.",
        "all alike",
    ),
    key("reads", "Percentage that reads. The others write.", "100"),
    key(
        "random",
        "Percentage at a random place. The others continue where the one before ended.",
        "100",
    ),
    key(
        "hot",
        "Skew of random places: the hot part of the disk gets this percentage of them and has the \
         rest of the space, and so has each of its parts.",
        "50",
    ),
    key(
        "active",
        "Bursts: the percentage of the periods of 100 ms that operations start in. 100 is Poisson.",
        "100",
    ),
    key(
        "outstanding",
        "Operations under way at most. Others wait.",
        "64",
    ),
];

const CAPTURE: &[Key] = &[
    key("version", "The version of the file.", REQUIRED),
    key(
        "content",
        "A digest of the file. `ashlar rehearse` refuses a file that was edited, unless you say `--edited`.",
        REQUIRED,
    ),
    key("ashlar", "The version of Ashlar that served.", REQUIRED),
    key("taken_unix_s", "When the capture began.", REQUIRED),
    key("duration", "How long it was.", REQUIRED),
];

/// What is missing counts as.
const ZERO: &str = "0";

const MEASURED: &[Key] = &[
    key(
        "vm_group",
        "The VM group that stands for the volume.",
        REQUIRED,
    ),
    key("reads_per_s", "Reads per second.", ZERO),
    key("read_mean_ms", "Mean latency of reads in the array.", ZERO),
    key("read_p50_ms", "Half of the reads took no longer.", ZERO),
    key("read_p95_ms", "95 of 100 reads took no longer.", ZERO),
    key("read_p99_ms", "99 of 100 reads took no longer.", ZERO),
    key("writes_per_s", "Writes per second.", ZERO),
    key(
        "write_mean_ms",
        "Mean latency of writes in the array.",
        ZERO,
    ),
    key("write_p50_ms", "Half of the writes took no longer.", ZERO),
    key("write_p95_ms", "95 of 100 writes took no longer.", ZERO),
    key("write_p99_ms", "99 of 100 writes took no longer.", ZERO),
    key("queue", "Mean number of commands under way.", ZERO),
    key(
        "read_bursts",
        "Variance of the number of reads in 100 ms against its mean. It is 1 for Poisson.",
        ZERO,
    ),
    key("write_bursts", "The same of writes.", ZERO),
    key(
        "hottest_tenth_percent",
        "Percentage of random operations in the hottest tenth of the volume.",
        ZERO,
    ),
    key(
        "working_set",
        "Bytes of the places that were used, with a standard error of 3 %.",
        "not known",
    ),
];

/// The tables, in the order of the page.
pub(super) const LOADS: &[Section] = &[
    table(
        "profile",
        "[[profile]]",
        "A load of your own: a VM with one disk. It takes the place of a profile of Ashlar with its name.",
        PROFILE,
    ),
    inside(
        "profile.streams",
        "streams = [{ … }]",
        ("[[profile]]", "streams", true),
        "Operations that are alike, at a rate: `streams` of `[[profile]]`.",
        STREAM,
    ),
    table(
        "capture",
        "[capture]",
        "The head of a file that `ashlar capture` wrote.",
        CAPTURE,
    ),
    table(
        "measured",
        "[[measured]]",
        "What a volume did while the capture was made. A rehearsal shows the rates, the means and the times of \
         95 of 100 beside what it predicts; the others are for who reads the file.",
        MEASURED,
    ),
];
