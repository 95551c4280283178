//! Checks of the run itself: too short a run, and events that change nothing.

use super::Severity::{Error, Info, Warning};
use super::{COMMON, Check, CheckFindings, REHEARSAL, Scene};
use crate::plan::catalog;
use crate::rig::warmed::READS_MAX;
use site::Level;
use site::plan::{Event, Happening, Machine, Plan};
use std::time::Duration;

/// Seeds from which on an interval of confidence says something.
const SEEDS_LEAST: u16 = 3;

/// Measured at least.
const MEASURE_LEAST: Duration = Duration::from_secs(60);

/// Time after an event in which its effect shows.
const AFTER_EVENT: Duration = Duration::from_secs(10);

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "few-seeds",
        severity: Warning,
        why: "from one or two seeds nobody can tell chance from effect",
        mend: "set `seeds` to 3 or more",
        source: REHEARSAL,
        look: few_seeds,
    },
    Check {
        name: "short-measure",
        severity: Warning,
        why: "less than a minute has few operations of slow VMs and few destages",
        mend: "measure for a minute or more",
        source: REHEARSAL,
        look: short_measure,
    },
    Check {
        name: "cold-start",
        severity: Warning,
        why: "large caches fill during the time that is measured",
        mend: "let `warmup` be at least as long as it takes to read the caches full",
        source: REHEARSAL,
        look: cold_start,
    },
    Check {
        name: "event-before-measure",
        severity: Info,
        why: "what happens in the warm-up is not measured",
        mend: "let it happen after `warmup`",
        source: REHEARSAL,
        look: event_before_measure,
    },
    Check {
        name: "event-at-the-end",
        severity: Info,
        why: "less than 10 s are left to see what it does",
        mend: "let it happen earlier, or measure longer",
        source: REHEARSAL,
        look: event_at_the_end,
    },
    Check {
        name: "failure-without-redundancy",
        severity: Error,
        why: "nothing stands in for what fails: operations fail, or wait for the link",
        mend: "plan a level, a partner, a second host or a second port first",
        source: COMMON,
        look: failure_without_redundancy,
    },
    Check {
        name: "link-up-that-is-up",
        severity: Info,
        why: "the link is up: nothing happens",
        mend: "let it go down before",
        source: REHEARSAL,
        look: link_up_that_is_up,
    },
    Check {
        name: "drain-to-nowhere",
        severity: Error,
        why: "VMs have no other host to go to",
        mend: "plan a second host",
        source: COMMON,
        look: drain_to_nowhere,
    },
];

fn few_seeds(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let seeds = scene.plan.run.seeds;
    if seeds < SEEDS_LEAST {
        seen.add(1, format!("seeds that are run: {seeds}"));
    }
}

fn short_measure(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let measure = scene.plan.run.measure;
    if measure < MEASURE_LEAST {
        seen.add(1, format!("{} s are measured", measure.as_secs_f64()));
    }
}

/// A run begins with what [`READS_MAX`] random reads of a pool bring into its part of the cache; its VMs read the
/// rest. Of closed loops no rate is known, and any warm-up is believed.
fn cold_start(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let warmup_s = scene.plan.run.warmup.as_secs_f64();
    for controller in &scene.plan.controllers {
        let Ok(model) = catalog::controller(controller) else {
            continue;
        };
        let pools = scene.plan.pools.iter().enumerate();
        let pools = pools.filter(|(_, pool)| pool.controller == controller.name);
        let pools: Vec<usize> = pools.map(|(place, _)| place).collect();
        let cache_bytes = model.cache_bytes as f64 / pools.len().max(1) as f64;
        let seconds = pools
            .iter()
            .filter_map(|place| full_after_s(scene, *place, cache_bytes))
            .fold(0.0, f64::max);
        if warmup_s < seconds {
            let name = &controller.name;
            let what = format!(
                "the cache of {name:?} is full after {seconds:.0} s, the warm-up takes {warmup_s} s"
            );
            seen.add(controller.line, what);
        }
    }
}

