//! JSON of volumes, and of the space that they take.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How a volume takes space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provisioning {
    /// Pages are allocated on first write.
    #[default]
    Thin,
    /// All pages are set aside at creation, and allocated on first write.
    Thick,
}

/// A volume or a snapshot, with its space and its export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Volume {
    /// Its name, unique over the array.
    pub name: String,
    /// Identity (UUID), which never changes.
    pub uuid: String,
    /// The pool it is in.
    pub pool: String,
    /// Size that initiators see.
    pub size_bytes: u64,
    /// Bytes of pages allocated to it.
    pub mapped_bytes: u64,
    /// Bytes of pages promised to it beyond those: of a thick volume, all others.
    pub promised_bytes: u64,
    /// Whether pages are set aside for it (`thick`) or only allocated on first write (`thin`).
    pub provisioning: Provisioning,
    /// Nobody writes it: it is a snapshot.
    #[serde(default)]
    pub read_only: bool,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Free-form tags, as values by key.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// The consistency group that it is in, if it is in one.
    #[serde(default)]
    pub group: Option<String>,
    /// What it was taken from, if it is a snapshot or a clone.
    #[serde(default)]
    pub origin: Option<VolumeOrigin>,
    /// Whether pages that are written as zeroes take no space.
    pub detect_zeroes: bool,
    /// Where it is exported, if it is.
    pub export: Option<LunPlace>,
    /// The pool that it was on its way to or from, and that has to be there before it is
    /// served: it may be newer there.
    #[serde(default)]
    pub withheld_for: Option<String>,
}

/// Where a volume is exported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LunPlace {
    /// iSCSI qualified name of the target.
    pub target: String,
    /// The LUN at that target, 0 to 255.
    pub lun: u64,
}

/// A volume to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeCreate {
    /// 1 to 64 letters, digits, `-`, `_`, `.`, the first a letter or digit.
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    pub name: String,
    /// The pool that is to hold it.
    pub pool: String,
    /// A multiple of 512, not zero.
    #[schema(minimum = 512, maximum = 1125899906842624_i64, multiple_of = 512)]
    pub size_bytes: u64,
    /// Thin unless said otherwise.
    #[serde(default)]
    pub provisioning: Provisioning,
    /// Whether pages that are written as zeroes take no space.
    #[serde(default)]
    pub detect_zeroes: bool,
}

/// What of its pool's space is a volume's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VolumeSpace {
    /// Name of the volume.
    pub name: String,
    /// Size that initiators see.
    pub provisioned_bytes: u64,
    /// Bytes of pages that it has: the next two together.
    pub mapped_bytes: u64,
    /// Those that nobody else has.
    pub exclusive_bytes: u64,
    /// Those that snapshots or clones have, too.
    pub shared_bytes: u64,
    /// Bytes promised to it beyond what it has.
    pub promised_bytes: u64,
    /// What others can have when it is deleted: what is exclusive or promised.
    pub reclaimable_bytes: u64,
}

/// What is behind the new end of a volume that is to shrink, and would be lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Shrinking {
    /// Its size before the change, as initiators see it.
    pub size_bytes: u64,
    /// Bytes behind its new end; 0 when it would not shrink.
    pub lost_bytes: u64,
    /// Those of them that are mapped, and may be data.
    pub lost_mapped_bytes: u64,
}

/// How a volume takes space from now on. What is not named stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeConvert {
    /// Thin or thick from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning: Option<Provisioning>,
    /// Whether pages that are written as zeroes take no space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detect_zeroes: Option<bool>,
}

/// What a snapshot or a clone was taken from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VolumeOrigin {
    /// Identity of the volume that it was taken from.
    pub uuid: String,
    /// What that is called now; absent when it is gone, or in the trash.
    pub volume: Option<String>,
    /// What it was called then.
    pub name: String,
    /// When, in seconds since 1970.
    pub at_unix_s: u64,
}

/// What is to change of a volume; what is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeChange {
    /// Its new size: a multiple of 512, not smaller than now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 512, maximum = 1125899906842624_i64, multiple_of = 512)]
    pub size_bytes: Option<u64>,
    /// Shrink it, too: what is behind its new end is lost.
    #[serde(default)]
    pub force_shrink: bool,
    /// Its new name. Snapshots and exports follow; initiators notice nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    pub name: Option<String>,
    /// What it is for, up to 240 bytes on one line; empty for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Tags that it gets, by key; those that are null it loses. Others stay.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, Option<String>>,
}
