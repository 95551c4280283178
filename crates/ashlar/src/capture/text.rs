//! The text of a capture: a site file that can be rehearsed, with what was measured.

use super::{Taken, hardware, loads, seal};
use crate::failure::Failure;
use std::fmt::Display;

/// What the file is, for who opens it.
const HEAD: &str = "\
# A capture of a running array: what it is made of, the load of its volumes, and what was measured.
# It has no content of volumes, no secrets and no initiators; it has the names of the site, its pools,
# drives and volumes. `ashlar rehearse FILE` runs it.
# Change a key with --set, or edit the file and say --edited.
";

/// The shortest and the longest window of its rehearsal, in seconds.
const WINDOW_S: (u64, u64) = (10, 300);

/// All of the file, with a blank line for its digest.
///
/// # Errors
/// Nothing was read or written, or the array says what can't be read.
pub(super) fn text(taken: &Taken) -> Result<String, Failure> {
    let capture = &taken.capture;
    let mut text = format!("{HEAD}\n[capture]\n");
    text += &entry("version", site::CAPTURE_VERSION);
    text += &seal::blank();
    text += &entry("ashlar", quoted(&taken.status.version));
    text += &entry("taken_unix_s", capture.since_unix_s);
    text += &entry("duration", quoted(&format!("{} s", capture.duration_s)));
    text += "\n[site]\n";
    text += &entry("name", quoted(&taken.status.site));
    let window = capture.duration_s.clamp(WINDOW_S.0, WINDOW_S.1);
    text += "\n[run]\nwarmup = \"10 s\"\n";
    text += &entry("measure", quoted(&format!("{window} s")));
    text += &hardware::tables(taken)?;
    text += &loads::tables(taken)?;
    Ok(format!("{text}\n{}", seal::END))
}

/// A line of a table.
pub fn entry(key: &str, value: impl Display) -> String {
    format!("{key} = {value}\n")
}

/// A text as TOML.
pub fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A size as TOML, exactly.
pub fn size(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let whole = units.iter().find(|(_, unit)| bytes.is_multiple_of(*unit));
    match whole.filter(|_| bytes > 0) {
        Some((name, unit)) => quoted(&format!("{} {name}", bytes / unit)),
        None => quoted(&format!("{bytes} B")),
    }
}
