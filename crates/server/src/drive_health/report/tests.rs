//! Reports as smartctl 7 prints them, shortened to the fields that are read and some that are not.

use super::*;
use ::array::drive_health::{WarningKind, warnings};

fn answer(status: i32, printed: &str) -> Answer {
    Answer {
        printed: printed.as_bytes().to_vec(),
        status: Some(status),
    }
}

fn read(status: i32, printed: &str) -> Reading {
    understood(&answer(status, printed)).unwrap()
}

fn refused(status: i32, printed: &str) -> String {
    understood(&answer(status, printed)).unwrap_err()
}

fn kinds(reading: &Reading) -> Vec<WarningKind> {
    let found = warnings(reading);
    found.into_iter().map(|warning| warning.kind).collect()
}

/// A SATA disk with these raw values of the attributes 5, 197 and 198; `when_failed` is of the first.
fn disk((reallocated, pending, unreadable): (u64, u64, u64), when_failed: &str) -> String {
    let flags = r#"{"value": 51, "string": "PO--CK ", "prefailure": true, "updated_online": true}"#;
    let old_age = r#"{"value": 50, "string": "-O--CK ", "prefailure": false}"#;
    format!(
        r#"{{
  "json_format_version": [1, 0],
  "smartctl": {{"version": [7, 3], "argv": ["smartctl"], "exit_status": 0}},
  "device": {{"name": "/dev/sdb", "info_name": "/dev/sdb [SAT]", "type": "sat", "protocol": "ATA"}},
  "model_family": "Western Digital Red", "model_name": "WDC WD20EFRX-68EUZN0",
  "serial_number": "WD-WCC4M0000000", "rotation_rate": 5400,
  "smart_status": {{"passed": true}},
  "ata_smart_attributes": {{"revision": 16, "table": [
    {{"id": 5, "name": "Reallocated_Sector_Ct", "value": 200, "worst": 200, "thresh": 140,
      "when_failed": "{when_failed}", "flags": {flags},
      "raw": {{"value": {reallocated}, "string": "{reallocated}"}}}},
    {{"id": 194, "name": "Temperature_Celsius", "value": 117, "worst": 102, "thresh": 0,
      "when_failed": "", "flags": {old_age}, "raw": {{"value": 30, "string": "30"}}}},
    {{"id": 197, "name": "Current_Pending_Sector", "value": 200, "worst": 200, "thresh": 0,
      "when_failed": "", "flags": {old_age}, "raw": {{"value": {pending}, "string": "{pending}"}}}},
    {{"id": 198, "name": "Offline_Uncorrectable", "value": 100, "worst": 253, "thresh": 0,
      "when_failed": "now", "flags": {old_age},
      "raw": {{"value": {unreadable}, "string": "{unreadable}"}}}}]}},
  "power_on_time": {{"hours": 49432}}, "power_cycle_count": 31,
  "temperature": {{"current": 30}},
  "ata_smart_error_log": {{"summary": {{"revision": 1, "count": 0}}}}
}}"#
    )
}

/// A SAS disk that has this verdict.
fn sas(passed: bool, temperature: i64) -> String {
    format!(
        r#"{{
  "smartctl": {{"version": [7, 3], "exit_status": 0}},
  "device": {{"name": "/dev/sdc", "type": "scsi", "protocol": "SCSI"}},
  "scsi_vendor": "SEAGATE", "scsi_model_name": "SEAGATE ST1200MM0088",
  "serial_number": "Z4000000", "rotation_rate": 10500,
  "smart_status": {{"passed": {passed}, "scsi": {{"asc": 93, "ascq": 16,
    "ie_string": "FAILURE PREDICTION THRESHOLD EXCEEDED"}}}},
  "temperature": {{"current": {temperature}}}, "scsi_temperature": {{"drive_trip": 60}},
  "power_on_time": {{"hours": 5675, "minutes": 39}},
  "scsi_grown_defect_list": 12, "scsi_pending_defects": {{"count": 0}},
  "scsi_error_counter_log": {{
    "read": {{"total_errors_corrected": 1410362924, "gigabytes_processed": "386.568",
      "total_uncorrected_errors": 3}},
    "write": {{"total_errors_corrected": 0, "gigabytes_processed": "806.827",
      "total_uncorrected_errors": 1}}}}
}}"#
    )
}

