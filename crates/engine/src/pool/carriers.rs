//! Chooses the drives that carry the metadata and the logs of each lane.
//!
//! Invariants:
//! - The logs of a lane lie on as many drives of one span as it can lose, and one more: losing
//!   them all is losing the span, also at the levels that the group can go to while it is used.
//! - One span has as many drives that carry the metadata, for the same reason.
//! - Every lane lays out all lanes, in the same way. So lanes spread over the drives without asking
//!   each other: what all of them write to would be a hot spot, and flash that wears out together.

use super::METADATA_COPIES;
use crate::raid::{Geometry, Level, Protection};
use base::BLOCK_BYTES;
use std::collections::BTreeMap;

/// Group and place of a drive.
pub(super) type Place = (usize, usize);

/// What logs weigh, and a copy of the metadata: every write goes to a log, and few to the journal.
const LOG_WEIGHT: u64 = 4;
const METADATA_WEIGHT: u64 = 1;

/// Drives that are lost together with data when all are lost.
#[derive(Clone, Debug)]
pub(super) struct Span {
    /// Those that can carry something.
    pub(super) places: Vec<Place>,
    /// How many have to, so that one is left as long as the data is.
    pub(super) wanted: usize,
    /// Whether they stay in one span when their group gets another level.
    pub(super) stays_one: bool,
}

/// What can carry something.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans {
    /// Of groups of data, for the metadata.
    metadata: Vec<Span>,
    /// The same, for the logs.
    data: Vec<Span>,
    /// Of a log group.
    log: Vec<Span>,
}

impl Spans {
    /// Adds the spans of a group of data, or of a log group.
    pub(super) fn add(&mut self, is_log: bool, spans: Vec<Span>) {
        if is_log {
            // It keeps its level as long as it is there.
            let stays = |span| Span {
                stays_one: true,
                ..span
            };
            return self.log.extend(spans.into_iter().map(stays));
        }
        self.metadata.extend(spans.iter().cloned());
        self.data.extend(spans);
    }

    /// Drives for which `is_able` is false carry nothing.
    pub(super) fn retain(&mut self, is_able: impl Fn(Place) -> bool) {
        let spans = self.metadata.iter_mut();
        spans.for_each(|span| span.places.retain(|place| is_able(*place)));
        self.retain_for_logs(is_able);
    }

    /// Drives for which `is_able` is false carry no logs.
    pub(super) fn retain_for_logs(&mut self, is_able: impl Fn(Place) -> bool) {
        let spans = self.data.iter_mut().chain(&mut self.log);
        spans.for_each(|span| span.places.retain(|place| is_able(*place)));
    }
}

/// The drives that carry something of one lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Carriers {
    pub(super) logs: Vec<Place>,
    pub(super) metadata: Vec<Place>,
}

/// The spans of a group. A spread group is one: any of its drives meet in some zone.
pub(super) fn spans_of(
    index: usize,
    protection: impl Into<Protection>,
    drives: usize,
) -> Vec<Span> {
    let Protection { level, spread } = protection.into();
    if spread.is_some() {
        return vec![Span {
            places: (0..drives).map(|place| (index, place)).collect(),
            wanted: level.redundancy() + 1,
            stays_one: true,
        }];
    }
    let shape = |level| Geometry::of(level, drives, BLOCK_BYTES as u64).ok();
    let Some(geometry) = shape(level) else {
        return Vec::new();
    };
    let later = Level::ALL.into_iter().filter(|to| level.can_become(*to));
    let later: Vec<Geometry> = later.filter_map(shape).collect();
    let stays_one = |span: usize| {
        later.iter().all(|shape| {
            let mut spans = geometry.span_places(span).map(|place| shape.span_of(place));
            let first = spans.next();
            spans.all(|span| Some(span) == first)
        })
    };
    let span = |span| Span {
        places: geometry
            .span_places(span)
            .map(|place| (index, place))
            .collect(),
        wanted: geometry.redundancy() + 1,
        stays_one: stays_one(span),
    };
    (0..geometry.spans).map(span).collect()
}

