//! Counters and histograms of the commands of one session at one LUN.
//!
//! Invariants:
//! - Only the shard that carries the session's connection writes a [`Tally`]: plain loads and
//!   stores. Whoever reads sees each counter whole, and several of them as they were at
//!   moments that may lie a command apart.
//! - All counters only ever grow, so two readings say what was between them.

use super::latency::{BUCKETS, bucket};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// For the one that writes: a plain load and store.
pub fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed) + by, Relaxed);
}

/// Sizes are told apart by power of two, from this one on.
const SMALLEST_SIZE_BIT: u32 = 9;

/// How many sizes are told apart: 512 bytes to 1 MiB and more.
pub const SIZES: usize = 12;

/// Where a transfer of this many bytes is counted.
pub(crate) fn size_class(bytes: u64) -> usize {
    let bit = bytes.max(1 << SMALLEST_SIZE_BIT).ilog2();
    ((bit - SMALLEST_SIZE_BIT) as usize).min(SIZES - 1)
}

/// The shortest transfer of a size class; the first has shorter ones, too.
pub fn size_from_bytes(class: usize) -> u64 {
    1 << (SMALLEST_SIZE_BIT as usize + class.min(SIZES - 1))
}

/// READ or WRITE commands that ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub write: bool,
    /// Bytes that went over the wire.
    pub bytes: u64,
    /// Bytes that were asked for.
    pub wanted_bytes: u64,
    /// It does not begin where another one ended lately.
    pub random: bool,
}

/// Commands that are counted apart, though most LUNs never see some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UNMAP, and WRITE SAME with UNMAP.
    Unmap,
    /// WRITE SAME without it.
    WriteSame,
    /// COMPARE AND WRITE.
    CompareAndWrite,
    /// Copies that the initiator had made.
    Offload,
}

/// How many kinds there are.
const KINDS: usize = 4;

/// How a command ended, for those who count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Transferred(Transfer),
    Did(Kind),
    /// Well, and of no kind that is counted apart; or with a unit attention, or as busy.
    Other,
    /// CHECK CONDITION, but no unit attention.
    Failed,
    /// RESERVATION CONFLICT.
    Conflict,
}

/// How long commands took that ended well. Counters are [`AtomicU64`] where they are written,
/// `u64` where they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing<T> {
    /// Number of commands that ended well.
    pub commands: T,
    /// Sum of their latencies, in nanoseconds.
    pub total_ns: T,
    /// The longest latency, in nanoseconds; 0 without commands.
    pub max_ns: T,
    /// How many took how long, by bucket.
    pub buckets: [T; BUCKETS],
}

/// The same of a kind of command, which takes its space with the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rare<T>(OnceLock<Box<Timing<T>>>);

/// READ or WRITE commands that ended well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow<T> {
    /// How many, and how long they took.
    pub timing: Timing<T>,
    /// Bytes that went over the wire.
    pub bytes: T,
    /// Those that did not begin where one of the last in this direction ended.
    pub random: T,
    /// How many were how long, by power of two from 512 bytes on.
    pub sizes: [T; SIZES],
}

/// What commands came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts<T> {
    /// All commands that ended, whatever became of them.
    pub commands: T,
    /// READ commands that ended well.
    pub reads: Flow<T>,
    /// WRITE commands that ended well, with WRITE AND VERIFY, WRITE ATOMIC and ORWRITE.
    pub writes: Flow<T>,
    /// Counters of each kind of command.
    pub rare: [Rare<T>; KINDS],
    /// CHECK CONDITION, but for unit attentions.
    pub errors: T,
    /// Commands that ended with the status RESERVATION CONFLICT.
    pub conflicts: T,
    /// Grows by one in each nanosecond for each command in progress, up to when one came or
    /// ended last.
    pub depth_ns: T,
    /// The most that were in progress in one session.
    pub depth_max: T,
}

/// Counters that are written.
pub type Tally = Counts<AtomicU64>;

/// Counters as they were read, or sums of such.
pub type Totals = Counts<u64>;

impl<T: Default> Default for Timing<T> {
    fn default() -> Self {
        Timing {
            commands: T::default(),
            total_ns: T::default(),
            max_ns: T::default(),
            buckets: std::array::from_fn(|_| T::default()),
        }
    }
}

impl<T> Rare<T> {
    /// How long they took, if there were any.
    pub fn timing(&self) -> Option<&Timing<T>> {
        self.0.get().map(Box::as_ref)
    }
}

impl Rare<u64> {
    /// How many there were.
    pub fn commands(&self) -> u64 {
        self.timing().map_or(0, |timing| timing.commands)
    }
}

impl<T> Counts<T> {
    /// Commands of this kind.
    pub fn of(&self, kind: Kind) -> &Rare<T> {
        &self.rare[kind as usize]
    }
}

/// For the one that writes.
pub fn raise(counter: &AtomicU64, to: u64) {
    if to > counter.load(Relaxed) {
        counter.store(to, Relaxed);
    }
}

impl Timing<AtomicU64> {
    fn count(&self, latency_ns: u64) {
        add(&self.commands, 1);
        add(&self.total_ns, latency_ns);
        raise(&self.max_ns, latency_ns);
        add(&self.buckets[bucket(latency_ns)], 1);
    }

    fn read(&self) -> Timing<u64> {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        Timing {
            commands: read(&self.commands),
            total_ns: read(&self.total_ns),
            max_ns: read(&self.max_ns),
            buckets: std::array::from_fn(|bucket| read(&self.buckets[bucket])),
        }
    }
}

