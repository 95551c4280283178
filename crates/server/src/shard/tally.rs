//! What the commands of one session at one LUN came to: counters and histograms of a
//! fixed size.
//!
//! Invariants:
//! - Only the shard that carries the session's connection writes a [`Tally`]: plain loads and
//!   stores. Whoever reads sees each counter whole, and several of them as they were at
//!   moments that may lie a command apart.
//! - All counters only ever grow, so two readings say what was between them.

use super::latency::{BUCKETS, bucket};
use super::session::add;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Sizes are told apart by power of two, from this one on.
const SMALLEST_SIZE_BIT: u32 = 9;

/// How many sizes are told apart: 512 bytes to 1 MiB and more.
pub(crate) const SIZES: usize = 12;

/// Where a transfer of this many bytes is counted.
fn size_class(bytes: u64) -> usize {
    let bit = bytes.max(1 << SMALLEST_SIZE_BIT).ilog2();
    ((bit - SMALLEST_SIZE_BIT) as usize).min(SIZES - 1)
}

/// The shortest transfer of a size class; the first has shorter ones, too.
pub(crate) fn size_from_bytes(class: usize) -> u64 {
    1 << (SMALLEST_SIZE_BIT as usize + class.min(SIZES - 1))
}

/// READ or WRITE commands that ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) write: bool,
    /// Bytes that went over the wire.
    pub(crate) bytes: u64,
    /// Bytes that were asked for.
    pub(crate) wanted_bytes: u64,
    /// It does not begin where another one ended lately.
    pub(crate) random: bool,
    pub(crate) latency_ns: u64,
}

/// How a command ended, for those who count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Transferred(Transfer),
    Unmapped,
    ComparedAndWritten,
    Offloaded,
    /// Well, and of no kind that is counted apart; or with a unit attention, or as busy.
    Other,
    /// CHECK CONDITION, but no unit attention.
    Failed,
    /// RESERVATION CONFLICT.
    Conflict,
}

/// READ or WRITE commands that ended well. Counters are [`AtomicU64`] where they are written,
/// `u64` where they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow<T> {
    /// How many.
    pub commands: T,
    /// Bytes that went over the wire.
    pub bytes: T,
    /// Those that did not begin where one of the last in this direction ended.
    pub random: T,
    /// Sum of their latencies, in nanoseconds.
    pub latency_ns: T,
    /// The longest.
    pub latency_max_ns: T,
    /// How many took how long, by bucket.
    pub latencies: [T; BUCKETS],
    /// How many were how long, by power of two from 512 bytes on.
    pub sizes: [T; SIZES],
}

/// What commands came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts<T> {
    /// All that ended.
    pub commands: T,
    /// READ.
    pub reads: Flow<T>,
    /// WRITE.
    pub writes: Flow<T>,
    /// UNMAP, and WRITE SAME with UNMAP or zeroes; these and the next two that ended well.
    pub unmaps: T,
    /// COMPARE AND WRITE.
    pub compare_and_writes: T,
    /// Copies that the initiator had made.
    pub offloads: T,
    /// CHECK CONDITION, but for unit attentions.
    pub errors: T,
    /// RESERVATION CONFLICT.
    pub conflicts: T,
    /// Over all commands: how many were in progress when it came, itself among them.
    pub depths: T,
    /// The most of that.
    pub depth_max: T,
}

/// Counters that are written.
pub(crate) type Tally = Counts<AtomicU64>;

/// Counters as they were read, or sums of such.
pub type Totals = Counts<u64>;

impl<T: Default> Default for Flow<T> {
    fn default() -> Self {
        Flow {
            commands: T::default(),
            bytes: T::default(),
            random: T::default(),
            latency_ns: T::default(),
            latency_max_ns: T::default(),
            latencies: std::array::from_fn(|_| T::default()),
            sizes: std::array::from_fn(|_| T::default()),
        }
    }
}

fn raise(counter: &AtomicU64, to: u64) {
    if to > counter.load(Relaxed) {
        counter.store(to, Relaxed);
    }
}

impl Flow<AtomicU64> {
    fn count(&self, transfer: &Transfer) {
        add(&self.commands, 1);
        add(&self.bytes, transfer.bytes);
        add(&self.random, u64::from(transfer.random));
        add(&self.latency_ns, transfer.latency_ns);
        raise(&self.latency_max_ns, transfer.latency_ns);
        add(&self.latencies[bucket(transfer.latency_ns)], 1);
        add(&self.sizes[size_class(transfer.wanted_bytes)], 1);
    }
}

impl Tally {
    /// Counts a command that has ended; `depth` is how many were in progress when it came.
    pub(crate) fn count(&self, depth: u64, outcome: &Outcome) {
        add(&self.commands, 1);
        add(&self.depths, depth);
        raise(&self.depth_max, depth);
        match outcome {
            Outcome::Transferred(transfer) if transfer.write => self.writes.count(transfer),
            Outcome::Transferred(transfer) => self.reads.count(transfer),
            Outcome::Unmapped => add(&self.unmaps, 1),
            Outcome::ComparedAndWritten => add(&self.compare_and_writes, 1),
            Outcome::Offloaded => add(&self.offloads, 1),
            Outcome::Other => {}
            Outcome::Failed => add(&self.errors, 1),
            Outcome::Conflict => add(&self.conflicts, 1),
        }
    }
}

