//! JSON of snapshots, their schedules, clones and the trash.

use crate::LunPlace;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A snapshot to take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotCreate {
    /// Its own name: it is called `VOLUME@NAME`, 64 bytes in all.
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    pub name: String,
}

/// Snapshots to take at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotsCreate {
    /// Which, all or none of them.
    #[schema(min_items = 1)]
    pub snapshots: Vec<SnapshotOf>,
}

/// A snapshot to take of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotOf {
    /// Name of the volume.
    pub volume: String,
    /// The snapshot's own name: it is called `VOLUME@NAME`.
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    pub name: String,
}

/// What a volume is to become.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeRestore {
    /// Name of the snapshot whose content it gets.
    pub snapshot: String,
    /// What it has now becomes a snapshot with this name of its own; null to throw it away.
    pub keep: Option<String>,
    /// Also while it is behind a target.
    #[serde(default)]
    pub force: bool,
}

/// A clone to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeClone {
    /// Name of the new volume.
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    pub name: String,
}

/// A snapshot of a volume, which is read-only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    /// Its name: the volume's, `@`, and its own.
    pub name: String,
    /// Identity (UUID), which never changes.
    pub uuid: String,
    /// The volume that it was taken from, as it is called now; absent when that is gone.
    pub volume: Option<String>,
    /// The pool it is in.
    pub pool: String,
    /// When it was taken, in seconds since 1970.
    pub at_unix_s: u64,
    /// Size of the volume then.
    pub size_bytes: u64,
    /// Bytes of pages that it has, shared with others or not.
    pub mapped_bytes: u64,
    /// Where it is exported, if it is.
    pub export: Option<LunPlace>,
}

/// What came of a deletion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deleted {
    /// What it was called.
    pub name: String,
    /// Identity, by which it is found in the trash.
    pub uuid: String,
    /// Until when it is in the trash, in seconds since 1970; absent when it is gone.
    pub until_unix_s: Option<u64>,
    /// Snapshots of it that stay.
    pub snapshots: Vec<String>,
    /// Clones of it that stay.
    pub clones: Vec<String>,
}

/// A volume in the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trashed {
    /// What it was called.
    pub name: String,
    /// Identity, by which it is found.
    pub uuid: String,
    /// The pool it is in.
    pub pool: String,
    /// Size that initiators saw.
    pub size_bytes: u64,
    /// Bytes of pages that it has.
    pub mapped_bytes: u64,
    /// Since when it is there, in seconds since 1970.
    pub since_unix_s: u64,
    /// When it goes, in seconds since 1970; sooner when its pool has no room left.
    pub until_unix_s: u64,
}

/// How a volume comes out of the trash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TrashRestore {
    /// Another name; its old one unless said otherwise.
    #[serde(default)]
    pub name: Option<String>,
}

/// Snapshots of a volume by the clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    /// Its number among those of its volume.
    pub number: u64,
    /// Seconds from one to the next.
    pub every_s: u64,
    /// The newest so many stay.
    pub keep: u64,
    /// When it runs next, in seconds since 1970.
    pub next_unix_s: u64,
}

/// A schedule to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleCreate {
    /// Seconds from one snapshot to the next.
    pub every_s: u64,
    /// How many snapshots stay, the newest, up to 1,000.
    pub keep: u64,
}
