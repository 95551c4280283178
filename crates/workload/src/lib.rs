//! Workloads as data: what VMs do, what came of it, and how that is reported.
//!
//! ```text
//! profile ─► generator ─┬─► source ─► whoever runs it ─► kpi ─► report (table, JSON, HTML)
//! trace ────────────────┘
//! ```
//!
//! Nothing here reads a clock, opens a file or starts a thread, and nothing is drawn but from
//! the seed: a trace is read by the [`trace::Open`] that its caller brings. So `ashlar load` puts
//! a workload on real targets and a rehearsal on modelled ones, and their figures compare.

mod arrivals;
pub mod fit;
pub mod generator;
pub mod kpi;
pub mod locality;
pub mod outcome;
pub mod pattern;
pub mod plan;
pub mod profile;
pub mod report;
pub mod source;
pub mod threads;
pub mod trace;
pub mod url;
