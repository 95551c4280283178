//! A plan in checked types: hardware, layout, load and events.

use super::drive_model::DriveModel;
use super::profile::{Capture, Measured, Profile};
use crate::types::Provisioning;
use engine::raid::{Protection, Spread};
use engine::{GroupRole, Level};
use std::time::Duration;

/// A described installation: hardware, layout, load, and what happens to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What people call it.
    pub name: String,
    /// What it is, in a sentence.
    pub about: Option<String>,
    /// How long it is looked at, and what is asked of it.
    pub run: Run,
    /// Storage controllers; one or more.
    pub controllers: Vec<Controller>,
    /// Ways from controllers to drives; one or more.
    pub buses: Vec<Bus>,
    /// Drives by the dozen; one or more lots.
    pub lots: Vec<Lot>,
    /// Pools of them; one or more.
    pub pools: Vec<Layout>,
    /// Networks between hosts and controllers; one or more.
    pub networks: Vec<Network>,
    /// Machines that VMs run on; one or more.
    pub hosts: Vec<Machine>,
    /// VMs with their loads; one or more.
    pub vm_groups: Vec<VmGroup>,
    /// Models of drives that the file describes itself.
    pub drive_models: Vec<DriveModel>,
    /// Loads that the file describes itself.
    pub profiles: Vec<Profile>,
    /// What happens while it runs, in the order of the file.
    pub events: Vec<Event>,
    /// Where the file is a capture of a running array.
    pub capture: Option<Capture>,
    /// What its volumes did.
    pub measured: Vec<Measured>,
    /// What the file does not say.
    pub assumed: Vec<Assumption>,
}

/// Something that the file does not say, and that is modelled as usual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// The key that would say it, such as `drive.model`.
    pub key: String,
    /// What is modelled, and where.
    pub value: String,
}

/// How long a rehearsal looks, and what it is held against.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Not measured, from the start on.
    pub warmup: Duration,
    /// Measured, after the warm-up.
    pub measure: Duration,
    /// The first seed, 0 to 65535; further runs take those after it.
    pub seed: u64,
    /// Seeds that are run, one after the other.
    pub seeds: u16,
    /// Mean response time that reads and writes stay below.
    pub limit: Duration,
}

/// A storage controller: model, caches, and ports into networks.
#[derive(Clone, Debug, PartialEq)]
pub struct Controller {
    /// Unique over the site.
    pub name: String,
    /// Where the file describes it.
    pub line: usize,
    /// What it is like: a name of the models.
    pub model: String,
    /// Processor cores, where other than the model's.
    pub cores: Option<u16>,
    /// RAM for reads, where other than the model's; 0 is none.
    pub cache_bytes: Option<u64>,
    /// RAM for checksums of blocks, where other than the model's.
    pub checksum_bytes: Option<u64>,
    /// Write cache that survives a power cut, where other than the model's; 0 is none:
    /// the write log is on the drives then.
    pub write_cache_bytes: Option<u64>,
    /// The controller that it mirrors its write cache to.
    pub partner: Option<String>,
    /// Where its pools lie on drives, where other than the model's.
    pub placement: Option<Placement>,
    /// Whether writes go to whole free stripes and never over what is there, where other than the
    /// model's.
    pub writes_anywhere: Option<bool>,
    /// Whether it is a NAS head, with a file system before its pools, where other than the model's.
    pub file_system: Option<bool>,
    /// Commands that it lets a drive have at once, where it bounds them.
    pub drive_queue: Option<u16>,
    /// Processor time, where other than the model's.
    pub costs: Costs,
    /// Where it is reached.
    pub ports: Vec<Ports>,
}

/// Where pools lie on their drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// From the outermost tracks inwards, as they fill.
    OutsideIn,
    /// In slices over the whole stroke, however little they hold.
    Spread,
}

/// Processor time of a controller, microseconds; the model's where none is said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// Of a host's command.
    pub per_command_us: Option<f64>,
    /// Of a KiB between host and cache.
    pub per_kib_us: Option<f64>,
    /// Of a command to a drive.
    pub per_drive_command_us: Option<f64>,
    /// Of a KiB of parity.
    pub per_parity_kib_us: Option<f64>,
    /// Of a KiB of a copy of the write log.
    pub per_log_kib_us: Option<f64>,
}

/// Ports into a network, all alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Ports {
    /// Name of the network.
    pub network: String,
    /// Number of ports; at least one.
    pub count: u16,
}

/// A way from controllers to drives.
#[derive(Clone, Debug, PartialEq)]
pub struct Bus {
    /// Unique over the site.
    pub name: String,
    /// Where the file describes it.
    pub line: usize,
    /// What it is: a name of the models.
    pub kind: String,
}

