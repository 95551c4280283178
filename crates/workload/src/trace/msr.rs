//! Lines of the traces of MSR Cambridge, and of CSV like theirs.
//!
//! `128166372003061629,hm,0,Read,383496192,32768,20213`: when it was issued (in Windows
//! file time, units of 100 ns), host, disk, type, offset and size in bytes, and the time
//! that it took, which nobody needs here. The names of the columns may stand in the first
//! line.

use super::reader::Record;
use crate::generator::Kind;

/// Nanoseconds of a unit of Windows file time.
const TICK_NS: u64 = 100;

/// The record of a line, or what is wrong with it.
pub(super) fn record(line: &str, number: u64) -> Result<Option<Record<'_>>, String> {
    if number == 1 && line.to_ascii_lowercase().starts_with("timestamp,") {
        return Ok(None);
    }
    let mut fields = [""; 7];
    let mut count = 0;
    for field in line.split(',') {
        if let Some(space) = fields.get_mut(count) {
            *space = field.trim();
        }
        count += 1;
    }
    if count != fields.len() {
        return Err(format!(
            "{count} fields; expected are 7: time, host, disk, type, offset, size, response time"
        ));
    }
    let [time, _, disk, kind, offset, size, _] = fields;
    let number = |what: &str, text: &str| {
        text.parse::<u64>()
            .map_err(|_| format!("the {what} {text:?} is not a number"))
    };
    let kind = match kind {
        kind if kind.eq_ignore_ascii_case("read") => Kind::Read,
        kind if kind.eq_ignore_ascii_case("write") => Kind::Write,
        other => return Err(format!("the type {other:?} is neither Read nor Write")),
    };
    number("disk", disk)?;
    let at_ns = number("time", time)?;
    Ok(Some(Record {
        at_ns: u128::from(at_ns) * u128::from(TICK_NS),
        disk: name_of_disk(line),
        kind,
        offset_bytes: number("offset", offset)?,
        bytes: number("size", size)?,
    }))
}

/// The part of a line with seven fields from the host's name to the disk's number.
fn name_of_disk(line: &str) -> &str {
    let mut commas = line.match_indices(',').map(|(place, _)| place);
    match (commas.next(), commas.nth(1)) {
        (Some(before), Some(behind)) => &line[before + 1..behind],
        _ => line,
    }
}
