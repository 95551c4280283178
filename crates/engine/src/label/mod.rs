//! The label on a drive: its pool, its part in the pool, and the other drives of the pool.
//!
//! Byte layout and rules: `docs/internals/format.md`, "Label". Invariants:
//! - Two slots; a label of generation `g` goes to slot `g % 2`, so a torn write
//!   never harms the label before it.
//! - Every label of a pool holds the whole member table. The table of the newest
//!   generation decides; a drive may lag by one generation (an update was cut
//!   short), and one that lags more is stale. Every opening writes two
//!   generations before it touches anything else, so a drive that sat out even one
//!   opening lags by two.

mod numbers;
mod part;
mod role;
mod version;

pub use numbers::{GroupNumbers, NUMBERS_END, Spacing};
pub use part::{LANES_MAX, Part};
pub use role::GroupRole;
pub use version::{FORMAT_VERSION, other_version};

use crate::codec::{Reader, Writer};
use crate::layout::{Layout, Slots, SumOrder};
use crate::raid::{Level, Protection, Spread};
use base::{DriveOffset, Uuid, crc32c};
use version::Format;

/// Bytes of one label slot.
pub const SLOT_BYTES: usize = 16 << 10;

/// Bytes at the start of a drive that are kept for labels.
pub const LABEL_AREA_BYTES: u64 = 64 << 10;

/// Where the slot of an even or odd generation begins.
pub const SLOT_OFFSETS: [u64; 2] = [0, 32 << 10];

/// Drives in one pool.
pub const MEMBERS_MAX: usize = 128;

/// RAID groups in one pool.
pub const GROUPS_MAX: usize = 32;

/// Longest name of a pool, drive or volume, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

pub(crate) const MAGIC: &[u8; 8] = b"ASHLARDR";
const CRC_OFFSET: usize = 8;
const GROUPS_OFFSET: usize = 256;
const TABLE_OFFSET: usize = 1024;

/// What the entry of a group says that is as wide as its stripes.
const NO_SPREAD: Spread = Spread {
    width: 0,
    spares: 0,
};

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

/// What is the same on every drive of a pool and never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolIdentity {
    pub uuid: Uuid,
    pub name: String,
    pub stripe_unit_bytes: u32,
    pub page_bytes: u32,
    pub journal_bytes: u32,
    pub volumes_max: u32,
    /// Bytes of one of the two checkpoint slots.
    pub checkpoint_bytes: u64,
    /// Bytes of the data log and of the intent log on each drive.
    pub log_bytes: u64,
    pub intent_bytes: u64,
    /// Bytes of a zone on each drive.
    pub zone_bytes: u64,
    /// Where the first zone begins on each drive.
    pub data_start: u64,
    /// Stands in the batches of both logs; known to nobody outside.
    pub salt: u64,
    /// How many lanes the pool has, and which one this is.
    pub lanes: u16,
    /// The lane of this label, from 0; see `lanes`.
    pub lane: u16,
    /// Whether twins lie side by side or apart, by the label's version.
    pub layout: Layout,
    /// How many page numbers a zone takes, by the label's version.
    pub spacing: Spacing,
}

impl PoolIdentity {
    /// Where the slots of integrity blocks lie in the area of a zone.
    pub fn slots(&self) -> Slots {
        Slots::of(self.layout, self.zone_bytes)
    }

    /// What this lane's metadata, logs and sums carry as identity: never that of another
    /// lane, and of the first lane that of the pool.
    pub fn lane_uuid(&self) -> Uuid {
        Uuid::from_u128(self.uuid.as_u128() ^ u128::from(self.lane))
    }

    /// Where this lane's part of every drive is.
    pub fn part(&self) -> Part {
        Part {
            lane: self.lane,
            lanes: self.lanes,
            front_bytes: self.data_start,
        }
    }
}

