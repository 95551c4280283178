//! The interface between the engine and a drive.
//!
//! A drive is a run of bytes with a capacity. Invariants that implementations
//! keep and the engine relies on:
//! - Buffers are owned by the operation until it ends. Dropping the future of an
//!   operation neither frees nor reuses its buffer, and may leave the operation
//!   done or not done.
//! - Offsets and lengths are multiples of [`base::BLOCK_BYTES`]; others are
//!   refused with [`DriveErrorKind::OutOfRange`].
//! - A read that ends well has filled its whole buffer.
//! - A write is on stable media only after a [`Drive::flush`] that *began after
//!   the write ended* has ended well, or its own [`Drive::write_durable`] has.
//!   Until then a power cut may lose it, keep it or tear it at the grain of
//!   [`base::SECTOR_BYTES`], in any order against other writes.
//! - Overlapping operations in flight at once have no order.

use base::{Buf, DriveOffset, Slice};
use std::fmt;
use std::future::Future;

/// What a drive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Usable bytes, a multiple of [`base::BLOCK_BYTES`].
    pub capacity_bytes: u64,
    /// Whether it seeks: copies are then chosen by head position, not at will.
    pub rotational: bool,
    /// Whether [`Drive::discard`] gives space back.
    pub discards: bool,
}

/// A drive, with operations on owned buffers.
pub trait Drive: 'static {
    /// What it is. Does not change while it is open.
    fn geometry(&self) -> Geometry;

    /// The serial number that its maker gave it, where it has one. Does not change while it is
    /// open.
    fn serial(&self) -> Option<&str> {
        None
    }

    /// Fills `buf` from `at` on. Gives the buffer back in any case; its content is
    /// unspecified after an error.
    fn read(
        &self,
        at: DriveOffset,
        buf: Buf,
    ) -> impl Future<Output = (Buf, Result<(), DriveError>)>;

    /// Writes `data` at `at`.
    fn write(&self, at: DriveOffset, data: Slice) -> impl Future<Output = Result<(), DriveError>>;

    /// Writes `data` at `at`; on stable media when it ends well. What it has
    /// written is as lost or torn as any other write's until then.
    ///
    /// A drive that can make one write durable by itself does better than this.
    fn write_durable(
        &self,
        at: DriveOffset,
        data: Slice,
    ) -> impl Future<Output = Result<(), DriveError>> {
        async move {
            self.write(at, data).await?;
            self.flush().await
        }
    }

    /// Makes every write that ended before this call durable.
    fn flush(&self) -> impl Future<Output = Result<(), DriveError>>;

    /// Tells the drive that a run of bytes holds nothing of worth. What a later
    /// read gives there is unspecified until it is written.
    fn discard(
        &self,
        at: DriveOffset,
        len_bytes: u64,
    ) -> impl Future<Output = Result<(), DriveError>>;

    /// Whether it is still what [`Drive::geometry`] says: a file can be cut off behind our
    /// back. Cheap, and asked for every few seconds.
    ///
    /// # Errors
    /// `Gone` when it is not. Any other kind when it is, and will not be for long.
    fn check(&self) -> impl Future<Output = Result<(), DriveError>> {
        async { Ok(()) }
    }
}

/// What went wrong on a drive, as far as callers act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveErrorKind {
    /// The medium can't give or take these bytes; others are not affected.
    Media,
    /// Past the end, or not a whole number of blocks. A caller's mistake.
    OutOfRange,
    /// The file system under a file drive is full.
    NoSpace,
    /// The drive doesn't answer any more.
    Gone,
    /// Anything else the drive or the kernel said.
    Other,
}

/// A failed drive operation: what was tried, where, and what was said.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{operation} of {len_bytes} bytes at {at}: {kind}{}{context}", if context.is_empty() { "" } else { ": " })]
pub struct DriveError {
    /// What callers match on.
    pub kind: DriveErrorKind,
    /// `read`, `write`, `flush`, `discard` or `check`.
    pub operation: &'static str,
    /// Where on the drive.
    pub at: DriveOffset,
    /// How much was asked for.
    pub len_bytes: u64,
    /// What the kernel or the model said, for people.
    pub context: String,
}

impl fmt::Display for DriveErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DriveErrorKind::Media => "media error",
            DriveErrorKind::OutOfRange => "outside the drive or off its block grain",
            DriveErrorKind::NoSpace => "no space left under the drive",
            DriveErrorKind::Gone => "the drive is gone",
            DriveErrorKind::Other => "drive error",
        })
    }
}
