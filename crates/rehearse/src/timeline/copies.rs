//! Clones of VMs, and disks that move to another pool: by the array, or by the host.
//!
//! The array clones by reference, within the pool, and moves by the engine's own way between
//! pools, while the VM writes. A host reads and writes all that is mapped; what its VM writes
//! below where the copy is goes to both, and for the switch the VM stands still for a moment.

use super::Scene;
use super::host_copy::{Copying, seen};
use super::log::{Undertaking, amount, count, rate, seconds};
use crate::disk::{DiskRig, Twin};
use crate::rig::PoolRig;
use crate::rig::wiring::block_of;
use crate::vm::VmRig;
use crate::world::RigWorld;
use engine::pool::OtherPool;
use engine::volume::Elsewhere;
use engine::{Pool, Volume, World};
use site::plan::HostCopy;
use std::rc::Rc;
use std::time::Duration;

/// Clones VMs of a block, one after the other.
pub(super) async fn clone(
    scene: &Rc<Scene>,
    number: usize,
    (block, vms): (&str, Vec<Rc<VmRig>>),
    by_host: Option<HostCopy>,
) {
    let more = format!("{} by {}", count(vms.len(), "VM"), who(by_host));
    let cloning = scene.log.begin(format!("clone of block {block}"), &more);
    for vm in &vms {
        for disk in &vm.disks {
            let name = format!("{}-clone{number}", disk.volume.borrow().info().name);
            let cloned = match by_host {
                None => by_reference(scene, disk, &name).await,
                Some(how) => copied(scene, (vm, disk), &name, how, &cloning).await,
            };
            if let Err(why) = cloned {
                return ended(scene, cloning, &why);
            }
        }
        if vms.len() > 1 {
            cloning.stage(&format!("{} is cloned", vm.name));
        }
    }
    let (bytes, took) = (cloning.bytes.get(), cloning.took());
    let how = match by_host {
        None => "by reference: nothing was copied".to_owned(),
        Some(_) => format!("{}{} copied", amount(bytes), rate(bytes, took)),
    };
    cloning.end(&format!("{}, {how}", count(vms.len(), "VM")));
}

fn who(by_host: Option<HostCopy>) -> String {
    match by_host {
        None => "the array".to_owned(),
        Some(how) => format!(
            "the host, {} pieces of {} KiB at a time",
            how.outstanding,
            how.transfer_bytes >> 10
        ),
    }
}

/// It has failed, unless the run has ended.
fn ended(scene: &Scene, undertaking: Undertaking<'_>, why: &str) {
    if !scene.is_over() {
        undertaking.fail(why);
    }
}

async fn by_reference(scene: &Scene, disk: &DiskRig, name: &str) -> Result<(), String> {
    let (pool, source) = (
        Rc::clone(&disk.pool.borrow()),
        disk.volume.borrow().info().name,
    );
    let at_unix_s = scene.now().as_nanos() / 1_000_000_000;
    let cloned = pool
        .pool
        .clone_volume(&source, name, false, at_unix_s)
        .await;
    cloned.map(drop).map_err(|error| error.to_string())
}

async fn copied(
    scene: &Rc<Scene>,
    (vm, disk): (&VmRig, &DiskRig),
    name: &str,
    how: HostCopy,
    undertaking: &Undertaking<'_>,
) -> Result<(), String> {
    let pool = Rc::clone(&disk.pool.borrow());
    let made = make(scene, vm, (&pool, name), disk.size_bytes).await?;
    let from = disk.volume.borrow().clone();
    let from = seen(scene, (vm, &disk.lun_name), (&pool, from), how);
    let to = seen(scene, (vm, name), (&pool, made), how);
    Copying::new((from, to), how, &undertaking.bytes)
        .run(scene)
        .await
}

/// An empty volume like those of the VM's block.
async fn make(
    scene: &Scene,
    vm: &VmRig,
    (pool, name): (&PoolRig, &str),
    size_bytes: u64,
) -> Result<Volume<RigWorld>, String> {
    let block = block_of(&scene.plan, &vm.block);
    pool.make_volume(block, name, size_bytes).await
}

