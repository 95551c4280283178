//! Rehearses the drive that `make check-model` builds and measures: a line for each point of the
//! grid, with the way to build the drive, the load to run on it, and the result. `key=value`, times
//! in milliseconds.
#![allow(dead_code)]

use model::throttled::Throttled;
use rehearse::parts::drive::DriveKind;
use std::time::Duration;
use workload::kpi::Window;
use workload::profile::Profile;

/// Of the size that `nbdkit` is told; its threads for a connection and its burst of two
/// seconds are what it has by itself.
pub const DRIVE: Throttled = Throttled {
    name: "file behind nbdkit's delay and rate",
    capacity_bytes: 256 << 20,
    slots: 16,
    read_delay: Duration::from_millis(40),
    write_delay: Duration::from_millis(60),
    bytes_per_second: BYTES_PER_SECOND,
    burst_bytes: 2 * BYTES_PER_SECOND,
};

/// With 4 KiB the delays decide, with 64 KiB and more than one under way the bucket.
const BYTES_PER_SECOND: u64 = 2_000_000;

const SIZES_KIB: [u32; 2] = [4, 64];
const READ_PERCENTS: [u32; 3] = [100, 70, 0];
const DEPTHS: [usize; 4] = [1, 4, 16, 64];

/// The bucket is empty after it, where it decides at all.
const WARMUP: Duration = Duration::from_secs(3);
const MEASURE: Duration = Duration::from_secs(5);
const SEED: u64 = 1;

/// A point of the grid.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub size_kib: u32,
    pub read_percent: u32,
    pub depth: usize,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Rehearsed {
    pub per_s: f64,
    /// Of reads and writes together.
    pub mean_ms: f64,
}

pub fn grid() -> Vec<Point> {
    let mut points = Vec::new();
    for size_kib in SIZES_KIB {
        for read_percent in READ_PERCENTS {
            points.extend(DEPTHS.map(|depth| Point {
                size_kib,
                read_percent,
                depth,
            }));
        }
    }
    points
}

/// What `ashlar load rand-4k-read --size … --reads … --iodepth …` does, on the model.
pub fn rehearse(point: Point) -> Rehearsed {
    let Some(profile) = Profile::named("rand-4k-read") else {
        unreachable!("the catalogue has it")
    };
    let profile = profile.repeated(1).with_depth(point.depth);
    let profile = profile.with_size(point.size_kib << 10);
    let profile = profile.with_reads(point.read_percent);
    let start = base::Time(0) + WARMUP;
    let window = Window {
        start,
        end: start + MEASURE,
    };
    let report = rehearse::run::raw::run(&profile, &DriveKind::Throttled(DRIVE), window, SEED);
    let total = match report {
        Ok(report) => report.total,
        Err(error) => panic!("{error}"),
    };
    let kinds = [&total.read.response, &total.write.response];
    let count: u64 = kinds.iter().map(|latency| latency.count).sum();
    let sum_ms: f64 = kinds.iter().map(|l| l.count as f64 * l.mean_ms).sum();
    Rehearsed {
        per_s: total.reads_per_s + total.writes_per_s,
        mean_ms: sum_ms / count as f64,
    }
}

fn main() {
    let drive = DRIVE;
    println!(
        "size_bytes={} threads={} read_delay_ms={} write_delay_ms={} bytes_per_s={} \
         warmup_ms={} measure_ms={} seed={SEED}",
        drive.capacity_bytes,
        drive.slots,
        drive.read_delay.as_millis(),
        drive.write_delay.as_millis(),
        drive.bytes_per_second,
        WARMUP.as_millis(),
        MEASURE.as_millis(),
    );
    for point in grid() {
        let Rehearsed { per_s, mean_ms } = rehearse(point);
        println!(
            "size_kib={} reads={} depth={} per_s={per_s:.3} mean_ms={mean_ms:.3}",
            point.size_kib, point.read_percent, point.depth
        );
    }
}
