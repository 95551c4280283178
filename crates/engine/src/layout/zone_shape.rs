//! The shape of a zone, as far as its sums need to know it.

use super::{Slots, SumMap};
use crate::raid::Geometry;
use base::DriveOffset;

/// What of a zone the sums need to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneShape {
    /// Its number in the pool.
    pub zone: u32,
    /// Which use of it this is.
    pub incarnation: u32,
    /// The group it is part of.
    pub group: u16,
    /// Its spans, its width, its code and its unit.
    pub geometry: Geometry,
    /// Data blocks that it holds, parity left out.
    pub blocks: u64,
    /// Where its integrity area begins on each drive.
    pub area: DriveOffset,
    /// Where slots lie in there.
    pub slots: Slots,
    /// Which block of sums speaks for which data block.
    pub sums: SumMap,
}

impl ZoneShape {
    /// Where the copies of integrity block `index` lie: place in the zone, pair in the area there.
    /// They are on as many drives of one span as the span can lose, and one more.
    pub(crate) fn copies(&self, index: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let width = self.geometry.width as u64;
        let copies = self.geometry.redundancy() as u64 + 1;
        let (span, inside) = self.sums.span_of(index);
        let (row, first) = (inside / width, inside % width);
        (0..copies).map(move |copy| {
            let place = span * width + (first + copy) % width;
            (place as usize, row * copies + copy)
        })
    }

    /// The integrity block whose copy lies at pair `pair` of the area on `place`, if one does.
    pub(crate) fn copy_at(&self, place: usize, pair: u64) -> Option<u64> {
        let width = self.geometry.width as u64;
        let copies = self.geometry.redundancy() as u64 + 1;
        let (span, inside) = (place as u64 / width, place as u64 % width);
        let (row, copy) = (pair / copies, pair % copies);
        let first = (inside + width - copy) % width;
        self.sums.index_in(span, row * width + first)
    }

    /// Where the slot of a version lies on a drive that has it in pair `pair`.
    pub(crate) fn slot_at(&self, pair: u64, version: u64) -> DriveOffset {
        self.area + self.slots.at(pair, version % 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::sum_area::area_bytes;
    use crate::layout::{Layout, SumOrder};
    use crate::raid::{Level, Protection, Spread};
    use base::BLOCK_BYTES;
    use std::collections::BTreeSet;

    fn check_copies(protection: Protection, drives: usize, order: SumOrder, zone_bytes: u64) {
        let geometry = Geometry::of_group(protection, drives, 65536).unwrap();
        let blocks = geometry.zone_data_bytes(zone_bytes) / BLOCK_BYTES as u64;
        let shape = ZoneShape {
            zone: 0,
            incarnation: 1,
            group: 0,
            geometry,
            blocks,
            area: DriveOffset(0),
            slots: Slots::of(Layout::Apart, zone_bytes),
            sums: SumMap::new(order, geometry, blocks),
        };
        let area = area_bytes(geometry, shape.slots, zone_bytes);
        let mut seen = BTreeSet::new();
        for index in 0..shape.sums.count() {
            let homes: Vec<_> = shape.copies(index).collect();
            let places: BTreeSet<_> = homes.iter().map(|(place, _)| *place).collect();
            assert_eq!(places.len(), geometry.redundancy() + 1);
            let spans = places.iter().map(|place| geometry.span_of(*place));
            assert_eq!(spans.collect::<BTreeSet<_>>().len(), 1);
            for (place, pair) in homes {
                assert!(shape.slots.at(pair, 1) + BLOCK_BYTES as u64 <= area);
                assert!(seen.insert((place, pair)));
                assert_eq!(shape.copy_at(place, pair), Some(index));
            }
        }
        let pairs = area / (2 * BLOCK_BYTES as u64);
        for (place, pair) in (0..geometry.places()).flat_map(|p| (0..pairs).map(move |q| (p, q))) {
            assert!(shape.copy_at(place, pair).is_none() || seen.contains(&(place, pair)));
        }
    }

    #[test]
    fn copies_are_apart_and_each_pair_has_one_block() {
        for (level, drives) in [
            (Level::Simple, 1),
            (Level::Raid10 { copies: 2 }, 6),
            (Level::Raid10 { copies: 3 }, 6),
            (Level::Raid5, 3),
            (Level::Raid5, 7),
            (Level::Raid50, 9),
            (Level::Raid6, 5),
        ] {
            check_copies(level.into(), drives, SumOrder::Numbered, 64 << 20);
        }
        for (level, width, spares, drives) in [
            (Level::Raid6, 6, 6, 60),
            (Level::Raid5, 3, 1, 7),
            (Level::Raid10 { copies: 2 }, 2, 2, 12),
        ] {
            let spread = Some(Spread { width, spares });
            for (order, zone_bytes) in [
                (SumOrder::Numbered, 64 << 20),
                (SumOrder::BySpan, 64 << 20),
                (SumOrder::BySpan, 512 << 10),
            ] {
                check_copies(Protection { level, spread }, drives, order, zone_bytes);
            }
        }
    }
}
