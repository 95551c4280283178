//! Pools out of lots of drives, made by the engine.

use super::finish;
use crate::error::RehearseError;
use crate::parts::bus::BusRig;
use crate::parts::controller::ControllerRig;
use crate::parts::drive::{DriveRig, Front, RigDrive, Spread, SumsAlong};
use crate::parts::pool::PoolRig;
use crate::parts::world::RigWorld;
use crate::plan::catalog;
use base::DriveOffset;
use engine::lane::LaneSlot;
use engine::pool::maintenance::Rates;
use engine::raid::Protection;
use engine::{GroupRole, Lane, NamedDrive, PoolError, PoolSpec};
use model::controller::Controller;
use site::plan::{Lot, Placement, Plan};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Drives that are taken already.
#[derive(Default)]
struct TakenDrives<'a> {
    /// How many of each lot.
    of_lots: BTreeMap<&'a str, u32>,
    /// The first one of each model whose drives are parts of one device.
    sharing: BTreeMap<&'a str, Rc<DriveRig>>,
}

/// Makes the pools of `plan`.
pub(super) fn pools(
    world: &RigWorld,
    plan: &Plan,
    controllers: &[Rc<ControllerRig>],
    buses: &[Rc<BusRig>],
) -> Result<Vec<Rc<PoolRig>>, RehearseError> {
    let mut taken = TakenDrives::default();
    let pools_of = |name: &str| plan.pools.iter().filter(|p| p.controller == name).count();
    let mut made = Vec::new();
    for pool in &plan.pools {
        let (said, controller) = controller_of(plan, pool, controllers);
        let model = catalog::controller(said)?;
        let share = pools_of(&pool.controller) as u64;
        let builder = Builder {
            world,
            plan,
            controller,
            buses,
        };
        let made_of = builder.drives(pool, &mut taken)?;
        let write_cache_bytes = model.write_cache.map_or(0, |cache| cache.bytes / share);
        let opened = builder.create(pool, &made_of, write_cache_bytes)?;
        let lanes = opened.len() as u64;
        for lane in &opened {
            give_memory(lane, &model, share * lanes);
            lane.set_rates(Rates::default().of_each(lanes));
        }
        let drives: Vec<Rc<DriveRig>> = made_of.all().cloned().collect();
        tell_front(&opened, &drives, write_cache_bytes > 0);
        place(&opened, &made_of, (said, &model));
        made.push(Rc::new(PoolRig {
            name: pool.name.clone(),
            controller: Rc::clone(controller),
            lanes: opened,
            drives,
            write_regions: OnceCell::new(),
            file_system: OnceCell::new(),
        }));
    }
    Ok(made)
}

/// Has data and checksums of a pool lie on its drives as its controller has them lie.
fn place(
    lanes: &[Lane<RigWorld>],
    made_of: &MadeOf,
    (said, model): (&site::plan::Controller, &Controller),
) {
    if catalog::placement(said, model) == Placement::Spread {
        spread(&lanes[0], made_of);
    }
    if catalog::takes_sums_along(said) {
        sums_along(lanes, made_of);
    }
}

/// The controller of a pool, as the plan says it and at work.
fn controller_of<'a>(
    plan: &'a Plan,
    pool: &site::plan::Layout,
    controllers: &'a [Rc<ControllerRig>],
) -> (&'a site::plan::Controller, &'a Rc<ControllerRig>) {
    let mut all = plan.controllers.iter().zip(controllers);
    let found = all.find(|(said, _)| said.name == pool.controller);
    let Some(found) = found else {
        unreachable!("a plan's names lead somewhere: {}", pool.controller)
    };
    found
}

/// The drives of a pool.
struct MadeOf {
    groups: Vec<(Protection, Vec<Rc<DriveRig>>)>,
    /// Which of them carries the logs.
    log_group: Option<usize>,
    spares: Vec<Rc<DriveRig>>,
}

