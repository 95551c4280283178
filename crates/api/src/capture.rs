//! JSON of captures: what is counted of all volumes for a while, beside their statistics.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A capture to begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureCreate {
    /// How long it counts; then it is over by itself.
    #[schema(minimum = 1, maximum = 3600)]
    pub duration_s: u64,
}

/// A capture, under way or over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Capture {
    /// Names this capture in later requests.
    pub id: String,
    /// When it began, in seconds since 1970.
    pub since_unix_s: u64,
    /// How long it counts.
    pub duration_s: u64,
    /// Milliseconds that it goes on counting; zero once it is over.
    pub left_ms: u64,
    /// What it has counted so far of each volume that was there at its beginning, by name.
    pub volumes: Vec<CapturedVolume>,
}

/// What was counted of a volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CapturedVolume {
    /// Name of the volume, as it is called now.
    pub name: String,
    /// Identity (UUID) of the volume.
    pub uuid: String,
    /// Size when the capture began.
    pub size_bytes: u64,
    /// Length of the equal grains of the volume; the last may be shorter.
    pub grain_bytes: u64,
    /// Bytes of the different places of 64 KiB that commands began in, with a standard error of 3 %.
    pub working_set_bytes: u64,
    /// Share of all random commands, reads and writes, in the hottest tenth of the grains.
    pub hottest_tenth: f64,
    /// READ commands as they came, whatever became of them.
    pub reads: CapturedFlow,
    /// WRITE commands as they came.
    pub writes: CapturedFlow,
}

/// Reads or writes of a volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CapturedFlow {
    /// Number of commands, of any size and outcome.
    pub commands: u64,
    /// Those that did not begin where one of the last in this direction and session ended.
    pub random: u64,
    /// How long they were, by power of two; only sizes that there were.
    pub sizes: Vec<CapturedSize>,
    /// The random ones that began in the volume.
    pub placed: u64,
    /// Pairs of those that began in the same grain: the more, the more skew.
    pub pairs: f64,
    /// Whole periods of 100 ms so far.
    pub periods: u64,
    /// Mean number of commands in a period.
    pub period_mean: f64,
    /// Variance of that number: that of a Poisson process is its mean.
    pub period_variance: f64,
}

/// Commands of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CapturedSize {
    /// At least so many bytes, and less than twice as many. The first, 512, has what is
    /// shorter, too; the last, 1 MiB, what is longer.
    pub from_bytes: u64,
    /// Number of commands of that size.
    pub commands: u64,
    /// Bytes that they asked for in all.
    pub bytes: u64,
}
