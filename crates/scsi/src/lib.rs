//! The SCSI command set over volumes (SPC-4, SBC-3), sans-IO: a CDB and its data in; status, sense
//! and data out.
//!
//! - [`target`], [`unit`], [`nexus`]: who sees what, and runs commands on it.
//! - [`ports`], [`reservation`]: by which way, and who may.
//! - [`management`]: what is done to tasks that run.
//! - [`cdb`]: what a CDB asks for, and whether it may.
//! - `commands`, `vpd`, [`sense`]: what is answered; one room per family of
//!   commands.
//! - `limits`: commands that wait for the limit of their volume.
//! - `retries`: commands that are tried again, where a pool was full.
//! - [`offload`]: copies that initiators have the target make.

pub mod cdb;
mod commands;
mod dispatch;
mod erasure;
mod limits;
pub mod lun;
pub mod management;
pub mod nexus;
pub mod offload;
pub mod ports;
pub mod reservation;
mod retries;
pub mod sense;
pub mod target;
pub mod unit;
mod vpd;

pub use cdb::{Cdb, Command, decode};
pub use erasure::{has_unended_erasure, without_erasure};
pub use nexus::{Nexus, Response};
pub use reservation::{InitiatorPort, NexusId};
pub use sense::{Attention, Sense};
pub use target::{LUN_MAX, Target};
pub use unit::{Identity, LogicalUnit, Registration};
