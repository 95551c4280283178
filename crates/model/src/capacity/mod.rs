//! Advice on moves of virtual disks, so that no datastore is too full or too slow, as VMware's
//! Storage DRS gives it.
//!
//! A datastore wants relief when it is fuller than a threshold (80 %) or slower than one (15 ms,
//! normalised over what a datastore can do). Latency grows with what is outstanding (Gulati et
//! al., "BASIL: automated IO load balancing across storage devices", FAST 2010, whose model is
//! linear in outstanding I/Os); with `p` of a datastore and `q` of a disk:
//!
//! ```text
//! used = Σ bytes of its disks / capacity
//! latency = p × Σ q                    p in seconds for one outstanding I/O
//! ```
//!
//! [`advise`] finds the moves that put all right with the least data moved, or, where nothing
//! does, those that leave the least wrong. What is wrong is compared in this order: disks on a
//! datastore in maintenance, rules broken, space over the threshold, latency over it. A disk is
//! moved for space only to a datastore that is emptier by a least difference (5 points). Disks
//! of a machine stay together, or apart, where the machine says so.
//!
//! Who asks says how often (Storage DRS: every eight hours, and at once when space runs out) and
//! of which load (the 90th percentile of a day).
//!
//! Invariants: nothing is moved to a datastore in maintenance; a disk is moved once at most; the
//! same question has the same answer. Left out: the gain set against the cost of a move, growth
//! of thin disks, and moving others out of the way first (a disk that is in nobody's way stays).

mod advice;
mod state;

pub use advice::{Advice, Move, advise};

use std::time::Duration;

/// A place for virtual disks, with its size and its speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Datastore {
    /// Bytes that it can hold.
    pub capacity_bytes: u64,
    /// Latency that an outstanding I/O adds: its device's parameter in BASIL.
    pub latency_per_outstanding: Duration,
    /// Whether it is to be emptied.
    pub maintenance: bool,
}

/// A virtual disk, with its load and its datastore.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disk {
    /// The machine that it is of: its place in [`Inventory::machines`].
    pub machine: usize,
    /// Space that it takes of its datastore.
    pub bytes: u64,
    /// I/Os outstanding at it, on the average.
    pub outstanding: f64,
    /// Its datastore: the place in [`Inventory::datastores`].
    pub datastore: usize,
}

/// How a machine wants its disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// On one datastore: the default of Storage DRS.
    Together,
    /// No two on one datastore.
    Apart,
    /// Each disk on any datastore.
    Anyhow,
}

/// All datastores, machines and disks that advice looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct Inventory {
    /// Datastores of one cluster.
    pub datastores: Vec<Datastore>,
    /// How each machine wants its disks.
    pub machines: Vec<Keep>,
    /// The disks of all machines.
    pub disks: Vec<Disk>,
}

/// When something is wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// A datastore is too full above this share, 0 to 1.
    pub used: f64,
    /// A disk moves for space only to one that is less used by this much, 0 to 1.
    pub least_difference: f64,
    /// A datastore is too slow above this; none where latency does not count.
    pub latency: Option<Duration>,
}

impl Thresholds {
    /// Storage DRS unless told otherwise: 80 %, 5 %, 15 ms (vSphere documentation, "Setting the
    /// Aggressiveness Level for Storage DRS").
    pub const STORAGE_DRS: Thresholds = Thresholds {
        used: 0.80,
        least_difference: 0.05,
        latency: Some(Duration::from_millis(15)),
    };
}

/// The party that carries out the moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Automation {
    /// The administrator, who gets a recommendation.
    Manual,
    /// The cluster itself, without asking.
    Automatic,
}
