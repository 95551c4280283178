//! One answer of a drive about its health, whatever protocol it speaks.

/// An ATA attribute that its vendor counts as a sign of failure, at or below its threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingAttribute {
    /// Its number, by which smartd and makers know it.
    pub id: u8,
    /// Its name, as far as one is known.
    pub name: String,
}

/// What a drive has said. A drive says only what its protocol and its maker have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub model: Option<String>,
    pub serial: Option<String>,
    /// Its verdict on itself.
    pub passed: Option<bool>,
    /// Those of an ATA drive that are at their thresholds now.
    pub failing_attributes: Vec<FailingAttribute>,
    pub temperature_celsius: Option<i64>,
    /// SCSI only: from here on the drive may fail or lose data.
    pub trip_celsius: Option<i64>,
    pub power_on_hours: Option<u64>,
    /// Sectors that it has put elsewhere since it was made.
    pub reallocated_sectors: Option<u64>,
    /// Sectors that could not be read, and that it puts elsewhere when they are written.
    pub pending_sectors: Option<u64>,
    /// ATA only: sectors that it could not read when it looked by itself.
    pub uncorrectable_sectors: Option<u64>,
    /// NVMe and SCSI: errors that it could not correct since it was made.
    pub media_errors: Option<u64>,
    /// NVMe only: the bits of its critical warning.
    pub critical_warning: Option<u8>,
    /// NVMe only: spare blocks that are left, of those that it was made with.
    pub spare_percent: Option<u64>,
    /// NVMe only: fewer are too few.
    pub spare_threshold_percent: Option<u64>,
    /// NVMe only: what of its expected life is used; may be more than 100.
    pub used_percent: Option<u64>,
}

impl Reading {
    /// Whether it says anything of the drive's health.
    pub fn says_anything(&self) -> bool {
        let bare = Reading {
            model: self.model.clone(),
            serial: self.serial.clone(),
            ..Reading::default()
        };
        *self != bare
    }
}
