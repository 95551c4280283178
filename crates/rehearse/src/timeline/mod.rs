//! The events of a run: faults and operations of the plan, and the engine's own events.
//!
//! Each event tells its beginning, its stages and its end, with how long it took and how
//! many bytes it moved; what has not ended with the run is told so. Whatever it does goes
//! the way that it would: through the engine, the modelled hosts, networks and controllers,
//! beside the VMs' load.

mod boot;
mod copies;
mod copy_method;
mod cpu;
mod crossing;
mod host_copy;
mod limits;
pub mod log;
mod migration;
mod moves;
mod outage;
mod scene;
mod snapshots;
mod takeover;
mod watch;

pub use scene::Scene;

use crate::error::RehearseError;
use crate::rig::Rig;
use crate::rig::vm::{Ledger, StreamRun};
use engine::World;
use site::plan::{Event, Happening, Plan};
use std::rc::Rc;
use workload::kpi::Window;

/// Sets the events of `plan` to happen.
///
/// # Errors
/// `Site` for an event that would take something where its hosts do not reach it, or that
/// names a VM that its VM group does not have.
pub fn start(
    plan: &Plan,
    rig: &Rig,
    (window, seed): (Window, u64),
    (ledger, streams): (&Rc<Ledger>, &[Rc<StreamRun>]),
) -> Result<Rc<Scene>, RehearseError> {
    let scene = Rc::new(Scene::new(plan, rig, (window, seed), (ledger, streams)));
    for event in &plan.events {
        possible(&scene, event)?;
    }
    watch::start(&scene);
    for (number, event) in plan.events.iter().enumerate() {
        let (scene, event) = (Rc::clone(&scene), event.clone());
        rig.world.spawn(async move {
            scene.world.sleep_until(scene.began + event.at).await;
            happen(&scene, number, event.what).await;
        });
    }
    Ok(scene)
}

async fn happen(scene: &Rc<Scene>, number: usize, what: Happening) {
    match what {
        Happening::DriveFails { drive } => drive_fails(scene, &drive),
        Happening::LinkDown { host, network } => link(scene, &host, &network, true),
        Happening::LinkUp { host, network } => link(scene, &host, &network, false),
        Happening::HostFails {
            host,
            detection,
            operations,
            recovery,
        } => {
            let restart = outage::Restart {
                detection,
                operations: operations.unwrap_or(boot::OPERATIONS),
                recovery,
            };
            outage::host_fails(scene, &host, restart).await;
        }
        Happening::ControllerFails {
            controller,
            takeover,
        } => takeover::controller_fails(scene, &controller, takeover).await,
        Happening::Snapshot { vm_group } => snapshots::snapshot(scene, number, &vm_group).await,
        Happening::Restore { vm_group } => snapshots::restore(scene, &vm_group).await,
        Happening::Clone {
            vm_group,
            vms,
            at_once,
            offload,
            copy,
        } => {
            let all = scene.of_vm_group(&vm_group).into_iter();
            let vms: Vec<_> = all.take(vms.into()).collect();
            let how = copy_method::CopyMethod {
                by_host: (!offload).then_some(copy),
                at_once: at_once.into(),
                number,
            };
            copies::clone(scene, (&vm_group, vms), how).await;
        }
        Happening::MoveStorage {
            vm_group,
            to,
            disks,
            at_once,
            offload,
            copy,
        } => {
            let how = copy_method::CopyMethod {
                by_host: (!offload).then_some(copy),
                at_once: at_once.into(),
                number,
            };
            let disks = disks.map_or(usize::MAX, usize::from);
            copies::move_storage(scene, (&vm_group, disks), &to, how).await;
        }
        Happening::BootStorm {
            vm_group,
            operations,
        } => {
            boot::storm(scene, &vm_group, operations.unwrap_or(boot::OPERATIONS)).await;
        }
        Happening::Drain { host, migration } => migration::drain(scene, &host, migration).await,
        Happening::LiveMigration {
            vm_group,
            vms,
            to,
            migration,
        } => {
            let most = vms.map_or(usize::MAX, usize::from);
            migration::to_host(scene, (&vm_group, most), &to, migration).await;
        }
        Happening::LimitIops { vm_group, vm, iops } => {
            limits::set(scene, (&vm_group, vm.as_deref()), iops).await;
        }
        Happening::AddCpu {
            vm_group,
            vcpus,
            contention,
        } => cpu::add(scene, &vm_group, vcpus, contention),
    }
}

fn drive_fails(scene: &Scene, name: &str) {
    let mut drives = scene.pools.iter().flat_map(|pool| &pool.drives);
    match drives.find(|drive| drive.name == name) {
        Some(drive) => {
            scene.log.tell(format!("drive {name} fails"));
            drive.fail();
        }
        None => scene.log.tell(format!(
            "drive {name} fails, which no pool has: nothing else happens"
        )),
    }
}

/// The first link that is up goes down, or the first that is down comes up.
fn link(scene: &Scene, host: &str, network: &str, down: bool) {
    let word = if down { "goes down" } else { "comes up" };
    let text = format!("a link of host {host} into {network} {word}");
    let ports = scene.fabric.host_ports(host, network);
    match ports.iter().find(|port| port.is_down() != down) {
        Some(port) => {
            scene.log.tell(text);
            port.set_down(down);
        }
        None => scene.log.tell(format!(
            "{text}, and all are so already: nothing else happens"
        )),
    }
}

/// Hosts reach what an event has them use, and VMs that it names are there.
fn possible(scene: &Scene, event: &Event) -> Result<(), RehearseError> {
    let check = |vm_group: &str, hosts: Vec<String>, controller: &str| {
        let lost = hosts
            .iter()
            .find(|host| !scene.wiring.reaches(host, controller));
        lost.map_or(Ok(()), |host| {
            let context = format!(
                "host {host:?} of VM group {vm_group:?} does not reach controller {controller:?}: \
                 connect it, or leave the event out"
            );
            Err(RehearseError::site(event.line, context))
        })
    };
    match &event.what {
        Happening::MoveStorage { vm_group, to, .. } => {
            let pool = scene.pool(to);
            check(
                vm_group,
                scene.hosts_of_vm_group(vm_group),
                &pool.controller.name,
            )
        }
        Happening::ControllerFails { controller, .. } => {
            let Some(partner) = scene.partner(controller) else {
                return Ok(());
            };
            scene.plan.vm_groups.iter().try_for_each(|vm_group| {
                let pools = vm_group.pools.iter().chain(&vm_group.disk_pools);
                let mut of = pools.map(|pool| scene.pool(pool));
                match of.any(|pool| pool.controller.name == *controller) {
                    true => check(
                        &vm_group.name,
                        scene.hosts_of_vm_group(&vm_group.name),
                        &partner.name,
                    ),
                    false => Ok(()),
                }
            })
        }
        Happening::LimitIops { vm_group, vm, .. } => {
            limits::check(scene, event.line, (vm_group, vm.as_deref()))
        }
        Happening::LiveMigration { vm_group, to, .. } => {
            let vm_group = scene
                .plan
                .vm_groups
                .iter()
                .find(|other| other.name == *vm_group);
            let pools = vm_group.map(|vm_group| vm_group.pools.iter().chain(&vm_group.disk_pools));
            pools.into_iter().flatten().try_for_each(|pool| {
                check(
                    "the one that moves",
                    vec![to.clone()],
                    &scene.pool(pool).controller.name,
                )
            })
        }
        _ => Ok(()),
    }
}
