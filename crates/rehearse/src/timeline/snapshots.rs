//! Snapshots of VMs' disks, and VMs that go back to them.

use super::Scene;
use super::log::{count, seconds};
use crate::parts::disk::DiskRig;
use crate::parts::world::RigWorld;
use crate::rig::vm::VmRig;
use engine::{Lane, World};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Snapshots all disks of a VM group, VM by VM; those of a VM in one lane of a pool at one instant.
pub(super) async fn snapshot(scene: &Rc<Scene>, number: usize, vm_group: &str) {
    let vms = scene.of_vm_group(vm_group);
    let disks: usize = vms.iter().map(|vm| vm.disks.len()).sum();
    let more = format!("{} of {}", count(disks, "disk"), count(vms.len(), "VM"));
    let taking = scene
        .log
        .begin(format!("snapshot of VM group {vm_group}"), &more);
    let mut longest = Duration::ZERO;
    for vm in &vms {
        let began = scene.world.now();
        if let Err(error) = of_vm(scene, number, vm).await {
            return taking.fail(&error);
        }
        longest = longest.max(scene.world.now().since(began));
    }
    let longest = seconds(longest);
    taking.end(&format!(
        "{} taken, at most {longest} a VM",
        count(disks, "disk")
    ));
}

/// Volumes, each with its snapshot.
type Pairs = Vec<(String, String)>;

async fn of_vm(scene: &Scene, number: usize, vm: &VmRig) -> Result<(), String> {
    let mut of_lanes: BTreeMap<(String, u16), (Lane<RigWorld>, Pairs)> = BTreeMap::new();
    for disk in &vm.disks {
        let (pool, volume) = (Rc::clone(&disk.pool.borrow()), name(disk));
        let snapshot = format!("{volume}@event{number}");
        let lane = pool.lane_of(&volume)?;
        let entry = of_lanes.entry((pool.name.clone(), lane.lane()));
        let (_, pairs) = entry.or_insert((lane.clone(), Vec::new()));
        pairs.push((volume, snapshot));
    }
    let at_unix_s = scene.now().as_nanos() / 1_000_000_000;
    for (lane, pairs) in of_lanes.values() {
        let all = pairs
            .iter()
            .map(|(volume, snapshot)| (volume.as_str(), snapshot.as_str()));
        let all: Vec<(&str, &str)> = all.collect();
        let together = lane.snapshot_together(&all, at_unix_s, async { true });
        together.await.map_err(|error| error.to_string())?;
        scene.snapshots.borrow_mut().extend(pairs.iter().cloned());
    }
    Ok(())
}

fn name(disk: &DiskRig) -> String {
    disk.volume.borrow().info().name
}

/// Restores all disks of a VM group from their last snapshots. Its VMs stop for it: what they
/// have in memory is of another time.
pub(super) async fn restore(scene: &Rc<Scene>, vm_group: &str) {
    let vms = scene.of_vm_group(vm_group);
    let disks: usize = vms.iter().map(|vm| vm.disks.len()).sum();
    let more = format!(
        "{} stop for {}",
        count(vms.len(), "VM"),
        count(disks, "disk")
    );
    let restoring = scene
        .log
        .begin(format!("restore of VM group {vm_group}"), &more);
    vms.iter().for_each(|vm| vm.halt.hold());
    for disk in vms.iter().flat_map(|vm| &vm.disks) {
        disk.quiet(&scene.world).await;
    }
    restoring.stage("what was under way has ended");
    let restored = of_disks(scene, &vms).await;
    vms.iter().for_each(|vm| vm.halt.release());
    match restored {
        Ok(()) => restoring.end(&format!("{} are as they were", count(disks, "disk"))),
        Err(why) => restoring.fail(&why),
    }
}

async fn of_disks(scene: &Scene, vms: &[Rc<VmRig>]) -> Result<(), String> {
    for disk in vms.iter().flat_map(|vm| &vm.disks) {
        let (pool, volume) = (Rc::clone(&disk.pool.borrow()), name(disk));
        let snapshot = scene.snapshots.borrow().get(&volume).cloned();
        let snapshot = snapshot.ok_or_else(|| format!("there is no snapshot of '{volume}'"))?;
        let restored = pool
            .lane_of(&volume)?
            .restore(&volume, &snapshot, None, 0)
            .await;
        restored.map_err(|error| error.to_string())?;
    }
    Ok(())
}
