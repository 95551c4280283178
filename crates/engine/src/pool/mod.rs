//! A pool: RAID groups of drives, and the volumes they hold.
//!
//! Rooms: [`drives`] (groups, zones, labels, losses), [`space`] (free pages), `create`,
//! `open` and `strangers` (from drives to a pool), `recover` (metadata read back), `zones` (taken
//! into use), `volumes` (creation to deletion), `commit` (metadata made durable).

mod backing;
mod commit;
mod create;
pub mod drives;
pub(crate) mod heartbeat;
mod hidden;
mod holdings;
mod inner;
pub mod life;
mod merge;
mod moves;
mod open;
mod promise;
mod provision;
mod recover;
mod shrink;
mod snapshots;
pub mod space;
mod strangers;
mod unlabel;
mod volumes;
mod words;
mod zones;

pub use crate::raid::Level;
pub(crate) use backing::Backing;
pub use create::{METADATA_COPIES, planned_capacity_bytes};
pub use drives::{Event, EventKind};
pub use holdings::Holdings;
pub(crate) use inner::Inner;
pub use moves::{OtherPool, Settling, There};
pub(crate) use promise::Claim;
pub use provision::VolumeChange;
pub use words::{SNAPSHOT_MARK, WordsChange};

use crate::lane::Part;
use crate::layout::Layout;
use crate::world::World;
use base::Uuid;
use std::rc::Rc;
use std::time::Duration;

/// What is asked for when a pool is created. Sizes are configurable so that the
/// simulator can make edges common.
#[derive(Clone, Debug)]
pub struct PoolSpec {
    /// 1 to 64 bytes of letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// Protection of its first group.
    pub level: Level,
    /// Power of two, from [`base::BLOCK_BYTES`]; default 64 KiB.
    pub stripe_unit_bytes: u32,
    /// Power of two, from [`base::BLOCK_BYTES`]; default 256 KiB.
    pub page_bytes: u32,
    /// Bytes of one of the two journal areas on a metadata drive, a multiple of
    /// [`base::BLOCK_BYTES`] from [`JOURNAL_BYTES_MIN`]; by default 8 MiB, and more the
    /// more pages there are, up to 64 MiB: it should not be full before the checkpoint
    /// of the other is written.
    pub journal_bytes: Option<u32>,
    /// Bytes of a zone on each drive, a power of two that holds whole pages and
    /// stripe units; by default about a sixty-fourth of a drive.
    pub zone_bytes: Option<u64>,
    /// Bytes of the data log and of the intent log on each drive; by default a
    /// sixteenth of a drive each, and 64 MiB at most.
    pub log_bytes: Option<u64>,
    /// Bytes of the intent log; see `log_bytes`.
    pub intent_bytes: Option<u64>,
    /// Volumes that the pool can hold; default 4096.
    pub volumes_max: u32,
    /// How twins lie; pools that older versions can open have them side by side.
    pub layout: Layout,
    /// Tells pools of one name apart that are made in one world, one after the other: their
    /// identities, and those of their volumes, have to differ. Random in the real world.
    pub nonce: u64,
}

/// The smallest journal area.
pub const JOURNAL_BYTES_MIN: u32 = 8 << 10;

impl PoolSpec {
    /// The defaults: 64 KiB stripe units, 256 KiB pages.
    pub fn new(name: &str, level: Level) -> Self {
        PoolSpec {
            name: name.to_owned(),
            level,
            stripe_unit_bytes: 64 << 10,
            page_bytes: 256 << 10,
            journal_bytes: None,
            zone_bytes: None,
            log_bytes: None,
            intent_bytes: None,
            volumes_max: 4096,
            layout: Layout::default(),
            nonce: 0,
        }
    }
}

/// State of a drive in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// In use, for reads and writes.
    Healthy,
    /// In use, but slow or with errors: read only when nobody else can answer.
    Suspect,
    /// Left out after an error; its content is stale.
    Failed,
    /// Takes all writes; read only where its content is whole already.
    Rebuilding,
    /// Waits to stand in for a drive that fails.
    Spare,
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
    /// Why it is suspect, or can't stand in, where that was found since the pool was opened.
    pub trouble: Option<String>,
    /// Capacity of the drive.
    pub capacity_bytes: u64,
    /// Its serial number, where it has one and is there.
    pub serial: Option<String>,
    /// Operations and bytes since the pool was opened.
    pub reads: u64,
    /// Operations since the pool was opened.
    pub writes: u64,
    /// Flushes since the pool was opened.
    pub flushes: u64,
    /// Failed operations since the pool was opened.
    pub errors: u64,
    /// Blocks of it that were put right since the pool was opened.
    pub mends: u64,
    /// Mean latency of reads, of late.
    pub read_latency: Duration,
    /// Mean latency of writes and flushes, of late.
    pub write_latency: Duration,
}

