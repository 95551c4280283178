//! Bytes of superblocks and batch headers. Layout: `docs/internals/format.md`, "Rings".

use super::{BLOCK, Entry, RingSpec};
use crate::codec::{Reader, Writer};
use base::checksum::crc32c_of;
use base::{BLOCK_BYTES, Slice, crc32c};
use smallvec::SmallVec;

/// Two superblocks, a block each.
pub const SUPERBLOCKS_BYTES: u64 = 2 * BLOCK;

const SUPERBLOCK_MAGIC: &[u8; 4] = b"ASRS";
const BATCH_MAGIC: &[u8; 4] = b"ASLG";
const CRC_OFFSET: usize = 4;
const FIXED_BYTES: usize = 80;
const PER_ENTRY_BYTES: usize = 12;

/// Where a ring begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    pub version: u64,
    pub incarnation: u32,
    /// The first sequence number of that incarnation. A batch from there on of an older
    /// one is left over from before the recovery, which did not find it whole: what is
    /// written there since, and torn, may have made it so.
    pub since_sequence: u64,
    pub tail: u64,
    pub tail_sequence: u64,
    pub tail_stamp: u64,
}

fn seal(bytes: &mut [u8]) {
    let crc = crc32c(bytes);
    bytes[CRC_OFFSET..CRC_OFFSET + 4].copy_from_slice(&crc.to_le_bytes());
}

fn is_sealed(bytes: &[u8]) -> bool {
    let (Some(head), Some(stored), Some(tail)) = (
        bytes.get(..CRC_OFFSET),
        bytes.get(CRC_OFFSET..CRC_OFFSET + 4),
        bytes.get(CRC_OFFSET + 4..),
    ) else {
        return false;
    };
    crc32c_of([head, &[0; 4], tail]).to_le_bytes() == *stored
}

impl Superblock {
    /// The oldest incarnation that a batch may be of.
    pub fn oldest_incarnation(&self, sequence: u64) -> u32 {
        match sequence >= self.since_sequence {
            true => self.incarnation,
            false => 0,
        }
    }

    pub fn encode(&self, spec: &RingSpec) -> Vec<u8> {
        let mut w = Writer::default();
        w.bytes.extend_from_slice(SUPERBLOCK_MAGIC);
        w.u32(0);
        w.uuid(spec.pool);
        w.u64(spec.salt);
        w.u64(self.version);
        w.u32(self.incarnation);
        w.u32(0);
        w.u64(self.tail);
        w.u64(self.tail_sequence);
        w.u64(self.tail_stamp);
        w.u64(self.since_sequence);
        w.pad_to(BLOCK_BYTES);
        seal(&mut w.bytes);
        w.bytes
    }

    pub fn decode(block: &[u8], spec: &RingSpec) -> Option<Superblock> {
        let mut r = Reader::new(block);
        if block.len() != BLOCK_BYTES || r.take(4)? != SUPERBLOCK_MAGIC || !is_sealed(block) {
            return None;
        }
        r.u32()?;
        if r.uuid()? != spec.pool || r.u64()? != spec.salt {
            return None;
        }
        let (version, incarnation) = (r.u64()?, r.u32()?);
        r.u32()?;
        Some(Superblock {
            version,
            incarnation,
            tail: r.u64()?,
            tail_sequence: r.u64()?,
            tail_stamp: r.u64()?,
            since_sequence: r.u64()?,
        })
    }
}

/// What tells one batch from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchId {
    pub incarnation: u32,
    pub sequence: u64,
    pub first_stamp: u64,
    /// Place of its header in the ring, bytes.
    pub at: u64,
}

/// Bytes of the header of a batch of `entries`, whole blocks.
pub fn header_bytes<'a>(entries: impl Iterator<Item = &'a Entry>) -> usize {
    let bytes: usize = entries
        .map(|entry| PER_ENTRY_BYTES + entry.head.len())
        .sum();
    (FIXED_BYTES + bytes).next_multiple_of(BLOCK_BYTES)
}

/// The checksum of an entry's data; nothing where data has no bytes.
pub fn data_crc(entry: &Entry) -> Option<u32> {
    let runs: Option<SmallVec<[&[u8]; 4]>> = entry.data.iter().map(Slice::bytes).collect();
    runs.map(crc32c_of)
}

/// The header of a batch, whose entries' data has these checksums ([`data_crc`]).
pub fn encode_header(
    spec: &RingSpec,
    id: BatchId,
    entries: &[Entry],
    crcs: &[Option<u32>],
) -> Vec<u8> {
    assert_eq!(entries.len(), crcs.len(), "each entry has a checksum");
    let header = header_bytes(entries.iter());
    let data: usize = entries.iter().map(Entry::data_bytes).sum();
    let mut w = Writer::with_room(header);
    w.bytes.extend_from_slice(BATCH_MAGIC);
    w.u32(0);
    w.uuid(spec.pool);
    w.u64(spec.salt);
    w.u32(id.incarnation);
    w.u32(entries.len() as u32);
    w.u64(id.sequence);
    w.u64(id.first_stamp);
    w.u64(id.at);
    w.u32(header as u32);
    w.u32((data / BLOCK_BYTES) as u32);
    w.pad_to(FIXED_BYTES);
    for (entry, crc) in entries.iter().zip(crcs) {
        w.u32(entry.head.len() as u32);
        w.u32((entry.data_bytes() / BLOCK_BYTES) as u32);
        w.u32(crc.unwrap_or(0));
    }
    entries
        .iter()
        .for_each(|entry| w.bytes.extend_from_slice(&entry.head));
    w.pad_to(header);
    seal(&mut w.bytes);
    w.bytes
}