/// The carriers of `lane`, one of so many. The logs lie on a log group that can carry them. Flash
/// goes first, then drives that carry nothing of the same lane, then those that carry the least of
/// others. None where no span has enough drives.
pub(super) fn plan(
    spans: &Spans,
    (lanes, lane): (u16, u16),
    spins: impl Fn(Place) -> bool,
) -> Carriers {
    let mut choice = Choice {
        spans: &spans.log,
        spins: &spins,
        loads: BTreeMap::new(),
    };
    let logs: Vec<_> = (0..lanes)
        .map(|_| {
            choice.spans = &spans.log;
            let on_log_group = choice.span(&[], LOG_WEIGHT);
            if !on_log_group.is_empty() {
                return on_log_group;
            }
            choice.spans = &spans.data;
            choice.span(&[], LOG_WEIGHT)
        })
        .collect();
    choice.spans = &spans.metadata;
    let mut own = Carriers::default();
    for (number, logs) in (0..).zip(logs) {
        let mut metadata = choice.span(&logs, METADATA_WEIGHT);
        while !metadata.is_empty() && metadata.len() < METADATA_COPIES {
            let Some(next) = choice.another(&metadata, &logs) else {
                break;
            };
            metadata.push(next);
        }
        if number == lane {
            own = Carriers { logs, metadata };
        }
    }
    own
}

/// What lanes have chosen so far.
struct Choice<'a> {
    spans: &'a [Span],
    spins: &'a dyn Fn(Place) -> bool,
    /// What each drive carries already.
    loads: BTreeMap<Place, u64>,
}

