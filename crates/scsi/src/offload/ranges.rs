//! The lists of ranges of POPULATE TOKEN and WRITE USING TOKEN (SBC-3 clauses 5.7.2, 5.53.2).
//!
//! Invariant: nothing is done unless the whole list is right.

use super::copy_sense::wrong_parameter;
use super::fields::number;
use super::token::TOKEN_BYTES;
use super::{INACTIVITY_S, INACTIVITY_S_MAX, RANGES_MAX, TOKEN_BLOCKS_MAX};
use crate::cdb::Extent;
use crate::sense::Sense;
use base::Lba;

const DESCRIPTOR_BYTES: usize = 16;
/// 26/08 TOO MANY SEGMENT DESCRIPTORS.
const TOO_MANY: (u8, u8) = (0x26, 0x08);

/// ROD type of a point-in-time copy whose data may change in no way: the default.
pub(super) const POINT_IN_TIME: u32 = 0x0080_0000;

/// What a POPULATE TOKEN is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Populate {
    /// How long nobody may use the token.
    pub(super) inactivity_s: u32,
    pub(super) ranges: Vec<Extent>,
}

/// What a WRITE USING TOKEN is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WriteUsing {
    /// DEL_TKN: the token is deleted when all went well.
    pub(super) deletes: bool,
    /// OFFSET INTO ROD, in blocks.
    pub(super) offset_blocks: u64,
    pub(super) token: Vec<u8>,
    pub(super) ranges: Vec<Extent>,
}

/// The parameter list of POPULATE TOKEN for a unit of so many blocks. IMMED changes nothing:
/// what could go on in the background is done when the status is given.
///
/// # Errors
/// 1A/00, 21/00, 26/00 and 26/08.
pub(super) fn populate(list: &[u8], unit_blocks: u64) -> Result<Populate, Sense> {
    const RTV: u8 = 0x02;
    const HEAD_BYTES: usize = 16;
    let ranges = descriptors(list, HEAD_BYTES)?;
    let flags = number(list, 2, 1) as u8;
    let inactivity_s = number(list, 4, 4) as u32;
    if flags & RTV != 0 && number(list, 8, 4) as u32 != POINT_IN_TIME {
        return Err(Sense::invalid_parameter(8));
    }
    if inactivity_s > INACTIVITY_S_MAX {
        return Err(Sense::invalid_parameter(4));
    }
    check(&ranges, HEAD_BYTES, unit_blocks)?;
    Ok(Populate {
        inactivity_s: match inactivity_s {
            0 => INACTIVITY_S,
            said => said,
        },
        ranges,
    })
}

/// The parameter list of WRITE USING TOKEN for a unit of so many blocks; IMMED as above.
///
/// # Errors
/// 1A/00, 21/00, 26/00 and 26/08.
pub(super) fn write_using(list: &[u8], unit_blocks: u64) -> Result<WriteUsing, Sense> {
    const DEL_TKN: u8 = 0x02;
    const TOKEN: usize = 16;
    const HEAD_BYTES: usize = 24 + TOKEN_BYTES;
    let ranges = descriptors(list, HEAD_BYTES)?;
    check(&ranges, HEAD_BYTES, unit_blocks)?;
    let token = list.get(TOKEN..TOKEN + TOKEN_BYTES);
    Ok(WriteUsing {
        deletes: number(list, 2, 1) as u8 & DEL_TKN != 0,
        offset_blocks: number(list, 8, 8),
        token: token.ok_or(Sense::LIST_LENGTH)?.to_vec(),
        ranges,
    })
}

