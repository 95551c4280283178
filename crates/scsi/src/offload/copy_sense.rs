//! Sense data of copies that ended early (SPC-4 clauses 4.5.2.4.5 and 6.4.4): the segment
//! that it happened at, the field of it that is wrong, and what source or destination said.

use crate::sense::{FieldPointer, Sense, status};

/// Sense key COPY ABORTED.
pub(super) const COPY_ABORTED: u8 = 0x0a;

/// 00/00 NO ADDITIONAL SENSE INFORMATION.
pub(super) const NO_INFORMATION: (u8, u8) = (0x00, 0x00);
/// 08/04 UNREACHABLE COPY TARGET.
pub(super) const UNREACHABLE: (u8, u8) = (0x08, 0x04);
/// 0D/01 THIRD PARTY DEVICE FAILURE.
pub(super) const DEVICE_FAILURE: (u8, u8) = (0x0d, 0x01);
/// 0D/02 COPY TARGET DEVICE NOT REACHABLE.
pub(super) const NOT_REACHABLE: (u8, u8) = (0x0d, 0x02);
/// 0D/03 INCORRECT COPY TARGET DEVICE TYPE.
pub(super) const WRONG_TYPE: (u8, u8) = (0x0d, 0x03);

/// Bytes before what source or destination said.
const HEAD_BYTES: usize = 18;

/// Which of the two said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Destination,
}

/// Why a copy ended at a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Aborted {
    pub(super) code: (u8, u8),
    /// The segment, from zero.
    pub(super) segment: u16,
    /// The byte of the segment descriptor that is wrong.
    pub(super) byte: Option<u16>,
    /// What one of the two said.
    pub(super) said: Option<(Side, Sense)>,
}

impl Aborted {
    pub(super) fn at(segment: u16, code: (u8, u8)) -> Self {
        Aborted {
            code,
            segment,
            byte: None,
            said: None,
        }
    }

    /// Fixed format. COMMAND-SPECIFIC INFORMATION says where what the source and what the
    /// destination said begins, and the number of the segment.
    pub(super) fn fixed(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEAD_BYTES];
        bytes[0] = 0x70;
        bytes[2] = COPY_ABORTED;
        bytes[10..12].copy_from_slice(&self.segment.to_be_bytes());
        (bytes[12], bytes[13]) = self.code;
        if let Some(byte) = self.byte {
            let [high, low] = byte.to_be_bytes();
            // SKSV, SD: the pointer is relative to the segment descriptor.
            bytes[15..18].copy_from_slice(&[0x80 | 0x20, high, low]);
        }
        if let Some((side, sense)) = self.said {
            let at = match side {
                Side::Source => 8,
                Side::Destination => 9,
            };
            bytes[at] = HEAD_BYTES as u8;
            bytes.push(status::CHECK_CONDITION);
            bytes.extend(sense.fixed());
        }
        bytes[7] = (bytes.len() - 8) as u8;
        bytes
    }
}

/// A pool without room: what it says for itself, with the segment, so that hosts act on
/// it as they do for a write (SBC-3 clause 4.7.3.4).
pub(super) fn pool_full(segment: u16) -> Vec<u8> {
    let mut bytes = Sense::POOL_FULL.fixed();
    bytes[10..12].copy_from_slice(&segment.to_be_bytes());
    bytes
}

/// A wrong field of a parameter list, by another code than INVALID FIELD.
pub(super) fn wrong_parameter(code: (u8, u8), byte: u16) -> Sense {
    Sense {
        code,
        field: Some(FieldPointer {
            in_cdb: false,
            byte,
            bit: None,
        }),
        ..Sense::LIST_LENGTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_segment_the_field_and_what_was_said_byte_by_byte() {
        let plain = Aborted::at(0x0102, NOT_REACHABLE).fixed();
        let expected = [0x70, 0, 10, 0, 0, 0, 0, 10, 0, 0, 1, 2, 0x0d, 2, 0, 0, 0, 0];
        assert_eq!(plain, expected);
        let aborted = Aborted {
            byte: Some(20),
            said: Some((Side::Destination, Sense::WRITE_PROTECTED)),
            ..Aborted::at(3, DEVICE_FAILURE)
        };
        let mut expected = vec![
            0x70, 0, 10, 0, 0, 0, 0, 29, 0, 18, 0, 3, 0x0d, 1, 0, 0xa0, 0, 20, 2,
        ];
        expected.extend(Sense::WRITE_PROTECTED.fixed());
        assert_eq!(aborted.fixed(), expected);
        let said = Some((Side::Source, Sense::TARGET_FAILURE));
        let source = Aborted { said, ..aborted }.fixed();
        assert_eq!(source[8..10], [18, 0]);
    }

    #[test]
    fn a_full_pool_is_data_protect_with_the_segment() {
        let bytes = pool_full(5);
        assert_eq!((bytes[2], bytes[12], bytes[13]), (7, 0x27, 7));
        assert_eq!(bytes[10..12], [0, 5]);
    }

    #[test]
    fn a_wrong_parameter_is_an_illegal_request_that_points_at_it() {
        let bytes = wrong_parameter((0x26, 0x07), 0x0110).fixed();
        assert_eq!((bytes[2], bytes[12], bytes[13]), (5, 0x26, 7));
        assert_eq!(bytes[15..18], [0x80, 1, 0x10]);
    }
}
