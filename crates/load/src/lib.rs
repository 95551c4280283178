//! The load generator: workload profiles, generators, drivers, KPIs, reports.
//!
//! ```text
//! profile ─► generator ─┬─► run ─► target (iSCSI, NBD, file)
//! trace ────────────────┘    │
//!                            └───► kpi ─► report (table, JSON, HTML)
//! ```
//!
//! [`profile`], [`locality`], [`generator`] and [`trace`] are pure: no clock, no
//! thread, no ambient randomness; a trace reads its file. The same generator drives real targets here and modelled ones in
//! virtual time. Everything else lives in the real world, where reading clocks
//! and starting threads is the job; those modules say so.

#[allow(clippy::disallowed_methods)] // a thread for each target that is looked at
pub mod contents;
pub mod generator;
#[allow(clippy::disallowed_methods, clippy::disallowed_types)] // measures real time
pub mod kpi;
pub mod locality;
pub mod machine;
pub mod os;
pub mod pattern;
pub mod plan;
pub mod profile;
pub mod report;
#[allow(clippy::disallowed_methods, clippy::disallowed_types)] // threads and real clocks
pub mod run;
pub mod site_plan;
pub mod source;
#[allow(clippy::disallowed_methods, clippy::disallowed_types)] // deadlines of real connections
pub mod target;
pub mod trace;
