//! Controllers that sites can name. "Derived" marks figures that no source gives, "unchecked" what
//! is commonly said of the product while its page was not at hand. No figure comes from a site that
//! a rehearsal predicts.
//!
//! Processors differ in clock and in the work they do in a clock. The work is taken relative to
//! the K8 Opteron from what their makers announced, generation by generation, all unchecked:
//!
//! | processor | work in a clock | from |
//! |---|---|---|
//! | Opteron (K8) | 1 | |
//! | Xeon 5600 (Westmere), both threads | 1.6 | Core 2 1.2 of K8, Nehalem 1.12 of Core 2, its threads 1.2 |
//! | EPYC of the fourth generation | 2.9 | K10 1.15 of K8, Excavator 1.1 of K10, Zen 1.52, then 1.15, 1.19 and 1.13 |
//!
//! Take what follows from them as right within a third.

use super::{Controller, Costs, FileSystem, Interconnect, WriteCache};
use crate::link::{Ethernet, Link, Packets};
use std::time::Duration;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Clock in MHz and thousandths of K8's work in a clock.
struct Processor {
    mhz: u64,
    work: u64,
}

const OPTERON: Processor = Processor {
    mhz: 2_600,
    work: 1_000,
};
const XEON_5600: Processor = Processor {
    mhz: 2_400,
    work: 1_600,
};
/// That of the machine that [`ASHLAR`] was measured on; its clock by a chain of dependent additions.
const EPYC_4: Processor = Processor {
    mhz: 2_940,
    work: 2_900,
};

impl Costs {
    /// What takes so long on one processor, on another one.
    const fn on(self, to: Processor, measured_on: Processor) -> Costs {
        self.times(measured_on.mhz * measured_on.work, to.mhz * to.work)
    }
}

/// What `make calibrate` measured of this engine (docs/internals/models.md, "Controllers").
const MEASURED: Costs = Costs {
    per_command_ps: 2_389_000,
    per_kib_ps: 557_000,
    per_drive_command_ps: 2_846_000,
    per_parity_kib_ps: 207_000,
    per_write_ps: 2_420_000,
    per_log_kib_ps: 243_000,
};

/// This server on four cores of a virtual machine, without non-volatile memory.
pub const ASHLAR: Controller = Controller {
    name: "ashlar",
    cores: 4,
    costs: MEASURED,
    // What a pool has unless its site file says otherwise.
    cache_bytes: 64 * MIB,
    // An eighth of a server's memory, of 64 GiB here, unless its site file says otherwise.
    checksum_bytes: 8 * GIB,
    write_cache: None,
    // Derived: the network of today's servers. This engine sends nothing over it yet.
    interconnect: Interconnect {
        link: Link::ethernet(25_000_000_000, Ethernet::JUMBO),
        answer: ETHERNET_ANSWER,
    },
    writes_anywhere: false,
    file_system: None,
    drive_queue: None,
};

/// Operations a second of two FAS3160 (SPECsfs2008_nfs.v3, July 2009: 60,409 with Fibre
/// Channel drives, and 60,507 with a cache card in the place of most drive reads, so it
/// is not the drives that bound them).
const FAS3160_OPERATIONS: u64 = 60_409;
/// Their cores: two dual-core Opterons of 2.6 GHz in each (unchecked).
const FAS3160_CORES: u64 = 2 * 4;

/// A command of a commercial array of those years, on an Opteron: all cores of two FAS3160
/// busy with 60,409 operations a second are 132 µs for each, what it does for writes
/// included. It is an upper bound, as cores may have waited. Most of the operations move no
/// data, so data, drives and parity cost extra: as this engine's, on that processor. A system of the same family with half the cores (FAS3140,
/// SPECsfs2008_nfs.v3, December 2008: 40,109) has 100 µs by the same rule.
const COMMERCIAL: Costs = Costs {
    per_command_ps: FAS3160_CORES * 1_000_000_000_000 / FAS3160_OPERATIONS,
    per_write_ps: 0,
    ..MEASURED.on(OPTERON, EPYC_4)
};

