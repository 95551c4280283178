//! Which answers of a drive warn.
//!
//! Invariant: a rule is here only with its source. Counters that grow on good drives, too, such as
//! reallocated sectors, do not warn by themselves: the maker's threshold for them does.

use super::reading::{FailingAttribute, Reading};

/// What a drive warns of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WarningKind {
    /// Its verdict on itself.
    Failing,
    /// An ATA attribute of this number is at its threshold.
    Attribute(u8),
    Pending,
    Uncorrectable,
    SpareLow,
    Unreliable,
    ReadOnly,
    NoBackup,
    PersistentMemory,
    /// A bit of the critical warning that has no meaning yet.
    Unknown,
    Worn,
    Hot,
}

/// Something that a drive warns of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub kind: WarningKind,
    /// For people, to be read after "it warns: ".
    pub text: String,
}

/// The bits of the critical warning in the SMART / Health Information log page of NVMe (NVM Express
/// Base Specification 2.0, clause 5.16.1.3, byte 0).
const CRITICAL: [(u8, WarningKind, &str); 6] = [
    (
        0,
        WarningKind::SpareLow,
        "its spare blocks are below their threshold",
    ),
    (
        1,
        WarningKind::Hot,
        "its temperature is outside of its limits",
    ),
    (
        2,
        WarningKind::Unreliable,
        "it has become unreliable by errors of the medium or inside of it",
    ),
    (3, WarningKind::ReadOnly, "it takes no writes any more"),
    (
        4,
        WarningKind::NoBackup,
        "the backup of its volatile memory has failed",
    ),
    (
        5,
        WarningKind::PersistentMemory,
        "its persistent memory region takes no writes, or is unreliable",
    ),
];

/// All that a drive warns of, by kind.
pub fn warnings(reading: &Reading) -> Vec<Warning> {
    let mut found: Vec<Warning> = Vec::new();
    found.extend(verdict(reading));
    found.extend(reading.failing_attributes.iter().map(at_threshold));
    found.extend(unreadable(reading));
    found.extend(critical(reading));
    found.extend(wear(reading));
    found.extend(heat(reading));
    found.sort_by_key(|warning| warning.kind);
    found.dedup_by_key(|warning| warning.kind);
    found
}

fn warning(kind: WarningKind, text: impl Into<String>) -> Warning {
    let text = text.into();
    Warning { kind, text }
}

/// ATA: SMART RETURN STATUS (ACS-3, command B0h, feature DAh) answers that a threshold is exceeded. SCSI:
/// the informational exceptions log page (SPC-4, page 2Fh) has the additional sense code 0Bh (warning) or
/// 5Dh (failure prediction threshold exceeded). NVMe has no verdict but the critical warning, from which
/// smartctl makes one.
fn verdict(reading: &Reading) -> Option<Warning> {
    let is_failing = reading.passed == Some(false) && reading.critical_warning.is_none();
    is_failing.then(|| warning(WarningKind::Failing, "it predicts that it fails soon"))
}

/// smartd.conf(5), directive `-f`: an attribute that predicts failure is at or below the threshold of
/// the drive's maker. ATA had thresholds up to ATA-3; drives and smartctl still do.
fn at_threshold(attribute: &FailingAttribute) -> Warning {
    let FailingAttribute { id, name } = attribute;
    let text = format!("its attribute {id} ({name}) is at the threshold of its maker");
    warning(WarningKind::Attribute(*id), text)
}

/// smartd.conf(5), directives `-C 197` and `-U 198`, which are its defaults: no sector is pending, and
/// none was found unreadable. Within 60 days after the first such sector, drives failed 16 and 39 times
/// as often (Pinheiro and others, "Failure Trends in a Large Disk Drive Population", FAST 2007, sections
/// 3.5.4 and 3.5.1). Pending defects of SCSI (SBC-4, log page 15h, subpage 01h) are the same.
fn unreadable(reading: &Reading) -> Vec<Warning> {
    let sectors = |count: u64| match count {
        1 => "1 sector".to_owned(),
        count => format!("{count} sectors"),
    };
    let some = |count: Option<u64>| count.filter(|count| *count > 0);
    let pending = some(reading.pending_sectors).map(|count| {
        let text = format!("{} can't be read until written again", sectors(count));
        warning(WarningKind::Pending, text)
    });
    let uncorrectable = some(reading.uncorrectable_sectors).map(|count| {
        let text = format!("its own scan could not read {}", sectors(count));
        warning(WarningKind::Uncorrectable, text)
    });
    pending.into_iter().chain(uncorrectable).collect()
}

/// The set bits of the critical warning.
fn critical(reading: &Reading) -> Vec<Warning> {
    let bits = reading.critical_warning.unwrap_or(0);
    let is_set = |bit: u8| bits & (1 << bit) != 0;
    let known = CRITICAL.iter().filter(|(bit, ..)| is_set(*bit));
    let mut found: Vec<Warning> = known.map(|(_, kind, text)| warning(*kind, *text)).collect();
    let unknown = bits >> CRITICAL.len() << CRITICAL.len();
    if unknown != 0 {
        let text = format!("its critical warning has unknown bits: {unknown:#04x}");
        found.push(warning(WarningKind::Unknown, text));
    }
    found
}

