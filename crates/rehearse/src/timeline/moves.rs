//! A disk that moves while its VM works.
//!
//! The array moves it to another pool by the engine's own way; between pools of different
//! controllers what is copied crosses what is between them ([`super::crossing`]). A host makes
//! an empty volume, sends what its VM writes to both, and has all below copied: by itself,
//! piece by piece, or within a pool by the array, which refers to what is there. For the
//! switch the VM stands still for a moment.

use super::Scene;
use super::copy_method::{CopyMethod, make_like};
use super::crossing::{Crossing, RemoteVolume};
use super::host_copy::{Copying, seen};
use crate::parts::disk::{DiskRig, Twin};
use crate::parts::pool::PoolRig;
use crate::parts::world::RigWorld;
use crate::rig::vm::VmRig;
use base::VolumeOffset;
use engine::pool::OtherPool;
use engine::volume::{Mirror, VolumeIo};
use engine::{Lane, Volume, World};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// Moves a disk to a pool. Says how long it stood still.
///
/// # Errors
/// Why it is where it was.
pub(super) async fn disk(
    scene: &Rc<Scene>,
    (vm, disk): (&VmRig, &Rc<DiskRig>),
    to: &Rc<PoolRig>,
    how: CopyMethod,
    bytes: &Rc<Cell<u64>>,
) -> Result<Duration, String> {
    let is_elsewhere = disk.pool.borrow().name != to.name;
    match how.by_host {
        None if is_elsewhere => by_array(scene, (vm, disk), to, bytes).await,
        _ => by_its_host(scene, (vm, disk), to, how, bytes).await,
    }
}

fn other(pool: &Lane<RigWorld>) -> OtherPool {
    let info = pool.info();
    OtherPool {
        uuid: info.uuid,
        name: info.name,
    }
}

/// By the engine. Says how long the volume stood still.
async fn by_array(
    scene: &Scene,
    (vm, disk): (&VmRig, &DiskRig),
    to: &Rc<PoolRig>,
    bytes: &Rc<Cell<u64>>,
) -> Result<Duration, String> {
    let from = Rc::clone(&disk.pool.borrow());
    let volume = disk.volume.borrow().clone();
    let (info, properties) = (VolumeIo::info(&volume), volume.properties());
    let (here, there) = (from.lane_of(&info.name)?, to.emptiest_lane());
    let refused = |error: engine::PoolError| error.to_string();
    let copy = there.begin_arrival(&info, &properties, &other(here)).await;
    let copy = copy.map_err(refused)?;
    let crossing = Crossing::between(scene, &from.controller, &to.controller);
    let copy: Rc<dyn VolumeIo> = match crossing {
        Some(crossing) => Rc::new(RemoteVolume::new(copy, crossing)),
        None => Rc::new(copy),
    };
    let departing = here.begin_departure(&info.name, copy, None).await;
    let (_, mirror) = departing.map_err(refused)?;
    let counted = count(scene, &mirror, bytes);
    let copied = volume.copy_to(&mirror).await;
    counted.end(&mirror);
    copied?;
    let arrive = async |info, properties| there.arrive(&info, &properties).await;
    let handed = here.hand_over(info.uuid, &other(there), arrive).await;
    let still = handed.map_err(refused)?;
    here.end_departure(info.uuid).await.map_err(refused)?;
    there.end_arrival(info.uuid).await.map_err(refused)?;
    let moved = there.volume_of(info.uuid);
    let moved = moved.ok_or_else(|| format!("'{}' went away while it moved", info.name))?;
    switch(scene, (vm, disk), to, moved);
    Ok(still)
}

/// Between two looks how far a copy of the engine's is.
const LOOK: Duration = Duration::from_secs(1);

/// What of a copy has been added to the bytes that an undertaking moved.
struct Counted {
    bytes: Rc<Cell<u64>>,
    /// Of this copy; none when it is over.
    of_it: Rc<Cell<Option<u64>>>,
}

impl Counted {
    fn look(&self, mirror: &Mirror) {
        if let Some(before) = self.of_it.get() {
            let now = mirror.progress().data_bytes;
            self.bytes.set(self.bytes.get() + now - before);
            self.of_it.set(Some(now));
        }
    }

    fn end(&self, mirror: &Mirror) {
        self.look(mirror);
        self.of_it.set(None);
    }
}

/// Counts what is copied while it is: a run may end before the copy does.
fn count(scene: &Scene, mirror: &Rc<Mirror>, bytes: &Rc<Cell<u64>>) -> Counted {
    let counted = || Counted {
        bytes: Rc::clone(bytes),
        of_it: Rc::new(Cell::new(Some(0))),
    };
    let ours = counted();
    let theirs = Counted {
        of_it: Rc::clone(&ours.of_it),
        ..counted()
    };
    let (world, mirror) = (scene.world.clone(), Rc::clone(mirror));
    scene.world.spawn(async move {
        while theirs.of_it.get().is_some() {
            world.sleep(LOOK).await;
            theirs.look(&mirror);
        }
    });
    ours
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

/// By the VM's host, or as it has the array copy. Says how long the VM stood still.
async fn by_its_host(
    scene: &Rc<Scene>,
    (vm, disk): (&VmRig, &DiskRig),
    to: &Rc<PoolRig>,
    how: CopyMethod,
    bytes: &Rc<Cell<u64>>,
) -> Result<Duration, String> {
    let (from, volume) = (Rc::clone(&disk.pool.borrow()), disk.volume.borrow().clone());
    let name = volume.info().name;
    let new_name = match from.name == to.name {
        true => format!("{name}-moved{}", how.number),
        false => name.clone(),
    };
    let made = make_like(disk, (to, &new_name), how.by_host.is_none()).await?;
    let target = seen(scene, (vm, &disk.lun_name), (to, made.clone()));
    let below: Rc<Cell<u64>> = Rc::default();
    disk.twin.replace(Some(Twin {
        disk: Rc::clone(&target),
        below: Rc::clone(&below),
    }));
    let copied = match how.by_host {
        Some(how) => {
            let source = seen(scene, (vm, &disk.lun_name), (&from, volume));
            let copying = Copying::along((source, target), how, (below, bytes));
            copying.run(scene).await
        }
        None => by_reference(scene, vm, (&volume, &made), &below).await,
    };
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
    let deleted = from.lane_of(&name)?.delete_volume(&name).await;
    deleted.map_err(|error| error.to_string())?;
    Ok(still)
}

/// What an offloaded copy is to the engine within a pool.
async fn by_reference(
    scene: &Scene,
    vm: &VmRig,
    (from, to): (&Volume<RigWorld>, &Volume<RigWorld>),
    below: &Cell<u64>,
) -> Result<(), String> {
    let (start, size_bytes) = (VolumeOffset(0), from.size_bytes());
    let goes_on = |done| {
        below.set(done);
        !scene.is_over() && !vm.host.borrow().is_down()
    };
    let copied = to.copy_from(from, (start, start), size_bytes, goes_on);
    match copied.await.map_err(|error| error.to_string())? {
        done if done == size_bytes => Ok(()),
        _ if scene.is_over() => Err("the run has ended".to_owned()),
        _ => Err("the host that had it copied lost its power".to_owned()),
    }
}
