//! The judgement of how full a pool is, which its lanes share.

use base::Time;
use std::time::Duration;

/// So much below a threshold, or below what was taken when somebody found no page, counts as
/// below.
const BACK_PERCENT: u64 = 2;

/// A pool that had no page for somebody is full for so long, unless enough is given back before.
const REFUSED: Duration = Duration::from_secs(10);

/// From which part of the capacity on people, and initiators, are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// The warning, also to the initiators of thin volumes.
    pub warn_percent: u8,
    /// The threshold of the alarm, 95 by default.
    pub alarm_percent: u8,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds {
            warn_percent: 80,
            alarm_percent: 95,
        }
    }
}

/// How full a pool is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fullness {
    /// Below the warning threshold and the alarm threshold.
    #[default]
    Ample,
    /// Above the warning threshold.
    Warn,
    /// Above the alarm threshold.
    Alarm,
    /// Writes that need a page fail.
    Full,
}

/// How full a pool is, and what was told of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FullnessInfo {
    /// As of the last look.
    pub fullness: Fullness,
    /// What that is judged by.
    pub thresholds: Thresholds,
    /// How often it came to be above the warning threshold since the opening.
    pub warnings: u64,
}

/// What was last said of a pool. Shared by its lanes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Judged {
    pub info: FullnessInfo,
    /// When somebody last found no page.
    pub refused: Option<Refusal>,
}

/// Somebody found no page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    pub at: Time,
    /// Pages that were taken then.
    pub taken: u64,
}

impl Refusal {
    /// Whether the pool counts as full for it, with so many pages taken of so many.
    fn holds(self, now: Time, taken: u64, capacity: u64) -> bool {
        let given_back = u128::from(self.taken.saturating_sub(taken));
        let is_down = given_back * 100 > u128::from(capacity) * u128::from(BACK_PERCENT);
        now.since(self.at) < REFUSED && !is_down
    }
}

/// A change of how full a pool is, which is an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crossed {
    pub before: Fullness,
    pub next: Fullness,
    /// Somebody found no page.
    pub is_refused: bool,
}

impl Judged {
    /// Judges a pool with so many pages taken of so many.
    pub fn judge(&mut self, now: Time, taken: u64, capacity: u64) -> Option<Crossed> {
        let before = self.info.fullness;
        let is_refused = self
            .refused
            .is_some_and(|refusal| refusal.holds(now, taken, capacity));
        let next = match is_refused {
            true => Fullness::Full,
            false => before.next(taken, capacity, self.info.thresholds),
        };
        self.info.fullness = next;
        if before == Fullness::Ample && next > before {
            self.info.warnings += 1;
        }
        (before != next).then_some(Crossed {
            before,
            next,
            is_refused,
        })
    }
}

impl Fullness {
    /// The percentage from which on it holds, in hundredths of `thresholds`.
    fn percent(self, thresholds: Thresholds) -> u64 {
        match self {
            Fullness::Ample => 0,
            Fullness::Warn => u64::from(thresholds.warn_percent),
            Fullness::Alarm => u64::from(thresholds.alarm_percent),
            Fullness::Full => 100,
        }
    }

    /// What follows it, with so much used of so much.
    pub fn next(self, used: u64, capacity: u64, thresholds: Thresholds) -> Fullness {
        let levels = [Fullness::Full, Fullness::Alarm, Fullness::Warn];
        let is_past = |level: &Fullness| {
            let back = if *level <= self { BACK_PERCENT } else { 0 };
            let percent = level.percent(thresholds).saturating_sub(back);
            u128::from(used) * 100 >= u128::from(capacity) * u128::from(percent)
        };
        let past = levels.into_iter().find(is_past);
        past.filter(|_| used > 0).unwrap_or(Fullness::Ample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Duration = Duration::from_millis(100);

    /// As where the lane of a volume is full, and others have room.
    #[test]
    fn guests_that_give_a_page_back_and_find_none_by_turns_make_one_event() {
        const CAPACITY: u64 = 1_000;
        const TAKEN: u64 = 600;
        let mut judged = Judged::default();
        let mut now = Time(0);
        let mut crossed = Vec::new();
        let mut look = |judged: &mut Judged, taken| {
            now = now + LOOK;
            let event = judged.judge(now, taken, CAPACITY);
            crossed.extend(event.map(|event| event.next));
            now
        };
        let mut at = look(&mut judged, TAKEN);
        for _ in 0..600 {
            judged.refused = Some(Refusal { at, taken: TAKEN });
            look(&mut judged, TAKEN);
            at = look(&mut judged, TAKEN - 1);
        }
        // Nobody asks any more.
        for _ in 0..200 {
            at = look(&mut judged, TAKEN);
        }
        judged.refused = Some(Refusal { at, taken: TAKEN });
        look(&mut judged, TAKEN);
        look(&mut judged, TAKEN - CAPACITY * BACK_PERCENT / 100);
        // More than a little is given back.
        look(&mut judged, TAKEN - CAPACITY * BACK_PERCENT / 100 - 1);
        let (full, ample) = (Fullness::Full, Fullness::Ample);
        assert_eq!(crossed, [full, ample, full, ample]);
    }

    #[test]
    fn a_threshold_is_crossed_up_where_it_is_and_down_a_little_below() {
        use Fullness::{Alarm, Ample, Full, Warn};
        let thresholds = Thresholds::default();
        let mut at = Ample;
        let steps = [
            (79, Ample),
            (80, Warn),
            (79, Warn),
            (78, Warn),
            (77, Ample),
            (96, Alarm),
            (100, Full),
            (98, Full),
            (97, Alarm),
            (93, Alarm),
            (92, Warn),
            (100, Full),
            (0, Ample),
        ];
        for (used, expected) in steps {
            at = at.next(used, 100, thresholds);
            assert_eq!(at, expected, "at {used}");
        }
        assert_eq!(Ample.next(0, 0, thresholds), Ample, "of nothing");
    }
}
