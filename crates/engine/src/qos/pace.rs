//! The pace of a rate: when the next one may go.
//!
//! It is the virtual scheduling of the generic cell rate algorithm (ITU-T I.371, annex A). Each one
//! moves a point in time on by what it takes. The next one goes when that point is not ahead of the
//! clock. An idle time counts up to an allowance. The limit tag of mClock (Gulati et al., OSDI 2010)
//! is the same without an allowance.

use super::limits::Rate;
use base::Time;
use std::time::Duration;

/// A rate, and how far it has been used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    per_s: u64,
    /// So much of an idle time counts.
    allowance_ns: i64,
    /// The next one goes no earlier: nanoseconds of the world's time, and before it began, too, where
    /// credits are left.
    due_ns: i64,
}

/// Nanoseconds that so many units take.
fn takes_ns(units: u64, per_s: u64) -> i64 {
    let ns = (u128::from(units) * 1_000_000_000).div_ceil(u128::from(per_s.max(1)));
    i64::try_from(ns).unwrap_or(i64::MAX)
}

fn ns(now: Time) -> i64 {
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

impl Pace {
    /// The paces of a rate, with all credits there at `now`: that of the long run, and that of its
    /// peak where it has one.
    pub(super) fn of(
        rate: Rate,
        burst_s: u32,
        slack: Duration,
        now: Time,
    ) -> impl Iterator<Item = Pace> {
        let above = rate.peak_per_s.saturating_sub(rate.per_s);
        let credits_ns = takes_ns(above.saturating_mul(u64::from(burst_s)), rate.per_s);
        let slack_ns = i64::try_from(slack.as_nanos()).unwrap_or(i64::MAX);
        let new = move |per_s, allowance_ns: i64| Pace {
            per_s,
            allowance_ns,
            due_ns: ns(now).saturating_sub(allowance_ns),
        };
        let peak = (above > 0).then(|| new(rate.peak_per_s, slack_ns));
        let long = new(rate.per_s, credits_ns.saturating_add(slack_ns));
        [long].into_iter().chain(peak)
    }

    /// The instant from which on the next one may go.
    pub(super) fn due(&self) -> Time {
        Time(u64::try_from(self.due_ns).unwrap_or(0))
    }

    /// One of so many units goes.
    pub(super) fn take(&mut self, units: u64, now: Time) {
        self.due_ns = self.after(units, now);
    }

    /// How long one would wait behind `queued` units.
    pub(super) fn wait(&self, queued: u64, now: Time) -> Duration {
        let left = self.after(queued, now).saturating_sub(ns(now));
        Duration::from_nanos(u64::try_from(left).unwrap_or(0))
    }

    /// When the next one may go after so many units.
    fn after(&self, units: u64, now: Time) -> i64 {
        let earliest = ns(now).saturating_sub(self.allowance_ns);
        let from = self.due_ns.max(earliest);
        from.saturating_add(takes_ns(units, self.per_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// How many of one unit go within each of so many seconds, asked for without an end.
    fn gone(pace: &mut Pace, seconds: u64, from: u64) -> Vec<u64> {
        let mut now = from * SECOND;
        let mut counts = vec![0; seconds as usize];
        loop {
            now = now.max(pace.due().as_nanos());
            let second = (now / SECOND - from) as usize;
            if second >= counts.len() {
                return counts;
            }
            pace.take(1, Time(now));
            counts[second] += 1;
        }
    }

    #[test]
    fn an_even_rate_lets_no_more_go_than_that() {
        let start = Time(5 * SECOND);
        let mut all: Vec<Pace> = Pace::of(Rate::even(50), 0, Duration::ZERO, start).collect();
        assert_eq!(all.len(), 1);
        assert_eq!(gone(&mut all[0], 4, 5), [50; 4]);
        assert_eq!(gone(&mut all[0], 2, 100), [50; 2], "nothing is saved up");
    }

    #[test]
    fn a_burst_lasts_as_long_as_its_credits() {
        let rate = Rate {
            per_s: 100,
            peak_per_s: 300,
        };
        let start = Time(0);
        let mut all: Vec<Pace> = Pace::of(rate, 4, Duration::ZERO, start).collect();
        assert_eq!(all.len(), 2);
        // The credits of 4 s above the limit, and the limit meanwhile.
        let mut now = Time(0);
        let mut went = 0;
        while now.as_nanos() < 4 * SECOND {
            for pace in &mut all {
                pace.take(1, now);
            }
            went += 1;
            now = now.max(all[0].due()).max(all[1].due());
        }
        assert_eq!(went, 1200);
        assert_eq!(gone(&mut all[0], 2, 4), [100; 2], "none are left");
    }

    #[test]
    fn the_slack_makes_up_for_late_timers() {
        let mut pace = Pace::of(Rate::even(1000), 0, Duration::from_millis(10), Time(SECOND));
        let mut pace = pace.next().unwrap();
        // Woken 4 ms late each time.
        let (mut now, mut went) = (Time(SECOND), 0);
        while now.as_nanos() < 2 * SECOND {
            while pace.due() <= now {
                pace.take(1, now);
                went += 1;
            }
            now = pace.due() + Duration::from_millis(4);
        }
        assert!((990..=1012).contains(&went), "{went}");
    }

    #[test]
    fn what_waits_counts() {
        let mut pace = Pace::of(Rate::even(10), 0, Duration::ZERO, Time(SECOND));
        let mut pace = pace.next().unwrap();
        assert_eq!(pace.wait(0, Time(SECOND)), Duration::ZERO);
        pace.take(5, Time(SECOND));
        assert_eq!(pace.wait(20, Time(SECOND)), Duration::from_millis(2500));
        let late = Time(3 * SECOND);
        assert_eq!(pace.wait(20, late), Duration::from_secs(2));
    }
}
