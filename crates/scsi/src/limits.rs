//! Commands wait for the limit of their volume, before anything else is looked at.
//!
//! Invariants:
//! - A command that waits has not begun: reservations and unit attentions count when it does.
//! - Commands that move data or pages count; all others, such as those with which a host looks
//!   whether a path is alive, never wait.
//! - A command that is refused anyway, by a reservation or for its extent, takes nothing.
//! - A command that waited goes to the unit that it came for, or to none.
//! - A command whose token is stopped ends at once, and takes nothing of the limit.

use crate::cdb::{Cdb, Command, Work};
use crate::commands::transfer::place;
use crate::nexus::{Nexus, Response};
use crate::offload::CancelToken;
use crate::reservation::Access;
use crate::sense::Sense;
use crate::unit::LogicalUnit;
use engine::World;
use engine::qos::Refused;
use futures_util::future::{Either, select};
use std::pin::pin;

/// Bytes that `cdb` moves, if it counts by the limits of a volume. Commands that change pages by
/// the map, and copies that the array makes, count as one I/O without bytes. So does SANITIZE:
/// what came before it must not follow it.
fn counted_bytes(cdb: &Cdb) -> Option<u64> {
    match Work::of(cdb) {
        Work::Read(extent) | Work::Write(extent) => Some(extent.bytes()),
        Work::Unmap | Work::CompareAndWrite | Work::Offload => Some(0),
        Work::WriteSame | Work::Other => match cdb.command() {
            Ok(Command::Verify { extent, .. }) => Some(extent.bytes()),
            Ok(Command::WriteSame(order)) => Some(order.extent.bytes()),
            Ok(Command::Sanitize(_)) => Some(0),
            Ok(_) | Err(_) => None,
        },
    }
}

/// Whether a command is not about to be refused: one that is takes nothing from those that are not.
fn may_go<W: World>(unit: &LogicalUnit<W>, nexus: &Nexus<W>, cdb: &Cdb) -> bool {
    let Ok(command) = cdb.command() else {
        return false;
    };
    let is_inside = match Work::of(cdb) {
        Work::Read(extent) | Work::Write(extent) => place(unit, extent).is_ok(),
        _ => true,
    };
    is_inside && unit.reservations().admits(nexus.id(), Access::of(&command))
}

/// Waits until a command may go by the limits of the unit's volume.
///
/// # Errors
/// It does not go; the response says why.
pub(crate) async fn admitted<W: World>(
    unit: &LogicalUnit<W>,
    nexus: &Nexus<W>,
    cdb: &Cdb,
    cancel: &CancelToken,
) -> Result<(), Response> {
    let Some(account) = unit.account().filter(|account| account.asks()) else {
        return Ok(());
    };
    let bytes = counted_bytes(cdb).filter(|_| may_go(unit, nexus, cdb));
    let Some(bytes) = bytes else {
        return Ok(());
    };
    let world = nexus.target().world();
    if world.planted("limit not asked") {
        return Ok(());
    }
    // Its future is for units that have limits.
    let turn = Box::pin(account.admit(world, bytes));
    let stopped = pin!(cancel.stopped());
    match select(stopped, turn).await {
        Either::Left(_) => Err(Response::task_aborted()),
        Either::Right((Err(Refused), _)) => Err(Response::task_set_full()),
        // Nobody is shown it any more, and another volume may be at its LUN.
        Either::Right((Ok(()), _)) if unit.is_hidden() => {
            Err(Response::check_condition(&Sense::LUN_NOT_SUPPORTED, 0))
        }
        Either::Right((Ok(()), _)) => Ok(()),
    }
}
