//! The end of a volume, and the data behind it when it moves forward.
//!
//! Invariants:
//! - Who reads, writes or clears has looked at the end while holding the range: a volume
//!   shrinks only when all that is behind its new end is held by who shrinks it.
//! - What is behind the end is not mapped, but for the rest of the last page, and that is
//!   zeroes: a volume that grows again has zeroes there.

use super::{IoError, IoErrorKind, Volume};
use crate::range_lock::Guard;
use crate::space::Claim;
use crate::world::World;
use base::{BLOCK_BYTES, VolumeOffset};

impl<W: World> Volume<W> {
    /// That the volume, which may have shrunk while a range was waited for, has it still.
    pub(super) fn check_end(&self, at: VolumeOffset, len: u64) -> Result<(), IoError> {
        let size = self.core.size_bytes.get();
        if at.0 + len <= size {
            return Ok(());
        }
        Err(IoError {
            kind: IoErrorKind::OutOfRange,
            at,
            context: format!(
                "{len} bytes at {at} of volume '{}', which has shrunk to {size}",
                self.core.name
            ),
        })
    }

    /// Holds what is behind a new end, when nobody uses it any more.
    pub(crate) async fn hold_behind(&self, size_bytes: u64) -> Guard {
        let block = BLOCK_BYTES as u64;
        let start = size_bytes / block * block;
        self.core.live.ranges.exclusive(start, u64::MAX).await
    }

    /// Makes what is behind a new end in its last page zeroes; the caller holds it.
    pub(crate) async fn clear_behind(&self, size_bytes: u64) -> Result<(), IoError> {
        let page_end = size_bytes.next_multiple_of(self.inner.page_bytes());
        let end = page_end.min(self.core.size_bytes.get());
        if size_bytes >= end
            || self
                .inner
                .world()
                .planted("shrink leaves data behind the end")
        {
            return Ok(());
        }
        self.clear_held(size_bytes..end, Claim::Clearing).await
    }
}
