//! JSON of pools that are not open, and of drives that pools are without.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A pool of the site that is not open: its volumes are not served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClosedPool {
    /// Name that the site gives the pool.
    pub name: String,
    /// Why, and what can be done: one line for each thing that is wrong.
    pub why: Vec<String>,
    /// Since when, in seconds since 1970.
    pub since_unix_s: u64,
}

/// A drive that its pool came up without, and is without still.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MissingDrive {
    /// Name of the drive in its pool.
    pub name: String,
    /// What is wrong where it should be, and what can be done.
    pub why: String,
    /// It was seen there since: `ashlar drive replace` takes it in.
    pub is_back: bool,
}
