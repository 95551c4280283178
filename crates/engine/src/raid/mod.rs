//! RAID groups: drives that hold the same data several times, striped over.
//!
//! [`layout`] is the arithmetic, [`member`] a drive in a group, [`group`] reads and
//! writes all copies, [`regions`] remembers where copies may differ.

pub mod fault;
pub mod geometry;
pub mod group;
pub mod layout;
pub mod level;
pub mod member;
pub mod regions;

pub use fault::DriveFault;
pub use geometry::{Code, Geometry, Role};
pub use group::{Fault, Group};
pub use layout::Layout;
pub use level::Level;
pub use member::Member;
pub use regions::Regions;
