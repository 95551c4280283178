//! The check that a plan fits the workloads that it names: profiles and roles that exist, pools
//! with room for the disks, hosts with memory for each VM. `site::plan` has checked already all
//! that the file alone can tell.

use super::catalog;
use super::demand::Demand;
use super::profiles::{self, Profiles};
use super::thumb;
use engine::label::NAME_BYTES_MAX;
use site::plan::{Described, Plan, TRACE, VmGroup};
use site::{Diagnostic, counted, human};
use workload::profile::{Profile, VmProfile};

/// Everything that does not fit, in the order of lines; nothing when all does.
pub fn fit(plan: &Plan, profiles: Profiles<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    models(plan, &mut found);
    for vm_group in &plan.vm_groups {
        workload(plan, vm_group, profiles, &mut found);
    }
    // Sums over what is not known say nothing.
    if found.is_empty() {
        let demand = Demand::of(plan, profiles);
        room(plan, &demand, &mut found);
        memory(plan, &demand, &mut found);
    }
    found.sort_by_key(|diagnostic| diagnostic.line);
    found
}

/// The same of a file with variants: what does not fit in a variant alone is said where the
/// variant is asked for.
pub fn fit_all(described: &Described, profiles: Profiles<'_>) -> Vec<Diagnostic> {
    let mut found = fit(&described.base, profiles);
    // A mistake of the plan as it stands is one of its variants, too.
    if found.is_empty() {
        for variant in &described.variants {
            for wrong in fit(&variant.plan, profiles) {
                let key = format!("variant {:?}: {}", variant.name, wrong.key);
                push(&mut found, (variant.line, &key), wrong.found, wrong.allowed);
            }
        }
    }
    found
}

fn push(found: &mut Vec<Diagnostic>, (line, key): (usize, &str), what: String, allowed: String) {
    found.push(Diagnostic {
        line,
        key: key.to_owned(),
        found: what,
        allowed,
    });
}

fn models(plan: &Plan, found: &mut Vec<Diagnostic>) {
    let drives = plan.lots.iter().map(|lot| {
        let key = match lot.names.is_empty() {
            true => "drives.model",
            false => "drive.model",
        };
        (key, catalog::drive(lot).err())
    });
    let buses = plan.buses.iter();
    let buses = buses.map(|bus| ("bus.kind", catalog::bus(bus).err()));
    let controllers = plan.controllers.iter();
    let controllers = controllers.map(|one| {
        let key = match model::controller::named(&one.model) {
            Some(_) => "controller.file_system",
            None => "controller.model",
        };
        (key, catalog::controller(one).err())
    });
    for (key, error) in drives.chain(buses).chain(controllers) {
        let Some(error) = error else { continue };
        // "drive model \"x\" is not known; allowed: a, b".
        let (what, allowed) = error
            .context
            .split_once("; allowed: ")
            .unwrap_or((&error.context, ""));
        push(
            found,
            (error.line.unwrap_or(1), key),
            what.to_owned(),
            allowed.to_owned(),
        );
    }
}

fn workload(plan: &Plan, vm_group: &VmGroup, profiles: Profiles<'_>, found: &mut Vec<Diagnostic>) {
    let profile = match profiles::of(plan, &vm_group.profile, profiles) {
        Ok(profile) => profile,
        Err(what) => return unknown_profile(plan, vm_group, what, found),
    };
    let names: Vec<&str> = profile.vms.iter().map(|vm| vm.name.as_str()).collect();
    let roles = vm_group.roles.iter();
    for role in roles.filter(|role| !names.contains(&role.as_str())) {
        let what = format!("{role:?}, which no VM of {} has", vm_group.profile);
        let allowed = format!("one of {}", names.join(", "));
        push(found, at(vm_group, "vm_group.roles"), what, allowed);
    }
    let wanted = |vm: &&VmProfile| vm_group.has(&vm.name);
    let wanted: Vec<&VmProfile> = profile.vms.iter().filter(wanted).collect();
    for vm in &wanted {
        disks_fit(vm_group, vm, found);
    }
    names_fit(plan, vm_group, &wanted, found);
}

