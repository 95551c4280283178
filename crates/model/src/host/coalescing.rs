//! Interrupts that are held back, so that one tells of several frames.
//!
//! Invariants: two interrupts are a gap apart at least; a frame is told of by the first interrupt
//! that is not before it came; no interrupt tells of nothing.

use base::Time;
use std::time::Duration;

/// Interrupts that keep a gap: what comes meanwhile is told by the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coalescing {
    /// Least time from one interrupt to the next.
    pub gap: Duration,
}

/// How frames that came are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The interrupt that tells of the last of them.
    pub at: Time,
    /// Interrupts that there would not have been without them.
    pub interrupts: u64,
}

impl Coalescing {
    /// Each completion interrupts at once.
    pub const NONE: Coalescing = Coalescing {
        gap: Duration::ZERO,
    };
    /// 20,000 interrupts a second at most while there is little to do: Intel's drivers for
    /// Linux as they come, 1 GbE (e1000 and e1000e, InterruptThrottleRate 3, class "low latency")
    /// and 10 GbE (ixgbe, its class of that name). Under bulk traffic they go down to 4,000 and
    /// 8,000, which is left out: I/Os of some KiB are not bulk.
    pub const ETHERNET: Coalescing = Coalescing {
        gap: Duration::from_micros(50),
    };

    /// When a completion at `now` is told, after an interrupt that was told, or is going to
    /// be, at `last`. Gives `last` again where that one tells both.
    pub fn told(&self, last: Option<Time>, now: Time) -> Time {
        match last {
            Some(last) if last >= now => last,
            Some(last) => now.max(last + self.gap),
            None => now,
        }
    }

    /// The same of so many frames that came one after the other from `first` to `now`.
    pub fn told_of_frames(
        &self,
        mut last: Option<Time>,
        (first, now): (Time, Time),
        frames: u64,
    ) -> Told {
        let steps = frames.max(1) - 1;
        let between = now.since(first).as_nanos() as u64;
        let mut interrupts = 0;
        for step in 0..=steps {
            let passed = match steps {
                0 => between,
                steps => (u128::from(between) * u128::from(step) / u128::from(steps)) as u64,
            };
            let came = first + Duration::from_nanos(passed);
            let told = self.told(last, came);
            interrupts += u64::from(last != Some(told));
            last = Some(told);
        }
        Told {
            at: last.unwrap_or(now),
            interrupts,
        }
    }
}
