//! A job: its order, its record, and its state as the API shows it.

use super::digest::Digest;
use super::place::Seen;
use api::{Format, JobKind, JobState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

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

/// What a copy is of, on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopyOf {
    pub(crate) source: String,
    pub(crate) source_uuid: String,
    pub(crate) from_bytes: u64,
    pub(crate) to_bytes: u64,
    /// Whether the job makes the volume.
    pub(crate) makes: bool,
}
