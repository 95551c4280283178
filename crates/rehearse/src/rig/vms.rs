//! Hosts, and the VMs of the VM groups with their volumes.

use super::vm::VmRig;
use super::{Rig, residents};
use crate::error::RehearseError;
use crate::parts::disk::DiskRig;
use crate::parts::gate::Gate;
use crate::parts::halt::Halt;
use crate::parts::host::HostRig;
use crate::parts::limit::IopsLimit;
use crate::parts::world::RigWorld;
use crate::plan::catalog;
use crate::plan::profiles::{self, Profiles};
use crate::plan::resident;
use model::station::Station;
use site::plan::{Initiator, Luns, Machine, Plan, VmGroup};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use workload::profile::{Profile, VmProfile};

/// The hosts of `plan`.
pub(super) fn hosts(world: &RigWorld, plan: &Plan) -> Vec<Rc<HostRig>> {
    let mut hosts = Vec::new();
    for host in &plan.hosts {
        let model = catalog::host(plan, host);
        for name in host.names() {
            hosts.push(Rc::new(HostRig::new(world, name, model)));
        }
    }
    hosts
}

/// The VMs of a VM group as their profile has them, under names of their own.
///
/// # Errors
/// `Site` for a profile or role that does not exist.
pub fn of_vm_group(
    plan: &Plan,
    vm_group: &VmGroup,
    profiles: Profiles<'_>,
) -> Result<Vec<VmProfile>, RehearseError> {
    let found = profiles::of(plan, &vm_group.profile, profiles);
    let profile = found.map_err(|what| {
        let context = format!("VM group {:?}: {what}", vm_group.name);
        RehearseError::site(vm_group.line, context)
    })?;
    has_roles(vm_group, &profile)?;
    let wanted = |vm: &&VmProfile| vm_group.has(&vm.name);
    let each: Vec<VmProfile> = profile
        .vms
        .iter()
        .filter(wanted)
        .map(|vm| resident::of(vm_group, vm))
        .collect();
    each.iter().try_for_each(|vm| check(vm_group, vm))?;
    says_only_what_counts(vm_group, &each)?;
    let mut vms = Vec::new();
    for turn in 1..=vm_group.count {
        for vm in &each {
            let mut vm = vm.clone();
            vm.name = match vm_group.count {
                1 => format!("{}-{}", vm_group.name, vm.name),
                _ => format!("{}{turn}-{}", vm_group.name, vm.name),
            };
            vms.push(vm);
        }
    }
    Ok(vms)
}

/// Refuses roles that the profile does not have.
fn has_roles(vm_group: &VmGroup, profile: &Profile) -> Result<(), RehearseError> {
    for role in &vm_group.roles {
        if !profile.vms.iter().any(|vm| vm.name == *role) {
            let names: Vec<&str> = profile.vms.iter().map(|vm| vm.name.as_str()).collect();
            let context = format!(
                "VM group {:?}: profile {} has no role {role:?}; allowed: {}",
                vm_group.name,
                vm_group.profile,
                names.join(", ")
            );
            return Err(RehearseError::site(vm_group.line, context));
        }
    }
    Ok(())
}

/// Refuses threads that nobody can have at work.
fn check(vm_group: &VmGroup, vm: &VmProfile) -> Result<(), RehearseError> {
    let mut threads = vm.streams.iter().filter_map(|stream| stream.threads());
    threads.try_for_each(|threads| {
        let refused = |what| {
            let context = format!("VM group {:?}: VM {}: {what}", vm_group.name, vm.name);
            RehearseError::site(vm_group.line, context)
        };
        threads.check().map_err(refused)
    })
}

/// Refuses what is said of threads where there are none: it would change nothing.
fn says_only_what_counts(vm_group: &VmGroup, vms: &[VmProfile]) -> Result<(), RehearseError> {
    let said = [
        ("work", vm_group.work.is_some()),
        ("connections", vm_group.connections.is_some()),
    ];
    let said = said.iter().find(|(_, is_said)| *is_said);
    match said.filter(|_| !vms.iter().any(VmProfile::has_threads)) {
        None => Ok(()),
        Some((key, _)) => {
            let context = format!(
                "VM group {:?}: `{key}` is about threads, and profile {} has none here; remove it, or take a closed network",
                vm_group.name, vm_group.profile
            );
            Err(RehearseError::site(vm_group.line, context))
        }
    }
}

/// The VMs of all VM groups, with their volumes laid out.
pub(super) fn vms(
    plan: &Plan,
    rig: &Rig,
    profiles: Profiles<'_>,
) -> Result<Vec<Rc<VmRig>>, RehearseError> {
    let mut vms = Vec::new();
    for (place, vm_group) in plan.vm_groups.iter().enumerate() {
        let hosts: Vec<(&Machine, String)> = plan
            .hosts
            .iter()
            .filter(|host| vm_group.hosts.contains(&host.name))
            .flat_map(|host| host.names().into_iter().map(move |name| (host, name)))
            .collect();
        for (turn, profile) in of_vm_group(plan, vm_group, profiles)?
            .into_iter()
            .enumerate()
        {
            let (host, host_name) = &hosts[(place + turn) % hosts.len()];
            let builder = Builder {
                rig,
                vm_group,
                host,
                host_name,
                turn,
            };
            vms.push(builder.vm(profile)?);
        }
    }
    Ok(vms)
}

