//! A pool: RAID groups of drives, and the volumes they hold.
//!
//! Rooms: `create`, `open` and `strangers` (from drives to a pool), `recover` (metadata read
//! back), `volumes` (creation to deletion), `snapshots`, `attributes` and `hidden` (what is said of
//! volumes), `moves` (to another pool), [`maintenance`] (the work on the drives).

mod attributes;
mod carriers;
mod create;
mod hidden;
mod holdings;
mod label_reads;
pub mod maintenance;
mod merge;
mod moves;
mod open;
mod provision;
mod recover;
mod shrink;
mod snapshots;
mod strangers;
mod unlabel;
mod volumes;

pub use crate::drives::{self, Event, EventKind, MemberInfo, NamedDrive};
pub use crate::error::{PoolError, PoolErrorKind};
pub use crate::label::{GroupRole, LabelSummary, MemberState};
pub use crate::raid::Level;
pub use attributes::{AttributesChange, SNAPSHOT_MARK};
pub use create::{METADATA_COPIES, draw_uuid, planned_capacity_bytes};
pub use holdings::Holdings;
pub use moves::{OtherPool, Settling, There};
pub use provision::VolumeChange;
pub use snapshots::Taking;

use crate::label::Spacing;
use crate::layout::Layout;
use crate::raid::Spread;
use crate::space::usual_checksum_blocks;
use crate::space::{LaneState, promise};
use crate::volume::VolumeInfo;
use crate::world::World;
use base::Uuid;
use maintenance::{Copies, ScrubRounds};
use std::rc::Rc;

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
    /// sixteenth of a drive each, and 64 MiB at most, or 256 MiB with a log group.
    pub log_bytes: Option<u64>,
    /// Bytes of the intent log; see `log_bytes`.
    pub intent_bytes: Option<u64>,
    /// Which of its groups the logs lie on; that one holds no data.
    pub log_group: Option<usize>,
    /// Volumes that the pool can hold; default 4096.
    pub volumes_max: u32,
    /// Bytes that a checkpoint of a lane has for the map of each page that the pool may come to have.
    /// By default as many as a page can take, and less in each of many lanes: all have room together.
    pub map_page_bytes: Option<u32>,
    /// How twins lie; pools that versions 2 and 3 of the format describe have them side by side.
    pub layout: Layout,
    /// How many page numbers a zone takes; pools that older versions can open are spaced for the
    /// widest group.
    pub spacing: Spacing,
    /// Tells pools of one name apart that are made in one world, one after the other: their
    /// identities, and those of their volumes, have to differ. Random in the real world.
    pub nonce: u64,
    /// Its identity, where the caller has to know that before anything is written
    /// ([`draw_uuid`]); drawn at its creation for `None`.
    pub uuid: Option<Uuid>,
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
            log_group: None,
            volumes_max: 4096,
            map_page_bytes: None,
            layout: Layout::default(),
            spacing: Spacing::default(),
            nonce: 0,
            uuid: None,
        }
    }
}

/// The level of the first group of data.
fn level_of(groups: &[GroupInfo]) -> Level {
    let mut groups = groups.iter();
    let first = groups.find(|group| group.role == GroupRole::Data);
    first.map_or(Level::Simple, |group| group.level)
}

fn names<W: World>(members: &[Rc<drives::Member<W>>]) -> Vec<String> {
    members.iter().map(|member| member.name.clone()).collect()
}

fn snapshots_bytes(volumes: &[VolumeInfo]) -> u64 {
    let snapshots = volumes.iter().filter(|volume| volume.read_only);
    snapshots.map(|volume| volume.size_bytes).sum()
}

/// A RAID group at a glance.
#[derive(Clone, Debug)]
pub struct GroupInfo {
    /// Its number in the pool.
    pub index: u16,
    /// What it is for.
    pub role: GroupRole,
    /// How it is wider than its stripes, if it is: with distributed spares.
    pub spread: Option<Spread>,
    /// How the places of its zones stand.
    pub places: PlaceCounts,
    /// How it protects what is written to new zones, and a log group the logs.
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

/// How places of zones stand on the drives of their group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceCounts {
    /// Places whose drive does not hold what it should: their stripes lack redundancy.
    pub lost: u64,
    /// Places in a group with distributed spares that stand elsewhere than at home.
    pub away: u64,
}