/// A RAID group at a glance.
#[derive(Clone, Debug)]
pub struct GroupInfo {
    /// Its number in the pool.
    pub index: u16,
    /// How it protects what is written to new zones.
    pub level: Level,
    /// Its drives, by place.
    pub members: Vec<MemberInfo>,
    /// Zones that it has, and how many are in use.
    pub zones: u32,
    /// Zones of these that are in use.
    pub zones_in_use: u32,
    /// Zones that are to be emptied: they have another level, or the group leaves.
    pub zones_to_empty: u32,
    /// Whether it is being emptied, to leave the pool.
    pub leaving: bool,
    /// Bytes of each drive from one zone to the next: its sums, then its data.
    pub zone_stride_bytes: u64,
    /// Bytes of each drive that are the data of a zone.
    pub zone_bytes: u64,
}

/// A pool at a glance.
#[derive(Clone, Debug)]
pub struct PoolInfo {
    /// The pool's name, from its label.
    pub name: String,
    /// Identity for life, from the pool's label.
    pub uuid: Uuid,
    /// Protection of its first group.
    pub level: Level,
    /// Unit of thin allocation.
    pub page_bytes: u32,
    /// Bytes that volumes can map in all.
    pub capacity_bytes: u64,
    /// Bytes of pages promised to thick volumes, and not mapped yet.
    pub promised_bytes: u64,
    /// How full it is, as was last said.
    pub fullness: life::fullness::FullnessInfo,
    /// Bytes kept back beside the capacity, so that space can be given back at all times.
    pub kept_bytes: u64,
    /// Bytes of pages that no volume has any more and that only back others: they are free
    /// once these are whole. Part of what is mapped.
    pub backing_bytes: u64,
    /// Bytes of pages that have part of their content in another.
    pub backed_bytes: u64,
    /// Of these, bytes of zones that are not in use yet.
    pub free_zones_bytes: u64,
    /// Bytes of pages allocated.
    pub mapped_bytes: u64,
    /// Sum of the sizes of its volumes.
    pub provisioned_bytes: u64,
    /// Its groups, in the order of their numbers.
    pub groups: Vec<GroupInfo>,
    /// Drives that wait to stand in.
    pub spares: Vec<MemberInfo>,
    /// The drives of its groups, by group and place.
    pub members: Vec<MemberInfo>,
    /// Drives of groups that have left, which are not wiped yet.
    pub departed: Vec<String>,
    /// Epoch under which it is owned; grows with every opening.
    pub epoch: u64,
    /// Where data begins on every drive; labels, metadata and logs come before.
    pub data_start: u64,
    /// Bytes in the data log, and what it takes.
    pub log_used_bytes: u64,
    /// Bytes that the data log takes at most.
    pub log_capacity_bytes: u64,
    /// Bytes that were damaged and have been put right since the opening.
    pub mended_bytes: u64,
    /// Bytes that were found to be lost since the opening.
    pub lost_bytes: u64,
    /// Work under way in the background.
    pub tasks: Vec<life::TaskInfo>,
    /// Whether fewer drives carry metadata or logs than should; others take over soon, if
    /// there are any.
    pub copies_are_short: bool,
    /// Whole scrubs since the opening.
    pub scrubs_ended: u64,
    /// The last of them.
    pub last_scrub: Option<life::ScrubInfo>,
    /// Counters of the read cache.
    pub cache: crate::cache::CacheStats,
    /// What the drives were used for since the opening.
    pub io: crate::store::counts::IoCounts,
    /// Limits of work in the background.
    pub rates: life::Rates,
    /// Why the pool has stopped, if it has.
    pub failure: Option<String>,
    /// Lanes that the pool has ([`crate::lane`]).
    pub lanes: u16,
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
    /// A label or the metadata is of another format version.
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
    /// Another host has the pool open.
    InUse,
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
    /// The drive, which the caller has opened.
    pub drive: W::Drive,
}

/// A handle on an open pool. Clones share it.
pub struct Pool<W: World> {
    pub(crate) inner: Rc<Inner<W>>,
}

