//! Computes the SHA-256 of a disk's content, over restarts of the server.
//!
//! Unlike a usual hasher it can be kept on record and gone on with after a restart. That
//! is easy here, since content comes in whole sectors only: nothing is ever left over
//! between two calls.

use base::SECTOR_BYTES;
use serde::{Deserialize, Serialize};
use sha2::block_api::compress256;

/// What SHA-256 takes in at once (FIPS 180-4 clause 5.2.1).
const BLOCK: usize = 64;

/// FIPS 180-4 clause 5.3.3.
const INITIAL: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

static ZEROES: [[u8; BLOCK]; 1024] = [[0; BLOCK]; 1024];

/// The digest of the first `len_bytes` bytes of a content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    state: [u32; 8],
    len_bytes: u64,
}

impl Digest {
    /// The digest of a content without a byte.
    pub fn empty() -> Self {
        Digest {
            state: INITIAL,
            len_bytes: 0,
        }
    }

    /// How much it is of.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Takes in what follows.
    ///
    /// # Panics
    /// When that is not whole sectors.
    pub fn add(&mut self, bytes: &[u8]) {
        assert!(bytes.len().is_multiple_of(SECTOR_BYTES), "whole sectors");
        let (blocks, _) = bytes.as_chunks::<BLOCK>();
        compress256(&mut self.state, blocks);
        self.len_bytes += bytes.len() as u64;
    }

    /// Takes in `len` zeroes.
    ///
    /// # Panics
    /// When that is not whole sectors.
    pub fn add_zeroes(&mut self, len: u64) {
        assert!(len.is_multiple_of(SECTOR_BYTES as u64), "whole sectors");
        let mut left = len / BLOCK as u64;
        while left > 0 {
            let now = left.min(ZEROES.len() as u64);
            compress256(&mut self.state, &ZEROES[..now as usize]);
            left -= now;
        }
        self.len_bytes += len;
    }

    /// The sum as people write it.
    pub fn hex(&self) -> String {
        // Clause 5.1.1: a bit, zeroes, and the length in bits, which is one block here.
        let mut last = [0; BLOCK];
        last[0] = 0x80;
        last[BLOCK - 8..].copy_from_slice(&(self.len_bytes * 8).to_be_bytes());
        let mut state = self.state;
        compress256(&mut state, &[last]);
        state.iter().map(|word| format!("{word:08x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sums() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::empty().hex(), empty);
        // As `head -c 1048576 /dev/zero | sha256sum` says.
        let zeroes = "30e14955ebf1352266dc2ff8067e68104607e750abb9d3b36582b8af909fcb58";
        let mut digest = Digest::empty();
        digest.add_zeroes(1 << 20);
        assert_eq!(digest.hex(), zeroes);
    }

    #[test]
    fn it_goes_on_after_it_was_kept() {
        let bytes: Vec<u8> = (0..2048u32).map(|n| ((n * 7) >> 3) as u8).collect();
        let mut whole = Digest::empty();
        whole.add(&bytes);
        whole.add_zeroes(512);
        let mut first = Digest::empty();
        first.add(&bytes[..512]);
        let kept = serde_json::to_string(&first).unwrap();
        let mut second: Digest = serde_json::from_str(&kept).unwrap();
        second.add(&bytes[512..]);
        second.add(&[0; 512]);
        assert_eq!(second, whole);
        assert_eq!(second.len_bytes(), 2560);
        assert_ne!(second.hex(), first.hex());
    }
}
