//! READ CAPACITY (SBC-3 clauses 5.15 and 5.16).

use base::SECTOR_BYTES;

/// Parameter data of READ CAPACITY(10), 8 bytes. A unit too large for it says so
/// by the largest address.
pub(crate) fn ten(blocks: u64) -> Vec<u8> {
    let last = u32::try_from(blocks.saturating_sub(1)).unwrap_or(u32::MAX);
    let mut data = last.to_be_bytes().to_vec();
    data.extend((SECTOR_BYTES as u32).to_be_bytes());
    data
}

/// Parameter data of READ CAPACITY(16), 32 bytes: the logical blocks to a
/// physical one, aligned at zero. LBPME and LBPRZ are set for thin units: blocks
/// can be unmapped, and then read as zeroes.
pub(crate) fn sixteen(blocks: u64, is_thin: bool, blocks_per_physical: u32) -> Vec<u8> {
    let mut data = blocks.saturating_sub(1).to_be_bytes().to_vec();
    data.extend((SECTOR_BYTES as u32).to_be_bytes());
    data.resize(32, 0);
    data[13] = blocks_per_physical.ilog2() as u8;
    data[14] = if is_thin { 0xc0 } else { 0 };
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_byte_by_byte() {
        assert_eq!(ten(0x20_0000), [0x00, 0x1f, 0xff, 0xff, 0, 0, 2, 0]);
        assert_eq!(ten(1 << 32), [0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0]);
        assert_eq!(ten((1 << 32) - 1), [0xff, 0xff, 0xff, 0xfe, 0, 0, 2, 0]);
        assert_eq!(ten(1 << 40), [0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0]);
    }

    #[test]
    fn sixteen_byte_by_byte() {
        let mut expected = vec![0, 0, 1, 0, 0, 0, 0, 4, 0, 0, 2, 0, 0, 3];
        expected.resize(32, 0);
        assert_eq!(sixteen((1 << 40) + 5, false, 8), expected);
        expected[14] = 0xc0;
        assert_eq!(sixteen((1 << 40) + 5, true, 8), expected);
    }
}
