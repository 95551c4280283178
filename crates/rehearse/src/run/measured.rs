//! The windows of a run: its first one, and those after it until what lasts is measured.

use super::settled::{self, Settling};
use super::share::{Meter, Share};
use super::{Going, IsWorthIt, Watch, report, settle};
use crate::error::RehearseError;
use crate::parts::world::RigWorld;
use crate::rig::vm::StreamRun;
use crate::rig::{Rig, aged};
use base::Time;
use engine::World;
use site::plan::Plan;
use std::rc::Rc;
use std::time::Duration;
use workload::kpi::Window;

/// A window of a run.
pub(super) struct Measurement {
    pub(super) window: Window,
    pub(super) shares: Vec<Share>,
    pub(super) settling: Settling,
}

/// The window of `plan` that begins after so long.
pub(super) fn window_after(plan: &Plan, began_after: Duration) -> Window {
    let start = Time(0) + began_after;
    Window {
        start,
        end: start + plan.run.measure,
    }
}

/// The first window of `plan`, or the one that lasts; then the load ends. `None` when `watch` has stopped
/// the run.
pub(super) async fn measured(
    (plan, goes_on): (&Plan, Option<IsWorthIt<'_>>),
    (rig, seed): (&Rig, u64),
    going: &Going,
    mut watch: Option<Watch<'_>>,
) -> Result<Option<Measurement>, RehearseError> {
    if goes_on.is_some() {
        let streams = going.streams.iter();
        streams.for_each(|stream| stream.goes_on_until(Time(u64::MAX)));
    }
    let Some(first) = measure(plan, rig, (going, &mut watch)).await else {
        return Ok(None);
    };
    let is_worth_it = |is_worth_it: IsWorthIt<'_>| {
        let (load, _) = report(plan, rig, (first.window, seed), &going.streams);
        is_worth_it(&load)
    };
    let measured = match !first.settling.is_settled && goes_on.is_some_and(is_worth_it) {
        true => measure_sustained(plan, (rig, seed), going, first).await,
        false => Ok(first),
    };
    // What waits for a link ends late, and ends.
    rig.fabric.ports().for_each(|port| port.set_down(false));
    going.streams.iter().for_each(|stream| stream.stop());
    settle(&rig.world, &going.ledger, going.began).await;
    measured.map(Some)
}

/// The warm-up and the window of `plan`; `None` when `watch` has stopped the run.
async fn measure(
    plan: &Plan,
    rig: &Rig,
    (going, watch): (&Going, &mut Option<Watch<'_>>),
) -> Option<Measurement> {
    if !pass(&rig.world, plan.run.warmup, (&going.streams, watch)).await {
        return None;
    }
    measure_window(plan, rig, plan.run.warmup, (going, watch)).await
}

/// A window that begins now, so long after the start.
async fn measure_window(
    plan: &Plan,
    rig: &Rig,
    began_after: Duration,
    (going, watch): (&Going, &mut Option<Watch<'_>>),
) -> Option<Measurement> {
    let (before, owed) = (Meter::read(rig), settled::owed(rig));
    if !pass(&rig.world, plan.run.measure, (&going.streams, watch)).await {
        return None;
    }
    let debts = (&owed[..], &settled::owed(rig)[..]);
    Some(Measurement {
        window: window_after(plan, began_after),
        shares: Meter::read(rig).shares(&before, rig),
        settling: Settling::over(debts, plan.run.measure, began_after),
    })
}

/// Goes on as after a long time behind a first window that has not settled, until a window has.
async fn measure_sustained(
    plan: &Plan,
    (rig, seed): (&Rig, u64),
    going: &Going,
    first: Measurement,
) -> Result<Measurement, RehearseError> {
    let (load, _) = report(plan, rig, (first.window, seed), &going.streams);
    let burst = first.settling.burst(&load);
    aged::age(rig, seed).await?;
    rig.world.sleep(plan.run.warmup).await;
    let mut measured = first;
    for _ in 0..settled::WINDOWS_MAX {
        let began_after = rig.world.now().since(going.began);
        let window = window_after(plan, began_after);
        let streams = going.streams.iter();
        streams.for_each(|stream| stream.measure_anew(window));
        let next = measure_window(plan, rig, began_after, (going, &mut None)).await;
        let Some(next) = next else {
            unreachable!("nobody stops it")
        };
        measured = next;
        if measured.settling.is_settled {
            break;
        }
    }
    measured.settling.burst = Some(burst);
    Ok(measured)
}

/// Lets time go by; whether nobody has stopped the run.
async fn pass(
    world: &RigWorld,
    time: Duration,
    (streams, watch): (&[Rc<StreamRun>], &mut Option<Watch<'_>>),
) -> bool {
    const SECOND: Duration = Duration::from_secs(1);
    let Some(watch) = watch else {
        world.sleep(time).await;
        return true;
    };
    let mut left = time;
    while left >= SECOND {
        world.sleep(SECOND).await;
        left -= SECOND;
        if !watch(streams) {
            return false;
        }
    }
    world.sleep(left).await;
    true
}
