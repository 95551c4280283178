//! The parameter list of EXTENDED COPY(LID1) (SPC-4 clauses 6.4.3, 6.4.5 and 6.4.6): CSCD
//! descriptors that name logical units, and segment descriptors from block device to block
//! device.
//!
//! Invariant: a list that is wrong in itself is refused before anything is copied. What
//! takes a look at the logical units (`xcopy`) is found at each segment.

use super::copy_sense::wrong_parameter;
use super::designator::Designator;
use super::fields::number;
use super::{CSCDS_MAX, SEGMENTS_MAX};
use crate::sense::Sense;
use base::SECTOR_BYTES;

/// Header before the descriptors.
pub(super) const HEAD_BYTES: usize = 16;
pub(super) const CSCD_BYTES: usize = 32;
pub(super) const SEGMENT_BYTES: usize = 28;
/// Descriptors of a list, at most.
pub(super) const DESCRIPTORS_BYTES_MAX: usize =
    CSCDS_MAX * CSCD_BYTES + SEGMENTS_MAX * SEGMENT_BYTES;

/// Identification descriptor of a CSCD.
pub(super) const IDENTIFICATION: u8 = 0xe4;
/// Segment from block device to block device.
pub(super) const BLOCK_TO_BLOCK: u8 = 0x02;

/// 26/06 TOO MANY TARGET DESCRIPTORS.
const TOO_MANY_CSCDS: (u8, u8) = (0x26, 0x06);
/// 26/07 UNSUPPORTED TARGET DESCRIPTOR TYPE CODE.
const UNKNOWN_CSCD: (u8, u8) = (0x26, 0x07);
/// 26/08 TOO MANY SEGMENT DESCRIPTORS.
const TOO_MANY_SEGMENTS: (u8, u8) = (0x26, 0x08);
/// 26/09 UNSUPPORTED SEGMENT DESCRIPTOR TYPE CODE.
const UNKNOWN_SEGMENT: (u8, u8) = (0x26, 0x09);
/// 26/0B INLINE DATA LENGTH EXCEEDED.
const INLINE_DATA: (u8, u8) = (0x26, 0x0b);

/// A copy source or destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cscd {
    /// NUL: no device at all.
    pub(super) is_null: bool,
    /// PERIPHERAL DEVICE TYPE.
    pub(super) device_type: u8,
    pub(super) designator: Designator,
}

/// A run of blocks to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// CSCD descriptor IDs.
    pub(super) source: u16,
    pub(super) destination: u16,
    /// Of the source when DC is zero, else of the destination; blocks are of one size here.
    pub(super) blocks: u16,
    pub(super) source_lba: u64,
    pub(super) destination_lba: u64,
}

/// An EXTENDED COPY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List {
    /// LIST IDENTIFIER; `None` when nothing is to be remembered of it.
    pub(super) list_id: Option<u8>,
    pub(super) cscds: Vec<Cscd>,
    pub(super) segments: Vec<Segment>,
}

/// The parameter list.
///
/// # Errors
/// 1A/00 for lengths that are wrong, 26/xx for a field.
pub(super) fn parse(list: &[u8]) -> Result<List, Sense> {
    if list.len() < HEAD_BYTES {
        return Err(Sense::LIST_LENGTH);
    }
    let cscds_bytes = number(list, 2, 2) as usize;
    let segments_bytes = number(list, 8, 4) as usize;
    let inline_bytes = number(list, 12, 4) as usize;
    if cscds_bytes + segments_bytes > DESCRIPTORS_BYTES_MAX {
        return Err(Sense::LIST_LENGTH);
    }
    if list.len() - HEAD_BYTES < cscds_bytes + segments_bytes {
        return Err(Sense::LIST_LENGTH);
    }
    if inline_bytes > 0 {
        return Err(wrong_parameter(INLINE_DATA, 12));
    }
    let list_id = list_id(list)?;
    let (cscds, segments) = list[HEAD_BYTES..HEAD_BYTES + cscds_bytes + segments_bytes]
        .split_at_checked(cscds_bytes)
        .ok_or(Sense::LIST_LENGTH)?;
    if !cscds_bytes.is_multiple_of(CSCD_BYTES) {
        return Err(Sense::invalid_parameter(2));
    }
    if cscds_bytes > CSCDS_MAX * CSCD_BYTES {
        return Err(wrong_parameter(TOO_MANY_CSCDS, 2));
    }
    let cscds = cscds.chunks(CSCD_BYTES).enumerate();
    let cscds = cscds.map(|(nth, bytes)| cscd(bytes, HEAD_BYTES + nth * CSCD_BYTES));
    Ok(List {
        list_id,
        cscds: cscds.collect::<Result<_, _>>()?,
        segments: segment_list(segments, HEAD_BYTES + cscds_bytes)?,
    })
}

