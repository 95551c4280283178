//! What smartctl says of a drive, as the array takes it.
//!
//! smartctl(8) names the bits of its exit status and its JSON, of version 1.0. Fields that are not there,
//! or not as expected, count as not said.

use super::run::Answer;
use ::array::drive_health::{FailingAttribute, Reading};
use serde_json::Value;

/// The command line can't be understood, or the device is unknown; the device can't be opened, or does
/// not say what it is.
const NOT_ASKED: i32 = 1 | 2;
/// The drive's verdict is that it fails.
const FAILING: i32 = 8;
/// That which smartctl is told to end with if the disk sleeps.
const ASLEEP: i32 = 255;

/// ATA attributes by number. Makers may count as they like; these are as smartd and the makers of disks
/// have them.
const REALLOCATED: u64 = 5;
const PENDING: u64 = 197;
const OFFLINE_UNCORRECTABLE: u64 = 198;

/// The names under which 197 and 198 count sectors that can't be read. Under others, drives count
/// something else there, or all that they ever had: smartd takes those names from smartmontools' table
/// of drives.
const PENDING_NAMES: &[&str] = &["Current_Pending_Sector"];
const OFFLINE_NAMES: &[&str] = &["Offline_Uncorrectable", "Offline_Scan_UNC_SectCt"];

/// Of what smartctl says, this much is told.
const SAID_MAX: usize = 300;
const NAME_MAX: usize = 64;

/// What the drive says of itself.
///
/// # Errors
/// Why it says nothing, for people.
pub(super) fn understood(answer: &Answer) -> Result<Reading, String> {
    let status = answer.status.ok_or("smartctl was killed by a signal")?;
    if status == ASLEEP {
        return Err("it sleeps, and Ashlar does not wake it".to_owned());
    }
    let report: Value = serde_json::from_slice(&answer.printed)
        .map_err(|error| format!("smartctl has not printed whole JSON: {error}"))?;
    if status & NOT_ASKED != 0 {
        return Err(not_asked(status, &report));
    }
    let mut reading = reading(&report);
    if status & FAILING != 0 {
        reading.passed = Some(false);
    }
    match reading.says_anything() {
        true => Ok(reading),
        false => Err(format!(
            "it says nothing of its health, as most virtual disks{}",
            said(&report)
        )),
    }
}

fn not_asked(status: i32, report: &Value) -> String {
    let said = said(report);
    if said.contains("Permission denied") || said.contains("Operation not permitted") {
        return format!("Ashlar may not ask it: only root may{said}");
    }
    format!("smartctl can't ask it (exit status {status}){said}")
}

/// What smartctl says beside the report, in brackets; nothing where it says nothing.
fn said(report: &Value) -> String {
    let messages = report.pointer("/smartctl/messages");
    let messages = messages.and_then(Value::as_array).into_iter().flatten();
    let lines = messages.filter_map(|one| one["string"].as_str());
    let said = lines.collect::<Vec<_>>().join("; ");
    match printable(&said, SAID_MAX) {
        said if said.is_empty() => said,
        said => format!(" ({said})"),
    }
}

/// The printable part of a text of a drive, so much at most.
fn printable(text: &str, letters_max: usize) -> String {
    let letters = text.chars().filter(|letter| !letter.is_control());
    letters.take(letters_max).collect()
}

fn reading(report: &Value) -> Reading {
    let number = |place: &str| report.pointer(place).and_then(Value::as_u64);
    let degrees = |place: &str| report.pointer(place).and_then(Value::as_i64);
    let text = |key: &str| Some(printable(report[key].as_str()?, NAME_MAX));
    let nvme = |key: &str| number(&format!("/nvme_smart_health_information_log/{key}"));
    let critical = nvme("critical_warning");
    let passed = report.pointer("/smart_status/passed");
    Reading {
        model: text("model_name").or_else(|| text("scsi_model_name")),
        serial: text("serial_number"),
        passed: passed.and_then(Value::as_bool),
        failing_attributes: failing_attributes(report),
        // SCSI drives that do not know it say 0.
        temperature_celsius: degrees("/temperature/current").filter(|now| *now != 0),
        // Its place depends on the version.
        trip_celsius: degrees("/scsi_temperature/drive_trip")
            .or_else(|| degrees("/temperature/drive_trip"))
            .filter(|trip| *trip != 0),
        power_on_hours: number("/power_on_time/hours"),
        reallocated_sectors: attribute(report, REALLOCATED)
            .or_else(|| number("/scsi_grown_defect_list")),
        pending_sectors: named_attribute(report, PENDING, PENDING_NAMES)
            .or_else(|| number("/scsi_pending_defects/count")),
        uncorrectable_sectors: named_attribute(report, OFFLINE_UNCORRECTABLE, OFFLINE_NAMES),
        media_errors: nvme("media_errors").or_else(|| uncorrected(report)),
        critical_warning: critical.and_then(|bits| u8::try_from(bits).ok()),
        spare_percent: nvme("available_spare"),
        spare_threshold_percent: nvme("available_spare_threshold"),
        used_percent: nvme("percentage_used"),
    }
}

fn attributes(report: &Value) -> impl Iterator<Item = &Value> {
    let table = report.pointer("/ata_smart_attributes/table");
    table.and_then(Value::as_array).into_iter().flatten()
}

/// The raw value of an ATA attribute. Its upper bytes may have something else, so the lower four count.
fn attribute(report: &Value, id: u64) -> Option<u64> {
    raw_of(attributes(report).find(|one| one["id"].as_u64() == Some(id))?)
}

/// The same, where the attribute has one of these names.
fn named_attribute(report: &Value, id: u64, names: &[&str]) -> Option<u64> {
    let is_it = |one: &&Value| {
        let name = one["name"].as_str();
        one["id"].as_u64() == Some(id) && name.is_some_and(|name| names.contains(&name))
    };
    raw_of(attributes(report).find(is_it)?)
}

fn raw_of(found: &Value) -> Option<u64> {
    let raw = found.pointer("/raw/value").and_then(Value::as_u64)?;
    Some(raw & u64::from(u32::MAX))
}

/// The attributes that predict failure and are at their threshold now.
fn failing_attributes(report: &Value) -> Vec<FailingAttribute> {
    let is_failing = |one: &&Value| {
        let predicts = one.pointer("/flags/prefailure").and_then(Value::as_bool);
        one["when_failed"].as_str() == Some("now") && predicts == Some(true)
    };
    let failing = attributes(report).filter(is_failing);
    let named = failing.filter_map(|one| {
        let id = u8::try_from(one["id"].as_u64()?).ok()?;
        let name = printable(one["name"].as_str().unwrap_or("unnamed"), NAME_MAX);
        Some(FailingAttribute { id, name })
    });
    named.collect()
}

/// Errors that a SCSI drive could not correct, of all kinds that it counts.
fn uncorrected(report: &Value) -> Option<u64> {
    let log = report.get("scsi_error_counter_log")?;
    let kinds = ["read", "write", "verify"].into_iter();
    let counts = kinds.filter_map(|kind| log[kind]["total_uncorrected_errors"].as_u64());
    counts.reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests;
