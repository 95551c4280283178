//! Bytes that can be made again from a number, so that a test needs to keep no
//! copy of what it wrote.

use std::path::Path;

/// Fills a buffer with the bytes that belong to `seed`: no two 8-byte words alike
/// nearby, none of them all zeroes, so that a lost, swapped or shifted block shows.
pub fn bytes(seed: u64, len_bytes: usize) -> Vec<u8> {
    let mut word = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(len_bytes + 8);
    while out.len() < len_bytes {
        // xorshift64: never zero from a start that is not zero.
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.truncate(len_bytes);
    out
}

/// Writes a file of such bytes.
///
/// # Panics
/// When the file can't be written.
pub fn file(path: &Path, seed: u64, len_bytes: usize) {
    std::fs::write(path, bytes(seed, len_bytes))
        .unwrap_or_else(|error| panic!("write {}: {error}", path.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_bytes_other_seed_other_bytes() {
        assert_eq!(bytes(7, 4099), bytes(7, 4099));
        assert_ne!(bytes(7, 64), bytes(8, 64));
        assert_eq!(bytes(7, 4099).len(), 4099);
    }
}
