//! RAID levels: the ways in which a group protects data.

use std::fmt;

/// How a RAID group protects data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// One drive, no protection.
    Simple,
    /// Two or three drives with the same content, striped over.
    Raid10 {
        /// Drives with the same content.
        copies: u8,
    },
    /// One parity drive's worth, in turns over all drives.
    Raid5,
    /// RAID 5 groups, striped over.
    Raid50,
    /// Two parity drives' worth, in turns over all drives.
    Raid6,
}

impl Level {
    /// Every level there is.
    pub const ALL: [Level; 6] = [
        Level::Simple,
        Level::Raid10 { copies: 2 },
        Level::Raid10 { copies: 3 },
        Level::Raid5,
        Level::Raid50,
        Level::Raid6,
    ];

    /// Its code on drives (`docs/internals/format.md`).
    pub fn code(self) -> u8 {
        match self {
            Level::Simple => 0,
            Level::Raid10 { copies: 3 } => 13,
            Level::Raid10 { .. } => 10,
            Level::Raid5 => 5,
            Level::Raid50 => 50,
            Level::Raid6 => 6,
        }
    }

    /// The level with that code.
    pub fn from_code(code: u8) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.code() == code)
    }

    /// As people write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Simple => "simple",
            Level::Raid10 { copies: 3 } => "10x3",
            Level::Raid10 { .. } => "10",
            Level::Raid5 => "5",
            Level::Raid50 => "50",
            Level::Raid6 => "6",
        }
    }

    /// The level that people write as `text`.
    pub fn parse(text: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.as_str() == text)
    }

    /// How many lost drives it survives, whichever they are.
    pub fn redundancy(self) -> usize {
        match self {
            Level::Raid10 { copies } => usize::from(copies).saturating_sub(1),
            Level::Simple | Level::Raid5 | Level::Raid50 | Level::Raid6 => self.parity_drives(),
        }
    }

    /// Drives' worth of parity: of RAID 50 in each of its RAID 5 groups, else in the whole group.
    pub fn parity_drives(self) -> usize {
        match self {
            Level::Simple | Level::Raid10 { .. } => 0,
            Level::Raid5 | Level::Raid50 => 1,
            Level::Raid6 => 2,
        }
    }

    /// Whether a group of this level can carry the logs of a pool that has a group of level
    /// `data`: whatever that survives, the logs do, too.
    pub fn carries_logs_beside(self, data: Level) -> bool {
        let mirrors = matches!(self, Level::Simple | Level::Raid10 { .. });
        mirrors && self.redundancy() >= data.redundancy()
    }

    /// Whether a group can go from this level to another while it is used.
    pub fn can_become(self, to: Level) -> bool {
        matches!(
            (self, to),
            (Level::Raid10 { .. }, Level::Raid50 | Level::Raid6) | (Level::Raid50, Level::Raid6)
        )
    }

    /// How many drives it can have, for messages.
    pub fn drives_rule(self) -> &'static str {
        match self {
            Level::Simple => "exactly 1 drive for level \"simple\"",
            Level::Raid10 { copies: 3 } => "3, 6, 9 or more drives, up to 30, for level \"10x3\"",
            Level::Raid10 { .. } => "an even number of drives, 2 to 32, for level \"10\"",
            Level::Raid5 => "3 to 32 drives for level \"5\"",
            Level::Raid50 => {
                "6 to 32 drives that make equal sets of 3 or more for level \"50\" (6, 8, 9, 10, 12, …)"
            }
            Level::Raid6 => "4 to 32 drives for level \"6\"",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raid::geometry::{Code, Geometry};

    #[test]
    fn every_level_comes_back_from_its_name_and_code() {
        for level in Level::ALL {
            assert_eq!(Level::parse(&level.to_string()), Some(level));
            assert_eq!(Level::from_code(level.code()), Some(level));
        }
        assert_eq!(Level::parse("7"), None);
        assert_eq!(Level::from_code(7), None);
    }

    #[test]
    fn parity_is_what_the_geometry_has_of_it() {
        for (level, drives) in [
            (Level::Simple, 1),
            (Level::Raid10 { copies: 2 }, 4),
            (Level::Raid10 { copies: 3 }, 6),
            (Level::Raid5, 5),
            (Level::Raid50, 6),
            (Level::Raid6, 6),
        ] {
            let shape = Geometry::of(level, drives, 4096).unwrap();
            let of_parity = match shape.code {
                Code::Mirror => 0,
                Code::P => 1,
                Code::PQ => 2,
            };
            assert_eq!(level.parity_drives(), of_parity, "{level}");
            assert_eq!(shape.redundancy(), level.redundancy(), "{level}");
        }
    }
}
