//! What a capture counts of a volume beside the tallies: exact sizes, places, and how operations
//! are spread over time.
//!
//! All space is taken when a capture begins, so counting takes no lock and allocates nothing: a few
//! additions for each READ and WRITE. A volume may be reached by several shards, so they are atomic
//! ones.
//!
//! Invariants:
//! - Counters are never set back. What a capture counted is of that capture alone.
//! - After its end nothing is counted any more, even when nobody takes it away.

use super::tally::{SIZES, size_class};
use base::{SECTOR_BYTES, Time};
use scsi::cdb::{Extent, Work};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Operations are counted in periods of this length.
pub const PERIOD: Duration = Duration::from_millis(100);
const PERIOD_NS: u64 = PERIOD.as_nanos() as u64;

/// A volume has at most so many equal grains whose operations are counted, in each direction.
pub const GRAINS_MAX: u64 = 2048;

/// The smallest grain, and what the working set is counted in.
pub const GRAIN_BYTES_MIN: u64 = 64 << 10;

/// Registers of the working set's sketch, as a power of two: its standard error is 3.3 %.
const REGISTER_BITS: u32 = 10;
const REGISTERS: usize = 1 << REGISTER_BITS;

/// What is counted of a volume.
#[derive(Debug)]
pub struct Watch {
    began: Time,
    /// Size of the volume when the capture began.
    pub size_bytes: u64,
    /// Length of a grain, a power of two.
    pub grain_bytes: u64,
    /// READ commands as they came.
    pub reads: WatchedFlow,
    /// WRITE commands as they came.
    pub writes: WatchedFlow,
    places: Sketch,
}

/// What is counted of reads, or of writes.
#[derive(Debug)]
pub struct WatchedFlow {
    /// Those that did not begin where one of the last in this direction ended.
    pub random: AtomicU64,
    /// Commands and bytes, by size class.
    pub sizes: [(AtomicU64, AtomicU64); SIZES],
    /// Random commands by the grain that they begin in: where a host goes on says nothing of skew.
    pub grains: Box<[AtomicU32]>,
    /// Commands by the period that they came in.
    pub periods: Box<[AtomicU32]>,
}

impl Watch {
    /// Of a volume of this size, for so long from `began` on.
    pub fn new(size_bytes: u64, began: Time, duration: Duration) -> Watch {
        let grain_bytes = size_bytes.div_ceil(GRAINS_MAX).max(GRAIN_BYTES_MIN);
        let grain_bytes = grain_bytes.next_power_of_two();
        let grains = size_bytes.div_ceil(grain_bytes) as usize;
        let periods = duration.as_nanos().div_ceil(PERIOD.as_nanos()) as usize;
        Watch {
            began,
            size_bytes,
            grain_bytes,
            reads: WatchedFlow::new(grains, periods),
            writes: WatchedFlow::new(grains, periods),
            places: Sketch::default(),
        }
    }

    /// Bytes that one of a volume of this size takes, about.
    pub fn bytes(size_bytes: u64, duration: Duration) -> u64 {
        let grains = size_bytes.div_ceil(GRAIN_BYTES_MIN).min(GRAINS_MAX);
        let periods = duration.as_nanos().div_ceil(PERIOD.as_nanos()) as u64;
        2 * 4 * (grains + periods) + REGISTERS as u64 + 512
    }

    /// Counts a command that comes, if the capture is not over.
    pub fn count(&self, work: Work, random: bool, now: Time) {
        let (flow, extent) = match work {
            Work::Read(extent) => (&self.reads, extent),
            Work::Write(extent) => (&self.writes, extent),
            _ => return,
        };
        let since_ns = now.0.saturating_sub(self.began.0);
        let Some(period) = flow.periods.get((since_ns / PERIOD_NS) as usize) else {
            return;
        };
        period.fetch_add(1, Relaxed);
        self.count_place(flow, extent, random);
    }

    fn count_place(&self, flow: &WatchedFlow, extent: Extent, random: bool) {
        let (begin, bytes) = (
            extent.lba.0.saturating_mul(SECTOR_BYTES as u64),
            extent.bytes(),
        );
        flow.random.fetch_add(u64::from(random), Relaxed);
        let (commands, sum) = &flow.sizes[size_class(bytes)];
        commands.fetch_add(1, Relaxed);
        sum.fetch_add(bytes, Relaxed);
        if let Some(grain) = flow.grains.get((begin / self.grain_bytes) as usize) {
            grain.fetch_add(u32::from(random), Relaxed);
            self.places.add(begin / GRAIN_BYTES_MIN);
        }
    }

    /// Bytes of the different places of [`GRAIN_BYTES_MIN`] that commands began in, about.
    pub fn working_set_bytes(&self) -> u64 {
        let bytes = self.places.distinct() * GRAIN_BYTES_MIN as f64;
        (bytes as u64).min(self.size_bytes)
    }

    /// The share of random commands, reads and writes, that the hottest tenth of all grains has;
    /// zero without any.
    pub fn hottest_tenth(&self) -> f64 {
        let of = |grain: &AtomicU32| u64::from(grain.load(Relaxed));
        let both = self.reads.grains.iter().zip(&self.writes.grains);
        let mut grains: Vec<u64> = both.map(|(reads, writes)| of(reads) + of(writes)).collect();
        grains.sort_unstable_by(|a, b| b.cmp(a));
        let all: u64 = grains.iter().sum();
        let hot: u64 = grains.iter().take(grains.len().div_ceil(10)).sum();
        hot as f64 / all.max(1) as f64
    }
}

