//! The names that a plan may use, and the models that they stand for.

use crate::error::RehearseError;
use crate::parts::drive::DriveKind;
use crate::parts::host::HostModel;
use model::bus::Bus;
use model::controller::{Controller, Costs, FileSystem};
use model::flash::Flash;
use model::hdd::Hdd;
use model::host::{Adapter, Initiator, Processor};
use model::link::{Ethernet, Link};
use model::measured::{Curve, Curves, Measured};
use model::throttled::Throttled;
use site::human_pair;
use site::plan::{
    self, Assumption, DriveModel, Lot, Machine, MeasuredCommands, MeasuredCurve, Network,
    NetworkKind, Placement, Plan,
};
use std::sync::Arc;

/// The names for drives that a lot may use, with their models.
pub const DRIVES: [(&str, DriveKind); 11] = [
    ("sas-15k-600", DriveKind::Hdd(Hdd::SAS_15K)),
    ("sas-15k-300", DriveKind::Hdd(Hdd::SAS_15K_300)),
    ("sas-10k-900", DriveKind::Hdd(Hdd::SAS_10K_900)),
    ("sas-10k-600", DriveKind::Hdd(Hdd::SAS_10K)),
    ("sas-10k-300", DriveKind::Hdd(Hdd::SAS_10K_300)),
    ("nl-sas-1000", DriveKind::Hdd(Hdd::NL_SAS_7K2)),
    ("sata-1000", DriveKind::Hdd(Hdd::SATA_7K2)),
    ("slc-100", DriveKind::Flash(Flash::SLC_SAS_100)),
    ("slc-200", DriveKind::Flash(Flash::SLC_SAS_200)),
    ("nvme-7680", DriveKind::Flash(Flash::TLC_NVME_7680)),
    // Nobody sells it: `make check-array` makes it out of files.
    ("slowed-file", DriveKind::Throttled(Throttled::SLOWED_FILE)),
];

fn unknown<T>(
    line: usize,
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'static str>,
) -> Result<T, RehearseError> {
    let known: Vec<&str> = known.collect();
    let context = format!(
        "{what} {name:?} is not known; allowed: {}",
        known.join(", ")
    );
    Err(RehearseError::site(line, context))
}

/// The drives of a lot.
///
/// # Errors
/// `Site` for a name that is not known, and where nothing says how large its drives are.
pub fn drive(lot: &Lot) -> Result<DriveKind, RehearseError> {
    if let Some(own) = &lot.measured {
        let capacity_bytes = own.capacity_bytes.or(lot.drive_bytes);
        let Some(capacity_bytes) = capacity_bytes else {
            let context = format!(
                "drive model {:?} has no capacity; allowed: one with capacity, or drives with a size",
                own.name
            );
            return Err(RehearseError::site(lot.line, context));
        };
        return Ok(DriveKind::Measured(Arc::new(measured(own, capacity_bytes))));
    }
    match DRIVES.iter().find(|(name, _)| *name == lot.model) {
        Some((_, kind)) => Ok(kind.clone()),
        None => {
            let names = DRIVES.iter().map(|(name, _)| *name);
            unknown(lot.line, "drive model", &lot.model, names)
        }
    }
}

/// The model that a file describes itself.
fn measured(own: &DriveModel, capacity_bytes: u64) -> Measured {
    let curves = |of: &MeasuredCommands| Curves {
        by_size: of.curves.iter().map(curve).collect(),
        spread: of.spread.clone(),
    };
    Measured {
        name: own.name.clone(),
        capacity_bytes,
        rotational: own.rotational,
        shared: own.shared,
        reads: curves(&own.reads),
        writes: curves(&own.writes),
        durable_writes: curves(&own.durable_writes),
        flushes: curves(&own.flushes),
        durable_write_share: own.durable_write_share,
    }
}

fn curve(own: &MeasuredCurve) -> Curve {
    Curve {
        len_bytes: own.len_bytes,
        per_s: own.per_s.clone(),
    }
}

/// Bytes that each drive of a lot offers: the model's, or what the file says of smaller ones.
pub fn capacity_bytes(lot: &Lot, kind: &DriveKind) -> u64 {
    let said = lot.drive_bytes.unwrap_or(u64::MAX);
    said.min(kind.capacity_bytes())
}