/// A RAID group as labels describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupEntry {
    /// Of zones taken into use from now on.
    pub level: Level,
    /// How it is wider than its stripes, if it is.
    pub spread: Option<Spread>,
    /// In what order its zones have their checksums.
    pub sum_order: SumOrder,
    /// What it is for.
    pub role: GroupRole,
    /// It is being emptied, to leave the pool.
    pub leaving: bool,
    /// How many drives it has; none when it has left.
    pub drives: u16,
    /// Where its zones and pages are among all.
    pub numbers: GroupNumbers,
}

/// A drive in the member table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberEntry {
    pub uuid: Uuid,
    pub group: u16,
    pub place: u16,
    pub state: MemberState,
    /// Whether it carries a copy of the metadata.
    pub metadata: bool,
    /// Whether it carries a copy of the logs.
    pub log: bool,
    /// Whether it was taken out of use by command: then it is in all lanes.
    pub ordered_out: bool,
    /// Whether it is a spare that is to become part of a new group.
    pub reserved: bool,
    /// Of a spare: the group and place of the drive that is copied to it.
    pub succeeds: Option<(u16, u16)>,
    pub capacity_bytes: u64,
    /// The name it last went by, for messages.
    pub name: String,
}

/// A label, as a slot on a drive holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub generation: u64,
    pub epoch: u64,
    /// The pool was closed cleanly.
    pub clean: bool,
    /// The drive that carries this label.
    pub drive_uuid: Uuid,
    pub pool: PoolIdentity,
    pub groups: Vec<GroupEntry>,
    pub members: Vec<MemberEntry>,
}

/// What a slot holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// No label, or a torn one.
    Empty,
    /// A label of another format.
    Other(u32),
    /// A whole label of a format that this version reads.
    Label(Box<Label>),
}

impl GroupEntry {
    /// Whether logs lie on it, or may. One that has left is no log group any more.
    pub fn is_log(&self) -> bool {
        self.role == GroupRole::Log && self.drives > 0
    }

    /// How its drives protect each other.
    pub fn protection(&self) -> Protection {
        Protection {
            level: self.level,
            spread: self.spread,
        }
    }

    fn encode(&self, w: &mut Writer, spacing: Spacing) {
        w.u8(self.level.code());
        w.u8(u8::from(self.leaving) | u8::from(self.is_log()) << 1);
        w.u16(self.drives);
        self.numbers.encode(w, spacing);
        let Spread { width, spares } = self.spread.unwrap_or(NO_SPREAD);
        w.u8(width);
        w.u8(spares);
        w.u16(match self.sum_order {
            SumOrder::Numbered => 0,
            SumOrder::BySpan => 1,
        });
    }

    fn decode(r: &mut Reader<'_>, pool: &PoolIdentity) -> Option<Self> {
        let level = Level::from_code(r.u8()?)?;
        let flags = r.u8()?;
        let drives = r.u16()?;
        let numbers = GroupNumbers::decode(r, pool)?;
        let (width, spares) = (r.u8()?, r.u8()?);
        let sum_order = match r.u16()? {
            0 => SumOrder::Numbered,
            1 => SumOrder::BySpan,
            _ => return None,
        };
        let spread = Spread { width, spares };
        Some(GroupEntry {
            level,
            spread: (spread != NO_SPREAD).then_some(spread),
            sum_order,
            role: match flags & 2 {
                0 => GroupRole::Data,
                _ => GroupRole::Log,
            },
            leaving: flags & 1 != 0,
            drives,
            numbers,
        })
    }
}

impl Label {
    fn has_log_group(&self) -> bool {
        self.groups.iter().any(GroupEntry::is_log)
    }

    /// Whether it has, or had, a group with distributed spares.
    fn has_spread_group(&self) -> bool {
        self.groups.iter().any(|group| group.spread.is_some())
    }

    /// Whether it has, or had, a group whose checksums are by span.
    fn has_sums_by_span(&self) -> bool {
        let mut groups = self.groups.iter();
        groups.any(|group| group.sum_order == SumOrder::BySpan)
    }

