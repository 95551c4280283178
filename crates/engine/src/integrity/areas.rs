//! The copies of many blocks of sums, read together: [`Areas`].
//!
//! The copies of blocks that follow each other lie side by side on each drive. A disk that reads them
//! one by one between the data loses more time by that than the data takes.
//!
//! Invariant: while areas are in use, nobody writes the blocks that they were read for: these are
//! being loaded, or whoever reads them writes them alone.

use super::{Cached, Integrity};
use crate::drives::Zone;
use crate::drives::vitals::Patience;
use crate::layout::ZoneShape;
use crate::world::World;
use base::{BLOCK_BYTES, Slice};
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

/// Copies that one read takes, at most: a mebibyte.
const PAIRS_AT_ONCE: usize = 128;

/// Copies so far apart are read together, with what lies between them.
const NEAR_PAIRS: u64 = 8;

/// Both slots of a copy as a drive has them, but for what can't be read.
pub(super) type BothSlots = [Option<Slice>; 2];

/// What was read of the copies of some blocks, by the place that they lie on and by pair.
#[derive(Default)]
pub(super) struct Areas {
    zone: u32,
    pieces: BTreeMap<(usize, u64), Piece>,
}

/// Pairs that lie side by side on a drive.
struct Piece {
    end: u64,
    data: Slice,
}

impl Areas {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Both slots of a copy, if they were read.
    pub(super) fn slots(&self, of: &ZoneShape, place: usize, pair: u64) -> Option<BothSlots> {
        let slots = of.slots;
        let ((on, first), piece) = self.pieces.range(..=(place, pair)).next_back()?;
        let is_of_it = of.zone == self.zone && *on == place && pair < piece.end;
        let slot = |slot| {
            let at = slots.at(pair, slot) - slots.at(*first, 0);
            Some(piece.data.slice(at as usize, BLOCK_BYTES))
        };
        is_of_it.then(|| [0, 1].map(slot))
    }
}

impl<W: World> Integrity<W> {
    /// Reads all copies of these blocks. What can't be read is left out.
    pub(super) async fn read_areas(&self, zone: &Zone<W>, indices: &[u64]) -> Areas {
        let copies = indices.iter().flat_map(|index| zone.shape.copies(*index));
        self.read_pairs(zone, copies).await
    }

    /// Reads a copy of each of these blocks, none that lies on the places that are named beside it.
    pub(super) async fn read_one_of_each(
        &self,
        zone: &Zone<W>,
        blocks: impl Iterator<Item = (u64, Vec<usize>)>,
    ) -> Areas {
        let one_of = |(index, except): (u64, Vec<usize>)| {
            let mut copies = zone.shape.copies(index);
            copies.find(|(place, _)| !except.contains(place) && zone.is_readable(*place))
        };
        self.read_pairs(zone, blocks.filter_map(one_of)).await
    }

    async fn read_pairs(
        &self,
        zone: &Zone<W>,
        copies: impl Iterator<Item = (usize, u64)>,
    ) -> Areas {
        let mut pairs: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        for (place, pair) in copies {
            pairs.entry(place).or_default().insert(pair);
        }
        let mut runs = Vec::new();
        for (place, pairs) in pairs {
            let pairs: Vec<u64> = pairs.into_iter().collect();
            let near = pairs.chunk_by(|a, b| a + NEAR_PAIRS >= *b);
            let cut = near.flat_map(|run| run.chunks(PAIRS_AT_ONCE));
            runs.extend(cut.map(|run| (place, run[0], run[run.len() - 1] + 1)));
        }
        let reads = runs.into_iter().map(async |(place, first, end)| {
            let data = self.read_run(zone, place, first..end).await?;
            Some(((place, first), Piece { end, data }))
        });
        let pieces = join_all(reads).await.into_iter().flatten().collect();
        let zone = zone.shape.zone;
        Areas { zone, pieces }
    }

    /// Whole copies of blocks that are to be put right, where several of a zone are. The caller holds
    /// `writing`.
    pub(super) async fn areas_behind(&self, some: &[Rc<Cached>]) -> Areas {
        let is_behind = |cached: &&Rc<Cached>| !cached.behind.borrow().is_empty();
        let behind: Vec<&Rc<Cached>> = some.iter().filter(is_behind).collect();
        let ([first, _, ..], Some(zone)) = (
            &behind[..],
            behind
                .first()
                .and_then(|first| self.drives.zone(first.zone)),
        ) else {
            return Areas::default();
        };
        let of_zone = behind.iter().filter(|cached| cached.zone == first.zone);
        let blocks = of_zone.map(|cached| {
            let except = cached.behind.borrow().clone();
            (u64::from(cached.index), except)
        });
        self.read_one_of_each(&zone, blocks).await
    }

    async fn read_run(&self, zone: &Zone<W>, place: usize, pairs: Range<u64>) -> Option<Slice> {
        let member = zone.place(place);
        if !member.is_readable(zone.shape.zone) {
            return None;
        }
        let slots = zone.shape.slots;
        let len = slots.at(pairs.end - 1, 1) + BLOCK_BYTES as u64 - slots.at(pairs.start, 0);
        let at = zone.shape.slot_at(pairs.start, 0);
        let data = self.world.buffers().data(len as usize);
        // Each of these copies is asked for by itself then: that waits, and tells of the fault.
        let read = member.read_patiently(at, data, Patience::Leaves).await?;
        read.ok().map(base::Buf::freeze)
    }
}
