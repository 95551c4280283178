//! Faults that can be injected into a simulated drive.

use base::{BLOCK_BYTES, DriveOffset, Time};
use engine::DriveErrorKind;
use std::collections::BTreeSet;
use std::time::Duration;

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
    /// Blocks that the medium takes only after tries, by index.
    pub slow_blocks: BTreeSet<u64>,
    /// How much longer a write of these takes.
    pub slow_by: Duration,
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
    /// It is what it was, and the next start will not find it: [`engine::Drive::check`] says so.
    pub mislaid: bool,
    /// Nothing is answered before then, and everything after.
    pub stalled_until: Option<Time>,
    /// From then on nothing is answered, not even with an error, until this is taken back.
    pub hangs_from: Option<Time>,
    /// The drive is there, and every operation fails at once: a dead device node.
    pub dead: bool,
    /// So many of the next flushes fail; what they should have covered may still be lost.
    pub failing_flushes: u32,
    /// So many of the next operations fail, whatever they are, and then all is well.
    pub failing: u32,
    /// They say that the medium is damaged, as kernels say of a drive that is cut off.
    pub failing_as_damaged: bool,
}

/// Takes one off `left`; false when there is none.
fn take_one(left: &mut u32) -> bool {
    let takes = *left > 0;
    *left -= u32::from(takes);
    takes
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

    /// Whether the next operation fails by itself.
    pub(super) fn next_fails(&mut self, is_flush: bool) -> bool {
        (is_flush && take_one(&mut self.failing_flushes)) || take_one(&mut self.failing)
    }

    /// What a read or write says that fails by itself.
    pub(super) fn kind_of_failure(&self) -> DriveErrorKind {
        match self.failing_as_damaged {
            true => DriveErrorKind::Media,
            false => DriveErrorKind::Other,
        }
    }

    /// Whether nothing is answered now.
    pub(super) fn hangs(&self, now: Time) -> bool {
        self.hangs_from.is_some_and(|from| from <= now)
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
