//! Groups with distributed spares: their two keys, and what they can be beside each other.
//!
//! Invariant: the rules are the same for a site file and for a request that gives the keys. How many
//! drives such a group has is a rule of whoever knows its drives.

use crate::read::whole;
use crate::table::{Row, TableReader};
use base::BLOCK_BYTES;
use engine::raid::spread::SPREAD_SPARES_MAX;
use engine::raid::{Geometry, Protection, Spread, geometry};
use engine::{GroupRole, Level};
use std::fmt;
use std::ops::RangeInclusive;
use toml::de::DeValue;

/// The keys of a group with distributed spares.
pub(crate) const SPREAD_KEYS: [&str; 2] = [WIDTH, SPARES];

const WIDTH: &str = "stripe_width";
const SPARES: &str = "distributed_spares";

const WIDTHS: RangeInclusive<usize> = 2..=geometry::DRIVES_MAX;
const SPARE_COUNTS: RangeInclusive<usize> = 1..=SPREAD_SPARES_MAX;

/// What somebody says of a group that may have distributed spares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpreadKeys {
    /// Drives of a stripe, copies or parity included; of mirrors the copies unless said otherwise.
    pub stripe_width: Option<u8>,
    /// Drives' worth of spare room; the group has none unless said otherwise.
    pub distributed_spares: Option<u8>,
}

/// A key that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongKey {
    /// One of the two keys, as the site file and requests have it.
    pub key: &'static str,
    /// What is wrong with it.
    pub found: String,
    /// What may stand in its place.
    pub allowed: String,
}

impl fmt::Display for WrongKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongKey {
            key,
            found,
            allowed,
        } = self;
        write!(f, "{key}: found {found}; allowed: {allowed}")
    }
}

impl SpreadKeys {
    /// How a group of this level is wider than its stripes, if it is.
    ///
    /// # Errors
    /// One key without the other, a level or role that has no distributed spares, or stripes that
    /// the level can't have.
    pub fn spread(self, level: Level, role: GroupRole) -> Result<Option<Spread>, WrongKey> {
        let wrong = |key, found: String, allowed: String| WrongKey {
            key,
            found,
            allowed,
        };
        let (width, spares) = match (self.stripe_width, self.distributed_spares) {
            (None, None) => return Ok(None),
            (Some(_), None) => {
                let found = format!("{WIDTH} without {SPARES}");
                let rule = format!("both, or neither; {SPARES} is {}", spares_rule());
                return Err(wrong(WIDTH, found, rule));
            }
            (width, Some(spares)) => (width, spares),
        };
        if let Some((found, rule)) = bare(level, role) {
            return Err(wrong(SPARES, found, rule.to_owned()));
        }
        let width = match (level, width) {
            (_, Some(width)) => width,
            (Level::Raid10 { copies }, None) => copies,
            (_, None) => {
                let found = format!("{SPARES} without {WIDTH}");
                let rule = format!("both, for level \"{level}\"; {WIDTH} is {}", width_rule());
                return Err(wrong(SPARES, found, rule));
            }
        };
        if !SPARE_COUNTS.contains(&usize::from(spares)) {
            return Err(wrong(SPARES, number(spares), spares_rule()));
        }
        let spread = Spread { width, spares };
        match unfit(level, spread) {
            None => Ok(Some(spread)),
            Some(rule) => Err(wrong(WIDTH, number(width), rule)),
        }
    }
}

/// What is wrong with distributed spares of a group that can't have any, and what is right.
fn bare(level: Level, role: GroupRole) -> Option<(String, &'static str)> {
    let of = |what: String| format!("distributed spares of a group of {what}");
    if matches!(level, Level::Simple | Level::Raid50) {
        let rule = "level \"10\", \"10x3\", \"5\" or \"6\" with distributed spares";
        return Some((of(format!("level \"{level}\"")), rule));
    }
    let rule = "a log group without: the logs lie on a few of its drives";
    (role == GroupRole::Log).then(|| (of("role \"log\"".to_owned()), rule))
}

fn number(number: u8) -> String {
    format!("the number {number}")
}

/// Which stripes a level can have, if it can't have these.
fn unfit(level: Level, spread: Spread) -> Option<String> {
    let protection = Protection {
        level,
        spread: Some(spread),
    };
    // The smallest group of this kind.
    let drives = usize::from(spread.width) + usize::from(spread.spares);
    let allowed = Geometry::of_group(protection, drives, BLOCK_BYTES as u64).err()?;
    Some(format!("{allowed} for level \"{level}\""))
}

/// Reads both keys of a group of this level, where that could be read.
pub(crate) fn spread(
    reader: &mut TableReader<'_, '_>,
    level: Option<Level>,
    role: GroupRole,
) -> Option<Spread> {
    let said = keys(reader);
    let given = SPREAD_KEYS.map(|key| reader.line_of(key));
    let read = [said.stripe_width, said.distributed_spares];
    // A key that was given and not read well was told of.
    if given
        .iter()
        .zip(read)
        .any(|(at, key)| at.is_some() != key.is_some())
    {
        return None;
    }
    match said.spread(level?, role) {
        Ok(spread) => spread,
        Err(wrong) => {
            let line = reader.line_of(wrong.key).unwrap_or(reader.header_line());
            reader.report(line, wrong.key, wrong.found, &wrong.allowed);
            None
        }
    }
}

/// Reads both keys where no group of the table's own has them. Who asks says so.
pub(crate) fn not_here(reader: &mut TableReader<'_, '_>) -> Option<Spread> {
    keys(reader);
    None
}

/// Both keys, each by itself.
fn keys(reader: &mut TableReader<'_, '_>) -> SpreadKeys {
    SpreadKeys {
        stripe_width: reader.optional(WIDTH, &width_rule(), |value| within(value, WIDTHS)),
        distributed_spares: reader
            .optional(SPARES, &spares_rule(), |value| within(value, SPARE_COUNTS)),
    }
}

/// Whether the keys of a row were right, or not there: else nothing is said about its drives.
pub(crate) fn is_known<T>(row: &Row<T>, spread: Option<Spread>) -> bool {
    spread.is_some() || !row.has_any(&SPREAD_KEYS)
}

fn within(value: &DeValue<'_>, allowed: RangeInclusive<usize>) -> Option<u8> {
    let number = whole(value).filter(|number| allowed.contains(&usize::from(*number)))?;
    u8::try_from(number).ok()
}

fn width_rule() -> String {
    let (least, most) = (WIDTHS.start(), WIDTHS.end());
    format!(
        "the drives of a stripe with its copies or parity, a whole number from {least} to {most}"
    )
}

fn spares_rule() -> String {
    let (least, most) = (SPARE_COUNTS.start(), SPARE_COUNTS.end());
    format!("a whole number from {least} to {most}")
}
