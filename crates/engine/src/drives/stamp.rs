//! A stamp says which pool a drive is of while its first label is written, and while the last one is
//! wiped.
//!
//! A write that is cut short leaves a part of a label, which says nothing. The stamp is a heartbeat of
//! an owner that has closed the pool. It lies in one sector, so it is there whole or not at all.
//!
//! Invariants:
//! - The first lane stamps all drives of a new pool before it writes a label.
//! - Whoever wipes a drive stamps it first, and wipes the stamp last. So wiping that is cut short can
//!   begin again.
//! - The slot at the start of the drive is written last and wiped first. So where no label is whole, it is
//!   blank, and a drive that has something there is somebody else's by now.

use super::doubt::read_drive_again;
use super::heartbeat::{self, Beat, PLACE};
use super::{DriveFault, Drives, PoolError, PoolErrorKind, WIPED_BYTES};
use crate::drive::{Drive, DriveError};
use crate::label::{SLOT_BYTES, SLOT_OFFSETS};
use crate::lane::Part;
use crate::world::World;
use base::{BLOCK_BYTES, DriveOffset, Uuid};
use futures_util::future::join_all;

/// The stamp of a pool.
fn of<W: World>(world: &W, pool: Uuid) -> Beat {
    Beat {
        pool,
        epoch: 0,
        owner: Uuid::nil(),
        host: world.host(),
        count: 0,
        closed: true,
    }
}

/// The pool whose stamp, or heartbeat, is on a drive that has no label, if nothing else is there but a
/// part of a label.
///
/// # Errors
/// It can't be read.
pub(crate) async fn found_on<W: World>(
    world: &W,
    drive: &impl Drive,
) -> Result<Option<Uuid>, DriveError> {
    let Some(beat) = heartbeat::read(world, drive, Part::WHOLE).await else {
        return Ok(None);
    };
    let bytes = WIPED_BYTES.min(drive.geometry().capacity_bytes) as usize;
    let bytes = bytes - bytes % BLOCK_BYTES;
    let start = read_drive_again(world, drive, DriveOffset(0), bytes).await?;
    Ok(is_blank_beside(start.bytes().unwrap_or_default()).then_some(beat.pool))
}

/// Whether a drive's start has nothing beside the stamp and the second slot of labels.
fn is_blank_beside(start: &[u8]) -> bool {
    let ours = [(PLACE.0, BLOCK_BYTES), (SLOT_OFFSETS[1], SLOT_BYTES)];
    let blocks = (0..).step_by(BLOCK_BYTES).zip(start.chunks(BLOCK_BYTES));
    let is_ours = |at: u64| {
        let mut ours = ours.iter();
        ours.any(|(from, len)| (*from..from + *len as u64).contains(&at))
    };
    let mut others = blocks.filter(|(at, _)| !is_ours(*at));
    others.all(|(_, block)| block.iter().all(|byte| *byte == 0))
}

/// Fills the first `bytes` of a drive of this pool with zeroes.
///
/// # Errors
/// It can't be written.
pub(crate) async fn wipe<W: World>(
    world: &W,
    drive: &impl Drive,
    pool: Uuid,
    bytes: u64,
) -> Result<(), DriveError> {
    let zeroes = |from: u64, to: u64| {
        let len = to.saturating_sub(from) as usize;
        let zeroes = world.buffers().zeroed(len).freeze();
        async move {
            match len {
                0 => Ok(()),
                _ => drive.write_durable(DriveOffset(from), zeroes).await,
            }
        }
    };
    let behind = PLACE.0 + BLOCK_BYTES as u64;
    if bytes < behind {
        return zeroes(0, bytes).await;
    }
    let stamp = world.buffers().copy_of(&of(world, pool).encode()).freeze();
    drive.write_durable(PLACE, stamp).await?;
    zeroes(0, PLACE.0).await?;
    zeroes(behind, bytes).await?;
    zeroes(PLACE.0, behind).await
}

impl<W: World> Drives<W> {
    /// Stamps all drives of a new pool.
    ///
    /// # Errors
    /// One of them can't be written.
    pub async fn stamp_all(&self) -> Result<(), PoolError> {
        let world = self.world();
        if self.lane.index > 0 || world.buffers().is_length_only() {
            return Ok(());
        }
        let stamp = world.buffers().copy_of(&of(world, self.uuid()).encode());
        let stamp = stamp.freeze();
        let all = self.members().into_iter().chain(self.spares());
        let writes = all.map(async |member| {
            let written = member.write_durably(PLACE, stamp.clone()).await;
            written.err().map(|error| DriveFault { member, error })
        });
        match join_all(writes).await.into_iter().flatten().next() {
            None => Ok(()),
            Some(fault) => {
                let context = format!("drive '{}': {}", fault.member.name, fault.error);
                Err(PoolError::new(PoolErrorKind::Drive, context))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_part_of_the_second_slot_may_be_beside_the_stamp() {
        let start = |at: Option<usize>| {
            let mut start = vec![0; WIPED_BYTES as usize];
            start[PLACE.0 as usize..][..BLOCK_BYTES].fill(3);
            at.into_iter().for_each(|at| start[at] = 1);
            start
        };
        assert!(is_blank_beside(&start(None)));
        for (at, is_ours) in [
            (0, false),
            (1080, false),
            (SLOT_BYTES - 1, false),
            (20 << 10, false),
            ((32 << 10) - 1, false),
            (32 << 10, true),
            ((48 << 10) - 1, true),
            (48 << 10, false),
            ((1 << 20) - 1, false),
        ] {
            assert_eq!(is_blank_beside(&start(Some(at))), is_ours, "{at}");
        }
    }
}
