//! The copies of many blocks of sums, read together: [`Areas`].
//!
//! The copies of blocks that follow each other lie side by side on each drive. A disk that reads them
//! one by one between the data loses more time by that than the data takes.
//!
//! Invariant: while areas are in use, nobody writes the blocks that they were read for: these are
//! being loaded, or whoever reads them writes them alone.

use super::{Cached, Integrity};
use crate::drives::Zone;
use crate::layout::Slots;
use crate::world::World;
use base::{BLOCK_BYTES, Slice};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// Copies that one read takes, at most: a mebibyte.
const PAIRS_AT_ONCE: u64 = 128;

/// Both slots of a copy as a drive has them, but for what can't be read.
pub(super) type BothSlots = [Option<Slice>; 2];

/// What was read of the copies of some blocks, by the place that they lie on and by pair.
#[derive(Default)]
pub(super) struct Areas {
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
    pub(super) fn slots(&self, slots: Slots, place: usize, pair: u64) -> Option<BothSlots> {
        let ((on, first), piece) = self.pieces.range(..=(place, pair)).next_back()?;
        let is_of_it = *on == place && pair < piece.end;
        let slot = |slot| {
            let at = slots.at(pair, slot) - slots.at(*first, 0);
            Some(piece.data.slice(at as usize, BLOCK_BYTES))
        };
        is_of_it.then(|| [0, 1].map(slot))
    }
}

impl<W: World> Integrity<W> {
    /// Reads the copies of these blocks. What can't be read is left out.
    pub(super) async fn read_areas(&self, zone: &Zone<W>, indices: &[u64]) -> Areas {
        let mut pairs: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for index in indices {
            for (place, pair) in zone.shape.copies(*index) {
                pairs.entry(place).or_default().push(pair);
            }
        }
        let mut runs = Vec::new();
        for (place, mut pairs) in pairs {
            pairs.sort_unstable();
            pairs.dedup();
            let near = |a: &u64, b: &u64| a + 1 == *b;
            let near = pairs.chunk_by(near);
            let cut = near.flat_map(|run| run.chunks(PAIRS_AT_ONCE as usize));
            runs.extend(cut.map(|run| (place, run[0], run[0] + run.len() as u64)));
        }
        let reads = runs.into_iter().map(async |(place, first, end)| {
            let data = self.read_run(zone, place, first..end).await?;
            Some(((place, first), Piece { end, data }))
        });
        let pieces = join_all(reads).await.into_iter().flatten().collect();
        Areas { pieces }
    }

    /// The copies of blocks that are to be put right, where several of a zone are. The caller holds
    /// `writing`.
    pub(super) async fn areas_behind(&self, some: &[Rc<Cached>]) -> Areas {
        let is_behind = |cached: &&Rc<Cached>| !cached.behind.borrow().is_empty();
        let mut behind = some.iter().filter(is_behind);
        let Some((first, zone)) = behind
            .next()
            .and_then(|first| Some((first, self.drives.zone(first.zone)?)))
        else {
            return Areas::default();
        };
        let others = behind.filter(|cached| cached.zone == first.zone);
        let mut indices = vec![u64::from(first.index)];
        indices.extend(others.map(|cached| u64::from(cached.index)));
        match indices.len() {
            1 => Areas::default(),
            _ => self.read_areas(&zone, &indices).await,
        }
    }

    async fn read_run(&self, zone: &Zone<W>, place: usize, pairs: Range<u64>) -> Option<Slice> {
        let member = zone.place(place);
        if !member.is_readable(zone.shape.zone) {
            return None;
        }
        let slots = zone.shape.slots;
        let len = slots.at(pairs.end - 1, 1) + BLOCK_BYTES as u64 - slots.at(pairs.start, 0);
        let at = zone.shape.slot_at(pairs.start, 0);
        let read = member.read(at, self.world.buffers().data(len as usize));
        // Each of these copies is asked for by itself then, and that tells of the fault.
        read.await.ok().map(base::Buf::freeze)
    }
}
