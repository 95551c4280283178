//! The cost of TCP to the processor of a host without offload: a cost per segment and a cost per
//! byte.
//!
//! ```text
//! cycles = segments × per_segment + bytes × per_byte
//! ```
//!
//! The one published figure is the rule of thumb of a cycle per bit at MTU 1500
//! ("1 GHz/1 Gbps", examined in Foong et al., "TCP performance re-visited", ISPASS
//! 2003). How it divides between segments and bytes was not found in anything
//! published for such a host, so the two ends of what is possible are given: with
//! larger frames the truth lies between them.

use std::time::Duration;

/// Processor cycles of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpCost {
    /// Cycles for each segment sent or received.
    pub cycles_per_segment: u64,
    /// Cycles for each byte of payload.
    pub cycles_per_byte: u64,
}

impl TcpCost {
    /// A cycle per bit, if all of it went into segments of 1460 bytes (MTU 1500
    /// without options): larger frames help the most. Derived.
    pub const SEGMENTS_ONLY: TcpCost = TcpCost {
        cycles_per_segment: 8 * 1460,
        cycles_per_byte: 0,
    };
    /// A cycle per bit, if all of it went into bytes: larger frames help nothing.
    /// Derived.
    pub const BYTES_ONLY: TcpCost = TcpCost {
        cycles_per_segment: 0,
        cycles_per_byte: 8,
    };

    /// The middle of the two: half of it in segments, half in bytes. Derived; at MTU 1500 it
    /// is as the ends are, and no measurement says where between them larger frames lie.
    pub const HALVES: TcpCost = TcpCost {
        cycles_per_segment: 4 * 1460,
        cycles_per_byte: 4,
    };

    /// Cycles for so much payload in so many segments.
    pub fn cycles(&self, segments: u64, payload_bytes: u64) -> u64 {
        segments * self.cycles_per_segment + payload_bytes * self.cycles_per_byte
    }

    /// The same as time of one processor core, rounded up to a nanosecond.
    ///
    /// # Panics
    /// When the clock stands still.
    pub fn time(&self, segments: u64, payload_bytes: u64, hertz: u64) -> Duration {
        assert!(hertz > 0, "a processor without a clock");
        let cycles = u128::from(self.cycles(segments, payload_bytes));
        let nanos = (cycles * 1_000_000_000).div_ceil(u128::from(hertz));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
