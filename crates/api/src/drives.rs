//! JSON of drives that have failed, and of drives that replace them.

use crate::DriveHealth;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A drive in its pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Drive {
    /// The name that the site gives it.
    pub name: String,
    /// Identity from its label.
    pub uuid: String,
    /// The pool it is in.
    pub pool: String,
    /// Which RAID group; 65535 for a spare, which is in none.
    pub group: u16,
    /// Which place in the group; of a spare it says nothing.
    pub place: u16,
    /// In use or left out.
    pub state: DriveState,
    /// Size of the whole drive in bytes, with labels and metadata.
    pub capacity_bytes: u64,
    /// Where it is, or was last.
    #[serde(default)]
    pub path: Option<String>,
    /// Its serial number, where it has one.
    #[serde(default)]
    pub serial: Option<String>,
    /// Name of the drive that it is copied to; it leaves when that one holds everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<String>,
    /// Set while it is failed.
    #[serde(default)]
    pub failure: Option<DriveFailure>,
    /// Why it is suspect, where the array has found the reason since its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// What it says of its own health; none before it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<DriveHealth>,
    /// Reads since the pool was opened.
    pub reads: u64,
    /// Writes since the pool was opened.
    pub writes: u64,
    /// Flushes since the pool was opened.
    pub flushes: u64,
    /// Failed operations since the pool was opened.
    pub errors: u64,
    /// Blocks of 4 KiB of it that were put right since the pool was opened.
    pub mends: u64,
    /// Mean latency of its reads of late, in microseconds.
    pub read_latency_us: u64,
    /// Mean latency of its writes and flushes of late, in microseconds.
    pub write_latency_us: u64,
    /// Shards of its pool that do not answer: what is said here is what they said last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent_shards: Vec<u64>,
}

/// Whether a drive is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DriveState {
    /// In use, neither slow nor with errors.
    Healthy,
    /// In use, but slow or with errors: read last.
    Suspect,
    /// Left out after an error; its content is stale.
    Failed,
    /// Takes all writes; its content is being restored.
    Rebuilding,
    /// Waits to stand in for a drive that fails.
    Spare,
}

/// A drive to add, or to put in the place of another: a file or a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveAdd {
    /// 1 to 64 letters, digits, `-`, `_`, `.`, the first a letter or digit.
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    pub name: String,
    /// A file, relative to the data directory or absolute; made when it is not there.
    #[serde(default)]
    pub file: Option<String>,
    /// A block device, instead of a file.
    #[serde(default)]
    pub device: Option<String>,
    /// Size to make the file with; as large as the pool's largest drive unless said
    /// otherwise.
    #[serde(default)]
    #[schema(minimum = 1048576, maximum = 1125899906842624_i64, multiple_of = 4096)]
    pub size_bytes: Option<u64>,
}

/// What takes a drive's place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveReplace {
    /// The new drive; without it, what is now where the old one was.
    #[serde(default)]
    pub with: Option<DriveAdd>,
}

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
    /// The old drive answers: it is copied to the new one, and leaves then.
    #[serde(default)]
    pub is_copied: bool,
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
