//! The sum of a 4 KiB block of data.

use base::{Slice, crc32c};

/// The sum of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum(pub u32);

impl Sum {
    /// Never written, or forgotten: reads as zeroes, whatever the medium holds.
    pub const UNWRITTEN: Sum = Sum(0);
    /// Damaged beyond what its level covers: can't be read until it is written.
    pub const LOST: Sum = Sum(1);

    /// Written, where blocks have no bytes.
    pub const BYTELESS: Sum = Sum(2);

    /// The sum of a block with this content: its CRC-32C, kept clear of the two
    /// values with a meaning of their own; [`Sum::BYTELESS`] of one without bytes.
    pub fn of(block: &Slice) -> Sum {
        let Some(bytes) = block.bytes() else {
            return Sum::BYTELESS;
        };
        Sum::of_crc(crc32c(bytes))
    }

    /// The sum of a block whose content has this CRC-32C.
    pub fn of_crc(crc: u32) -> Sum {
        match crc {
            0..=1 => Sum(crc + 2),
            _ => Sum(crc),
        }
    }

    /// Whether it says what the medium holds.
    pub fn is_written(self) -> bool {
        self.0 > 1
    }
}