/// Drives that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Lot {
    /// Unique over the site; its drives are this and their number.
    pub name: String,
    /// Where the file describes it; of drives with names of their own, where the model of one
    /// is or would be.
    pub line: usize,
    /// What they are: a name of the models.
    pub model: String,
    /// How many; at least one.
    pub count: u32,
    /// The bus that they are behind.
    pub bus: String,
    /// What each is called, where they have names of their own.
    pub names: Vec<String>,
    /// What each offers, where that is less than the model's.
    pub drive_bytes: Option<u64>,
    /// The model, where the file describes it itself.
    pub measured: Option<DriveModel>,
}

/// Which drives make a pool, and who owns it.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Unique over the site.
    pub name: String,
    /// Where the file describes it.
    pub line: usize,
    /// The controller that owns it.
    pub controller: String,
    /// Its groups; at least one.
    pub groups: Vec<Groups>,
    /// Drives that stand in for those that fail.
    pub spares: Vec<DriveShare>,
    /// A power of two.
    pub stripe_unit_bytes: u32,
    /// A power of two.
    pub page_bytes: u32,
    /// What the data log takes of each drive that carries it, where it is said.
    pub log_bytes: Option<u64>,
    /// Parts that different threads serve, each with its own log; at least one.
    pub lanes: u16,
}

/// RAID groups that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// How each group protects data.
    pub level: Level,
    /// How each is wider than its stripes, if it is: with distributed spares.
    pub spread: Option<Spread>,
    /// Whether it is for data or for the logs.
    pub role: GroupRole,
    /// Number of drives in each group, 1 to 32; with distributed spares, to 64.
    pub drives: u16,
    /// How many groups; at least one.
    pub count: u16,
    /// The lot that they are taken from.
    pub from: String,
}

impl Groups {
    /// Level of each, and how it is wider than its stripes.
    pub fn protection(&self) -> Protection {
        Protection {
            level: self.level,
            spread: self.spread,
        }
    }
}

/// Drives out of a lot.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveShare {
    /// Name of the lot that they are from.
    pub from: String,
    /// How many; at least one.
    pub count: u16,
}

/// How a network frames what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkKind {
    /// Ethernet, full duplex.
    Ethernet {
        /// Bytes of IP in a frame.
        mtu_bytes: u16,
    },
    /// Fibre Channel, which has no MTU to set.
    FibreChannel,
}

/// What a network is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Storage alone, no other traffic.
    Storage,
    /// What people and other machines send, and VMs that move; no storage.
    Lan,
    /// Both on the same links.
    Both,
}

impl Carries {
    /// Whether hosts reach storage by it.
    pub fn storage(self) -> bool {
        self != Carries::Lan
    }

    /// Whether VMs move by it.
    pub fn lan(self) -> bool {
        self != Carries::Storage
    }
}

/// A network; all its links are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Unique over the site.
    pub name: String,
    /// Where the file describes it.
    pub line: usize,
    /// How it frames data, with the MTU of Ethernet.
    pub kind: NetworkKind,
    /// What it is for.
    pub carries: Carries,
    /// Of each link, as it is sold ("8 Gb/s" of Fibre Channel are 6.8).
    pub bits_per_s: u64,
    /// Switches between a host and a controller.
    pub switches: u16,
    /// The way to another network.
    pub uplink: Option<Uplink>,
}

/// Links from one network to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Uplink {
    /// Name of the network at the other end.
    pub to: String,
    /// Links, each as fast as this network's.
    pub links: u16,
}

/// How a host reaches its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initiator {
    /// iSCSI by the host's processor.
    IscsiSoftware,
    /// iSCSI by an adapter.
    IscsiHardware,
    /// A Fibre Channel adapter.
    FibreChannel,
    /// NFS by the host's processor.
    Nfs,
    /// None, as if VMs ran in the array.
    None,
}

/// How a host chooses among its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// Multipath: the links in turn, from command to command.
    RoundRobin,
    /// Multipath: the link with the fewest commands.
    LeastQueue,
    /// A group of links: each virtual port stays on one.
    Port,
    /// A group of links: by the hash of the hardware addresses.
    Mac,
    /// A group of links: by the hash of the IP addresses of both ends.
    IpHash,
}

/// Machines that VMs run on, all alike: the hardware of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Unique over the site; with more than one, each is this and its number.
    pub name: String,
    /// Where the file describes it.
    pub line: usize,
    /// How many; at least one.
    pub count: u16,
    /// Processor cores of each.
    pub cores: u16,
    /// Clock of its cores, GHz.
    pub clock_ghz: f64,
    /// RAM of each host, in bytes.
    pub memory_bytes: u64,
    /// Equal parts that cores and RAM of each are in, where it is known.
    pub numa_nodes: Option<u16>,
    /// Whether their cluster has a witness: a disk or share with a vote.
    pub witness: bool,
    /// Where it is connected.
    pub ports: Vec<Ports>,
    /// How it reaches its storage.
    pub initiator: Initiator,
    /// How it chooses among its links.
    pub balance: Balance,
    /// Addresses of the storage that it uses, for the hash of [`Balance::IpHash`].
    pub addresses: u16,
    /// Commands under way to a LUN, where other than the initiator's.
    pub lun_queue: Option<u16>,
}

