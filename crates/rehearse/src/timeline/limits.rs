//! Limits of virtual disks that change while their VMs run.

use super::Scene;
use super::log::count;
use crate::error::RehearseError;
use crate::rig::vm::VmRig;
use std::rc::Rc;

/// The VMs that an event means: all of a VM group, or the one that it names.
fn meant(scene: &Scene, vm_group: &str, vm: Option<&str>) -> Vec<Rc<VmRig>> {
    let mut vms = scene.of_vm_group(vm_group);
    if let Some(name) = vm {
        vms.retain(|vm| vm.name == name);
    }
    vms
}

/// The VM is there.
///
/// # Errors
/// `Site` for a VM that the VM group does not have.
pub(super) fn check(
    scene: &Scene,
    line: usize,
    (vm_group, vm): (&str, Option<&str>),
) -> Result<(), RehearseError> {
    if !meant(scene, vm_group, vm).is_empty() {
        return Ok(());
    }
    let all = scene.of_vm_group(vm_group);
    let names: Vec<&str> = all.iter().map(|vm| vm.name.as_str()).collect();
    let context = format!(
        "event limit-iops: VM group {vm_group:?} has no VM {:?}; allowed: {}",
        vm.unwrap_or_default(),
        names.join(", ")
    );
    Err(RehearseError::site(line, context))
}

/// Gives each disk another limit. It holds from now on for what comes to it; it has ended,
/// as told, when all that had passed before is back.
pub(super) async fn set(scene: &Scene, (vm_group, vm): (&str, Option<&str>), iops: Option<u32>) {
    let vms = meant(scene, vm_group, vm);
    let disks: Vec<_> = vms.iter().flat_map(|vm| &vm.disks).collect();
    let passed: u64 = disks.iter().map(|disk| disk.limit.set(iops)).sum();
    let limit = iops.map_or("no limit".to_owned(), |iops| format!("{iops} IO/s"));
    let whose = match vm {
        Some(name) => format!("VM {name}"),
        None => format!("VM group {vm_group}"),
    };
    let more = format!(
        "{limit} for {}, {passed} I/Os are past it",
        count(disks.len(), "disk")
    );
    let change = scene
        .log
        .begin(format!("change of the limit of {whose}"), &more);
    for disk in disks {
        disk.limit.holds(&scene.world).await;
    }
    change.end("what was past it is back");
}
