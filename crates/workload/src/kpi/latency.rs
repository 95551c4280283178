//! A mergeable latency distribution (HDR histogram, 3 significant digits).

use hdrhistogram::Histogram;
use std::fmt;
use std::time::Duration;

/// Shorter latencies count as this, in nanoseconds.
const LOWEST_NS: u64 = 100;
/// Longer ones count as this: an hour.
const HIGHEST_NS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// The distribution of one kind of latency.
#[derive(Clone)]
pub struct Latency {
    histogram: Histogram<u64>,
}

impl Default for Latency {
    fn default() -> Self {
        let bounds = Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, SIGNIFICANT_DIGITS);
        match bounds {
            Ok(histogram) => Latency { histogram },
            Err(error) => unreachable!("constant bounds of a histogram: {error}"),
        }
    }
}

/// Without its thousands of buckets.
impl fmt::Debug for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, mean_ms, max_ms) = (self.count(), self.mean_ms(), self.max_ms());
        write!(
            f,
            "Latency({count} of mean {mean_ms} ms, at most {max_ms} ms)"
        )
    }
}

impl Latency {
    /// Adds a latency, held within the range of the histogram.
    pub fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(HIGHEST_NS);
        self.histogram
            .saturating_record(nanos.clamp(LOWEST_NS, HIGHEST_NS));
    }

    /// Adds all observations of `other`.
    pub fn merge(&mut self, other: &Latency) {
        if let Err(error) = self.histogram.add(&other.histogram) {
            unreachable!("histograms of equal bounds merge: {error}");
        }
    }

    /// Number of latencies that were added.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Arithmetic mean in milliseconds; zero without observations.
    pub fn mean_ms(&self) -> f64 {
        if self.count() == 0 {
            0.0
        } else {
            self.histogram.mean() / 1e6
        }
    }

    /// The latency that `percent` of the observations do not exceed, in
    /// milliseconds; zero without observations.
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        if self.count() == 0 {
            return 0.0;
        }
        self.histogram.value_at_percentile(percent) as f64 / 1e6
    }

    /// The longest in milliseconds.
    pub fn max_ms(&self) -> f64 {
        if self.count() == 0 {
            0.0
        } else {
            self.histogram.max() as f64 / 1e6
        }
    }

    /// How many observations are longer than `limit` (to 3 digits).
    pub fn count_above(&self, limit: Duration) -> u64 {
        let nanos = u64::try_from(limit.as_nanos()).unwrap_or(HIGHEST_NS);
        self.count() - self.histogram.count_between(0, nanos.min(HIGHEST_NS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(millis: impl IntoIterator<Item = u64>) -> Latency {
        let mut latency = Latency::default();
        for milli in millis {
            latency.record(Duration::from_millis(milli));
        }
        latency
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= b * 0.001 + 1e-9, "{a} is not {b}");
    }

    #[test]
    fn merging_is_recording_all_in_one() {
        let mut merged = of(1..=500);
        merged.merge(&of(501..=1000));
        let whole = of(1..=1000);
        for percent in [50.0, 95.0, 99.0, 99.9, 100.0] {
            assert_eq!(merged.percentile_ms(percent), whole.percentile_ms(percent));
        }
        assert_eq!(merged.count(), 1000);
        close(merged.mean_ms(), 500.5);
        close(merged.percentile_ms(95.0), 950.0);
        close(merged.max_ms(), 1000.0);
        assert_eq!(merged.count_above(Duration::from_millis(900)), 100);
    }

    #[test]
    fn nothing_observed_is_zero_and_extremes_are_kept_in_bounds() {
        let empty = Latency::default();
        assert_eq!(
            (empty.mean_ms(), empty.percentile_ms(99.0), empty.max_ms()),
            (0.0, 0.0, 0.0)
        );
        let mut latency = Latency::default();
        latency.record(Duration::ZERO);
        latency.record(Duration::MAX);
        assert_eq!(latency.count(), 2);
    }
}
