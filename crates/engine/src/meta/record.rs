//! A change of the metadata, as a record of journal or checkpoint.

use super::Provisioning;
use super::properties::Property;
use crate::codec::{Reader, Writer};
use crate::label::NAME_BYTES_MAX;
use crate::raid::Level;
use base::{PageIndex, PhysPage, Uuid};

/// Names a volume inside its pool; never used again after deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolumeId(pub u32);

/// A change of the metadata. Codes and fields: `docs/internals/format.md`, "Records".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A volume; until [`Record::Ready`] it is dropped at the next opening.
    Create {
        id: VolumeId,
        uuid: Uuid,
        name: String,
        size_bytes: u64,
        provisioning: Provisioning,
        /// A snapshot that nobody writes.
        read_only: bool,
    },
    /// The volume is complete.
    Ready { id: VolumeId },
    /// A volume's new size.
    Resize { id: VolumeId, size_bytes: u64 },
    /// The volume and its pages are gone.
    Delete { id: VolumeId },
    /// A run of pages, consecutive on both sides, unmapped before.
    Map {
        id: VolumeId,
        page: PageIndex,
        phys: PhysPage,
        count: u32,
    },
    /// A page that was mapped lies elsewhere from now on.
    Remap {
        id: VolumeId,
        page: PageIndex,
        phys: PhysPage,
    },
    /// A page that was mapped lies elsewhere from now on, and what of it is never written
    /// there is in `backing`.
    Overlay {
        id: VolumeId,
        page: PageIndex,
        phys: PhysPage,
        backing: PhysPage,
    },
    /// A page has all of its content itself, and needs no backing any more.
    Whole { phys: PhysPage },
    /// A page has a backing: in checkpoints only.
    Backed { phys: PhysPage, backing: PhysPage },
    /// Pages of a run, those of them that were mapped, are not any more.
    Unmap {
        id: VolumeId,
        page: PageIndex,
        count: u32,
    },
    /// A volume without pages has those of another from now on, as that has them.
    Share { id: VolumeId, from: VolumeId },
    /// A volume has what another has from now on, and nothing of what it had.
    Restore { id: VolumeId, from: VolumeId },
    /// Pages of a volume are what pages of a volume, another or itself, are; where those are
    /// not mapped, these are not either.
    Copy {
        id: VolumeId,
        page: PageIndex,
        from: VolumeId,
        from_page: PageIndex,
        count: u32,
    },
    /// A volume's new size, which is smaller; its pages from `end` on are gone.
    Shrink {
        id: VolumeId,
        size_bytes: u64,
        end: PageIndex,
    },
    /// How a volume takes space from now on.
    Behave {
        id: VolumeId,
        provisioning: Provisioning,
        /// Pages that are written as zeroes are not kept.
        detects_zeroes: bool,
    },
    /// A zone is in use.
    ZoneOn {
        zone: u32,
        level: Level,
        incarnation: u32,
    },
    /// A zone is not in use any more.
    ZoneOff { zone: u32 },
    /// A place of a zone stands on this drive of its group from now on; at home for [`HOME`].
    Moved { zone: u32, place: u8, drive: u8 },
    /// A drive that is being rebuilt is whole in this zone.
    Rebuilt { member: Uuid, zone: u32 },
    /// Incarnations below this one have been given out.
    NextIncarnation { incarnation: u32 },
    /// The rebuild of a drive is over, well or not.
    RebuildOver { member: Uuid },
    /// Volume ids below this one have been given out.
    NextId { id: VolumeId },
    /// Something is said of a volume.
    Property(VolumeId, Property),
}

/// Instead of a drive: where a place stands without any record.
pub const HOME: u8 = u8::MAX;

const CREATE: u8 = 1;
const READY: u8 = 2;
const RESIZE: u8 = 3;
const DELETE: u8 = 4;
const MAP: u8 = 5;
const NEXT_ID: u8 = 8;
const REMAP: u8 = 9;
const ZONE_ON: u8 = 10;
const ZONE_OFF: u8 = 11;
const REBUILT: u8 = 12;
const REBUILD_OVER: u8 = 13;
const NEXT_INCARNATION: u8 = 14;
const MOVED: u8 = 20;

/// What begins a table of pages, which stands in checkpoints only.
pub(super) const TABLE: u8 = 15;
const UNMAP: u8 = 16;
const SHARE: u8 = 17;
const RESTORE: u8 = 19;

/// What begins a run of shared chunks, which stands in checkpoints only.
pub(super) const SHARED: u8 = 18;

const BEHAVE: u8 = 30;
const COPY: u8 = 70;
const SHRINK: u8 = 72;

/// What begins a run of chunks that are shared with another place, which stands in
/// checkpoints only.
pub(super) const SHARED_ELSEWHERE: u8 = 71;

