//! The places of a zone's bytes on the drives of its group.
//!
//! A zone is the same run of bytes on every drive. It is cut into stripes: one
//! stripe unit on each drive of one span. The data of a stripe is one run of the
//! zone's address space; stripes go round the spans. In a span with parity the
//! parity units move by one drive with every stripe, so that all drives share the
//! work (left-symmetric: data begins right after the parity).

use super::spread::{SPREAD_DRIVES_MAX, SPREAD_SPARES_MAX};
use super::{Level, Protection};
use base::BLOCK_BYTES;
use std::ops::Range;

/// Most drives of one group.
pub const DRIVES_MAX: usize = 32;

/// What the drives of a span are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// All drives hold equal copies.
    Mirror,
    /// One unit of each stripe is the parity of the others.
    P,
    /// Two units of each stripe are parity of the others.
    PQ,
}

/// What a drive holds of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Data column of that number.
    Data(usize),
    /// The first parity, P of RAID 5 and RAID 6.
    P,
    /// The second parity, Q of RAID 6.
    Q,
}

impl Level {
    /// How many of `drives` hold data, the others copies or parity. None when the
    /// level can't have so many drives.
    pub fn data_drives(self, drives: usize) -> Option<usize> {
        let shape = Geometry::of(self, drives, BLOCK_BYTES as u64).ok()?;
        Some(shape.spans * shape.data_columns())
    }
}

/// The shape of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Sets of drives that stripes go round.
    pub spans: usize,
    /// Drives in each of these sets.
    pub width: usize,
    /// What they are to each other.
    pub code: Code,
    /// Bytes in a row on one drive.
    pub unit_bytes: u64,
}

impl Geometry {
    /// The shape that `drives` drives have at `level`.
    ///
    /// # Errors
    /// How many drives the level takes.
    pub fn of(level: Level, drives: usize, unit_bytes: u64) -> Result<Geometry, String> {
        let shape = |spans, width, code| Geometry {
            spans,
            width,
            code,
            unit_bytes,
        };
        let too_many = drives > DRIVES_MAX;
        match level {
            Level::Simple if drives == 1 => Ok(shape(1, 1, Code::Mirror)),
            Level::Simple => Err("exactly one drive".to_owned()),
            Level::Raid10 { copies } => {
                let copies = usize::from(copies);
                if !(2..=3).contains(&copies)
                    || drives == 0
                    || !drives.is_multiple_of(copies)
                    || too_many
                {
                    return Err(format!("a multiple of {copies} drives, up to {DRIVES_MAX}"));
                }
                Ok(shape(drives / copies, copies, Code::Mirror))
            }
            Level::Raid5 if (3..=DRIVES_MAX).contains(&drives) => Ok(shape(1, drives, Code::P)),
            Level::Raid5 => Err(format!("3 to {DRIVES_MAX} drives")),
            Level::Raid6 if (4..=DRIVES_MAX).contains(&drives) => Ok(shape(1, drives, Code::PQ)),
            Level::Raid6 => Err(format!("4 to {DRIVES_MAX} drives")),
            Level::Raid50 => {
                let spans = (2..=drives / 3).find(|spans| drives.is_multiple_of(*spans));
                let found = spans
                    .filter(|_| !too_many)
                    .map(|spans| shape(spans, drives / spans, Code::P));
                found.ok_or_else(|| {
                    format!("6 to {DRIVES_MAX} drives that make equal sets of 3 or more (6, 8, 9, 10, 12, …)")
                })
            }
        }
    }

