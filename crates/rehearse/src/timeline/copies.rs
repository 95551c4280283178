//! Clones of VMs, and disks that move: by the array, or by the host, several VMs at once.
//!
//! The array clones by reference, within the pool. A host reads and writes all that is mapped,
//! over its links and back. Disks of a VM go one after the other.

use super::Scene;
use super::copy_method::{CopyMethod, make_like};
use super::host_copy::{Copying, seen};
use super::log::{Undertaking, amount, count, rate, seconds};
use super::moves;
use crate::parts::disk::DiskRig;
use crate::parts::gate::Gate;
use crate::parts::halt::together;
use crate::rig::vm::VmRig;
use crate::rig::wiring::vm_group_of;
use site::plan::{HostCopy, Luns};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

/// Works on VMs, so many of each host at once. Ends when all that began has ended; nothing
/// begins after a failure.
///
/// # Errors
/// The first failure.
async fn on_each<T: Future<Output = Result<(), String>> + 'static>(
    scene: &Scene,
    (vms, at_once): (&[Rc<VmRig>], usize),
    work: impl Fn(Rc<VmRig>) -> T,
) -> Result<(), String> {
    let mut hosts: BTreeMap<String, Rc<Gate>> = BTreeMap::new();
    let failure: Rc<RefCell<Option<String>>> = Rc::default();
    let tasks = vms.iter().map(|vm| {
        let host = vm.host.borrow().name.clone();
        let host = hosts
            .entry(host)
            .or_insert_with(|| Rc::new(Gate::new(at_once)));
        let (host, failure) = (Rc::clone(host), Rc::clone(&failure));
        let work = work(Rc::clone(vm));
        async move {
            let _place = host.pass().await;
            if failure.borrow().is_some() {
                return;
            }
            if let Err(why) = work.await {
                failure.borrow_mut().get_or_insert(why);
            }
        }
    });
    let tasks: Vec<_> = tasks.collect();
    together(&scene.world, tasks.into_iter()).await;
    failure.take().map_or(Ok(()), Err)
}

/// It has failed, unless the run has ended.
fn ended(scene: &Scene, undertaking: Undertaking<'_>, why: &str) {
    if !scene.is_over() {
        undertaking.fail(why);
    }
}

/// Clones VMs of a VM group.
pub(super) async fn clone(
    scene: &Rc<Scene>,
    (vm_group, vms): (&str, Vec<Rc<VmRig>>),
    how: CopyMethod,
) {
    let more = format!("{} by {}", count(vms.len(), "VM"), how.who());
    let cloning = scene
        .log
        .begin(format!("clone of VM group {vm_group}"), &more);
    let (several, teller) = (vms.len() > 1, cloning.teller());
    let work = |vm: Rc<VmRig>| {
        let (scene, teller) = (Rc::clone(scene), teller.clone());
        async move {
            for disk in &vm.disks {
                let name = format!("{}-clone{}", disk.volume.borrow().info().name, how.number);
                match how.by_host {
                    None => by_reference(&scene, disk, &name).await?,
                    Some(copy) => copied(&scene, (&vm, disk), &name, copy, &teller.bytes).await?,
                }
            }
            if several {
                teller.stage(&scene.log, &format!("{} is cloned", vm.name));
            }
            Ok(())
        }
    };
    if let Err(why) = on_each(scene, (&vms, how.at_once), work).await {
        return ended(scene, cloning, &why);
    }
    let (bytes, took) = (cloning.bytes.get(), cloning.took());
    let what = match how.by_host {
        None => "by reference: nothing was copied".to_owned(),
        Some(_) => format!("{}{} copied", amount(bytes), rate(bytes, took)),
    };
    cloning.end(&format!("{}, {what}", count(vms.len(), "VM")));
}

async fn by_reference(scene: &Scene, disk: &DiskRig, name: &str) -> Result<(), String> {
    let (pool, source) = (
        Rc::clone(&disk.pool.borrow()),
        disk.volume.borrow().info().name,
    );
    let at_unix_s = scene.now().as_nanos() / 1_000_000_000;
    let lane = pool.lane_of(&source)?;
    let cloned = lane.clone_volume(&source, name, false, at_unix_s).await;
    cloned.map(drop).map_err(|error| error.to_string())
}

async fn copied(
    scene: &Rc<Scene>,
    (vm, disk): (&VmRig, &DiskRig),
    name: &str,
    how: HostCopy,
    bytes: &Rc<Cell<u64>>,
) -> Result<(), String> {
    let pool = Rc::clone(&disk.pool.borrow());
    let made = make_like(disk, (&pool, name), false).await?;
    let from = disk.volume.borrow().clone();
    // On the datastore of its VM, where there is one.
    let lun_name = match vm_group_of(&scene.plan, &vm.vm_group).luns {
        Luns::Shared(_) => &disk.lun_name,
        Luns::PerDisk | Luns::PerVm => name,
    };
    let from = seen(scene, (vm, &disk.lun_name), (&pool, from));
    let to = seen(scene, (vm, lun_name), (&pool, made));
    Copying::new((from, to), how, bytes).run(scene).await
}

/// Moves disks of a VM group to a pool, so many of each VM from the first on.
pub(super) async fn move_storage(
    scene: &Rc<Scene>,
    (vm_group, disks): (&str, usize),
    to: &str,
    how: CopyMethod,
) {
    let to = scene.pool(to);
    let vms = scene.of_vm_group(vm_group);
    let all: usize = vms.iter().map(|vm| vm.disks.len().min(disks)).sum();
    let (all_said, who) = (count(all, "disk"), how.who());
    let more = format!("{all_said} to pool {} by {who}", to.name);
    let moving = scene
        .log
        .begin(format!("move of VM group {vm_group}"), &more);
    let teller = moving.teller();
    let longest: Rc<Cell<Duration>> = Rc::default();
    let work = |vm: Rc<VmRig>| {
        let (scene, to, teller) = (Rc::clone(scene), Rc::clone(&to), teller.clone());
        let longest = Rc::clone(&longest);
        async move {
            for disk in vm.disks.iter().take(disks) {
                let still = moves::disk(&scene, (&vm, disk), &to, how, &teller.bytes).await?;
                longest.set(longest.get().max(still));
                if all > 1 {
                    let name = disk.volume.borrow().info().name;
                    teller.stage(&scene.log, &format!("{name} is there"));
                }
            }
            Ok(())
        }
    };
    if let Err(why) = on_each(scene, (&vms, how.at_once), work).await {
        return ended(scene, moving, &why);
    }
    let (bytes, took) = (moving.bytes.get(), moving.took());
    let longest = seconds(longest.get());
    moving.end(&format!(
        "{}{}, {all_said}; a disk stood still for {longest} at most",
        amount(bytes),
        rate(bytes, took),
    ));
}