/// A NetApp FAS3160 controller, one of the pair.
const FAS3160: Controller = Controller {
    name: "fas3160",
    cores: 4,
    costs: COMMERCIAL,
    // 8 GB and 2 GB: unchecked; the FAS3140 and FAS3170 pairs have 8 GB with 1 GB and 32 GB
    // with 4 GB (NetApp Tech OnTap, July 2008). Half of the NVRAM is the partner's.
    cache_bytes: 6 * GIB,
    checksum_bytes: 0,
    write_cache: Some(WriteCache {
        bytes: GIB,
        // Derived: PCI Express of the first generation, eight lanes, 90 % of it payload.
        bytes_per_second: 1_800_000_000,
    }),
    // Derived: InfiniBand 4X at single data rate, 8 Gb/s of data, in the chassis.
    interconnect: Interconnect {
        link: Link::packets(8_000_000_000, Packets::INFINIBAND),
        answer: ANSWER,
    },
    // Its file system "writes blocks anywhere", and chooses them so that stripes are whole (Hitz,
    // Lau and Malcolm, "File System Design for an NFS File Server Appliance", USENIX 1994).
    writes_anywhere: true,
    file_system: None,
    drive_queue: None,
};

/// Derived: two interrupts of some microseconds each, one there and one back.
const ANSWER: Duration = Duration::from_micros(10);
/// Derived: the same through the TCP of both ends.
const ETHERNET_ANSWER: Duration = Duration::from_micros(60);

/// PCI Express of the second generation, four lanes of 5 GT/s with 8b/10b coding. Derived: what
/// joins the two controllers is not published for these arrays.
const PCIE_2_X4: Interconnect = Interconnect {
    link: Link::packets(16_000_000_000, Packets::PCIE),
    answer: ANSWER,
};

/// Derived: one channel of DDR3-1066 (8.5 GB/s) that is read and written for each byte.
const DDR3_COPY: u64 = 4_250_000_000;

/// An EMC VNX5700 storage processor.
const VNX5700: Controller = Controller {
    name: "vnx5700",
    // One Xeon of the 5600 series, four cores of 2.4 GHz, and 18 GB (unchecked).
    cores: 4,
    costs: COMMERCIAL.on(XEON_5600, OPTERON),
    // Derived: two thirds of the memory are cache, of that two thirds for writes.
    cache_bytes: 4 * GIB,
    checksum_bytes: 0,
    write_cache: Some(WriteCache {
        bytes: 8 * GIB,
        bytes_per_second: DDR3_COPY,
    }),
    interconnect: PCIE_2_X4,
    writes_anywhere: false,
    file_system: None,
    drive_queue: None,
};

/// A Dell EqualLogic PS6100 controller with four 1 GbE ports; one of two is active, and the
/// other one mirrors its cache (Dell EqualLogic Configuration Guide 14.1).
const PS6100: Controller = Controller {
    name: "ps6100",
    // Its processor is not published. Derived: two cores as a FAS3160's; 24 drives ask for less.
    cores: 2,
    costs: COMMERCIAL,
    // 4 GB (unchecked; the generation before had 2 GB, same guide), half of it for writes.
    cache_bytes: 2 * GIB,
    checksum_bytes: 0,
    write_cache: Some(WriteCache {
        bytes: 2 * GIB,
        bytes_per_second: DDR3_COPY,
    }),
    interconnect: PCIE_2_X4,
    writes_anywhere: false,
    file_system: None,
    drive_queue: None,
};

/// A PS6110 controller: the same with one 10 GbE port.
const PS6110: Controller = Controller {
    name: "ps6110",
    ..PS6100
};

/// A Dell EqualLogic FS7500 controller, one of an active pair that mirrors its writes: 24 GB of
/// memory with batteries each (Dell EqualLogic Configuration Guide 14.1).
const FS7500: Controller = Controller {
    name: "fs7500",
    // Its processor is not published. Derived: a server's of its year, as the VNX5700's.
    cores: 4,
    costs: VNX5700.costs,
    cache_bytes: 16 * GIB,
    checksum_bytes: 0,
    write_cache: Some(WriteCache {
        bytes: 4 * GIB,
        bytes_per_second: DDR3_COPY,
    }),
    // The "internal network" of 1 GbE links: two, MTU 9000 (unchecked).
    interconnect: Interconnect {
        link: Link::ethernet(2_000_000_000, Ethernet::JUMBO),
        answer: ETHERNET_ANSWER,
    },
    writes_anywhere: false,
    // Its administrators' guides have metadata on two volumes; how a file is mapped is not published.
    file_system: Some(FileSystem::POINTERS),
    drive_queue: None,
};

/// All that a site can name.
pub const ALL: [Controller; 6] = [ASHLAR, FAS3160, VNX5700, PS6100, PS6110, FS7500];

/// The controller of this name.
pub fn named(name: &str) -> Option<Controller> {
    ALL.into_iter().find(|controller| controller.name == name)
}
