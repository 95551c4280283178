//! One run: from a plan and a seed to an outcome.

pub mod confidence;
pub mod laws;
pub mod layout;
mod measured;
pub mod raw;
pub mod settled;
pub mod share;
pub mod steady;

use self::layout::{LayoutReport, layout};
use self::measured::{Measurement, measured, window_after};
use self::settled::Settling;
use self::share::{Part, Share};
use crate::error::RehearseError;
use crate::parts::world::RigWorld;
use crate::plan::profiles::Profiles;
use crate::rig::vm::{Ledger, StageSums, StreamRun};
use crate::rig::{Rig, warmed};
use crate::timeline;
use crate::timeline::log::{RunEvent, Undertook};
use base::Time;
use engine::World;
use site::plan::{Happening, Plan, TRACE};
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;
use workload::kpi::{Measured, Window};
use workload::outcome::{self, VmOutcome};
use workload::profile::{Limits, Profile};
use workload::report::Report;

/// Something that failed in a run, by an event of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What it is: a drive, or a host or controller, which goes with its processor.
    pub part: Part,
    /// The name of the drive, host or controller, as in [`Share::name`].
    pub name: String,
    /// From the start of the run.
    pub at: Duration,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The site's name in the file.
    pub site: String,
    /// The seed of all randomness of the run.
    pub seed: u64,
    /// The KPIs, as `ashlar load` reports them.
    pub load: Report,
    /// Where the time of the operations went.
    pub stages: StageSums,
    /// Whether it had settled.
    pub settling: Settling,
    /// What was connected to what when it began.
    pub layout: LayoutReport,
    /// How busy everything was in the window.
    pub shares: Vec<Share>,
    /// What happened, in the order of time.
    pub told: Vec<RunEvent>,
    /// What failed, in the order of the plan.
    pub failed: Vec<Failed>,
    /// What took a time, in the order of their ends; last what had not ended.
    pub undertook: Vec<Undertook>,
    /// Operations modelled, warm-up included.
    pub operations: u64,
    /// Hash over everything that happened: equal for equal plan, seed and program.
    pub trace_hash: u64,
}

/// Runs `plan` once, and measures as it says.
///
/// # Errors
/// [`crate::error::RehearseErrorKind::Site`] for what the plan says and no model knows,
/// `Engine` for what the engine refuses, `Law` when a law of [`crate::run::laws`] does not hold.
pub fn run(plan: &Plan, seed: u64, profiles: Profiles<'_>) -> Result<Outcome, RehearseError> {
    let outcome = run_watched(plan, seed, profiles, None)?;
    outcome.map_or_else(|| unreachable!("nobody stops it"), Ok)
}

/// Runs `plan`, and measures what lasts: where write logs and memory absorb writes over the window, the
/// run goes on as after a long time ([`settled`]).
///
/// # Errors
/// As [`run`].
pub fn run_lasting(
    plan: &Plan,
    seed: u64,
    profiles: Profiles<'_>,
) -> Result<Outcome, RehearseError> {
    run_lasting_if(plan, (seed, profiles), &|_| true)
}

/// The same, where the first window is worth it; else that window is all.
///
/// # Errors
/// As [`run`].
pub fn run_lasting_if(
    plan: &Plan,
    (seed, profiles): (u64, Profiles<'_>),
    is_worth_it: IsWorthIt<'_>,
) -> Result<Outcome, RehearseError> {
    let goes_on = may_go_on(plan).then_some(is_worth_it);
    let outcome = run_for((plan, goes_on), (seed, profiles), None)?;
    outcome.map_or_else(|| unreachable!("nobody stops it"), Ok)
}

/// Whether the load that lasts is wanted, by the report of a first window that has not settled.
pub type IsWorthIt<'a> = &'a dyn Fn(&Report) -> bool;

/// Whether a plan means the same if it is measured later: nothing happens in it at its time.
fn may_go_on(plan: &Plan) -> bool {
    let mut vm_groups = plan.vm_groups.iter();
    plan.events.is_empty() && !vm_groups.any(|vm_group| vm_group.profile.starts_with(TRACE))
}

/// Whether a run goes on, asked after every second of it.
pub type Watch<'a> = &'a mut dyn FnMut(&[Rc<StreamRun>]) -> bool;

/// The same; no outcome where `watch` stops it.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    plan: &Plan,
    seed: u64,
    profiles: Profiles<'_>,
    watch: Option<Watch<'_>>,
) -> Result<Option<Outcome>, RehearseError> {
    run_for((plan, None), (seed, profiles), watch)
}

