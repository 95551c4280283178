//! A volume: what protocols read and write.

use crate::world::World;
use base::{Payload, Slice, Uuid, VolumeOffset};

/// How a volume takes space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provisioning {
    /// Pages are allocated on first write.
    Thin,
    /// All pages are allocated at creation.
    Thick,
}

/// What is asked for when a volume is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSpec {
    /// Unique in its pool, 1 to 64 bytes of letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// A multiple of [`base::SECTOR_BYTES`], not zero.
    pub size_bytes: u64,
    /// Thin or thick.
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
    /// Thin or thick.
    pub provisioning: Provisioning,
    /// Bytes of pages allocated to it.
    pub mapped_bytes: u64,
}

/// What went wrong with a volume's I/O, as far as protocols act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoErrorKind {
    /// Past the end of the volume, or not whole sectors.
    OutOfRange,
    /// No copy of these bytes can be read or written.
    Media,
    /// A page had to be allocated and the pool has none. Nothing was written.
    PoolFull,
    /// The volume is being deleted or is gone.
    Deleted,
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
    /// For people.
    pub context: String,
}

/// A handle on a volume. Clones share it.
///
/// Operations run to the end once polled first; a caller that loses interest
/// lets them run (spawn them) and drops the answer.
pub struct Volume<W: World> {
    world: W,
}

impl<W: World> Clone for Volume<W> {
    fn clone(&self) -> Self {
        Volume { world: self.world.clone() }
    }
}

impl<W: World> Volume<W> {
    /// What it is now.
    pub fn info(&self) -> VolumeInfo {
        todo!()
    }

    /// Size that initiators see, in bytes (cheap).
    pub fn size_bytes(&self) -> u64 {
        todo!()
    }

    /// The shard's buffers (for data to write).
    pub fn world(&self) -> &W {
        &self.world
    }

    /// Reads `len` bytes from `at`, both multiples of [`base::SECTOR_BYTES`].
    /// Zeroes where nothing was ever written.
    pub async fn read(&self, at: VolumeOffset, len: usize) -> Result<Payload, IoError> {
        let _ = (at, len);
        todo!()
    }

    /// Writes `data` at `at`, both multiples of [`base::SECTOR_BYTES`]. When it
    /// ends well the data is durable.
    pub async fn write(&self, at: VolumeOffset, data: Slice) -> Result<(), IoError> {
        let _ = (at, data);
        todo!()
    }

    /// Ends when everything acknowledged before is durable (it is already; this
    /// reports a pool that has failed).
    pub async fn flush(&self) -> Result<(), IoError> {
        todo!()
    }
}
