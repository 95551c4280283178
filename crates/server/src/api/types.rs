//! The JSON of every resource that the API takes and gives.
//!
//! Programs on both sides share these. A field is only ever added; sizes and
//! counts carry their unit in their name.

mod absent;
mod access;
mod consistency;
mod drives;
mod jobs;
mod pools;
mod problem;
mod settings;
mod site;
mod statistics;
mod volumes;
mod words;

pub use access::{
    Chap, ChapCreate, DiscoveryChap, ExportChange, Host, HostChange, HostCreate, HostGroup,
    HostGroupChange, HostGroupCreate, LunAdd, SecretText,
};
pub use consistency::{ConsistencyGroup, ConsistencyGroupChange, ConsistencyGroupCreate};

pub use absent::{ClosedPool, MissingDrive};
pub use drives::{DriveFailure, DriveRedundancy, DriveReplaced};
pub use jobs::{
    Format, Job, JobKind, JobState, VolumeCopy, VolumeExport, VolumeImport, VolumeMove,
};
pub use pools::{CacheChange, PoolCreate};
pub use problem::{Problem, ProblemKind};
pub use settings::{Portal, PortalAdd, PortalChange, Settings, SettingsChange};
pub use site::{SiteAction, SiteDifference, SiteText};
pub use statistics::{
    CommandStats, InitiatorStats, IoStats, LatencyBucket, LatencyStats, SessionStats, SizeCount,
    TransferStats, VolumeStats,
};
pub use volumes::{
    LunPlace, Provisioning, Shrinking, Volume, VolumeConvert, VolumeCreate, VolumeSpace,
};
pub use words::{
    Deleted, Origin as VolumeOrigin, Schedule, ScheduleCreate, Snapshot, SnapshotCreate,
    SnapshotOf, SnapshotsCreate, TrashRestore, Trashed, VolumeChange, VolumeClone, VolumeRestore,
};

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
    /// Served, and somebody has to look: a drive is suspect, a pool gets full, blocks were lost,
    /// a target is withheld.
    Attention,
    /// Served, with less redundancy than it should have: a drive is missing, failed or
    /// being rebuilt.
    Degraded,
    /// No page is free: writes to new pages are refused.
    Full,
    /// Not served: the pool has stopped or is not open.
    Stopped,
}

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
    /// Set while it is failed.
    #[serde(default)]
    pub failure: Option<DriveFailure>,
    /// Why it is suspect, where the array has found the reason since its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
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

/// A group of new drives to add to a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupAdd {
    /// `10`, `10x3`, `5`, `50`, `6` or `simple`; that of the pool's first group unless
    /// said otherwise.
    #[serde(default)]
    #[schema(pattern = "^(10|10x3|5|50|6|simple)$")]
    pub level: Option<String>,
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

/// A RAID group of a pool, with its drives and zones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// Its number in the pool.
    pub index: u16,
    /// How it protects what is written to new zones.
    pub level: String,
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

/// Operations, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Operations {
    /// Number of operations since the pool was opened.
    pub count: u64,
    /// Bytes that these operations transferred.
    pub bytes: u64,
}

/// What drives were used for. One operation is one read or write of one drive: a block
/// that goes to two copies is two writes. Metadata and labels are in the drives' own
/// counts only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Io {
    /// Reads of volumes that were asked for.
    pub host_reads: Operations,
    /// Writes of volumes that were asked for.
    pub host_writes: Operations,
    /// Reads of data for a command.
    pub data_reads: Operations,
    /// Reads of old data and parity, because a stripe changed only in part.
    pub modify_reads: Operations,
    /// Writes of data in place.
    pub data_writes: Operations,
    /// Writes of parity in place.
    pub parity_writes: Operations,
    /// Reads to put together what a drive can't give, for a rebuild or a scrub.
    pub repair_reads: Operations,
    /// Writes over what was bad or missing.
    pub repair_writes: Operations,
    /// Writes of the data log, on every drive that carries it.
    pub log_writes: Operations,
    /// Writes of the intent log, on every drive that carries it.
    pub intent_writes: Operations,
    /// Writes of checksums of data to drives.
    pub sum_writes: Operations,
    /// Blocks of sums brought into RAM.
    pub sum_loads: u64,
    /// Stripes that were read in order to be changed in part.
    pub partial_stripes: u64,
    /// Stripes that were changed without reading anything.
    pub whole_stripes: u64,
    /// Bytes that went in place without passing the log.
    pub bypassed_bytes: u64,
}

/// Whether work in the background makes way for commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// It rests while commands come in.
    Yield,
    /// It takes what it can get.
    Full,
}

/// Limits of work in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rates {
    /// Bytes a second that a rebuild writes at most; none is no limit.
    pub rebuild_bytes_per_s: Option<u64>,
    /// Bytes of drives a second that a scrub looks through at most; none is no limit.
    pub scrub_bytes_per_s: Option<u64>,
    /// Whether it makes way for commands.
    pub background: Background,
}

/// New limits of work in the background; what is absent stays as it is. They
/// stay after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RatesChange {
    /// Bytes a second that a rebuild writes at most; 0 is no limit.
    #[serde(default)]
    pub rebuild_bytes_per_s: Option<u64>,
    /// Bytes of drives a second that a scrub looks through at most; 0 is no limit.
    #[serde(default)]
    pub scrub_bytes_per_s: Option<u64>,
    /// Whether it makes way for commands.
    #[serde(default)]
    pub background: Option<Background>,
}

/// Work in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Task {
    /// The kind of work: rebuild, scrub or move.
    pub kind: TaskKind,
    /// The drive, or the pool.
    pub subject: String,
    /// Bytes of drives done.
    pub done_bytes: u64,
    /// Bytes of drives in all.
    pub total_bytes: u64,
    /// Bytes a second so far.
    pub bytes_per_s: u64,
    /// Seconds left at that rate, when that can be said.
    pub left_s: Option<u64>,
}