    /// That no two groups have numbers of zones or pages together.
    ///
    /// # Errors
    /// The first group that has those of one before it.
    pub fn check_numbers(&self) -> Result<(), String> {
        let numbers = self.groups.iter().map(|group| group.numbers);
        match GroupNumbers::first_overlap(numbers) {
            None => Ok(()),
            Some(index) => Err(format!(
                "labels of pool '{}': group {index} has numbers of zones or pages that a group before it has, too",
                self.pool.name
            )),
        }
    }

    /// Where its slot begins on a drive.
    pub fn slot_offset(&self) -> DriveOffset {
        DriveOffset(SLOT_OFFSETS[(self.generation % 2) as usize])
    }

    /// The slot's bytes, checksum included.
    pub fn encode(&self) -> Vec<u8> {
        let format = Format::of(self);
        let mut w = Writer::default();
        w.bytes.extend_from_slice(MAGIC);
        w.u32(0);
        w.u32(format.version());
        w.u64(self.generation);
        w.u64(self.epoch);
        w.uuid(self.pool.uuid);
        w.uuid(self.drive_uuid);
        w.name(&self.pool.name, NAME_BYTES_MAX);
        w.u8(u8::from(self.clean));
        w.u8(0);
        w.u16(u16::try_from(self.members.len()).unwrap_or_else(|_| unreachable!()));
        w.u32(self.groups.len() as u32);
        w.u32(self.pool.stripe_unit_bytes);
        w.u32(self.pool.page_bytes);
        w.u32(self.pool.journal_bytes);
        w.u32(self.pool.volumes_max);
        w.u64(self.pool.checkpoint_bytes);
        w.u64(self.pool.log_bytes);
        w.u64(self.pool.intent_bytes);
        w.u64(self.pool.zone_bytes);
        w.u64(self.pool.data_start);
        w.u64(self.pool.salt);
        format.write_lanes(&mut w, &self.pool);
        w.pad_to(GROUPS_OFFSET);
        assert!(self.groups.len() <= GROUPS_MAX && self.members.len() <= MEMBERS_MAX);
        for group in &self.groups {
            group.encode(&mut w, self.pool.spacing);
        }
        w.pad_to(TABLE_OFFSET);
        for member in &self.members {
            member.encode(&mut w);
        }
        w.pad_to(SLOT_BYTES);
        let crc = crc32c(&w.bytes);
        w.bytes[CRC_OFFSET..CRC_OFFSET + 4].copy_from_slice(&crc.to_le_bytes());
        w.bytes
    }

    /// What `slot` holds. A label whose checksum is wrong counts as none: a power
    /// cut may have torn it, and the other slot then has the one before.
    pub fn decode(slot: &[u8]) -> Slot {
        if slot.len() != SLOT_BYTES || !slot.starts_with(MAGIC) {
            return Slot::Empty;
        }
        let (head, tail) = slot.split_at(CRC_OFFSET);
        let (stored, tail) = tail.split_at(4);
        if base::checksum::crc32c_of([head, &[0; 4], tail]).to_le_bytes() != *stored {
            return Slot::Empty;
        }
        let mut r = Reader::new(tail);
        let Some(version) = r.u32() else {
            return Slot::Empty;
        };
        let Some(format) = Format::of_version(version) else {
            return Slot::Other(version);
        };
        decode_fields(&mut r, slot, format)
            .map_or(Slot::Empty, |label| Slot::Label(Box::new(label)))
    }
}

