//! The VMs of a VM group: the profile's, with the load, memory and disks that the VM group sets.
//!
//! Invariant: what a run does and what is added up without one ([`crate::plan::demand`]) come from
//! here, so that both are of the same load.

use site::plan::VmGroup;
use std::sync::Arc;
use std::time::Duration;
use workload::profile::{Pacing, VmProfile};
use workload::threads::Threads;

/// Threads with what the VM group says of them.
fn as_said(vm_group: &VmGroup, threads: Threads) -> Threads {
    let count = vm_group.outstanding.map_or(threads.count, usize::from);
    Threads {
        count,
        connections: vm_group
            .connections
            .map(usize::from)
            .or(threads.connections),
        think: vm_group.think.unwrap_or(threads.think),
        work: vm_group.work.unwrap_or(threads.work),
        ..threads
    }
}

/// What goes by in the loops of one of its VMs from the end of an operation to the next one. Where
/// the VM has threads, they are who thinks, and not what it does beside them.
pub fn loops_think(vm_group: &VmGroup, vm: &VmProfile) -> Duration {
    let said = vm_group.think.filter(|_| !vm.has_threads());
    said.unwrap_or_default()
}

/// `vm` as one of `vm_group`: rates, loops, threads and traces times its scale. A loop has one
/// operation under way at least. Where the VM has threads, what the VM group says of operations
/// under way is their number, and its loops stay as deep as the profile has them.
pub fn of(vm_group: &VmGroup, vm: &VmProfile) -> VmProfile {
    let mut vm = vm.clone();
    let depth = vm_group.outstanding.filter(|_| !vm.has_threads());
    for stream in &mut vm.streams {
        match &mut stream.pacing {
            Pacing::Open { per_second } => *per_second *= vm_group.scale,
            Pacing::Closed { outstanding } => {
                let said = depth.map_or(*outstanding, usize::from);
                *outstanding = ((said as f64 * vm_group.scale).round() as usize).max(1);
                stream.outstanding_max = *outstanding;
            }
            Pacing::Threads(threads) => {
                let threads = as_said(vm_group, *threads).scaled(vm_group.scale);
                stream.set_threads(threads);
            }
            Pacing::Commits { .. } => {}
        }
        if let Some(trace) = &mut stream.trace {
            Arc::make_mut(trace).speed *= vm_group.scale;
        }
    }
    vm.settle();
    for (disk, bytes) in vm.disks.iter_mut().zip(&vm_group.disk_bytes) {
        disk.nominal_bytes = *bytes;
    }
    if let Some(memory_bytes) = vm_group.memory_bytes {
        vm.compute.memory_bytes = memory_bytes;
    }
    vm
}
