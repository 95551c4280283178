//! Lines of the default output of `blkparse` (`blkparse(1)`, "DEFAULT OUTPUT").
//!
//! `8,0 3 1 0.000000000 697 Q WS 223490 + 8 [kjournald]`: device, CPU, sequence number,
//! seconds, process, action, what is asked for (RWBS), and of a request to read or write
//! its first sector and how many, of 512 bytes. Only action Q counts. Requests without
//! data (flushes), discards, and commands that go by in SCSI's own words are not
//! replayed. The statistics behind the events end the trace.

use super::SECTOR_BYTES;
use super::reader::{Line, Record};
use crate::generator::Kind;

/// What a line of the statistics begins with.
const STATISTICS: [&str; 4] = ["CPU", "Total", "Throughput", "Events"];

/// Nanoseconds of a second.
const SECOND_NS: u128 = 1_000_000_000;

/// The record of a line, or what is wrong with it.
pub(super) fn record(line: &str) -> Result<Line<'_>, String> {
    if line.starts_with("Input file ") {
        return Ok(Line::Nothing);
    }
    if STATISTICS.iter().any(|word| line.starts_with(word)) {
        return Ok(Line::End);
    }
    let mut words = line.split_ascii_whitespace();
    let mut word = |what: &str| words.next().ok_or_else(|| format!("it has no {what}"));
    let device = word("device")?;
    let is_device = device
        .split_once(',')
        .is_some_and(|(major, minor)| major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok());
    if !is_device {
        return Err(format!("{device:?} is not a device such as 8,0"));
    }
    let (_cpu, _sequence) = (word("CPU")?, word("sequence number")?);
    let at_ns = nanoseconds(word("time")?)?;
    let (_process, action) = (word("process")?, word("action")?);
    if action != "Q" {
        return Ok(Line::Nothing);
    }
    let Some(kind) = kind(word("RWBS")?) else {
        return Ok(Line::Nothing);
    };
    let sector = word("sector")?;
    // "FWS [name]" is a flush, "36 (12 00 …) [name]" a command.
    if words.next() != Some("+") {
        return Ok(Line::Nothing);
    }
    let number = |what: &str, text: &str| {
        let number = text.parse::<u64>().ok();
        let bytes = number.and_then(|number| number.checked_mul(SECTOR_BYTES));
        bytes.ok_or_else(|| format!("the {what} {text:?} is not a number of sectors"))
    };
    let count = words.next().unwrap_or("");
    let (offset_bytes, bytes) = (number("place", sector)?, number("size", count)?);
    if bytes == 0 {
        return Ok(Line::Nothing);
    }
    Ok(Line::Record(Record {
        at_ns,
        disk: device,
        kind,
        offset_bytes,
        bytes,
    }))
}

/// Read or write; `None` for what moves no data. An F in front is a flush before the
/// write.
fn kind(rwbs: &str) -> Option<Kind> {
    match rwbs.trim_start_matches('F').chars().next() {
        Some('R') => Some(Kind::Read),
        Some('W') => Some(Kind::Write),
        _ => None,
    }
}

/// Of `seconds.nanoseconds`, always with nine digits.
fn nanoseconds(text: &str) -> Result<u128, String> {
    let wrong = || format!("the time {text:?} is not seconds with nine digits behind the point");
    let (seconds, fraction) = text.split_once('.').ok_or_else(wrong)?;
    let digits = fraction.len() == 9 && fraction.bytes().all(|digit| digit.is_ascii_digit());
    let seconds: u64 = seconds.parse().map_err(|_| wrong())?;
    let fraction: u64 = fraction.parse().map_err(|_| wrong())?;
    if digits {
        Ok(u128::from(seconds) * SECOND_NS + u128::from(fraction))
    } else {
        Err(wrong())
    }
}