/// A run, and whether it goes on until it has settled.
fn run_for(
    (plan, goes_on): (&Plan, Option<IsWorthIt<'_>>),
    (seed, profiles): (u64, Profiles<'_>),
    watch: Option<Watch<'_>>,
) -> Result<Option<Outcome>, RehearseError> {
    let rig = Rig::build(plan, seed, profiles)?;
    let window = window_after(plan, plan.run.warmup);
    let layout = layout(plan, &rig);
    let going = start(plan, &rig, (window, seed))?;
    let measured = rig.finish(measured((plan, goes_on), (&rig, seed), &going, watch))??;
    let Some(measured) = measured else {
        return Ok(None);
    };
    let Measurement {
        window,
        shares,
        settling,
    } = measured;
    let now = Time(rig.world.now().since(going.began).as_nanos() as u64);
    let balance = going.ledger.balance(now);
    laws::check(&rig, &balance, &shares)?;
    let (load, stages) = report(plan, &rig, (window, seed), &going.streams);
    let (told, undertook) = going.scene.finish();
    Ok(Some(Outcome {
        site: plan.name.clone(),
        seed,
        load,
        stages,
        settling,
        layout,
        shares,
        told,
        failed: failed(plan),
        undertook,
        operations: balance.issued,
        trace_hash: rig.world.trace_hash(),
    }))
}

/// What the events of `plan` have fail before the end of its run.
fn failed(plan: &Plan) -> Vec<Failed> {
    let end = plan.run.warmup + plan.run.measure;
    let happened = plan.events.iter().filter(|event| event.at < end);
    let failed = happened.filter_map(|event| {
        let (part, name) = match &event.what {
            Happening::DriveFails { drive } => (Part::Drive, drive),
            Happening::HostFails { host, .. } => (Part::Host, host),
            Happening::ControllerFails { controller, .. } => (Part::Controller, controller),
            _ => return None,
        };
        Some(Failed {
            part,
            name: name.clone(),
            at: event.at,
        })
    });
    failed.collect()
}

/// A rig at work.
struct Going {
    ledger: Rc<Ledger>,
    /// When it began, by the world's clock.
    began: Time,
    streams: Vec<Rc<StreamRun>>,
    scene: Rc<timeline::Scene>,
}

/// Sets the streams of all VMs to work, and the events of `plan` to happen. Caches hold what they do after
/// a long time.
fn start(plan: &Plan, rig: &Rig, (window, seed): (Window, u64)) -> Result<Going, RehearseError> {
    rig.finish(warmed::warm(rig, seed))??;
    let ledger = Rc::new(Ledger::default());
    let began = rig.world.now();
    let streams: Vec<Rc<StreamRun>> = rig
        .vms
        .iter()
        .map(|vm| StreamRun::of_vm(&rig.world, vm, (window, seed), &ledger))
        .collect::<Result<Vec<_>, _>>()?
        .concat();
    let scene = timeline::start(plan, rig, (window, seed), (&ledger, &streams))?;
    for stream in &streams {
        stream.start();
    }
    Ok(Going {
        ledger,
        began,
        streams,
        scene,
    })
}

/// Runs `plan` round by round from its warm-up on, without measuring more than operations
/// per second and their mean response time, until `tell` is satisfied or there were
/// `rounds_max`.
///
/// # Errors
/// As [`run`].
pub fn rounds(
    plan: &Plan,
    (seed, profiles): (u64, Profiles<'_>),
    round: Duration,
    rounds_max: u32,
    mut tell: impl FnMut(f64, f64) -> bool,
) -> Result<(), RehearseError> {
    let rig = Rig::build(plan, seed, profiles)?;
    let window = Window {
        start: Time(0) + plan.run.warmup,
        end: Time(0) + plan.run.warmup + round * rounds_max,
    };
    let going = start(plan, &rig, (window, seed))?;
    let now = || Time(rig.world.now().since(going.began).as_nanos() as u64);
    let ledger = &going.ledger;
    rig.finish(rig.world.sleep(plan.run.warmup))?;
    let mut before = ledger.balance(now());
    for _ in 0..rounds_max {
        rig.finish(rig.world.sleep(round))?;
        let after = ledger.balance(now());
        let ended = (after.ended - before.ended) as f64;
        let response_ms = (after.response_ns - before.response_ns) as f64 / 1e6 / ended.max(1.0);
        if tell(ended / round.as_secs_f64(), response_ms) {
            break;
        }
        before = after;
    }
    Ok(())
}

/// Between two looks whether everything has ended.
const LOOK: Duration = Duration::from_millis(10);

/// Waits until what is under way has ended.
pub(crate) async fn settle(world: &RigWorld, ledger: &Ledger, began: Time) {
    loop {
        let now = Time(world.now().since(began).as_nanos() as u64);
        let balance = ledger.balance(now);
        if balance.issued == balance.ended {
            return;
        }
        world.sleep(LOOK).await;
    }
}

fn report(
    plan: &Plan,
    rig: &Rig,
    (window, seed): (Window, u64),
    streams: &[Rc<StreamRun>],
) -> (Report, StageSums) {
    let mut stages = StageSums::default();
    let mut vms = Vec::new();
    let mut next = streams.iter();
    for vm in &rig.vms {
        let mut measured = Measured::default();
        let mut of_streams = Vec::new();
        for stream in next.by_ref().take(vm.profile.streams.len()) {
            let (of_stream, sums) = stream.finish();
            measured.merge(&of_stream);
            of_streams.push(of_stream);
            stages.count += sums.count;
            for (sum, ns) in stages.ns.iter_mut().zip(sums.ns) {
                *sum += ns;
            }
        }
        vms.push(VmOutcome {
            measured,
            streams: of_streams,
            lost: None,
            outages: Vec::new(),
            disk_bytes: vm.disks.iter().map(|disk| disk.size_bytes).collect(),
        });
    }
    let profile = Profile {
        name: plan.name.clone(),
        vms: rig.vms.iter().map(|vm| vm.profile.clone()).collect(),
        limits: Limits {
            read_mean: plan.run.limit,
            write_mean: plan.run.limit,
            ..Limits::default()
        },
    };
    let places = rig.vms.iter();
    let load_plan = workload::plan::Plan {
        vms: places
            .map(|_| workload::plan::VmPlaces { disks: Vec::new() })
            .collect(),
        profile,
        warmup: plan.run.warmup,
        duration: plan.run.measure,
        seed,
        fill: true,
        rate_scale: 1.0,
        reconnect_for: Duration::ZERO,
        allow_outages: false,
    };
    let outcome = outcome::Outcome::<Infallible> {
        vms,
        window,
        interrupted: false,
    };
    (workload::report::report(&load_plan, &outcome), stages)
}
