//! The data that a load writes: reproducible from the seed, never zero, and not compressible, so
//! that no cache, zero detection or deduplication on the way makes a target look faster than it is.

use crate::profile::IO_BYTES_MAX;
use base::Prng;

/// Random bytes that every write takes its data from.
const ARENA_BYTES: usize = 4 << 20;

/// Every block of this many bytes is stamped, so that no two writes carry the
/// same one.
const STAMP_EVERY_BYTES: usize = 4096;

/// In the stamp of every block, so that what a load has written is known again, whatever
/// its seed was.
const MARK: [u8; 8] = *b"ashload1";

/// Of a stamp: offset, sequence, mark.
const STAMP_BYTES: usize = 24;

/// Writes begin at multiples of this many bytes, and so do stamps.
const SECTOR_BYTES: usize = 512;

/// Whether a block at `offset_bytes` of a target holds what a load has written there.
pub fn is_of_a_load(offset_bytes: u64, block: &[u8]) -> bool {
    block
        .chunks(SECTOR_BYTES)
        .enumerate()
        .any(|(number, sector)| {
            let at = offset_bytes + (number * SECTOR_BYTES) as u64;
            sector.starts_with(&at.to_le_bytes()) && sector.get(16..STAMP_BYTES) == Some(&MARK)
        })
}

/// The source of data for the writes of one run. Shared by all threads.
#[derive(Debug)]
pub struct Pattern {
    arena: Vec<u8>,
}

impl Pattern {
    /// The pattern of a seed.
    pub fn new(seed: u64) -> Self {
        let mut arena = vec![0; ARENA_BYTES + IO_BYTES_MAX as usize];
        Prng::from_seed(seed).stream("load data").fill(&mut arena);
        Pattern { arena }
    }

    /// Fills `data`, which is to be written at `offset_bytes` as the `sequence`th
    /// write of its VM.
    ///
    /// # Panics
    /// When `data` is larger than [`IO_BYTES_MAX`].
    pub fn fill(&self, offset_bytes: u64, sequence: u64, data: &mut [u8]) {
        assert!(
            data.len() <= IO_BYTES_MAX as usize,
            "{} bytes in one write",
            data.len()
        );
        let spread = (offset_bytes ^ sequence.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let start = (spread >> 32) as usize % ARENA_BYTES;
        data.copy_from_slice(&self.arena[start..start + data.len()]);
        for (block, space) in data.chunks_mut(STAMP_EVERY_BYTES).enumerate() {
            let at = offset_bytes + (block * STAMP_EVERY_BYTES) as u64;
            if let Some(stamp) = space.first_chunk_mut::<STAMP_BYTES>() {
                stamp[..8].copy_from_slice(&at.to_le_bytes());
                stamp[8..16].copy_from_slice(&sequence.to_le_bytes());
                stamp[16..].copy_from_slice(&MARK);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_repeats_with_the_seed_and_differs_between_blocks_and_writes() {
        let (a, b) = (Pattern::new(5), Pattern::new(5));
        let filled = |pattern: &Pattern, offset, sequence| {
            let mut data = vec![0u8; 8192];
            pattern.fill(offset, sequence, &mut data);
            data
        };
        let first = filled(&a, 4096, 1);
        assert_eq!(first, filled(&b, 4096, 1));
        assert_ne!(first, filled(&Pattern::new(6), 4096, 1));
        assert_ne!(first[..4096], first[4096..]);
        assert_ne!(first, filled(&a, 4096, 2));
        let zeroes = first.iter().filter(|&&byte| byte == 0).count();
        assert!(zeroes < 200, "{zeroes} zeroes in 8192 random bytes");
    }

    #[test]
    fn data_is_known_again_where_it_was_written_only() {
        let mut data = vec![0u8; 4096];
        Pattern::new(5).fill(8192, 1, &mut data);
        assert!(is_of_a_load(8192, &data));
        assert!(!is_of_a_load(12288, &data), "copied to another place");
        let mut sector = vec![0u8; 512];
        Pattern::new(6).fill(8192 + 1024, 9, &mut sector);
        let mut block = vec![0u8; 4096];
        block[1024..1536].copy_from_slice(&sector);
        assert!(is_of_a_load(8192, &block));
        assert!(!is_of_a_load(8192, &[0x55; 4096]));
        assert!(!is_of_a_load(0, &[0; 4096]));
    }
}
