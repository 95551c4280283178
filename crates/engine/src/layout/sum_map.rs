//! Which block of sums speaks for which data block of a zone: [`SumMap`].
//!
//! Blocks of sums follow the numbers of data blocks; or, in groups with distributed spares, each span
//! has blocks of sums for itself. Their copies lie on the drives of the span then, so who puts
//! together what a lost drive held asks no other drives.
//!
//! Invariant: the blocks of a stripe have sums that lie one behind the other.

use super::sum_area::SUMS;
use crate::raid::{Geometry, Spread};
use base::BLOCK_BYTES;
use std::ops::Range;

/// In what order sums are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SumOrder {
    /// By the number of the data block.
    #[default]
    Numbered,
    /// By span, and in it by the number of the data block.
    BySpan,
}

impl SumOrder {
    /// That of zones of a new group.
    pub fn of_new(spread: Option<Spread>) -> SumOrder {
        match spread {
            None => SumOrder::Numbered,
            Some(_) => SumOrder::BySpan,
        }
    }
}

/// Where the sums of a zone's data blocks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumMap {
    order: SumOrder,
    /// Data blocks of the zone.
    blocks: u64,
    spans: u64,
    stripe_blocks: u64,
    /// Blocks of sums of a span.
    of_span: u64,
}

impl SumMap {
    /// Of a zone of that shape with so many data blocks.
    pub fn new(order: SumOrder, geometry: Geometry, blocks: u64) -> SumMap {
        let rows = geometry.unit_bytes / BLOCK_BYTES as u64;
        let stripe_blocks = rows * geometry.data_columns() as u64;
        let spans = geometry.spans as u64;
        let stripes = blocks.div_ceil(stripe_blocks).div_ceil(spans);
        SumMap {
            order,
            blocks,
            spans,
            stripe_blocks,
            of_span: (stripes * stripe_blocks).div_ceil(SUMS as u64),
        }
    }

    /// How many blocks of sums the zone has.
    pub fn count(&self) -> u64 {
        match self.order {
            SumOrder::Numbered => self.blocks.div_ceil(SUMS as u64),
            SumOrder::BySpan => self.of_span * self.spans,
        }
    }

    /// The span on whose drives a block of sums is, and which one of that span's it is.
    pub fn span_of(&self, index: u64) -> (u64, u64) {
        match self.order {
            SumOrder::Numbered => (index % self.spans, index / self.spans),
            SumOrder::BySpan => (index / self.of_span, index % self.of_span),
        }
    }

    /// The block of sums that [`SumMap::span_of`] says this of.
    pub fn index_in(&self, span: u64, inside: u64) -> Option<u64> {
        let index = match self.order {
            SumOrder::Numbered => inside * self.spans + span,
            SumOrder::BySpan if inside >= self.of_span => return None,
            SumOrder::BySpan => span * self.of_span + inside,
        };
        (index < self.count()).then_some(index)
    }

    /// The block of sums that speaks for a data block, and which of its sums does.
    pub fn place(&self, block: u64) -> (u64, usize) {
        let at = self.position(block);
        (at / SUMS as u64, (at % SUMS as u64) as usize)
    }

    /// The number of a data block's sum among all of the zone.
    fn position(&self, block: u64) -> u64 {
        match self.order {
            SumOrder::Numbered => block,
            SumOrder::BySpan => {
                let (linear, inside) = (block / self.stripe_blocks, block % self.stripe_blocks);
                let (number, span) = (linear / self.spans, linear % self.spans);
                span * self.of_span * SUMS as u64 + number * self.stripe_blocks + inside
            }
        }
    }

    /// The data block that a sum of a block of sums speaks for, if there is such.
    pub fn block_of(&self, index: u64, at: usize) -> Option<u64> {
        let position = index * SUMS as u64 + at as u64;
        let block = match self.order {
            SumOrder::Numbered => position,
            SumOrder::BySpan => {
                let of_span = self.of_span * SUMS as u64;
                let (span, inside) = (position / of_span, position % of_span);
                let number = inside / self.stripe_blocks;
                let linear = number * self.spans + span;
                linear * self.stripe_blocks + inside % self.stripe_blocks
            }
        };
        (at < SUMS && index < self.count() && block < self.blocks).then_some(block)
    }

