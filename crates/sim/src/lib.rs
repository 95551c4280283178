//! The simulator that proves the durability rule: an acknowledged write survives.
//!
//! One seed gives one run: a random pool over adversarial drives, random clients, power cuts at
//! random await points, and a checker that knows for every sector which values may be read.
//!
//! Reading order:
//! - [`scenario`]: one run. [`config`]: its random choices, with [`themes`](config::THEMES), the
//!   faults that some runs have.
//! - [`client`] and [`admin`]: the requests to the engine. [`oracle`]: the values that may come back.
//! - [`moves`], [`initiators`], [`paths`] and [`operations`]: runs beside it, of volumes between two
//!   pools, of SCSI, of sessions and of the control plane. `control`: the array's own control plane,
//!   as they all drive it. `wire`: how hosts reach its front. [`drives`] and [`pools`]: runs of drives,
//!   and of pools, that come and go. [`sites`]: runs in which site files are applied.
//! - [`seed`]: what decides a run. [`seeds`]: many runs, and `kinds` of runs on request.
//! - [`answers`]: whether they come in time. [`plants`]: the proof that bugs are found. [`rate`]: the
//!   smoke benchmark.
//!
//! Invariants:
//! - The limits are small and random, so that edges are common.
//! - Every seed is run twice; another trace is a failure like any other.
//! - Nothing but the seed decides what happens.

pub mod admin;
mod agreement;
pub mod answers;
mod attributes;
mod boot;
pub mod client;
pub mod config;
mod control;
mod copied_drives;
pub mod copies;
pub mod damage;
pub mod drives;
pub mod heal;
mod history;
pub mod initiators;
mod kinds;
pub mod lanes;
pub mod moves;
mod next_drives;
mod opening;
pub mod operations;
pub mod oracle;
pub mod paths;
pub mod pattern;
pub mod plants;
pub mod pool_changes;
pub mod pools;
pub mod rate;
mod regroup;
pub mod scenario;
pub mod seed;
pub mod seeds;
pub mod session;
mod shapes;
mod shards;
pub mod sites;
mod small_pool;
mod snapshots;
mod themes;
mod wire;
