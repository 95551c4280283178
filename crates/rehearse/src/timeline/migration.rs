//! VMs that move to other hosts while they run.
//!
//! How long each round of copying takes is [`model::migration`]'s; its bytes go through the
//! ports of both hosts, piece by piece, no faster than the model says, and later where other
//! traffic is in the way. What is dirtied in such a delay is sent with the next round, and in
//! rounds of its own before the last one while it is more than that may have. The VM stands
//! still in the last round and until it is resumed, and its disks are LUNs of the new host
//! from then on.
//!
//! They go by the networks that carry what is not storage; by those of storage where there
//! are none.

use super::Scene;
use super::log::{Undertaking, amount, count, rate, seconds};
use crate::parts::halt::together;
use crate::parts::host::HostRig;
use crate::parts::network::{PortRig, between_hosts};
use crate::rig::residents;
use crate::rig::vm::VmRig;
use engine::World;
use model::migration::{
    Activity, Method, Migrated, Outcome, Path, Round, Spread, Stop, Vm, migrate,
};
use site::plan::{self, Carries};
use std::rc::Rc;
use std::time::Duration;

/// Bytes of a piece: what lets others in between is a message, not a round.
const PIECE_BYTES: u64 = 64 << 10;

/// A VM on its way.
struct MovingVm {
    vm: Rc<VmRig>,
    to: Rc<HostRig>,
}

/// A host's VMs move to the others of their VM groups.
pub(super) async fn drain(scene: &Rc<Scene>, name: &str, how: plan::Migration) {
    let running = scene.on_host(name).into_iter().filter(|vm| !vm.off.get());
    let all: Vec<Rc<VmRig>> = running.collect();
    let mut ways = Vec::new();
    for (turn, vm) in all.iter().enumerate() {
        // What is to come there has to find room beside what came before.
        let to = scene.place_beside(vm, turn, &reserved(&ways));
        ways.extend(to.map(|to| MovingVm {
            vm: Rc::clone(vm),
            to,
        }));
    }
    let stay = all.len() - ways.len();
    let more = format!("{} move to other hosts", count(ways.len(), "VM"));
    let drain = scene.log.begin(format!("drain of host {name}"), &more);
    if stay > 0 {
        drain.stage(&format!(
            "{} stay: no other host has room",
            count(stay, "VM")
        ));
    }
    run(scene, drain, ways, how).await;
}

fn reserved(ways: &[MovingVm]) -> Vec<(Rc<HostRig>, Rc<VmRig>)> {
    let both = ways
        .iter()
        .map(|way| (Rc::clone(&way.to), Rc::clone(&way.vm)));
    both.collect()
}

/// VMs of a VM group move to a host, as many as it has room for.
pub(super) async fn to_host(
    scene: &Rc<Scene>,
    (vm_group, most): (&str, usize),
    to: &str,
    how: plan::Migration,
) {
    let to = scene.host(to);
    let elsewhere = |vm: &Rc<VmRig>| !vm.off.get() && vm.host.borrow().name != to.name;
    let wanted = scene
        .of_vm_group(vm_group)
        .into_iter()
        .filter(elsewhere)
        .take(most);
    let mut ways: Vec<MovingVm> = Vec::new();
    let mut stay = 0;
    for vm in wanted {
        let mut all: Vec<&VmRig> = ways.iter().map(|way| &*way.vm).collect();
        all.push(&vm);
        match !to.is_down() && residents::on(&to, &scene.vms, &all).is_ok() {
            true => ways.push(MovingVm {
                vm,
                to: Rc::clone(&to),
            }),
            false => stay += 1,
        }
    }
    let more = format!("{} move to host {}", count(ways.len(), "VM"), to.name);
    let moving = scene
        .log
        .begin(format!("migration of VM group {vm_group}"), &more);
    if stay > 0 {
        moving.stage(&format!("{} stay: the host has no room", count(stay, "VM")));
    }
    run(scene, moving, ways, how).await;
}