/// The virtual disk adapter of VMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adapter {
    /// LSI Logic SAS, emulated.
    LsiSas,
    /// VMware's paravirtual SCSI.
    Pvscsi,
    /// Hyper-V's VMBus.
    Vmbus,
    /// Virtio, as KVM guests use it.
    Virtio,
    /// A raw LUN in the VM without any.
    None,
}

/// What shares a LUN and its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Luns {
    /// Each virtual disk has one.
    PerDisk,
    /// All disks of a VM share one.
    PerVm,
    /// So many datastores, which VMs go to in turn.
    Shared(u16),
}

/// What stands before the file of a trace, where a VM group replays one.
pub const TRACE: &str = "trace:";

/// VMs with a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct VmGroup {
    /// Unique over the site.
    pub name: String,
    /// Where the file describes it.
    pub line: usize,
    /// The workload profile, or [`TRACE`] and a file.
    pub profile: String,
    /// Of its VMs, these; all when there are none.
    pub roles: Vec<String>,
    /// How often all of them are there; at least once.
    pub count: u16,
    /// Hosts that the VMs go to in turn.
    pub hosts: Vec<String>,
    /// Pools that the VMs' disks go to, VM by VM in turn.
    pub pools: Vec<String>,
    /// Pools of the disks of each VM, disk by disk; in the place of `pools`.
    pub disk_pools: Vec<String>,
    /// How the VMs see their disks.
    pub adapter: Adapter,
    /// What shares a LUN.
    pub luns: Luns,
    /// How disks take space.
    pub provisioning: Provisioning,
    /// How much of each disk is written before, percent.
    pub filled_percent: u8,
    /// Factor on rates, above zero.
    pub scale: f64,
    /// In the place of what the profile has under way in closed loops, and of its threads.
    pub outstanding: Option<u16>,
    /// Between the end of an operation of a closed loop and the next one in its place; of threads
    /// the mean between two transactions, in the place of the profile's.
    pub think: Option<Duration>,
    /// Mean processor time of a transaction, in the place of the profile's.
    pub work: Option<Duration>,
    /// Threads that are in a transaction at a time, in the place of the profile's.
    pub connections: Option<u16>,
    /// Memory of each VM, which a move or a restart takes time for; in the place of the
    /// profile's.
    pub memory_bytes: Option<u64>,
    /// What the hypervisor lets through to each virtual disk, I/Os per second.
    pub limit_iops: Option<u32>,
    /// Size of each disk of a VM, in the place of the profile's; the profile's where there are
    /// none.
    pub disk_bytes: Vec<u64>,
    /// How each disk takes space, in the place of `provisioning`; none where all are alike.
    pub disk_provisioning: Vec<Provisioning>,
}

/// Something that happens at a time of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Where the file describes it.
    pub line: usize,
    /// From the start of the run.
    pub at: Duration,
    /// What happens then, and to which part of the site.
    pub what: Happening,
}

/// How a host copies what the array does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCopy {
    /// Of each read and each write.
    pub transfer_bytes: u32,
    /// Pieces that are read or written at once, 1 to 256.
    pub outstanding: u16,
}

/// How the memory of VMs goes from host to host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// TCP, as it is.
    Tcp,
    /// TCP, compressed as far as cores are free.
    Compressed,
    /// Several connections over all links.
    Multichannel,
    /// RDMA over all links.
    Rdma,
}

/// How VMs move between hosts, and how many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// How their memory goes.
    pub method: Method,
    /// How many at once, where other than the hypervisor's.
    pub at_once: Option<u16>,
}