fn decode_fields(r: &mut Reader<'_>, slot: &[u8], format: Format) -> Option<Label> {
    let generation = r.u64()?;
    let epoch = r.u64()?;
    let uuid = r.uuid()?;
    let drive_uuid = r.uuid()?;
    let name = r.name(NAME_BYTES_MAX)?;
    let clean = r.u8()? != 0;
    r.u8()?;
    let count = usize::from(r.u16()?);
    let group_count = r.u32()? as usize;
    let pool = decode_pool(r, (uuid, name), format)?;
    if group_count > GROUPS_MAX {
        return None;
    }
    let mut table = Reader::new(slot.get(GROUPS_OFFSET..)?);
    let groups = (0..group_count)
        .map(|_| GroupEntry::decode(&mut table, &pool))
        .collect::<Option<_>>()?;
    let mut table = Reader::new(slot.get(TABLE_OFFSET..)?);
    let members = (0..count)
        .map(|_| MemberEntry::decode(&mut table))
        .collect::<Option<_>>()?;
    Some(Label {
        generation,
        epoch,
        clean,
        drive_uuid,
        pool,
        groups,
        members,
    })
}

/// The sizes of the pool of this name, its lanes, and what the format says of it.
fn decode_pool(
    r: &mut Reader<'_>,
    (uuid, name): (Uuid, String),
    format: Format,
) -> Option<PoolIdentity> {
    let mut pool = PoolIdentity {
        uuid,
        name,
        stripe_unit_bytes: r.u32()?,
        page_bytes: r.u32()?,
        journal_bytes: r.u32()?,
        volumes_max: r.u32()?,
        checkpoint_bytes: r.u64()?,
        log_bytes: r.u64()?,
        intent_bytes: r.u64()?,
        zone_bytes: r.u64()?,
        data_start: r.u64()?,
        salt: r.u64()?,
        lanes: 1,
        lane: 0,
        layout: Layout::default(),
        spacing: Spacing::default(),
    };
    format.read_lanes(r, &mut pool)?;
    let has_lane = pool.lane < pool.lanes && pool.lanes <= LANES_MAX;
    // Stripe units are whole blocks: who reckons with them divides by their number.
    let unit = pool.stripe_unit_bytes as usize;
    let has_unit = unit > 0 && unit.is_multiple_of(base::BLOCK_BYTES);
    (has_lane && has_unit).then_some(pool)
}

impl MemberEntry {
    fn encode(&self, w: &mut Writer) {
        w.uuid(self.uuid);
        let (group, place) = self.succeeds.unwrap_or((0, self.place));
        w.u16(self.group);
        w.u16(place);
        w.u8(match self.state {
            MemberState::Healthy => 0,
            MemberState::Failed => 1,
            MemberState::Rebuilding => 2,
            MemberState::Spare => 3,
            MemberState::Suspect => 4,
        });
        let carries = u8::from(self.metadata) | u8::from(self.log) << 1;
        let succeeds = u8::from(self.succeeds.is_some()) << 4;
        w.u8(carries | u8::from(self.ordered_out) << 2 | u8::from(self.reserved) << 3 | succeeds);
        w.u16(group);
        w.u64(self.capacity_bytes);
        w.name(&self.name, NAME_BYTES_MAX);
    }

