//! A plan before any run: the models that its names stand for, the VMs of its groups, the demand
//! that these add up to, whether they fit, and the classical arithmetic.

pub mod catalog;
pub mod demand;
pub mod described;
pub mod fit;
pub mod profiles;
pub mod resident;
pub mod thumb;
