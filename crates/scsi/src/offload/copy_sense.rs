//! Sense data of copies that ended early (SPC-4 clauses 4.5.2.4.5, 4.5.2.7 and 5.17.7.4): the
//! segment that was being copied, the part of it that was not written, the field that is wrong, and
//! the sense data of source or destination.

use super::xcopy::THIS_UNIT;
use super::xcopy_list::{CSCD_BYTES, HEAD_BYTES};
use crate::sense::{FieldPointer, Format, Key, Sense, push_key_specific, status, with_length};
use base::SECTOR_BYTES;

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

/// Bytes before what source or destination said, in fixed format.
const FIXED_BYTES: usize = 18;

/// Which of the two said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Source = 1,
    Destination = 2,
}

/// What the sense data points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    /// The byte of the segment descriptor that is wrong.
    Segment(u16),
    /// The CSCD descriptor of what can't be reached, or has failed.
    Cscd(u16),
}

impl Pointer {
    /// To the descriptor with this ID; the unit that the command was sent to has none.
    pub(super) fn to_cscd(id: u16) -> Option<Self> {
        (id != THIS_UNIT).then_some(Pointer::Cscd(id))
    }

    /// SKSV, SD and FIELD POINTER.
    fn encoded(self) -> [u8; 3] {
        let (sd, byte) = match self {
            Pointer::Segment(byte) => (0x20, byte),
            Pointer::Cscd(id) => (0x00, HEAD_BYTES as u16 + id * CSCD_BYTES as u16),
        };
        let [high, low] = byte.to_be_bytes();
        [0x80 | sd, high, low]
    }
}

/// Why a copy ended at a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aborted {
    /// INFORMATION has the blocks of the segment that were not written, if some were.
    pub(super) sense: Sense,
    /// The segment, from zero.
    pub(super) segment: u16,
    pub(super) pointer: Option<Pointer>,
    /// What one of the two said.
    pub(super) said: Option<(Side, Sense)>,
}

impl Aborted {
    pub(super) fn at(segment: u16, code: (u8, u8)) -> Self {
        Aborted {
            sense: Sense {
                key: Key::CopyAborted,
                code,
                ..Sense::NONE
            },
            segment,
            pointer: None,
            said: None,
        }
    }

    /// A pool without room: what it says for itself, with the segment, so that hosts act on
    /// it as they do for a write (SBC-3 clause 4.7.3.4).
    pub(super) fn pool_full(segment: u16) -> Self {
        Aborted {
            sense: Sense::POOL_FULL,
            ..Aborted::at(segment, NO_INFORMATION)
        }
    }

    /// The same when so many bytes of the segment were written: how many blocks were not is
    /// told when some were.
    pub(super) fn with_written(mut self, written_bytes: u64, of_bytes: u64) -> Self {
        if self.sense.key == Key::CopyAborted && written_bytes > 0 {
            let left = of_bytes.saturating_sub(written_bytes);
            self.sense.information = Some(left.div_ceil(SECTOR_BYTES as u64));
        }
        self
    }

    /// Its bytes. What source or destination said comes in the same format: nobody else
    /// sees it.
    pub(crate) fn encoded(&self, format: Format) -> Vec<u8> {
        match format {
            Format::Fixed => self.fixed(),
            Format::Descriptors => self.descriptors(),
        }
    }

    /// COMMAND-SPECIFIC INFORMATION says where what the source and what the destination said
    /// begins, and the number of the segment.
    fn fixed(&self) -> Vec<u8> {
        let mut bytes = self.sense.fixed();
        bytes[10..12].copy_from_slice(&self.segment.to_be_bytes());
        if let Some(pointer) = self.pointer {
            bytes[15..18].copy_from_slice(&pointer.encoded());
        }
        if let Some((side, sense)) = self.said {
            let at = match side {
                Side::Source => 8,
                Side::Destination => 9,
            };
            bytes[at] = FIXED_BYTES as u8;
            bytes.push(status::CHECK_CONDITION);
            bytes.extend(sense.fixed());
        }
        with_length(bytes)
    }