/// LIST IDENTIFIER and LIST ID USAGE. PRIORITY and STR ask for nothing that would change
/// what is copied.
fn list_id(list: &[u8]) -> Result<Option<u8>, Sense> {
    let list_id = number(list, 0, 1) as u8;
    match (number(list, 1, 1) as u8 >> 3) & 0x3 {
        // Held data is to be kept, or may be discarded: there is none.
        0b00 | 0b10 => Ok(Some(list_id)),
        0b11 if list_id == 0 => Ok(None),
        0b11 => Err(Sense::invalid_parameter(0)),
        _ => Err(Sense::invalid_parameter(1)),
    }
}

fn cscd(bytes: &[u8], at: usize) -> Result<Cscd, Sense> {
    const DESIGNATOR_BYTES_MAX: usize = 20;
    let wrong = |byte: usize| Sense::invalid_parameter((at + byte) as u16);
    let field = |from, len| number(bytes, from, len);
    if field(0, 1) as u8 != IDENTIFICATION {
        return Err(wrong_parameter(UNKNOWN_CSCD, at as u16));
    }
    // LU ID TYPE means nothing in this descriptor (SPC-4 clause 6.4.5.3).
    let flags = field(1, 1) as u8;
    let association = (field(5, 1) >> 4) & 0x3;
    let len = field(7, 1) as usize;
    let block_bytes = field(29, 3) as usize;
    if association != 0 {
        return Err(wrong(5));
    }
    if len > DESIGNATOR_BYTES_MAX {
        return Err(wrong(7));
    }
    // Zero where the initiator leaves it to the device.
    if block_bytes != 0 && block_bytes != SECTOR_BYTES {
        return Err(wrong(29));
    }
    Ok(Cscd {
        is_null: flags & 0x20 != 0,
        device_type: flags & 0x1f,
        designator: Designator {
            code_set: field(4, 1) as u8 & 0xf,
            kind: field(5, 1) as u8 & 0xf,
            value: bytes.iter().skip(8).take(len).copied().collect(),
        },
    })
}