impl PlaceCounts {
    /// Those of two lanes together.
    #[must_use]
    pub fn and(self, other: PlaceCounts) -> PlaceCounts {
        PlaceCounts {
            lost: self.lost + other.lost,
            away: self.away + other.away,
        }
    }
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
    pub fullness: maintenance::fullness::FullnessInfo,
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
    /// Of these, those that can't be written to: snapshots.
    pub snapshots_bytes: u64,
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
    /// Names of drives that carry the logs of any lane.
    pub log_drives: Vec<String>,
    /// Bytes that were damaged and have been put right since the opening.
    pub mended_bytes: u64,
    /// Bytes that were found to be lost since the opening.
    pub lost_bytes: u64,
    /// Work under way in the background.
    pub tasks: Vec<maintenance::TaskInfo>,
    /// Whether fewer drives carry metadata or logs than should; others take over soon, if
    /// there are any.
    pub copies_are_short: bool,
    /// Whole scrubs since the opening.
    pub scrubs_ended: u64,
    /// The last of them.
    pub last_scrub: Option<maintenance::ScrubInfo>,
    /// The scrub that goes on by itself, if one does.
    pub scrub_round: Option<maintenance::RoundInfo>,
    /// Counters of the read cache.
    pub cache: crate::cache::CacheStats,
    /// What the drives were used for since the opening.
    pub io: crate::store::counts::IoCounts,
    /// Limits of work in the background.
    pub rates: maintenance::Rates,
    /// Why the pool has stopped, if it has.
    pub failure: Option<String>,
    /// Lanes that the pool has ([`crate::lane`]).
    pub lanes: u16,
}

/// A handle on an open lane of a pool; a pool that has one lane is that lane. Clones share it.
pub struct Lane<W: World> {
    pub(crate) inner: Rc<LaneState<W>>,
}

impl<W: World> Clone for Lane<W> {
    fn clone(&self) -> Self {
        Lane {
            inner: Rc::clone(&self.inner),
        }
    }
}

impl<W: World> Lane<W> {
    /// The pool and its drives at a glance.
    pub fn info(&self) -> PoolInfo {
        let inner = &self.inner;
        let page_bytes = inner.page_bytes();
        let drives = inner.drives();
        let (used, mapped) = {
            let space = inner.space();
            (space.used(), space.mapped())
        };
        let free = inner.free_pages();
        let kept = promise::kept_of(used + free).min(free);
        let volumes = self.volumes();
        let groups = self.group_infos();
        let block = base::BLOCK_BYTES as u64;
        PoolInfo {
            name: drives.name().to_owned(),
            uuid: drives.uuid(),
            level: level_of(&groups),
            page_bytes: inner.identity().page_bytes,
            capacity_bytes: (used + free - kept) * page_bytes,
            promised_bytes: inner.state().promises.promised() * page_bytes,
            kept_bytes: kept * page_bytes,
            backing_bytes: inner.state().backing_pages() * page_bytes,
            backed_bytes: inner.backings().backed_pages() * page_bytes,
            fullness: self.fullness(),
            free_zones_bytes: inner.drives().unopened_pages() * page_bytes,
            lanes: inner.identity().lanes,
            mapped_bytes: mapped * page_bytes,
            provisioned_bytes: volumes.iter().map(|volume| volume.size_bytes).sum(),
            snapshots_bytes: snapshots_bytes(&volumes),
            members: groups
                .iter()
                .flat_map(|group| group.members.clone())
                .collect(),
            groups,
            spares: self.spare_infos(),
            departed: names(&drives.departed()),
            epoch: drives.epoch(),
            data_start: inner.identity().data_start + inner.identity().part().of_others_bytes(),
            log_used_bytes: inner.store().log.used_bytes(),
            log_capacity_bytes: inner.store().log.capacity_bytes(),
            log_drives: names(&drives.log_members()),
            mended_bytes: inner.store().counts.mended_blocks.get() * block,
            lost_bytes: inner.store().counts.lost_blocks.get() * block,
            copies_are_short: Copies::of(inner).copies_are_short(),
            scrubs_ended: inner.background().scrubs().ended(),
            last_scrub: inner.background().scrubs().last(inner.world().now()),
            scrub_round: ScrubRounds::of(inner).round_info(),
            cache: inner.store().cache.stats(),
            io: inner.store().io(),
            rates: inner.background().pace().rates(),
            tasks: inner.background().tasks(inner.world().now()),
            failure: drives.failure(),
        }
    }

