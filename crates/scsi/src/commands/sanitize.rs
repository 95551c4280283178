//! SANITIZE (SBC-4 clauses 4.11 and 5.24): all of a thin unit is erased.
//!
//! Its pages are given back and read as zeroes. Snapshots keep what they have: they are
//! other units. A thick unit has no SANITIZE, since nothing in an array overwrites media in
//! place, and a thin one has it only where that is allowed.
//!
//! Neither a reset nor the loss of power ends it: a unit that is shown while its volume is
//! being erased goes on with that.

use crate::cdb::Sanitize;
use crate::erasure::Erasure;
use crate::sense::Sense;
use crate::unit::LogicalUnit;
use base::VolumeOffset;
use engine::{IoError, World};
use futures_channel::oneshot;
use std::rc::Rc;

/// A unit is erased in so many pieces at most; it is told how many are done.
const PIECES_MAX: u64 = 4096;

/// Erases the unit.
///
/// # Errors
/// 20/00 for a unit that has no SANITIZE, 27/00 for one that nobody writes, 24/00 for AUSE
/// after a failure that has to be ended without it, 31/03 when it fails.
pub(crate) async fn block_erase<W: World>(
    unit: &Rc<LogicalUnit<W>>,
    order: Sanitize,
    world: &W,
) -> Result<(), Sense> {
    if !unit.may_sanitize() {
        return Err(Sense::INVALID_OPCODE);
    }
    if unit.is_write_protected() {
        return Err(Sense::WRITE_PROTECTED);
    }
    let may_exit = order.may_exit;
    let before = unit.erasure();
    if before == (Erasure::Failed { may_exit: false }) && may_exit {
        return Err(Sense::invalid_field(1, Some(5)));
    }
    // From now on nothing else runs; and once it is on record, blocks may go.
    unit.set_erasure(Erasure::Running { may_exit });
    if unit
        .keep_erasure(Erasure::Running { may_exit })
        .await
        .is_err()
    {
        unit.set_erasure(before);
        return Err(Sense::SANITIZE_FAILED);
    }
    let (end, ended) = oneshot::channel();
    let unit = Rc::clone(unit);
    world.spawn(async move {
        let is_erased = go_on(&unit).await;
        // With IMMED nobody waits.
        let _ = end.send(is_erased);
    });
    if order.immediate {
        return Ok(());
    }
    // Nobody is told when the world ends.
    match ended.await.unwrap_or(false) {
        true => Ok(()),
        false => Err(Sense::SANITIZE_FAILED),
    }
}

/// Leaves the failure of a SANITIZE (EXIT FAILURE MODE): the unit holds what it happens to hold.
///
/// # Errors
/// 20/00 for a unit that has no SANITIZE, 24/00 for a failure that only another SANITIZE ends,
/// 31/03 when it can't be kept.
pub(crate) async fn exit_failure<W: World>(unit: &LogicalUnit<W>) -> Result<(), Sense> {
    if !unit.may_sanitize() {
        return Err(Sense::INVALID_OPCODE);
    }
    match unit.erasure() {
        Erasure::Failed { may_exit: false } => Err(Sense::invalid_field(1, Some(4))),
        Erasure::Failed { may_exit: true } => {
            let left = unit.leave_failure().await;
            left.map_err(|_| Sense::SANITIZE_FAILED)?;
            Ok(())
        }
        Erasure::None | Erasure::Running { .. } => Ok(()),
    }
}

/// Goes on erasing a unit that is being erased, from the beginning, which is quick where that is
/// done. Says whether it is erased: it may have failed, or is not shown any more.
pub(crate) async fn go_on<W: World>(unit: &LogicalUnit<W>) -> bool {
    let Erasure::Running { may_exit } = unit.erasure() else {
        return false;
    };
    let _turn = unit.erasing().await;
    let erased = erase(unit).await;
    let after = match &erased {
        Ok(true) => Erasure::None,
        // Who shows the volume next goes on.
        Ok(false) => return false,
        Err(_) => Erasure::Failed { may_exit },
    };
    let kept = unit.keep_erasure(after).await;
    // Where that is not on record the next start erases it again.
    unit.set_erasure(match kept {
        Ok(()) => after,
        Err(_) => Erasure::Failed { may_exit },
    });
    unit.erasure() == Erasure::None
}

/// Whether it was done to the end.
async fn erase<W: World>(unit: &LogicalUnit<W>) -> Result<bool, IoError> {
    let volume = unit.volume();
    let size_bytes = volume.size_bytes();
    let page_bytes = volume.info().page_bytes;
    let piece_bytes = (size_bytes / PIECES_MAX).next_multiple_of(page_bytes);
    let piece_bytes = piece_bytes.max(page_bytes);
    let mut at = 0;
    while at < size_bytes {
        if unit.is_hidden() {
            return Ok(false);
        }
        let len = piece_bytes.min(size_bytes - at);
        // It may have moved meanwhile.
        unit.volume().clear(VolumeOffset(at), len).await?;
        at += len;
        unit.set_erased(at, size_bytes);
    }
    Ok(true)
}
