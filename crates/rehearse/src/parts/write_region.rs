//! The free stripes that an array which writes anywhere fills one after the other.
//!
//! Such an array never writes over what is there: it gathers writes of all its hosts and puts them
//! into free stripes, whole ones. So a write of RAID 6 over `n` drives costs `n ÷ (n − 2)` drive
//! writes and no reads. Here a volume of the pool is this free space: writes go there in order, round
//! and round, and the engine makes whole stripes of them.
//!
//! A read goes to where its block was before the run: on drives that are used all over, one place
//! is as good as another. Left out: that what reads in order finds its blocks scattered after
//! random writes, and that an array must clean stripes which are free in part.
//!
//! The volumes themselves stay as they were. So a plan that makes snapshots of volumes, clones or
//! moves them writes in place ([`crate::rig`]): there it counts what they hold.

use super::world::RigWorld;
use base::{BLOCK_BYTES, Slice, VolumeOffset};
use engine::{IoError, Volume};
use std::cell::Cell;

/// Where writes go next.
pub struct WriteRegion {
    volume: Volume<RigWorld>,
    next: Cell<u64>,
}

impl WriteRegion {
    /// In a volume that is free.
    pub fn in_volume(volume: Volume<RigWorld>) -> WriteRegion {
        WriteRegion {
            volume,
            next: Cell::new(0),
        }
    }

    /// Writes to the next free blocks.
    ///
    /// # Errors
    /// What the engine says.
    pub async fn write(&self, data: Slice) -> Result<(), IoError> {
        let len = (data.len() as u64).next_multiple_of(BLOCK_BYTES as u64);
        let next = self.next.get();
        let at = match next + len <= self.volume.size_bytes() {
            true => next,
            false => 0,
        };
        self.next.set(at + len);
        self.volume.write(VolumeOffset(at), data).await
    }
}