    /// The shape of the zones of a group of so many drives.
    ///
    /// # Errors
    /// What such a group takes.
    pub fn of_group(
        protection: Protection,
        drives: usize,
        unit_bytes: u64,
    ) -> Result<Geometry, String> {
        let Protection { level, spread } = protection;
        let Some(spread) = spread else {
            return Geometry::of(level, drives, unit_bytes);
        };
        let (width, spares) = (usize::from(spread.width), usize::from(spread.spares));
        let of_stripe = match level {
            Level::Simple | Level::Raid50 => {
                return Err("level 10, 10x3, 5 or 6 with distributed spares".to_owned());
            }
            Level::Raid10 { copies } => Geometry::of(level, usize::from(copies), unit_bytes)?,
            Level::Raid5 | Level::Raid6 => Geometry::of(level, width, unit_bytes)
                .map_err(|allowed| format!("a stripe of {allowed}"))?,
        };
        if of_stripe.width != width {
            return Err(format!("a stripe of {} drives", of_stripe.width));
        }
        if !(1..=SPREAD_SPARES_MAX).contains(&spares) {
            return Err(format!("1 to {SPREAD_SPARES_MAX} distributed spares"));
        }
        let held = drives.saturating_sub(spares);
        if drives > SPREAD_DRIVES_MAX || held < width || !held.is_multiple_of(width) {
            return Err(format!(
                "a multiple of {width} drives and {spares} more, up to {SPREAD_DRIVES_MAX} in all"
            ));
        }
        Ok(Geometry {
            spans: held / width,
            ..of_stripe
        })
    }

    /// Places of a zone: the drives of its group, but those that are spare in it.
    pub fn places(self) -> usize {
        self.spans * self.width
    }

    /// Drives' worth of data in a span.
    pub fn data_columns(self) -> usize {
        self.width - self.parities()
    }

    fn parities(self) -> usize {
        match self.code {
            Code::Mirror => self.width - 1,
            Code::P => 1,
            Code::PQ => 2,
        }
    }

    /// Drives that each span can lose.
    pub fn redundancy(self) -> usize {
        self.parities()
    }

    /// Bytes of data in a stripe of one span.
    pub fn stripe_data_bytes(self) -> u64 {
        self.data_columns() as u64 * self.unit_bytes
    }

    /// Bytes of data in a zone that takes `zone_bytes` of each drive.
    pub fn zone_data_bytes(self, zone_bytes: u64) -> u64 {
        assert!(
            zone_bytes.is_multiple_of(self.unit_bytes),
            "a zone of {zone_bytes} bytes"
        );
        zone_bytes / self.unit_bytes * self.stripe_data_bytes() * self.spans as u64
    }

    /// Blocks of a stripe unit.
    pub fn unit_blocks(self) -> u64 {
        self.unit_bytes / BLOCK_BYTES as u64
    }

    /// The places of a span.
    pub fn span_places(self, span: usize) -> Range<usize> {
        span * self.width..(span + 1) * self.width
    }

    /// The copies of a mirror's span.
    pub fn mirror_places(self, span: usize) -> Range<usize> {
        assert!(self.code == Code::Mirror);
        self.span_places(span)
    }

    /// The span that a drive belongs to.
    pub fn span_of(self, place: usize) -> usize {
        place / self.width
    }

    /// Place in its span of the first parity of stripe `number`.
    fn first_parity(self, number: u64) -> usize {
        self.width - 1 - (number % self.width as u64) as usize
    }

    /// The drive that holds data column `column` of a stripe; of a mirror, the first
    /// copy.
    pub fn data_place(self, number: u64, span: usize, column: usize) -> usize {
        assert!(column < self.data_columns(), "column {column} of {self:?}");
        let base = span * self.width;
        match self.code {
            Code::Mirror => base,
            Code::P | Code::PQ => {
                base + (self.first_parity(number) + self.parities() + column) % self.width
            }
        }
    }

    /// The drives that hold the parities of a stripe.
    pub fn parity_places(self, number: u64, span: usize) -> (Option<usize>, Option<usize>) {
        let base = span * self.width;
        let p = self.first_parity(number);
        match self.code {
            Code::Mirror => (None, None),
            Code::P => (Some(base + p), None),
            Code::PQ => (Some(base + p), Some(base + (p + 1) % self.width)),
        }
    }