impl Flow<u64> {
    fn add(&mut self, other: &Flow<AtomicU64>) {
        self.commands += other.commands.load(Relaxed);
        self.bytes += other.bytes.load(Relaxed);
        self.random += other.random.load(Relaxed);
        self.latency_ns += other.latency_ns.load(Relaxed);
        let longest = other.latency_max_ns.load(Relaxed);
        self.latency_max_ns = self.latency_max_ns.max(longest);
        for (sum, count) in self.latencies.iter_mut().zip(&other.latencies) {
            *sum += count.load(Relaxed);
        }
        for (sum, count) in self.sizes.iter_mut().zip(&other.sizes) {
            *sum += count.load(Relaxed);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.commands += other.commands;
        self.bytes += other.bytes;
        self.random += other.random;
        self.latency_ns += other.latency_ns;
        self.latency_max_ns = self.latency_max_ns.max(other.latency_max_ns);
        for (sum, count) in self.latencies.iter_mut().zip(&other.latencies) {
            *sum += count;
        }
        for (sum, count) in self.sizes.iter_mut().zip(&other.sizes) {
            *sum += count;
        }
    }
}

impl Totals {
    /// Adds what `tally` says now.
    pub(crate) fn add(&mut self, tally: &Tally) {
        self.commands += tally.commands.load(Relaxed);
        self.reads.add(&tally.reads);
        self.writes.add(&tally.writes);
        self.unmaps += tally.unmaps.load(Relaxed);
        self.compare_and_writes += tally.compare_and_writes.load(Relaxed);
        self.offloads += tally.offloads.load(Relaxed);
        self.errors += tally.errors.load(Relaxed);
        self.conflicts += tally.conflicts.load(Relaxed);
        self.depths += tally.depths.load(Relaxed);
        self.depth_max = self.depth_max.max(tally.depth_max.load(Relaxed));
    }

    /// Adds what others came to.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.commands += other.commands;
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        self.unmaps += other.unmaps;
        self.compare_and_writes += other.compare_and_writes;
        self.offloads += other.offloads;
        self.errors += other.errors;
        self.conflicts += other.conflicts;
        self.depths += other.depths;
        self.depth_max = self.depth_max.max(other.depth_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(write: bool, bytes: u64, latency_ns: u64) -> Outcome {
        Outcome::Transferred(Transfer {
            write,
            bytes,
            wanted_bytes: bytes,
            random: write,
            latency_ns,
        })
    }

    #[test]
    fn each_size_is_in_the_class_of_its_power_of_two() {
        for (bytes, class) in [
            (0, 0),
            (512, 0),
            (1023, 0),
            (1024, 1),
            (4096, 3),
            (8191, 3),
            (1 << 19, 10),
            ((1 << 20) - 1, 10),
            (1 << 20, 11),
            (16 << 20, 11),
        ] {
            assert_eq!(size_class(bytes), class, "{bytes}");
        }
        assert_eq!((size_from_bytes(0), size_from_bytes(11)), (512, 1 << 20));
    }

    #[test]
    fn every_outcome_has_its_counter_and_sums_add_up() {
        let tally = Tally::default();
        tally.count(1, &transfer(false, 4096, 2_000));
        tally.count(3, &transfer(false, 512, 5_000));
        tally.count(2, &transfer(true, 1 << 20, 1_000));
        for outcome in [
            Outcome::Unmapped,
            Outcome::ComparedAndWritten,
            Outcome::Offloaded,
            Outcome::Other,
            Outcome::Failed,
            Outcome::Conflict,
        ] {
            tally.count(1, &outcome);
        }
        let mut once = Totals::default();
        once.add(&tally);
        let Totals { reads, writes, .. } = &once;
        assert_eq!((reads.commands, reads.bytes, reads.random), (2, 4608, 0));
        assert_eq!((reads.latency_ns, reads.latency_max_ns), (7_000, 5_000));
        assert_eq!((reads.sizes[0], reads.sizes[3]), (1, 1));
        assert_eq!(reads.latencies.iter().sum::<u64>(), 2);
        assert_eq!(
            (writes.commands, writes.random, writes.sizes[11]),
            (1, 1, 1)
        );
        let others = [once.unmaps, once.compare_and_writes, once.offloads];
        assert_eq!((others, once.errors, once.conflicts), ([1; 3], 1, 1));
        assert_eq!((once.commands, once.depths, once.depth_max), (9, 12, 3));

        let mut merged = once.clone();
        merged.merge(&once);
        let mut twice = Totals::default();
        twice.add(&tally);
        twice.add(&tally);
        assert_eq!(merged, twice);
        assert_eq!((merged.commands, merged.depth_max), (18, 3));
        assert_eq!(merged.reads.latency_max_ns, 5_000);
    }
}
