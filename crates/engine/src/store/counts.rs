//! Drive operations by what they are for, since the opening.
//!
//! The two logs, the sums and the metadata count their own; here is what happens to
//! data and parity in place.

use std::cell::Cell;

/// What a drive operation was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Data for a command.
    HostRead,
    /// Data for a command that is expected.
    AheadRead,
    /// Old data or parity, read because a stripe changes only in part.
    ModifyRead,
    /// Data going in place.
    DataWrite,
    /// Parity going in place.
    ParityWrite,
    /// Data or parity read to put together what a drive can't give.
    RepairRead,
    /// Data or parity written over what was bad.
    RepairWrite,
}

const PURPOSES: usize = 7;

/// Counters of operations and bytes.
#[derive(Debug, Default)]
pub struct Counts {
    operations: [Cell<u64>; PURPOSES],
    bytes: [Cell<u64>; PURPOSES],
    /// Reads and writes of volumes.
    pub commands: Cell<u64>,
    /// Blocks whose content did not match its sum, or could not be read.
    pub bad_blocks: Cell<u64>,
    /// Blocks put right from redundancy.
    pub mended_blocks: Cell<u64>,
    /// Blocks that nothing could put right.
    pub lost_blocks: Cell<u64>,
    /// Stripes that were read in order to be changed in part.
    pub partial_stripes: Cell<u64>,
    /// Stripes that were changed without reading anything.
    pub whole_stripes: Cell<u64>,
    /// Bytes that went in place without passing the log.
    pub bypassed_bytes: Cell<u64>,
}

fn add(cell: &Cell<u64>, by: u64) {
    cell.set(cell.get() + by);
}

impl Counts {
    /// One more operation of `bytes`.
    pub fn count(&self, purpose: Purpose, bytes: usize) {
        add(&self.operations[purpose as usize], 1);
        add(&self.bytes[purpose as usize], bytes as u64);
    }

    /// Operations for `purpose` so far.
    pub fn operations(&self, purpose: Purpose) -> u64 {
        self.operations[purpose as usize].get()
    }

    /// Bytes for `purpose` so far.
    pub fn bytes(&self, purpose: Purpose) -> u64 {
        self.bytes[purpose as usize].get()
    }

    /// `by` more of one of the plain counters.
    pub fn add(&self, counter: impl FnOnce(&Self) -> &Cell<u64>, by: u64) {
        add(counter(self), by);
    }
}
