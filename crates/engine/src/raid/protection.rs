//! How the drives of a group protect each other: [`Protection`].

use super::spread::SPREAD_DRIVES_MAX;
use super::{Geometry, Level, Spread};
use base::BLOCK_BYTES;
use std::fmt;

/// The most numbers of drives that a message lists.
const COUNTS_TOLD: usize = 6;

/// The level of a group, and how it is wider than its stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// How many drives a stripe can lose.
    pub level: Level,
    /// With distributed spares; none where each stripe is on all drives of its set.
    pub spread: Option<Spread>,
}

impl Protection {
    /// Drives that a stripe is on at most, in a group of so many.
    pub fn stripe_drives(&self, drives: usize) -> u64 {
        self.spread
            .map_or(drives as u64, |spread| u64::from(spread.width))
    }

    /// How many of `drives` hold data, the others copies, parity or spare room. None when a group
    /// can't have so many drives.
    pub fn data_drives(self, drives: usize) -> Option<usize> {
        let shape = Geometry::of_group(self, drives, BLOCK_BYTES as u64).ok()?;
        Some(shape.spans * shape.data_columns())
    }

    /// How many drives a group can have, for messages.
    pub fn drives_rule(self) -> String {
        if self.spread.is_none() {
            return self.level.drives_rule().to_owned();
        }
        // No group has no drives.
        let rule = Geometry::of_group(self, 0, BLOCK_BYTES as u64).err();
        let rule = rule.unwrap_or_default();
        let fitting: Vec<String> = (1..=SPREAD_DRIVES_MAX)
            .filter(|drives| self.data_drives(*drives).is_some())
            .map(|drives| drives.to_string())
            .collect();
        let fitting = match &fitting[..] {
            [] => String::new(),
            [first @ .., last] if fitting.len() <= COUNTS_TOLD && !first.is_empty() => {
                format!(" ({} or {last})", first.join(", "))
            }
            [only] => format!(" ({only})"),
            all => format!(" ({}, …)", all[..COUNTS_TOLD].join(", ")),
        };
        format!("{rule}{fitting}, for level \"{}\"", self.level)
    }
}

impl From<Level> for Protection {
    fn from(level: Level) -> Protection {
        Protection {
            level,
            spread: None,
        }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = self.level;
        match self.spread {
            None => write!(f, "{level}"),
            Some(Spread { width, spares }) => write!(
                f,
                "{level} with stripes of {width} drives and {spares} distributed {}",
                if spares == 1 { "spare" } else { "spares" }
            ),
        }
    }
}
