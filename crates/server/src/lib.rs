//! The daemon: shards that serve volumes over iSCSI, the portals in front of
//! them, and the REST API beside them.
//!
//! - [`shard`]: one thread each, with its pools and connections. Data path.
//! - [`front`]: portals, logins, discovery. Hands connections to shards.
//! - [`directory`]: the targets, as front and API see them.

// This crate is of the real world: it has threads, sockets and a calendar.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod directory;
pub mod front;
pub mod shard;
