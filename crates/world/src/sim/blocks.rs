//! What a modelled drive keeps: blocks that were written with bytes, labels and metadata. What
//! has only a length is dropped, so a drive of any size costs what its metadata costs.

use base::{BLOCK_BYTES, DriveOffset};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Blocks by number.
#[derive(Default)]
pub struct Blocks(RefCell<BTreeMap<u64, Box<[u8; BLOCK_BYTES]>>>);

impl Blocks {
    /// Reads whole blocks from `at` on; zeroes where nothing was kept.
    pub fn fill(&self, at: DriveOffset, bytes: &mut [u8]) {
        let blocks = self.0.borrow();
        let numbers = at.0 / BLOCK_BYTES as u64..;
        for (place, block) in bytes.chunks_mut(BLOCK_BYTES).zip(numbers) {
            match blocks.get(&block) {
                Some(content) => place.copy_from_slice(&content[..]),
                None => place.fill(0),
            }
        }
    }

    /// Keeps whole blocks.
    pub fn keep(&self, at: DriveOffset, bytes: &[u8]) {
        let mut blocks = self.0.borrow_mut();
        let (written, _) = bytes.as_chunks::<BLOCK_BYTES>();
        for (written, block) in written.iter().zip(at.0 / BLOCK_BYTES as u64..) {
            let content = blocks
                .entry(block)
                .or_insert_with(|| Box::new([0; BLOCK_BYTES]));
            content.copy_from_slice(written);
        }
    }
}
