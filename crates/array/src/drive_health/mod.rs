//! What drives say of their own health: pure values, and what to make of them.
//!
//! - [`reading`]: one answer of a drive. [`warning`]: which answers warn, and by which source.
//! - [`record`]: what is known of a drive by all its answers.
//!
//! Invariant: nothing here asks a drive. Who does is the machine's matter
//! ([`HealthReader`](crate::control::HealthReader)).

pub mod reading;
pub mod record;
pub mod warning;

pub use reading::{FailingAttribute, Reading};
pub use record::{DriveHealth, HealthNews};
pub use warning::{Warning, WarningKind, warnings};
