//! JSON of drives that have failed, and of drives that replace them.

use super::{Drive, DriveState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a drive is out of use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DriveFailure {
    /// For people, to be read after the drive's name.
    pub why: String,
    /// Since when, in seconds since 1970.
    pub since_unix_s: u64,
    /// Name of the drive that has its place by now. The failed one stays in the list until it is
    /// replaced, removed, or added again.
    pub stands_in: Option<String>,
}

/// What a group would keep of its redundancy without one of its drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DriveRedundancy {
    /// Whether it could do without one more drive then, whichever that is.
    pub is_kept: bool,
}

/// What came of replacing a drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DriveReplaced {
    /// The drive that was added to the pool in place of the old one.
    pub drive: Drive,
    /// The drive that has the place of the old one: the new one, or a spare that was there
    /// before. None where the old one was a spare, or nothing stands in for it yet.
    pub stands_in: Option<Drive>,
    /// Name of the drive whose rebuild the pool finishes first. None where nothing waits.
    pub waits_for: Option<String>,
}

impl Drive {
    /// Whether it has failed, and has no place in its pool any more.
    pub fn has_left(&self) -> bool {
        let failure = self.failure.as_ref();
        let is_replaced = failure.is_some_and(|failure| failure.stands_in.is_some());
        self.state == DriveState::Failed && (is_replaced || self.is_spare())
    }

    /// Whether it is, or was, a spare.
    pub fn is_spare(&self) -> bool {
        self.group == u16::MAX
    }
}
