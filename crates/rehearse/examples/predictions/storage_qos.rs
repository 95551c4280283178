//! A limit of one of two virtual disks that share spindles, in the Hyper-V 2012 R2 lab.

use crate::hyperv_r2_lab::{FEW_SPINDLES, MANY_SPINDLES};
use crate::row::{Row, Section, asked, given};
use crate::run::{Outcomes, Run};
use std::ops::Range;

const CAPPED: Run = Run::of("hyperv-r2-lab", "one disk capped at 50 IOPS", (60, 60));

const FEW: Run = CAPPED.with(FEW_SPINDLES);
const MANY: Run = CAPPED.with(MANY_SPINDLES);

/// The event of the site's file is at 90 s.
const BEFORE: Range<usize> = 60..90;
const AFTER: Range<usize> = 91..120;

const ONE: &str = "disks1-VM01";
const OTHER: &str = "disks2-VM01";

fn iops(o: &Outcomes, vm: &str, seconds: Range<usize>) -> Option<f64> {
    o.vm_iops(CAPPED, vm, seconds)
}

/// A line with its figure also for fewer and for more spindles.
fn over(row: Row, vm: &'static str, seconds: Range<usize>) -> Row {
    let (few, many) = (seconds.clone(), seconds);
    row.over(
        move |o| o.vm_iops(FEW, vm, few.clone()),
        move |o| o.vm_iops(MANY, vm, many.clone()),
    )
}

/// What the other one gets of what both got before.
fn share_of(o: &Outcomes, run: Run) -> Option<f64> {
    let both = o.vm_iops(run, ONE, BEFORE)? + o.vm_iops(run, OTHER, BEFORE)?;
    Some(o.vm_iops(run, OTHER, AFTER)? / both)
}

fn share(o: &Outcomes) -> Option<f64> {
    share_of(o, CAPPED)
}

pub fn section() -> Section {
    Section {
        title: "F. Hyper-V 2012 R2, storage QoS",
        runs: &[CAPPED, FEW, MANY],
        rows: vec![
            over(
                given(
                    "one of two disks, before",
                    "IO/s",
                    300.0,
                    |o| iops(o, ONE, BEFORE),
                    SPINDLES,
                ),
                ONE,
                BEFORE,
            ),
            over(
                given(
                    "the other one, before",
                    "IO/s",
                    300.0,
                    |o| iops(o, OTHER, BEFORE),
                    "as above",
                ),
                OTHER,
                BEFORE,
            ),
            given(
                "the first, capped at 50",
                "IO/s",
                50.0,
                |o| iops(o, ONE, AFTER),
                "from the second second of the limit on",
            )
            .restated(),
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
                    let change = o.undertook(CAPPED, "change of the limit")?;
                    Some(change.took.as_secs_f64() * 1e3)
                },
                "drives take what is near first, so the last one waits long",
            ),
            over(
                asked(
                    "what the other one gets",
                    "IO/s",
                    |o| iops(o, OTHER, AFTER),
                    "",
                ),
                OTHER,
                AFTER,
            ),
            asked(
                "the same of what both got before",
                "%",
                |o| Some(share(o)? * 100.0),
                "a shallower queue lets drives choose less",
            )
            .over(
                |o| Some(share_of(o, FEW)? * 100.0),
                |o| Some(share_of(o, MANY)? * 100.0),
            ),
            asked(
                "the same, where both got 300",
                "IO/s",
                |o| Some(share(o)? * 600.0),
                "the share above of the published 600",
            )
            .over(
                |o| Some(share_of(o, FEW)? * 600.0),
                |o| Some(share_of(o, MANY)? * 600.0),
            ),
        ],
    }
}

/// Why both get more here.
const SPINDLES: &str = "given as \"a little over 300\"; the lab's spindles are not published: four of \
    7,200 rpm are assumed, with the two disks on their outermost tracks; the range is from two, with data over \
    the whole stroke, to eight";