/// What a plan assumes, and the drives that are modelled smaller than their files.
pub fn assumed(plan: &Plan) -> Vec<Assumption> {
    let smaller = plan.lots.iter().filter_map(|lot| {
        let model_bytes = drive(lot).ok()?.capacity_bytes();
        let said = lot.drive_bytes.filter(|said| *said > model_bytes)?;
        let (said, of_model) = human_pair(said, model_bytes);
        Some(Assumption {
            key: "drive.size".to_owned(),
            value: format!(
                "{of_model}, all that model \"{}\" has of {said}, for {}",
                lot.model,
                lot.names.join(", ")
            ),
        })
    });
    plan.assumed.iter().cloned().chain(smaller).collect()
}

/// A bus.
///
/// # Errors
/// `Site` for a name that is not known.
pub fn bus(bus: &plan::Bus) -> Result<Bus, RehearseError> {
    match Bus::named(&bus.kind) {
        Some(model) => Ok(model),
        None => {
            let names = Bus::ALL.iter().map(|bus| bus.name);
            unknown(bus.line, "bus", &bus.kind, names)
        }
    }
}

/// Frames of a network that is Ethernet; TCP with timestamps.
fn ethernet(network: &Network) -> Option<Ethernet> {
    match network.kind {
        NetworkKind::Ethernet { mtu_bytes } => Some(Ethernet {
            mtu_bytes,
            ..Ethernet::STANDARD
        }),
        NetworkKind::FibreChannel => None,
    }
}

/// A link of a network.
pub fn link(network: &Network) -> Link {
    let link = match ethernet(network) {
        Some(framing) => Link::ethernet(network.bits_per_s, framing),
        // 1 Gb/s as it is sold is 1.0625 GBd: FC-PI.
        None => Link::fibre_channel(network.bits_per_s / 1_000_000_000 * 1_062_500_000),
    };
    Link {
        // Half of them, rounded up, are before each of the two ports of a way.
        switches: u32::from(network.switches.div_ceil(2)),
        ..link
    }
}

/// A controller with what its plan says otherwise.
///
/// # Errors
/// `Site` for a name that is not known.
pub fn controller(said: &plan::Controller) -> Result<Controller, RehearseError> {
    let Some(model) = model::controller::named(&said.model) else {
        let names = model::controller::ALL
            .iter()
            .map(|controller| controller.name);
        return unknown(said.line, "controller model", &said.model, names);
    };
    let mut model = model;
    let ps = |said: Option<f64>, model_ps: u64| said.map_or(model_ps, |us| (us * 1e6) as u64);
    let (costs, of_model) = (&said.costs, model.costs);
    model.costs = Costs {
        per_command_ps: ps(costs.per_command_us, of_model.per_command_ps),
        per_kib_ps: ps(costs.per_kib_us, of_model.per_kib_ps),
        per_drive_command_ps: ps(costs.per_drive_command_us, of_model.per_drive_command_ps),
        per_parity_kib_ps: ps(costs.per_parity_kib_us, of_model.per_parity_kib_ps),
        per_write_ps: of_model.per_write_ps,
        per_log_kib_ps: ps(costs.per_log_kib_us, of_model.per_log_kib_ps),
    };
    model.writes_anywhere = said.writes_anywhere.unwrap_or(model.writes_anywhere);
    model.file_system = file_system(said, &model)?;
    model.drive_queue = said.drive_queue.or(model.drive_queue);
    model.cores = said.cores.unwrap_or(model.cores);
    model.cache_bytes = said.cache_bytes.unwrap_or(model.cache_bytes);
    model.checksum_bytes = said.checksum_bytes.unwrap_or(model.checksum_bytes);
    model.write_cache = match (said.write_cache_bytes, model.write_cache) {
        (Some(0), _) => None,
        (Some(bytes), Some(cache)) => Some(model::controller::WriteCache { bytes, ..cache }),
        (Some(bytes), None) => Some(model::controller::WriteCache {
            bytes,
            bytes_per_second: WRITE_CACHE_BYTES_PER_S,
        }),
        (None, cache) => cache,
    };
    Ok(model)
}

