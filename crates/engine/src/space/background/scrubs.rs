//! The scrubs of a lane: whether one is wanted, what the last whole one found, and how far the one is
//! that goes on by itself.
//!
//! A scrub that goes on by itself is a round over the zones, in the order of their numbers: so the
//! zone that is next is the one that was scrubbed longest ago. Whoever opens the pool says how far
//! the round was ([`ScrubState`]), and keeps that: the lane has no time of day.
//!
//! Invariant: a zone counts as scrubbed once all its stripes were looked through.

use base::Time;
use std::cell::Cell;
use std::time::Duration;

/// What a scrub found, in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubFindings {
    /// Blocks that were damaged and have been repaired.
    pub mended: u64,
    /// Blocks that redundancy could not repair, those of earlier scrubs included.
    pub lost: u64,
    /// Lost blocks that were marked as lost before this scrub.
    pub still_lost: u64,
}

impl ScrubFindings {
    /// The sums of both, field by field.
    pub fn and(self, other: ScrubFindings) -> ScrubFindings {
        ScrubFindings {
            mended: self.mended + other.mended,
            lost: self.lost + other.lost,
            still_lost: self.still_lost + other.still_lost,
        }
    }
}

/// A scrub that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubInfo {
    /// The time since it ended.
    pub age: Duration,
    /// The result, in blocks.
    pub found: ScrubFindings,
}

/// How far a lane's scrubs are: what has to be kept from one opening to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubState {
    /// The time since the round began.
    pub age: Duration,
    /// Zones below this one were scrubbed in it.
    pub next_zone: u32,
    /// All zones were; the next round begins in its time.
    pub is_over: bool,
    /// What the round found so far.
    pub found: ScrubFindings,
    /// The last whole scrub.
    pub last: Option<ScrubInfo>,
}

/// A round over the zones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub began: Time,
    /// How old it was then, for it goes on from an opening before.
    before: Duration,
    /// Zones below this one were scrubbed.
    pub next_zone: u32,
    /// The zone that is being scrubbed, which use of it, and how many of its stripes are done.
    pub at: Option<(u32, u32, usize)>,
    pub is_over: bool,
    pub found: ScrubFindings,
}

impl Round {
    /// One that begins now.
    pub fn new(now: Time) -> Round {
        Round {
            began: now,
            before: Duration::ZERO,
            next_zone: 0,
            at: None,
            is_over: false,
            found: ScrubFindings::default(),
        }
    }

    /// The time since it began.
    pub fn age(&self, now: Time) -> Duration {
        self.before + now.since(self.began)
    }
}

/// The end of a scrub.
#[derive(Clone, Copy, Debug)]
struct Ended {
    at: Time,
    /// How long before `at` it was.
    before: Duration,
    found: ScrubFindings,
}

/// The scrubs since the opening.
#[derive(Debug, Default)]
pub(crate) struct Scrubs {
    is_wanted: Cell<bool>,
    ended: Cell<u64>,
    /// Of them, those that went on by themselves.
    rounds_ended: Cell<u64>,
    /// The last whole scrub.
    last: Cell<Option<Ended>>,
    /// None until somebody says how far it was.
    round: Cell<Option<Round>>,
}

impl Scrubs {
    /// Asks for a scrub. One that is under way will do.
    pub fn want(&self) {
        self.is_wanted.set(true);
    }

    /// A scrub that is under way, or wanted, ends without a result.
    pub fn call_off(&self) {
        self.is_wanted.set(false);
    }