const OVERLAY: u8 = 50;
const WHOLE: u8 = 51;
const BACKED: u8 = 52;

/// Bytes of the longest record.
pub const RECORD_BYTES_MAX: usize = 1 + 4 + 16 + 8 + 1 + NAME_BYTES_MAX;

/// Bytes of a record that says how a volume behaves.
pub const BEHAVE_BYTES: usize = 1 + 4 + 1;

/// Bytes of a record that says what backs a page.
pub const BACKED_BYTES: usize = 1 + 4 + 4;

/// Bytes of a map record.
pub const MAP_BYTES: usize = 1 + 4 + 4 + 4 + 4;

/// Bytes before the pages of a table: code, volume, first page, count.
pub const TABLE_HEAD_BYTES: usize = 1 + 4 + 4 + 4;

impl Record {
    /// Appends the record's bytes.
    pub fn encode(&self, w: &mut Writer) {
        match self {
            Record::Create {
                id,
                uuid,
                name,
                size_bytes,
                provisioning,
                read_only,
            } => {
                w.u8(CREATE);
                w.u32(id.0);
                w.uuid(*uuid);
                w.u64(*size_bytes);
                let thick = u8::from(*provisioning == Provisioning::Thick);
                w.u8(thick | u8::from(*read_only) << 1);
                w.name(name, NAME_BYTES_MAX);
            }
            Record::Ready { id } => {
                w.u8(READY);
                w.u32(id.0);
            }
            Record::Resize { id, size_bytes } => {
                w.u8(RESIZE);
                w.u32(id.0);
                w.u64(*size_bytes);
            }
            Record::Delete { id } => {
                w.u8(DELETE);
                w.u32(id.0);
            }
            Record::Map {
                id,
                page,
                phys,
                count,
            } => {
                w.u8(MAP);
                w.u32(id.0);
                w.u32(narrow(page.0));
                w.u32(narrow(phys.0));
                w.u32(*count);
            }
            Record::Remap { id, page, phys } => {
                w.u8(REMAP);
                w.u32(id.0);
                w.u32(narrow(page.0));
                w.u32(narrow(phys.0));
            }
            Record::Overlay {
                id,
                page,
                phys,
                backing,
            } => {
                w.u8(OVERLAY);
                w.u32(id.0);
                w.u32(narrow(page.0));
                w.u32(narrow(phys.0));
                w.u32(narrow(backing.0));
            }
            Record::Whole { phys } => {
                w.u8(WHOLE);
                w.u32(narrow(phys.0));
            }
            Record::Backed { phys, backing } => {
                w.u8(BACKED);
                w.u32(narrow(phys.0));
                w.u32(narrow(backing.0));
            }
            Record::Unmap { id, page, count } => {
                w.u8(UNMAP);
                w.u32(id.0);
                w.u32(narrow(page.0));
                w.u32(*count);
            }
            Record::Share { id, from } => {
                w.u8(SHARE);
                w.u32(id.0);
                w.u32(from.0);
            }
            Record::Restore { id, from } => {
                w.u8(RESTORE);
                w.u32(id.0);
                w.u32(from.0);
            }
            Record::Copy {
                id,
                page,
                from,
                from_page,
                count,
            } => {
                w.u8(COPY);
                w.u32(id.0);
                w.u32(narrow(page.0));
                w.u32(from.0);
                w.u32(narrow(from_page.0));
                w.u32(*count);
            }
            Record::Shrink {
                id,
                size_bytes,
                end,
            } => {
                w.u8(SHRINK);
                w.u32(id.0);
                w.u64(*size_bytes);
                w.u32(narrow(end.0));
            }
            Record::Behave {
                id,
                provisioning,
                detects_zeroes,
            } => {
                w.u8(BEHAVE);
                w.u32(id.0);
                let thick = u8::from(*provisioning == Provisioning::Thick);
                w.u8(thick | u8::from(*detects_zeroes) << 1);
            }
            Record::ZoneOn { .. } | Record::ZoneOff { .. } | Record::Moved { .. } => {
                self.encode_zone(w);
            }
            Record::Rebuilt { member, zone } => {
                w.u8(REBUILT);
                w.uuid(*member);
                w.u32(*zone);
            }
            Record::NextIncarnation { incarnation } => {
                w.u8(NEXT_INCARNATION);
                w.u32(*incarnation);
            }
            Record::RebuildOver { member } => {
                w.u8(REBUILD_OVER);
                w.uuid(*member);
            }
            Record::NextId { id } => {
                w.u8(NEXT_ID);
                w.u32(id.0);
            }
            Record::Property(id, property) => {
                w.u8(property.code());
                w.u32(id.0);
                property.encode(w);
            }
        }
    }