impl WatchedFlow {
    fn new(grains: usize, periods: usize) -> WatchedFlow {
        let zeroes = |count| (0..count).map(|_| AtomicU32::new(0)).collect();
        WatchedFlow {
            random: AtomicU64::default(),
            sizes: Default::default(),
            grains: zeroes(grains),
            periods: zeroes(periods),
        }
    }

    /// The random commands that have a grain, and how many pairs of them share one.
    pub fn meetings(&self) -> (u64, f64) {
        let counts = self.grains.iter().map(|one| one.load(Relaxed));
        counts.fold((0, 0.0), |(all, pairs), count| {
            let others = f64::from(count.saturating_sub(1));
            (
                all + u64::from(count),
                pairs + f64::from(count) * others / 2.0,
            )
        })
    }
}

/// How many different numbers there were: a HyperLogLog (Flajolet et al., 2007).
#[derive(Debug)]
struct Sketch {
    /// By the first bits of a hash, the most zeroes that its other bits began with, plus one.
    registers: [AtomicU8; REGISTERS],
}

impl Default for Sketch {
    fn default() -> Self {
        Sketch {
            registers: std::array::from_fn(|_| AtomicU8::new(0)),
        }
    }
}

impl Sketch {
    fn add(&self, number: u64) {
        let hash = mixed(number);
        let register = (hash >> (64 - REGISTER_BITS)) as usize;
        let zeroes = (hash << REGISTER_BITS).leading_zeros().min(63) as u8;
        self.registers[register].fetch_max(zeroes + 1, Relaxed);
    }

    fn distinct(&self) -> f64 {
        let count = REGISTERS as f64;
        let seen = self.registers.iter().map(|one| one.load(Relaxed));
        let sum: f64 = seen.clone().map(|most| 0.5f64.powi(i32::from(most))).sum();
        let empty = seen.filter(|most| *most == 0).count() as f64;
        let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        // Of few numbers, registers without any say more.
        match raw <= 2.5 * count && empty > 0.0 {
            true => count * (count / empty).ln(),
            false => raw,
        }
    }
}

/// The finalizer of SplitMix64: every bit depends on every bit.
fn mixed(number: u64) -> u64 {
    let mut hash = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Lba;

    fn read(begin_bytes: u64, bytes: u32) -> Work {
        Work::Read(Extent {
            lba: Lba(begin_bytes / 512),
            blocks: bytes / 512,
        })
    }

    fn loaded(counters: &[AtomicU32]) -> Vec<u32> {
        counters.iter().map(|one| one.load(Relaxed)).collect()
    }

    #[test]
    fn commands_count_where_and_when_they_come() {
        let second = Duration::from_secs(1);
        let began = Time(0) + second;
        let watch = Watch::new(256 << 10, began, second);
        assert_eq!(watch.grain_bytes, 64 << 10);
        for (at_ms, begin) in [
            (0, 0),
            (99, 70_144),
            (100, 65_536),
            (999, 262_143 / 512 * 512),
        ] {
            let now = began + Duration::from_millis(at_ms);
            watch.count(read(begin, 24 << 10), true, now);
        }
        for at_ms in [100, 999] {
            let now = began + Duration::from_millis(at_ms);
            watch.count(read(64 << 10, 4096), false, now);
        }
        watch.count(read(0, 4096), true, began + second);
        watch.count(read(1 << 30, 512), true, began);
        watch.count(Work::Unmap, true, began);
        assert_eq!(loaded(&watch.reads.grains), [1, 2, 0, 1]);
        let periods = loaded(&watch.reads.periods);
        assert_eq!((periods[0], periods[1], periods[9]), (3, 2, 2));
        let (commands, bytes) = &watch.reads.sizes[5];
        assert_eq!(commands.load(Relaxed), 4);
        assert_eq!(bytes.load(Relaxed), 4 * (24 << 10));
        // With the one beyond the end, which has no grain.
        assert_eq!(watch.reads.random.load(Relaxed), 5);
        assert_eq!(loaded(&watch.writes.periods), [0; 10]);
        assert_eq!(watch.working_set_bytes() / GRAIN_BYTES_MIN, 3);
    }

    #[test]
    fn reads_and_writes_of_a_grain_count_together() {
        let watch = Watch::new(100 * GRAIN_BYTES_MIN, Time(0), Duration::from_secs(1));
        for grain in 0..100 {
            let place = read(grain * GRAIN_BYTES_MIN, 4096);
            let Work::Read(extent) = place else {
                panic!("a read")
            };
            for _ in 0..3 {
                watch.count(place, true, Time(0));
                watch.count(Work::Write(extent), true, Time(0));
            }
        }
        let tenth = watch.hottest_tenth();
        assert!((tenth - 0.1).abs() < 0.01, "{tenth}");
        assert_eq!(watch.reads.meetings(), (300, 300.0));
    }

    #[test]
    fn counters_of_a_large_volume_are_bounded() {
        let size = 64 << 40;
        let watch = Watch::new(size, Time(0), Duration::from_secs(60));
        assert_eq!(watch.reads.grains.len() as u64, GRAINS_MAX);
        assert_eq!(watch.reads.periods.len(), 600);
        assert!(Watch::bytes(size, Duration::from_secs(60)) < 32 << 10);
    }

    #[test]
    fn the_working_set_is_known_to_a_tenth() {
        for places in [10u64, 1000, 50_000, 1_000_000] {
            let sketch = Sketch::default();
            for turn in 0..2 * places {
                sketch.add(turn % places);
            }
            let off = sketch.distinct() / places as f64 - 1.0;
            assert!(off.abs() < 0.1, "{places}: {off}");
        }
    }
}