/// The ranges behind a head of so many bytes, whose last two say how many bytes they are.
/// A last one that is not whole is left out.
fn descriptors(list: &[u8], head_bytes: usize) -> Result<Vec<Extent>, Sense> {
    if list.len() < head_bytes {
        return Err(Sense::LIST_LENGTH);
    }
    let bytes = number(list, head_bytes - 2, 2) as usize;
    // The data length counts what follows it.
    let data_bytes = number(list, 0, 2) as usize;
    if bytes < DESCRIPTOR_BYTES {
        return Err(Sense::invalid_parameter(head_bytes as u16 - 2));
    }
    if data_bytes + 2 < head_bytes + bytes {
        return Err(Sense::invalid_parameter(0));
    }
    let descriptors = list.get(head_bytes..head_bytes + bytes);
    let descriptors = descriptors.ok_or(Sense::LIST_LENGTH)?;
    if bytes / DESCRIPTOR_BYTES > RANGES_MAX {
        return Err(wrong_parameter(TOO_MANY, head_bytes as u16 - 2));
    }
    let whole = descriptors.as_chunks::<DESCRIPTOR_BYTES>().0.iter();
    let extent = |descriptor: &[u8; DESCRIPTOR_BYTES]| Extent {
        lba: Lba(number(descriptor, 0, 8)),
        blocks: number(descriptor, 8, 4) as u32,
    };
    Ok(whole.map(extent).collect())
}

