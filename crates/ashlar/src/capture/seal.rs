//! The seal of a capture: its version, a digest over all of its text, and its last line. It tells
//! captures of other versions, edited ones and incomplete ones from those that the array made.
//!
//! The digest is over the text with zeroes in the place of the digest.

use crate::failure::Failure;
use sha2::{Digest, Sha256};
use site::CAPTURE_VERSION;
use std::path::Path;

/// What the line of the digest begins with.
const CONTENT: &str = "content = \"sha256:";
const DIGITS: usize = 64;

/// The line that a capture's head begins with.
const HEADING: &str = "[capture]";

/// The last line: a file without it is not complete.
pub const END: &str = "# End of the capture.\n";

/// The line of a digest that is not known yet.
pub fn blank() -> String {
    format!("{CONTENT}{}\"\n", "0".repeat(DIGITS))
}

/// `text`, which has a blank line for it, with its digest.
pub fn sealed(text: &str) -> String {
    let digest = digest(text);
    text.replacen(&blank(), &format!("{CONTENT}{digest}\"\n"), 1)
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses a capture of another version, and, unless it may be `edited`, one that is not as it was
/// written. Other site files pass; so does what is no TOML, for its reader says more of it.
///
/// # Errors
/// `Wrong`, with the line and the key.
pub fn check(file: &Path, edited: bool) -> Result<(), Failure> {
    let Ok(text) = std::fs::read_to_string(file) else {
        return Ok(());
    };
    let told = |(line, what): (usize, String)| {
        Failure::Wrong(format!("{}:{line}: {what}", file.display()))
    };
    check_text(&text, edited).map_err(told)
}

/// The same of a text; errors have the line.
fn check_text(text: &str, edited: bool) -> Result<(), (usize, String)> {
    let Ok(document) = text.parse::<toml::Table>() else {
        return check_end(text);
    };
    let Some(head) = document.get("capture").and_then(toml::Value::as_table) else {
        return Ok(());
    };
    let version = head.get("version").and_then(toml::Value::as_integer);
    if let Some(version) = version.filter(|version| *version != i64::from(CAPTURE_VERSION)) {
        let what = format!(
            "capture.version: version {version}; this Ashlar reads version {CAPTURE_VERSION}. \
             Capture the array again, or rehearse the file with the Ashlar that made it"
        );
        return Err((line_of(text, "version"), what));
    }
    if edited || is_whole(text) {
        return Ok(());
    }
    let what = match text.ends_with(END) {
        true => "the file was edited after the capture",
        false => "the file is not complete, its last line is missing",
    };
    let what = format!(
        "capture.content: {what}: its digest is another one. Use the file as it was made, or say \
         --edited if the change is meant"
    );
    Err((line_of(text, CONTENT), what))
}

/// Says of a capture that is no TOML that it ends too early, if it does.
fn check_end(text: &str) -> Result<(), (usize, String)> {
    let is_capture = text.lines().any(|line| line == HEADING);
    if !is_capture || text.ends_with(END) {
        return Ok(());
    }
    let what =
        "capture: the file is not complete, it ends in the middle of a table. Use the whole file";
    Err((text.lines().count(), what.to_owned()))
}

/// Whether the digest of a text is that of its content.
fn is_whole(text: &str) -> bool {
    let Some(at) = text.find(CONTENT).map(|at| at + CONTENT.len()) else {
        return false;
    };
    let Some(said) = text.get(at..at + DIGITS) else {
        return false;
    };
    let (before, after) = (&text[..at], &text[at + DIGITS..]);
    let blank = format!("{before}{}{after}", "0".repeat(DIGITS));
    digest(&blank) == said && text.ends_with(END)
}

/// The first line that begins like this below the head of the capture; the head without one.
fn line_of(text: &str, key: &str) -> usize {
    let lines = || text.lines().map(str::trim_start);
    let head = lines().position(|line| line.starts_with(HEADING));
    let head = head.unwrap_or_default();
    let place = lines().skip(head).position(|line| line.starts_with(key));
    head + place.unwrap_or_default() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> String {
        let text = format!("[capture]\nversion = 1\n{}x = 1\n{END}", blank());
        sealed(&text)
    }

    fn refused(text: &str) -> (usize, String) {
        check_text(text, false).unwrap_err()
    }

    #[test]
    fn a_capture_passes_as_it_was_made() {
        assert_eq!(check_text(&made(), false), Ok(()));
        assert_eq!(check_text("site = { name = \"x\" }", false), Ok(()));
        assert_eq!(check_text("no TOML", false), Ok(()));
    }

    #[test]
    fn every_change_is_told_and_may_be_meant() {
        let made = made();
        for at in 0..made.len() {
            let mut bytes = made.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            // What is no capture any more, or no TOML, is another reader's to tell.
            let is_capture = changed.parse::<toml::Table>();
            if is_capture.is_ok_and(|table| table.contains_key("capture")) {
                refused(&changed);
            }
        }
        let edited = made.replace("x = 1", "x = 2");
        let (line, what) = refused(&edited);
        assert!(line == 3 && what.contains("edited after"), "{line} {what}");
        assert_eq!(check_text(&edited, true), Ok(()));
    }

    #[test]
    fn what_is_missing_is_told() {
        let made = made();
        let (line, what) = refused(made.strip_suffix(END).unwrap());
        assert!(line == 3 && what.contains("last line is missing"), "{what}");
        let without: String = made
            .lines()
            .filter(|line| !line.starts_with("content"))
            .collect();
        assert!(check_text(&without, false).is_ok(), "no TOML: {without}");
        let (line, what) = refused(&made[..made.len() / 2]);
        assert!(line == 3 && what.contains("in the middle"), "{line} {what}");
        let without = "[capture]\nversion = 1\n";
        assert_eq!(refused(without).0, 1);
    }

    #[test]
    fn another_version_is_refused_whatever_else_is_so() {
        let other = made().replace("version = 1", "version = 7");
        for edited in [false, true] {
            let (line, what) = check_text(&other, edited).unwrap_err();
            assert!(line == 2 && what.contains("version 7"), "{line} {what}");
        }
    }
}
