//! The places of twins: two blocks of which one is valid while the other is written.
//!
//! Flash is written in units larger than a block, 16 KiB as a rule, and breaks in them:
//! twins that lie side by side break together. So they lie apart, but for pools that were
//! made before; the label's version says which.
//!
//! Invariant: pools of both layouts are read and written, and none changes its own.

pub mod sum_area;
mod sum_map;
mod zone_shape;

pub use sum_map::{SumMap, SumOrder};
pub use zone_shape::ZoneShape;

use base::BLOCK_BYTES;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// No two slots of an integrity block, or superblocks of a log, are in one aligned run of
/// this length of a drive.
const GRAIN_BYTES: u64 = 64 << 10;

/// Where zones are so small that this would be most of them: the unit of flash.
const GRAIN_BYTES_MIN: u64 = 16 << 10;

/// How twins lie in a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Side by side: label versions 2 and 3.
    Adjacent,
    /// Apart: label versions 4 and 5.
    #[default]
    Apart,
}

/// Where the slots of integrity blocks lie in the area of a zone on each drive.
///
/// The area is cut into chunks; the first half of each has the even slots of some pairs,
/// the other half their odd ones. Where they lie apart, the middle of each chunk is at a
/// multiple of a chunk, so both slots are near, and never in the same aligned run: one
/// read takes both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Before the first chunk.
    skipped: u64,
    /// Bytes of a chunk.
    chunk: u64,
}

impl Slots {
    /// Those of zones of `zone_bytes`.
    pub fn of(layout: Layout, zone_bytes: u64) -> Slots {
        match layout {
            Layout::Adjacent => Slots {
                skipped: 0,
                chunk: 2 * BLOCK,
            },
            Layout::Apart => {
                let chunk = (zone_bytes / 16).clamp(GRAIN_BYTES_MIN, GRAIN_BYTES);
                Slots {
                    skipped: chunk / 2,
                    chunk,
                }
            }
        }
    }

    /// What the beginning of an area is a multiple of.
    pub fn alignment(self) -> u64 {
        match self.skipped {
            0 => BLOCK,
            _ => self.chunk,
        }
    }

    /// From the even slot of a pair to its odd one.
    pub fn apart(self) -> u64 {
        self.chunk / 2
    }

    /// From the beginning of the even slot of a pair to the end of the odd one.
    pub fn span_bytes(self) -> usize {
        self.apart() as usize + BLOCK_BYTES
    }

    /// Where a slot of a pair lies in the area: 0 for the even one, 1 for the odd one.
    pub fn at(self, pair: u64, slot: u64) -> u64 {
        let pairs = self.chunk / (2 * BLOCK);
        let (chunk, inside) = (pair / pairs, pair % pairs);
        self.skipped + chunk * self.chunk + slot * self.apart() + inside * BLOCK
    }

    /// The pair and the slot that lie at an offset of the area; none before the first.
    pub fn slot_at(self, at: u64) -> Option<(u64, u64)> {
        let at = at.checked_sub(self.skipped)?;
        let (chunk, inside) = (at / self.chunk, at % self.chunk);
        let (slot, inside) = (inside / self.apart(), inside % self.apart());
        let pairs = self.chunk / (2 * BLOCK);
        Some((chunk * pairs + inside / BLOCK, slot))
    }

    /// Where the first slot of the area lies.
    pub fn first(self) -> u64 {
        self.skipped
    }

    /// Bytes of an area of so many pairs: whole chunks.
    pub fn area_bytes(self, pairs: u64) -> u64 {
        self.skipped + (2 * BLOCK * pairs).next_multiple_of(self.chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_slot_has_a_place_of_its_own() {
        for (layout, zone_bytes) in [
            (Layout::Adjacent, 256 << 20),
            (Layout::Apart, 256 << 20),
            (Layout::Apart, 512 << 10),
            (Layout::Apart, 4096),
        ] {
            let slots = Slots::of(layout, zone_bytes);
            for pairs in [1, 2, 7, 8, 9, 66] {
                let mut seen = BTreeSet::new();
                for (pair, slot) in (0..pairs).flat_map(|pair| [(pair, 0), (pair, 1)]) {
                    let at = slots.at(pair, slot);
                    assert_eq!(slots.slot_at(at), Some((pair, slot)));
                    assert!(at + BLOCK <= slots.area_bytes(pairs) && seen.insert(at));
                }
            }
        }
    }

    #[test]
    fn slots_of_a_pair_are_in_two_aligned_runs_and_near() {
        let cases = [
            (256 << 20, 64 << 10),
            (1 << 20, 64 << 10),
            (16 << 10, 16 << 10),
        ];
        for (zone_bytes, grain) in cases {
            let slots = Slots::of(Layout::Apart, zone_bytes);
            assert_eq!(slots.alignment(), grain);
            for pair in 0..100 {
                let (even, odd) = (slots.at(pair, 0), slots.at(pair, 1));
                assert_ne!(even / grain, odd / grain, "pair {pair}");
                assert_eq!(odd - even, slots.apart());
                assert!(slots.span_bytes() <= 36 << 10);
            }
        }
        assert_eq!(Slots::of(Layout::Adjacent, 1 << 20).span_bytes(), 8192);
    }
}
