//! iSCSI (RFC 7143), sans-IO: bytes in, events and bytes out.
//!
//! - [`login`]: one connection until full-feature phase. `Send`, because a
//!   connection logs in at the front and is then moved to its target's shard.
//! - [`connection`]: one connection in full-feature phase, on its shard.

pub mod connection;
pub mod login;
