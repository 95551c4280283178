//! A job: its order, its record, and its state as the API shows it.

use super::digest::Digest;
use api::{Format, JobKind, JobState};
use base::Uuid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A file when it was looked at: one that is another file, or was written to since, shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenFile {
    pub path: PathBuf,
    pub size_bytes: u64,
    pub modified_ns: i128,
    pub inode: u64,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub kind: JobKind,
    pub file: PathBuf,
    pub format: Format,
    /// Of an import: the format was not recognised.
    #[serde(default)]
    pub is_unrecognised: bool,
    pub pool: String,
    pub volume: String,
    /// Read back in the end.
    pub verify: bool,
    /// Of data, at most.
    pub rate_bytes_per_s: Option<u64>,
    /// Of a new image.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Export although hosts may write to the volume.
    #[serde(default)]
    pub live: bool,
    /// Where a volume moves to; `pool` is where it was.
    #[serde(default)]
    pub to_pool: Option<String>,
    /// Move although its snapshots stay.
    #[serde(default)]
    pub leave_snapshots: bool,
    /// What a copy is of.
    #[serde(default)]
    pub copy: Option<CopyOf>,
}

impl Order {
    /// A job of this kind on a volume of a pool, without a file and whatever else may be asked for.
    pub fn new(kind: JobKind, pool: String, volume: String) -> Self {
        Order {
            kind,
            file: PathBuf::new(),
            format: Format::Raw,
            is_unrecognised: false,
            pool,
            volume,
            verify: false,
            rate_bytes_per_s: None,
            options: BTreeMap::new(),
            live: false,
            to_pool: None,
            leave_snapshots: false,
            copy: None,
        }
    }
}

/// A job on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub id: u64,
    pub order: Order,
    pub state: JobState,
    pub size_bytes: u64,
    /// Of the volume; none before an import has made it.
    pub volume_uuid: Option<String>,
    /// The files of an image that is imported, when the job began.
    pub seen: Vec<SeenFile>,
    /// What is written for certain.
    pub checkpoint: Option<Digest>,
    pub began_unix_s: u64,
    /// How far it was when the server went on with it last.
    pub resumed_bytes: Option<u64>,
    pub sha256: Option<String>,
    /// How long a volume stood still when it had moved.
    #[serde(default)]
    pub stall_us: Option<u64>,
    pub error: Option<String>,
}

impl Job {
    /// Identity of its volume, once there is one.
    pub fn uuid(&self) -> Option<Uuid> {
        self.volume_uuid.as_deref()?.parse().ok()
    }

    /// How far its checkpoint is.
    pub fn checkpoint_bytes(&self) -> u64 {
        self.checkpoint.as_ref().map_or(0, Digest::len_bytes)
    }
}

/// What a copy is of, on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyOf {
    pub source: String,
    pub source_uuid: String,
    pub from_bytes: u64,
    pub to_bytes: u64,
    /// Whether the job makes the volume.
    pub makes: bool,
}
