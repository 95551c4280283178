//! JSON of consistency groups, and of requests about them.

use crate::Schedule;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Volumes that are snapshotted together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConsistencyGroup {
    /// Name of the group, unique in the array.
    pub name: String,
    /// Names of its volumes; none only when the last one has just been removed, and the group
    /// is gone.
    pub volumes: Vec<String>,
    /// When snapshots of all of them are taken.
    pub schedules: Vec<Schedule>,
}

/// A consistency group to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsistencyGroupCreate {
    /// 1 to 64 letters, digits, `-`, `_`, `.`, the first a letter or digit.
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    pub name: String,
    /// Names of volumes, in no other group; one or more.
    #[schema(min_items = 1)]
    pub volumes: Vec<String>,
}

/// Volumes that come into a consistency group, and that leave it: all of that or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsistencyGroupChange {
    /// Names of volumes, in no other group, that it gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Names of its volumes that it loses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}
