//! JSON of requests that create a pool or size its read cache.

use crate::{DriveAdd, Group, GroupAdd, Health, Io, MissingDrive, Rates, Task};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A pool that is open: its state, its space and its drives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Name of the pool, unique in the array.
    pub name: String,
    /// Identity (UUID), which never changes.
    pub uuid: String,
    /// Protection of its first group: `10`, `10x3`, `5`, `50`, `6` or `simple`.
    pub level: String,
    /// State in one word; `why` gives the reasons.
    pub health: Health,
    /// A line for each reason of it.
    #[serde(default)]
    pub why: Vec<String>,
    /// Why it has stopped, if it has.
    pub failure: Option<String>,
    /// Parts that it was made with, each with logs and metadata of its own, which go to
    /// different shards.
    pub lanes: u16,
    /// Unit of thin allocation.
    pub page_bytes: u32,
    /// Bytes that volumes can map in all.
    pub capacity_bytes: u64,
    /// Bytes of pages allocated.
    pub mapped_bytes: u64,
    /// Bytes of pages promised to thick volumes, and not allocated yet.
    pub promised_bytes: u64,
    /// Bytes that anybody can have: those neither allocated nor promised.
    pub free_bytes: u64,
    /// Bytes kept back beside the capacity, so that space can be given back at all times.
    pub kept_bytes: u64,
    /// Bytes of pages that have part of their content in a page of a snapshot, and are
    /// being made whole.
    pub backed_bytes: u64,
    /// Bytes of pages that no volume has any more and that only those need, part of what is
    /// mapped.
    pub backing_bytes: u64,
    /// Bytes of its drives that hold no data of volumes: labels, metadata, logs, sums, and
    /// what no zone has.
    pub overhead_bytes: u64,
    /// How full it is.
    pub fullness: Fullness,
    /// From which part of the capacity on it tells of that.
    pub thresholds: Thresholds,
    /// Sum of the sizes of its volumes and snapshots; above the capacity when overcommitted.
    pub provisioned_bytes: u64,
    /// The part of it that snapshots are.
    #[serde(default)]
    pub snapshots_bytes: u64,
    /// Epoch under which it is owned; grows with every opening.
    pub epoch: u64,
    /// Shard that it is homed on.
    pub shard: u64,
    /// Those of its shards that do not answer: all that is said here is what they said last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent_shards: Vec<u64>,
    /// Names of its drives, by group and place.
    pub drives: Vec<String>,
    /// RAID groups of the pool, also those that are leaving it.
    pub groups: Vec<Group>,
    /// Names of drives that wait to stand in.
    pub spares: Vec<String>,
    /// Names of drives that are slow or have errors, and are read last.
    pub suspect_drives: Vec<String>,
    /// Names of drives that are out of use.
    pub failed_drives: Vec<String>,
    /// Those of them that the pool came up without, and why.
    #[serde(default)]
    pub missing_drives: Vec<MissingDrive>,
    /// Work under way in the background.
    pub tasks: Vec<Task>,
    /// Bytes in the data log that are not in place yet.
    pub log_used_bytes: u64,
    /// What the data log takes.
    pub log_capacity_bytes: u64,
    /// Names of the drives that carry the logs of any lane.
    #[serde(default)]
    pub log_drives: Vec<String>,
    /// Bytes that were damaged and have been put right since the opening.
    pub mended_bytes: u64,
    /// Bytes that were found to be lost since the opening.
    pub lost_bytes: u64,
    /// The read cache, over all lanes of the pool.
    pub cache: Cache,
    /// What its drives were used for since the opening.
    pub io: Io,
    /// Limits of work in the background.
    pub rates: Rates,
    /// Whole scrubs since the opening.
    pub scrubs: u64,
    /// The last of them.
    pub last_scrub: Option<LastScrub>,
    /// The scrub that goes on by itself, if the pool is scrubbed by itself.
    pub scrub_round: Option<ScrubRound>,
}

