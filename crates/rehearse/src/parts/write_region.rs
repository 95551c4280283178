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
//! The volumes themselves stay as they were. So a plan in which volumes are snapshotted, cloned or
//! moved writes in place ([`crate::rig`]): there it counts what they hold.

use super::pool::PoolRig;
use super::world::RigWorld;
use base::{BLOCK_BYTES, Slice, VolumeOffset};
use engine::{IoError, Volume};
use site::human;
use std::cell::Cell;

/// The most that is kept free for it.
const BYTES_MAX: u64 = 64 << 30;

/// It is so many times the write log at least: else what is in the log would be written over before
/// it is on drives.
const LOGS_MIN: u64 = 4;

/// Of the room of a pool that nothing is in, one part of so many.
const PART: u64 = 8;

/// Where writes go next.
pub struct WriteRegion {
    volume: Volume<RigWorld>,
    next: Cell<u64>,
}

impl WriteRegion {
    /// In what a pool has free.
    ///
    /// # Errors
    /// A sentence that names the pool, also where that is too little.
    pub async fn make(pool: &PoolRig) -> Result<WriteRegion, String> {
        let info = pool.pool.info();
        let taken = info.mapped_bytes + info.promised_bytes + info.kept_bytes;
        let size_bytes = info.capacity_bytes.saturating_sub(taken) / PART;
        let size_bytes = size_bytes.min(BYTES_MAX) >> 20 << 20;
        let least_bytes = pool.pool.store().debt().log_bytes_max * LOGS_MIN;
        if size_bytes < least_bytes.max(1 << 20) {
            return Err(format!(
                "pool {:?} has too little room to write anywhere: {} free, {} needed; set \
                 writes = \"in-place\" of its controller, or plan more drives",
                pool.name,
                human(size_bytes * PART),
                human(least_bytes * PART)
            ));
        }
        let thick = site::Provisioning::Thick;
        let volume = pool.make_volume(thick, "free-stripes", size_bytes).await?;
        let laid_out = volume.lay_out(0..size_bytes).await;
        laid_out.map_err(|error| format!("free stripes of pool {:?}: {error}", pool.name))?;
        Ok(WriteRegion {
            volume,
            next: Cell::new(0),
        })
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
