//! VMs directly on drives: no engine, controller, network or host between them.
//!
//! ```text
//! streams of a VM ─► drive ─► recorder
//! ```
//!
//! What a drive's model says of a workload, to be held against what `ashlar load` measures of
//! the drive itself. Streams, recorder and report are those of every rehearsal.
//!
//! Invariants: every disk of every VM is a drive of its own; the laws of operations hold
//! ([`crate::run::laws`]); one seed gives one report.

use super::laws;
use super::settle;
use crate::error::RehearseError;
use crate::parts::disk::{Stage, Stages};
use crate::parts::drive::{Device, DriveKind, DriveModel, Tally};
use crate::parts::halt::Halt;
use crate::parts::world::RigWorld;
use crate::rig::finish;
use crate::rig::vm::{Ledger, StreamRun, Vm};
use ::model::{Request, RequestKind};
use base::{DriveOffset, Time};
use engine::World;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;
use workload::generator::{Kind, Operation};
use workload::kpi::{Measured, Window};
use workload::outcome::{Outcome, VmOutcome};
use workload::plan::{Plan, VmPlaces};
use workload::profile::{Profile, VmProfile};
use workload::report::Report;

/// A VM whose disks are drives.
struct RawVm {
    profile: VmProfile,
    drives: Vec<(Rc<Device>, Rc<Tally>)>,
    drive_bytes: u64,
    /// Nobody holds it.
    halt: Halt,
}

impl Vm for RawVm {
    fn profile(&self) -> &VmProfile {
        &self.profile
    }

    fn disk_bytes(&self) -> Vec<u64> {
        vec![self.drive_bytes; self.drives.len()]
    }

    async fn io(&self, world: &RigWorld, operation: &Operation) -> Result<Stages, String> {
        let request = Request {
            kind: match operation.kind {
                Kind::Read => RequestKind::Read,
                Kind::Write => RequestKind::Write,
            },
            at: DriveOffset(operation.offset_bytes),
            len_bytes: u64::from(operation.bytes),
        };
        let began = world.now();
        let (device, tally) = &self.drives[operation.disk];
        let ended = device.submit(request, tally).await;
        ended.map_err(|_| "the drive does not answer".to_owned())?;
        let mut stages = Stages::default();
        stages.0[Stage::Array as usize] = world.now().since(began).as_nanos() as u64;
        Ok(stages)
    }

    fn halt(&self) -> &Halt {
        &self.halt
    }

    fn life(&self) -> u32 {
        0
    }

    fn is_off(&self) -> bool {
        false
    }

    fn did(&self, _bytes: u64) {}
}

/// Runs `profile` on drives of one kind, new and idle, in virtual time; `window` is measured,
/// from the start of the run on.
///
/// # Errors
/// [`crate::error::RehearseErrorKind::Law`] when a law does not hold.
///
/// # Panics
/// When the profile breaks [`Profile::check`], or needs larger disks.
pub fn run(
    profile: &Profile,
    kind: &DriveKind,
    window: Window,
    seed: u64,
) -> Result<Report, RehearseError> {
    let world = RigWorld::new(seed);
    let outcome = run_in(&world, profile, kind, window, seed);
    // Tasks hold the world, and the world the tasks.
    world.power_off();
    outcome
}

fn run_in(
    world: &RigWorld,
    profile: &Profile,
    kind: &DriveKind,
    window: Window,
    seed: u64,
) -> Result<Report, RehearseError> {
    let vms: Vec<Rc<RawVm>> = profile.vms.iter().map(|vm| raw(world, vm, kind)).collect();
    let (ledger, began) = (Rc::new(Ledger::default()), world.now());
    let mut streams = Vec::new();
    for vm in &vms {
        streams.push(StreamRun::of_vm(world, vm, (window, seed), &ledger)?);
    }
    for stream in streams.iter().flatten() {
        stream.start();
    }
    finish(world, async {
        world.sleep_until(began + window.end.since(Time(0))).await;
        settle(world, &ledger, began).await;
    })?;
    let now = Time(world.now().since(began).as_nanos() as u64);
    laws::operations(&ledger.balance(now))?;
    let of_vms = vms.iter().zip(&streams);
    let outcome = Outcome::<Infallible> {
        vms: of_vms.map(|(vm, streams)| outcome(vm, streams)).collect(),
        window,
        interrupted: false,
    };
    Ok(workload::report::report(
        &plan(profile, window, seed),
        &outcome,
    ))
}

fn raw(world: &RigWorld, profile: &VmProfile, kind: &DriveKind) -> Rc<RawVm> {
    let drive = |disk: usize| {
        let randomness = world.prng(&format!("disk {disk} of {}", profile.name));
        let device = Device::new((**world).clone(), DriveModel::new(kind, randomness));
        (device, Tally::begun(world.now()))
    };
    Rc::new(RawVm {
        profile: profile.clone(),
        drives: (0..profile.disks.len()).map(drive).collect(),
        drive_bytes: kind.capacity_bytes(),
        halt: Halt::default(),
    })
}

fn outcome(vm: &RawVm, streams: &[Rc<StreamRun<RawVm>>]) -> VmOutcome<Infallible> {
    let of_streams = streams.iter().map(|stream| stream.finish().0);
    let streams: Vec<Measured> = of_streams.collect();
    let mut measured = Measured::default();
    for stream in &streams {
        measured.merge(stream);
    }
    VmOutcome {
        measured,
        streams,
        lost: None,
        outages: Vec::new(),
        disk_bytes: vm.disk_bytes(),
    }
}

/// The run as the report wants it.
fn plan(profile: &Profile, window: Window, seed: u64) -> Plan {
    let places = |_| VmPlaces { disks: Vec::new() };
    Plan {
        vms: profile.vms.iter().map(places).collect(),
        profile: profile.clone(),
        warmup: window.start.since(Time(0)),
        duration: window.end - window.start,
        seed,
        fill: false,
        rate_scale: 1.0,
        reconnect_for: Duration::ZERO,
        allow_outages: false,
    }
}