    /// The blocks of sums that speak for a run of data blocks, with the part of each. One may come
    /// several times.
    pub fn parts(
        &self,
        blocks: Range<u64>,
    ) -> impl Iterator<Item = (u64, Range<usize>)> + Clone + use<> {
        let map = *self;
        let mut next = blocks.start;
        std::iter::from_fn(move || {
            if next >= blocks.end {
                return None;
            }
            let (index, from) = map.place(next);
            let left = match map.order {
                SumOrder::Numbered => blocks.end - next,
                SumOrder::BySpan => {
                    let stripe_end = (next / map.stripe_blocks + 1) * map.stripe_blocks;
                    blocks.end.min(stripe_end) - next
                }
            };
            let len = left.min((SUMS - from) as u64);
            next += len;
            Some((index, from..from + len as usize))
        })
    }

    /// The first and the last data block that a block of sums speaks for, for messages.
    pub fn extent(&self, index: u64) -> (u64, u64) {
        let mut of_it = (0..SUMS).filter_map(|at| self.block_of(index, at));
        let first = of_it.next().unwrap_or(0);
        (first, of_it.next_back().unwrap_or(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raid::{Level, Protection, Spread};
    use std::collections::BTreeSet;

    fn maps() -> Vec<SumMap> {
        let mut maps = Vec::new();
        for (level, width, spares, drives, zone_bytes) in [
            (Level::Raid6, 6, 6, 60, 4 << 20),
            (Level::Raid5, 3, 1, 7, 16 << 20),
            (Level::Raid10 { copies: 2 }, 2, 2, 12, 512 << 10),
        ] {
            let spread = Some(Spread { width, spares });
            let protection = Protection { level, spread };
            let geometry = Geometry::of_group(protection, drives, 64 << 10).unwrap();
            let blocks = geometry.zone_data_bytes(zone_bytes) / BLOCK_BYTES as u64;
            for order in [SumOrder::Numbered, SumOrder::BySpan] {
                maps.push(SumMap::new(order, geometry, blocks));
            }
        }
        maps
    }

    #[test]
    fn every_data_block_has_a_sum_of_its_own_and_leads_back() {
        for map in maps() {
            let mut seen = BTreeSet::new();
            for block in 0..map.blocks {
                let (index, at) = map.place(block);
                assert!(index < map.count() && seen.insert((index, at)));
                assert_eq!(map.block_of(index, at), Some(block));
            }
            let all = (0..map.count()).flat_map(|index| (0..SUMS).map(move |at| (index, at)));
            let none = all.filter(|place| !seen.contains(place));
            for (index, at) in none {
                assert_eq!(map.block_of(index, at), None);
            }
        }
    }

    #[test]
    fn parts_of_a_run_are_the_places_of_its_blocks() {
        for map in maps() {
            for run in [0..1, 5..map.blocks.min(3000), map.blocks - 70..map.blocks] {
                let parts = map.parts(run.clone());
                let places = parts.flat_map(|(index, part)| part.map(move |at| (index, at)));
                assert!(places.eq(run.map(|block| map.place(block))), "{map:?}");
            }
        }
    }

    #[test]
    fn sums_by_span_are_on_the_drives_of_their_stripe() {
        for map in maps() {
            for index in 0..map.count() {
                let (span, inside) = map.span_of(index);
                assert_eq!(map.index_in(span, inside), Some(index));
            }
            if map.order == SumOrder::BySpan {
                for block in 0..map.blocks {
                    let span = block / map.stripe_blocks % map.spans;
                    assert_eq!(map.span_of(map.place(block).0).0, span);
                }
            }
        }
    }
}
