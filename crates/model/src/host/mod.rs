//! A host: the cost of an I/O to its processor on the way to the network, and its queues.
//!
//! ```text
//! cycles = initiator per I/O + TCP (segments, bytes) + virtual adapter per I/O
//!        + per interrupt × (interrupts - those that the figures before hold)
//! time   = cycles / clock, on one of equal cores
//! ```
//!
//! The initiator's part is the path of any SCSI command through the host; it is the same for
//! Fibre Channel and iSCSI. TCP comes on top where the host's processor does it: a command, its
//! data and its answer become segments each way ([`TcpCost`]). With segmentation offload
//! the processor sees segments of up to 64 KiB when it sends, with receive offload also when it
//! receives; bytes cost the same. An adapter that speaks TCP itself costs as Fibre Channel does.
//!
//! Cycles are taken as the same on every processor; newer ones do more in a cycle, so on
//! those the costs are upper bounds. An adapter does one I/O at a time at its rated speed.
//!
//! Interrupts come no closer than a gap ([`Coalescing`]). While there is little to do, the first
//! frame of an answer interrupts, and what follows within the gap does once more; an answer in one
//! frame interrupts once. The busier a host is, the more answers share an interrupt. So larger frames
//! save more of an I/O's cycles at a small load than at a large one, and more of the processor at a
//! large one. The path holds one interrupt for each I/O, and TCP's rule of thumb those of a full
//! 1 Gb/s ([`Initiator::interrupts_held`]).
//!
//! Sources: TCP's cost is the rule of thumb of [`TcpCost`]. The path is derived from a published
//! ratio: with a database workload (taken as 8 KiB) Fibre Channel does 2.8 times the I/O of
//! software iSCSI for the same processor time (Third I/O, "An analysis of 8 Gigabit Fibre Channel &
//! 10 Gigabit iSCSI", key findings), so the path is TCP's cost over 1.8. As a check, 1,030,000
//! I/Os a second of 512 bytes by software iSCSI on one server of two Xeon 5500 (Intel and
//! Microsoft, January 2010) leave 25 kilocycles for one if all eight cores of 3.2 GHz
//! (unchecked) were busy: deep queues share interrupts and calls among I/Os, which this
//! model does not, so it is above that.

mod coalescing;
mod queues;

pub use coalescing::{Coalescing, Told};
pub use queues::Adapter;

use crate::link::framing::iscsi_stream_bytes;
use crate::link::{Ethernet, Framing, OnWire, TcpCost};
use std::time::Duration;

/// What a segment holds at most where hardware cuts or joins them: an IP packet's length
/// has 16 bits.
const OFFLOADED_BYTES: u64 = 65_535;
/// Data of an iSCSI PDU: MaxRecvDataSegmentLength of common initiators and targets.
const PDU_DATA_BYTES: u64 = 65_536;
/// Headers of an NFS READ or WRITE, call and reply together (RFC 5531 and RFC 1813): about as
/// many as two iSCSI PDUs and some attributes. Derived.
const NFS_HEADER_BYTES: u64 = 256;

/// A host's processor: equal cores at one clock rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Cores over all sockets.
    pub cores: u16,
    /// Clock rate: cycles per second.
    pub hertz: u64,
}

impl Processor {
    /// So many cycles as time of one core, rounded up to a nanosecond.
    ///
    /// # Panics
    /// When the clock stands still.
    pub fn time(&self, cycles: u64) -> Duration {
        assert!(self.hertz > 0, "a processor without a clock");
        let nanos = (u128::from(cycles) * 1_000_000_000).div_ceil(u128::from(self.hertz));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Share of all cores, 0 to 1, that so many I/Os a second take.
    pub fn share(&self, cycles: u64, per_second: f64) -> f64 {
        cycles as f64 * per_second / (f64::from(self.cores) * self.hertz as f64)
    }
}

/// What crosses the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// An adapter does all of it.
    Adapter,
    /// iSCSI by the processor.
    Iscsi,
    /// NFS by the processor.
    Nfs,
}