    /// Appends the bytes of a record about a zone.
    fn encode_zone(&self, w: &mut Writer) {
        match *self {
            Record::ZoneOn {
                zone,
                level,
                incarnation,
            } => {
                w.u8(ZONE_ON);
                w.u32(zone);
                w.u8(level.code());
                w.u32(incarnation);
            }
            Record::ZoneOff { zone } => {
                w.u8(ZONE_OFF);
                w.u32(zone);
            }
            Record::Moved { zone, place, drive } => {
                w.u8(MOVED);
                w.u32(zone);
                w.u8(place);
                w.u8(drive);
            }
            _ => unreachable!("{self:?} is about no zone"),
        }
    }

    /// Takes one record about a zone, of this code, off `r`.
    fn decode_zone(code: u8, r: &mut Reader<'_>) -> Option<Record> {
        let zone = r.u32()?;
        Some(match code {
            ZONE_ON => Record::ZoneOn {
                zone,
                level: Level::from_code(r.u8()?)?,
                incarnation: r.u32()?,
            },
            MOVED => Record::Moved {
                zone,
                place: r.u8()?,
                drive: r.u8()?,
            },
            _ => Record::ZoneOff { zone },
        })
    }

    /// Takes one record off `r`; `None` when it is not one.
    pub fn decode(r: &mut Reader<'_>) -> Option<Record> {
        let code = r.u8()?;
        match code {
            ZONE_ON | ZONE_OFF | MOVED => return Self::decode_zone(code, r),
            REBUILT => {
                let (member, zone) = (r.uuid()?, r.u32()?);
                return Some(Record::Rebuilt { member, zone });
            }
            NEXT_INCARNATION => {
                let incarnation = r.u32()?;
                return Some(Record::NextIncarnation { incarnation });
            }
            REBUILD_OVER => return Some(Record::RebuildOver { member: r.uuid()? }),
            WHOLE => {
                let phys = PhysPage(u64::from(r.u32()?));
                return Some(Record::Whole { phys });
            }
            BACKED => {
                let phys = PhysPage(u64::from(r.u32()?));
                let backing = PhysPage(u64::from(r.u32()?));
                return Some(Record::Backed { phys, backing });
            }
            _ => {}
        }
        let id = VolumeId(r.u32()?);
        Some(match code {
            CREATE => {
                let uuid = r.uuid()?;
                let size_bytes = r.u64()?;
                let flags = r.u8().filter(|flags| *flags < 4)?;
                let name = r.name(NAME_BYTES_MAX)?;
                Record::Create {
                    id,
                    uuid,
                    name,
                    size_bytes,
                    provisioning: provisioning(flags),
                    read_only: flags & 2 != 0,
                }
            }
            READY => Record::Ready { id },
            RESIZE => Record::Resize {
                id,
                size_bytes: r.u64()?,
            },
            DELETE => Record::Delete { id },
            MAP => {
                let page = PageIndex(u64::from(r.u32()?));
                let phys = PhysPage(u64::from(r.u32()?));
                Record::Map {
                    id,
                    page,
                    phys,
                    count: r.u32()?,
                }
            }
            REMAP => {
                let page = PageIndex(u64::from(r.u32()?));
                let phys = PhysPage(u64::from(r.u32()?));
                Record::Remap { id, page, phys }
            }
            OVERLAY => {
                let page = PageIndex(u64::from(r.u32()?));
                let phys = PhysPage(u64::from(r.u32()?));
                let backing = PhysPage(u64::from(r.u32()?));
                Record::Overlay {
                    id,
                    page,
                    phys,
                    backing,
                }
            }
            UNMAP => {
                let page = PageIndex(u64::from(r.u32()?));
                let count = r.u32()?;
                Record::Unmap { id, page, count }
            }
            SHARE => {
                let from = VolumeId(r.u32()?);
                Record::Share { id, from }
            }
            RESTORE => {
                let from = VolumeId(r.u32()?);
                Record::Restore { id, from }
            }
            COPY => {
                let page = PageIndex(u64::from(r.u32()?));
                let from = VolumeId(r.u32()?);
                let from_page = PageIndex(u64::from(r.u32()?));
                Record::Copy {
                    id,
                    page,
                    from,
                    from_page,
                    count: r.u32()?,
                }
            }
            SHRINK => Record::Shrink {
                id,
                size_bytes: r.u64()?,
                end: PageIndex(u64::from(r.u32()?)),
            },
            BEHAVE => {
                let flags = r.u8().filter(|flags| *flags < 4)?;
                Record::Behave {
                    id,
                    provisioning: provisioning(flags),
                    detects_zeroes: flags & 2 != 0,
                }
            }
            NEXT_ID => Record::NextId { id },
            code => Record::Property(id, Property::decode(code, r)?),
        })
    }

