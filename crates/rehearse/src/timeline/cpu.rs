//! Virtual processors that VMs get while they run.
//!
//! Transactions of its threads work on the new ones from then on. What a VM asks for grows as the
//! law of [`model::scalability`] says of its processors, with the contention that the event gives;
//! coherency is not known and taken for none. Whether it was the processors that held it back,
//! nobody says: it is taken to be so.

use super::Scene;
use super::log::count;
use crate::rig::residents;
use crate::rig::vm::VmRig;
use engine::World;
use model::scalability::Scalability;
use std::rc::Rc;

/// Gives each VM of a VM group so many more.
pub(super) fn add(scene: &Rc<Scene>, vm_group: &str, vcpus: u16, contention: f64) {
    let (vms, law) = (scene.of_vm_group(vm_group), Scalability::amdahl(contention));
    let (mut least, mut most) = (f64::MAX, f64::MIN);
    let mut refused = 0;
    for vm in &vms {
        let before = vm.compute.get().vcpus;
        if !give(scene, vm, vcpus) {
            refused += 1;
            continue;
        }
        let of = |vcpus: u16| law.capacity(u32::from(vcpus.max(1)));
        let factor = of(vm.compute.get().vcpus) / of(before);
        (least, most) = (least.min(factor), most.max(factor));
        let own = scene
            .streams
            .iter()
            .filter(|stream| Rc::ptr_eq(stream.vm(), vm));
        own.for_each(|stream| stream.speed_up(factor));
    }
    residents::settle(&scene.hosts, &scene.vms);
    let given = vms.len() - refused;
    if given > 0 {
        scene.log.tell(format!(
            "VM group {vm_group}: {} get {} more each, and ask for {least:.2} to {most:.2} times as much",
            count(given, "VM"),
            count(vcpus.into(), "vCPU")
        ));
    }
    if refused > 0 {
        scene.log.tell(format!(
            "VM group {vm_group}: {} get no more vCPUs: their host has too few cores",
            count(refused, "VM")
        ));
    }
}

/// Gives a VM so many more; whether its host has the cores.
fn give(scene: &Scene, vm: &VmRig, vcpus: u16) -> bool {
    let before = vm.compute.get();
    let after = model::vm::Vm {
        vcpus: before.vcpus.saturating_add(vcpus),
        ..before
    };
    vm.compute.set(after);
    if residents::on(&vm.host.borrow(), &scene.vms, &[]).is_err() {
        vm.compute.set(before);
        return false;
    }
    let more = usize::from(after.vcpus - before.vcpus);
    vm.vcpus.borrow_mut().grow(scene.world.now(), more);
    true
}
