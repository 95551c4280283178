//! A job: its order, its record, and its state as the API shows it.

use super::digest::Digest;
use super::header::Format;
use super::place::Seen;
use super::volume_copy::CopyOf;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use utoipa::ToSchema;

/// Which way content goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobKind {
    /// From a file into a new volume.
    Import,
    /// From a volume into a new file.
    Export,
    /// A volume to another pool.
    Move,
    /// From a volume to a volume.
    Copy,
}

/// What has become of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Others are before it.
    Queued,
    /// It copies.
    Running,
    /// It can't go on yet; `error` says why. It tries again by itself.
    Waiting,
    /// All is copied, and is read back.
    Verifying,
    /// It has ended well.
    Done,
    /// It has failed, and has taken back what it had made.
    Failed,
    /// Somebody has ended it, and it has taken back what it had made.
    Cancelled,
}

impl JobState {
    /// As people and the API say it.
    pub fn word(self) -> &'static str {
        match self {
            JobState::Queued => "queued",
            JobState::Running => "running",
            JobState::Waiting => "waiting",
            JobState::Verifying => "verifying",
            JobState::Done => "done",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
        }
    }

    /// Whether nothing will become of it any more.
    pub fn is_ended(self) -> bool {
        matches!(
            self,
            JobState::Done | JobState::Failed | JobState::Cancelled
        )
    }
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) kind: JobKind,
    pub(crate) file: PathBuf,
    pub(crate) format: Format,
    /// Of an import: the format was not recognised.
    #[serde(default)]
    pub(crate) is_unrecognised: bool,
    pub(crate) pool: String,
    pub(crate) volume: String,
    /// Read back in the end.
    pub(crate) verify: bool,
    /// Of data, at most.
    pub(crate) rate_bytes_per_s: Option<u64>,
    /// Of a new image.
    #[serde(default)]
    pub(crate) options: BTreeMap<String, String>,
    /// Export although hosts may write to the volume.
    #[serde(default)]
    pub(crate) live: bool,
    /// Where a volume moves to; `pool` is where it was.
    #[serde(default)]
    pub(crate) to_pool: Option<String>,
    /// Move although its snapshots stay.
    #[serde(default)]
    pub(crate) leave_snapshots: bool,
    /// What a copy is of.
    #[serde(default)]
    pub(crate) copy: Option<CopyOf>,
}

/// A job on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) order: Order,
    pub(crate) state: JobState,
    pub(crate) size_bytes: u64,
    /// Of the volume; none before an import has made it.
    pub(crate) volume_uuid: Option<String>,
    /// The files of an image that is imported, when the job began.
    pub(crate) seen: Vec<Seen>,
    /// What is written for certain.
    pub(crate) checkpoint: Option<Digest>,
    pub(crate) began_unix_s: u64,
    /// How far it was when the server went on with it last.
    pub(crate) resumed_bytes: Option<u64>,
    pub(crate) sha256: Option<String>,
    /// How long a volume stood still when it had moved.
    #[serde(default)]
    pub(crate) stall_us: Option<u64>,
    pub(crate) error: Option<String>,
}

/// A job, told about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobInfo {
    /// Rises with every job.
    pub id: u64,
    /// Import, export, move or copy.
    pub kind: JobKind,
    /// What has become of it.
    pub state: JobState,
    /// The volume that is made or read.
    pub volume: String,
    /// The pool it is in; of a move, the one that it was in.
    pub pool: String,
    /// The pool that it moves to; absent unless it is a move.
    #[serde(default)]
    pub to_pool: Option<String>,
    /// The volume that is copied, if it is a copy.
    #[serde(default)]
    pub source: Option<String>,
    /// The file that is read or made; empty for a move or a copy.
    pub file: String,
    /// Format of the file; says nothing of a move or a copy.
    pub format: Format,
    /// Whether Ashlar did not recognise the format of an import, and takes the file as raw.
    #[serde(default)]
    pub format_unrecognised: bool,
    /// When it was asked for, in seconds since 1970.
    pub began_unix_s: u64,
    /// Size of the disk.
    pub size_bytes: u64,
    /// How much of the disk it has gone through, holes included; anew while it verifies.
    pub done_bytes: u64,
    /// How much was written, holes and zeroes left out, since the job was begun or gone on
    /// with.
    pub data_bytes: u64,
    /// How much is on record: after a crash it goes on from here.
    pub kept_bytes: u64,
    /// From where the server went on after it was started again.
    pub resumed_bytes: Option<u64>,
    /// How fast it goes through the disk, of late.
    pub bytes_per_s: u64,
    /// Seconds until the end at that rate, if that can be told.
    pub left_s: Option<u64>,
    /// SHA-256 of the content of the whole disk, as a guest reads it, zeroes included.
    pub sha256: Option<String>,
    /// Microseconds that the volume stood still for when it had moved.
    #[serde(default)]
    pub stall_us: Option<u64>,
    /// Why it failed, or waits.
    pub error: Option<String>,
}