/// How full a pool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fullness {
    /// Used space is below both thresholds.
    Ample,
    /// Above the warning threshold.
    Warn,
    /// Above the alarm threshold.
    Alarm,
    /// Writes that need space fail.
    Full,
}

/// From which part of the capacity on a pool tells that it gets full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Thresholds {
    /// The warning, of which initiators of thin volumes are told, too.
    pub warn_percent: u8,
    /// The alarm, in percent of the capacity; never below the warning.
    pub alarm_percent: u8,
}

/// Thresholds to change. What is not named stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ThresholdsChange {
    /// The warning, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    pub warn_percent: Option<u8>,
    /// The alarm, in percent, not below the warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    pub alarm_percent: Option<u8>,
}

/// The read cache of a pool, in RAM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cache {
    /// What it may use.
    pub capacity_bytes: u64,
    /// Bytes of RAM that it fills now.
    pub resident_bytes: u64,
    /// Blocks of 4 KiB that were read from it.
    pub hits: u64,
    /// Blocks that were looked for and not found.
    pub misses: u64,
    /// Bytes that were read before a sequential reader asked for them.
    pub ahead_bytes: u64,
    /// Bytes of these that were asked for, then.
    pub ahead_used_bytes: u64,
}

/// A scrub that goes on by itself, over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScrubRound {
    /// When it began, in seconds since 1970.
    pub began_unix_s: u64,
    /// When it is to end, in seconds since 1970; the next begins then.
    pub due_unix_s: u64,
    /// Bytes of drives looked through.
    pub done_bytes: u64,
    /// Bytes of drives in all.
    pub total_bytes: u64,
    /// Blocks repaired so far.
    pub mended_blocks: u64,
    /// Blocks found lost so far, those of earlier scrubs included.
    pub lost_blocks: u64,
}

/// A scrub that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastScrub {
    /// When, in seconds since 1970.
    pub ended_unix_s: u64,
    /// Blocks of 4 KiB that were put right.
    pub mended_blocks: u64,
    /// Blocks that are beyond that, also those found before and not written since.
    pub lost_blocks: u64,
}

/// Whether a pool is looked through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScrubChange {
    /// Begins a scrub, or ends the one under way.
    pub running: bool,
}

/// A pool to make, of drives that hold nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolCreate {
    /// 1 to 64 letters, digits, `-`, `_`, `.`, the first a letter or digit.
    pub name: String,
    /// `10`, `10x3`, `5`, `50`, `6` or `simple`.
    pub level: String,
    /// Drives of a stripe, copies or parity included, in a first group with distributed spares: 2 to 32.
    /// Of levels `10` and `10x3` their copies unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 2, maximum = 32)]
    pub stripe_width: Option<u8>,
    /// Drives' worth of spare room on all drives of the group, 1 to 8. The group has a multiple of
    /// `stripe_width` drives and these more, 64 at most. None unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 8)]
    pub distributed_spares: Option<u8>,
    /// The drives of its first group, by place. Files that are not there are made, and need a
    /// size.
    pub drives: Vec<DriveAdd>,
    /// Further groups; their level is the pool's unless said otherwise.
    #[serde(default)]
    pub groups: Vec<GroupAdd>,
    /// Drives that stand in for those that fail.
    #[serde(default)]
    pub spares: Vec<DriveAdd>,
    /// Parts of the pool that go to different shards; 1 unless said otherwise.
    #[serde(default)]
    pub lanes: Option<u16>,
    /// A power of two; 64 KiB unless said otherwise.
    #[serde(default)]
    pub stripe_unit_bytes: Option<u32>,
    /// A power of two; 256 KiB unless said otherwise.
    #[serde(default)]
    pub page_bytes: Option<u32>,
    /// RAM for reads, 0 for none; 64 MiB unless said otherwise.
    #[serde(default)]
    pub cache_bytes: Option<u64>,
    /// What the data log takes of each drive that carries it.
    #[serde(default)]
    pub log_bytes: Option<u64>,
}

/// How much RAM a pool has for reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheChange {
    /// Bytes; 0 for none.
    pub capacity_bytes: u64,
}
