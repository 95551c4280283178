//! The work of jobs that import and export images.
//!
//! - [`header`]: what an image says of itself, and which other files it names.
//! - [`qemu`], [`nbd`]: QEMU's programs for formats that are not ours.
//! - [`source`], [`target`]: the files that content comes from and goes to.
//! - [`start`], [`run`]: a job's beginning, and its work.
//!
//! Invariants:
//! - What ends early takes back what it has made.
//! - A file appears under its name when it is whole.

mod header;
mod nbd;
mod qemu;
mod run;
mod source;
mod start;
mod target;

pub(crate) use run::Images;
pub use start::{NewExport, NewImport, export, import};
