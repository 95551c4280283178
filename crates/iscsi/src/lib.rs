//! The target's side of iSCSI (RFC 7143), sans-IO: bytes in, events and bytes out, at error
//! recovery level 0 with one connection per session.
//!
//! - [`login`]: one connection until full-feature phase. `Send`, because a
//!   connection logs in at the front and is then moved to its target's shard.
//! - [`connection`]: one connection in full-feature phase, on its shard.
//! - [`chap`]: how initiators prove who they are during the login, and we to them.
//! - [`pdu`], [`text`]: the codec under all.

pub mod chap;
pub mod connection;
pub mod login;
pub mod pdu;
pub mod text;
