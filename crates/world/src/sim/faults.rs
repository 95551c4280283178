//! What can be made to fail on a simulated drive.

use base::{BLOCK_BYTES, DriveOffset, Time};
use std::collections::BTreeSet;

/// The faults of one drive. They stay through power cuts until they are taken
/// back (a written block of [`Faults::unreadable`] is readable again: drives
/// remap on write).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Blocks whose reads fail with a media error, by index.
    pub unreadable: BTreeSet<u64>,
    /// Blocks whose writes fail with a media error, by index. A failed write may
    /// have reached any of its sectors.
    pub unwritable: BTreeSet<u64>,
    /// Nothing answers any more.
    pub gone: bool,
    /// Writes fail that would need a block never written before, as on a sparse
    /// file in a full file system.
    pub no_space: bool,
    /// So many of the next writes end well and change nothing.
    pub lost_writes: u32,
    /// So many of the next writes land somewhere else on the drive.
    pub stray_writes: u32,
    /// Every operation takes this many times longer; 0 counts as 1.
    pub slowdown: u32,
    /// So many operations are worked on at once, and others wait; 0 is no limit.
    pub queue_depth: u32,
    /// It has become smaller behind its pool's back: [`engine::Drive::check`] says so.
    pub shrunk: bool,
    /// Nothing is answered before then, and everything after.
    pub stalled_until: Option<Time>,
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stray {
    /// It lands where it should.
    No,
    /// Nowhere.
    Lost,
    /// Somewhere else.
    Elsewhere,
}

impl Faults {
    /// What becomes of the next write.
    pub(super) fn next_write(&mut self) -> Stray {
        if self.lost_writes > 0 {
            self.lost_writes -= 1;
            return Stray::Lost;
        }
        if self.stray_writes > 0 {
            self.stray_writes -= 1;
            return Stray::Elsewhere;
        }
        Stray::No
    }

    pub(super) fn hits(blocks: &BTreeSet<u64>, at: DriveOffset, len_bytes: u64) -> bool {
        let (first, end) = block_range(at, len_bytes);
        !blocks.is_empty() && blocks.range(first..end).next().is_some()
    }

    pub(super) fn heal(&mut self, at: DriveOffset, len_bytes: u64) {
        if self.unreadable.is_empty() {
            return;
        }
        let (first, end) = block_range(at, len_bytes);
        self.unreadable
            .retain(|block| !(first..end).contains(block));
    }
}

/// First block and the one past the last.
pub(super) fn block_range(at: DriveOffset, len_bytes: u64) -> (u64, u64) {
    let block_bytes = BLOCK_BYTES as u64;
    (at.0 / block_bytes, (at.0 + len_bytes).div_ceil(block_bytes))
}
