//! JSON of RAID groups, and of requests about them.

use crate::DriveAdd;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A RAID group of a pool, with its drives and zones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// Its number in the pool.
    pub index: u16,
    /// What it is for: `data`, or `log` for a group that has no zones and carries the logs of all
    /// lanes.
    #[serde(default = "data")]
    #[schema(pattern = "^(data|log)$")]
    pub role: String,
    /// How it protects what is written to new zones, and a log group the logs.
    pub level: String,
    /// Drives of a stripe, copies or parity included, if the group has distributed spares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe_width: Option<u8>,
    /// Drives' worth of spare room on all drives of the group, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distributed_spares: Option<u8>,
    /// Places of zones in use whose drive does not hold what it should: their stripes lack
    /// redundancy.
    #[serde(default)]
    pub lost_places: u64,
    /// Places of a group with distributed spares that stand on another drive than where they
    /// belong, while drives are out of use and until they come back.
    #[serde(default)]
    pub away_places: u64,
    /// Names of its drives, by place.
    pub drives: Vec<String>,
    /// Zones that it has.
    pub zones: u32,
    /// Zones that hold pages, of those that the group has.
    pub zones_in_use: u32,
    /// Zones that are to be emptied: they have another level than the group, or it leaves.
    pub zones_to_move: u32,
    /// It is being emptied, to leave the pool.
    pub leaving: bool,
}

fn data() -> String {
    "data".to_owned()
}

/// A group of new drives to add to a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupAdd {
    /// `10`, `10x3`, `5`, `50`, `6` or `simple`; that of the pool's first group unless
    /// said otherwise, and of a log group `10` or `10x3`.
    #[serde(default)]
    #[schema(pattern = "^(10|10x3|5|50|6|simple)$")]
    pub level: Option<String>,
    /// `data`, or `log` for a group that carries the logs of all lanes and no data; `data` unless
    /// said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(data|log)$")]
    pub role: Option<String>,
    /// Drives of a stripe, copies or parity included, in a group with distributed spares: 2 to 32.
    /// Of levels `10` and `10x3` their copies unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 2, maximum = 32)]
    pub stripe_width: Option<u8>,
    /// Drives' worth of spare room on all drives of the group, 1 to 8. The group has a multiple of
    /// `stripe_width` drives and these more, 64 at most. None unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 8)]
    pub distributed_spares: Option<u8>,
    /// Its drives, by place.
    pub drives: Vec<DriveAdd>,
    /// It may survive fewer lost drives than the groups of the pool do.
    #[serde(default)]
    pub force: bool,
}

/// A group's new level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupChange {
    /// From `10` to `50` or `6`, or from `50` to `6`.
    #[schema(pattern = "^(10|10x3|5|50|6|simple)$")]
    pub level: String,
}
