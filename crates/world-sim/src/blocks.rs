//! The blocks of a modelled drive that are kept: those written with bytes.
//!
//! These are labels and metadata. A write with only a length is dropped, so a drive of any size
//! costs the memory of its metadata. Blocks that several drives were given together, as copies of
//! metadata are, lie here once.

use base::{BLOCK_BYTES, DriveOffset, Slice};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Blocks that were kept, by number (offset divided by [`BLOCK_BYTES`]); absent ones read as
/// zeroes.
#[derive(Default)]
pub struct Blocks(RefCell<BTreeMap<u64, Slice>>);

impl Blocks {
    /// Reads whole blocks from `at` on; zeroes where nothing was kept.
    pub fn fill(&self, at: DriveOffset, bytes: &mut [u8]) {
        let blocks = self.0.borrow();
        let numbers = at.0 / BLOCK_BYTES as u64..;
        for (place, block) in bytes.chunks_mut(BLOCK_BYTES).zip(numbers) {
            match blocks.get(&block).and_then(Slice::bytes) {
                Some(content) => place.copy_from_slice(content),
                None => place.fill(0),
            }
        }
    }

    /// Keeps whole blocks, if they have bytes.
    pub fn keep(&self, at: DriveOffset, data: &Slice) {
        if data.is_length_only() {
            return;
        }
        let mut blocks = self.0.borrow_mut();
        let starts = (0..data.len()).step_by(BLOCK_BYTES);
        for (start, block) in starts.zip(at.0 / BLOCK_BYTES as u64..) {
            blocks.insert(block, data.slice(start, BLOCK_BYTES));
        }
    }
}
