//! A limit of one of two virtual disks that share spindles, in the Hyper-V 2012 R2 lab.

use crate::row::{Section, asked, given};
use crate::run::{Outcomes, Run};
use std::ops::Range;

const CAPPED: Run = Run::of("hyperv-r2-lab", "one disk capped at 50 IOPS", (60, 60));

/// The event of the site's file is at 90 s.
const BEFORE: Range<usize> = 60..90;
const AFTER: Range<usize> = 91..120;

const ONE: &str = "disks1-VM01";
const OTHER: &str = "disks2-VM01";

fn iops(o: &Outcomes, vm: &str, seconds: Range<usize>) -> Option<f64> {
    o.vm_iops(CAPPED, vm, seconds)
}

/// What the other one gets of what both got before.
fn share(o: &Outcomes) -> Option<f64> {
    let both = iops(o, ONE, BEFORE)? + iops(o, OTHER, BEFORE)?;
    Some(iops(o, OTHER, AFTER)? / both)
}

pub fn section() -> Section {
    Section {
        title: "F. Hyper-V 2012 R2, storage QoS",
        runs: &[CAPPED],
        rows: vec![
            given(
                "one of two disks, before",
                "IO/s",
                300.0,
                |o| iops(o, ONE, BEFORE),
                "given as \"a little over 300\"; the lab's drives are not published: with the four of \
                 7,200 rpm that the site file assumes, each has 80 reads to choose from on a \
                 tenth of its tracks",
            ),
            given(
                "the other one, before",
                "IO/s",
                300.0,
                |o| iops(o, OTHER, BEFORE),
                "as above",
            ),
            given(
                "the first, capped at 50",
                "IO/s",
                50.0,
                |o| iops(o, ONE, AFTER),
                "from the second second of the limit on",
            ),
            asked(
                "the first, in the first second of the limit",
                "IO/s",
                |o| iops(o, ONE, 90..91),
                "with the 160 that were past it; given is that the change bites within a second",
            ),
            asked(
                "the first, in the second one",
                "IO/s",
                |o| iops(o, ONE, 91..92),
                "given is that it holds within a few I/Os",
            ),
            asked(
                "until the last I/O that was past the limit is back",
                "ms",
                |o| {
                    Some(
                        o.undertook(CAPPED, "change of the limit")?
                            .took
                            .as_secs_f64()
                            * 1e3,
                    )
                },
                "drives take what is near first, so the last one waits long",
            ),
            asked(
                "what the other one gets",
                "IO/s",
                |o| iops(o, OTHER, AFTER),
                "",
            ),
            asked(
                "the same of what both got before",
                "%",
                |o| Some(share(o)? * 100.0),
                "a shallower queue lets drives choose less",
            ),
            asked(
                "the same, where both got 300",
                "IO/s",
                |o| Some(share(o)? * 600.0),
                "the share above of the published 600",
            ),
        ],
    }
}