/// Moves them, host by host at the same time; tells of each.
async fn run(scene: &Rc<Scene>, told: Undertaking<'_>, ways: Vec<MovingVm>, how: plan::Migration) {
    let mut by_host: Vec<(Rc<HostRig>, Vec<MovingVm>)> = Vec::new();
    for way in ways {
        let from = Rc::clone(&way.vm.host.borrow());
        match by_host.iter_mut().find(|(host, _)| host.name == from.name) {
            Some((_, of_host)) => of_host.push(way),
            None => by_host.push((from, vec![way])),
        }
    }
    let bytes = Rc::clone(&told.bytes);
    let what = told.what().to_owned();
    let moves = by_host.into_iter().flat_map(|(from, ways)| {
        let (outcome, activities) = modelled(scene, &from, &ways, how);
        cores(scene, &from, &ways, &outcome);
        let Method { spread, stop, .. } = method(scene, &ways[0].vm, how);
        let moves = ways.into_iter().zip(outcome.migrations).zip(activities);
        moves
            .enumerate()
            .map(|(number, ((way, migrated), activity))| {
                let (scene, from) = (Rc::clone(scene), Rc::clone(&from));
                let (bytes, what) = (Rc::clone(&bytes), what.clone());
                async move {
                    let link = (spread == Spread::OneLink).then_some(number);
                    let journey = Journey {
                        scene: Rc::clone(&scene),
                        vm: Rc::clone(&way.vm),
                        life: way.vm.life.get(),
                        from,
                        to: Rc::clone(&way.to),
                        activity,
                        stop,
                    };
                    let moved = journey.go(&migrated, link).await;
                    let (name, to) = (&way.vm.name, &way.to.name);
                    match moved {
                        Some(Arrived { sent, rounds, dark }) => {
                            bytes.set(bytes.get() + sent);
                            let (sent, dark) = (amount(sent), seconds(dark));
                            scene.log.tell(format!(
                                "{what}: {name} is on host {to}, {sent} in {rounds} rounds, dark for {dark}"
                            ));
                        }
                        None if scene.is_over() => {}
                        None => scene.log.tell(format!(
                            "{what}: {name} does not move: it or a host was lost"
                        )),
                    }
                }
            })
            .collect::<Vec<_>>()
    });
    let moves: Vec<_> = moves.collect();
    together(&scene.world, moves.into_iter()).await;
    if !scene.is_over() {
        let (all, took) = (told.bytes.get(), told.took());
        told.end(&format!("{}{} of memory", amount(all), rate(all, took)));
    }
}

/// The hypervisor's way.
fn method(scene: &Scene, vm: &VmRig, how: plan::Migration) -> Method {
    match how.method {
        plan::Method::Tcp if scene.is_hyper_v(vm) => Method::HYPER_V_TCP,
        plan::Method::Tcp => Method::VSPHERE_5,
        plan::Method::Compressed => Method::HYPER_V_COMPRESSED,
        plan::Method::Multichannel => Method::HYPER_V_SMB,
        plan::Method::Rdma => Method::HYPER_V_SMB_DIRECT,
    }
}

/// The ports that VMs of a host move by, all of one network.
fn ports(scene: &Scene, host: &str) -> Vec<Rc<PortRig>> {
    let of = |carries: Carries| {
        let networks = scene.plan.networks.iter();
        let mut alike = networks.filter(|network| network.carries == carries);
        alike.find_map(|network| {
            let ports = scene.fabric.host_ports(host, &network.name);
            (!ports.is_empty()).then_some(ports)
        })
    };
    let found = of(Carries::Lan).or_else(|| of(Carries::Both));
    found.or_else(|| of(Carries::Storage)).unwrap_or_default()
}

/// Above this, vSphere takes a link for one of 10 GbE.
const TEN_GIGABIT: u64 = 5_000_000_000;