impl MadeOf {
    fn all(&self) -> impl Iterator<Item = &Rc<DriveRig>> {
        let of_groups = self.groups.iter().flat_map(|(_, drives)| drives);
        of_groups.chain(&self.spares)
    }
}

impl MadeOf {
    /// Makes a lane over these drives; each has a door of its own to them.
    async fn create_lane(
        &self,
        world: &RigWorld,
        slot: LaneSlot,
        spec: PoolSpec,
    ) -> Result<Lane<RigWorld>, PoolError> {
        let named = |drive: &Rc<DriveRig>| NamedDrive {
            name: drive.name.clone(),
            drive: RigDrive(Rc::clone(drive)),
        };
        let groups = self.groups.iter();
        let groups: Vec<_> = groups
            .map(|(of, drives)| (*of, drives.iter().map(named).collect()))
            .collect();
        let spares = self.spares.iter().map(named).collect();
        Lane::create_lane(world.clone(), slot, spec, groups, spares).await
    }
}

struct Builder<'a> {
    world: &'a RigWorld,
    plan: &'a Plan,
    controller: &'a Rc<ControllerRig>,
    buses: &'a [Rc<BusRig>],
}

impl<'a> Builder<'a> {
    fn drives(
        &self,
        pool: &'a site::plan::Layout,
        taken: &mut TakenDrives<'a>,
    ) -> Result<MadeOf, RehearseError> {
        let mut levels = pool.groups.iter().map(|groups| groups.level);
        let parity = levels.any(|level| level.parity_drives() > 0);
        let (mut groups, mut log_group) = (Vec::new(), None);
        for alike in &pool.groups {
            for _ in 0..alike.count {
                let drives = self.take(&alike.from, alike.drives, parity, taken)?;
                if alike.role == GroupRole::Log {
                    log_group = Some(groups.len());
                }
                groups.push((alike.protection(), drives));
            }
        }
        let mut spares = Vec::new();
        for spare in &pool.spares {
            spares.extend(self.take(&spare.from, spare.count, parity, taken)?);
        }
        Ok(MadeOf {
            groups,
            log_group,
            spares,
        })
    }

    /// The next drives of a lot.
    fn take(
        &self,
        from: &'a str,
        count: u16,
        parity: bool,
        taken: &mut TakenDrives<'a>,
    ) -> Result<Vec<Rc<DriveRig>>, RehearseError> {
        let lot = self.plan.lots.iter().find(|lot| lot.name == from);
        let bus = lot.and_then(|lot| self.buses.iter().find(|bus| bus.name == lot.bus));
        let (Some(lot), Some(bus)) = (lot, bus) else {
            unreachable!("a plan's names lead somewhere: {from}")
        };
        let kind = catalog::drive(lot)?;
        let first = taken.of_lots.entry(from).or_default();
        let numbers = *first..*first + u32::from(count);
        *first = numbers.end;
        let way = (bus, self.controller);
        let mut drive = |number| {
            let name = Lot::drive_name(lot, number);
            let capacity_bytes = catalog::capacity_bytes(lot, &kind);
            if let Some(sibling) = taken.sharing.get(lot.model.as_str()) {
                return DriveRig::beside(sibling, name, capacity_bytes, way, parity);
            }
            let of = (kind.clone(), capacity_bytes);
            let drive = DriveRig::new(self.world, name, of, way, parity);
            if kind.is_shared() {
                taken.sharing.insert(&lot.model, Rc::clone(&drive));
            }
            drive
        };
        Ok(numbers.map(&mut drive).collect())
    }

