//! Prints the tables of `docs/internals/models.md`, section "Hard disk drives": the model
//! against rules of thumb and manuals. Each figure is of 20,000 random commands of
//! 4 KiB after the same seed, or of 512 MiB read one command after the other.

use base::{DriveOffset, Prng, Time};
use model::hdd::closed_loop::{Outcome, run};
use model::hdd::{Counters, Hdd, State};
use model::{Request, RequestKind};
use std::fmt::Write;
use std::time::Duration;

const SEED: u64 = 1;
const COUNT: u64 = 20_000;
const SMALL_BYTES: u64 = 4 << 10;
const LARGE_BYTES: u64 = 256 << 10;

/// Rules of thumb for small random I/O of an array's planning, by class.
const RULES_OF_THUMB: [(&Hdd, f64); 3] = [
    (&Hdd::SAS_15K, 180.0),
    (&Hdd::SAS_10K, 150.0),
    (&Hdd::NL_SAS_7K2, 90.0),
];

/// One of each class.
const DRIVES: [&Hdd; 4] = [
    &Hdd::SAS_15K,
    &Hdd::SAS_10K,
    &Hdd::NL_SAS_7K2,
    &Hdd::SATA_7K2,
];

#[allow(dead_code, reason = "a test takes the tables without the program")]
fn main() {
    print!("{}", tables());
}

/// Both tables, in Markdown.
pub fn tables() -> String {
    let mut text =
        String::from("| drive | figure | source says | model | error |\n|---|---|---|---|---|\n");
    for (drive, rule) in RULES_OF_THUMB {
        for (figure, says, is) in against_sources(drive, rule) {
            let error = (is / says - 1.0) * 100.0;
            let name = drive.name;
            let _ = writeln!(
                text,
                "| {name} | {figure} | {says:.2} | {is:.2} | {error:+.1} % |"
            );
        }
    }
    text += "\n| drive | command | part of the drive | IOPS, 1 deep | 32 deep | gain | longest of 32 deep, ms |\n|---|---|---|---|---|---|---|\n";
    for drive in DRIVES {
        for (kind, cached, part) in [
            (RequestKind::Read, false, 100),
            (RequestKind::Read, false, 10),
            (RequestKind::Write, false, 100),
            (RequestKind::Write, true, 100),
        ] {
            let drive = Hdd {
                write_cache: cached,
                ..*drive
            };
            let (one, _) = random(&drive, kind, part, 1);
            let (deep, _) = random(&drive, kind, part, 32);
            let _ = writeln!(
                text,
                "| {} | {kind:?}{} | {part} % | {:.0} | {:.0} | {:.2} | {:.0} |",
                drive.name,
                if cached { ", cached" } else { "" },
                one.iops(),
                deep.iops(),
                deep.iops() / one.iops(),
                deep.longest.as_secs_f64() * 1e3,
            );
        }
    }
    text
}

/// What a figure is called, what its source says, and what the model does.
fn against_sources(drive: &Hdd, rule: f64) -> Vec<(&'static str, f64, f64)> {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (reads, of_reads) = random(drive, RequestKind::Read, 100, 1);
    let (_, of_writes) = random(drive, RequestKind::Write, 100, 1);
    let each = |time: Duration| ms(time) / COUNT as f64;
    let half = drive.revolution() / 2;
    let textbook = 1e3 / (ms(drive.overhead + drive.read_seek.average + half));
    let end = drive.capacity_bytes - (640 << 20);
    let mb = |bytes_per_s: u64| bytes_per_s as f64 / 1e6;
    vec![
        ("rule of thumb, IOPS", rule, reads.iops()),
        ("1 / (overhead + seek + T/2), IOPS", textbook, reads.iops()),
        (
            "average read seek, ms",
            ms(drive.read_seek.average),
            each(of_reads.seek),
        ),
        (
            "average write seek, ms",
            ms(drive.write_seek.average),
            each(of_writes.seek),
        ),
        (
            "average rotational latency, ms",
            ms(half),
            each(of_reads.rotation),
        ),
        (
            "sustained outside, MB/s",
            mb(drive.outer_bytes_per_s),
            sequential_mb(drive, 0),
        ),
        (
            "sustained inside, MB/s",
            mb(drive.inner_bytes_per_s),
            sequential_mb(drive, end),
        ),
    ]
}

fn random(drive: &Hdd, kind: RequestKind, part_percent: u64, depth: u64) -> (Outcome, Counters) {
    let mut state = State::new(drive, &mut Prng::from_seed(SEED).stream("drive"));
    let mut prng = Prng::from_seed(SEED).stream("requests");
    let places = drive.capacity_bytes / 100 * part_percent / SMALL_BYTES;
    let next = || Request {
        kind,
        at: DriveOffset(prng.below(places) * SMALL_BYTES),
        len_bytes: SMALL_BYTES,
    };
    let outcome = run(&mut state, Time(0), depth, COUNT, next);
    (outcome, state.counters())
}

fn sequential_mb(drive: &Hdd, from: u64) -> f64 {
    let mut state = State::new(drive, &mut Prng::from_seed(SEED).stream("drive"));
    let mut at = from;
    let next = || {
        at += LARGE_BYTES;
        Request {
            kind: RequestKind::Read,
            at: DriveOffset(at - LARGE_BYTES),
            len_bytes: LARGE_BYTES,
        }
    };
    let count = (512 << 20) / LARGE_BYTES;
    run(&mut state, Time(0), 1, count, next).iops() * LARGE_BYTES as f64 / 1e6
}
