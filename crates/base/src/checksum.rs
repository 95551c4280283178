//! CRC-32C (Castagnoli, RFC 3720 appendix B.4): labels, journal, iSCSI digests.

use crc_fast::CrcAlgorithm;

/// CRC-32C of `bytes`, of which there may be none.
pub fn crc32c(bytes: &[u8]) -> u32 {
    narrow(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes))
}

/// CRC-32C over several runs of bytes, as if they stood one behind the other.
pub fn crc32c_of<'a>(runs: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    let mut digest = crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi);
    for run in runs {
        digest.update(run);
    }
    narrow(digest.finalize())
}

/// CRC-32C of bytes that come in pieces.
#[derive(Clone, Debug)]
pub struct Crc32c(crc_fast::Digest);

impl Default for Crc32c {
    fn default() -> Self {
        Crc32c(crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi))
    }
}

impl Crc32c {
    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all that was taken.
    pub fn value(&self) -> u32 {
        narrow(self.0.finalize())
    }
}

fn narrow(crc: u64) -> u32 {
    u32::try_from(crc).unwrap_or_else(|_| unreachable!("a 32-bit CRC fits 32 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 3720 appendix B.4 (bytes listed there in wire order).
    #[test]
    fn agrees_with_the_vectors_of_the_rfc() {
        let ascending: Vec<u8> = (0..32).collect();
        let descending: Vec<u8> = (0..32).rev().collect();
        assert_eq!(crc32c(&[0u8; 32]).to_le_bytes(), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(
            crc32c(&[0xffu8; 32]).to_le_bytes(),
            [0x43, 0xab, 0xa8, 0x62]
        );
        assert_eq!(crc32c(&ascending).to_le_bytes(), [0x4e, 0x79, 0xdd, 0x46]);
        assert_eq!(crc32c(&descending).to_le_bytes(), [0x5c, 0xdb, 0x3f, 0x11]);
    }

    #[test]
    fn runs_add_up_to_the_whole() {
        let whole: Vec<u8> = (0..=255).cycle().take(5000).collect();
        let (a, b) = whole.split_at(1234);
        assert_eq!(crc32c_of([a, b]), crc32c(&whole));
        let mut pieces = Crc32c::default();
        whole.chunks(777).for_each(|piece| pieces.update(piece));
        assert_eq!(pieces.value(), crc32c(&whole));
    }
}
