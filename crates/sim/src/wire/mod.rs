//! The way of a host to the array's front: a network, logins over it, and sessions of PDUs.
//!
//! It is written apart from the array's own iSCSI, so that one checks the other. Runs with hosts use
//! it; which commands they send, and what these must come to, is their own business.
//!
//! - `network`: streams of bytes. `pdu`: PDUs as an initiator has them. `login`: an initiator's side
//!   of a login. `path`: a session, and what is checked of each PDU. `sessions`: one
//!   after the other. `functions`, `aborts`: task management.
//! - `front`: the array's own front, where hosts log in.

pub(crate) mod aborts;
pub(crate) mod front;
mod functions;
pub(crate) mod login;
pub(crate) mod network;
pub(crate) mod path;
pub(crate) mod pdu;
pub(crate) mod sessions;
