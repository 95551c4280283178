//! How the drives of a group protect each other: [`Protection`].

use super::{Level, Spread};
use std::fmt;

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
    pub fn stripe_drives(&self, drives: usize) -> usize {
        self.spread
            .map_or(drives, |spread| usize::from(spread.width))
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