/// Moves all disks of a block to a pool, one after the other.
pub(super) async fn move_storage(
    scene: &Rc<Scene>,
    block: &str,
    to: &str,
    by_host: Option<HostCopy>,
) {
    let to = scene.pool(to);
    let vms = scene.of_block(block);
    let of_vms = vms
        .iter()
        .flat_map(|vm| vm.disks.iter().map(move |disk| (vm, disk)));
    let elsewhere = of_vms.filter(|(_, disk)| disk.pool.borrow().name != to.name);
    let disks: Vec<(&Rc<VmRig>, &Rc<DiskRig>)> = elsewhere.collect();
    let more = format!(
        "{} to pool {} by {}",
        count(disks.len(), "disk"),
        to.name,
        who(by_host)
    );
    let moving = scene.log.begin(format!("move of block {block}"), &more);
    let mut longest = Duration::ZERO;
    for (vm, disk) in &disks {
        let moved = match by_host {
            None => by_array(scene, (vm, disk), &to, &moving).await,
            Some(how) => by_its_host(scene, (vm, disk), &to, how, &moving).await,
        };
        match moved {
            Ok(still) => longest = longest.max(still),
            Err(why) => return ended(scene, moving, &why),
        }
        if disks.len() > 1 {
            moving.stage(&format!("{} is there", disk.volume.borrow().info().name));
        }
    }
    let (bytes, took) = (moving.bytes.get(), moving.took());
    let longest = seconds(longest);
    moving.end(&format!(
        "{}{}, {}; a disk stood still for {longest} at most",
        amount(bytes),
        rate(bytes, took),
        count(disks.len(), "disk")
    ));
}

fn other(pool: &Pool<RigWorld>) -> OtherPool {
    let info = pool.info();
    OtherPool {
        uuid: info.uuid,
        name: info.name,
    }
}

/// By the engine, while the VM works. Says how long the volume stood still.
async fn by_array(
    scene: &Scene,
    (vm, disk): (&VmRig, &DiskRig),
    to: &Rc<PoolRig>,
    undertaking: &Undertaking<'_>,
) -> Result<Duration, String> {
    let from = Rc::clone(&disk.pool.borrow());
    let volume = disk.volume.borrow().clone();
    let (info, about) = (Elsewhere::info(&volume), volume.about());
    let (here, there) = (&from.pool, &to.pool);
    let refused = |error: engine::PoolError| error.to_string();
    let copy = there.begin_arrival(&info, &about, &other(here)).await;
    let copy = copy.map_err(refused)?;
    let departing = here.begin_departure(&info.name, Rc::new(copy), None).await;
    let (_, mirror) = departing.map_err(refused)?;
    volume.copy_to(&mirror).await?;
    let bytes = &undertaking.bytes;
    bytes.set(bytes.get() + mirror.progress().data_bytes);
    let arrive = async |info, about| there.arrive(&info, &about).await;
    let handed = here.hand_over(info.uuid, &other(there), arrive).await;
    let still = handed.map_err(refused)?;
    here.end_departure(info.uuid).await.map_err(refused)?;
    there.end_arrival(info.uuid).await.map_err(refused)?;
    let moved = there.volume_of(info.uuid);
    let moved = moved.ok_or_else(|| format!("'{}' went away while it moved", info.name))?;
    switch(scene, (vm, disk), to, moved);
    Ok(still)
}

/// The disk is that volume from now on.
fn switch(
    scene: &Scene,
    (vm, disk): (&VmRig, &DiskRig),
    to: &Rc<PoolRig>,
    volume: Volume<RigWorld>,
) {
    disk.volume.replace(volume);
    disk.pool.replace(Rc::clone(to));
    vm.connect(disk, &scene.wiring);
}

/// By the VM's host. Says how long the VM stood still.
async fn by_its_host(
    scene: &Rc<Scene>,
    (vm, disk): (&VmRig, &DiskRig),
    to: &Rc<PoolRig>,
    how: HostCopy,
    undertaking: &Undertaking<'_>,
) -> Result<Duration, String> {
    let (from, volume) = (Rc::clone(&disk.pool.borrow()), disk.volume.borrow().clone());
    let name = volume.info().name;
    let made = make(scene, vm, (to, &name), disk.size_bytes).await?;
    let source = seen(scene, (vm, &disk.lun_name), (&from, volume), how);
    let target = seen(scene, (vm, &disk.lun_name), (to, made.clone()), how);
    let copying = Copying::new((source, Rc::clone(&target)), how, &undertaking.bytes);
    disk.twin.replace(Some(Twin {
        disk: target,
        below: Rc::clone(&copying.below),
    }));
    let copied = copying.run(scene).await;
    if copied.is_err() {
        disk.twin.replace(None);
        return copied.map(|()| Duration::ZERO);
    }
    let began = scene.world.now();
    vm.halt.hold();
    disk.quiet(&scene.world).await;
    disk.twin.replace(None);
    switch(scene, (vm, disk), to, made);
    vm.halt.release();
    let still = scene.world.now().since(began);
    let deleted = from.pool.delete_volume(&name).await;
    deleted.map_err(|error| error.to_string())?;
    Ok(still)
}