    /// What a drive holds of stripe `number` of its span.
    pub fn role_of(self, number: u64, place: usize) -> Role {
        let inside = place % self.width;
        let steps = (inside + self.width - self.first_parity(number)) % self.width;
        match (self.code, steps) {
            (Code::Mirror, _) => Role::Data(0),
            (_, 0) => Role::P,
            (Code::PQ, 1) => Role::Q,
            (code, steps) => Role::Data(steps - if code == Code::PQ { 2 } else { 1 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn shapes() -> Vec<Geometry> {
        let counts = 0..=DRIVES_MAX + 1;
        let all =
            counts.flat_map(|drives| Level::ALL.map(|level| Geometry::of(level, drives, 8192)));
        all.flatten().collect()
    }

    #[test]
    fn every_drive_has_one_role_in_every_stripe() {
        assert!(shapes().len() > 100);
        for shape in shapes() {
            for number in 0..2 * shape.width as u64 {
                for span in 0..shape.spans {
                    let mut places = BTreeSet::new();
                    for column in 0..shape.data_columns() {
                        let place = shape.data_place(number, span, column);
                        assert_eq!(shape.role_of(number, place), Role::Data(column));
                        assert_eq!(shape.span_of(place), span);
                        places.insert(place);
                    }
                    let (p, q) = shape.parity_places(number, span);
                    assert!(p.is_none_or(|p| shape.role_of(number, p) == Role::P));
                    assert!(q.is_none_or(|q| shape.role_of(number, q) == Role::Q));
                    places.extend(p);
                    places.extend(q);
                    if shape.code == Code::Mirror {
                        places.extend(shape.mirror_places(span));
                    }
                    assert_eq!(places, shape.span_places(span).collect());
                }
            }
        }
    }

    #[test]
    fn parity_goes_round_all_drives() {
        for shape in shapes()
            .into_iter()
            .filter(|shape| shape.code != Code::Mirror)
        {
            let numbers = 0..shape.width as u64;
            let firsts: BTreeSet<_> = numbers
                .map(|number| shape.parity_places(number, 0).0)
                .collect();
            assert_eq!(firsts.len(), shape.width);
        }
    }

    #[test]
    fn levels_take_the_drives_they_say() {
        let taken =
            |level| (0..=13).filter(move |drives| Geometry::of(level, *drives, 4096).is_ok());
        assert_eq!(taken(Level::Simple).collect::<Vec<_>>(), [1]);
        assert_eq!(
            taken(Level::Raid10 { copies: 2 }).collect::<Vec<_>>(),
            [2, 4, 6, 8, 10, 12]
        );
        assert_eq!(
            taken(Level::Raid10 { copies: 3 }).collect::<Vec<_>>(),
            [3, 6, 9, 12]
        );
        assert_eq!(
            taken(Level::Raid5).collect::<Vec<_>>(),
            (3..=13).collect::<Vec<_>>()
        );
        assert_eq!(
            taken(Level::Raid6).collect::<Vec<_>>(),
            (4..=13).collect::<Vec<_>>()
        );
        assert_eq!(taken(Level::Raid50).collect::<Vec<_>>(), [6, 8, 9, 10, 12]);
        assert!(Geometry::of(Level::Raid10 { copies: 4 }, 8, 4096).is_err());
    }

    #[test]
    fn a_zone_holds_what_its_level_leaves_of_it() {
        let data = |level, drives| {
            Geometry::of(level, drives, 4096)
                .unwrap()
                .zone_data_bytes(1 << 20)
                >> 20
        };
        assert_eq!(data(Level::Simple, 1), 1);
        assert_eq!(data(Level::Raid10 { copies: 2 }, 8), 4);
        assert_eq!(data(Level::Raid10 { copies: 3 }, 9), 3);
        assert_eq!(data(Level::Raid5, 8), 7);
        assert_eq!(data(Level::Raid50, 8), 6);
        assert_eq!(data(Level::Raid6, 8), 6);
    }
}
