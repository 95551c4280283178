//! When the operations of an open loop start: a Poisson process, or bursts of one.
//!
//! Bursts: time has periods of [`BURST_PERIOD`], each of which is active with one chance, by itself.
//! Operations start in active periods only, at a rate as much higher. With `n` operations in a
//! period on average and the chance `p`, the variance of their number is `1 + n (1 / p - 1)` times
//! the mean. Of a Poisson process it is once the mean.
//!
//! Every draw ends soon, whatever the rate: long gaps take no draw for each period that they pass, and
//! times end at [`END_NS`], past the end of any run.
//!
//! Pure: no clock, no ambient randomness. Times never go back.

use crate::profile::{BURST_PERIOD, Stream};
use base::{Prng, Time};

/// No operation starts later: 31 years.
const END_NS: f64 = 1e18;

/// The idle periods between so many active ones are drawn one by one. Of more, the mean is taken: it is
/// off by a few per cent at most.
const DRAWN_MAX: u64 = 4096;

/// The times of one stream.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    per_second: Option<f64>,
    /// The share of periods that are active.
    active: f64,
    draws: Prng,
    /// Of the last operation, in active time.
    at_ns: f64,
    /// Active periods that have begun, and idle ones before the last of them.
    begun: u64,
    idle: u64,
}

impl Arrivals {
    /// Those of a stream; `draws` is for nothing else.
    pub(crate) fn new(stream: &Stream, draws: Prng) -> Arrivals {
        Arrivals {
            per_second: stream.pacing.per_second(),
            active: f64::from(stream.active_percent) / 100.0,
            draws,
            at_ns: 0.0,
            begun: 0,
            idle: 0,
        }
    }

    /// The next time; zero in a closed loop.
    pub(crate) fn next(&mut self) -> Time {
        let Some(per_second) = self.per_second else {
            return Time(0);
        };
        // Exponential gaps make a Poisson process.
        let gap_s = -(1.0 - self.draws.unit()).ln() / per_second * self.active;
        self.at_ns = (self.at_ns + gap_s * 1e9).min(END_NS);
        if self.active >= 1.0 {
            return Time(self.at_ns as u64);
        }
        let period_ns = BURST_PERIOD.as_nanos() as f64;
        let period = (self.at_ns / period_ns) as u64;
        self.begin(period + 1);
        Time((self.at_ns + self.idle as f64 * period_ns).min(END_NS) as u64)
    }

    /// So many active periods have begun, each after its idle ones.
    fn begin(&mut self, periods: u64) {
        let more = periods.saturating_sub(self.begun);
        let mean = (1.0 - self.active) / self.active;
        self.idle += (more.saturating_sub(DRAWN_MAX) as f64 * mean) as u64;
        for _ in 0..more.min(DRAWN_MAX) {
            self.idle += self.pause();
        }
        self.begun = self.begun.max(periods);
    }

    /// Idle periods before an active one.
    fn pause(&mut self) -> u64 {
        let draw = 1.0 - self.draws.unit();
        (draw.ln() / (1.0 - self.active).ln()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Mix, Pacing};

    #[test]
    fn the_rarest_operations_come_at_once_and_in_their_order() {
        for (per_second, active_percent) in [(1e-300, 50), (1e-300, 100), (1e-4, 1), (1e-12, 1)] {
            let mix = Mix {
                sizes: vec![4096],
                random_percent: 100,
                read_percent: 100,
            };
            let stream = Stream {
                active_percent,
                ..Stream::alone(mix, Pacing::Open { per_second }, &[1])
            };
            let mut arrivals = Arrivals::new(&stream, Prng::from_seed(1));
            let times: Vec<Time> = (0..100).map(|_| arrivals.next()).collect();
            assert!(times.is_sorted(), "{per_second}");
            assert!(times.iter().all(|time| time.0 <= END_NS as u64));
        }
    }

    #[test]
    fn long_gaps_keep_the_rate() {
        let mix = Mix {
            sizes: vec![4096],
            random_percent: 100,
            read_percent: 100,
        };
        let stream = Stream {
            active_percent: 20,
            ..Stream::alone(mix, Pacing::Open { per_second: 1e-4 }, &[1])
        };
        let mut arrivals = Arrivals::new(&stream, Prng::from_seed(1));
        let last = (0..2000).map(|_| arrivals.next()).last();
        let per_second = 2000.0 / last.map_or(0.0, |time| time.0 as f64 / 1e9);
        assert!((per_second / 1e-4 - 1.0).abs() < 0.1, "{per_second}");
    }
}
