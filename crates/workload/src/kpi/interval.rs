//! Response times over the time of a run, interval by interval.
//!
//! A run has at most [`INTERVALS_MAX`] intervals, and an interval keeps only the buckets that
//! something fell into. So a long run of many VMs takes little memory, where a whole
//! [`super::Latency`] for each interval would take gigabytes.

use std::time::Duration;

/// A run has no more intervals than a chart has room for.
pub const INTERVALS_MAX: u32 = 150;

/// Lengths that people can read off an axis, in seconds; beyond them whole hours.
const LENGTHS_S: [u64; 11] = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800];

/// The length of the intervals of a run that takes `run`.
pub fn interval(run: Duration) -> Duration {
    let fits = |length_s: &u64| Duration::from_secs(*length_s) * INTERVALS_MAX >= run;
    let hours = run.as_secs().div_ceil(3600 * u64::from(INTERVALS_MAX));
    let length_s = LENGTHS_S.into_iter().find(fits);
    Duration::from_secs(length_s.unwrap_or(hours.max(1) * 3600))
}

/// The response times of operations that completed in one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntervalOf {
    count: u64,
    sum_ns: u128,
    max_ns: u64,
    /// Buckets in their order, with how many fell into each.
    counts: Vec<(u16, u64)>,
}

/// Buckets of an octave, as a power of two: the middle of a bucket is within 1.6 % of all
/// that falls into it.
const BITS: u32 = 5;

/// The bucket of a response time. Below 32 ns each nanosecond has its own.
fn bucket(ns: u64) -> u16 {
    let Some(shift) = ns.checked_ilog2().and_then(|log| log.checked_sub(BITS)) else {
        return ns as u16;
    };
    let within = (ns >> shift) & ((1 << BITS) - 1);
    ((u64::from(shift + 1) << BITS) | within) as u16
}

/// The middle of a bucket, in nanoseconds.
fn middle_ns(bucket: u16) -> f64 {
    let within = f64::from(bucket & ((1 << BITS) - 1));
    match bucket >> BITS {
        0 => within,
        octave => (f64::from(1u32 << BITS) + within + 0.5) * 2f64.powi(i32::from(octave) - 1),
    }
}

impl IntervalOf {
    /// Adds the response time of an operation that completed.
    pub fn record(&mut self, response: Duration) {
        let ns = u64::try_from(response.as_nanos()).unwrap_or(u64::MAX);
        self.count += 1;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
        self.add(bucket(ns), 1);
    }

    /// Adds all observations of `other`.
    pub fn merge(&mut self, other: &IntervalOf) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        for &(bucket, count) in &other.counts {
            self.add(bucket, count);
        }
    }

    fn add(&mut self, bucket: u16, count: u64) {
        match self.counts.binary_search_by_key(&bucket, |entry| entry.0) {
            Ok(place) => self.counts[place].1 += count,
            Err(place) => self.counts.insert(place, (bucket, count)),
        }
    }

    /// Number of response times that were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Arithmetic mean in milliseconds; zero without observations.
    pub fn mean_ms(&self) -> f64 {
        self.sum_ns as f64 / self.count.max(1) as f64 / 1e6
    }

    /// The longest in milliseconds; zero without observations.
    pub fn max_ms(&self) -> f64 {
        self.max_ns as f64 / 1e6
    }

    /// The response time that `percent` of the observations do not exceed, in milliseconds
    /// and to 1.6 %; zero without observations.
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        let rank = (percent / 100.0 * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        let found = self.counts.iter().find(|(_, count)| {
            below += count;
            below >= rank
        });
        let ns = found.map_or(0.0, |(bucket, _)| middle_ns(*bucket));
        (ns / 1e6).min(self.max_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kpi::Latency;

    #[test]
    fn a_run_has_as_many_intervals_as_a_chart_has_room_for() {
        let length_s = |run_s: u64| interval(Duration::from_secs(run_s)).as_secs();
        assert_eq!(
            [0, 40, 150, 151, 3600, 86_400].map(length_s),
            [1, 1, 1, 2, 30, 600]
        );
        let year_s = 365 * 86_400;
        assert!(year_s / length_s(year_s) <= u64::from(INTERVALS_MAX));
    }

    #[test]
    fn the_middle_of_a_bucket_is_near_all_that_falls_into_it() {
        let mut before = 0;
        for ns in (0..64)
            .map(|power| 1u64 << power)
            .chain([1000, 123_456_789])
        {
            for ns in [ns, ns + ns / 3, ns + ns / 64] {
                let middle = middle_ns(bucket(ns));
                let off = (middle - ns as f64).abs() / ns as f64;
                assert!(off <= 1.0 / 64.0, "{ns}: {middle}");
            }
        }
        for ns in 0..100_000 {
            assert!(bucket(ns) >= before, "{ns}");
            before = bucket(ns);
        }
    }

    #[test]
    fn percentiles_are_those_of_the_whole_distribution() {
        let (mut interval, mut latency) = (IntervalOf::default(), Latency::default());
        let mut halves = [IntervalOf::default(), IntervalOf::default()];
        for number in 1..=10_000u64 {
            let response = Duration::from_nanos(number * number * 7);
            interval.record(response);
            halves[number as usize % 2].record(response);
            latency.record(response);
        }
        for percent in [50.0, 95.0, 99.0, 100.0] {
            let (of, exact) = (
                interval.percentile_ms(percent),
                latency.percentile_ms(percent),
            );
            assert!(
                (of - exact).abs() <= exact * 0.02,
                "{percent}: {of} {exact}"
            );
        }
        let [mut merged, other] = halves;
        merged.merge(&other);
        assert_eq!(merged, interval);
        assert!((interval.mean_ms() - latency.mean_ms()).abs() < latency.mean_ms() * 0.001);
        let nothing = IntervalOf::default();
        assert_eq!((nothing.mean_ms(), nothing.percentile_ms(99.0)), (0.0, 0.0));
    }
}
