//! The load generator: puts workloads on real targets and measures.
//!
//! ```text
//! workload ─► run ─► endpoint (iSCSI, NBD, file)
//!              └───► workload's KPIs and report
//! ```
//!
//! This crate lives in the real world, where reading clocks and starting threads is the job; the
//! modules that do say so. What the load is, and what its figures mean, is the crate
//! `workload`'s.

#[allow(clippy::disallowed_methods)] // a thread for each target that is looked at
pub mod contents;
#[allow(clippy::disallowed_methods, clippy::disallowed_types)] // deadlines of real connections
pub mod endpoint;
pub mod machine;
pub mod os;
#[allow(clippy::disallowed_methods, clippy::disallowed_types)] // threads and real clocks
pub mod run;
pub mod site_plan;
pub mod trace_file;
