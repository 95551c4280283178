//! A plan built up: controllers, buses, drives, pools, ports, hosts and VMs at rest.
//!
//! Order: what is passive first; then the engine makes pools and volumes, and lays out what
//! was written before the run; last the clock is where the run begins. Everything stands in
//! the order of the file, so one plan and seed give one rig.

pub mod aged;
mod draws;
mod network;
mod pools;
pub mod residents;
mod threads;
pub mod vm;
mod vms;
pub mod warmed;
pub mod wiring;

use crate::error::RehearseError;
use crate::parts::bus::BusRig;
use crate::parts::controller::ControllerRig;
use crate::parts::disk::DiskRig;
use crate::parts::drive::DriveRig;
use crate::parts::file_system::FileSystemRig;
use crate::parts::host::HostRig;
use crate::parts::pool::PoolRig;
use crate::parts::world::RigWorld;
use crate::plan::catalog;
use crate::plan::profiles::Profiles;
use engine::World;
use site::plan::{Event, Happening, Plan};
use std::future::Future;
use std::rc::Rc;
use world_sim::Outcome;

use self::vm::VmRig;
pub use network::Fabric;
pub use wiring::Wiring;

/// All of a site.
pub struct Rig {
    /// The simulated world, whose clock all parts share.
    pub world: RigWorld,
    /// In the order of the file.
    pub controllers: Vec<Rc<ControllerRig>>,
    /// In the order of the file.
    pub buses: Vec<Rc<BusRig>>,
    /// In the order of the file.
    pub pools: Vec<Rc<PoolRig>>,
    /// Ports of hosts, links between networks, ports of controllers.
    pub fabric: Rc<Fabric>,
    /// How hosts see what controllers give them.
    pub wiring: Rc<Wiring>,
    /// In the order of the file.
    pub hosts: Vec<Rc<HostRig>>,
    /// In the order of the file.
    pub vms: Vec<Rc<VmRig>>,
}

impl Rig {
    /// Builds it.
    ///
    /// # Errors
    /// `Site` for names that no model or profile has and sizes that don't fit, `Engine` for
    /// what the engine refuses.
    pub fn build(plan: &Plan, seed: u64, profiles: Profiles<'_>) -> Result<Rig, RehearseError> {
        let world = RigWorld::new(seed);
        let controllers = controllers(&world, plan)?;
        let buses = plan
            .buses
            .iter()
            .map(|bus| Ok(Rc::new(BusRig::new(bus.name.clone(), catalog::bus(bus)?))))
            .collect::<Result<Vec<_>, RehearseError>>()?;
        let pools = pools::pools(&world, plan, &controllers, &buses)?;
        let fabric = Rc::new(Fabric::new(plan));
        let wiring = Rc::new(Wiring::new(Rc::new(plan.clone()), Rc::clone(&fabric)));
        let hosts = vms::hosts(&world, plan);
        let mut rig = Rig {
            world,
            controllers,
            buses,
            pools,
            fabric,
            wiring,
            hosts,
            vms: Vec::new(),
        };
        rig.vms = vms::vms(plan, &rig, profiles)?;
        rig.file_systems(plan)?;
        if !plan.events.iter().any(asks_what_volumes_hold) {
            rig.free_stripes(plan)?;
        }
        // A run is of an array that has run for a long time.
        let lanes = rig.pools.iter().flat_map(|pool| &pool.lanes);
        lanes.for_each(engine::Lane::warm_checksums);
        residents::check(plan, &rig)?;
        residents::settle(&rig.hosts, &rig.vms);
        Ok(rig)
    }

    /// Puts the file systems of NAS heads before their pools.
    fn file_systems(&self, plan: &Plan) -> Result<(), RehearseError> {
        for (pool, said) in self.pools.iter().zip(&plan.pools) {
            let Some(model) = pool.controller.file_system() else {
                continue;
            };
            let prng = self.world.prng(&format!("file system of {}", pool.name));
            let made = self.finish(FileSystemRig::make(&pool.lanes, model, prng))?;
            let made = made.map_err(|error| RehearseError::site(said.line, error))?;
            let _ = pool.file_system.set(made);
        }
        Ok(())
    }

    /// Has pools that write anywhere know where.
    fn free_stripes(&self, plan: &Plan) -> Result<(), RehearseError> {
        let pools = self.pools.iter().zip(&plan.pools);
        for (pool, said) in pools.filter(|(pool, _)| pool.controller.writes_anywhere()) {
            let made = self.finish(pool.write_anywhere())?;
            made.map_err(|error| RehearseError::site(said.line, error))?;
        }
        Ok(())
    }

    /// All drives, pool by pool.
    pub fn drives(&self) -> impl Iterator<Item = &Rc<DriveRig>> {
        self.pools.iter().flat_map(|pool| &pool.drives)
    }

    /// The disks of all VMs.
    pub fn disks(&self) -> impl Iterator<Item = &Rc<DiskRig>> {
        self.vms.iter().flat_map(|vm| &vm.disks)
    }

    /// Does `work` while drives take no time.
    async fn in_no_time<T>(&self, work: impl Future<Output = T>) -> T {
        self.drives().for_each(|drive| drive.set_timeless(true));
        let came = work.await;
        self.drives().for_each(|drive| drive.set_timeless(false));
        came
    }

    /// Runs `root`, and everything that is under way, until `root` ends.
    ///
    /// # Errors
    /// When it could never end.
    pub fn finish<T>(&self, root: impl Future<Output = T>) -> Result<T, RehearseError> {
        finish(&self.world, root)
    }
}

/// Whether it counts for an event what the VMs have written to their volumes.
fn asks_what_volumes_hold(event: &Event) -> bool {
    use Happening::{Clone, MoveStorage, Restore, Snapshot};
    matches!(
        event.what,
        Clone { .. } | MoveStorage { .. } | Restore { .. } | Snapshot { .. }
    )
}

impl Drop for Rig {
    /// Tasks hold the world, and the world the tasks.
    fn drop(&mut self) {
        self.world.power_off();
    }
}

pub(crate) fn finish<T>(
    world: &RigWorld,
    root: impl Future<Output = T>,
) -> Result<T, RehearseError> {
    match world.run(u64::MAX, root).map_err(RehearseError::engine)? {
        Outcome::Done(value) => Ok(value),
        Outcome::Cut => unreachable!("nothing limits the polls"),
    }
}

fn controllers(world: &RigWorld, plan: &Plan) -> Result<Vec<Rc<ControllerRig>>, RehearseError> {
    let rig = |said: &site::plan::Controller| {
        let model = catalog::controller(said)?;
        let (name, mirrors) = (said.name.clone(), said.partner.is_some());
        Ok(Rc::new(ControllerRig::new(world, name, model, mirrors)))
    };
    plan.controllers.iter().map(rig).collect()
}