/// Failures, moves and work that an event begins.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// A drive fails; a spare takes its place if there is one.
    DriveFails {
        /// Name of the drive that fails.
        drive: String,
    },
    /// A host loses its power; its VMs are started elsewhere.
    HostFails {
        /// Name of the host that fails.
        host: String,
        /// Until others start its VMs, where other than the hypervisor's.
        detection: Option<Duration>,
        /// I/Os of a VM's boot, where other than those measured.
        operations: Option<u32>,
        /// What a VM does after its boot until its service is back.
        recovery: Option<Duration>,
    },
    /// A controller loses its power; its partner takes its pools.
    ControllerFails {
        /// Name of the controller that fails.
        controller: String,
        /// Until the partner serves them.
        takeover: Option<Duration>,
    },
    /// One of a host's links into a network goes down.
    LinkDown {
        /// Name of the host.
        host: String,
        /// Name of the network.
        network: String,
    },
    /// It comes up again.
    LinkUp {
        /// Name of the host.
        host: String,
        /// Name of the network.
        network: String,
    },
    /// All disks of a VM group's VMs are snapshotted.
    Snapshot {
        /// Name of the VM group.
        vm_group: String,
    },
    /// They are restored from the last snapshot.
    Restore {
        /// Name of the VM group.
        vm_group: String,
    },
    /// VMs of a VM group are cloned.
    Clone {
        /// Name of the VM group.
        vm_group: String,
        /// How many of its VMs.
        vms: u16,
        /// VMs that a host works on at once.
        at_once: u16,
        /// Whether the array copies.
        offload: bool,
        /// How the host copies, if it does.
        copy: HostCopy,
    },
    /// The disks of a VM group's VMs move to a pool, which may be the one that they are in: to
    /// another volume there.
    MoveStorage {
        /// Name of the VM group.
        vm_group: String,
        /// Name of the pool.
        to: String,
        /// How many disks of each VM, from the first on; all where none is said.
        disks: Option<u16>,
        /// VMs that a host works on at once.
        at_once: u16,
        /// Whether the array copies.
        offload: bool,
        /// How the host copies, if it does.
        copy: HostCopy,
    },
    /// The VMs of a VM group start all at once.
    BootStorm {
        /// Name of the VM group.
        vm_group: String,
        /// I/Os of a VM's boot, where other than those measured.
        operations: Option<u32>,
    },
    /// A host's VMs move to the others.
    Drain {
        /// Name of the host that its VMs leave.
        host: String,
        /// How the VMs move, and how many at once.
        migration: Migration,
    },
    /// VMs of a VM group move to a host.
    LiveMigration {
        /// Name of the VM group.
        vm_group: String,
        /// How many of its VMs that are elsewhere; all where none is said.
        vms: Option<u16>,
        /// Name of the host.
        to: String,
        /// How the VMs move, and how many at once.
        migration: Migration,
    },
    /// The hypervisor's limit of virtual disks is another one from now on.
    LimitIops {
        /// Name of the VM group.
        vm_group: String,
        /// Name of the VM; all of the VM group where none is said.
        vm: Option<String>,
        /// Of each disk, I/Os per second; none lifts it.
        iops: Option<u32>,
    },
    /// VMs of a VM group get more virtual processors while they run.
    AddCpu {
        /// Name of the VM group.
        vm_group: String,
        /// How many more, each.
        vcpus: u16,
        /// Share of the work that one processor can do at a time, 0 to 1.
        contention: f64,
    },
}

impl Plan {
    /// Names of all drives, lot by lot: `sas-00`, `sas-01`, and so on.
    pub fn drive_names(&self) -> Vec<String> {
        self.lots.iter().flat_map(Lot::drive_names).collect()
    }

    /// Names of all hosts: a host that is there once has its own, others are numbered
    /// from 1.
    pub fn host_names(&self) -> Vec<String> {
        self.hosts.iter().flat_map(Machine::names).collect()
    }
}

impl Lot {
    /// Names of its drives.
    pub fn drive_names(&self) -> impl Iterator<Item = String> {
        (0..self.count).map(|index| self.drive_name(index))
    }

    /// Whether one of them is called `name`.
    pub fn has_drive(&self, name: &str) -> bool {
        if !self.names.is_empty() {
            return self.names.iter().any(|own| own == name);
        }
        let number = name
            .rsplit_once('-')
            .and_then(|(_, number)| number.parse().ok());
        number.is_some_and(|number| number < self.count && self.drive_name(number) == name)
    }

    /// The name of one of them, counted from 0.
    pub fn drive_name(&self, index: u32) -> String {
        let own = self.names.get(index as usize).cloned();
        own.unwrap_or_else(|| format!("{}-{index:02}", self.name))
    }
}

impl VmGroup {
    /// Whether it stands for a `[[vm]]`, whose disks are volumes.
    pub fn is_vm(&self) -> bool {
        !self.disk_bytes.is_empty()
    }

    /// How that disk of a VM takes space, counted from 0.
    pub fn provisioning_of(&self, disk: usize) -> Provisioning {
        let own = self.disk_provisioning.get(disk).copied();
        own.unwrap_or(self.provisioning)
    }

    /// Whether it has the VM of its profile that is called so.
    pub fn has(&self, role: &str) -> bool {
        self.roles.is_empty() || self.roles.iter().any(|wanted| wanted == role)
    }
}

impl Machine {
    /// Names of the hosts that it stands for.
    pub fn names(&self) -> Vec<String> {
        match self.count {
            1 => vec![self.name.clone()],
            count => (1..=count).map(|n| format!("{}{n}", self.name)).collect(),
        }
    }
}
