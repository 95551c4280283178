//! The JSON of every resource that the API takes and gives.
//!
//! Programs on both sides share these: the server answers with them, and the commands of `ashlar`
//! ask with them. A field is only ever added; sizes and counts carry their unit in their name.

mod absent;
mod access;
mod background;
mod capture;
mod consistency;
mod drive_health;
mod drive_io;
mod drives;
mod events;
mod exports;
mod groups;
mod jobs;
mod pools;
mod problem;
mod qos;
mod sessions;
mod settings;
mod site;
mod snapshots;
mod statistics;
mod status;
mod volumes;

pub use absent::{ClosedPool, MissingDrive};
pub use access::{
    Chap, ChapCreate, DiscoveryChap, ExportChange, Host, HostChange, HostCreate, HostGroup,
    HostGroupChange, HostGroupCreate, LunAdd, SecretText,
};
pub use background::{Background, Rates, RatesChange, Task, TaskKind};
pub use base::not_there;
pub use capture::{Capture, CaptureCreate, CapturedFlow, CapturedSize, CapturedVolume};
pub use consistency::{ConsistencyGroup, ConsistencyGroupChange, ConsistencyGroupCreate};
pub use drive_health::{DriveHealth, DriveVerdict};
pub use drive_io::{Io, Operations};
pub use drives::{
    Drive, DriveAdd, DriveFailure, DriveRedundancy, DriveReplace, DriveReplaced, DriveState,
};
pub use events::Event;
pub use exports::{Any, Export, ExportCreate, Initiators, Lun};
pub use groups::{Group, GroupAdd, GroupChange};
pub use jobs::{
    Format, Job, JobKind, JobState, VolumeCopy, VolumeExport, VolumeImport, VolumeMove,
};
pub use pools::{
    Cache, CacheChange, Fullness, LastScrub, Pool, PoolCreate, ScrubChange, ScrubRound, Thresholds,
    ThresholdsChange,
};
pub use problem::{Problem, ProblemKind};
pub use qos::{Limits, VolumeLimits};
pub use sessions::Session;
pub use settings::{Portal, PortalAdd, PortalChange, Settings, SettingsChange};
pub use site::{SiteAction, SiteDifference, SiteText};
pub use snapshots::{
    Deleted, Schedule, ScheduleCreate, Snapshot, SnapshotCreate, SnapshotOf, SnapshotsCreate,
    TrashRestore, Trashed, VolumeClone, VolumeRestore,
};
pub use statistics::{
    CommandStats, InitiatorStats, IoStats, LatencyBucket, LatencyStats, SessionStats, SizeCount,
    TransferStats, VolumeStats,
};
pub use status::{Health, Stats, Status};
pub use volumes::{
    LunPlace, Provisioning, Shrinking, Volume, VolumeChange, VolumeConvert, VolumeCreate,
    VolumeOrigin, VolumeSpace,
};
