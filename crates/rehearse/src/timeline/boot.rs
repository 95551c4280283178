//! VMs that boot: the operations of the `boot-storm` profile on their system disks, once.

use super::Scene;
use super::log::{Undertaking, count, rate, seconds};
use crate::parts::halt::together;
use crate::rig::vm::VmRig;
use engine::World;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use workload::generator::Generator;
use workload::profile::{Pacing, Profile, boot_storm};

/// I/Os of a boot, unless told otherwise.
pub(super) const OPERATIONS: u32 = boot_storm::OPERATIONS_PER_BOOT as u32;

/// A VM whose I/O fails tries again after so long.
const RETRY: Duration = Duration::from_secs(1);

/// The VMs of a VM group start all at once.
pub(super) async fn storm(scene: &Rc<Scene>, vm_group: &str, operations: u32) {
    let vms = scene.of_vm_group(vm_group).into_iter();
    let vms: Vec<Rc<VmRig>> = vms.filter(|vm| !vm.host.borrow().is_down()).collect();
    let more = format!("{}, {operations} operations each", count(vms.len(), "VM"));
    let storm = scene
        .log
        .begin(format!("boot storm of VM group {vm_group}"), &more);
    vms.iter().for_each(|vm| vm.stop());
    rise(scene, &storm, vms, (operations, Duration::ZERO)).await;
    finish(scene, storm);
}

/// Tells the end of an undertaking whose VMs are up, unless the run ended before.
pub(super) fn finish(scene: &Scene, undertaking: Undertaking<'_>) {
    if scene.is_over() {
        return;
    }
    let (took, bytes) = (undertaking.took(), undertaking.bytes.get());
    let moved = format!("{}{}", super::log::amount(bytes), rate(bytes, took));
    undertaking.end(&format!("{moved} of boot I/O"));
}

/// Boots VMs that are off, all at the same time; each runs when it has booted and its
/// service has taken `then` to recover. Tells of the first, the half and the last of them.
pub(super) async fn rise(
    scene: &Rc<Scene>,
    undertaking: &Undertaking<'_>,
    vms: Vec<Rc<VmRig>>,
    (operations, then): (u32, Duration),
) {
    let (all, up) = (vms.len(), Rc::new(Cell::new(0)));
    let began = scene.world.now();
    let boots = vms.into_iter().map(|vm| {
        let (scene, up) = (Rc::clone(scene), Rc::clone(&up));
        let (what, bytes) = (undertaking.what().to_owned(), Rc::clone(&undertaking.bytes));
        async move {
            let life = vm.life.get();
            boot(&scene, &vm, operations, &bytes).await;
            scene.world.sleep(then).await;
            if vm.life.get() != life || scene.is_over() {
                return;
            }
            vm.run();
            up.set(up.get() + 1);
            if let Some(text) = mark(up.get(), all) {
                let took = seconds(scene.world.now().since(began));
                scene
                    .log
                    .tell(format!("{what}: {text}, {took} from power on"));
            }
        }
    });
    together(&scene.world, boots).await;
    let lost = all - up.get();
    if lost > 0 && !scene.is_over() {
        undertaking.stage(&format!("{lost} of {all} are not up: they lost their host"));
    }
}

/// What is told when so many are up.
fn mark(up: usize, all: usize) -> Option<String> {
    match up {
        _ if up == all => Some(format!("all {all} are up")),
        1 => Some(format!("the first of {all} is up")),
        _ if up == all / 2 => Some(format!("{up} of {all} are up")),
        _ => None,
    }
}

/// The operations of a boot, as many at once as the profile has. Ends early when the VM loses
/// its host, or the run ends.
async fn boot(scene: &Rc<Scene>, vm: &Rc<VmRig>, operations: u32, bytes: &Rc<Cell<u64>>) {
    let Some(mut profile) = Profile::named(boot_storm::NAME).map(|mut all| all.vms.remove(0))
    else {
        unreachable!("a profile of the catalogue")
    };
    profile.name = format!("{} boots", vm.name);
    let sizes = [vm.disks[0].in_use_bytes.max(profile.disk_bytes_min())];
    // Another boot of the same VM reads the same places.
    let mut generators = Generator::of_vm(&profile, &sizes, scene.seed);
    let generator = Rc::new(RefCell::new(generators.remove(0)));
    let outstanding = match profile.streams[0].pacing {
        Pacing::Closed { outstanding } => outstanding,
        _ => unreachable!("a boot waits for what it reads"),
    };
    let (left, life) = (Rc::new(Cell::new(operations)), vm.life.get());
    let slots = (0..outstanding).map(|_| {
        let (scene, vm, left) = (Rc::clone(scene), Rc::clone(vm), Rc::clone(&left));
        let (generator, bytes) = (Rc::clone(&generator), Rc::clone(bytes));
        async move {
            while left.get() > 0 && vm.life.get() == life && !scene.is_over() {
                left.set(left.get() - 1);
                let operation = generator.borrow_mut().draw();
                let issued = scene.now();
                scene.ledger.issue(issued);
                let outcome = vm.disks[0].io(&scene.world, &operation).await;
                scene.ledger.end(scene.now(), issued);
                match outcome {
                    Ok(_) => bytes.set(bytes.get() + u64::from(operation.bytes)),
                    Err(_) => {
                        left.set(left.get() + 1);
                        scene.world.sleep(RETRY).await;
                    }
                }
            }
        }
    });
    together(&scene.world, slots).await;
}