    /// The segment stands in a command-specific information descriptor, what source or
    /// destination said in a forwarded sense data descriptor.
    fn descriptors(&self) -> Vec<u8> {
        let mut bytes = self.sense.descriptor_head();
        let [high, low] = self.segment.to_be_bytes();
        bytes.extend([0x01, 0x0a, 0, 0, 0, 0, high, low, 0, 0, 0, 0]);
        if let Some(pointer) = self.pointer {
            push_key_specific(&mut bytes, pointer.encoded());
        }
        if let Some((side, sense)) = self.said {
            let said = sense.descriptor();
            bytes.extend([0x0c, said.len() as u8 + 2, side as u8]);
            bytes.push(status::CHECK_CONDITION);
            bytes.extend(said);
        }
        with_length(bytes)
    }
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

    fn failed_at_destination() -> Aborted {
        Aborted {
            pointer: Some(Pointer::Segment(20)),
            said: Some((Side::Destination, Sense::WRITE_PROTECTED)),
            ..Aborted::at(3, DEVICE_FAILURE)
        }
    }

    #[test]
    fn fixed_format_byte_by_byte() {
        let plain = Aborted::at(0x0102, NOT_REACHABLE).fixed();
        let expected = [0x70, 0, 10, 0, 0, 0, 0, 10, 0, 0, 1, 2, 0x0d, 2, 0, 0, 0, 0];
        assert_eq!(plain, expected);
        let aborted = failed_at_destination();
        let mut expected = vec![
            0x70, 0, 10, 0, 0, 0, 0, 29, 0, 18, 0, 3, 0x0d, 1, 0, 0xa0, 0, 20, 2,
        ];
        expected.extend(Sense::WRITE_PROTECTED.fixed());
        assert_eq!(aborted.fixed(), expected);
        let said = Some((Side::Source, Sense::TARGET_FAILURE));
        let source = Aborted { said, ..aborted }.fixed();
        assert_eq!(source[8..10], [18, 0]);
        let part = Aborted::at(0, NO_INFORMATION).with_written(512, 0x0103 * 512);
        assert_eq!(part.fixed()[..8], [0xf0, 0, 10, 0, 0, 1, 2, 10]);
        let nothing = Aborted::at(0, NO_INFORMATION).with_written(0, 7);
        assert_eq!(nothing.fixed()[..8], [0x70, 0, 10, 0, 0, 0, 0, 10]);
    }

    #[test]
    fn descriptor_format_byte_by_byte() {
        let plain = Aborted::at(0x0102, NOT_REACHABLE).descriptors();
        let segment = |n: u16| [1, 10, 0, 0, 0, 0, (n >> 8) as u8, n as u8, 0, 0, 0, 0];
        let expected = [&[0x72, 10, 0x0d, 2, 0, 0, 0, 12][..], &segment(0x0102)];
        assert_eq!(plain, expected.concat());
        let aborted = failed_at_destination().with_written(3 * 512, 8 * 512);
        let expected = [
            &[0x72, 10, 0x0d, 1, 0, 0, 0, 44][..],
            &[0, 10, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 5],
            &segment(3),
            &[2, 6, 0, 0, 0xa0, 0, 20, 0],
            // Forwarded: not cut short, of the destination, CHECK CONDITION.
            &[0x0c, 10, 2, 2, 0x72, 7, 0x27, 0, 0, 0, 0, 0],
        ];
        assert_eq!(aborted.descriptors(), expected.concat());
    }

    #[test]
    fn a_cscd_is_pointed_at_in_the_parameter_list() {
        let aborted = Aborted {
            pointer: Some(Pointer::Cscd(3)),
            ..Aborted::at(0, NOT_REACHABLE)
        };
        assert_eq!(aborted.fixed()[15..18], [0x80, 0, 16 + 3 * 32]);
    }

    #[test]
    fn a_full_pool_is_data_protect_with_the_segment() {
        let bytes = Aborted::pool_full(5).fixed();
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
