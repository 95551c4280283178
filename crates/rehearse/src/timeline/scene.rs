//! The scene that events act on: all of a rig, and the load.

use super::log::Log;
use super::log::{RunEvent, Undertook};
use super::watch;
use crate::parts::controller::ControllerRig;
use crate::parts::host::HostRig;
use crate::parts::pool::PoolRig;
use crate::parts::world::RigWorld;
use crate::rig::vm::{Ledger, StreamRun, VmRig};
use crate::rig::wiring::vm_group_of;
use crate::rig::{Fabric, Rig, Wiring, residents};
use base::Time;
use engine::World;
use site::plan::{Adapter, Plan};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use workload::kpi::Window;

/// What events act on.
pub struct Scene {
    pub(super) world: RigWorld,
    pub(super) plan: Plan,
    /// When the run began.
    pub(super) began: Time,
    window: Window,
    pub(super) seed: u64,
    pub(super) log: Log,
    pub(super) controllers: Vec<Rc<ControllerRig>>,
    pub(super) pools: Vec<Rc<PoolRig>>,
    pub(super) hosts: Vec<Rc<HostRig>>,
    pub(super) vms: Vec<Rc<VmRig>>,
    pub(super) fabric: Rc<Fabric>,
    pub(super) wiring: Rc<Wiring>,
    pub(super) ledger: Rc<Ledger>,
    pub(super) streams: Vec<Rc<StreamRun>>,
    /// Of each volume, its last snapshot.
    pub(super) snapshots: RefCell<BTreeMap<String, String>>,
    /// Of each pool, the last event of the engine's that was told.
    pub(super) heard: RefCell<Vec<watch::Heard>>,
}

impl Scene {
    pub(super) fn new(
        plan: &Plan,
        rig: &Rig,
        (window, seed): (Window, u64),
        (ledger, streams): (&Rc<Ledger>, &[Rc<StreamRun>]),
    ) -> Scene {
        Scene {
            world: rig.world.clone(),
            plan: plan.clone(),
            began: rig.world.now(),
            window,
            seed,
            log: Log::new(&rig.world),
            controllers: rig.controllers.clone(),
            pools: rig.pools.clone(),
            hosts: rig.hosts.clone(),
            vms: rig.vms.clone(),
            fabric: Rc::clone(&rig.fabric),
            wiring: Rc::clone(&rig.wiring),
            ledger: Rc::clone(ledger),
            streams: streams.to_vec(),
            snapshots: RefCell::default(),
            heard: RefCell::default(),
        }
    }

    /// What happened; nothing happens any more.
    pub fn finish(&self) -> (Vec<RunEvent>, Vec<Undertook>) {
        watch::hear(self);
        self.log.take()
    }

    /// Time of the run.
    pub(super) fn now(&self) -> Time {
        Time(self.world.now().since(self.began).as_nanos() as u64)
    }

    /// Whether nothing begins any more.
    pub(super) fn is_over(&self) -> bool {
        self.now() >= self.window.end
    }

    pub(super) fn of_vm_group(&self, vm_group: &str) -> Vec<Rc<VmRig>> {
        let of_vm_group = self.vms.iter().filter(|vm| vm.vm_group == vm_group);
        of_vm_group.cloned().collect()
    }

    pub(super) fn on_host(&self, host: &str) -> Vec<Rc<VmRig>> {
        let here = self.vms.iter().filter(|vm| vm.host.borrow().name == host);
        here.cloned().collect()
    }

    /// The hosts that a VM group's VMs may be on.
    pub(super) fn hosts_of_vm_group(&self, vm_group: &str) -> Vec<String> {
        let vm_group = vm_group_of(&self.plan, vm_group);
        let hosts = self.plan.hosts.iter();
        let of_vm_group = hosts.filter(|host| vm_group.hosts.contains(&host.name));
        of_vm_group.flat_map(|host| host.names()).collect()
    }

    pub(super) fn pool(&self, name: &str) -> Rc<PoolRig> {
        match self.pools.iter().find(|pool| pool.name == name) {
            Some(pool) => Rc::clone(pool),
            None => unreachable!("a plan's names lead somewhere: {name}"),
        }
    }

    pub(super) fn host(&self, name: &str) -> Rc<HostRig> {
        match self.hosts.iter().find(|host| host.name == name) {
            Some(host) => Rc::clone(host),
            None => unreachable!("a plan's names lead somewhere: {name}"),
        }
    }

    pub(super) fn controller(&self, name: &str) -> Rc<ControllerRig> {
        match self.controllers.iter().find(|other| other.name == name) {
            Some(controller) => Rc::clone(controller),
            None => unreachable!("a plan's names lead somewhere: {name}"),
        }
    }

    /// The partner of a controller.
    pub(super) fn partner(&self, name: &str) -> Option<Rc<ControllerRig>> {
        let mut said = self.plan.controllers.iter();
        let partner = said.find(|other| other.name == name)?.partner.as_ref()?;
        Some(self.controller(partner))
    }

    /// Whether a VM runs under Hyper-V, by the way that it sees its disks.
    pub(super) fn is_hyper_v(&self, vm: &VmRig) -> bool {
        vm_group_of(&self.plan, &vm.vm_group).adapter == Adapter::Vmbus
    }

    /// Another host of its VM group for a VM, from the `turn`th on: one that is up and has the
    /// memory and the cores.
    pub(super) fn place(&self, vm: &VmRig, turn: usize) -> Option<Rc<HostRig>> {
        self.place_beside(vm, turn, &[])
    }

    /// The same, where others are to come as well.
    pub(super) fn place_beside(
        &self,
        vm: &VmRig,
        turn: usize,
        coming: &[(Rc<HostRig>, Rc<VmRig>)],
    ) -> Option<Rc<HostRig>> {
        let here = vm.host.borrow().name.clone();
        let others: Vec<Rc<HostRig>> = self
            .hosts_of_vm_group(&vm.vm_group)
            .iter()
            .filter(|name| **name != here)
            .map(|name| self.host(name))
            .filter(|host| !host.is_down())
            .collect();
        let fits = |host: &&Rc<HostRig>| {
            let there = coming.iter().filter(|(to, _)| to.name == host.name);
            let mut all: Vec<&VmRig> = there.map(|(_, vm)| &**vm).collect();
            all.push(vm);
            residents::on(host, &self.vms, &all).is_ok()
        };
        let from = turn % others.len().max(1);
        let mut turned = others[from..].iter().chain(&others[..from]);
        turned.find(fits).cloned()
    }

    /// A VM is on another host from now on.
    pub(super) fn put(&self, vm: &VmRig, host: &Rc<HostRig>) {
        vm.put_on(host, &self.wiring);
        residents::settle(&self.hosts, &self.vms);
    }
}