/// How it goes when nobody else is on the links, and what each VM does to its memory.
fn modelled(
    scene: &Scene,
    from: &HostRig,
    ways: &[MovingVm],
    how: plan::Migration,
) -> (Outcome, Vec<Activity>) {
    let method = method(scene, &ways[0].vm, how);
    let ports = ports(scene, &from.name);
    let Some(first) = ports.first() else {
        unreachable!("a host of a plan has ports to its storage")
    };
    let at_once = match how.at_once {
        Some(said) => usize::from(said),
        None if scene.is_hyper_v(&ways[0].vm) => Method::HYPER_V_AT_ONCE,
        None if first.link().bits_per_second < TEN_GIGABIT => Method::VSPHERE_5_AT_ONCE_GIGABIT,
        None => Method::VSPHERE_5_AT_ONCE_TEN_GIGABIT,
    };
    let to = ways.iter().map(|way| way.to.free_cores());
    let path = Path {
        links: ports.len(),
        link: *first.link(),
        free_cores: to.fold(from.free_cores(), f64::min),
        at_once,
    };
    let elapsed = scene.now().as_nanos() as f64 / 1e9;
    let moved = |(number, way): (usize, &MovingVm)| {
        let (compute, (operations, bytes)) = (way.vm.compute.get(), way.vm.did.get());
        let held = compute.held_bytes();
        Vm {
            memory_bytes: compute.memory_bytes,
            untouched_bytes: compute.memory_bytes - held,
            activity: Activity::io(
                held,
                operations as f64 / elapsed.max(1.0),
                bytes / operations.max(1),
            ),
            link: Some(number % ports.len()),
        }
    };
    let vms: Vec<Vm> = ways.iter().enumerate().map(moved).collect();
    let activities = vms.iter().map(|vm| vm.activity).collect();
    (migrate(&method, &path, &vms), activities)
}

/// Has the hosts' cores be used as the model says; those of the destinations evenly.
fn cores(scene: &Rc<Scene>, from: &Rc<HostRig>, ways: &[MovingVm], outcome: &Outcome) {
    let mut to: Vec<Rc<HostRig>> = Vec::new();
    for way in ways {
        if !to.iter().any(|host| host.name == way.to.name) {
            to.push(Rc::clone(&way.to));
        }
    }
    let (world, from) = (scene.world.clone(), Rc::clone(from));
    let (intervals, began) = (outcome.intervals.clone(), scene.world.now());
    scene.world.spawn(async move {
        for interval in intervals {
            let there = interval.destination_cores / to.len() as f64;
            world.sleep_until(began + interval.from).await;
            from.add_moving(interval.source_cores);
            to.iter().for_each(|host| host.add_moving(there));
            world.sleep_until(began + interval.to).await;
            from.add_moving(-interval.source_cores);
            to.iter().for_each(|host| host.add_moving(-there));
        }
    });
}

/// A round of what was dirtied late alone.
const NOTHING: Round = Round {
    memory_bytes: 0.0,
    wire_bytes: 0.0,
    duration: Duration::ZERO,
};

/// How memory goes in a round.
#[derive(Clone, Copy)]
struct Pace {
    memory_bytes_per_s: f64,
    /// Bytes on the links for one of memory.
    wire_share: f64,
}

impl Pace {
    /// None of a round of next to nothing.
    fn of(round: &Round) -> Option<Pace> {
        let seconds = round.duration.as_secs_f64();
        (seconds > 0.0 && round.memory_bytes >= 1.0).then(|| Pace {
            memory_bytes_per_s: round.memory_bytes / seconds,
            wire_share: round.wire_bytes / round.memory_bytes,
        })
    }
}

/// One VM on its way, with what it would be lost with.
#[derive(Clone)]
struct Journey {
    scene: Rc<Scene>,
    vm: Rc<VmRig>,
    life: u32,
    from: Rc<HostRig>,
    to: Rc<HostRig>,
    /// What it does to its memory.
    activity: Activity,
    /// When it may stop for the last round.
    stop: Stop,
}

/// A VM that got there.
struct Arrived {
    /// Bytes.
    sent: u64,
    rounds: usize,
    /// How long it ran nowhere.
    dark: Duration,
}

impl Journey {
    /// Whether it does not go on: VM or hosts are gone, or the run has ended.
    fn is_lost(&self) -> bool {
        let gone = self.vm.life.get() != self.life || self.from.is_down() || self.to.is_down();
        gone || self.scene.is_over()
    }

