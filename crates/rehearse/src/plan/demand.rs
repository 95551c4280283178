//! The demand of a plan's VMs on hosts and pools, added up from their profiles.
//!
//! A VM stands where the rehearsal puts it: VM by VM the hosts of its VM group in turn, and the
//! pools in turn, or a pool for each of its disks. Nothing here runs.

use super::profiles::{self, Profiles};
use super::resident;
use site::Provisioning;
use site::plan::{Plan, VmGroup};
use workload::profile::{MEAN_LATENCY_LIMIT, Pacing, Profile, VmProfile};

/// A stream of operations on a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its name in the profile.
    pub stream: String,
    /// Per second, of an open loop.
    pub per_s: f64,
    /// Under way all of the time, of a closed loop, in place of a rate. Of threads, while an
    /// operation takes as long as is planned for.
    pub outstanding: Option<f64>,
    /// Share that reads, 0 to 1.
    pub reads: f64,
    /// Share at random places, 0 to 1.
    pub random: f64,
    /// Sizes, each equally likely, in bytes.
    pub sizes: Vec<u32>,
}

impl Flow {
    /// The mean size in bytes.
    pub fn bytes(&self) -> f64 {
        self.sizes.iter().map(|size| f64::from(*size)).sum::<f64>() / self.sizes.len() as f64
    }

    /// Whether it is what databases write ahead: writes alone, one after the other.
    pub fn is_log(&self) -> bool {
        self.reads == 0.0 && self.random == 0.0
    }

    /// Whether most of it is at random places.
    pub fn is_random(&self) -> bool {
        self.random > 0.5
    }
}

/// A disk of a VM.
#[derive(Clone, Debug, PartialEq)]
pub struct Disk {
    /// Its pool: a place in the plan.
    pub pool: usize,
    /// As the guest sees it.
    pub size_bytes: u64,
    /// How it takes space.
    pub provisioning: Provisioning,
    /// What it takes of the pool at the start.
    pub taken_bytes: u64,
    /// What is done to it; nothing for one that is idle.
    pub flows: Vec<Flow>,
}

/// A VM of a VM group, with its host and its disks.
#[derive(Clone, Debug, PartialEq)]
pub struct Vm {
    /// Its VM group: a place in the plan.
    pub vm_group: usize,
    /// Its name in the profile.
    pub role: String,
    /// Its host: a place among [`Plan::host_names`].
    pub host: usize,
    /// Virtual processors that the guest sees.
    pub vcpus: u32,
    /// Memory that the host gives it, bytes.
    pub memory_bytes: u64,
    /// Under way at most.
    pub outstanding_max: usize,
    /// Its disks, the system disk first.
    pub disks: Vec<Disk>,
}

/// All VMs of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    /// In the order of the plan's VM groups, then of the profile.
    pub vms: Vec<Vm>,
}

impl Demand {
    /// Adds up `plan`. VM groups whose profile or roles are not known have no VMs: [`crate::plan::fit`]
    /// says so.
    pub fn of(plan: &Plan, profiles: Profiles<'_>) -> Demand {
        let mut vms = Vec::new();
        for (place, vm_group) in plan.vm_groups.iter().enumerate() {
            if let Ok(profile) = profiles::of(plan, &vm_group.profile, profiles) {
                vms.extend(of_vm_group(plan, (place, vm_group), &profile));
            }
        }
        Demand { vms }
    }

    /// Disks in the pool at `pool`, each with its VM.
    pub fn disks_in(&self, pool: usize) -> impl Iterator<Item = (&Vm, &Disk)> {
        let disks = self
            .vms
            .iter()
            .flat_map(|vm| vm.disks.iter().map(move |disk| (vm, disk)));
        disks.filter(move |(_, disk)| disk.pool == pool)
    }

    /// Something of all VMs on each host, added up.
    pub fn by_host(&self, plan: &Plan, of_vm: impl Fn(&Vm) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; plan.host_names().len()];
        for vm in &self.vms {
            sums[vm.host] += of_vm(vm);
        }
        sums
    }

    /// Memory of the VMs on each host.
    pub fn memory_by_host(&self, plan: &Plan) -> Vec<u64> {
        let mut memory = vec![0u64; plan.host_names().len()];
        for vm in &self.vms {
            memory[vm.host] = memory[vm.host].saturating_add(vm.memory_bytes);
        }
        memory
    }
}

