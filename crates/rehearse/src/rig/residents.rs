//! The load of VMs on their hosts beside their I/O: busy cores, and memory.

use super::Rig;
use super::vm::VmRig;
use super::wiring::vm_group_of;
use crate::error::RehearseError;
use crate::parts::host::HostRig;
use model::vm::{Residents, Unfit, Vm};
use site::plan::Plan;
use std::rc::Rc;
use workload::profile::Compute;

/// What a VM needs of its host. With dynamic memory it is given what it holds.
pub fn compute(said: &Compute) -> Vm {
    let whole = Vm {
        vcpus: said.vcpus.min(u32::from(u16::MAX)) as u16,
        memory_bytes: said.memory_bytes,
        busy_percent: said.cpu_percent.min(100) as u8,
        // Of one of which nothing is told, all.
        held_percent: match said.memory_percent {
            0 => 100,
            percent => percent.min(100) as u8,
        },
    };
    match said.dynamic_memory {
        true => Vm {
            memory_bytes: whole.held_bytes(),
            held_percent: 100,
            ..whole
        },
        false => whole,
    }
}

/// The VMs that are on a host, and those that may come.
///
/// # Errors
/// When they need more cores or memory than it has.
pub fn on(host: &HostRig, vms: &[Rc<VmRig>], more: &[&VmRig]) -> Result<Residents, Unfit> {
    let here = |vm: &&Rc<VmRig>| vm.host.borrow().name == host.name;
    let mut all: Vec<Vm> = vms.iter().filter(here).map(|vm| vm.compute.get()).collect();
    all.extend(more.iter().map(|vm| vm.compute.get()));
    let model = host.model();
    Residents::new(&all, model.processor.cores, model.memory_bytes)
}

/// Whether all VMs fit where they are.
///
/// # Errors
/// `Site`, with the line of the VM group that is on a host that has too little.
pub(super) fn check(plan: &Plan, rig: &Rig) -> Result<(), RehearseError> {
    for host in &rig.hosts {
        let Err(unfit) = on(host, &rig.vms, &[]) else {
            continue;
        };
        let mut here = rig.vms.iter().rev();
        let last = here.find(|vm| vm.host.borrow().name == host.name);
        let line = last.map_or(1, |vm| vm_group_of(plan, &vm.vm_group).line);
        let context = format!("host {:?}: {unfit}", host.name);
        return Err(RehearseError::site(line, context));
    }
    Ok(())
}

/// Has each host be as busy as its VMs make it. More than it has is cut off: when hosts are
/// lost, what is left is slow.
pub fn settle(hosts: &[Rc<HostRig>], vms: &[Rc<VmRig>]) {
    for host in hosts {
        let here = vms.iter().filter(|vm| vm.host.borrow().name == host.name);
        let busy = here.map(|vm| {
            let compute = vm.compute.get();
            f64::from(compute.vcpus) * f64::from(compute.busy_percent) / 100.0
        });
        host.set_resident(busy.sum());
    }
}