fn unknown_profile(plan: &Plan, vm_group: &VmGroup, why: String, found: &mut Vec<Diagnostic>) {
    let at = at(vm_group, "vm_group.profile");
    let mut own = plan.profiles.iter();
    if let Some(own) = own.find(|own| own.name == vm_group.profile) {
        let allowed = "a profile that can be run".to_owned();
        return push(found, (own.line, "profile"), why, allowed);
    }
    // A trace says what is wrong with it.
    if vm_group.profile.starts_with(TRACE) {
        return push(found, at, why, "a trace that can be read".to_owned());
    }
    let what = format!("{:?}, which no profile has", vm_group.profile);
    let own = plan.profiles.iter().map(|own| own.name.as_str());
    let names: Vec<&str> = own.chain(Profile::names()).collect();
    let names = names.join(", ");
    let allowed = match vm_group.is_vm() {
        true => format!("one of {names}"),
        false => format!("one of {names}, or \"{TRACE}FILE\""),
    };
    push(found, at, what, allowed);
}

/// A pool for each disk of `vm`, or a volume.
fn disks_fit(vm_group: &VmGroup, vm: &VmProfile, found: &mut Vec<Diagnostic>) {
    let (listed, disks) = (vm_group.disk_pools.len(), vm.disks.len());
    if listed == 0 || listed == disks {
        return;
    }
    let (list, each) = match vm_group.is_vm() {
        true => {
            let volumes = counted(listed as u64, "volume");
            (format!("a target of {volumes}"), "volume")
        }
        false => (format!("a list of {listed}"), "pool"),
    };
    let what = format!("{list} for the {disks} disks of {}", vm.name);
    let at = at(vm_group, "vm_group.disk_pools");
    let but = match vm_group.is_vm() && listed == 1 {
        true => "; `ashlar load` takes one for all disks, too",
        false => "",
    };
    push(found, at, what, format!("a {each} for each disk{but}"));
}

/// The line and the key of a VM group; of a VM, the key that says the same.
fn at(vm_group: &VmGroup, of_group: &'static str) -> (usize, &'static str) {
    let key = match of_group {
        _ if !vm_group.is_vm() => of_group,
        "vm_group.profile" => "vm.profile",
        "vm_group.roles" => "vm.role",
        "vm_group.disk_pools" => "vm.target",
        "vm_group.name" => "vm.name",
        _ => "host.memory",
    };
    (vm_group.line, key)
}

/// Volumes are named after VM group, VM and disk, snapshots and clones after these and the event.
fn names_fit(plan: &Plan, vm_group: &VmGroup, vms: &[&VmProfile], found: &mut Vec<Diagnostic>) {
    let longest = vms.iter().map(|vm| {
        let (turn, disk, event) = (vm_group.count, vm.disks.len(), plan.events.len());
        format!("{}{turn}-{}-{disk}@event{event}", vm_group.name, vm.name)
    });
    let Some(longest) = longest.max_by_key(String::len) else {
        return;
    };
    if longest.len() > NAME_BYTES_MAX {
        let what = format!(
            "a name of {} bytes, with which a snapshot would be called {longest:?}",
            vm_group.name.len()
        );
        let over = longest.len() - NAME_BYTES_MAX;
        let allowed = format!("{} bytes at most", vm_group.name.len().saturating_sub(over));
        push(found, at(vm_group, "vm_group.name"), what, allowed);
    }
}

fn room(plan: &Plan, demand: &Demand, found: &mut Vec<Diagnostic>) {
    for (place, pool) in plan.pools.iter().enumerate() {
        let taken: u64 = demand
            .disks_in(place)
            .map(|(_, disk)| disk.taken_bytes)
            .sum();
        let bytes: u64 = thumb::group_bytes(plan, pool).iter().sum();
        if taken > bytes {
            let what = format!("{} of disks in {}", human(taken), human(bytes));
            let allowed =
                "disks that the pool has room for: more groups, or thin disks that are filled less";
            let key = match thumb::has_names(plan, pool) {
                true => "pool.drives",
                false => "pool.groups",
            };
            push(found, (pool.line, key), what, allowed.to_owned());
        }
    }
}

fn memory(plan: &Plan, demand: &Demand, found: &mut Vec<Diagnostic>) {
    for (place, vm_group) in plan.vm_groups.iter().enumerate() {
        let vms = demand.vms.iter().filter(|vm| vm.vm_group == place);
        let Some(largest) = vms.max_by_key(|vm| vm.memory_bytes) else {
            continue;
        };
        let hosts = plan
            .hosts
            .iter()
            .filter(|host| vm_group.hosts.contains(&host.name));
        for host in hosts.filter(|host| host.memory_bytes < largest.memory_bytes) {
            let what = format!(
                "VM {} with {} on host {:?} with {}",
                largest.role,
                human(largest.memory_bytes),
                host.name,
                human(host.memory_bytes)
            );
            push(
                found,
                at(vm_group, "vm_group.memory"),
                what,
                "no VM larger than its host".to_owned(),
            );
        }
    }
}
