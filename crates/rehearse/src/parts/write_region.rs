//! The free stripes that an array which writes anywhere fills one after the other.
//!
//! Such an array never writes over what is there: it gathers writes of all its hosts and puts them
//! into free stripes, whole ones. So a write of RAID 6 over `n` drives costs `n ÷ (n − 2)` drive
//! writes and no reads. Here a volume of the pool is this free space: writes go there in order, round
//! and round, and the engine makes whole stripes of them.
//!
//! A read goes to where its block was before the run: on drives that are used all over, one place is as good as
//! another. Left out: that what reads in order finds its blocks scattered after random
//! writes, and that an array must clean stripes which are free in part.

use super::pool::PoolRig;
use super::world::RigWorld;
use base::{BLOCK_BYTES, Slice, VolumeOffset};
use engine::{IoError, Volume};
use std::cell::Cell;

/// The most that is kept free for it. It need only be more than write caches hold.
const BYTES_MAX: u64 = 64 << 30;

/// With less room than this a pool writes in place, as one that is full would.
const BYTES_MIN: u64 = 64 << 20;

/// Of the room of a pool that nothing is in, one part of so many.
const PART: u64 = 8;

/// Where writes go next.
pub struct WriteRegion {
    volume: Volume<RigWorld>,
    next: Cell<u64>,
}

impl WriteRegion {
    /// In what a pool has free. `None` when that is too little.
    ///
    /// # Errors
    /// A sentence that names the pool.
    pub async fn make(pool: &PoolRig) -> Result<Option<WriteRegion>, String> {
        let info = pool.pool.info();
        let taken = info.mapped_bytes + info.promised_bytes + info.kept_bytes;
        let size_bytes = info.capacity_bytes.saturating_sub(taken) / PART;
        let size_bytes = size_bytes.min(BYTES_MAX) >> 20 << 20;
        if size_bytes < BYTES_MIN {
            return Ok(None);
        }
        let thick = site::Provisioning::Thick;
        let volume = pool.make_volume(thick, "free-stripes", size_bytes).await?;
        let laid_out = volume.lay_out(0..size_bytes).await;
        laid_out.map_err(|error| format!("free stripes of pool {:?}: {error}", pool.name))?;
        Ok(Some(WriteRegion {
            volume,
            next: Cell::new(0),
        }))
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
