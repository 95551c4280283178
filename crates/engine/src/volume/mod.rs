//! A volume, which protocols read and write.
//!
//! `io` is the data path, `clear` gives pages back, [`live`] what is in progress on a volume, [`ahead`] what
//! sequential readers will want next; `mirror` and `copy` are for volumes that go to another pool.

pub mod ahead;
mod alter;
mod clear;
mod copied;
mod copy;
mod course;
mod disk;
mod fill;
mod io;
mod lay_out;
pub mod live;
mod memo;
mod mirror;
pub(crate) mod moving;
mod over;
mod private;
mod range_copy;
mod room;
mod shrink;
mod zeroes;

pub use crate::meta::words::{About, Origin, Stage, Transit};
pub use alter::{Alteration, Altered, WHOLE_BYTES_MAX};
pub use clear::Mapping;
pub use course::Course;
pub use disk::{Disk, Elsewhere};
pub use live::Live;
pub use mirror::{Mirror, MoveProgress};
pub use room::Room;

use crate::meta::VolumeCore;
use crate::pool::Inner;
use crate::world::World;
use base::{SECTOR_BYTES, Uuid, VolumeOffset};
use std::rc::Rc;

/// How a volume takes space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provisioning {
    /// Pages are allocated on first write.
    Thin,
    /// Pages are allocated on first write, out of as many as were promised at creation: no
    /// write finds the pool full.
    Thick,
}

/// What is asked for when a volume is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSpec {
    /// Unique in its pool, 1 to 64 bytes of letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// A multiple of [`base::SECTOR_BYTES`], not zero.
    pub size_bytes: u64,
    /// Whether space is promised at creation or taken by writes.
    pub provisioning: Provisioning,
}

/// What a volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeInfo {
    /// Name in the pool.
    pub name: String,
    /// Identity for life: NAA designator and serial number come from it.
    pub uuid: Uuid,
    /// Size that initiators see.
    pub size_bytes: u64,
    /// Whether its space is promised, or taken by writes.
    pub provisioning: Provisioning,
    /// Pages that are written as zeroes are not kept.
    pub detects_zeroes: bool,
    /// Nobody writes it: a snapshot.
    pub read_only: bool,
    /// Bytes of pages allocated to it.
    pub mapped_bytes: u64,
    /// Bytes of pages promised to it beyond those: of a thick volume, all others.
    pub promised_bytes: u64,
    /// Page of its pool: the grain in which space is taken and given back.
    pub page_bytes: u64,
    /// Bytes of one [`Alteration`], at most.
    pub whole_bytes_max: u64,
}

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
    fn within(self, at: VolumeOffset, len: u64) -> Self {
        let last = at + len.saturating_sub(SECTOR_BYTES as u64);
        let at = self.at.clamp(at, last);
        IoError { at, ..self }
    }
}

/// A handle on a volume. Clones share it.
///
/// Operations run to the end once polled first; a caller that loses interest
/// lets them run (spawn them) and drops the answer.
pub struct Volume<W: World> {
    inner: Rc<Inner<W>>,
    core: Rc<VolumeCore>,
}

impl<W: World> Clone for Volume<W> {
    fn clone(&self) -> Self {
        Volume {
            inner: Rc::clone(&self.inner),
            core: Rc::clone(&self.core),
        }
    }
}

impl<W: World> Volume<W> {
    pub(crate) fn new(inner: Rc<Inner<W>>, core: Rc<VolumeCore>) -> Self {
        Volume { inner, core }
    }

    /// What it is now.
    pub fn info(&self) -> VolumeInfo {
        VolumeInfo {
            name: self.core.name.to_string(),
            uuid: self.core.uuid,
            size_bytes: self.core.size_bytes.get(),
            provisioning: self.core.provisioning.get(),
            detects_zeroes: self.core.detects_zeroes.get(),
            promised_bytes: self.core.promised_pages(self.inner.page_bytes())
                * self.inner.page_bytes(),
            read_only: self.core.read_only,
            mapped_bytes: self.core.map.borrow().mapped() * self.inner.page_bytes(),
            page_bytes: self.inner.page_bytes(),
            whole_bytes_max: self.whole_bytes_max() as u64,
        }
    }

    /// What is said of it: origin, attributes, trash.
    pub fn about(&self) -> About {
        self.core.words.about()
    }

    /// Size that initiators see, in bytes (cheap).
    pub fn size_bytes(&self) -> u64 {
        self.core.size_bytes.get()
    }

    /// Where it is by now, if it has moved to another pool.
    pub fn moved(&self) -> Option<Rc<dyn Elsewhere>> {
        self.core.live.moved()
    }

    /// The world that it runs in (its buffers take data to write).
    pub fn world(&self) -> &W {
        &self.inner.world
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
