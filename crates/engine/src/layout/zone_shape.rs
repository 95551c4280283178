//! The shape of a zone, as far as its sums need to know it.

use super::Slots;
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
}

impl ZoneShape {
    /// Where the slot of a version lies on a drive that has it in pair `pair`.
    pub(crate) fn slot_at(&self, pair: u64, version: u64) -> DriveOffset {
        self.area + self.slots.at(pair, version % 2)
    }
}
