//! The methods by which hypervisors migrate: their defaults, with sources.

use std::time::Duration;

/// Which links a migration uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// One connection, so one link: a group of links or MPIO hashes a connection to a member.
    OneLink,
    /// Connections on every link, which take pages from one list: vSphere's multi-NIC
    /// vMotion, SMB multichannel.
    EveryLink,
}

/// What carries the pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transport {
    /// TCP: each connection is worked on by one core at each end, which needs so long for a
    /// byte, core-seconds.
    Tcp {
        /// Of each end.
        core_seconds_per_byte: f64,
    },
    /// RDMA over iWARP: adapters move the pages, processors do nothing for a byte.
    Iwarp,
}

/// Compression on cores that are free.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compression {
    /// Bytes in over bytes out, from 1.
    pub ratio: f64,
    /// What the source needs for a byte that goes in, core-seconds.
    pub compress_seconds_per_byte: f64,
    /// What the destination needs for a byte that comes out, core-seconds.
    pub expand_seconds_per_byte: f64,
}

/// When the machine is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// When what is left can be sent within this.
    pub goal: Duration,
    /// Or after so many rounds, from 1.
    pub rounds: u32,
    /// Whether the machine is slowed down when rounds do not get shorter.
    pub throttle: bool,
}

/// The way in which a hypervisor migrates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Method {
    /// As tables name it.
    pub name: &'static str,
    /// Which links a migration uses.
    pub spread: Spread,
    /// Connections on each link that it uses, from 1.
    pub connections_per_link: u32,
    /// What carries the pages.
    pub transport: Transport,
    /// Whether they are compressed before.
    pub compression: Option<Compression>,
    /// When the machine is stopped.
    pub stop: Stop,
    /// To build the machine on the destination.
    pub build: Duration,
    /// To resume it there when all its memory is there.
    pub resume: Duration,
    /// To tear it down on the source.
    pub tear_down: Duration,
}

/// "A second or two" each, as the lab notes on Hyper-V 2012 R2 have it: the middle.
const BUILD_OR_TEAR_DOWN: Duration = Duration::from_millis(1500);
/// The least downtime that Clark et al. report (NSDI 2005, a Quake server): what it takes
/// when there is hardly any memory to copy.
const RESUME: Duration = Duration::from_millis(60);
/// vSphere's log: pages "can be sent within the switchover time goal of 0.500 seconds".
/// Microsoft publishes no goal but that the rest is copied "in milliseconds"; the same is
/// taken for Hyper-V.
const GOAL: Duration = Duration::from_millis(500);
/// Hyper-V stops after ten passes (Directions on Microsoft, "Live Migration Switch Over",
/// 2009).
const HYPER_V_ROUNDS: u32 = 10;

/// A single migration takes "around 4 Gbps", with one core full (Windows IT Pro, "Understand
/// Bandwidth Usage on 10Gbps Network Adapters"): 2 ns for a byte. The clock of the processor
/// is not stated.
const WINDOWS_TCP: Transport = Transport::Tcp {
    core_seconds_per_byte: 2.0e-9,
};
/// vMotion "reserves 100% of a single core" for a link of 10 GbE, and 10% for each of 1 GbE
/// (F. Denneman, "Calculating the bandwidth usage and duration of a vMotion process", 2012):
/// 0.8 ns for a byte of 10 Gb/s.
const VMOTION_TCP: Transport = Transport::Tcp {
    core_seconds_per_byte: 0.8e-9,
};

/// Of a figure of cycles for a byte, such as those of [`crate::link::TcpCost`], at a clock.
///
/// # Panics
/// When the clock stands still.
pub fn core_seconds_per_byte(cycles_per_byte: f64, hertz: u64) -> f64 {
    assert!(hertz > 0, "a processor without a clock");
    cycles_per_byte / hertz as f64
}

impl Compression {
    /// A fast compressor of the time on one core of 2.7 GHz: LZ4 r101 on the Silesia corpus,
    /// 2.084 at 422 MB/s in and 1820 MB/s out (table in its README of 2013). Which algorithm
    /// Hyper-V uses is not published. Microsoft says that compression about halves the time.
    pub const FAST: Compression = Compression {
        ratio: 2.084,
        compress_seconds_per_byte: 1.0 / 422e6,
        expand_seconds_per_byte: 1.0 / 1820e6,
    };
}

impl Method {
    /// Windows Server 2012, and 2012 R2 with "TCP/IP": one connection for memory and state,
    /// beside one for control that hardly sends (M. van Eijk, "NIC Teaming, Hyper-V switch,
    /// QoS and actual performance", part 4, 2013).
    pub const HYPER_V_TCP: Method = Method {
        name: "Hyper-V, TCP",
        spread: Spread::OneLink,
        connections_per_link: 1,
        transport: WINDOWS_TCP,
        compression: None,
        stop: Stop {
            goal: GOAL,
            rounds: HYPER_V_ROUNDS,
            throttle: false,
        },
        build: BUILD_OR_TEAR_DOWN,
        resume: RESUME,
        tear_down: BUILD_OR_TEAR_DOWN,
    };

    /// Windows Server 2012 R2 with "Compression", its default.
    pub const HYPER_V_COMPRESSED: Method = Method {
        name: "Hyper-V, compressed",
        compression: Some(Compression::FAST),
        ..Method::HYPER_V_TCP
    };

    /// Windows Server 2012 R2 with "SMB" over adapters with RSS: four connections on each
    /// (J. Barreto, "The basics of SMB Multichannel").
    pub const HYPER_V_SMB: Method = Method {
        name: "Hyper-V, SMB multichannel",
        spread: Spread::EveryLink,
        connections_per_link: 4,
        ..Method::HYPER_V_TCP
    };

    /// Windows Server 2012 R2 with "SMB" over adapters with RDMA: "two [connections] per
    /// interface" ("Improve Performance of a File Server with SMB Direct", Microsoft).
    pub const HYPER_V_SMB_DIRECT: Method = Method {
        name: "Hyper-V, SMB Direct",
        connections_per_link: 2,
        transport: Transport::Iwarp,
        ..Method::HYPER_V_SMB
    };

    /// vSphere 5: a connection on each link, and a machine that dirties faster than it is
    /// copied is slowed down ("Stun During Page Send"; D. Epping, "vSphere 5.0: vMotion
    /// Enhancements", 2011). A limit of rounds is not published; 100 is ours, and is not
    /// reached once the machine is slowed down.
    pub const VSPHERE_5: Method = Method {
        name: "vSphere 5",
        spread: Spread::EveryLink,
        connections_per_link: 1,
        transport: VMOTION_TCP,
        stop: Stop {
            goal: GOAL,
            rounds: 100,
            throttle: true,
        },
        ..Method::HYPER_V_TCP
    };

    /// Hyper-V moves so many at once unless told otherwise (Set-VMHost,
    /// MaximumVirtualMachineMigrations).
    pub const HYPER_V_AT_ONCE: usize = 2;
    /// vSphere 5 moves so many at once over 1 GbE ("Limits on Simultaneous Migrations",
    /// vSphere documentation).
    pub const VSPHERE_5_AT_ONCE_GIGABIT: usize = 4;
    /// And so many over 10 GbE.
    pub const VSPHERE_5_AT_ONCE_TEN_GIGABIT: usize = 8;
}
