//! JSON of jobs, and of the imports, exports, copies and moves that they do.

pub use crate::images::{Format, JobInfo as Job, JobKind, JobState};

use super::Provisioning;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

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