    /// None when it did not get there.
    async fn go(&self, migrated: &Migrated, link: Option<usize>) -> Option<Arrived> {
        let (world, vm) = (&self.scene.world, &self.vm);
        let copied: Duration = migrated.rounds.iter().map(|round| round.duration).sum();
        // What comes before the first round and after the last: building and resuming it.
        let last_round = migrated.rounds.last();
        let dark_round = last_round.map_or(Duration::ZERO, |round| round.duration);
        let resume = migrated.blackout().saturating_sub(dark_round);
        let build = migrated
            .resumed
            .saturating_sub(migrated.begun + copied + resume);
        world.sleep(migrated.begun + build).await;
        let (mut sent, mut rounds) = (0, 0);
        // Dirtied while links were busy; and how memory goes: the last round may have none.
        let (mut late_bytes, mut pace) = (0.0, None);
        if let Some((_, live)) = migrated.rounds.split_last() {
            let mut next = live.iter().copied();
            loop {
                let round = match next.next() {
                    Some(round) => round,
                    // More than the last round may have, and rounds are left.
                    None if self.goes_on(late_bytes, pace, rounds) => NOTHING,
                    None => break,
                };
                let (bytes, took) = self.round(&round, late_bytes, &mut pace, link).await;
                (sent, rounds) = (sent + bytes, rounds + 1);
                let dirty = |elapsed| self.activity.dirty_bytes(elapsed, migrated.speed);
                late_bytes = (dirty(took) - dirty(round.duration)).max(0.0);
                if self.is_lost() {
                    return None;
                }
            }
        }
        let dark = world.now();
        vm.halt.hold();
        if let Some(round) = last_round {
            let (bytes, _) = self.round(round, late_bytes, &mut pace, link).await;
            (sent, rounds) = (sent + bytes, rounds + 1);
        }
        if self.is_lost() {
            vm.halt.release();
            return None;
        }
        world.sleep(resume).await;
        let is_lost = self.is_lost();
        if !is_lost {
            self.scene.put(vm, &self.to);
        }
        vm.halt.release();
        let dark = world.now().since(dark);
        world.sleep(migrated.ended - migrated.resumed).await;
        (!is_lost).then_some(Arrived { sent, rounds, dark })
    }

    /// Whether what was dirtied late is worth another round while the VM runs.
    fn goes_on(&self, late_bytes: f64, pace: Option<Pace>, rounds: usize) -> bool {
        let goal = pace.map_or(0.0, |pace| {
            pace.memory_bytes_per_s * self.stop.goal.as_secs_f64()
        });
        late_bytes > goal && rounds < self.stop.rounds as usize
    }

    /// Sends a round with what was dirtied late, at the pace of the round, or of the one
    /// before if it has nothing of its own. Says how much it was and how long it took.
    async fn round(
        &self,
        round: &Round,
        late_bytes: f64,
        pace: &mut Option<Pace>,
        link: Option<usize>,
    ) -> (u64, Duration) {
        let began = self.scene.world.now();
        let (mut bytes, mut duration) = (round.wire_bytes, round.duration);
        *pace = Pace::of(round).or(*pace);
        if let Some(pace) = pace.filter(|_| late_bytes > 0.0) {
            bytes += late_bytes * pace.wire_share;
            duration += Duration::from_secs_f64(late_bytes / pace.memory_bytes_per_s);
        }
        self.send(bytes as u64, duration, link).await;
        (bytes as u64, self.scene.world.now().since(began))
    }

    /// Sends a round over one link or all of them, evenly over its time or longer.
    async fn send(&self, bytes: u64, duration: Duration, link: Option<usize>) {
        let (world, end) = (&self.scene.world, self.scene.world.now() + duration);
        let out = ports(&self.scene, &self.from.name);
        let into = ports(&self.scene, &self.to.name);
        let used: Vec<usize> = match link {
            Some(link) => vec![link % out.len()],
            None => (0..out.len()).collect(),
        };
        let each = bytes / used.len() as u64;
        let over = used.into_iter().map(|number| {
            let there = &into[number % into.len()];
            let ports = [Rc::clone(&out[number]), Rc::clone(there)];
            self.clone().over(ports, each, duration)
        });
        together(world, over).await;
        if !self.is_lost() && end > world.now() {
            world.sleep_until(end).await;
        }
    }

    async fn over(self, [out, into]: [Rc<PortRig>; 2], bytes: u64, duration: Duration) {
        let (world, began) = (&self.scene.world, self.scene.world.now());
        let mut sent = 0;
        while sent < bytes && !self.is_lost() {
            let piece = PIECE_BYTES.min(bytes - sent);
            between_hosts(world, &out, &into, piece).await;
            sent += piece;
            let due = began + duration.mul_f64(sent as f64 / bytes as f64);
            if due > world.now() {
                world.sleep_until(due).await;
            }
        }
    }
}
