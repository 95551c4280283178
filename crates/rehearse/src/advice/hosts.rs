//! Checks of hosts: memory and processors for the VMs, also after the loss of a host, and clusters.

use super::Severity::{Error, Info, Warning};
use super::{COMMON, Check, CheckFindings, NUMA, QUORUM, Scene, VCPUS};
use crate::plan::demand::Vm;
use site::human;
use site::plan::{Adapter, Machine, Plan};

/// Virtual processors for each core.
const VCPUS_MOST: f64 = 5.0;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "memory-overcommitted",
        severity: Warning,
        why: "VMs have more memory than their host: it swaps them out when they use it",
        mend: "plan more memory or hosts, or smaller VMs",
        source: COMMON,
        look: memory_overcommitted,
    },
    Check {
        name: "no-room-to-fail-over",
        severity: Warning,
        why: "when one host fails, the others have no memory for its VMs",
        mend: "plan so that one host less is enough",
        source: COMMON,
        look: no_room_to_fail_over,
    },
    Check {
        name: "single-host",
        severity: Warning,
        why: "nothing takes over the VMs when the host fails or is updated",
        mend: "plan two hosts or more",
        source: COMMON,
        look: single_host,
    },
    Check {
        name: "no-witness",
        severity: Error,
        why: "without a witness, losing the node that votes stops a Windows cluster of two",
        mend: "plan a small disk or a share as a witness (`witness = true`)",
        source: QUORUM,
        look: no_witness,
    },
    Check {
        name: "many-vcpus",
        severity: Warning,
        why: "more than five virtual processors to a core wait for each other",
        mend: "plan more cores or hosts, or fewer virtual processors",
        source: VCPUS,
        look: many_vcpus,
    },
    Check {
        name: "numa-spanning",
        severity: Info,
        why: "a VM that is larger than a NUMA node reaches part of its memory through another one",
        mend: "make VMs that fit a node, or show the guest its nodes",
        source: NUMA,
        look: numa_spanning,
    },
    Check {
        name: "emulated-adapter",
        severity: Info,
        why: "the paravirtual adapter gave 25 % more on the same drives in a published comparison, together with VMFS instead of raw mappings",
        mend: "take `adapter = \"pvscsi\"` for VMs with much I/O",
        source: "published VNX5700 site, PVSCSI and VMFS against LSI and raw mapping",
        look: emulated_adapter,
    },
    Check {
        name: "no-migration-network",
        severity: Info,
        why: "VMs move by the network for storage, or not at all",
        mend: "describe a network with `carries = \"lan\"` and give the hosts ports in it",
        source: COMMON,
        look: no_migration_network,
    },
];

/// Each host by number, as VMs name them.
fn numbered(plan: &Plan) -> Vec<(&Machine, String)> {
    let hosts = plan.hosts.iter();
    hosts
        .flat_map(|host| host.names().into_iter().map(move |name| (host, name)))
        .collect()
}

/// A finding for the first of the hosts that are described together.
fn once(seen: &mut CheckFindings, said: &mut Vec<usize>, host: &Machine, what: String) {
    if !said.contains(&host.line) {
        said.push(host.line);
        seen.add(host.line, what);
    }
}

fn memory_overcommitted(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let memory = scene.demand.memory_by_host(scene.plan);
    let mut said = Vec::new();
    for ((host, name), of_vms) in numbered(scene.plan).into_iter().zip(memory) {
        if of_vms > host.memory_bytes {
            let what = format!(
                "VMs of host {name:?} have {} of its {}",
                human(of_vms),
                human(host.memory_bytes)
            );
            once(seen, &mut said, host, what);
        }
    }
}

/// The sum; as much as there is a number for, of more than any site has.
fn total(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

fn no_room_to_fail_over(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let hosts = numbered(scene.plan);
    if hosts.len() < 2 {
        return;
    }
    let of_vms = total(scene.demand.memory_by_host(scene.plan).into_iter());
    let all = total(hosts.iter().map(|(host, _)| host.memory_bytes));
    let Some((largest, _)) = hosts.iter().max_by_key(|(host, _)| host.memory_bytes) else {
        return;
    };
    let left = all - largest.memory_bytes;
    if of_vms > left {
        let what = format!(
            "VMs have {}, and {} is left without one host like {:?}",
            human(of_vms),
            human(left),
            largest.name
        );
        seen.add(largest.line, what);
    }
}

fn single_host(scene: &Scene<'_>, seen: &mut CheckFindings) {
    if let [(host, name)] = numbered(scene.plan).as_slice() {
        seen.add(host.line, format!("{name:?} is the only host"));
    }
}

fn no_witness(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for host in scene
        .plan
        .hosts
        .iter()
        .filter(|host| host.count == 2 && !host.witness)
    {
        let is_windows = |vm_group: &&site::plan::VmGroup| {
            vm_group.adapter == Adapter::Vmbus && vm_group.hosts.contains(&host.name)
        };
        if scene
            .plan
            .vm_groups
            .iter()
            .any(|vm_group| is_windows(&vm_group))
        {
            seen.add(
                host.line,
                format!("the two hosts {:?} have no witness", host.name),
            );
        }
    }
}

fn many_vcpus(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let mut said = Vec::new();
    let vcpus = scene.demand.by_host(scene.plan, |vm| f64::from(vm.vcpus));
    for ((host, name), vcpus) in numbered(scene.plan).into_iter().zip(vcpus) {
        if vcpus > VCPUS_MOST * f64::from(host.cores) {
            let what = format!(
                "VMs of host {name:?} have {vcpus:.0} virtual processors on {} cores",
                host.cores
            );
            once(seen, &mut said, host, what);
        }
    }
}

fn numa_spanning(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let hosts = numbered(scene.plan);
    let mut said = Vec::new();
    for vm in &scene.demand.vms {
        let (host, _) = &hosts[vm.host];
        let Some(nodes) = host.numa_nodes else {
            continue;
        };
        let is_larger = |vm: &Vm| {
            vm.memory_bytes > host.memory_bytes / u64::from(nodes)
                || vm.vcpus > u32::from(host.cores) / u32::from(nodes)
        };
        if nodes > 1 && is_larger(vm) {
            let what = format!(
                "VM {} with {} and {} virtual processors is larger than a node of host {:?}",
                vm.role,
                human(vm.memory_bytes),
                vm.vcpus,
                host.name
            );
            once(seen, &mut said, host, what);
        }
    }
}

fn emulated_adapter(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for vm_group in scene
        .plan
        .vm_groups
        .iter()
        .filter(|vm_group| vm_group.adapter == Adapter::LsiSas)
    {
        seen.add(
            vm_group.line,
            format!(
                "VMs of VM group {:?} have an emulated LSI adapter",
                vm_group.name
            ),
        );
    }
}

fn no_migration_network(scene: &Scene<'_>, seen: &mut CheckFindings) {
    if numbered(scene.plan).len() < 2 {
        return;
    }
    for host in &scene.plan.hosts {
        let network = |name: &str| {
            scene
                .plan
                .networks
                .iter()
                .find(|network| network.name == name)
        };
        let mut networks = host
            .ports
            .iter()
            .filter_map(|ports| network(&ports.network));
        if !networks.any(|network| network.carries.lan()) {
            seen.add(
                host.line,
                format!(
                    "host {:?} has no network that its VMs can move by",
                    host.name
                ),
            );
        }
    }
}
