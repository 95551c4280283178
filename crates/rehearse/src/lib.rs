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
pub mod error;
pub mod findings;
pub mod parts;
pub mod plan;
pub mod report;
pub mod rig;
pub mod run;
pub mod search;
pub mod timeline;

pub use error::{RehearseError, RehearseErrorKind};
pub use run::{Outcome, run, run_lasting};