fn of_vm_group(plan: &Plan, (place, vm_group): (usize, &VmGroup), profile: &Profile) -> Vec<Vm> {
    let hosts = places_of_hosts(plan, vm_group);
    let pools = |names: &[String]| -> Vec<usize> {
        let place = |name: &String| plan.pools.iter().position(|pool| pool.name == *name);
        names.iter().filter_map(place).collect()
    };
    let (of_vms, of_disks) = (pools(&vm_group.pools), pools(&vm_group.disk_pools));
    if hosts.is_empty() || (of_vms.is_empty() && of_disks.is_empty()) {
        return Vec::new();
    }
    let wanted = |vm: &&VmProfile| vm_group.has(&vm.name);
    let of_profile = profile.vms.iter().filter(wanted);
    let each: Vec<VmProfile> = of_profile.map(|vm| resident::of(vm_group, vm)).collect();
    let all = (0..vm_group.count).flat_map(|_| each.iter());
    let vm = |(turn, vm): (usize, &VmProfile)| {
        let disk = |number: usize| Disk {
            pool: match of_disks.as_slice() {
                [] => of_vms[turn % of_vms.len()],
                pools => pools[number % pools.len()],
            },
            size_bytes: vm.disks[number].nominal_bytes,
            provisioning: vm_group.provisioning_of(number),
            taken_bytes: taken_bytes(vm_group, number, vm.disks[number].nominal_bytes),
            flows: (0..vm.streams.len())
                .filter_map(|stream| flow(vm, stream, number))
                .collect(),
        };
        Vm {
            vm_group: place,
            role: vm.name.clone(),
            host: hosts[(place + turn) % hosts.len()],
            vcpus: vm.compute.vcpus,
            memory_bytes: vm.compute.memory_bytes,
            outstanding_max: vm.outstanding_max(),
            disks: (0..vm.disks.len()).map(disk).collect(),
        }
    };
    all.enumerate().map(vm).collect()
}

fn places_of_hosts(plan: &Plan, vm_group: &VmGroup) -> Vec<usize> {
    let numbered = plan
        .hosts
        .iter()
        .flat_map(|host| host.names().into_iter().map(move |_| host));
    let ours = numbered
        .enumerate()
        .filter(|(_, host)| vm_group.hosts.contains(&host.name));
    ours.map(|(place, _)| place).collect()
}

fn taken_bytes(vm_group: &VmGroup, disk: usize, size_bytes: u64) -> u64 {
    match vm_group.provisioning_of(disk) {
        Provisioning::Thick => size_bytes,
        Provisioning::Thin => size_bytes / 100 * u64::from(vm_group.filled_percent),
    }
}

/// What stream `index` does to the disk of that number.
fn flow(vm: &VmProfile, index: usize, number: usize) -> Option<Flow> {
    let stream = &vm.streams[index];
    let all: u64 = stream.weights.iter().map(|weight| u64::from(*weight)).sum();
    let share = f64::from(*stream.weights.get(number)?) / all as f64;
    if share == 0.0 || stream.mix.sizes.is_empty() {
        return None;
    }
    let (per_s, outstanding) = match stream.pacing {
        Pacing::Open { per_second } => (per_second * share, None),
        Pacing::Closed { outstanding } => (0.0, Some(outstanding as f64 * share)),
        Pacing::Threads(_) | Pacing::Commits { .. } => {
            // By Little's law.
            let per_s = vm.threads_per_s(index, MEAN_LATENCY_LIMIT).unwrap_or(0.0);
            (0.0, Some(per_s * MEAN_LATENCY_LIMIT.as_secs_f64() * share))
        }
    };
    Some(Flow {
        stream: stream.name.clone(),
        per_s,
        outstanding,
        reads: f64::from(stream.mix.read_percent) / 100.0,
        random: f64::from(stream.mix.random_percent) / 100.0,
        sizes: stream.mix.sizes.clone(),
    })
}