/// What is written of a disk before the run.
fn filled_bytes(vm_group: &VmGroup, size_bytes: u64) -> u64 {
    let filled = size_bytes / 100 * u64::from(vm_group.filled_percent);
    filled - filled % (1 << 20)
}

/// What a VM reads and writes of a disk: what it holds, or a little more where its profile needs
/// that. The places of a trace are where they are.
fn in_use_bytes(profile: &VmProfile, vm_group: &VmGroup, size_bytes: u64) -> u64 {
    let filled_bytes = filled_bytes(vm_group, size_bytes);
    let has_trace = profile.streams.iter().any(|stream| stream.trace.is_some());
    match filled_bytes == 0 || has_trace {
        true => size_bytes,
        false => filled_bytes.max(profile.disk_bytes_min()).min(size_bytes),
    }
}

struct Builder<'a> {
    rig: &'a Rig,
    vm_group: &'a VmGroup,
    host: &'a Machine,
    host_name: &'a str,
    /// The number of the VM in its VM group.
    turn: usize,
}

impl Builder<'_> {
    fn vm(&self, profile: VmProfile) -> Result<Rc<VmRig>, RehearseError> {
        let hosts = &self.rig.hosts;
        let Some(host) = hosts.iter().find(|host| host.name == self.host_name) else {
            unreachable!("every host of the plan is in the rig")
        };
        let adapter = catalog::adapter(self.vm_group.adapter);
        let adapter_gate = Rc::new(Gate::new(usize::from(adapter.queue)));
        let life = Rc::new(Cell::new(0));
        let mut disks = Vec::new();
        for number in 0..profile.disks.len() {
            let owner = (host, &adapter_gate, &life);
            disks.push(self.disk(&profile, number, owner)?);
        }
        let vcpus = Station::new(profile.compute.vcpus.max(1) as usize);
        Ok(Rc::new(VmRig {
            name: profile.name.clone(),
            vm_group: self.vm_group.name.clone(),
            compute: Cell::new(residents::compute(&profile.compute)),
            think: resident::loops_think(self.vm_group, &profile),
            profile,
            disks,
            host: RefCell::new(Rc::clone(host)),
            life,
            off: Cell::new(false),
            halt: Halt::default(),
            did: Cell::default(),
            vcpus: RefCell::new(vcpus),
        }))
    }

    fn disk(
        &self,
        profile: &VmProfile,
        number: usize,
        (host, adapter_gate, life): (&Rc<HostRig>, &Rc<Gate>, &Rc<Cell<u32>>),
    ) -> Result<Rc<DiskRig>, RehearseError> {
        let vm_group = self.vm_group;
        let pools = match vm_group.disk_pools.as_slice() {
            [] => &vm_group.pools[self.turn % vm_group.pools.len()],
            of_disks => &of_disks[number % of_disks.len()],
        };
        let Some(pool) = self.rig.pools.iter().find(|pool| pool.name == *pools) else {
            unreachable!("a plan's names lead somewhere: {pools}")
        };
        let nominal_bytes = profile.disks[number].nominal_bytes;
        let size_bytes = nominal_bytes.next_multiple_of(1 << 20);
        let name = format!("{}-{number}", profile.name);
        let volume = self.volume(pool, (number, &name), size_bytes)?;
        let lun_name = match vm_group.luns {
            Luns::PerDisk => name,
            Luns::PerVm => profile.name.clone(),
            Luns::Shared(count) => self.datastore(count),
        };
        let (host_name, controller) = (self.host_name, &pool.controller.name);
        let wiring = &self.rig.wiring;
        let lun = wiring.lun(host_name, controller, &vm_group.name, &lun_name);
        Ok(Rc::new(DiskRig {
            volume: RefCell::new(volume),
            pool: RefCell::new(Rc::clone(pool)),
            host: RefCell::new(Rc::clone(host)),
            lun: RefCell::new(lun),
            lun_name,
            adapter: catalog::adapter(vm_group.adapter),
            adapter_gate: Rc::clone(adapter_gate),
            disk_gate: Gate::new(usize::from(catalog::adapter(vm_group.adapter).disk_queue)),
            limit: IopsLimit::new(vm_group.limit_iops),
            asks_for_data: self.host.initiator == Initiator::FibreChannel,
            size_bytes,
            in_use_bytes: in_use_bytes(profile, vm_group, size_bytes),
            life: Rc::clone(life),
            twin: RefCell::default(),
            under_way: Cell::default(),
            never_sent: Cell::default(),
            in_engine: Cell::default(),
        }))
    }

    /// The name of the datastore of so many that the VM's disks are on.
    fn datastore(&self, count: u16) -> String {
        let number = self.turn % usize::from(count);
        format!("{} {number}", self.vm_group.name)
    }

    fn volume(
        &self,
        pool: &crate::parts::pool::PoolRig,
        (disk, name): (usize, &str),
        size_bytes: u64,
    ) -> Result<engine::Volume<RigWorld>, RehearseError> {
        let vm_group = self.vm_group;
        let refused = |context: String| RehearseError::site(vm_group.line, context);
        let made = pool.make_volume(vm_group.provisioning_of(disk), name, size_bytes);
        let volume = self.rig.finish(made)?.map_err(refused)?;
        let filled = filled_bytes(vm_group, size_bytes);
        if filled > 0 {
            let laid_out = self.rig.finish(volume.lay_out(0..filled))?;
            laid_out.map_err(|error| {
                refused(format!("volume {name:?} in pool {:?}: {error}", pool.name))
            })?;
        }
        Ok(volume)
    }
}
