//! A stamp says which pool a drive is of while its first label is written, and while the last one is
//! wiped.
//!
//! A write that is cut short leaves a part of a label, which says nothing. The stamp is a heartbeat of
//! an owner that has closed the pool. It lies in one sector, so it is there whole or not at all.
//!
//! Invariants:
//! - The first lane stamps all drives of a new pool before it writes a label.
//! - Whoever takes a pool back or wipes a pool that is destroyed stamps the drive first, and wipes the
//!   stamp last. So wiping that is cut short can begin again.
//! - Everything else is wiped while a label is whole, and the label in the second slot last. So where no
//!   label is whole, nothing but a part of that label is beside the stamp. A drive that has something else
//!   there is somebody else's by now.

use super::doubt::read_drive_again;
use super::heartbeat::{Beat, PLACE};
use super::hung::in_time;
use super::{Drives, Limits, PoolError, PoolErrorKind, WIPED_BYTES};
use crate::drive::{Drive, DriveError};
use crate::label::{self, Label, SLOT_BYTES, SLOT_OFFSETS, Slot};
use crate::world::World;
use base::{BLOCK_BYTES, DriveOffset, SECTOR_BYTES, Uuid};
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

/// The pool whose stamp is on a drive that has no label, if nothing else is there but a part of a label.
///
/// # Errors
/// It can't be read, or does not answer.
pub(crate) async fn found_on<W: World>(
    world: &W,
    drive: &impl Drive,
) -> Result<Option<Uuid>, PoolError> {
    let bytes = WIPED_BYTES.min(drive.geometry().capacity_bytes) as usize;
    let bytes = bytes - bytes % BLOCK_BYTES;
    let reading = read_drive_again(world, drive, DriveOffset(0), bytes);
    let refuse = |why: String| PoolError::new(PoolErrorKind::Drive, why);
    let Some(start) = in_time(world, Limits::default().hung, reading).await else {
        return Err(refuse("it does not answer".to_owned()));
    };
    let start = start.map_err(|error| refuse(error.to_string()))?;
    let found = stamped(start.bytes().unwrap_or_default());
    Ok(found.filter(|_| !world.planted("stamp not looked for")))
}

/// The pool that the start of a drive is stamped for, if nothing is beside the stamp but what may be a
/// part of a label in the second slot.
fn stamped(start: &[u8]) -> Option<Uuid> {
    let stamp = start.get(PLACE.0 as usize..)?.get(..BLOCK_BYTES)?;
    let beat = Beat::decode(stamp)?;
    let is_stamp = beat.closed && beat.epoch == 0 && beat.owner.is_nil();
    let slot = SLOT_OFFSETS[1] as usize;
    let is_ours = |at: usize| at == PLACE.0 as usize || (slot..slot + SLOT_BYTES).contains(&at);
    let blocks = (0..).step_by(BLOCK_BYTES).zip(start.chunks(BLOCK_BYTES));
    let is_blank = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    let mut others = blocks.filter(|(at, _)| !is_ours(*at));
    let first = start.get(slot..slot + SECTOR_BYTES)?;
    let may_be_label = is_blank(first) || first.starts_with(label::MAGIC);
    let is_its = is_stamp && may_be_label && others.all(|(_, block)| is_blank(block));
    is_its.then_some(beat.pool)
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
    let write = |at: u64, bytes: Vec<u8>| {
        let data = world.buffers().copy_of(&bytes).freeze();
        drive.write_durable(DriveOffset(at), data)
    };
    let zeroes = |from: u64, to: u64| write(from, vec![0; to.saturating_sub(from) as usize]);
    let [first, second] = SLOT_OFFSETS;
    let (behind, end) = (PLACE.0 + BLOCK_BYTES as u64, second + SLOT_BYTES as u64);
    if bytes <= end {
        return zeroes(0, bytes).await;
    }
    write(PLACE.0, of(world, pool).encode()).await?;
    zeroes(end, bytes).await?;
    zeroes(behind, second).await?;
    // One label stays whole until the other slot is blank. A slot that can't be read has none.
    let label = async |at| {
        let slot = read_drive_again(world, drive, DriveOffset(at), SLOT_BYTES).await;
        let bytes = slot.ok()?.bytes()?.to_vec();
        matches!(Label::decode(&bytes), Slot::Label(_)).then_some(bytes)
    };
    if let (Some(bytes), None) = (label(first).await, label(second).await) {
        write(second, bytes).await?;
    }
    zeroes(first, PLACE.0).await?;
    zeroes(second, end).await?;
    zeroes(PLACE.0, behind).await
}

impl<W: World> Drives<W> {
    /// Stamps all drives of a new pool. One that can't be written does not take its label either.
    pub async fn stamp_all(&self) {
        let world = self.world();
        if self.lane.index > 0 || world.buffers().is_length_only() {
            return;
        }
        let stamp = of(world, self.uuid()).encode();
        let all = self.members().into_iter().chain(self.spares());
        let writes = all.map(async |member| {
            let stamp = world.buffers().copy_of(&stamp).freeze();
            drop(member.write_durably(PLACE, stamp).await);
        });
        join_all(writes).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Host;

    const POOL: Uuid = Uuid::from_u128(7);

    fn beat(epoch: u64) -> Beat {
        Beat {
            pool: POOL,
            epoch,
            owner: Uuid::nil(),
            host: Host {
                id: Uuid::from_u128(4),
                boot: Uuid::from_u128(5),
                name: "alpha".to_owned(),
            },
            count: 0,
            closed: true,
        }
    }

    fn start(beat: &Beat, at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut start = vec![0; WIPED_BYTES as usize];
        start[PLACE.0 as usize..][..BLOCK_BYTES].copy_from_slice(&beat.encode());
        start[at..at + bytes.len()].copy_from_slice(bytes);
        start
    }

    #[test]
    fn only_a_part_of_a_label_may_be_beside_the_stamp() {
        assert_eq!(stamped(&start(&beat(0), 0, &[])), Some(POOL));
        assert_eq!(stamped(&start(&beat(1), 0, &[])), None, "a heartbeat");
        for (at, is_ours) in [
            (0, false),
            (1080, false),
            (SLOT_BYTES - 1, false),
            (20 << 10, false),
            ((32 << 10) - 1, false),
            // Not as a label begins.
            (32 << 10, false),
            ((32 << 10) + SECTOR_BYTES, true),
            ((48 << 10) - 1, true),
            (48 << 10, false),
            ((1 << 20) - 1, false),
        ] {
            let found = stamped(&start(&beat(0), at, &[1]));
            assert_eq!(found.is_some(), is_ours, "{at}");
        }
        let torn = start(&beat(0), 32 << 10, label::MAGIC);
        assert_eq!(stamped(&torn), Some(POOL));
    }
}
