//! What a run of a plan brings home: the figures of its VMs.
//!
//! `E` is why a VM ended before its time. Where nothing can be lost, it is a type without values.

use crate::kpi::{Measured, Window};
use base::Time;

/// What one VM brings home.
#[derive(Clone, Debug)]
pub struct VmOutcome<E> {
    /// All figures of the VM, its streams merged.
    pub measured: Measured,
    /// The same of each stream of the VM, in the profile's order.
    pub streams: Vec<Measured>,
    /// The target, or the trace, that went away during the run, and ended it.
    pub lost: Option<E>,
    /// Times in which a target was away.
    pub outages: Vec<Outage>,
    /// Capacity of each disk in bytes.
    pub disk_bytes: Vec<u64>,
}

/// What a run brings home.
#[derive(Clone, Debug)]
pub struct Outcome<E> {
    /// One per VM of the plan.
    pub vms: Vec<VmOutcome<E>>,
    /// The part of the run that was measured.
    pub window: Window,
    /// Whether somebody stopped it before its end.
    pub interrupted: bool,
}

/// A time in which a target was away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The target's URL, without a password.
    pub target: String,
    /// When the session was lost.
    pub from: Time,
    /// When there was one again; `None` if there was none until the end.
    pub until: Option<Time>,
    /// Operations that were under way when it was lost.
    pub operations_lost: u64,
    /// How the loss showed, for people.
    pub why: String,
}
