//! The record of the configuration, and those of earlier versions.

mod before;
mod kept;
mod unfinished;

pub(crate) use ::array::control::Configuration;
pub(crate) use before::before;
pub(crate) use kept::InFile;
pub use kept::kept_settings;
