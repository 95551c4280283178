//! Loads that a file describes itself, and what a capture of a running array measured.
//!
//! Invariants: a profile has streams, and each of them has as many shares as sizes; what was
//! measured is of a VM group of the same file.

use std::time::Duration;

/// The load of a VM with one disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Unique among the profiles of the file.
    pub name: String,
    /// Where the file describes it.
    pub line: usize,
    /// How large the disk is.
    pub disk_bytes: u64,
    /// What is done to it, all at the same time; one or more.
    pub streams: Vec<Stream>,
}

/// Operations that are alike, at a rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Unique in the profile.
    pub name: String,
    /// Mean operations per second.
    pub per_second: f64,
    /// Per cent that read; the others write.
    pub read_percent: u16,
    /// Per cent at a random place; the others go on where the one before ended.
    pub random_percent: u16,
    /// Sizes in bytes, and how often each is used, relative to the others.
    pub sizes: Vec<(u32, u16)>,
    /// What the hot part of the disk gets, and its parts in turn, in per cent; 50 is no skew.
    pub hot_percent: u16,
    /// Periods of 100 ms with operations, in per cent; 100 is Poisson.
    pub active_percent: u16,
    /// Operations under way at most.
    pub outstanding: u16,
}

/// The head of a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    /// Where the file has it.
    pub line: usize,
    /// For how long the array was watched.
    pub duration: Duration,
}

/// What a volume of the running array did.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The VM group that stands for the volume.
    pub vm_group: String,
    /// Where the file says it.
    pub line: usize,
    /// What its reads were like.
    pub reads: MeasuredFlow,
    /// What its writes were like.
    pub writes: MeasuredFlow,
}

/// Reads or writes as they were measured. Without any, all are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredFlow {
    /// Operations that ended well, per second.
    pub per_s: f64,
    /// Mean latency in the array.
    pub mean_ms: f64,
    /// Half of them took no longer.
    pub p50_ms: f64,
    /// 95 of 100 took no longer.
    pub p95_ms: f64,
    /// 99 of 100 took no longer.
    pub p99_ms: f64,
}
