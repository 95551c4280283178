//! The sums that drives would hold if they held bytes.
//!
//! Where buffers have no bytes, what goes out of RAM can't come back from the drives.
//! It is kept here, in short, and a load pays for its reads all the same. Of a zone that
//! this opening of the pool has not formatted, all counts as written: what lies there was
//! written by an opening before.

use super::Sum;
use super::sums::Sums;
use rustc_hash::FxHashMap;

/// An integrity block as the drives have it.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) version: u64,
    pub(super) sums: Sums,
}

/// Blocks by zone and index.
#[derive(Debug, Default)]
pub(super) struct KeptSums {
    zones: FxHashMap<u32, Vec<Kept>>,
}

impl KeptSums {
    /// A zone of so many blocks of sums begins anew, with nothing written.
    pub(super) fn format(&mut self, zone: u32, blocks: u64, version: u64) {
        self.zones
            .insert(zone, all_alike(blocks, version, Sum::UNWRITTEN));
    }

    /// The block `index` of a zone of so many; a zone that is not known
    /// begins with that version.
    pub(super) fn block(
        &mut self,
        (zone, index): (u32, u64),
        blocks: u64,
        version: u64,
    ) -> &mut Kept {
        let zone = self.zones.entry(zone);
        let kept = zone.or_insert_with(|| all_alike(blocks, version, Sum::BYTELESS));
        &mut kept[index as usize]
    }

    /// Zone and index of the blocks that speak for something written, in this order.
    pub(super) fn in_use(&self) -> Vec<(u32, u64)> {
        let written = |kept: &Kept| !matches!(kept.sums, Sums::Uniform(Sum::UNWRITTEN));
        let of_zone = |(zone, blocks): (&u32, &Vec<Kept>)| {
            let blocks = (0..).zip(blocks);
            let written = blocks.filter(|(_, kept)| written(kept));
            written.map(|(index, _)| (*zone, index)).collect::<Vec<_>>()
        };
        let mut all: Vec<(u32, u64)> = self.zones.iter().flat_map(of_zone).collect();
        all.sort_unstable();
        all
    }

    /// A zone goes out of use.
    pub(super) fn forget(&mut self, zone: u32) {
        self.zones.remove(&zone);
    }
}

fn all_alike(blocks: u64, version: u64, sum: Sum) -> Vec<Kept> {
    let sums = Sums::Uniform(sum);
    vec![Kept { version, sums }; blocks as usize]
}
