//! JSON of what drives say of their own health.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a drive says of its own health: SMART of ATA, the informational exceptions of SCSI, or the
/// health log of NVMe. A drive says only what its protocol and its maker have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DriveHealth {
    /// Whether it warns, and whether it has answered at all.
    pub verdict: DriveVerdict,
    /// What it warns of, a line for each reason.
    pub warnings: Vec<String>,
    /// Why it did not answer when it was asked last. All else is of its last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// When it answered last, in seconds since 1970; none if it has not since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_unix_s: Option<u64>,
    /// Its own verdict: whether it predicts that it fails soon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// Its model, as its maker calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its serial number, as it says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Its temperature in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_celsius: Option<i64>,
    /// How long it was powered on, in hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_on_hours: Option<u64>,
    /// Sectors that it has replaced by spare ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reallocated_sectors: Option<u64>,
    /// Sectors that it cannot read until they are written again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_sectors: Option<u64>,
    /// Sectors that its own scan could not read (ATA).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncorrectable_sectors: Option<u64>,
    /// Errors that it could not correct since it was made (NVMe, SCSI).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_errors: Option<u64>,
    /// The bits of its critical warning (NVMe).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_warning: Option<u8>,
    /// Spare blocks that are left, in percent (NVMe).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_percent: Option<u64>,
    /// Below this percentage spare blocks are too few (NVMe).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_threshold_percent: Option<u64>,
    /// How much of its expected life is used, in percent; may be more than 100 (NVMe).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<u64>,
}

/// Whether a drive warns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DriveVerdict {
    /// It has answered, and warns of nothing.
    Well,
    /// It warns.
    Warns,
    /// It has not answered since the start.
    Unknown,
}