    fn decode(r: &mut Reader<'_>) -> Option<Self> {
        let uuid = r.uuid()?;
        let group = r.u16()?;
        let place = r.u16()?;
        let state = match r.u8()? {
            0 => MemberState::Healthy,
            1 => MemberState::Failed,
            2 => MemberState::Rebuilding,
            3 => MemberState::Spare,
            4 => MemberState::Suspect,
            _ => return None,
        };
        let flags = r.u8()?;
        let succeeds = (r.u16()?, place);
        let capacity_bytes = r.u64()?;
        let name = r.name(NAME_BYTES_MAX)?;
        Some(MemberEntry {
            uuid,
            group,
            place,
            state,
            metadata: flags & 1 != 0,
            log: flags & 2 != 0,
            ordered_out: flags & 4 != 0,
            reserved: flags & 8 != 0,
            succeeds: (flags & 16 != 0).then_some(succeeds),
            capacity_bytes,
            name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::version::{FORMATS, WITH_LOG_GROUP, WITH_PAGE_NUMBERS, WITH_SPREAD_GROUP};
    use super::*;
    use base::PhysPage;

    fn label(members: usize) -> Label {
        let entry = |place: usize| MemberEntry {
            uuid: Uuid::from_u128(place as u128 + 1),
            group: 0,
            place: place as u16,
            state: match place {
                1 => MemberState::Failed,
                2 => MemberState::Suspect,
                _ => MemberState::Healthy,
            },
            metadata: place < 3,
            log: place.is_multiple_of(5),
            ordered_out: place == 1,
            reserved: place == 4,
            succeeds: (place == 7).then_some((3, 7)),
            capacity_bytes: 1 << 40,
            name: format!("drive-{place}"),
        };
        Label {
            generation: 7,
            epoch: 3,
            clean: true,
            drive_uuid: Uuid::from_u128(1),
            pool: PoolIdentity {
                uuid: Uuid::from_u128(99),
                name: "p".repeat(NAME_BYTES_MAX),
                stripe_unit_bytes: 1 << 16,
                page_bytes: 1 << 18,
                journal_bytes: 1 << 23,
                volumes_max: 4096,
                checkpoint_bytes: 1 << 20,
                log_bytes: 1 << 26,
                intent_bytes: 1 << 25,
                zone_bytes: 1 << 28,
                data_start: 1 << 24,
                salt: 0x5a17,
                lanes: 4,
                lane: 3,
                layout: Layout::Apart,
                spacing: Spacing::Own,
            },
            groups: (0..GROUPS_MAX as u32)
                .map(|index| GroupEntry {
                    level: Level::ALL[index as usize % 6],
                    spread: None,
                    sum_order: SumOrder::Numbered,
                    role: GroupRole::Data,
                    leaving: index % 3 == 1,
                    drives: 4,
                    numbers: GroupNumbers {
                        first_zone: index * 100,
                        zones: 100,
                        first_page: PhysPage(u64::from(index) * 409_600),
                        zone_pages: 4096,
                    },
                })
                .collect(),
            members: (0..members).map(entry).collect(),
        }
    }

    /// The same of a pool that an older version made.
    fn old_label(members: usize, (layout, lanes): (Layout, bool)) -> Label {
        let mut label = label(members);
        label.pool.spacing = Spacing::Widest;
        label.pool.layout = layout;
        (label.pool.lanes, label.pool.lane) = if lanes { (4, 3) } else { (1, 0) };
        for group in &mut label.groups {
            // 32 drives of 1,024 pages each.
            group.numbers.zone_pages = 32 << 10;
            group.numbers.first_page = PhysPage(u64::from(group.numbers.first_zone) * (32 << 10));
        }
        label
    }

    #[test]
    fn a_label_comes_back_as_it_was_written() {
        for members in [1, 8, MEMBERS_MAX] {
            let label = label(members);
            assert_eq!(Label::decode(&label.encode()), Slot::Label(Box::new(label)));
        }
    }

    #[test]
    fn the_version_says_how_twins_lie_and_whether_there_are_lanes() {
        for (version, layout, lanes) in FORMATS {
            let label = old_label(2, (layout, lanes));
            let bytes = label.encode();
            assert_eq!(bytes[12..16], version.to_le_bytes());
            assert_eq!(Label::decode(&bytes), Slot::Label(Box::new(label)));
        }
    }

    #[test]
    fn a_log_group_raises_the_version_as_long_as_it_is_there() {
        for (old, layout, lanes) in FORMATS {
            let mut label = old_label(3, (layout, lanes));
            label.groups[2].role = GroupRole::Log;
            label.groups[2].numbers.zones = 0;
            let bytes = label.encode();
            assert_eq!(bytes[12..16], WITH_LOG_GROUP.to_le_bytes());
            assert_eq!(Label::decode(&bytes), Slot::Label(Box::new(label.clone())));
            label.groups[2].drives = 0;
            let bytes = label.encode();
            assert_eq!(bytes[12..16], old.to_le_bytes());
            let Slot::Label(read) = Label::decode(&bytes) else {
                panic!("no label");
            };
            assert_eq!(read.groups[2].role, GroupRole::Data);
        }
    }

    #[test]
    fn a_pool_with_numbers_of_its_own_has_the_newest_version_whatever_else_it_has() {
        for (_, layout, lanes) in FORMATS {
            for role in [GroupRole::Data, GroupRole::Log] {
                let mut label = old_label(3, (layout, lanes));
                label.pool.spacing = Spacing::Own;
                label.groups[2].role = role;
                let bytes = label.encode();
                assert_eq!(bytes[12..16], WITH_PAGE_NUMBERS.to_le_bytes());
                assert_eq!(Label::decode(&bytes), Slot::Label(Box::new(label)));
            }
        }
    }

    #[test]
    fn a_group_with_distributed_spares_raises_the_version_for_good() {
        let mut label = label(3);
        label.groups[2].spread = Some(Spread {
            width: 10,
            spares: 2,
        });
        for (order, version) in [
            (SumOrder::Numbered, WITH_SPREAD_GROUP),
            (SumOrder::BySpan, FORMAT_VERSION),
        ] {
            label.groups[2].sum_order = order;
            for drives in [12, 0] {
                label.groups[2].drives = drives;
                let bytes = label.encode();
                assert_eq!(bytes[12..16], version.to_le_bytes());
                assert_eq!(Label::decode(&bytes), Slot::Label(Box::new(label.clone())));
            }
        }
    }

    #[test]
    fn groups_that_the_format_has_no_numbers_for_make_it_no_label() {
        let with = |first_page, zones, zone_pages| {
            let mut label = label(2);
            label.groups[31].numbers = GroupNumbers {
                first_zone: 3100,
                zones,
                first_page: PhysPage(first_page),
                zone_pages,
            };
            Label::decode(&label.encode())
        };
        let end = NUMBERS_END;
        assert!(matches!(with(end - 801, 100, 8), Slot::Label(_)));
        assert_eq!(with(end - 800, 100, 8), Slot::Empty);
        assert_eq!(with(0, u32::MAX, 1), Slot::Empty);
        assert_eq!(with(end - 900, 100, 0), Slot::Empty);
        let mut of_old_sizes = old_label(2, (Layout::Apart, false));
        of_old_sizes.pool.page_bytes = 0;
        assert_eq!(Label::decode(&of_old_sizes.encode()), Slot::Empty);
        for unit in [0, 512, 6 << 10] {
            let mut of_parts = label(2);
            of_parts.pool.stripe_unit_bytes = unit;
            assert_eq!(Label::decode(&of_parts.encode()), Slot::Empty, "{unit}");
        }
    }

    #[test]
    fn any_flipped_bit_makes_it_no_label() {
        let good = label(2).encode();
        for byte in (0..SLOT_BYTES).step_by(7) {
            let mut bad = good.clone();
            bad[byte] ^= 1 << (byte % 8);
            assert_eq!(Label::decode(&bad), Slot::Empty, "byte {byte}");
        }
        assert_eq!(Label::decode(&good[..100]), Slot::Empty);
    }

    #[test]
    fn another_format_is_named_not_guessed_at() {
        let newer = FORMAT_VERSION + 1;
        for (version, advice) in [(1, "it was written before"), (newer, "or a newer one")] {
            let mut bytes = label(2).encode();
            bytes[12..16].copy_from_slice(&u32::to_le_bytes(version));
            bytes[CRC_OFFSET..CRC_OFFSET + 4].fill(0);
            let crc = crc32c(&bytes);
            bytes[CRC_OFFSET..CRC_OFFSET + 4].copy_from_slice(&crc.to_le_bytes());
            assert_eq!(Label::decode(&bytes), Slot::Other(version));
            assert!(other_version(version).contains(advice));
        }
    }
}
