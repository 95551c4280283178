//! The errors of a volume's I/O.

use base::{SECTOR_BYTES, VolumeOffset};

/// What went wrong with a volume's I/O, as far as protocols act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoErrorKind {
    /// Past the end of the volume, or not whole sectors.
    OutOfRange,
    /// No copy of these bytes can be read or written.
    Media,
    /// A page had to be allocated and the pool has none. Pages that were allocated
    /// already may have been written.
    PoolFull,
    /// The volume is being deleted or is gone.
    Deleted,
    /// The volume is a snapshot, which nobody writes.
    ReadOnly,
    /// The volume was on its way between two pools, and the other one is not there: this
    /// may not be what it was last.
    Withheld,
    /// The pool has lost more than its redundancy, or its metadata, and has
    /// stopped; nothing more is acknowledged.
    PoolFailed,
}

/// A failed read, write or flush of a volume.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{context}")]
pub struct IoError {
    /// What callers match on.
    pub kind: IoErrorKind,
    /// First byte of the volume that failed, where one can be named.
    pub at: VolumeOffset,
    /// A sentence for people that says what failed.
    pub context: String,
}

impl IoError {
    /// As told to somebody who asked for `len` bytes from `at` on, when the block that failed
    /// is one beside them: blocks are written as a whole, and pages copied.
    pub(crate) fn within(self, at: VolumeOffset, len: u64) -> Self {
        let last = at + len.saturating_sub(SECTOR_BYTES as u64);
        let at = self.at.clamp(at, last);
        IoError { at, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_a_place_that_was_asked_for() {
        let told = |failed| {
            let error = IoError {
                kind: IoErrorKind::Media,
                at: VolumeOffset(failed),
                context: String::new(),
            };
            error.within(VolumeOffset(1024), 2048).at.0
        };
        assert_eq!(
            [0, 1024, 1536, 3071, 9000].map(told),
            [1024, 1024, 1536, 2560, 2560]
        );
    }
}
