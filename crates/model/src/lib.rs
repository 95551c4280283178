//! Models of hardware and of operations on machines: pure functions of (state, request,
//! randomness).
//!
//! A model knows no clock and no executor. It is told when a request arrives and
//! says when it ends, at once or, where it reorders, when it is asked again; who
//! calls it makes the time pass.
//!
//! [`hdd`] and [`flash`]: drives. [`link`]: Ethernet and Fibre Channel, groups and paths.
//! [`bus`]: between controllers and drives. [`controller`], [`host`]: what commands cost their
//! processors, and their queues. [`vm`]: what VMs are to a host besides their I/O.
//! [`station`]: a queue with servers, such as the cores of a host.
//! [`constant`]: a drive for tests whose figures can be checked by hand. [`throttled`]: a drive
//! that anybody can build out of a file and measure. [`measured`]: a drive that was measured.
//!
//! What needs no request and no randomness is asked once and answers with all that will happen:
//! [`migration`] of machines, [`availability`] of clusters, advice on [`capacity`],
//! [`scalability`] of programs.

pub mod availability;
pub mod bus;
pub mod capacity;
pub mod constant;
pub mod controller;
pub mod flash;
pub mod hdd;
pub mod host;
pub mod link;
pub mod measured;
pub mod migration;
pub mod scalability;
pub mod station;
pub mod throttled;
pub mod vm;

use base::{DriveOffset, Time};

/// What a modelled drive is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operation that is asked for.
    pub kind: RequestKind,
    /// Where on the drive.
    pub at: DriveOffset,
    /// Length of the range that begins at `at`.
    pub len_bytes: u64,
}

/// The operations of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Bytes from the medium.
    Read,
    /// Bytes to the medium.
    Write,
    /// Bytes to the medium, which are durable when the command ends. Where nothing that a drive says is
    /// volatile, it is as any other write.
    DurableWrite,
    /// What was written becomes durable.
    Flush,
    /// Bytes are given back.
    Discard,
}

impl RequestKind {
    /// Whether it brings bytes to the medium.
    pub fn writes(self) -> bool {
        matches!(self, RequestKind::Write | RequestKind::DurableWrite)
    }
}

/// A command's name at its drive, in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// A command that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// As its arrival gave it.
    pub ticket: Ticket,
    /// The instant at which the command ends.
    pub end: Time,
}