/// Kinds of work in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// A drive gets what it should hold.
    Rebuild,
    /// Everything is read and compared.
    Scrub,
    /// A group gets another level, or is emptied to leave the pool.
    Move,
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

/// Whether a pool is looked through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScrubChange {
    /// Begins a scrub, or ends the one under way.
    pub running: bool,
}

/// Something that people should know of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Name of the pool that the event is about.
    pub pool: String,
    /// Rises by one with every event of the pool since its opening, that is since the
    /// server was started.
    pub sequence: u64,
    /// The server was started again since it happened.
    pub before_start: bool,
    /// When it happened, in seconds since 1970.
    pub at_unix_s: u64,
    /// What it is about: `drive_failed`, `drive_suspect`, `drive_healthy`,
    /// `drive_missing`, `drive_back`, `spare_taken`, `rebuild`, `block_mended`, `block_lost`,
    /// `copy_moved`, `scrub`, `group`, `schedule`, `move`, `trash`, `space`, `space_freed`,
    /// `trouble`, `pool_stopped`.
    pub kind: String,
    /// The event in words, for people; the wording may change.
    pub text: String,
}

/// Who may log in: the word `any`, or a list of iSCSI names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Initiators {
    /// Every initiator may log in.
    Any(Any),
    /// Only initiators with these iSCSI names may.
    Named(Vec<String>),
}

/// The word `any`, in the place of a list of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Any {
    /// Every initiator may log in.
    Any,
}

/// A target and what is behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Export {
    /// iSCSI qualified name of the target.
    pub target: String,
    /// Its logical units, by LUN.
    pub luns: Vec<Lun>,
    /// Who may log in by name.
    pub initiators: Initiators,
    /// Names of hosts that may.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Names of host groups that may.
    #[serde(default)]
    pub host_groups: Vec<String>,
    /// What everybody has to prove who has nothing of their own to prove.
    #[serde(default)]
    pub chap: Option<Chap>,
    /// Addresses of the portals that it is seen through; absent for all.
    #[serde(default)]
    pub portals: Option<Vec<String>>,
    /// How long initiators are told that physical blocks are.
    #[serde(default = "four_kib")]
    pub physical_block_bytes: u32,
    /// Whether initiators may erase thin LUNs with SANITIZE.
    #[serde(default)]
    pub may_sanitize: bool,
    /// Whether initiators may change mode pages (SWP, D_SENSE) and reset the target, which
    /// affects all of its hosts.
    #[serde(default)]
    pub may_affect_others: bool,
    /// Why nobody can log in for now: a volume of it is in a pool that is not open. Absent
    /// when it is served.
    #[serde(default)]
    pub withheld: Option<String>,
}

fn four_kib() -> u32 {
    4096
}

/// A logical unit of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lun {
    /// The LUN, 0 to 255.
    pub lun: u64,
    /// The volume behind it.
    pub volume: String,
}

/// An export to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportCreate {
    /// iSCSI qualified name that the target gets.
    pub target: String,
    /// Names of volumes: LUN 0, 1, and so on.
    #[schema(min_items = 1, max_items = 256)]
    pub volumes: Vec<String>,
    /// Who may log in by name: `"any"`, or iSCSI names. Nobody unless it is said; hosts or host
    /// groups must be named then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiators: Option<Initiators>,
    /// Names of hosts that may log in.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Names of host groups that may.
    #[serde(default)]
    pub host_groups: Vec<String>,
    /// What everybody has to prove who has nothing of their own to prove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap: Option<ChapCreate>,
    /// Addresses of the portals that it is seen through; all when there are none.
    #[serde(default)]
    pub portals: Vec<String>,
    /// How long initiators are told that physical blocks are: 512 to 4096; 4096 unless said
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_block_bytes: Option<u32>,
    /// Whether initiators may erase thin LUNs with SANITIZE: all data goes by one command of any
    /// host that is admitted.
    #[serde(default)]
    pub may_sanitize: bool,
    /// Whether initiators may change mode pages (SWP, D_SENSE) and reset the target. One host
    /// write-protects the LUNs for all hosts then, and ends what others have running.
    #[serde(default)]
    pub may_affect_others: bool,
}

/// An iSCSI session that is connected now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Its number (the TSIH of RFC 7143), until it ends.
    pub id: u16,
    /// iSCSI name that the initiator logged in with.
    pub initiator: String,
    /// The alias it gave.
    pub initiator_alias: Option<String>,
    /// iSCSI name of the target that the session is at.
    pub target: String,
    /// Where it connects from.
    pub peer: String,
    /// The portal that it came in at.
    #[serde(default)]
    pub portal: String,
    /// Tag of the portal's group.
    #[serde(default)]
    pub portal_group: u16,
    /// The CHAP name that it has proved, if it had to.
    #[serde(default)]
    pub chap_name: Option<String>,
    /// When it logged in, in seconds since 1970.
    pub since_unix_s: u64,
    /// Commands of any kind that have ended since the login, whatever became of them.
    pub commands: u64,
    /// READ commands that have ended since the login.
    pub reads: u64,
    /// WRITE commands that have ended since the login, with WRITE AND VERIFY, WRITE ATOMIC and
    /// ORWRITE.
    pub writes: u64,
    /// Bytes that the array has sent for reads.
    pub read_bytes: u64,
    /// Bytes that the array has taken for writes.
    pub written_bytes: u64,
    /// Commands in flight now.
    pub in_flight: u64,
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
    /// READ commands among these.
    pub reads: u64,
    /// WRITE commands among these, with WRITE AND VERIFY, WRITE ATOMIC and ORWRITE.
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
