//! What drives say of their own health, as the API shows it.

use crate::array::Array;
use api::{DriveHealth, DriveVerdict};

/// What is known of the health of the drive with this identity; none before it was asked.
pub(super) fn shown(array: &Array, uuid: &str) -> Option<DriveHealth> {
    let known = array.health_of(uuid)?;
    let warnings: Vec<String> = known.warnings().map(|one| one.text.clone()).collect();
    let verdict = match (&known.last, warnings.is_empty()) {
        (_, false) => DriveVerdict::Warns,
        (Some(_), true) => DriveVerdict::Well,
        (None, true) => DriveVerdict::Unknown,
    };
    let (said, read_unix_s) = known.last.unzip();
    let said = said.unwrap_or_default();
    Some(DriveHealth {
        verdict,
        warnings,
        unread: known.unread,
        read_unix_s,
        passed: said.passed,
        model: said.model,
        serial: said.serial,
        temperature_celsius: said.temperature_celsius,
        power_on_hours: said.power_on_hours,
        reallocated_sectors: said.reallocated_sectors,
        pending_sectors: said.pending_sectors,
        uncorrectable_sectors: said.uncorrectable_sectors,
        media_errors: said.media_errors,
        critical_warning: said.critical_warning,
        spare_percent: said.spare_percent,
        spare_threshold_percent: said.spare_threshold_percent,
        used_percent: said.used_percent,
    })
}
