//! JSON of jobs, and of the imports, exports, copies and moves that they do.

use crate::Provisioning;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use utoipa::ToSchema;

/// A format of image files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The bytes of the disk, nothing else.
    Raw,
    /// QEMU's format for disk images.
    Qcow2,
    /// Hyper-V's format, also with differencing disks.
    Vhdx,
    /// VMware's format for disk images.
    Vmdk,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Raw => "raw",
            Format::Qcow2 => "qcow2",
            Format::Vhdx => "vhdx",
            Format::Vmdk => "vmdk",
        })
    }
}

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

/// A job, told about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = JobInfo)]
pub struct Job {
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

/// What to make a volume of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeImport {
    /// An image on the server's machine, under a directory that the site file allows: an
    /// absolute path.
    pub file: String,
    /// Its format; when absent, that of its name, if its content agrees.
    #[serde(default)]
    pub format: Option<Format>,
    /// Pool that is to hold the volume.
    pub pool: String,
    /// Thin unless said otherwise.
    #[serde(default)]
    pub provisioning: Provisioning,
    /// Read the volume back in the end, and compare its sum.
    #[serde(default)]
    pub verify: bool,
    /// Most bytes of data a second.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1125899906842624_i64)]
    pub rate_bytes_per_s: Option<u64>,
}

/// Where to move a volume, while it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeMove {
    /// Pool that is to hold it.
    pub pool: String,
    /// Most bytes of data a second.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1125899906842624_i64)]
    pub rate_bytes_per_s: Option<u64>,
    /// Have its snapshots stay in the pool that it leaves. There they can be cloned,
    /// exported and deleted, but the volume can't be restored from them.
    #[serde(default)]
    pub leave_snapshots: bool,
    /// Do it although the pool is without a part of its redundancy.
    #[serde(default)]
    pub force: bool,
}

/// Where to copy a volume to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeCopy {
    /// The volume that is written. One that is not there is made, as large as is needed.
    pub destination: String,
    /// Pool that it is to be made in; that of the source unless said otherwise.
    #[serde(default)]
    pub pool: Option<String>,
    /// How it takes space, if it is made: thin unless said otherwise.
    #[serde(default)]
    pub provisioning: Provisioning,
    /// From which byte of the source on; a multiple of 512.
    #[serde(default)]
    #[schema(multiple_of = 512)]
    pub from_bytes: u64,
    /// To which byte of the destination on; a multiple of 512.
    #[serde(default)]
    #[schema(multiple_of = 512)]
    pub to_bytes: u64,
    /// How many bytes, a multiple of 512; up to the source's end unless said otherwise.
    #[serde(default)]
    #[schema(multiple_of = 512)]
    pub length_bytes: Option<u64>,
    /// Write over what a destination that is there already holds.
    #[serde(default)]
    pub overwrite: bool,
    /// Do it although hosts are logged in to the destination's target.
    #[serde(default)]
    pub live: bool,
    /// Most bytes of data a second, where it is read and written.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1125899906842624_i64)]
    pub rate_bytes_per_s: Option<u64>,
}

/// What to make of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeExport {
    /// The image to make, which must not be there: an absolute path on the server's
    /// machine, under a directory that the site file allows.
    pub file: String,
    /// Format that the image is made in.
    pub format: Format,
    /// Options of the format, as `qemu-img create` has them; those that name files are
    /// refused.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Read the image back in the end, and compare its sum.
    #[serde(default)]
    pub verify: bool,
    /// Do it although hosts are logged in to the volume's target: what they write
    /// meanwhile may be in the image or not, in no order.
    #[serde(default)]
    pub live: bool,
    /// Most bytes of data a second.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1125899906842624_i64)]
    pub rate_bytes_per_s: Option<u64>,
}
