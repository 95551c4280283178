//! What the API says and takes: the JSON of every resource.
//!
//! Programs on both sides share these. A field is only ever added; sizes and
//! counts carry their unit in their name.

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
    /// The worst of its pools.
    pub health: Health,
    /// Where targets are served, as address and port.
    pub portals: Vec<String>,
    /// How many pools.
    pub pools: u64,
    /// How many volumes.
    pub volumes: u64,
    /// How many exports.
    pub exports: u64,
    /// How many sessions are connected.
    pub sessions: u64,
    /// Bytes that volumes can map in all pools.
    pub capacity_bytes: u64,
    /// Bytes of pages allocated in all pools.
    pub mapped_bytes: u64,
}

/// Whether data is served, and with what redundancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// All is well.
    Healthy,
    /// Served, with a drive missing or failed.
    Degraded,
    /// Not served.
    Failed,
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
    /// Which RAID group.
    pub group: u16,
    /// Which place in the group.
    pub place: u16,
    /// In use or left out.
    pub state: DriveState,
    /// Capacity.
    pub capacity_bytes: u64,
    /// Reads since the pool was opened.
    pub reads: u64,
    /// Writes since the pool was opened.
    pub writes: u64,
    /// Flushes since the pool was opened.
    pub flushes: u64,
    /// Failed operations since the pool was opened.
    pub errors: u64,
}

/// Whether a drive is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DriveState {
    /// In use.
    Healthy,
    /// In use, but slow or with errors.
    Suspect,
    /// Left out after an error; its content is stale.
    Failed,
    /// Takes all writes; its content is being restored.
    Rebuilding,
    /// Waits to stand in for a drive that fails.
    Spare,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Identity for life.
    pub uuid: String,
    /// Protection: `10` or `simple`.
    pub level: String,
    /// Whether it serves.
    pub health: Health,
    /// Why it has stopped, if it has.
    pub failure: Option<String>,
    /// Unit of thin allocation.
    pub page_bytes: u32,
    /// Bytes that volumes can map in all.
    pub capacity_bytes: u64,
    /// Bytes of pages allocated.
    pub mapped_bytes: u64,
    /// Sum of the sizes of its volumes; above the capacity when overcommitted.
    pub provisioned_bytes: u64,
    /// Epoch under which it is owned; grows with every opening.
    pub epoch: u64,
    /// Shard that it is homed on.
    pub shard: u64,
    /// Names of its drives, by group and place.
    pub drives: Vec<String>,
}

/// How a volume takes space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provisioning {
    /// Pages are allocated on first write.
    #[default]
    Thin,
    /// All pages are allocated at creation.
    Thick,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Volume {
    /// Its name, unique over the array.
    pub name: String,
    /// Identity for life.
    pub uuid: String,
    /// The pool it is in.
    pub pool: String,
    /// Size that initiators see.
    pub size_bytes: u64,
    /// Bytes of pages allocated to it.
    pub mapped_bytes: u64,
    /// Thin or thick.
    pub provisioning: Provisioning,
    /// Where it is exported, if it is.
    pub export: Option<LunPlace>,
}

/// Where a volume is exported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LunPlace {
    /// The target.
    pub target: String,
    /// The LUN.
    pub lun: u64,
}

/// A volume to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeCreate {
    /// 1 to 64 letters, digits, `-`, `_`, `.`, the first a letter or digit.
    pub name: String,
    /// The pool that is to hold it.
    pub pool: String,
    /// A multiple of 512, not zero.
    pub size_bytes: u64,
    /// Thin unless said otherwise.
    #[serde(default)]
    pub provisioning: Provisioning,
}

/// A volume's new size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeResize {
    /// A multiple of 512, not smaller than now.
    pub size_bytes: u64,
}

/// Who may log in: the word `any`, or a list of iSCSI names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Initiators {
    /// Everybody.
    Any(Any),
    /// These.
    Named(Vec<String>),
}

/// The word `any`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Any {
    /// Everybody.
    Any,
}

/// A target and what is behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Export {
    /// iSCSI qualified name.
    pub target: String,
    /// Its logical units.
    pub luns: Vec<Lun>,
    /// Who may log in.
    pub initiators: Initiators,
    /// Who described it.
    pub origin: Origin,
}

/// A logical unit of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lun {
    /// Its number.
    pub lun: u64,
    /// The volume behind it.
    pub volume: String,
}

/// Who described an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The site file; there again after every start.
    Site,
    /// The API; kept until it is deleted.
    Api,
}

/// An export to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportCreate {
    /// iSCSI qualified name.
    pub target: String,
    /// Names of volumes: LUN 0, 1, and so on.
    pub volumes: Vec<String>,
    /// Anybody unless said otherwise.
    #[serde(default)]
    pub initiators: Initiators,
}

/// A connected session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Its number (the TSIH of RFC 7143), until it ends.
    pub id: u16,
    /// The initiator's name.
    pub initiator: String,
    /// The alias it gave.
    pub initiator_alias: Option<String>,
    /// The target.
    pub target: String,
    /// Where it connects from.
    pub peer: String,
    /// When it logged in, in seconds since 1970.
    pub since_unix_s: u64,
    /// Commands ended.
    pub commands: u64,
    /// READ commands ended.
    pub reads: u64,
    /// WRITE commands ended.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Commands in flight now.
    pub in_flight: u64,
}

/// Sums over the sessions that are connected now and over all drives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Stats {
    /// Seconds since the array was brought up.
    pub uptime_s: u64,
    /// Connected sessions.
    pub sessions: u64,
    /// Commands that these have ended.
    pub commands: u64,
    /// Reads of these.
    pub reads: u64,
    /// Writes of these.
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

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// What programs match on.
    pub kind: ProblemKind,
    /// For people: what, where, and what can be done.
    pub message: String,
}

/// Kinds of failure. Each has one HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// 400: the request itself is wrong.
    Invalid,
    /// 403: the request names a host that isn't this one.
    Forbidden,
    /// 404: no such thing.
    NotFound,
    /// 405: the resource doesn't do that.
    MethodNotAllowed,
    /// 409: there is such a thing already.
    Exists,
    /// 409: it is in use.
    Busy,
    /// 507: the pool has too few free pages.
    Full,
    /// 503: the pool has failed, or the array is stopping.
    Unavailable,
    /// 500: a drive or a file failed underneath, or a bug.
    Internal,
}

impl Default for Initiators {
    fn default() -> Self {
        Initiators::Any(Any::Any)
    }
}