/// How long the batch is whose first block this is: header, and all. Nothing is
/// checked but what is needed to read it.
pub fn lengths(first: &[u8]) -> Option<(usize, usize)> {
    let mut r = Reader::new(first);
    if r.take(4)? != BATCH_MAGIC {
        return None;
    }
    r.take(68 - 8)?;
    let (header, blocks) = (r.u32()? as usize, r.u32()? as usize);
    let whole = header.checked_add(blocks.checked_mul(BLOCK_BYTES)?)?;
    (header >= BLOCK_BYTES && header.is_multiple_of(BLOCK_BYTES)).then_some((header, whole))
}

/// A batch that is whole: what it is, and head and data range of each entry.
pub struct Whole {
    pub id: BatchId,
    pub entries: Vec<(Vec<u8>, std::ops::Range<usize>)>,
}

/// The batch in `bytes`, when it is whole and of this ring.
pub fn decode(spec: &RingSpec, bytes: &[u8]) -> Option<Whole> {
    let (header, whole) = lengths(bytes)?;
    if bytes.len() != whole || !is_sealed(&bytes[..header]) {
        return None;
    }
    let mut r = Reader::new(&bytes[8..header]);
    if r.uuid()? != spec.pool || r.u64()? != spec.salt {
        return None;
    }
    let (incarnation, count) = (r.u32()?, r.u32()?);
    let id = BatchId {
        incarnation,
        sequence: r.u64()?,
        first_stamp: r.u64()?,
        at: r.u64()?,
    };
    let mut table = Reader::new(&bytes[FIXED_BYTES..header]);
    let lens = (0..count)
        .map(|_| {
            Some((
                table.u32()? as usize,
                table.u32()? as usize * BLOCK_BYTES,
                table.u32()?,
            ))
        })
        .collect::<Option<Vec<_>>>()?;
    let mut entries = Vec::with_capacity(lens.len());
    let mut at = header;
    for (head, data, crc) in lens {
        let head = table.take(head)?.to_vec();
        let range = at..at.checked_add(data)?;
        if crc32c(bytes.get(range.clone())?) != crc {
            return None;
        }
        at = range.end;
        entries.push((head, range));
    }
    Some(Whole { id, entries })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use base::{BufPool, DriveOffset, Uuid};

    fn spec() -> RingSpec {
        RingSpec {
            label: "log",
            pool: Uuid::from_u128(5),
            salt: 6,
            at: DriveOffset(0),
            len_bytes: 1 << 20,
            layout: Layout::Apart,
        }
    }

    #[test]
    fn a_superblock_comes_back_and_a_changed_one_is_none() {
        let superblock = Superblock {
            version: 3,
            incarnation: 2,
            since_sequence: 4,
            tail: 8192,
            tail_sequence: 9,
            tail_stamp: 10,
        };
        let bytes = superblock.encode(&spec());
        assert_eq!(Superblock::decode(&bytes, &spec()), Some(superblock));
        for at in 0..64 {
            let mut torn = bytes.clone();
            torn[at] ^= 1;
            assert_eq!(Superblock::decode(&torn, &spec()), None);
        }
        let other = RingSpec { salt: 7, ..spec() };
        assert_eq!(Superblock::decode(&bytes, &other), None);
    }

    #[test]
    fn a_batch_comes_back_and_a_torn_or_foreign_one_is_none() {
        let pool = BufPool::new();
        let entries = [
            Entry {
                head: vec![1, 2, 3],
                data: [pool.copy_of(&[7; 8192]).freeze()].into_iter().collect(),
            },
            Entry {
                head: vec![4; 5000],
                data: Default::default(),
            },
        ];
        let id = BatchId {
            incarnation: 1,
            sequence: 2,
            first_stamp: 3,
            at: 4096,
        };
        let mut bytes = encode_header(&spec(), id, &entries, &entries.each_ref().map(data_crc));
        assert_eq!(bytes.len(), header_bytes(entries.iter()));
        bytes.extend_from_slice(&[7; 8192]);
        assert_eq!(lengths(&bytes), Some((bytes.len() - 8192, bytes.len())));
        let whole = decode(&spec(), &bytes).unwrap();
        assert_eq!(whole.id, id);
        assert_eq!(whole.entries[0].0, [1, 2, 3]);
        assert_eq!(&bytes[whole.entries[0].1.clone()], [7; 8192]);
        assert_eq!(
            (whole.entries[1].0.len(), whole.entries[1].1.len()),
            (5000, 0)
        );
        for sector in 0..bytes.len() / 512 {
            let mut torn = bytes.clone();
            torn[sector * 512..(sector + 1) * 512].fill(0xaa);
            assert!(decode(&spec(), &torn).is_none(), "sector {sector}");
        }
        assert!(decode(&RingSpec { salt: 7, ..spec() }, &bytes).is_none());
        assert!(decode(&spec(), &bytes[..bytes.len() - 512]).is_none());
    }
}