/// What network hardware does for the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// Cuts what is sent into segments (TSO).
    pub send: bool,
    /// Joins segments that are received (LRO).
    pub receive: bool,
}

/// How a host reaches its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initiator {
    /// As sites name it.
    pub name: &'static str,
    /// Cycles of an I/O besides TCP.
    pub cycles_per_io: u64,
    /// What crosses the network, and whose work that is.
    pub protocol: Protocol,
    /// What TCP costs where the processor does it.
    pub tcp: TcpCost,
    /// What network hardware does for it.
    pub offload: Offload,
    /// Time of the adapter for an I/O, which it does one after the other.
    pub adapter_time: Duration,
    /// I/Os under way at a port.
    pub port_queue: u16,
    /// I/Os under way to a LUN.
    pub lun_queue: u16,
    /// The same while several VMs of a hypervisor use the LUN, where it says so.
    pub shared_lun_queue: u16,
    /// How interrupts are held back.
    pub coalescing: Coalescing,
}

/// 8 KiB and the headers of command, data and answer, 8 cycles a byte, over 1.8.
const PATH_CYCLES: u64 = (8_192 + 2 * 48 + 48) * 8 * 10 / 18;

impl Initiator {
    /// A Fibre Channel adapter.
    pub const FIBRE_CHANNEL: Initiator = Initiator {
        name: "fibre-channel",
        cycles_per_io: PATH_CYCLES,
        protocol: Protocol::Adapter,
        tcp: TcpCost::HALVES,
        offload: Offload {
            send: true,
            receive: true,
        },
        // 150,000 I/Os a second of a 4 Gb/s adapter (QLogic 2400 series, unchecked).
        adapter_time: Duration::from_nanos(6_667),
        // Exchanges of a port: unchecked. Of a LUN: QLogic's driver for Linux since 2012
        // (qla_os.c, MAX_Q_DEPTH; 32 before that); shared by VMs: 32 by ESXi
        // (Disk.SchedNumReqOutstanding).
        port_queue: 2_048,
        lun_queue: 64,
        shared_lun_queue: 32,
        coalescing: Coalescing::NONE,
    };

    /// iSCSI by the processor, over a network adapter that cuts but does not join segments,
    /// as those of 2008 to 2012.
    pub const ISCSI_SOFTWARE: Initiator = Initiator {
        name: "iscsi",
        protocol: Protocol::Iscsi,
        offload: Offload {
            send: true,
            receive: false,
        },
        adapter_time: Duration::ZERO,
        // A session of open-iscsi and its LUNs (node.session.cmds_max, queue_depth).
        port_queue: 128,
        lun_queue: 32,
        shared_lun_queue: 32,
        coalescing: Coalescing::ETHERNET,
        ..Initiator::FIBRE_CHANNEL
    };

    /// iSCSI by an adapter, TCP included.
    pub const ISCSI_ADAPTER: Initiator = Initiator {
        name: "iscsi-adapter",
        // Derived: the slower processor of the first 1 GbE adapters, 65,000 I/Os a second
        // (QLogic 4050 series, unchecked).
        adapter_time: Duration::from_nanos(15_385),
        port_queue: 512,
        lun_queue: 32,
        ..Initiator::FIBRE_CHANNEL
    };

    /// No host at all, for what is measured in the array: it takes no time, and holds nothing back.
    pub const NONE: Initiator = Initiator {
        name: "none",
        cycles_per_io: 0,
        adapter_time: Duration::ZERO,
        port_queue: u16::MAX,
        lun_queue: u16::MAX,
        shared_lun_queue: u16::MAX,
        ..Initiator::FIBRE_CHANNEL
    };

    /// NFS by the processor. Its queue is that of a connection, shared by all files of a
    /// server's address.
    pub const NFS: Initiator = Initiator {
        name: "nfs",
        protocol: Protocol::Nfs,
        // ESXi 5 sends as much as it has (NFS.MaxQueueDepth, unchecked).
        port_queue: u16::MAX,
        lun_queue: u16::MAX,
        shared_lun_queue: u16::MAX,
        ..Initiator::ISCSI_SOFTWARE
    };

