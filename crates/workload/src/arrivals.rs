//! When the operations of an open loop start: a Poisson process, or bursts of one.
//!
//! Bursts: time has periods of [`BURST_PERIOD`], each of which is active with one chance, by itself.
//! Operations start in active periods only, at a rate as much higher. With `n` operations in a
//! period on average and the chance `p`, the variance of their number is `1 + n (1 / p - 1)` times
//! the mean. Of a Poisson process it is once the mean.
//!
//! Pure: no clock, no ambient randomness. Times never go back.

use crate::profile::{BURST_PERIOD, Stream};
use base::{Prng, Time};

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
        self.at_ns += gap_s * 1e9;
        if self.active >= 1.0 {
            return Time(self.at_ns as u64);
        }
        let period_ns = BURST_PERIOD.as_nanos() as f64;
        let period = (self.at_ns / period_ns) as u64;
        while self.begun <= period {
            self.idle += self.pause();
            self.begun += 1;
        }
        Time((self.at_ns + self.idle as f64 * period_ns) as u64)
    }

    /// Idle periods before an active one.
    fn pause(&mut self) -> u64 {
        let draw = 1.0 - self.draws.unit();
        (draw.ln() / (1.0 - self.active).ln()) as u64
    }
}
