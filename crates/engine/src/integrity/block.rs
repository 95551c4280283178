//! Integrity blocks: 1,008 sums with the fields that make them trustworthy, and their places.
//!
//! Layout: `docs/internals/format.md`, "Integrity blocks". A block that says it is another one,
//! of another zone, pool or use of the zone, is none: so a write that went astray
//! shows. Each copy has two slots; a version goes to the slot of its parity, so a
//! torn write harms only itself.

use super::Sum;
use crate::codec::{Reader, Writer};
pub use crate::layout::sum_area::{SUMS, area_bytes};
use base::{BLOCK_BYTES, Uuid, crc32c};

const MAGIC: &[u8; 4] = b"ASIN";
const CRC_OFFSET: usize = 4;
const SUMS_OFFSET: usize = BLOCK_BYTES - 4 * SUMS;

/// Which block this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockId {
    pub pool: Uuid,
    pub zone: u32,
    pub incarnation: u32,
    pub index: u32,
}

/// Which state of a block this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Rises by one with each.
    pub number: u64,
    /// Of the log entries up to this stamp, all changes of sums are in.
    pub up_to: u64,
}

/// The bytes of a slot.
pub fn encode(id: BlockId, version: Version, sums: &[Sum; SUMS]) -> Vec<u8> {
    let mut w = Writer::default();
    w.bytes.extend_from_slice(MAGIC);
    w.u32(0);
    w.uuid(id.pool);
    w.u32(id.zone);
    w.u32(id.incarnation);
    w.u32(id.index);
    w.u32(0);
    w.u64(version.number);
    w.u64(version.up_to);
    w.pad_to(SUMS_OFFSET);
    sums.iter().for_each(|sum| w.u32(sum.0));
    let crc = crc32c(&w.bytes);
    w.bytes[CRC_OFFSET..CRC_OFFSET + 4].copy_from_slice(&crc.to_le_bytes());
    w.bytes
}

/// Version and sums of a slot, when it is whole and the block asked for.
pub fn decode(id: BlockId, slot: &[u8]) -> Option<(Version, Box<[Sum; SUMS]>)> {
    let mut r = Reader::new(slot);
    if slot.len() != BLOCK_BYTES || r.take(4)? != MAGIC {
        return None;
    }
    let crc = r.u32()?;
    let (head, tail) = slot.split_at(CRC_OFFSET);
    if base::checksum::crc32c_of([head, &[0; 4], tail.get(4..)?]) != crc {
        return None;
    }
    let found = BlockId {
        pool: r.uuid()?,
        zone: r.u32()?,
        incarnation: r.u32()?,
        index: r.u32()?,
    };
    r.u32()?;
    let version = Version {
        number: r.u64()?,
        up_to: r.u64()?,
    };
    let mut sums = Box::new([Sum::UNWRITTEN; SUMS]);
    for (sum, bytes) in sums.iter_mut().zip(slot[SUMS_OFFSET..].as_chunks::<4>().0) {
        *sum = Sum(u32::from_le_bytes(*bytes));
    }
    (found == id).then_some((version, sums))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: BlockId = BlockId {
        pool: Uuid::from_u128(9),
        zone: 1,
        incarnation: 2,
        index: 3,
    };

    #[test]
    fn a_block_comes_back_and_a_changed_or_other_one_is_none() {
        let mut sums = [Sum::UNWRITTEN; SUMS];
        sums[0] = Sum(77);
        sums[SUMS - 1] = Sum::LOST;
        let version = Version {
            number: 8,
            up_to: 5,
        };
        let bytes = encode(ID, version, &sums);
        assert_eq!(bytes.len(), BLOCK_BYTES);
        let (found, back) = decode(ID, &bytes).unwrap();
        assert_eq!((found, *back), (version, sums));
        assert!(decode(BlockId { index: 4, ..ID }, &bytes).is_none());
        assert!(
            decode(
                BlockId {
                    incarnation: 1,
                    ..ID
                },
                &bytes
            )
            .is_none()
        );
        for sector in 0..8 {
            let mut torn = bytes.clone();
            torn[sector * 512 + 100] ^= 1;
            assert!(decode(ID, &torn).is_none());
        }
    }
}