    /// All initiators of hosts.
    pub const ALL: [Initiator; 4] = [
        Initiator::FIBRE_CHANNEL,
        Initiator::ISCSI_SOFTWARE,
        Initiator::ISCSI_ADAPTER,
        Initiator::NFS,
    ];

    /// Bytes of the TCP streams of an I/O, sent and received; none where an adapter does that.
    fn streams(&self, kind: Io, data_bytes: u64) -> Option<(u64, u64)> {
        let stream = match self.protocol {
            Protocol::Adapter => return None,
            Protocol::Iscsi => iscsi_stream_bytes(data_bytes, PDU_DATA_BYTES),
            Protocol::Nfs => data_bytes.next_multiple_of(4) + NFS_HEADER_BYTES / 2,
        };
        // What has no data the other way is a header alone: a command or an answer.
        let header = match self.protocol {
            Protocol::Nfs => NFS_HEADER_BYTES / 2,
            _ => iscsi_stream_bytes(0, PDU_DATA_BYTES),
        };
        // Reads answer with data and status in one PDU, writes take data with the command.
        Some(match kind {
            Io::Read => (header, stream),
            Io::Write => (stream, header),
        })
    }

    /// Cycles of the host for an I/O of so much data, read or written alike but for the
    /// offload, on such a network; with the interrupts of [`Initiator::interrupts_held`].
    pub fn cycles(&self, kind: Io, data_bytes: u64, network: Ethernet) -> u64 {
        let Some((sent, received)) = self.streams(kind, data_bytes) else {
            return self.cycles_per_io;
        };
        let segments = |bytes: u64, joined: bool| match joined {
            true => bytes.div_ceil(OFFLOADED_BYTES),
            false => Framing::Ethernet(network).wire(bytes).frames,
        };
        let segments = segments(sent, self.offload.send) + segments(received, self.offload.receive);
        self.cycles_per_io + self.tcp.cycles(segments, sent + received)
    }

    /// What an I/O's answer comes in on such a network; none where an adapter takes it, and tells
    /// of it once.
    pub fn answer(&self, kind: Io, data_bytes: u64, network: Ethernet) -> Option<OnWire> {
        let (_, received) = self.streams(kind, data_bytes)?;
        Some(Framing::Ethernet(network).wire(received))
    }

    /// Interrupts that [`Initiator::cycles`] holds: one in the path of an I/O; and in what
    /// TCP's segments cost, those that come with them at a full 1 Gb/s, which the rule of thumb is of.
    pub fn interrupts_held(&self, answer: Option<OnWire>) -> f64 {
        let segments = match self.offload.receive {
            true => 0,
            false => answer.map_or(0, |answer| answer.frames),
        };
        let shared = self.tcp.cycles_per_segment > 0;
        1.0 + segments as f64 * if shared { INTERRUPTS_PER_SEGMENT } else { 0.0 }
    }

    /// Cycles of an I/O whose answer came with so many interrupts; fewer than none where they were
    /// shared.
    pub fn interrupt_cycles(&self, interrupts: u64, answer: Option<OnWire>) -> f64 {
        (interrupts as f64 - self.interrupts_held(answer)) * INTERRUPT_CYCLES
    }
}

/// Cycles of an interrupt, with what it puts out of the caches: 4.36 µs on a Pentium III Xeon of
/// 500 MHz, and 4.45 µs on a Pentium II of 300 MHz, so 1,300 to 2,200 (Aron and Druschel, "Soft timers:
/// efficient microsecond software timer support for network processing", SOSP 1999, section 5).
/// The larger of the two, as pipelines have not become shorter; under a hypervisor it may be
/// several times that.
pub const INTERRUPT_CYCLES: f64 = 2_180.0;

/// Interrupts to a segment of 1460 bytes at 1 Gb/s: 20,000 a second ([`Coalescing::ETHERNET`]).
/// Derived.
const INTERRUPTS_PER_SEGMENT: f64 = 20_000.0 / (1e9 / 8.0 / 1_460.0);

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// A read: data comes to the host.
    Read,
    /// A write: data leaves the host.
    Write,
}
