//! A rehearsal of a described site in virtual time: the engine on modelled drives, behind modelled
//! controllers and networks, under the load of modelled VMs.
//!
//! ```text
//! plan ─► rig ─► run ─► outcome ─► bottleneck, confidence, comparison, report
//! ```
//!
//! Nothing here reads a clock or draws from anything but the seed: one seed gives one
//! outcome, byte by byte.

pub mod advice;
pub mod beside;
pub mod brief;
pub mod bus;
pub mod catalog;
pub mod confidence;
pub mod controller;
pub mod demand;
pub mod disk;
pub mod drive;
pub mod error;
pub mod finding;
pub mod fit;
pub mod gate;
pub mod halt;
pub mod host;
pub mod laws;
pub mod layout;
pub mod limit;
pub mod network;
pub mod profiles;
pub mod raw;
pub mod report;
pub mod resident;
pub mod rig;
pub mod run;
pub mod search;
pub mod share;
pub mod sizing;
pub mod steady;
pub mod summary;
pub mod thumb;
pub mod timeline;
pub mod vm;
pub mod world;

pub use error::{RehearseError, RehearseErrorKind};
pub use run::{Outcome, run};
