//! JSON of the array at a glance, and of sums over it.

use crate::ClosedPool;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The array at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// What the site calls it.
    pub site: String,
    /// Version of the server.
    pub version: String,
    /// Seconds since it was brought up.
    pub uptime_s: u64,
    /// The worst of its pools; stopped while one of the site's is not open.
    pub health: Health,
    /// A line for each reason of it.
    #[serde(default)]
    pub why: Vec<String>,
    /// Where targets are served, as address and port.
    pub portals: Vec<String>,
    /// Number of open pools.
    pub pools: u64,
    /// Number of volumes in open pools, without snapshots.
    pub volumes: u64,
    /// Number of exports, withheld ones included.
    pub exports: u64,
    /// How many sessions are connected.
    pub sessions: u64,
    /// Bytes that volumes can map in all pools.
    pub capacity_bytes: u64,
    /// Bytes of pages allocated in all pools.
    pub mapped_bytes: u64,
    /// Bytes of pages promised to thick volumes, and not allocated yet, in all pools.
    #[serde(default)]
    pub promised_bytes: u64,
    /// Shards that do not answer. What is on them is not served now, and what is said of it
    /// here is what they said last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent_shards: Vec<u64>,
    /// Pools of the site that are not open, by name. They are tried again by themselves.
    #[serde(default)]
    pub closed_pools: Vec<ClosedPool>,
}

/// Whether data is served, and with what redundancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// Served with all redundancy; nothing needs attention.
    Ok,
    /// Served, and somebody has to look: a drive is suspect or warns, a pool gets full, blocks were lost,
    /// a target is withheld, or distributed spares make up for a failed drive.
    Attention,
    /// Served, with less redundancy than it should have: a drive is missing, failed or
    /// being rebuilt.
    Degraded,
    /// No page is free: writes to new pages are refused.
    Full,
    /// Not served: the pool has stopped or is not open.
    Stopped,
}

/// Sums over the sessions that are connected now and over all drives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Stats {
    /// Seconds since the array was brought up.
    pub uptime_s: u64,
    /// Number of sessions that are connected now.
    pub sessions: u64,
    /// Commands that these have ended.
    pub commands: u64,
    /// READ commands among these that ended well.
    pub reads: u64,
    /// WRITE commands among these that ended well, with WRITE AND VERIFY, WRITE ATOMIC and ORWRITE.
    pub writes: u64,
    /// Bytes that these have read.
    pub read_bytes: u64,
    /// Bytes that these have written.
    pub written_bytes: u64,
    /// Commands in flight now.
    pub in_flight: u64,
    /// Reads of all drives since their pools were opened.
    pub drive_reads: u64,
    /// Writes of all drives.
    pub drive_writes: u64,
    /// Flushes of all drives.
    pub drive_flushes: u64,
    /// Failed operations of all drives.
    pub drive_errors: u64,
}