    /// Bytes that it adds to what is said of volumes, at most.
    pub fn properties_bytes(&self) -> u64 {
        match self {
            Record::Property(_, property) => property.bytes(),
            _ => 0,
        }
    }

    /// The volume that it changes, if it changes one.
    pub fn volume(&self) -> Option<VolumeId> {
        match self {
            Record::Create { id, .. }
            | Record::Ready { id }
            | Record::Resize { id, .. }
            | Record::Delete { id }
            | Record::Map { id, .. }
            | Record::Remap { id, .. }
            | Record::Overlay { id, .. }
            | Record::Unmap { id, .. }
            | Record::Share { id, .. }
            | Record::Restore { id, .. }
            | Record::Copy { id, .. }
            | Record::Shrink { id, .. }
            | Record::Property(id, _)
            | Record::Behave { id, .. } => Some(*id),
            Record::ZoneOn { .. }
            | Record::ZoneOff { .. }
            | Record::Moved { .. }
            | Record::Whole { .. }
            | Record::Backed { .. }
            | Record::Rebuilt { .. }
            | Record::NextIncarnation { .. }
            | Record::RebuildOver { .. }
            | Record::NextId { .. } => None,
        }
    }

    /// Whether it promises pages that were set aside before.
    pub fn promises(&self) -> bool {
        matches!(
            self,
            Record::Create { .. } | Record::Resize { .. } | Record::Restore { .. }
        )
    }
}

fn provisioning(flags: u8) -> Provisioning {
    match flags & 1 {
        0 => Provisioning::Thin,
        _ => Provisioning::Thick,
    }
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or_else(|_| panic!("{value} is outside the format"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were_written() {
        let id = VolumeId(5);
        let records = [
            Record::Create {
                id,
                uuid: Uuid::from_u128(4),
                name: "n".repeat(NAME_BYTES_MAX),
                size_bytes: 1 << 40,
                provisioning: Provisioning::Thick,
                read_only: true,
            },
            Record::Ready { id },
            Record::Resize {
                id,
                size_bytes: 1 << 41,
            },
            Record::Map {
                id,
                page: PageIndex(3),
                phys: PhysPage(9),
                count: 2,
            },
            Record::Delete { id },
            Record::Remap {
                id,
                page: PageIndex(3),
                phys: PhysPage(10),
            },
            Record::Overlay {
                id,
                page: PageIndex(3),
                phys: PhysPage(11),
                backing: PhysPage(10),
            },
            Record::Whole { phys: PhysPage(11) },
            Record::Backed {
                phys: PhysPage(11),
                backing: PhysPage(10),
            },
            Record::Unmap {
                id,
                page: PageIndex(3),
                count: 1 << 20,
            },
            Record::Share {
                id,
                from: VolumeId(4),
            },
            Record::Restore {
                id,
                from: VolumeId(4),
            },
            Record::Copy {
                id,
                page: PageIndex(7),
                from: VolumeId(4),
                from_page: PageIndex(9),
                count: 1 << 14,
            },
            Record::Shrink {
                id,
                size_bytes: 1 << 39,
                end: PageIndex(1 << 21),
            },
            Record::Behave {
                id,
                provisioning: Provisioning::Thick,
                detects_zeroes: true,
            },
            Record::ZoneOn {
                zone: 8,
                level: Level::Raid6,
                incarnation: 2,
            },
            Record::ZoneOff { zone: 8 },
            Record::NextIncarnation { incarnation: 3 },
            Record::Rebuilt {
                member: Uuid::from_u128(6),
                zone: 8,
            },
            Record::RebuildOver {
                member: Uuid::from_u128(6),
            },
            Record::NextId { id },
            Record::Moved {
                zone: 70_000,
                place: 49,
                drive: 63,
            },
        ];
        let mut w = Writer::default();
        for record in &records {
            let before = w.bytes.len();
            record.encode(&mut w);
            assert!(w.bytes.len() - before <= RECORD_BYTES_MAX);
        }
        let mut r = Reader::new(&w.bytes);
        let back: Vec<_> = std::iter::from_fn(|| Record::decode(&mut r)).collect();
        assert_eq!(back, records);
        assert!(r.is_empty());
    }

    #[test]
    fn a_cut_or_unknown_record_is_none() {
        let mut w = Writer::default();
        Record::Resize {
            id: VolumeId(1),
            size_bytes: 7,
        }
        .encode(&mut w);
        for len in 0..w.bytes.len() {
            assert_eq!(Record::decode(&mut Reader::new(&w.bytes[..len])), None);
        }
        assert_eq!(
            Record::decode(&mut Reader::new(&[99, 0, 0, 0, 0, 0, 0])),
            None
        );
    }
}