/// When a pool has read its part of the cache full, or all of its data.
fn full_after_s(scene: &Scene<'_>, pool: usize, cache_bytes: f64) -> Option<f64> {
    let (mut data_bytes, mut bytes_per_s) = (0.0, 0.0);
    let (mut random_bytes_per_s, mut random_per_s) = (0.0, 0.0);
    for (_, disk) in scene.demand.disks_in(pool) {
        data_bytes += disk.taken_bytes as f64;
        for flow in &disk.flows {
            if flow.outstanding.is_some() {
                return None;
            }
            let reads_per_s = flow.per_s * flow.reads;
            bytes_per_s += reads_per_s * flow.bytes();
            random_per_s += reads_per_s * flow.random;
            random_bytes_per_s += reads_per_s * flow.random * flow.bytes();
        }
    }
    let saved_bytes = match random_per_s > 0.0 {
        true => READS_MAX as f64 * random_bytes_per_s / random_per_s,
        false => 0.0,
    };
    let left_bytes = cache_bytes.min(data_bytes) - saved_bytes;
    (bytes_per_s > 0.0).then_some(left_bytes / bytes_per_s)
}

fn event_before_measure(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for event in &scene.plan.events {
        // What is prepared belongs there.
        let prepares = matches!(event.what, Happening::Snapshot { .. });
        if event.at < scene.plan.run.warmup && !prepares {
            seen.add(
                event.line,
                format!("it happens at {} s, in the warm-up", event.at.as_secs_f64()),
            );
        }
    }
}

fn event_at_the_end(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let end = scene.plan.run.warmup + scene.plan.run.measure;
    for event in &scene.plan.events {
        if event.at + AFTER_EVENT > end {
            seen.add(
                event.line,
                format!(
                    "it happens at {} s of {} s",
                    event.at.as_secs_f64(),
                    end.as_secs_f64()
                ),
            );
        }
    }
}

fn failure_without_redundancy(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let plan = scene.plan;
    for event in &plan.events {
        let what = match &event.what {
            Happening::DriveFails { drive } => drive_without_redundancy(plan, drive),
            Happening::ControllerFails { controller, .. } => {
                let partner = plan
                    .controllers
                    .iter()
                    .find(|one| one.name == *controller)
                    .and_then(|one| one.partner.as_ref());
                partner
                    .is_none()
                    .then(|| format!("controller {controller:?} fails and has no partner"))
            }
            Happening::HostFails { host, .. } => (plan.host_names().len() == 1)
                .then(|| format!("host {host:?} fails and is the only one")),
            Happening::LinkDown { host, .. } => {
                let all = host_of(plan, host).map(|host| ports(plan, host));
                (all == Some(1)).then(|| format!("the only link of host {host:?} goes down"))
            }
            _ => None,
        };
        if let Some(what) = what {
            seen.add(event.line, what);
        }
    }
}

fn drive_without_redundancy(plan: &Plan, drive: &str) -> Option<String> {
    let lot = plan.lots.iter().find(|lot| lot.has_drive(drive))?;
    let bare = |pool: &&site::plan::Layout| {
        pool.groups
            .iter()
            .any(|groups| groups.from == lot.name && groups.level == Level::Simple)
    };
    let pool = plan.pools.iter().find(bare)?;
    Some(format!(
        "drive {drive:?} fails, and pool {:?} has drives of its lot without redundancy",
        pool.name
    ))
}

fn host_of<'a>(plan: &'a Plan, name: &str) -> Option<&'a Machine> {
    plan.hosts
        .iter()
        .find(|host| host.names().iter().any(|other| other == name))
}

/// Ports for storage.
fn ports(plan: &Plan, host: &Machine) -> u32 {
    let is_storage = |name: &str| {
        plan.networks
            .iter()
            .any(|network| network.name == name && network.carries.storage())
    };
    let ports = host.ports.iter().filter(|ports| is_storage(&ports.network));
    ports.map(|ports| u32::from(ports.count)).sum()
}

/// Whether something that `is_it` happens before `event`.
fn before(plan: &Plan, event: &Event, is_it: impl Fn(&Happening) -> bool) -> bool {
    plan.events
        .iter()
        .any(|other| other.at < event.at && is_it(&other.what))
}

fn link_up_that_is_up(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for event in &scene.plan.events {
        let Happening::LinkUp { host, network } = &event.what else {
            continue;
        };
        let down = Happening::LinkDown {
            host: host.clone(),
            network: network.clone(),
        };
        if !before(scene.plan, event, |what| *what == down) {
            seen.add(
                event.line,
                format!("a link of {host:?} into {network:?} comes up that did not go down"),
            );
        }
    }
}

fn drain_to_nowhere(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for event in &scene.plan.events {
        let Happening::Drain { host, .. } = &event.what else {
            continue;
        };
        if scene.plan.host_names().len() == 1 {
            seen.add(
                event.line,
                format!("host {host:?} is drained and is the only one"),
            );
        }
    }
}