impl<W: World> Clone for Pool<W> {
    fn clone(&self) -> Self {
        Pool {
            inner: Rc::clone(&self.inner),
        }
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
    /// Number of the group in its pool.
    pub group: u16,
    /// Which place in the group.
    pub place: u16,
    /// The first lane's part of the drive, and how many lanes there are.
    pub part: Part,
    /// Its pool was closed.
    pub is_clean: bool,
}

impl<W: World> Pool<W> {
    /// The pool and its drives at a glance.
    pub fn info(&self) -> PoolInfo {
        let inner = &self.inner;
        let page_bytes = inner.page_bytes();
        let drives = &inner.drives;
        let (used, mapped) = {
            let space = inner.space.borrow();
            (space.used(), space.mapped())
        };
        let free = inner.free_pages();
        let kept = promise::kept_of(used + free).min(free);
        let groups: Vec<GroupInfo> = drives
            .groups()
            .iter()
            .filter(|group| group.drives() > 0)
            .map(|group| self.group_info(group))
            .collect();
        let block = base::BLOCK_BYTES as u64;
        let part = inner.identity().part();
        PoolInfo {
            name: drives.name().to_owned(),
            uuid: drives.uuid(),
            level: groups.first().map_or(Level::Simple, |group| group.level),
            page_bytes: inner.identity().page_bytes,
            capacity_bytes: (used + free - kept) * page_bytes,
            promised_bytes: inner.state.borrow().promises.promised() * page_bytes,
            kept_bytes: kept * page_bytes,
            backing_bytes: inner.state.borrow().backing_pages() * page_bytes,
            backed_bytes: inner.backed_pages() * page_bytes,
            fullness: self.fullness(),
            free_zones_bytes: inner.unopened_pages() * page_bytes,
            lanes: inner.identity().lanes,
            mapped_bytes: mapped * page_bytes,
            provisioned_bytes: self.volumes().iter().map(|volume| volume.size_bytes).sum(),
            members: groups
                .iter()
                .flat_map(|group| group.members.clone())
                .collect(),
            groups,
            spares: drives
                .spares()
                .iter()
                .map(|m| self.member_info(m))
                .collect(),
            departed: drives.departed().iter().map(|m| m.name.clone()).collect(),
            epoch: drives.epoch(),
            data_start: inner.identity().data_start + part.of_others_bytes(),
            log_used_bytes: inner.store.log.used_bytes(),
            log_capacity_bytes: inner.store.log.capacity_bytes(),
            mended_bytes: inner.store.counts.mended_blocks.get() * block,
            lost_bytes: inner.store.counts.lost_blocks.get() * block,
            copies_are_short: inner.copies_are_short(),
            scrubs_ended: inner.life.scrubs_ended(),
            last_scrub: inner.life.last_scrub(inner.world.now()),
            cache: inner.store.cache.stats(),
            io: inner.store.io(),
            rates: inner.life.pace.rates(),
            tasks: inner.life.tasks(inner.world.now()),
            failure: drives.failure(),
        }
    }

    fn member_info(&self, member: &crate::raid::Member<W>) -> MemberInfo {
        let info = member.info();
        let fronts_of_others = self.inner.identity().part().of_others_bytes();
        MemberInfo {
            capacity_bytes: info.capacity_bytes + fronts_of_others,
            ..info
        }
    }

    fn group_info(&self, group: &drives::Group<W>) -> GroupInfo {
        let zones = group.first_zone..group.first_zone + group.zones;
        GroupInfo {
            index: group.index,
            level: group.level(),
            members: group.places().iter().map(|m| self.member_info(m)).collect(),
            zones: group.zones,
            zones_in_use: zones
                .filter(|zone| self.inner.drives.zone(*zone).is_some())
                .count() as u32,
            zones_to_empty: self
                .inner
                .zones_to_empty()
                .iter()
                .filter(|zone| zone.group.index == group.index)
                .count() as u32,
            leaving: group.leaves(),
            zone_stride_bytes: group.stride_bytes(),
            zone_bytes: self.inner.identity().zone_bytes,
        }
    }

    /// Events with a higher number than `sequence`, as far as they are kept.
    pub fn events(&self, sequence: u64) -> Vec<drives::Event> {
        self.inner.drives.events_since(sequence)
    }

    /// The pool's name, from its label.
    pub fn name(&self) -> &str {
        self.inner.drives.name()
    }

    /// Which lane of the pool this is.
    pub fn lane(&self) -> u16 {
        self.inner.drives.lane().index
    }

    /// The world that the pool runs in.
    pub fn world(&self) -> &W {
        &self.inner.world
    }

    /// What its drives were used for, and more to count.
    pub fn store(&self) -> &crate::store::Store<W> {
        &self.inner.store
    }

    pub(crate) fn start(inner: Rc<Inner<W>>) -> Self {
        inner.store.start();
        life::start(&inner);
        Pool { inner }
    }

    /// Ends the use of the pool: empties the logs, and says so on the labels. I/O in
    /// flight ends first; I/O that begins after the call is refused.
    ///
    /// # Errors
    /// When the pool has stopped or is closed already, or a write fails; the drives
    /// can then still be opened, as after a crash.
    pub async fn close(&self) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration.lock().await;
        inner.life.end_all().await;
        inner.io_ended().await?;
        inner.store.drain().await?;
        inner.drives.set_closed();
        inner.checkpoint_ended().await;
        let closed = inner
            .drives
            .write_labels_alone(|label| label.clean = true)
            .await;
        inner.drives.last_beat().await;
        closed
    }
}