    fn group_infos(&self) -> Vec<GroupInfo> {
        let groups = self.inner.drives().groups();
        let with_drives = groups.iter().filter(|group| group.drives() > 0);
        with_drives.map(|group| self.group_info(group)).collect()
    }

    fn spare_infos(&self) -> Vec<MemberInfo> {
        let spares = self.inner.drives().spares();
        let free = spares.iter().filter(|spare| !spare.is_reserved());
        free.map(|spare| self.member_info(spare)).collect()
    }

    fn member_info(&self, member: &crate::drives::Member<W>) -> MemberInfo {
        let info = member.info();
        let fronts_of_others = self.inner.identity().part().of_others_bytes();
        MemberInfo {
            capacity_bytes: info.capacity_bytes + fronts_of_others,
            ..info
        }
    }

    fn group_info(&self, group: &drives::Group<W>) -> GroupInfo {
        let zones = group.numbers.zone_range();
        GroupInfo {
            index: group.index,
            role: group.role,
            spread: group.spread,
            places: self.place_counts(group.index),
            level: group.level(),
            members: group.places().iter().map(|m| self.member_info(m)).collect(),
            zones: group.numbers.zones,
            zones_in_use: zones
                .filter(|zone| self.inner.drives().zone(*zone).is_some())
                .count() as u32,
            zones_to_empty: self
                .inner
                .drives()
                .zones_to_empty()
                .iter()
                .filter(|zone| zone.group.index == group.index)
                .count() as u32,
            leaving: group.leaves(),
            zone_stride_bytes: group.stride_bytes(),
            zone_bytes: self.inner.identity().zone_bytes,
        }
    }

    /// How the places of a group's zones stand.
    fn place_counts(&self, index: u16) -> PlaceCounts {
        let drives = self.inner.drives();
        let group = drives.group(index);
        let zones = drives.zones_of(&group);
        let whole = group.whole();
        let lost = zones.iter().flat_map(|zone| zone.lost(&whole));
        PlaceCounts {
            lost: lost.count() as u64,
            away: drives.away(&group, &self.inner.state().moved).count() as u64,
        }
    }

    /// Events with a higher number than `sequence`, as far as they are kept.
    pub fn events(&self, sequence: u64) -> Vec<drives::Event> {
        self.inner.drives().events_since(sequence)
    }

    /// The pool's name, from its label.
    pub fn name(&self) -> &str {
        self.inner.drives().name()
    }

    /// Which lane of the pool this is.
    pub fn lane(&self) -> u16 {
        self.inner.drives().lane().index
    }

    /// The world that the pool runs in.
    pub fn world(&self) -> &W {
        self.inner.world()
    }

    /// How many blocks of checksums, 4 KiB each, the zones have that are in use.
    pub fn checksum_blocks_on_drives(&self) -> u64 {
        self.store().integrity.blocks_on_drives()
    }

    /// Keeps so many blocks of checksums in RAM, 4 KiB each, but not fewer than a lane keeps by
    /// itself.
    pub fn set_checksum_blocks(&self, blocks: u64) {
        let least = usual_checksum_blocks(self.inner.drives().lane().registry.lanes());
        let blocks = usize::try_from(blocks).unwrap_or(usize::MAX).max(least);
        self.store().integrity.set_budget(blocks);
    }

    /// Has as many checksums in RAM as there may be, as after a long time of random reads.
    ///
    /// # Panics
    /// In a world whose buffers have bytes.
    pub fn warm_checksums(&self) {
        self.store().integrity.warm();
    }

    /// What its drives were used for, and more to count.
    pub fn store(&self) -> &crate::store::Store<W> {
        self.inner.store()
    }

    /// Writes the metadata in one piece, so that little has to be read from the journal
    /// when the pool is opened next. Everything else goes on meanwhile.
    ///
    /// # Errors
    /// When the pool has stopped, or stops now.
    pub async fn checkpoint(&self) -> Result<(), PoolError> {
        self.inner.journal().checkpoint_to_all().await
    }

    pub(crate) fn start(inner: Rc<LaneState<W>>) -> Self {
        inner.store().start();
        maintenance::start(&inner);
        Lane { inner }
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
        let _administration = inner.administration().await;
        inner.background().end_all().await;
        inner.io_ended().await?;
        inner.store().drain().await?;
        inner.drives().set_closed();
        inner.journal().checkpoint_ended().await;
        let closed = inner
            .drives()
            .write_labels_alone(|label| label.clean = true)
            .await;
        inner.drives().last_beat().await;
        closed
    }
}
