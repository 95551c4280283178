//! The names that a plan may use, and the models that they stand for.

use crate::controller::CpuCosts;
use crate::drive::DriveKind;
use crate::error::RehearseError;
use crate::host::IoCosts;
use model::flash::Flash;
use model::hdd::Hdd;
use model::link::{Ethernet, Framing, Link};
use site::plan::{Adapter, Bus, Controller, Host, Initiator, Lot, Network, NetworkKind, Plan};
use std::time::Duration;

/// Drives by name.
const DRIVES: [(&str, DriveKind); 6] = [
    ("sas-15k-600", DriveKind::Hdd(Hdd::SAS_15K)),
    ("sas-10k-600", DriveKind::Hdd(Hdd::SAS_10K)),
    ("nl-sas-1000", DriveKind::Hdd(Hdd::NL_SAS_7K2)),
    ("slc-100", DriveKind::Flash(Flash::SLC_SAS_100)),
    ("slc-200", DriveKind::Flash(Flash::SLC_SAS_200)),
    ("nvme-7680", DriveKind::Flash(Flash::TLC_NVME_7680)),
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
/// `Site` for a name that is not known.
pub fn drive(lot: &Lot) -> Result<DriveKind, RehearseError> {
    match DRIVES.iter().find(|(name, _)| *name == lot.model) {
        Some((_, kind)) => Ok(*kind),
        None => {
            let names = DRIVES.iter().map(|(name, _)| *name);
            unknown(lot.line, "drive model", &lot.model, names)
        }
    }
}

/// Four lanes of SAS at 6 Gb/s with 8b/10b coding.
const SAS_6G_X4: Link = Link {
    framing: Framing::FibreChannel(model::link::FibreChannel::FULL),
    bits_per_second: 19_200_000_000,
    metres: 0,
    switches: 0,
    forwarding: Duration::ZERO,
};

const BUSES: [(&str, Link); 4] = [
    ("sas-6g-x4", SAS_6G_X4),
    ("fc-al-4g", Link::FC_4),
    (
        "iscsi-1g-x4",
        Link::ethernet(4_000_000_000, Ethernet::JUMBO),
    ),
    (
        "pcie",
        Link {
            bits_per_second: 128_000_000_000,
            ..SAS_6G_X4
        },
    ),
];

/// A bus.
///
/// # Errors
/// `Site` for a name that is not known.
pub fn bus(bus: &Bus) -> Result<Link, RehearseError> {
    match BUSES.iter().find(|(name, _)| *name == bus.kind) {
        Some((_, link)) => Ok(*link),
        None => {
            let names = BUSES.iter().map(|(name, _)| *name);
            unknown(bus.line, "bus", &bus.kind, names)
        }
    }
}

/// A link of a network.
pub fn link(network: &Network) -> Link {
    let link = match network.kind {
        NetworkKind::Ethernet { mtu_bytes } => {
            let framing = Ethernet {
                mtu_bytes,
                ..Ethernet::STANDARD
            };
            Link::ethernet(network.bits_per_s, framing)
        }
        // 1 Gb/s as it is sold is 1.0625 GBd: FC-PI.
        NetworkKind::FibreChannel => {
            Link::fibre_channel(network.bits_per_s / 1_000_000_000 * 1_062_500_000)
        }
    };
    Link {
        // Half of them, rounded up, are before each of the two ports of a way.
        switches: u32::from(network.switches.div_ceil(2)),
        ..link
    }
}

/// A controller with what its plan says otherwise.
pub struct ControllerModel {
    /// Processor cores.
    pub cores: usize,
    /// Processor time.
    pub costs: CpuCosts,
    /// RAM for reads.
    pub cache_bytes: u64,
    /// Write cache that survives a power cut; 0 is none.
    pub write_cache_bytes: u64,
    /// To its partner.
    pub interconnect: Link,
    /// Whether sums of blocks go along with them, in sectors of 520 bytes or the like.
    pub sums_along: bool,
}

/// A controller.
///
/// # Errors
/// `Site` for a name that is not known.
pub fn controller(said: &Controller) -> Result<ControllerModel, RehearseError> {
    let us = |said: Option<f64>, model_us: f64| said.unwrap_or(model_us) * 1e3;
    let costs = &said.costs;
    Ok(ControllerModel {
        cores: usize::from(said.cores.unwrap_or(4)),
        costs: CpuCosts {
            per_command_ns: us(costs.per_command_us, 12.0),
            per_kib_ns: us(costs.per_kib_us, 0.2),
            per_drive_command_ns: us(costs.per_drive_command_us, 5.0),
            per_parity_kib_ns: us(costs.per_parity_kib_us, 0.1),
            per_log_kib_ns: us(costs.per_log_kib_us, 0.2),
        },
        cache_bytes: said.cache_bytes.unwrap_or(1 << 30),
        write_cache_bytes: said.write_cache_bytes.unwrap_or(1 << 30),
        interconnect: SAS_6G_X4,
        sums_along: said.model != "ashlar",
    })
}

/// What an I/O costs a host's processor.
pub fn io_costs(_plan: &Plan, host: &Host) -> IoCosts {
    let per_io_ns = match host.initiator {
        Initiator::IscsiSoftware | Initiator::Nfs => 20_000.0,
        Initiator::IscsiHardware | Initiator::FibreChannel => 10_000.0,
    };
    IoCosts {
        per_io_ns,
        per_frame_ns: 0.0,
        per_kib_ns: 0.0,
        frame_bytes: 1448,
        latency: Duration::ZERO,
    }
}

/// Commands that a host has under way to a LUN.
pub fn lun_queue(host: &Host) -> usize {
    usize::from(host.lun_queue.unwrap_or(64))
}

/// Commands that an adapter has under way to a disk.
pub fn adapter_queue(adapter: Adapter) -> Option<usize> {
    match adapter {
        Adapter::LsiSas => Some(32),
        Adapter::Pvscsi => Some(64),
        Adapter::Vmbus | Adapter::Virtio => Some(128),
        Adapter::None => None,
    }
}
