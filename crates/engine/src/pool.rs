//! A pool: RAID groups of drives, and the volumes they hold.

use crate::volume::{Volume, VolumeInfo, VolumeSpec};
use crate::world::World;
use base::Uuid;
use std::rc::Rc;

/// How a RAID group protects data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// One drive, no protection.
    Simple,
    /// Pairs of drives with the same content, striped over.
    Raid10,
}

/// What is asked for when a pool is created. Sizes are configurable so that the
/// simulator can make edges common.
#[derive(Clone, Debug)]
pub struct PoolSpec {
    /// 1 to 64 bytes of letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// Protection of its one group.
    pub level: Level,
    /// Power of two, from [`base::BLOCK_BYTES`]; default 64 KiB.
    pub stripe_unit_bytes: u32,
    /// Power of two, from [`base::BLOCK_BYTES`]; default 256 KiB.
    pub page_bytes: u32,
    /// Bytes of one of the two journal areas on a metadata drive; default 8 MiB.
    pub journal_bytes: u32,
    /// Grain of the record of which stripes may differ between copies.
    pub region_bytes: u32,
}

impl PoolSpec {
    /// The defaults: 64 KiB stripe units, 256 KiB pages.
    pub fn new(name: &str, level: Level) -> Self {
        PoolSpec {
            name: name.to_owned(),
            level,
            stripe_unit_bytes: 64 << 10,
            page_bytes: 256 << 10,
            journal_bytes: 8 << 20,
            region_bytes: 4 << 20,
        }
    }
}

/// State of a drive in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// In use.
    Healthy,
    /// Left out after an error; its content is stale.
    Failed,
}

/// A drive as the pool sees it.
#[derive(Clone, Debug)]
pub struct MemberInfo {
    /// The name the site gave it.
    pub name: String,
    /// Identity from its label.
    pub uuid: Uuid,
    /// Which group, which place in it.
    pub group: u16,
    /// Which place in the group.
    pub place: u16,
    /// In use or not.
    pub state: MemberState,
    /// Capacity of the drive.
    pub capacity_bytes: u64,
    /// Operations and bytes since the pool was opened.
    pub reads: u64,
    /// Operations since the pool was opened.
    pub writes: u64,
    /// Flushes since the pool was opened.
    pub flushes: u64,
    /// Failed operations since the pool was opened.
    pub errors: u64,
}

/// A pool at a glance.
#[derive(Clone, Debug)]
pub struct PoolInfo {
    /// Name.
    pub name: String,
    /// Identity for life.
    pub uuid: Uuid,
    /// Protection.
    pub level: Level,
    /// Unit of thin allocation.
    pub page_bytes: u32,
    /// Bytes that volumes can map in all.
    pub capacity_bytes: u64,
    /// Bytes of pages allocated.
    pub mapped_bytes: u64,
    /// Sum of the sizes of its volumes.
    pub provisioned_bytes: u64,
    /// Its drives, by group and place.
    pub members: Vec<MemberInfo>,
    /// Epoch under which it is owned; grows with every opening.
    pub epoch: u64,
    /// Why the pool has stopped, if it has.
    pub failure: Option<String>,
}

/// What went wrong with a pool, as far as callers act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolErrorKind {
    /// The request itself can't be met (wrong count, size, name).
    Invalid,
    /// A drive has no label: it belongs to no pool.
    Unlabelled,
    /// A drive carries the label of another pool.
    Foreign,
    /// A drive of the pool is not among those given.
    Missing,
    /// A drive has an older state of the pool than the others.
    Stale,
    /// A drive is smaller than its label says, or than asked for.
    TooSmall,
    /// A label or the metadata was written by a newer version.
    Version,
    /// The metadata can't be read from any copy.
    Corrupt,
    /// A volume of that name is there already.
    Exists,
    /// No volume of that name.
    NotFound,
    /// The volume is in use.
    Busy,
    /// Not enough free pages.
    Full,
    /// A drive operation failed.
    Drive,
    /// The pool has stopped after losing more than its redundancy.
    Failed,
}

/// A failed pool operation, naming the pool, drive or volume.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{context}")]
pub struct PoolError {
    /// What callers match on.
    pub kind: PoolErrorKind,
    /// For people: what, where, and what can be done.
    pub context: String,
}

/// A drive under the name that the site gives it.
pub struct NamedDrive<W: World> {
    /// For messages; a pool is found by labels, not by names.
    pub name: String,
    /// The open drive.
    pub drive: W::Drive,
}

/// A handle on an open pool. Clones share it.
pub struct Pool<W: World> {
    inner: Rc<W>,
}

impl<W: World> Clone for Pool<W> {
    fn clone(&self) -> Self {
        Pool { inner: Rc::clone(&self.inner) }
    }
}

/// What a look at a drive's label tells, before any pool is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSummary {
    /// Pool it belongs to.
    pub pool_uuid: Uuid,
    /// Name of that pool.
    pub pool_name: String,
    /// Identity of the drive.
    pub drive_uuid: Uuid,
    /// Which group.
    pub group: u16,
    /// Which place in the group.
    pub place: u16,
}

impl<W: World> Pool<W> {
    /// Reads a drive's label: `None` when it has none.
    pub async fn probe(world: &W, drive: &W::Drive) -> Result<Option<LabelSummary>, PoolError> {
        let _ = (world, drive);
        todo!()
    }

    /// Makes a new pool of one group out of unlabelled drives, and opens it.
    pub async fn create(
        world: W,
        spec: PoolSpec,
        drives: Vec<NamedDrive<W>>,
    ) -> Result<Self, PoolError> {
        let _ = (world, spec, drives);
        todo!()
    }

    /// Opens the pool that the labels of `drives` describe, whatever their order
    /// and names, recovering from whatever happened before.
    pub async fn open(world: W, drives: Vec<NamedDrive<W>>) -> Result<Self, PoolError> {
        let _ = (world, drives);
        todo!()
    }

    /// The pool and its drives at a glance.
    pub fn info(&self) -> PoolInfo {
        todo!()
    }

    /// Its volumes, by name.
    pub fn volumes(&self) -> Vec<VolumeInfo> {
        todo!()
    }

    /// The volume called `name`.
    pub fn volume(&self, name: &str) -> Option<Volume<W>> {
        let _ = name;
        todo!()
    }

    /// Creates a volume; a thick one has all its pages, zeroed, when this ends.
    pub async fn create_volume(&self, spec: VolumeSpec) -> Result<Volume<W>, PoolError> {
        let _ = spec;
        todo!()
    }

    /// Grows a volume. A smaller size is refused.
    pub async fn resize_volume(&self, name: &str, size_bytes: u64) -> Result<(), PoolError> {
        let _ = (name, size_bytes);
        todo!()
    }

    /// Deletes a volume: new I/O fails, I/O in flight ends first.
    pub async fn delete_volume(&self, name: &str) -> Result<(), PoolError> {
        let _ = name;
        todo!()
    }

    /// Writes everything back and marks the pool clean. I/O after this fails.
    pub async fn close(&self) -> Result<(), PoolError> {
        todo!()
    }
}
