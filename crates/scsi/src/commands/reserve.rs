//! RESERVE, RELEASE, and PERSISTENT RESERVE OUT: reservations as commands.

use crate::cdb::{RESERVE_LIST_BYTES_MAX, ReserveOut};
use crate::nexus::Nexus;
use crate::reservation::{NexusId, Order, Refusal, Reservations};
use crate::sense::Sense;
use crate::unit::LogicalUnit;
use base::Slice;
use engine::{IoErrorKind, World};
use futures_util::future::join_all;
use std::rc::Rc;

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
    abort(lun, &connected, &outcome.aborted).await;
    Ok(())
}

/// Aborts what those who were preempted have running; ends when none of it runs.
async fn abort<W: World>(lun: u16, connected: &[Rc<Nexus<W>>], preempted: &[NexusId]) {
    let is_meant = |one: &&Rc<Nexus<W>>| {
        let planted = "preemption aborts nobody";
        preempted.contains(one.id()) && !one.target().world().planted(planted)
    };
    let meant = connected.iter().filter(is_meant);
    join_all(meant.map(|one| one.abort(lun))).await;
}