/// What a controller has before its pools.
///
/// # Errors
/// `Site` where it writes anywhere: its maps would have to go along.
fn file_system(
    said: &plan::Controller,
    model: &Controller,
) -> Result<Option<FileSystem>, RehearseError> {
    let file_system = match said.file_system {
        Some(has_one) => has_one.then_some(FileSystem::POINTERS),
        None => model.file_system,
    };
    if file_system.is_none() || !model.writes_anywhere {
        return Ok(file_system);
    }
    let context = format!(
        "controller {:?} writes anywhere and has a file system; allowed: file_system = \"none\", or \
         writes = \"in-place\"",
        said.name
    );
    Err(RehearseError::site(said.line, context))
}

/// Non-volatile memory of a controller whose model has none: one DDR4-3200 channel that is read and
/// written for each byte (JESD79-4, 25.6 GB/s).
const WRITE_CACHE_BYTES_PER_S: u64 = 12_800_000_000;

/// Where the pools of a controller lie on their drives. Who writes in place leaves data where the
/// pool put it as it filled, from the outside. Who writes anywhere has come round all of the drives,
/// as an array that has run for a long time.
pub fn placement(said: &plan::Controller, model: &Controller) -> Placement {
    said.placement.unwrap_or(match model.writes_anywhere {
        true => Placement::Spread,
        false => Placement::OutsideIn,
    })
}

/// Whether the sums of blocks go along with them, in sectors of 520 bytes or the like: in
/// arrays of other makes, whose drives are formatted so (EMC VNX and NetApp FAS; taken for
/// EqualLogic, too). Ashlar keeps them apart, on any drive.
pub fn takes_sums_along(said: &plan::Controller) -> bool {
    said.model != model::controller::ASHLAR.name
}

/// The host model for a `host` of the plan; its frames are those of its first storage network.
pub fn host(plan: &Plan, said: &Machine) -> HostModel {
    let initiator = initiator(said.initiator);
    let storage: Vec<&plan::Ports> = said.ports.iter().filter(|p| is_storage(plan, p)).collect();
    let network = storage.first().and_then(|ports| {
        let mut networks = plan.networks.iter();
        networks.find(|network| network.name == ports.network)
    });
    let ports: u16 = storage.iter().map(|ports| ports.count).sum();
    HostModel {
        processor: Processor {
            cores: said.cores,
            hertz: (said.clock_ghz * 1e9) as u64,
        },
        initiator,
        ethernet: network.and_then(ethernet).unwrap_or(Ethernet::STANDARD),
        bits_per_s: network.map_or(BITS_PER_S, |network| network.bits_per_s.max(1)),
        port_queue: usize::from(initiator.port_queue) * usize::from(ports.max(1)),
        memory_bytes: said.memory_bytes,
    }
}

/// A host without ports for storage never waits for a frame.
const BITS_PER_S: u64 = 10_000_000_000;

/// Whether ports of a host lead into a network that controllers are in.
fn is_storage(plan: &Plan, ports: &plan::Ports) -> bool {
    let mut of_controllers = plan.controllers.iter().flat_map(|c| &c.ports);
    of_controllers.any(|other| other.network == ports.network)
        || plan
            .networks
            .iter()
            .any(|network| network.name == ports.network && network.uplink.is_some())
}

/// How a host reaches its storage.
pub fn initiator(said: plan::Initiator) -> Initiator {
    match said {
        plan::Initiator::IscsiSoftware => Initiator::ISCSI_SOFTWARE,
        plan::Initiator::IscsiHardware => Initiator::ISCSI_ADAPTER,
        plan::Initiator::FibreChannel => Initiator::FIBRE_CHANNEL,
        plan::Initiator::Nfs => Initiator::NFS,
        plan::Initiator::None => Initiator::NONE,
    }
}

/// Commands that a host has under way to a LUN, which several VMs share or not.
pub fn lun_queue(host: &Machine, is_shared: bool) -> usize {
    let initiator = initiator(host.initiator);
    let of_model = match is_shared {
        true => initiator.shared_lun_queue,
        false => initiator.lun_queue,
    };
    usize::from(host.lun_queue.unwrap_or(of_model))
}

/// How a VM sees its disks.
pub fn adapter(said: plan::Adapter) -> Adapter {
    match said {
        plan::Adapter::LsiSas => Adapter::LSI_SAS,
        plan::Adapter::Pvscsi => Adapter::PVSCSI,
        plan::Adapter::Vmbus => Adapter::VMBUS,
        plan::Adapter::Virtio => Adapter::VIRTIO,
        plan::Adapter::None => Adapter::NONE,
    }
}
