//! Reads of the newest label on a drive.
//!
//! No drive is waited for without end: one that does not answer is an error.

use super::{PoolError, PoolErrorKind};
use crate::drive::Drive;
use crate::drives::Limits;
use crate::drives::doubt::{is_final, read_drive_again};
use crate::drives::hung::in_time;
use crate::label::{Label, SLOT_BYTES, SLOT_OFFSETS, Slot, other_version};
use crate::lane::Part;
use crate::world::World;
use base::DriveOffset;
use std::collections::VecDeque;

/// The newest label of a lane on a drive, which is seen as the lane sees it.
///
/// # Errors
/// `Version` for a label of another format, `Drive` when it can't be read or the drive
/// does not answer.
pub(super) async fn read_label<W: World>(
    world: &W,
    drive: &impl Drive,
    lane: u16,
) -> Result<Option<Label>, PoolError> {
    read_in_time(world, drive, lane, Part::WHOLE).await
}

/// The newest label on a drive of the lane whose part this is.
///
/// # Errors
/// As [`read_label`].
pub(super) async fn read_slots<W: World>(
    world: &W,
    drive: &impl Drive,
    part: Part,
) -> Result<Option<Label>, PoolError> {
    read_in_time(world, drive, part.lane, part).await
}

async fn read_in_time<W: World>(
    world: &W,
    drive: &impl Drive,
    lane: u16,
    part: Part,
) -> Result<Option<Label>, PoolError> {
    let patience = Limits::default().hung;
    let read = in_time(world, patience, read_there(world, drive, lane, part)).await;
    read.unwrap_or_else(|| {
        let context = format!("it does not answer: its label was waited for for {patience:?}");
        Err(PoolError::new(PoolErrorKind::Drive, context))
    })
}

async fn read_there<W: World>(
    world: &W,
    drive: &impl Drive,
    lane: u16,
    part: Part,
) -> Result<Option<Label>, PoolError> {
    let mut newest: Option<Label> = None;
    let mut failure = None;
    // A slot that can't be read may have the newer label: when the drive was away for a moment
    // it can be read after the other one.
    let mut slots = VecDeque::from(SLOT_OFFSETS);
    let mut left = SLOT_OFFSETS.len() + 1;
    while let Some(offset) = slots.pop_front().filter(|_| left > 0) {
        left -= 1;
        let at = part.place(DriveOffset(offset), SLOT_BYTES as u64);
        if at.0 + SLOT_BYTES as u64 > drive.geometry().capacity_bytes {
            continue;
        }
        let began = world.now();
        let buf = match read_drive_again(world, drive, at, SLOT_BYTES).await {
            Ok(buf) => buf,
            Err(error) => {
                if !is_final(&error, world.now().since(began)) {
                    slots.push_back(offset);
                }
                failure = Some(PoolError::new(PoolErrorKind::Drive, error.to_string()));
                continue;
            }
        };
        // The drive is back: what could not be read is read once more.
        left = left.max(slots.len());
        let slot = Label::decode(buf.bytes().unwrap_or_default());
        newest = newer_of(newest, slot, lane)?;
    }
    match (newest, failure) {
        (None, Some(failure)) => Err(failure),
        (newest, _) => Ok(newest),
    }
}

/// The newer of a label of `lane` and of the label in a slot, if there is any.
fn newer_of(newest: Option<Label>, slot: Slot, lane: u16) -> Result<Option<Label>, PoolError> {
    Ok(match (slot, newest) {
        (Slot::Empty, newest) => newest,
        (Slot::Other(version), _) => {
            let context = other_version(version);
            return Err(PoolError::new(PoolErrorKind::Version, context));
        }
        // One that went astray says nothing here.
        (Slot::Label(label), newest) if label.pool.lane != lane => newest,
        (Slot::Label(label), Some(newest)) if newest.generation >= label.generation => Some(newest),
        (Slot::Label(label), _) => Some(*label),
    })
}
