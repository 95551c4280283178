//! RAID: the arithmetic of drives that protect each other.
//!
//! [`level`] names the ways, [`geometry`] is the arithmetic of places, [`spread`] that of groups wider
//! than their stripes, [`parity`] that of contents. The drives are in [`crate::drives`]; how stripes are read and changed is the
//! [`crate::store`]'s.

pub mod geometry;
pub mod level;
pub mod parity;
pub mod protection;
pub mod spread;

pub use geometry::{Code, Geometry, Role};
pub use level::Level;
pub use protection::Protection;
pub use spread::Spread;