    /// Whether a scrub is to begin, or to go on.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.get()
    }

    /// A whole scrub ends, which was asked for. The next round begins its time from now.
    pub fn end(&self, now: Time, found: ScrubFindings) {
        self.is_wanted.set(false);
        self.note_end(now, found);
        if self.round.get().is_some() {
            let is_over = true;
            self.round.set(Some(Round {
                is_over,
                found,
                ..Round::new(now)
            }));
        }
    }

    fn note_end(&self, now: Time, found: ScrubFindings) {
        let (at, before) = (now, Duration::ZERO);
        self.last.set(Some(Ended { at, before, found }));
        self.ended.set(self.ended.get() + 1);
    }

    /// Whole scrubs since the opening.
    pub fn ended(&self) -> u64 {
        self.ended.get()
    }

    /// Whole rounds since the opening.
    pub fn rounds_ended(&self) -> u64 {
        self.rounds_ended.get()
    }

    /// What the last whole scrub found.
    pub fn last_found(&self) -> Option<ScrubFindings> {
        self.last.get().map(|last| last.found)
    }

    /// The last whole scrub.
    pub fn last(&self, now: Time) -> Option<ScrubInfo> {
        let last = self.last.get()?;
        Some(ScrubInfo {
            age: last.before + now.since(last.at),
            found: last.found,
        })
    }

    /// Goes on from a state that was kept.
    pub fn go_on_from(&self, state: ScrubState, now: Time) {
        let ScrubState {
            age,
            next_zone,
            is_over,
            found,
            last,
        } = state;
        self.round.set(Some(Round {
            before: age,
            next_zone,
            is_over,
            found,
            ..Round::new(now)
        }));
        // One since the opening is the newer one.
        if let (None, Some(last)) = (self.last.get(), last) {
            let (at, before, found) = (now, last.age, last.found);
            self.last.set(Some(Ended { at, before, found }));
        }
    }

    /// How far they are, to be kept; none before anybody has said how far they were.
    pub fn state(&self, now: Time) -> Option<ScrubState> {
        let round = self.round.get()?;
        Some(ScrubState {
            age: round.age(now),
            next_zone: round.next_zone,
            is_over: round.is_over,
            found: round.found,
            last: self.last(now),
        })
    }

    /// The round that is under way, or over; one that was over for long enough begins anew.
    pub fn round(&self, within: Duration, now: Time) -> Option<Round> {
        let round = self.round.get()?;
        let begins = round.is_over && round.age(now) >= within;
        let round = if begins { Round::new(now) } else { round };
        self.round.set(Some(round));
        Some(round)
    }

    /// The round as it is.
    pub fn present_round(&self) -> Option<Round> {
        self.round.get()
    }

    /// The round is so far.
    pub fn set_round(&self, round: Round) {
        self.round.set(Some(round));
    }

    /// The round has gone over all zones.
    pub fn end_round(&self, now: Time) {
        if let Some(round) = self.end_empty_round() {
            self.note_end(now, round.found);
        }
    }

    /// The round has ended without a zone to go over, which is no scrub. The round, if there was one.
    pub fn end_empty_round(&self) -> Option<Round> {
        let round = self.round.get()?;
        self.round.set(Some(Round {
            is_over: true,
            at: None,
            ..round
        }));
        self.rounds_ended.set(self.rounds_ended.get() + 1);
        Some(round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Time {
        Time(seconds * 1_000_000_000)
    }

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_round_goes_on_from_the_opening_before_and_the_next_begins_in_its_time() {
        let scrubs = Scrubs::default();
        assert!(scrubs.round(s(100), at(5)).is_none(), "nobody said so");
        let state = ScrubState {
            age: s(40),
            next_zone: 7,
            ..ScrubState::default()
        };
        scrubs.go_on_from(state, at(5));
        let round = scrubs.round(s(100), at(10)).unwrap();
        assert_eq!((round.age(at(10)), round.next_zone), (s(45), 7));
        scrubs.end_round(at(20));
        assert!(scrubs.round(s(100), at(64)).unwrap().is_over);
        let next = scrubs.round(s(100), at(65)).unwrap();
        assert!(!next.is_over && next.next_zone == 0);
        assert_eq!(scrubs.last(at(65)).unwrap().age, s(45));
        assert_eq!((scrubs.ended(), scrubs.rounds_ended()), (1, 1));
        assert!(scrubs.end_empty_round().is_some());
        assert_eq!((scrubs.ended(), scrubs.rounds_ended()), (1, 2));
    }

    #[test]
    fn a_scrub_that_was_asked_for_is_a_round_of_its_own() {
        let scrubs = Scrubs::default();
        let last = Some(ScrubInfo {
            age: s(1000),
            found: ScrubFindings::default(),
        });
        let state = ScrubState {
            next_zone: 3,
            last,
            ..ScrubState::default()
        };
        scrubs.go_on_from(state, at(0));
        assert_eq!(scrubs.last(at(1)).unwrap().age, s(1001));
        scrubs.want();
        scrubs.end(at(50), ScrubFindings::default());
        let state = scrubs.state(at(60)).unwrap();
        assert!(state.is_over);
        assert_eq!((state.age, state.last.unwrap().age), (s(10), s(10)));
    }
}
