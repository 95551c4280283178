//! The fullness of a pool, and the warnings about it.
//!
//! Each lane says what it uses; the first one judges for all. Invariants:
//! - Crossing a threshold, up or back down, is one event. Down counts only some percent
//!   below, so that a pool at a threshold does not tell of it over and over.
//! - What is promised to thick volumes counts as used: nobody else can have it.
//! - A pool that had no page for somebody is full for a while, or until so much is given back as
//!   counts as down. So hosts that give single pages back and ask for more make no events.

use crate::pool::drives::EventKind;
use crate::pool::{Inner, Pool, promise};
use crate::world::World;
use base::Time;
use std::rc::Weak;
use std::time::Duration;

/// How often to look.
const LOOK: Duration = Duration::from_millis(100);

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
    at: Time,
    /// Pages that were taken then.
    taken: u64,
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
struct Crossed {
    before: Fullness,
    next: Fullness,
    /// Somebody found no page.
    is_refused: bool,
}

impl Judged {
    /// Judges a pool with so many pages taken of so many.
    fn judge(&mut self, now: Time, taken: u64, capacity: u64) -> Option<Crossed> {
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

/// Says and judges how full the pool is, as long as it is there.
pub(super) async fn watch<W: World>(world: W, pool: Weak<Inner<W>>) {
    loop {
        {
            let Some(inner) = pool.upgrade() else { return };
            inner.say_space();
            if inner.drives.lane().index == 0 {
                inner.judge_fullness();
            }
        }
        world.sleep(LOOK).await;
    }
}

impl<W: World> Inner<W> {
    fn say_space(&self) {
        let (used, free) = {
            let space = self.space.borrow();
            (space.used(), space.free())
        };
        let kept = promise::kept_of(used + free + self.unopened_pages());
        // Less than none, where what is kept lies in zones that are not yet in use.
        let pages = (used + free) as i64 - kept as i64;
        let lane = self.drives.lane();
        let taken = used + self.promised_pages();
        lane.commons.say_space(lane.index, taken, pages);
    }

    fn judge_fullness(&self) {
        let commons = &self.drives.lane().commons;
        let (taken, in_use) = commons.space();
        let capacity = self.unopened_pages().saturating_add_signed(in_use);
        let now = self.world.now();
        let judge = |judged: &mut Judged| {
            let crossed = judged.judge(now, taken, capacity);
            crossed.map(|crossed| (crossed, judged.info.thresholds))
        };
        let Some((crossed, thresholds)) = commons.with_judged(judge) else {
            return;
        };
        let Crossed {
            before,
            next,
            is_refused,
        } = crossed;
        let percent = taken * 100 / capacity.max(1);
        let text = text((before, next), is_refused, percent, thresholds);
        let (kind, mark) = match next > before {
            true => (EventKind::Space, "pool fuller than a threshold"),
            false => (EventKind::SpaceFreed, "pool below a threshold again"),
        };
        self.drives.event(kind, text);
        self.world.reached(mark);
    }

    /// Somebody found no page.
    pub(crate) fn say_refused(&self) {
        // What was given back before counts no more.
        self.say_space();
        let at = self.world.now();
        let commons = &self.drives.lane().commons;
        let (taken, _) = commons.space();
        commons.with_judged(|judged| judged.refused = Some(Refusal { at, taken }));
    }
}

fn text(
    (before, next): (Fullness, Fullness),
    is_refused: bool,
    percent: u64,
    thresholds: Thresholds,
) -> String {
    let Thresholds {
        warn_percent: warn,
        alarm_percent: alarm,
    } = thresholds;
    let what = match (next, next > before) {
        (Fullness::Full, _) if is_refused => {
            "a write found no free page; writes that need space fail until you free some".to_owned()
        }
        (Fullness::Full, _) => {
            "it is full, and writes that need space fail until you free some".to_owned()
        }
        (Fullness::Alarm, true) => format!("it is above the alarm threshold of {alarm} %"),
        (Fullness::Warn, true) => format!("it is above the warning threshold of {warn} %"),
        (Fullness::Alarm, false) => {
            format!("it is not full any more; the alarm threshold is {alarm} %")
        }
        (Fullness::Warn, false) => format!(
            "it is below the alarm threshold of {alarm} %; the warning threshold is {warn} %"
        ),
        (Fullness::Ample, _) => format!("it is below the warning threshold of {warn} %"),
    };
    format!("{percent} % of the pool is used or promised to thick volumes: {what}")
}

impl<W: World> Pool<W> {
    /// How full it is, as of the last look; the same in all lanes.
    pub fn fullness(&self) -> FullnessInfo {
        let commons = &self.inner.drives.lane().commons;
        commons.with_judged(|judged| judged.info)
    }

    /// Sets from which part of the capacity on people are told, for all lanes.
    pub fn set_thresholds(&self, thresholds: Thresholds) {
        let commons = &self.inner.drives.lane().commons;
        commons.with_judged(|judged| judged.info.thresholds = thresholds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
