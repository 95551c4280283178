//! Links: the cost of a message on the wire, and the wire that it takes.
//!
//! A message is cut into frames ([`framing`]); each direction of a link sends
//! them one after the other ([`Lane`]); a group of links ([`balance`]) and a host
//! with several paths ([`multipath`]) choose a link for each flow or command.
//!
//! With `a` the time a message is handed over, `f` the time at which the
//! direction becomes free, `w` bytes on the wire and `b` bits per second:
//!
//! ```text
//! begun = max(a, f)    sent = begun + 8 w / b    arrived = sent + latency
//! latency = metres × 4.9 ns + switches × (forwarding + 8 w_frame / b)
//! ```
//!
//! The last term is a switch that stores a frame before it passes it on: a
//! message of many frames pays it once, because the frames follow each other.
//! A direction alone is a queue with one server, so Poisson arrivals of equal
//! messages at utilisation `ρ` and service time `s` wait, on average,
//! `ρ s / (2 (1 - ρ))` (Pollaczek-Khinchine for M/D/1).
//!
//! Times inside a direction are kept in picoseconds, as a byte at 100 Gb/s takes
//! 80 of them. Nothing is lost and nothing collides: links are full duplex and
//! lossless. Acknowledgements of TCP, which travel the other way, are not
//! charged; [`framing::Ethernet::acknowledgement_share`] says how much that is.

pub mod balance;
pub mod framing;
mod lane;
pub mod multipath;
mod tcp_cost;

pub use framing::{Ethernet, FibreChannel, Framing, OnWire, Packets};
pub use lane::{Delivery, Lane, State};
pub use tcp_cost::TcpCost;

use std::time::Duration;

/// Propagation in glass: c / 1.468, the group index in datasheets of single-mode
/// fibre, so 4.9 ns a metre. Derived; copper differs by about a tenth.
pub const PROPAGATION_PS_PER_METRE: u64 = 4_897;

fn duration(ps: u128) -> Duration {
    Duration::from_nanos(u64::try_from(ps.div_ceil(1_000)).unwrap_or(u64::MAX))
}

/// What a link is like, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// How messages are cut into frames.
    pub framing: Framing,
    /// Bits per second that carry frames: after line coding.
    pub bits_per_second: u64,
    /// Length of the cables in all, metres.
    pub metres: u32,
    /// Switches on the way that store each frame before they pass it on.
    pub switches: u32,
    /// What a switch needs beyond receiving the frame: from its datasheet.
    pub forwarding: Duration,
}

impl Link {
    /// Ethernet of so many bits per second (IEEE 802.3 names the rate before
    /// line coding, so nothing is taken off), without cable or switch.
    pub const fn ethernet(bits_per_second: u64, framing: Ethernet) -> Link {
        Link {
            framing: Framing::Ethernet(framing),
            bits_per_second,
            metres: 0,
            switches: 0,
            forwarding: Duration::ZERO,
        }
    }

    /// Fibre Channel of so many symbols per second with 8b/10b coding (FC-PI:
    /// 4GFC 4.25 GBd, 8GFC 8.5 GBd): eight of ten bits are frames.
    pub const fn fibre_channel(symbols_per_second: u64) -> Link {
        Link {
            framing: Framing::FibreChannel(FibreChannel::FULL),
            bits_per_second: symbols_per_second / 10 * 8,
            metres: 0,
            switches: 0,
            forwarding: Duration::ZERO,
        }
    }

    /// 4GFC, which signals at 4.25 GBd.
    pub const FC_4: Link = Link::fibre_channel(4_250_000_000);
    /// 8GFC, which signals at 8.5 GBd.
    pub const FC_8: Link = Link::fibre_channel(8_500_000_000);

    /// Packets at so many bits per second after line coding.
    pub const fn packets(bits_per_second: u64, packets: Packets) -> Link {
        Link {
            framing: Framing::Packets(packets),
            bits_per_second,
            metres: 0,
            switches: 0,
            forwarding: Duration::ZERO,
        }
    }

    /// A lane of SAS 6 Gb/s: 8b/10b coding leaves 4.8 Gb/s (SAS-2, physical layer).
    pub const SAS_6: Link = Link::packets(4_800_000_000, Packets::SAS);

    /// Time that a message of so much payload occupies the wire, rounded up to a
    /// nanosecond.
    pub fn serialisation(&self, payload_bytes: u64) -> Duration {
        duration(self.serialisation_ps(self.framing.wire(payload_bytes).bytes))
    }

    /// From its last bit out to its last bit in, rounded up to a nanosecond.
    pub fn latency(&self, payload_bytes: u64) -> Duration {
        duration(self.latency_ps(self.framing.wire(payload_bytes).largest_frame_bytes))
    }

    /// The most payload that a direction carries, bytes per second.
    pub fn payload_bytes_per_second(&self) -> f64 {
        self.framing.efficiency() * self.bits_per_second as f64 / 8.0
    }

    /// Time of so many bytes on the wire, picoseconds.
    fn serialisation_ps(&self, wire_bytes: u64) -> u128 {
        u128::from(wire_bytes) * 8_000_000_000_000 / u128::from(self.bits_per_second)
    }

    /// From the last bit out to the last bit in, picoseconds, for a message whose
    /// largest frame is so long.
    fn latency_ps(&self, frame_bytes: u64) -> u128 {
        let cable = u128::from(self.metres) * u128::from(PROPAGATION_PS_PER_METRE);
        let switch = self.forwarding.as_nanos() * 1_000 + self.serialisation_ps(frame_bytes);
        cable + u128::from(self.switches) * switch
    }
}