fn segment_list(mut bytes: &[u8], mut at: usize) -> Result<Vec<Segment>, Sense> {
    let mut segments = Vec::new();
    while let Some(kind) = bytes.first() {
        if segments.len() == SEGMENTS_MAX {
            return Err(wrong_parameter(TOO_MANY_SEGMENTS, 8));
        }
        if *kind != BLOCK_TO_BLOCK {
            return Err(wrong_parameter(UNKNOWN_SEGMENT, at as u16));
        }
        // Its length counts what follows it.
        if bytes.len() >= 4 && number(bytes, 2, 2) as usize != SEGMENT_BYTES - 4 {
            return Err(Sense::invalid_parameter((at + 2) as u16));
        }
        let (segment, rest) = bytes
            .split_at_checked(SEGMENT_BYTES)
            .ok_or(Sense::invalid_parameter(8))?;
        segments.push(Segment {
            source: number(segment, 4, 2) as u16,
            destination: number(segment, 6, 2) as u16,
            blocks: number(segment, 10, 2) as u16,
            source_lba: number(segment, 12, 8),
            destination_lba: number(segment, 20, 8),
        });
        at += SEGMENT_BYTES;
        bytes = rest;
    }
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cscd_of(value: &[u8]) -> Vec<u8> {
        let mut cscd = vec![IDENTIFICATION, 0, 0, 0, 1, 3, 0, value.len() as u8];
        cscd.extend(value);
        cscd.resize(CSCD_BYTES, 0);
        cscd[30] = 2;
        cscd
    }

    fn segment_of(blocks: u16) -> Vec<u8> {
        let mut segment = vec![2, 2, 0, 24, 0, 0, 0, 1, 0, 0];
        segment.extend(blocks.to_be_bytes());
        segment.extend(0x0102_0304_0506_0708u64.to_be_bytes());
        segment.extend(0x1112_1314_1516_1718u64.to_be_bytes());
        segment
    }

    fn list_of(cscds: &[Vec<u8>], segments: &[Vec<u8>]) -> Vec<u8> {
        let (cscds, segments) = (cscds.concat(), segments.concat());
        let mut list = vec![9, 0x23];
        list.extend((cscds.len() as u16).to_be_bytes());
        list.extend([0; 4]);
        list.extend((segments.len() as u32).to_be_bytes());
        list.extend([0; 4]);
        [list, cscds, segments].concat()
    }

    fn usual() -> Vec<u8> {
        list_of(
            &[cscd_of(&[6; 16]), cscd_of(&[7; 16])],
            &[segment_of(0x1234)],
        )
    }

    #[test]
    fn a_list_byte_by_byte() {
        let cscd = |value: u8| Cscd {
            is_null: false,
            device_type: 0,
            designator: Designator {
                code_set: 1,
                kind: 3,
                value: vec![value; 16],
            },
        };
        let segment = Segment {
            source: 0,
            destination: 1,
            blocks: 0x1234,
            source_lba: 0x0102_0304_0506_0708,
            destination_lba: 0x1112_1314_1516_1718,
        };
        let expected = List {
            list_id: Some(9),
            cscds: vec![cscd(6), cscd(7)],
            segments: vec![segment],
        };
        assert_eq!(parse(&usual()), Ok(expected));
        assert_eq!(usual().len(), 16 + 2 * 32 + 28);
    }

    #[test]
    fn a_list_that_is_cut_short_is_refused_whole() {
        let whole = usual();
        for len in 0..whole.len() {
            assert_eq!(parse(&whole[..len]), Err(Sense::LIST_LENGTH), "{len} bytes");
        }
        let longer = [&whole[..], &[0xff; 9]].concat();
        assert_eq!(parse(&longer), parse(&whole), "what follows is no list");
    }

    #[test]
    fn list_identifiers_and_their_usage() {
        let usage = |usage: u8, id: u8| {
            let mut list = usual();
            (list[0], list[1]) = (id, usage << 3);
            parse(&list).map(|list| list.list_id)
        };
        assert_eq!(usage(0b00, 5), Ok(Some(5)));
        assert_eq!(usage(0b10, 0), Ok(Some(0)));
        assert_eq!(usage(0b11, 0), Ok(None));
        assert_eq!(usage(0b11, 5), Err(Sense::invalid_parameter(0)));
        assert_eq!(usage(0b01, 5), Err(Sense::invalid_parameter(1)));
    }

    #[test]
    fn every_wrong_field_is_pointed_at() {
        let with = |at: usize, value: u8| {
            let mut list = usual();
            list[at] = value;
            parse(&list).map(|_| ()).unwrap_err()
        };
        assert_eq!(with(15, 1), wrong_parameter(INLINE_DATA, 12));
        assert_eq!(with(16, 0xe0), wrong_parameter(UNKNOWN_CSCD, 16));
        assert_eq!(with(48, 0xff), wrong_parameter(UNKNOWN_CSCD, 48));
        assert_eq!(with(21, 0x13), Sense::invalid_parameter(21), "a port");
        assert_eq!(with(23, 21), Sense::invalid_parameter(23), "too long");
        assert_eq!(with(46, 8), Sense::invalid_parameter(45), "blocks of 2048");
        assert_eq!(with(80, 3), wrong_parameter(UNKNOWN_SEGMENT, 80));
        assert_eq!(with(83, 23), Sense::invalid_parameter(82));
        let mut list = usual();
        (list[3], list[11]) = (63, 29);
        assert_eq!(
            parse(&list),
            Err(Sense::invalid_parameter(2)),
            "no whole CSCDs"
        );
    }

    #[test]
    fn the_limits_that_the_operating_parameters_promise_are_kept() {
        let cscds = |count| vec![cscd_of(&[6; 16]); count];
        let segments = |count| vec![segment_of(1); count];
        let most = list_of(&cscds(CSCDS_MAX), &segments(SEGMENTS_MAX));
        let parsed = parse(&most).unwrap();
        assert_eq!(parsed.cscds.len(), CSCDS_MAX);
        assert_eq!(parsed.segments.len(), SEGMENTS_MAX);
        let more = list_of(&cscds(CSCDS_MAX + 1), &segments(1));
        assert_eq!(parse(&more), Err(wrong_parameter(TOO_MANY_CSCDS, 2)));
        let more = list_of(&cscds(1), &segments(SEGMENTS_MAX + 1));
        assert_eq!(parse(&more), Err(wrong_parameter(TOO_MANY_SEGMENTS, 8)));
        let more = list_of(&cscds(CSCDS_MAX + 1), &segments(SEGMENTS_MAX + 1));
        assert_eq!(parse(&more), Err(Sense::LIST_LENGTH));
        assert_eq!(parse(&list_of(&[], &[])).unwrap().segments, []);
    }

    #[test]
    fn null_devices_and_other_types_are_kept_for_the_segments_that_use_them() {
        let mut list = usual();
        list[17] = 0x80 | 0x21;
        let parsed = parse(&list).unwrap();
        assert!(parsed.cscds[0].is_null && !parsed.cscds[1].is_null);
        assert_eq!(parsed.cscds[0].device_type, 1);
    }
}