impl Flow<AtomicU64> {
    fn count(&self, transfer: &Transfer, latency_ns: u64) {
        self.timing.count(latency_ns);
        add(&self.bytes, transfer.bytes);
        add(&self.random, u64::from(transfer.random));
        add(&self.sizes[size_class(transfer.wanted_bytes)], 1);
    }
}

impl Tally {
    /// Counts a command that has ended.
    pub fn count(&self, outcome: &Outcome, latency_ns: u64) {
        add(&self.commands, 1);
        match outcome {
            Outcome::Transferred(transfer) => {
                let flow = if transfer.write {
                    &self.writes
                } else {
                    &self.reads
                };
                flow.count(transfer, latency_ns);
            }
            Outcome::Did(kind) => self.of(*kind).0.get_or_init(Box::default).count(latency_ns),
            Outcome::Other => {}
            Outcome::Failed => add(&self.errors, 1),
            Outcome::Conflict => add(&self.conflicts, 1),
        }
    }
}

impl Timing<u64> {
    fn merge(&mut self, other: &Self) {
        self.commands += other.commands;
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        for (sum, count) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += count;
        }
    }
}

impl Rare<u64> {
    fn merge(&mut self, other: &Timing<u64>) {
        self.0.get_or_init(Box::default);
        if let Some(timing) = self.0.get_mut() {
            timing.merge(other);
        }
    }
}

impl Flow<u64> {
    fn add(&mut self, other: &Flow<AtomicU64>) {
        self.timing.merge(&other.timing.read());
        self.bytes += other.bytes.load(Relaxed);
        self.random += other.random.load(Relaxed);
        for (sum, count) in self.sizes.iter_mut().zip(&other.sizes) {
            *sum += count.load(Relaxed);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.timing.merge(&other.timing);
        self.bytes += other.bytes;
        self.random += other.random;
        for (sum, count) in self.sizes.iter_mut().zip(&other.sizes) {
            *sum += count;
        }
    }
}

impl Totals {
    /// Adds what `tally` says now.
    pub fn add(&mut self, tally: &Tally) {
        self.commands += tally.commands.load(Relaxed);
        self.reads.add(&tally.reads);
        self.writes.add(&tally.writes);
        for (sum, rare) in self.rare.iter_mut().zip(&tally.rare) {
            if let Some(timing) = rare.timing() {
                sum.merge(&timing.read());
            }
        }
        self.errors += tally.errors.load(Relaxed);
        self.conflicts += tally.conflicts.load(Relaxed);
        self.depth_ns += tally.depth_ns.load(Relaxed);
        self.depth_max = self.depth_max.max(tally.depth_max.load(Relaxed));
    }

    /// Adds what others came to.
    pub fn merge(&mut self, other: &Self) {
        self.commands += other.commands;
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        for (sum, rare) in self.rare.iter_mut().zip(&other.rare) {
            if let Some(timing) = rare.timing() {
                sum.merge(timing);
            }
        }
        self.errors += other.errors;
        self.conflicts += other.conflicts;
        self.depth_ns += other.depth_ns;
        self.depth_max = self.depth_max.max(other.depth_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(write: bool, bytes: u64) -> Outcome {
        Outcome::Transferred(Transfer {
            write,
            bytes,
            wanted_bytes: bytes,
            random: write,
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
        tally.count(&transfer(false, 4096), 2_000);
        tally.count(&transfer(false, 512), 5_000);
        tally.count(&transfer(true, 1 << 20), 1_000);
        let kinds = [
            Kind::Unmap,
            Kind::WriteSame,
            Kind::CompareAndWrite,
            Kind::Offload,
        ];
        assert!(kinds.iter().all(|kind| tally.of(*kind).timing().is_none()));
        for (nth, kind) in kinds.into_iter().enumerate() {
            for latency_ns in 0..=nth as u64 {
                tally.count(&Outcome::Did(kind), 4_000 + latency_ns);
            }
        }
        for outcome in [Outcome::Other, Outcome::Failed, Outcome::Conflict] {
            tally.count(&outcome, 1);
        }
        add(&tally.depth_ns, 700);
        raise(&tally.depth_max, 3);
        let mut once = Totals::default();
        once.add(&tally);
        let Totals { reads, writes, .. } = &once;
        let of = |timing: &Timing<u64>| (timing.commands, timing.total_ns, timing.max_ns);
        assert_eq!(of(&reads.timing), (2, 7_000, 5_000));
        assert_eq!((reads.bytes, reads.random), (4608, 0));
        assert_eq!((reads.sizes[0], reads.sizes[3]), (1, 1));
        assert_eq!(reads.timing.buckets.iter().sum::<u64>(), 2);
        assert_eq!(of(&writes.timing), (1, 1_000, 1_000));
        assert_eq!((writes.random, writes.sizes[11]), (1, 1));
        let rare = kinds.map(|kind| of(once.of(kind).timing().unwrap()));
        let expected = [(1, 4_000, 4_000), (2, 8_001, 4_001)];
        assert_eq!(rare[..2], expected);
        assert_eq!(rare[2..], [(3, 12_003, 4_002), (4, 16_006, 4_003)]);
        assert_eq!((once.errors, once.conflicts), (1, 1));
        assert_eq!((once.commands, once.depth_ns, once.depth_max), (16, 700, 3));

        let mut merged = once.clone();
        merged.merge(&once);
        let mut twice = Totals::default();
        twice.add(&tally);
        twice.add(&tally);
        assert_eq!(merged, twice);
        assert_eq!((merged.commands, merged.depth_max), (32, 3));
        assert_eq!(merged.of(Kind::Offload).commands(), 8);
    }
}