    fn create(
        &self,
        pool: &site::plan::Layout,
        made_of: &MadeOf,
        write_cache_bytes: u64,
    ) -> Result<Vec<Lane<RigWorld>>, RehearseError> {
        let Some((first, _)) = made_of.groups.first() else {
            unreachable!("a pool has a group")
        };
        let mut spec = PoolSpec::new(&pool.name, first.level);
        spec.stripe_unit_bytes = pool.stripe_unit_bytes;
        spec.page_bytes = pool.page_bytes;
        spec.log_bytes = pool.log_bytes;
        spec.log_group = made_of.log_group;
        if write_cache_bytes > 0 {
            // Data and intents, in whole blocks.
            let of_lane = write_cache_bytes / u64::from(pool.lanes);
            let part = |of: u64| Some(of_lane / of / 4096 * 4096);
            spec.log_bytes = part(2);
            spec.intent_bytes = part(4);
        }
        let mut lanes = Vec::new();
        // The last lane is made first: with the first there is a pool.
        for slot in LaneSlot::all(pool.lanes).into_iter().rev() {
            let create = made_of.create_lane(self.world, slot, spec.clone());
            let created = finish(self.world, create)?;
            lanes.push(created.map_err(|error| RehearseError::site(pool.line, error.to_string()))?);
        }
        lanes.reverse();
        Ok(lanes)
    }
}

/// Gives a pool its part of the controller's memory, one of so many.
fn give_memory(pool: &Lane<RigWorld>, model: &Controller, parts: u64) {
    pool.store().cache.set_capacity(model.cache_bytes / parts);
    pool.set_checksum_blocks(model.checksum_bytes / parts / base::BLOCK_BYTES as u64);
}

/// Labels, metadata and logs of all drives lie in the write cache, or on the drives themselves.
fn tell_front(lanes: &[Lane<RigWorld>], drives: &[Rc<DriveRig>], is_in_cache: bool) {
    let end = DriveOffset(lanes[0].info().data_start);
    let named = |name: &String| drives.iter().find(|drive| drive.name == *name);
    let log_drives = |lane: &Lane<RigWorld>| {
        let names = lane.info().log_drives;
        names.iter().filter_map(named).map(Rc::downgrade).collect()
    };
    let front = Rc::new(Front {
        end,
        lane_bytes: end.0 / lanes.len() as u64,
        log_drives: lanes.iter().map(log_drives).collect(),
        is_in_cache,
    });
    for drive in drives {
        drive.set_front(Rc::clone(&front));
    }
}

/// Has every drive know where its zones lie: from where on, and how far apart. A spare may stand in for
/// any of them; groups of a pool are mostly alike.
fn tell_zones(pool: &Lane<RigWorld>, made_of: &MadeOf, tell: impl Fn(&DriveRig, Zones)) {
    let info = pool.info();
    for (group, (_, drives)) in info.groups.iter().zip(&made_of.groups) {
        let zones = Zones {
            start: DriveOffset(info.data_start),
            stride_bytes: group.zone_stride_bytes,
            data_bytes: group.zone_bytes,
        };
        for drive in drives.iter().chain(&made_of.spares) {
            tell(drive, zones);
        }
    }
}

/// The zones of a drive.
#[derive(Clone, Copy)]
struct Zones {
    start: DriveOffset,
    stride_bytes: u64,
    data_bytes: u64,
}

/// Data lies on the whole stroke of every drive.
fn spread(pool: &Lane<RigWorld>, made_of: &MadeOf) {
    tell_zones(pool, made_of, |drive, zones| {
        let capacity_bytes = drive.capacity_bytes();
        drive.set_spread(Spread::over(
            zones.start,
            zones.stride_bytes,
            capacity_bytes,
        ));
    });
}

/// Sums go along with the data, on every drive; and so they are never out of RAM.
fn sums_along(lanes: &[Lane<RigWorld>], made_of: &MadeOf) {
    tell_zones(&lanes[0], made_of, |drive, zones| {
        drive.set_sums_along(SumsAlong {
            start: zones.start,
            stride_bytes: zones.stride_bytes,
            sums_bytes: zones.stride_bytes - zones.data_bytes,
        });
    });
    for lane in lanes {
        lane.store().integrity.set_budget(usize::MAX / 4);
        lane.store().integrity.set_apart(false);
    }
}
