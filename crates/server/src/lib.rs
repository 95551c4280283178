//! The daemon: shards that serve volumes over iSCSI, the portals in front of
//! them, and the REST API beside them.
//!
//! - [`shard`]: one thread each, with its pools and connections. Data path.
//! - [`front`]: portals, and the thread that logins run on.
//! - [`::array`]: the part that needs no thread or socket: logins, connections, directory, shard
//!   state, copies, which pools to open and to make, what a start and a site file make of them.
//! - [`mod@array`]: pools, volumes, exports and sessions over all shards.
//! - `data_dir`: the data directory, and the lock that keeps a second server out.
//! - `drive_health`: asks drives for their health. `programs`: programs of others that are started.
//! - `drive_files`: opens files and devices as drives.
//! - [`bringup`]: from a site file and a data directory to an array that serves.
//! - `api`: the REST API; its JSON is the crate [`::api`].
//! - `jobs`: which jobs there are, and their record; `images`: their work, volumes from image files
//!   and image files from volumes.
//! - `machine_memory`: how much memory there is for this process.
//! - [`offline`]: the engine's work on drives that no array uses.
//! - [`offload`]: copies that initiators have the array make.
//! - `own_files`: which files are of which data directory.
//! - [`panics`]: what a failed assertion does.
//! - `private`: files for the array's user only.
//! - `runtime`: time and tasks for the control plane.
//! - `record`: the small durable files beside the drives.
//! - `wall_clock`: the time of day.

// This crate is of the real world: it has threads, sockets and a calendar.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod api;
pub mod array;
mod bring_up_error;
pub mod bringup;
mod data_dir;
mod drive_files;
mod drive_health;
pub mod front;
mod images;
mod jobs;
mod machine_memory;
pub mod offline;
pub mod offload;
mod own_files;
pub mod panics;
mod private;
mod programs;
mod record;
mod runtime;
pub mod shard;
mod wall_clock;

pub use ::array::{calendar, directory, overcommitment};

// What tests from outside stand on, for those from inside.
#[cfg(test)]
extern crate self as server;
#[cfg(test)]
#[path = "../tests/integration/served/mod.rs"]
mod served;
