//! The work of jobs, which import and export images, and copy and move volumes.
//!
//! - [`header`]: what an image says of itself, and which other files it names.
//! - [`qemu`], [`nbd`]: QEMU's programs for formats that are not ours.
//! - [`source`], [`target`], [`copy`]: content from here to there.
//! - [`start`], [`run`]: a job from its beginning to its end; [`moves`]: one that moves;
//!   [`volume_copy`]: from volume to volume.
//!
//! Invariants:
//! - What ends early takes back what it has made.
//! - A file appears under its name when it is whole.

mod copy;
mod header;
mod moves;
mod nbd;
mod qemu;
mod run;
mod source;
mod start;
mod target;
mod volume;
mod volume_copy;

pub use moves::{NewMove, move_volume};
pub use start::{NewExport, NewImport, export, import};
pub(crate) use start::{resume, settle};
pub use volume_copy::{NewCopy, copy_volume};
