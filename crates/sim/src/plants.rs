//! Planted bugs, which prove that the checker finds bugs.
//!
//! Each bug of [`engine::rare::BUGS`] has a window of seeds in `plants.txt`: the first
//! is one that found it when the list was made. A change of the engine changes what
//! seeds do, so the window goes on behind it, far enough that the bug is found again.

use crate::config::{self, Theme};
use crate::seed::Seed;
use crate::seeds;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Of a bug that the list does not have.
const UNLISTED: Range<u64> = 1..601;

/// One bug a line: first seed, how many, themes in brackets if it has some, name; `#`
/// before a comment.
const WINDOWS: &str = include_str!("../plants.txt");

/// What a bug is looked for in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Seeds in which at least one run has to find the bug.
    pub seeds: Range<u64>,
    /// What they draw instead of their own themes; `Some` of none is no theme at all.
    pub themes: Option<BTreeSet<Theme>>,
}

impl Window {
    /// The option that replays a seed of it, with a space before it; nothing for seeds that
    /// draw their own themes.
    pub fn themes_to_replay(&self) -> String {
        let Some(themes) = &self.themes else {
            return String::new();
        };
        let names = themes.iter().map(|theme| format!("{theme:?}"));
        let names = names.collect::<Vec<_>>().join(",").to_lowercase();
        format!(" --themes '{names}'")
    }
}

/// The seeds that the bug has to be found by.
///
/// # Panics
/// As [`known`].
pub fn window_of(bug: &str) -> Window {
    let unlisted = || Window {
        seeds: UNLISTED,
        themes: None,
    };
    known().remove(bug).unwrap_or_else(unlisted)
}

/// The seeds that the list gives for each bug.
///
/// # Panics
/// When the list, which is compiled in, has a line that is none.
pub fn known() -> BTreeMap<&'static str, Window> {
    let lines = WINDOWS.lines().map(|line| line.split('#').next());
    let lines = lines.map(|line| line.unwrap_or_default().trim());
    lines
        .filter(|line| !line.is_empty())
        .map(|line| match window(line) {
            Some(window) => window,
            None => panic!("plants.txt: {line:?} is not <first seed> <seeds> [<themes>] <bug>"),
        })
        .collect()
}

fn window(line: &str) -> Option<(&str, Window)> {
    let (first, rest) = line.split_once(char::is_whitespace)?;
    let (seeds, rest) = rest.trim_start().split_once(char::is_whitespace)?;
    let (first, seeds): (u64, u64) = (first.parse().ok()?, seeds.parse().ok()?);
    let rest = rest.trim();
    let (themes, bug) = match rest.strip_prefix('[') {
        None => (None, rest),
        Some(rest) => {
            let (names, bug) = rest.split_once(']')?;
            (Some(config::named(names.split(',')).ok()?), bug.trim())
        }
    };
    let seeds = first..first + seeds;
    Some((bug, Window { seeds, themes }))
}

/// The first seed of `window` that notices `bug` and is clean without it, and what was wrong.
///
/// # Errors
/// Why that is not so.
pub fn prove(bug: &str, window: &Window) -> Result<(u64, String), String> {
    let Range { start, end } = window.seeds;
    let failure = |seed, bug| {
        let seed = Seed::of(seed).with_themes(window.themes.as_ref());
        match seeds::once_with(&seed, None, None, bug) {
            Ok(verdict) => verdict.failure,
            Err(panic) => Some(panic),
        }
    };
    let mut found =
        (start..end).filter_map(|seed| failure(seed, Some(bug)).map(|noticed| (seed, noticed)));
    // A seed that fails also without the bug has not found it.
    let proof = found.find(|(seed, _)| failure(*seed, None).is_none());
    let themes = window.themes_to_replay();
    proof.ok_or_else(|| format!("not by any of the seeds {start} to {}{themes}", end - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(seeds: Range<u64>, themes: Option<&[Theme]>) -> Window {
        let themes = themes.map(|themes| themes.iter().copied().collect());
        Window { seeds, themes }
    }

    #[test]
    fn the_list_names_bugs_that_there_are() {
        for bug in known().keys() {
            assert!(engine::rare::BUGS.contains(bug), "{bug}");
        }
        assert_eq!(window_of("not in the list"), of(UNLISTED, None));
    }

    #[test]
    fn a_bug_that_is_none_is_not_found() {
        let why = prove("nothing at all", &of(1..3, Some(&[Theme::Hangs]))).unwrap_err();
        assert!(why.contains("1 to 2 --themes 'hangs'"), "{why}");
    }

    #[test]
    fn lines_are_windows() {
        let read = |line| window(line).unwrap();
        assert_eq!(read("3 20 a bug"), ("a bug", of(3..23, None)));
        assert_eq!(read("3  20 [] a bug"), ("a bug", of(3..23, Some(&[]))));
        let two = of(3..23, Some(&[Theme::Errors, Theme::Closes]));
        assert_eq!(read("3 20 [errors,closes]  a bug"), ("a bug", two));
    }

    #[test]
    fn lines_that_are_no_windows_are_refused() {
        for line in [
            "3",
            "3 20",
            "x 20 a bug",
            "3 y a bug",
            "3 20 [rust] a bug",
            "3 20 [errors a bug",
        ] {
            assert_eq!(window(line), None, "{line}");
        }
    }
}