/// An NVMe drive with this critical warning.
fn nvme(critical: u8) -> String {
    let passed = critical == 0;
    format!(
        r#"{{
  "smartctl": {{"version": [7, 3], "exit_status": 0}},
  "device": {{"name": "/dev/nvme0n1", "type": "nvme", "protocol": "NVMe"}},
  "model_name": "Samsung SSD 970 EVO 500GB", "serial_number": "S466000000000",
  "smart_status": {{"passed": {passed}, "nvme": {{"value": {critical}}}}},
  "nvme_smart_health_information_log": {{"critical_warning": {critical}, "temperature": 35,
    "available_spare": 99, "available_spare_threshold": 10, "percentage_used": 3,
    "data_units_read": 17176794, "media_errors": 7, "power_on_hours": 12798,
    "temperature_sensors": [35, 39]}},
  "temperature": {{"current": 35}}, "power_on_time": {{"hours": 12798}}
}}"#
    )
}

/// What smartctl says if it did not get to the drive.
fn message(text: &str) -> String {
    format!(
        r#"{{"smartctl": {{"version": [7, 3], "exit_status": 2,
  "messages": [{{"string": "{text}", "severity": "error"}}]}}}}"#
    )
}

#[test]
fn a_sata_disk_is_read() {
    let reading = read(0, &disk((8, 0, 0), ""));
    let expected = Reading {
        model: Some("WDC WD20EFRX-68EUZN0".to_owned()),
        serial: Some("WD-WCC4M0000000".to_owned()),
        passed: Some(true),
        temperature_celsius: Some(30),
        power_on_hours: Some(49432),
        reallocated_sectors: Some(8),
        pending_sectors: Some(0),
        uncorrectable_sectors: Some(0),
        ..Reading::default()
    };
    assert_eq!(reading, expected);
    assert_eq!(kinds(&reading), []);
}

#[test]
fn a_sata_disk_warns_by_sectors_and_by_thresholds() {
    use WarningKind::{Attribute, Failing, Pending, Uncorrectable};
    assert_eq!(kinds(&read(0, &disk((0, 1, 0), ""))), [Pending]);
    assert_eq!(kinds(&read(64, &disk((0, 0, 2), ""))), [Uncorrectable]);
    // Bit 4: an attribute is at its threshold; bit 5: it was.
    assert_eq!(kinds(&read(16, &disk((9, 0, 0), "now"))), [Attribute(5)]);
    assert_eq!(kinds(&read(32, &disk((9, 0, 0), "past"))), []);
    // Bit 3: the drive fails, whatever else was read.
    assert_eq!(kinds(&read(8, &disk((0, 0, 0), ""))), [Failing]);
    // Above the lower four bytes some makers count something else.
    let packed = read(0, &disk((0, 5 << 32, 0), ""));
    assert_eq!(packed.pending_sectors, Some(0));
}

/// By smartmontools' table of drives: the MX500 flips the first at random, some count recoveries or all
/// that they ever had.
#[test]
fn what_has_another_name_is_no_count_of_sectors() {
    let sick = disk((0, 1, 2), "");
    for (name, other) in [
        ("Current_Pending_Sector", "Bogus_Current_Pend_Sect"),
        ("Current_Pending_Sector", "Total_Pending_Sectors"),
        ("Offline_Uncorrectable", "RAID_Recovery_Cnt"),
        ("Offline_Uncorrectable", "Total_Offl_Uncorrectabl"),
    ] {
        let found = kinds(&read(0, &sick.replace(name, other)));
        assert_eq!(found.len(), 1, "{other}: {found:?}");
    }
}

#[test]
fn texts_of_drives_are_printable_and_short() {
    let hostile = format!("\\u001b[2J{}", "W".repeat(100));
    let found = read(
        0,
        &disk((0, 0, 0), "").replace("WDC WD20EFRX-68EUZN0", &hostile),
    );
    let model = found.model.unwrap();
    assert!(model.starts_with("[2JWW") && model.len() == 64, "{model:?}");
}

#[test]
fn a_sas_disk_is_read() {
    let reading = read(0, &sas(true, 31));
    let expected = Reading {
        model: Some("SEAGATE ST1200MM0088".to_owned()),
        serial: Some("Z4000000".to_owned()),
        passed: Some(true),
        temperature_celsius: Some(31),
        trip_celsius: Some(60),
        power_on_hours: Some(5675),
        reallocated_sectors: Some(12),
        pending_sectors: Some(0),
        media_errors: Some(4),
        ..Reading::default()
    };
    assert_eq!(reading, expected);
    assert_eq!(kinds(&reading), []);
    let failing = [WarningKind::Failing, WarningKind::Hot];
    assert_eq!(kinds(&read(8, &sas(false, 61))), failing);
    assert_eq!(read(0, &sas(true, 0)).temperature_celsius, None);
}