impl Choice<'_> {
    /// How little a drive is suited: the lowest first.
    fn rank(&self, place: Place, avoided: &[Place]) -> (bool, bool, u64) {
        let load = self.loads.get(&place).copied().unwrap_or(0);
        ((self.spins)(place), avoided.contains(&place), load)
    }

    fn take(&mut self, places: &[Place], weight: u64) {
        for place in places {
            *self.loads.entry(*place).or_default() += weight;
        }
    }

    /// As many drives of one span as it can lose, and one more.
    fn span(&mut self, avoided: &[Place], weight: u64) -> Vec<Place> {
        let able = |span: &&Span| span.stays_one && span.places.len() >= span.wanted;
        let chosen = self.spans.iter().filter(able).map(|span| {
            let mut places = span.places.clone();
            places.sort_by_key(|place| self.rank(*place, avoided));
            places.truncate(span.wanted);
            places
        });
        let sums = |places: &Vec<Place>| {
            let ranks = places.iter().map(|place| self.rank(*place, avoided));
            ranks.fold((0, 0, 0), |(slow, shared, load), rank| {
                (
                    slow + u64::from(rank.0),
                    shared + u64::from(rank.1),
                    load + rank.2,
                )
            })
        };
        let best = chosen.min_by_key(sums).unwrap_or_default();
        self.take(&best, weight);
        best
    }

    /// Another drive for the metadata, wherever it is.
    fn another(&mut self, taken: &[Place], avoided: &[Place]) -> Option<Place> {
        let all = self.spans.iter().flat_map(|span| &span.places);
        let free = all.filter(|place| !taken.contains(place));
        let next = *free.min_by_key(|place| self.rank(**place, avoided))?;
        self.take(&[next], METADATA_WEIGHT);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: u64 = 64 << 10;
    const RAID10: Level = Level::Raid10 { copies: 2 };

    fn of_data(spans: Vec<Span>) -> Spans {
        let mut all = Spans::default();
        all.add(false, spans);
        all
    }

    fn all_lanes(spans: Vec<Span>, lanes: u16, spins: impl Fn(Place) -> bool) -> Vec<Carriers> {
        let spans = of_data(spans);
        let of = |lane| plan(&spans, (lanes, lane), &spins);
        (0..lanes).map(of).collect()
    }

    fn shared(one: &[Place], other: &[Place]) -> usize {
        one.iter().filter(|place| other.contains(place)).count()
    }

    #[test]
    fn lanes_and_copies_lie_on_drives_of_their_own_where_there_are_enough() {
        for (level, drives, lanes) in [
            (Level::Raid6, 12, 4),
            (RAID10, 8, 4),
            (Level::Raid50, 12, 4),
            (Level::Raid10 { copies: 3 }, 12, 4),
        ] {
            let plans = all_lanes(spans_of(0, level, drives), lanes, |_| false);
            for (lane, own) in plans.iter().enumerate() {
                assert_eq!(shared(&own.logs, &own.metadata), 0, "{level}, {own:?}");
                for other in &plans[..lane] {
                    assert_eq!(shared(&own.logs, &other.logs), 0, "{level}, {plans:?}");
                }
            }
        }
    }

    #[test]
    fn each_log_and_each_copy_outlives_what_its_span_can_lose() {
        for level in Level::ALL {
            for drives in 1..=16 {
                let Ok(shape) = Geometry::of(level, drives, UNIT) else {
                    continue;
                };
                let spans = spans_of(0, level, drives);
                for own in all_lanes(spans, 5, |_| false) {
                    let in_span = |places: &[Place], span| {
                        let of_span = places.iter().filter(|(_, at)| shape.span_of(*at) == span);
                        of_span.count()
                    };
                    let wanted = shape.redundancy() + 1;
                    let span = shape.span_of(own.logs[0].1);
                    assert_eq!(own.logs.len(), wanted, "{level} of {drives}");
                    assert_eq!(in_span(&own.logs, span), wanted, "{level} of {drives}");
                    let safe = |span| in_span(&own.metadata, span) >= wanted;
                    assert!((0..shape.spans).any(safe), "{level} of {drives}: {own:?}");
                    assert_eq!(own.metadata.len(), METADATA_COPIES.min(drives));
                }
            }
        }
    }

    #[test]
    fn a_pair_that_another_level_would_part_carries_no_log() {
        // Of six drives RAID 50 makes two sets of three: the second pair is in both.
        let spans = spans_of(0, RAID10, 6);
        let stay: Vec<bool> = spans.iter().map(|span| span.stays_one).collect();
        assert_eq!(stay, [true, false, true]);
        let own = plan(&of_data(spans), (2, 1), |_| false);
        assert_eq!(own.logs, [(0, 4), (0, 5)]);
        assert_eq!(own.metadata, [(0, 0), (0, 1), (0, 3)]);
    }

    #[test]
    fn every_pair_of_a_log_group_carries_logs() {
        let mut spans = of_data(spans_of(0, RAID10, 2));
        spans.add(true, spans_of(1, RAID10, 6));
        let logs = |lane| plan(&spans, (3, lane), |_| false).logs;
        assert_eq!(logs(0), [(1, 0), (1, 1)]);
        assert_eq!(logs(1), [(1, 2), (1, 3)]);
        assert_eq!(logs(2), [(1, 4), (1, 5)]);
    }

    #[test]
    fn logs_lie_on_the_log_group_and_metadata_does_not() {
        let mut spans = of_data(spans_of(0, Level::Raid6, 6));
        spans.add(true, spans_of(1, RAID10, 4));
        let own = |lane| plan(&spans, (2, lane), |(group, _)| group == 0);
        assert_eq!(own(0).logs, [(1, 0), (1, 1)]);
        assert_eq!(own(1).logs, [(1, 2), (1, 3)]);
        assert_eq!(own(0).metadata, [(0, 0), (0, 1), (0, 2)]);
        assert_eq!(own(1).metadata, [(0, 3), (0, 4), (0, 5)]);
    }

    #[test]
    fn logs_lie_on_drives_of_data_where_the_log_group_lacks_one() {
        let mut spans = of_data(spans_of(0, RAID10, 4));
        spans.add(true, spans_of(1, RAID10, 2));
        spans.retain(|at| at != (1, 1));
        let own = plan(&spans, (2, 1), |_| false);
        assert_eq!(own.logs, [(0, 2), (0, 3)]);
    }

    #[test]
    fn a_drive_that_can_take_no_logs_may_carry_metadata() {
        let mut spans = of_data(spans_of(0, Level::Raid5, 4));
        spans.retain(|(_, place)| place != 3);
        spans.retain_for_logs(|(_, place)| place != 0);
        let own = plan(&spans, (1, 0), |_| false);
        assert_eq!(own.logs, [(0, 1), (0, 2)]);
        assert_eq!(own.metadata, [(0, 0), (0, 1), (0, 2)]);
    }

    #[test]
    fn flash_goes_first_and_one_lane_lies_as_ever() {
        let mut spans = spans_of(0, Level::Raid6, 6);
        spans.extend(spans_of(1, RAID10, 2));
        for own in all_lanes(spans.clone(), 3, |(group, _)| group == 0) {
            assert_eq!(own.logs, [(1, 0), (1, 1)]);
        }
        let alone = plan(&of_data(spans), (1, 0), |_| false);
        assert_eq!(alone.logs, [(0, 0), (0, 1), (0, 2)]);
        assert_eq!(alone.metadata, [(0, 3), (0, 4), (0, 5)]);
    }
}
