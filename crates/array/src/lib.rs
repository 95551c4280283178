//! The control plane of the array: which volumes are where, who may reach them, who is logged in,
//! and the copies that initiators have the array make.
//!
//! It runs over any [`engine::World`]: no thread, no socket, no wall clock. So what serves hosts
//! is what the simulator drives.
//!
//! - [`wake`]: waiting for others, on this shard or another.
//! - [`calendar`]: dates and times of day.
//! - [`drive_health`]: what drives say of their own health.
//! - [`directory`]: the targets, and who may log in to them.
//! - [`shard`]: a shard's pools, targets and sessions; messages between shards.
//! - [`error`]: the errors of requests to the array. [`records`]: what keeps its records.
//! - [`pool`]: a pool over its lanes, whose changes all of them make or none.
//! - [`offload`]: copies over shards, and their tokens.
//! - [`stream`]: the way between an initiator and the array.
//! - [`memory`]: how much of it initiators may make the array hold.
//! - [`connection`]: a connection in full-feature phase.
//! - [`front`]: logins and discovery.
//! - [`control`]: volumes, exports, hosts, snapshots and schedules over all shards.
//! - [`bays`]: what is at the places of drives.
//! - [`openings`]: which pools are opened, made and destroyed, and of which drives.
//! - [`site_file`]: a site file against an array that serves.
//! - [`overcommitment`]: warns of volumes that are more than their pool can hold.
//! - [`bring_up`]: the order of a start.

pub mod bays;
pub mod bring_up;
pub mod calendar;
pub mod connection;
pub mod control;
pub mod directory;
pub mod drive_health;
pub mod error;
pub mod front;
pub mod memory;
pub mod offload;
pub mod openings;
pub mod overcommitment;
pub mod pool;
pub mod records;
pub mod shard;
pub mod site_file;
pub mod stream;
pub mod wake;