#[test]
fn an_nvme_drive_is_read() {
    let reading = read(0, &nvme(0));
    let expected = Reading {
        model: Some("Samsung SSD 970 EVO 500GB".to_owned()),
        serial: Some("S466000000000".to_owned()),
        passed: Some(true),
        temperature_celsius: Some(35),
        power_on_hours: Some(12798),
        media_errors: Some(7),
        critical_warning: Some(0),
        spare_percent: Some(99),
        spare_threshold_percent: Some(10),
        used_percent: Some(3),
        ..Reading::default()
    };
    assert_eq!(reading, expected);
    assert_eq!(kinds(&reading), []);
    assert_eq!(kinds(&read(8, &nvme(4))), [WarningKind::Unreliable]);
}

#[test]
fn a_part_of_the_report_is_enough() {
    // Bit 2: a command failed, and the others did not.
    let reading = read(4, r#"{"smart_status": {"passed": true}}"#);
    assert_eq!(reading.passed, Some(true));
    // Fields are not always as expected.
    let odd = r#"{"smart_status": {"passed": "yes"}, "temperature": {"current": 40},
        "ata_smart_attributes": {"table": [7, {"id": "x"}, {"id": 5, "raw": {"value": -1}}]},
        "nvme_smart_health_information_log": {"critical_warning": 300}}"#;
    let expected = Reading {
        temperature_celsius: Some(40),
        ..Reading::default()
    };
    assert_eq!(read(0, odd), expected);
}

#[test]
fn what_is_no_report_is_told() {
    let whole = nvme(0);
    let cut = &whole[..whole.len() / 2];
    for (status, printed) in [
        (0, cut),
        (0, ""),
        (0, "smartctl: oops"),
        (8, "{"),
        (2, "no"),
    ] {
        let why = refused(status, printed);
        assert!(why.contains("whole JSON"), "{printed}: {why}");
    }
    let printed = whole.into_bytes();
    let killed = understood(&Answer {
        printed,
        status: None,
    });
    assert!(killed.unwrap_err().contains("signal"));
}

#[test]
fn a_drive_that_was_not_asked_says_why() {
    let asleep = refused(255, &message("Device is in STANDBY mode, exit(255)"));
    assert!(asleep.contains("sleeps"), "{asleep}");
    let gone = "Smartctl open device: /dev/sdb failed: No such device";
    let why = refused(2, &message(gone));
    assert!(why.contains("exit status 2") && why.contains(gone), "{why}");
    for denied in ["Permission denied", "Operation not permitted"] {
        let text = format!("Smartctl open device: /dev/sdb failed: {denied}");
        let why = refused(2, &message(&text));
        assert!(why.contains("only root may"), "{why}");
    }
    let unknown = refused(1, &message("/dev/vda: Unable to detect device type"));
    assert!(unknown.contains("/dev/vda: Unable"), "{unknown}");
    let silent = r#"{"model_name": "QEMU QEMU HARDDISK", "serial_number": "7"}"#;
    let why = refused(4, silent);
    assert!(why.contains("virtual disks"), "{why}");
    let long = message(&"x".repeat(4000));
    assert!(refused(2, &long).len() < 500);
}

/// Of a guest of QEMU 7.2 with Debian's smartctl 7.3, run as Ashlar runs it; made by hand, the local time
/// taken out. Before the second of the NVMe drive, QMP's `qom-set` had its `smart_critical_warning` be 4.
mod qemu {
    pub(super) const ATA: &str = include_str!("qemu-ata.json");
    pub(super) const NVME: &str = include_str!("qemu-nvme.json");
    pub(super) const NVME_UNRELIABLE: &str = include_str!("qemu-nvme-unreliable.json");
    pub(super) const SCSI: &str = include_str!("qemu-scsi.json");
    pub(super) const VIRTIO: &str = include_str!("qemu-virtio.json");
}

#[test]
fn drives_of_qemu_are_read() {
    let ata = read(0, qemu::ATA);
    let expected = Reading {
        model: Some("QEMU HARDDISK".to_owned()),
        serial: Some("AT-8".to_owned()),
        passed: Some(true),
        temperature_celsius: Some(31),
        power_on_hours: Some(1),
        reallocated_sectors: Some(0),
        ..Reading::default()
    };
    assert_eq!(ata, expected);
    let nvme = read(0, qemu::NVME);
    assert_eq!(nvme.serial.as_deref(), Some("NV-7"));
    assert_eq!(
        (nvme.passed, nvme.temperature_celsius),
        (Some(true), Some(50))
    );
    assert_eq!(kinds(&nvme), []);
    let unreliable = read(8, qemu::NVME_UNRELIABLE);
    assert_eq!(kinds(&unreliable), [WarningKind::Unreliable]);
    assert!(refused(0, qemu::SCSI).contains("virtual disks"));
    assert!(refused(1, qemu::VIRTIO).contains("Unable to detect device type"));
}
