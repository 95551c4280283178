//! Live migration of virtual machines: its duration, its blackout, and its use of links and
//! processors.
//!
//! A migration builds the machine on the destination, copies its memory while it runs
//! (pre-copy, round by round), stops it, copies the rest, resumes it on the destination and
//! tears it down on the source (Clark et al., "Live migration of virtual machines", NSDI
//! 2005). With `M` the memory, `U` what of it was never touched, `D(t)` the bytes that are
//! dirtied within `t` ([`Activity`]), `r` the rate at which memory is copied and `g` the
//! blackout aimed at:
//!
//! ```text
//! b[0] = M - U     t[i] = b[i] / r     b[i+1] = D(t[i])          bytes, seconds
//! stop when b[i+1] ≤ r g, or after the most rounds               rounds
//! blackout = b[last] / r + resume                                seconds
//! total = build + Σ t[i] + blackout + tear-down                  seconds
//! ```
//!
//! Pages that are dirtied faster than they can be copied come back in every round; a
//! hypervisor that throttles slows the machine down when it dirties faster than is sent. The rate is in `rate`: connections on a link share it, a connection has one core
//! at each end, and memory may be compressed as far as cores are free.
//!
//! Migrations wait in the order given until fewer than so many are under way; links that
//! several use are shared, and rates change whenever a round, a phase or a migration ends.
//!
//! Invariants: every migration ends; between two instants of the outcome rates are constant;
//! no link carries more than its payload rate; no more cores are used than are free. Nothing
//! is random.
//!
//! Left out: loss on the network, the memory that tracking and page tables take, headers of
//! pages, what the migration slows the machine down by, and storage that moves with it.

mod activity;
mod method;
mod outcome;
mod rate;
mod run;

pub use activity::{Activity, WritableSet};
pub use method::{Compression, Method, Spread, Stop, Transport, core_seconds_per_byte};
pub use outcome::{Interval, Migrated, Outcome, Round};
pub use run::migrate;

use crate::link::Link;

/// Bytes of a gigabyte of memory: 2^30, as machines are sized.
pub const MEMORY_GB: u64 = 1 << 30;

/// A machine that is to move.
#[derive(Clone, Debug, PartialEq)]
pub struct Vm {
    /// Memory that the machine is given, bytes.
    pub memory_bytes: u64,
    /// What of it was never touched, or was given back by a balloon, bytes: it is not sent.
    pub untouched_bytes: u64,
    /// What it does to its memory while it is copied.
    pub activity: Activity,
    /// The link that its one connection comes to, by a hash or a setting; in turn where
    /// none is given. Of no effect where a migration uses every link.
    pub link: Option<usize>,
}

impl Vm {
    /// A machine of so much memory, all of it touched, that writes nothing.
    pub const fn idle(memory_bytes: u64) -> Vm {
        Vm {
            memory_bytes,
            untouched_bytes: 0,
            activity: Activity::IDLE,
            link: None,
        }
    }
}

/// Between which hosts, over what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Equal links between the two hosts, from 1.
    pub links: usize,
    /// What each is like.
    pub link: Link,
    /// Cores of each host that nobody else uses; below one core there may be a part of one.
    pub free_cores: f64,
    /// Migrations under way at the same time, from 1.
    pub at_once: usize,
}
