//! The power loss of a host, and the start of its VMs on other hosts.
//!
//! Hyper-V's VMs (those with VMBus) are a failover cluster's, which goes on only with a
//! majority of its votes; others are restarted by vSphere HA, which asks for none. A boot goes
//! through the array as any I/O does.

use super::Scene;
use super::boot;
use super::log::{count, seconds};
use crate::rig::vm::VmRig;
use crate::rig::wiring::host_of;
use engine::World;
use model::availability::{
    Adjustment, Cluster, FailoverCluster, HypervisorRestart, Member, Outage, Service, Witness,
    defaults,
};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

/// How VMs are started elsewhere.
pub(super) struct Restart {
    /// Until it is begun, where other than the hypervisor's.
    pub detection: Option<Duration>,
    /// I/Os of a boot.
    pub operations: u32,
    /// After the boot until the service is back, where other than a database's.
    pub recovery: Option<Duration>,
}

/// A host loses its power.
pub(super) async fn host_fails(scene: &Rc<Scene>, name: &str, restart: Restart) {
    let host = scene.host(name);
    if host.is_down() {
        return scene
            .log
            .tell(format!("host {name} fails, which is down already"));
    }
    host.set_down(true);
    let vms = scene.on_host(name);
    vms.iter().for_each(|vm| vm.stop());
    let more = format!("{} stop", count(vms.len(), "VM"));
    let outage = scene.log.begin(format!("outage of host {name}"), &more);
    let Some(first) = vms.first() else {
        return outage.end("nothing was on it");
    };
    let is_hyper_v = scene.is_hyper_v(first);
    if is_hyper_v && !goes_on(scene, &vms) {
        return outage.fail(
            "too few votes of its cluster are left, so it stops, and no VM is started elsewhere: \
             give it a witness or more hosts",
        );
    }
    let stages = match restart.detection {
        Some(said) => Outage::default().then("detected", said),
        None => until_started(is_hyper_v),
    };
    for stage in stages
        .stages
        .iter()
        .filter(|stage| !stage.duration.is_zero())
    {
        scene.world.sleep(stage.duration).await;
        outage.stage(&format!("{} ({})", stage.name, seconds(stage.duration)));
    }
    let placed = place(scene, &vms);
    if placed.len() < vms.len() {
        let left = count(vms.len() - placed.len(), "VM");
        outage.stage(&format!("{left} stay off: no host of the group has room"));
    }
    if placed.is_empty() {
        return outage.fail("no VM is started elsewhere");
    }
    outage.stage(&format!("{} start elsewhere", count(placed.len(), "VM")));
    let recovery = restart
        .recovery
        .unwrap_or(defaults::SQL_SERVER_RECOVERY_MEAN);
    boot::rise(scene, &outage, placed, (restart.operations, recovery)).await;
    boot::finish(scene, outage);
}

/// From the failure until VMs are started.
fn until_started(is_hyper_v: bool) -> Outage {
    let service = Service {
        offline: Duration::ZERO,
        online: Duration::ZERO,
        recovery: Duration::ZERO,
    };
    match is_hyper_v {
        true => FailoverCluster::WINDOWS.node_lost(&service),
        false => HypervisorRestart::VSPHERE_5.host_lost(&service, Duration::ZERO),
    }
}

/// VMs with a host that takes them, each on it by now, in turn.
fn place(scene: &Scene, vms: &[Rc<VmRig>]) -> Vec<Rc<VmRig>> {
    let mut placed = Vec::new();
    for (turn, vm) in vms.iter().enumerate() {
        if let Some(host) = scene.place(vm, turn) {
            scene.put(vm, &host);
            placed.push(Rc::clone(vm));
        }
    }
    placed
}

/// Whether the cluster goes on: all hosts of the VM groups of these VMs, less those that are
/// down, lost in the order of the file. It has a witness if the file says so of one of them.
fn goes_on(scene: &Scene, vms: &[Rc<VmRig>]) -> bool {
    let groups: BTreeSet<&str> = vms.iter().map(|vm| vm.vm_group.as_str()).collect();
    let of_groups = groups.iter().flat_map(|of| scene.hosts_of_vm_group(of));
    let nodes: BTreeSet<String> = of_groups.collect();
    let nodes: Vec<String> = nodes.into_iter().collect();
    let witness = match nodes.iter().any(|node| host_of(&scene.plan, node).witness) {
        true => Witness::Disk,
        false => Witness::None,
    };
    let mut cluster = Cluster::new(nodes.len(), witness, Adjustment::NodesAndWitness);
    for (number, node) in nodes.iter().enumerate() {
        if scene.host(node).is_down() {
            cluster.lose(Member::Node(number));
        }
    }
    cluster.runs()
}
