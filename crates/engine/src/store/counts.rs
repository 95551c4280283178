//! Counts of drive operations by their purpose, since the opening.
//!
//! The two logs and the sums count their own; here is what happens to data and
//! parity in place. [`IoCounts`] has all of them together, as they were at one
//! instant. One operation is one read or write of one drive: a block on two copies
//! is two writes. What metadata and labels take is in nobody's count but the drives'.

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
    /// Reads and writes of pages, as the background sees commands.
    pub commands: Cell<u64>,
    host_reads: Cell<Operations>,
    host_writes: Cell<Operations>,
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
    /// The same with those that are on their way.
    pub bypasses_begun_bytes: Cell<u64>,
}

/// Operations of drives, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Operations that were sent to drives.
    pub count: u64,
    /// Bytes of all these operations together.
    pub bytes: u64,
}

impl Operations {
    /// With one more, of `bytes`.
    fn and(self, bytes: usize) -> Self {
        Operations {
            count: self.count + 1,
            bytes: self.bytes + bytes as u64,
        }
    }
}

/// What drives were used for since the opening, at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// Reads of volumes that were asked for.
    pub host_reads: Operations,
    /// Writes of volumes that were asked for.
    pub host_writes: Operations,
    /// Drive reads of data for a command.
    pub data_reads: Operations,
    /// Drive reads of old data and parity, because a stripe changed only in part.
    pub modify_reads: Operations,
    /// Drive writes of data in place, every copy counted.
    pub data_writes: Operations,
    /// Drive writes of parity in place.
    pub parity_writes: Operations,
    /// Drive reads to put together what a drive can't give, for a rebuild or a scrub.
    pub repair_reads: Operations,
    /// Drive writes over what was bad or missing.
    pub repair_writes: Operations,
    /// Drive writes of the data log, every copy and superblocks counted.
    pub log_writes: Operations,
    /// Drive writes of the intent log, every copy and superblocks counted.
    pub intent_writes: Operations,
    /// Drive writes of sums.
    pub sum_writes: Operations,
    /// Blocks of sums brought into RAM, all copies read.
    pub sum_loads: u64,
    /// Stripes that were read in order to be changed in part.
    pub partial_stripes: u64,
    /// Stripes that were changed without reading anything.
    pub whole_stripes: u64,
    /// Bytes that went in place without passing the log.
    pub bypassed_bytes: u64,
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

    /// One more read of a volume, of `bytes`.
    pub fn host_read(&self, bytes: usize) {
        self.host_reads.set(self.host_reads.get().and(bytes));
    }

    /// One more write of a volume, of `bytes`.
    pub fn host_write(&self, bytes: usize) {
        self.host_writes.set(self.host_writes.get().and(bytes));
    }

    /// Operations for `purpose` so far.
    pub fn operations(&self, purpose: Purpose) -> u64 {
        self.operations[purpose as usize].get()
    }

    /// Bytes for `purpose` so far.
    pub fn bytes(&self, purpose: Purpose) -> u64 {
        self.bytes[purpose as usize].get()
    }

    fn of(&self, purpose: Purpose) -> Operations {
        Operations {
            count: self.operations(purpose),
            bytes: self.bytes(purpose),
        }
    }

    /// What is counted here, as it is now; the logs and the sums add their own.
    pub(super) fn in_place(&self) -> IoCounts {
        IoCounts {
            host_reads: self.host_reads.get(),
            host_writes: self.host_writes.get(),
            data_reads: self.of(Purpose::HostRead),
            modify_reads: self.of(Purpose::ModifyRead),
            data_writes: self.of(Purpose::DataWrite),
            parity_writes: self.of(Purpose::ParityWrite),
            repair_reads: self.of(Purpose::RepairRead),
            repair_writes: self.of(Purpose::RepairWrite),
            partial_stripes: self.partial_stripes.get(),
            whole_stripes: self.whole_stripes.get(),
            bypassed_bytes: self.bypassed_bytes.get(),
            ..IoCounts::default()
        }
    }

    /// `by` more of one of the plain counters.
    pub fn add(&self, counter: impl FnOnce(&Self) -> &Cell<u64>, by: u64) {
        add(counter(self), by);
    }
}
