//! RESERVE, RELEASE, and PERSISTENT RESERVE OUT: reservations as commands.

use crate::cdb::{RESERVE_LIST_BYTES_MAX, ReserveOut};
use crate::nexus::Nexus;
use crate::reservation::{NexusId, Order, Refusal, Reservations};
use crate::sense::Sense;
use crate::unit::LogicalUnit;
use base::Slice;
use engine::{IoErrorKind, World};
use futures_util::future::join_all;

/// RESERVE and RELEASE. False for a conflict.
pub(crate) fn old<W: World>(unit: &LogicalUnit<W>, nexus: &NexusId, releases: bool) -> bool {
    unit.with_old_reservation(|all: &mut Reservations| match releases {
        true => all.release_old(nexus),
        false => all.reserve_old(nexus),
    })
}

/// PERSISTENT RESERVE OUT. It is durable, where that was asked for, when this ends, and
/// commands that it aborts have ended.
///
/// # Errors
/// A conflict, or what is wrong.
pub(crate) async fn out<W: World>(
    nexus: &Nexus<W>,
    (lun, unit): (u16, &LogicalUnit<W>),
    (action, scope_and_kind): (ReserveOut, u8),
    (list_bytes, list): (u32, Slice),
) -> Result<(), Refusal> {
    let list = list.bytes().unwrap_or_default();
    if list_bytes > RESERVE_LIST_BYTES_MAX || list.len() != list_bytes as usize {
        return Err(Sense::LIST_LENGTH.into());
    }
    let target = nexus.target();
    let turn = unit.reserving().await;
    if unit.reservations().is_anothers(nexus.id()) {
        return Err(Refusal::Conflict);
    }
    let connected = target.connected();
    let ids: Vec<NexusId> = connected.iter().map(|one| one.id().clone()).collect();
    let order = Order {
        action,
        scope_and_kind,
        list,
        from: nexus.id(),
        connected: &ids,
        ports: &target.ports().all(),
    };
    let outcome = unit.reservations().after(&order)?;
    let skips = target
        .world()
        .planted("preempted initiator stays registered");
    let kept = match skips && !outcome.aborted.is_empty() {
        true => Ok(()),
        false => unit.set_reservations(outcome.reservations).await,
    };
    kept.map_err(|error| match error.kind {
        IoErrorKind::PoolFull => Sense::NO_ROOM_FOR_REGISTRATION,
        IoErrorKind::Deleted => Sense::LUN_NOT_SUPPORTED,
        _ => Sense::TARGET_FAILURE,
    })?;
    target.tell_each(lun, &outcome.told);
    // Others may reserve while the commands of those who were preempted end.
    drop(turn);
    let preempted = connected.iter();
    let preempted = preempted.filter(|one| outcome.aborted.contains(one.id()));
    join_all(preempted.map(|one| one.abort(lun))).await;
    Ok(())
}
