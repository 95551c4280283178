//! RAID groups: drives that protect each other.
//!
//! [`level`] names the ways, [`geometry`] is the arithmetic of places, [`parity`]
//! that of contents, [`member`] a drive in a group, [`vitals`] how it fares, [`doubt`] what its
//! errors mean. How stripes are read and changed
//! is the [`crate::store`]'s.

pub mod doubt;
pub mod fault;
pub mod geometry;
pub mod level;
pub mod member;
pub mod parity;
pub mod vitals;

pub use doubt::{Doubt, Verdict};
pub use fault::DriveFault;
pub use geometry::{Code, Geometry, Role};
pub use level::Level;
pub use member::Member;