/// The same log page of NVMe: available spare (byte 3) has fallen below its threshold (byte 4), or the
/// percentage used (byte 5) says that the drive's estimated endurance is consumed.
fn wear(reading: &Reading) -> Vec<Warning> {
    let mut found = Vec::new();
    if let (Some(left), Some(threshold)) = (reading.spare_percent, reading.spare_threshold_percent)
        && left < threshold
    {
        let text =
            format!("{left} % of its spare blocks are left, and its threshold is {threshold} %");
        found.push(warning(WarningKind::SpareLow, text));
    }
    if let Some(used) = reading.used_percent.filter(|used| *used >= 100) {
        let text = format!("{used} % of its expected life are used");
        found.push(warning(WarningKind::Worn, text));
    }
    found
}

/// SCSI: the temperature log page (0Dh) has a reference temperature, at which the drive may no longer
/// operate as it should (SPC-4). Drives that have none say 0.
fn heat(reading: &Reading) -> Option<Warning> {
    let trip = reading.trip_celsius.filter(|trip| *trip > 0)?;
    let now = reading.temperature_celsius.filter(|now| *now >= trip)?;
    let text = format!("it has {now} °C, and its limit is {trip} °C");
    Some(warning(WarningKind::Hot, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(reading: &Reading) -> Vec<WarningKind> {
        let found = warnings(reading);
        found.into_iter().map(|warning| warning.kind).collect()
    }

    /// A good NVMe drive.
    fn flash() -> Reading {
        Reading {
            passed: Some(true),
            critical_warning: Some(0),
            spare_percent: Some(10),
            spare_threshold_percent: Some(10),
            used_percent: Some(99),
            media_errors: Some(7),
            temperature_celsius: Some(80),
            ..Reading::default()
        }
    }

    /// A good disk that has reallocated sectors.
    fn disk() -> Reading {
        Reading {
            passed: Some(true),
            reallocated_sectors: Some(40),
            pending_sectors: Some(0),
            uncorrectable_sectors: Some(0),
            temperature_celsius: Some(59),
            trip_celsius: Some(60),
            ..Reading::default()
        }
    }

    #[test]
    fn good_drives_warn_of_nothing() {
        for good in [Reading::default(), flash(), disk()] {
            assert_eq!(kinds(&good), [], "{good:?}");
        }
    }

    #[test]
    fn each_rule_warns_alone() {
        use WarningKind::*;
        let attribute = FailingAttribute {
            id: 5,
            name: "Reallocated_Sector_Ct".to_owned(),
        };
        type Change = fn(&mut Reading);
        let on_disks: [(Change, WarningKind); 4] = [
            (|disk| disk.passed = Some(false), Failing),
            (|disk| disk.pending_sectors = Some(1), Pending),
            (|disk| disk.uncorrectable_sectors = Some(2), Uncorrectable),
            (|disk| disk.temperature_celsius = Some(60), Hot),
        ];
        let on_flash: [(Change, WarningKind); 8] = [
            (|flash| flash.spare_percent = Some(9), SpareLow),
            (|flash| flash.used_percent = Some(100), Worn),
            (|flash| flash.critical_warning = Some(1), SpareLow),
            (|flash| flash.critical_warning = Some(2), Hot),
            (|flash| flash.critical_warning = Some(4), Unreliable),
            (|flash| flash.critical_warning = Some(8), ReadOnly),
            (|flash| flash.critical_warning = Some(16), NoBackup),
            (|flash| flash.critical_warning = Some(32), PersistentMemory),
        ];
        let disks = on_disks.into_iter().map(|case| (disk(), case));
        let all = disks.chain(on_flash.into_iter().map(|case| (flash(), case)));
        for (mut reading, (change, kind)) in all {
            change(&mut reading);
            assert_eq!(kinds(&reading), [kind], "{reading:?}");
        }
        let worn = Reading {
            failing_attributes: vec![attribute],
            ..disk()
        };
        assert_eq!(kinds(&worn), [Attribute(5)]);
        let strange = Reading {
            critical_warning: Some(0xc0),
            ..flash()
        };
        assert_eq!(kinds(&strange), [Unknown]);
        assert!(warnings(&strange)[0].text.contains("0xc0"));
    }

    #[test]
    fn two_signs_of_a_cause_are_one_warning() {
        let worn = Reading {
            // smartctl makes this verdict of the critical warning.
            passed: Some(false),
            critical_warning: Some(1),
            spare_percent: Some(3),
            ..flash()
        };
        assert_eq!(kinds(&worn), [WarningKind::SpareLow]);
    }
}
