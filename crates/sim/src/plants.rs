//! Planted bugs: the proof that the checker would notice.
//!
//! Each bug of [`engine::rare::BUGS`] has a window of seeds in `plants.txt`: the first
//! is one that found it when the list was made. A change of the engine changes what
//! seeds do, so the window goes on behind it, far enough that the bug is found again.

use crate::seeds;
use std::collections::BTreeMap;
use std::ops::Range;

/// Of a bug that the list does not have.
const UNLISTED: Range<u64> = 1..601;

/// One bug a line: first seed, how many, name; `#` before a comment.
const WINDOWS: &str = include_str!("../plants.txt");

/// The seeds that the bug has to be found by.
///
/// # Panics
/// As [`known`].
pub fn window_of(bug: &str) -> Range<u64> {
    known().get(bug).cloned().unwrap_or(UNLISTED)
}

/// The seeds that the list gives for each bug.
///
/// # Panics
/// When the list, which is compiled in, has a line that is none.
pub fn known() -> BTreeMap<&'static str, Range<u64>> {
    let lines = WINDOWS.lines().map(|line| line.split('#').next());
    let lines = lines.map(|line| line.unwrap_or_default().trim());
    lines
        .filter(|line| !line.is_empty())
        .map(|line| match window(line) {
            Some(window) => window,
            None => panic!("plants.txt: {line:?} is not <first seed> <seeds> <bug>"),
        })
        .collect()
}

fn window(line: &str) -> Option<(&str, Range<u64>)> {
    let (first, rest) = line.split_once(char::is_whitespace)?;
    let (seeds, bug) = rest.trim_start().split_once(char::is_whitespace)?;
    let (first, seeds): (u64, u64) = (first.parse().ok()?, seeds.parse().ok()?);
    Some((bug.trim(), first..first + seeds))
}

/// The first of `seeds` that notices `bug` and is clean without it, and what was wrong.
///
/// # Errors
/// Why that is not so.
pub fn prove(bug: &str, seeds: Range<u64>) -> Result<(u64, String), String> {
    let (first, end) = (seeds.start, seeds.end);
    let failure = |seed, bug| match seeds::once_with(seed, None, None, bug) {
        Ok(verdict) => verdict.failure,
        Err(panic) => Some(panic),
    };
    let mut found = seeds
        .into_iter()
        .filter_map(|seed| failure(seed, Some(bug)).map(|noticed| (seed, noticed)));
    // A seed that fails also without the bug has not found it.
    let proof = found.find(|(seed, _)| failure(*seed, None).is_none());
    proof.ok_or_else(|| format!("not by any of the seeds {first} to {}", end - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_bugs_that_there_are() {
        for bug in known().keys() {
            assert!(engine::rare::BUGS.contains(bug), "{bug}");
        }
        assert_eq!(window_of("not in the list"), UNLISTED);
    }

    #[test]
    fn a_bug_that_is_none_is_not_found() {
        let why = prove("nothing at all", 1..3).unwrap_err();
        assert!(why.contains("1 to 2"), "{why}");
    }

    #[test]
    fn lines_that_are_no_windows_are_refused() {
        assert_eq!(window("3 20 a bug"), Some(("a bug", 3..23)));
        for line in ["3", "3 20", "x 20 a bug", "3 y a bug"] {
            assert_eq!(window(line), None, "{line}");
        }
    }
}
