//! JSON of the limits of volumes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What hosts get of a volume, at most. What is absent is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// I/Os a second, 1 to 100,000,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100000000)]
    pub iops: Option<u64>,
    /// I/Os a second while the credits of a burst last: above `iops`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100000000)]
    pub burst_iops: Option<u64>,
    /// Bytes a second, 128 KiB to 100 GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 131072, maximum = 100000000000_i64)]
    pub bytes_per_s: Option<u64>,
    /// Bytes a second while the credits of a burst last: above `bytes_per_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 131072, maximum = 100000000000_i64)]
    pub burst_bytes_per_s: Option<u64>,
    /// Seconds for which a volume that was idle may run at its burst rate. Credits come back while
    /// it stays below its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 3600)]
    pub burst_s: Option<u32>,
    /// Bytes that count as one I/O, and a longer command as several: 8192 as Hyper-V counts, 32768
    /// as ESXi does. Absent, each command counts as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 512, maximum = 16777216)]
    pub io_bytes: Option<u32>,
}

/// The limits of a volume, and what they did since a target shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VolumeLimits {
    /// Name of the volume.
    pub volume: String,
    /// The pool it is in.
    pub pool: String,
    /// Its limits; empty where it has none.
    pub limits: Limits,
    /// Commands that wait for the limits now.
    pub waiting: u64,
    /// Commands that waited, and went.
    pub held: u64,
    /// Milliseconds that these waited, together.
    pub held_ms: u64,
    /// Commands that would have waited longer than 4 s, and were answered TASK SET FULL.
    pub refused: u64,
}
