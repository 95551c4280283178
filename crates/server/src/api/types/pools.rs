//! JSON of requests that create a pool or size its read cache.

use super::{DriveAdd, GroupAdd};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A pool to make, of drives that hold nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolCreate {
    /// 1 to 64 letters, digits, `-`, `_`, `.`, the first a letter or digit.
    pub name: String,
    /// `10`, `10x3`, `5`, `50`, `6` or `simple`.
    pub level: String,
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