/// That the ranges are in the unit, no longer than allowed, and without a block that is in
/// two of them.
fn check(ranges: &[Extent], head_bytes: usize, unit_blocks: u64) -> Result<(), Sense> {
    let at = |place: usize, byte: usize| (head_bytes + place * DESCRIPTOR_BYTES + byte) as u16;
    let mut left = TOKEN_BLOCKS_MAX;
    let mut seen: Vec<(u64, u64)> = Vec::new();
    for (place, range) in ranges.iter().enumerate() {
        let blocks = u64::from(range.blocks);
        let end = range.lba.0.checked_add(blocks);
        let end = end.filter(|end| *end <= unit_blocks);
        let end = end.ok_or(Sense::LBA_OUT_OF_RANGE)?;
        let fits = left.checked_sub(blocks);
        left = fits.ok_or(Sense::invalid_parameter(at(place, 8)))?;
        if blocks == 0 {
            continue;
        }
        if seen
            .iter()
            .any(|(from, to)| range.lba.0 < *to && *from < end)
        {
            return Err(Sense::invalid_parameter(at(place, 0)));
        }
        seen.push((range.lba.0, end));
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn descriptor_list(ranges: &[(u64, u32)]) -> Vec<u8> {
        let mut list = Vec::new();
        for (lba, blocks) in ranges {
            list.extend(lba.to_be_bytes());
            list.extend(blocks.to_be_bytes());
            list.extend([0; 4]);
        }
        list
    }

    fn to_populate(ranges: &[(u64, u32)]) -> Vec<u8> {
        let descriptors = descriptor_list(ranges);
        let mut list = vec![0; 16];
        list[0..2].copy_from_slice(&(descriptors.len() as u16 + 14).to_be_bytes());
        list[14..16].copy_from_slice(&(descriptors.len() as u16).to_be_bytes());
        list.extend(descriptors);
        list
    }

    fn extents(ranges: &[(u64, u32)]) -> Vec<Extent> {
        let extent = |(lba, blocks): &(u64, u32)| Extent {
            lba: Lba(*lba),
            blocks: *blocks,
        };
        ranges.iter().map(extent).collect()
    }

    const BLOCKS: u64 = 1 << 40;

    #[test]
    fn a_populate_list_byte_by_byte() {
        let bytes = [
            0, 46, 3, 0, 0, 0, 0, 60, 0, 0x80, 0, 0, 0, 0, 0, 32, // header
            0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 6, 7, 0, 0, 0, 0, // first
            0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, // nothing
        ];
        let expected = Populate {
            inactivity_s: 60,
            ranges: extents(&[(0x01_0203_0405, 0x0607), (9, 0)]),
        };
        assert_eq!(populate(&bytes, BLOCKS), Ok(expected));
        let list = to_populate(&[(1, 2)]);
        let said = populate(&list, BLOCKS).unwrap();
        assert_eq!(said.inactivity_s, INACTIVITY_S, "none was asked for");
    }

    #[test]
    fn a_write_list_byte_by_byte() {
        let mut bytes = vec![2, 0x26, 3, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        bytes.extend((0..512).map(|byte| byte as u8));
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 16]);
        bytes.extend(descriptor_list(&[(5, 6)]));
        let expected = WriteUsing {
            deletes: true,
            offset_blocks: 0x0102_0304_0506_0708,
            token: (0..512).map(|byte| byte as u8).collect(),
            ranges: extents(&[(5, 6)]),
        };
        assert_eq!(write_using(&bytes, BLOCKS), Ok(expected));
        for len in 0..bytes.len() {
            let cut = write_using(&bytes[..len], BLOCKS);
            assert_eq!(cut, Err(Sense::LIST_LENGTH), "{len} bytes");
        }
    }

    #[test]
    fn a_list_that_is_cut_short_or_contradicts_itself_is_refused() {
        let whole = to_populate(&[(1, 2), (5, 4)]);
        for len in 0..whole.len() {
            let cut = populate(&whole[..len], BLOCKS);
            assert_eq!(cut, Err(Sense::LIST_LENGTH), "{len} bytes");
        }
        let mut short = whole.clone();
        short[1] -= 1;
        let wrong = Err(Sense::invalid_parameter(0));
        assert_eq!(populate(&short, BLOCKS), wrong);
        let wrong = Err(Sense::invalid_parameter(14));
        assert_eq!(populate(&to_populate(&[]), BLOCKS), wrong, "no range");
        let mut partial = whole.clone();
        partial[15] = 31;
        let said = populate(&partial, BLOCKS).unwrap();
        assert_eq!(said.ranges.len(), 1, "the second is not whole");
    }

    #[test]
    fn limits_types_and_times() {
        let most: Vec<_> = (0..RANGES_MAX as u64).map(|at| (at, 1)).collect();
        assert!(populate(&to_populate(&most), BLOCKS).is_ok());
        let more: Vec<_> = (0..=RANGES_MAX as u64).map(|at| (at, 1)).collect();
        let wrong = Err(wrong_parameter(TOO_MANY, 14));
        assert_eq!(populate(&to_populate(&more), BLOCKS), wrong);

        let most = TOKEN_BLOCKS_MAX as u32;
        assert!(populate(&to_populate(&[(0, most)]), BLOCKS).is_ok());
        let long = to_populate(&[(0, most), (1 << 30, 1)]);
        let wrong = Err(Sense::invalid_parameter(16 + 16 + 8));
        assert_eq!(populate(&long, BLOCKS), wrong);

        let mut list = to_populate(&[(1, 2)]);
        list[4..8].copy_from_slice(&(INACTIVITY_S_MAX + 1).to_be_bytes());
        let wrong = Err(Sense::invalid_parameter(4));
        assert_eq!(populate(&list, BLOCKS), wrong);
        let mut list = to_populate(&[(1, 2)]);
        list[2] = 2;
        list[9] = 1;
        let wrong = Err(Sense::invalid_parameter(8));
        assert_eq!(populate(&list, BLOCKS), wrong, "access upon reference");
        list[2] = 0;
        assert!(populate(&list, BLOCKS).is_ok(), "not valid, not looked at");
    }

    #[test]
    fn ranges_lie_in_the_unit_and_apart() {
        let of = |ranges: &[(u64, u32)]| populate(&to_populate(ranges), 100).map(|_| ());
        assert_eq!(of(&[(0, 100)]), Ok(()));
        assert_eq!(of(&[(100, 0)]), Ok(()));
        assert_eq!(of(&[(99, 2)]), Err(Sense::LBA_OUT_OF_RANGE));
        assert_eq!(of(&[(u64::MAX, 2)]), Err(Sense::LBA_OUT_OF_RANGE));
        assert_eq!(of(&[(10, 10), (0, 10), (20, 1)]), Ok(()));
        assert_eq!(of(&[(10, 10), (12, 0)]), Ok(()), "nothing is in it");
        let wrong = Err(Sense::invalid_parameter(32));
        assert_eq!(of(&[(10, 10), (0, 11)]), wrong);
        assert_eq!(of(&[(10, 10), (19, 1)]), wrong);
    }
}
