//! Runs many seeds, each twice, and reports failures with the command that replays them.

use crate::config::{Config, Theme, themes};
use crate::scenario::{Listener, Scenario, Verdict};
use crate::seed::Seed;
use crate::{drives, initiators, moves, operations, paths, pools, sites};
use base::Prng;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds that once found a bug, one per line, `#` before a comment.
const REGRESSIONS: &str = include_str!("../regressions.txt");

/// The seeds of the regressions list.
///
/// # Panics
/// When the list, which is compiled in, has a line that is no seed.
pub fn regressions() -> Vec<u64> {
    let seed = |line: &str| {
        let seed = line.split('#').next().unwrap_or_default().trim();
        (!seed.is_empty()).then(|| match seed.parse() {
            Ok(seed) => seed,
            Err(error) => panic!("regressions.txt: {line:?} is no seed: {error}"),
        })
    };
    REGRESSIONS.lines().filter_map(seed).collect()
}

/// The seed that a commit adds, so that every commit tries a new one.
pub fn seed_of_commit(commit: &str) -> u64 {
    // Short enough to be typed.
    Prng::from_seed(0).stream(commit.trim()).next_u64() >> 32
}

/// Runs `seed` twice.
///
/// # Errors
/// What was found wrong; also a panic, and two runs that differ.
pub fn check(seed: &Seed, operations: Option<u64>) -> Result<Verdict, String> {
    let first = once(seed, operations, None)?;
    if let Some(failure) = first.failure {
        return Err(failure);
    }
    let second = once(seed, operations, None)?;
    if first != second {
        return Err(format!("two runs differ: {first:?} and {second:?}"));
    }
    Ok(first)
}

/// Runs `seed` once.
///
/// # Errors
/// The message of a panic.
pub fn once(
    seed: &Seed,
    operations: Option<u64>,
    listener: Option<Listener>,
) -> Result<Verdict, String> {
    once_with(seed, operations, listener, None)
}

/// A run that some seeds have beside the one that all have.
type Beside = fn(&Seed, Option<u64>, Option<Listener>, Option<&str>) -> Verdict;

/// The runs of seeds that have no other one, by the themes that ask for them.
const ALONE: [(Theme, Beside); 6] = [
    (Theme::Initiators, initiators::run),
    (Theme::Paths, paths::run),
    (Theme::Operations, operations::run),
    (Theme::Drives, drives::run),
    (Theme::Pools, pools::run),
    (Theme::Sites, sites::run),
];

/// As [`once`], with a bug of [`engine::rare::BUGS`] planted.
///
/// # Errors
/// The message of a panic.
pub fn once_with(
    seed: &Seed,
    operations: Option<u64>,
    listener: Option<Listener>,
    bug: Option<&str>,
) -> Result<Verdict, String> {
    quietly(|| {
        let themes = themes(seed);
        let mut wished = ALONE
            .into_iter()
            .filter(|(theme, _)| themes.contains(theme));
        if let Some((_, run)) = wished.next() {
            return run(seed, operations, listener, bug);
        }
        let config = Config::draw(seed, operations);
        let alone = themes.iter().any(|theme| theme.is_on_request());
        let others: [(bool, Beside); 7] = [
            (moves::is_drawn(seed) && !alone, moves::run),
            (initiators::is_drawn(seed) && !alone, initiators::run),
            (paths::is_drawn(seed) && !alone, paths::run),
            (operations::is_drawn(seed) && !alone, operations::run),
            (drives::is_drawn(seed) && !alone, drives::run),
            (pools::is_drawn(seed) && !alone, pools::run),
            (sites::is_drawn(seed) && !alone, sites::run),
        ];
        let heard = listener.clone();
        let scenario = Scenario::new(seed.clone(), config, listener);
        let mut verdict = match bug {
            Some(bug) => scenario.plant(bug).run(),
            None => scenario.run(),
        };
        for (_, run) in others.into_iter().filter(|(is_drawn, _)| *is_drawn) {
            if verdict.failure.is_none() {
                verdict = verdict.and(run(seed, operations, heard.clone(), bug));
            }
        }
        verdict
    })
}

/// What a run comes to; a panic is one way to fail.
fn quietly(run: impl FnOnce() -> Verdict) -> Result<Verdict, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        format!("panic: {}", message.unwrap_or("without a message"))
    })
}
