//! Which events of a lane are on record.
//!
//! Invariants:
//! - Each event is taken once; one that may still become another, when it can't any more.

use base::Time;
use engine::pool::{Event, EventKind};
use std::collections::BTreeSet;
use std::time::Duration;

/// An event of damage that was put right is told anew while more of it is found, so many
/// seconds at most after the last; then it stays as it is.
const SETTLED: Duration = Duration::from_secs(11);

/// Those that are on record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordedEvents {
    /// All up to this one.
    pub(super) to: u64,
    /// And these.
    beyond: BTreeSet<u64>,
}

impl RecordedEvents {
    /// Takes those of `events`, all after [`RecordedEvents::to`], that are new and will stay as
    /// they are by `now`; all that are new when there is no later.
    pub(super) fn take(&mut self, events: Vec<Event>, now: Time, is_last: bool) -> Vec<Event> {
        let newest = events.last().map_or(self.to, |event| event.sequence);
        let mut waits = None;
        let mut taken = Vec::new();
        for event in events {
            let is_settled = now.since(event.at) >= SETTLED;
            let may_go_on = event.kind == EventKind::BlockMended && !is_settled && !is_last;
            if may_go_on {
                waits = waits.or(Some(event.sequence));
            } else if self.beyond.insert(event.sequence) {
                taken.push(event);
            }
        }
        self.to = waits.map_or(newest, |first| first - 1);
        self.beyond.retain(|sequence| *sequence > self.to);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(100_000_000_000);

    fn event(sequence: u64, kind: EventKind, age_s: u64) -> Event {
        Event {
            sequence,
            at: Time(NOW.0 - age_s * 1_000_000_000),
            kind,
            text: String::new(),
            lost_blocks: None,
        }
    }

    fn numbers(taken: Vec<Event>) -> Vec<u64> {
        taken.iter().map(|event| event.sequence).collect()
    }

    #[test]
    fn each_event_is_taken_once_and_one_that_may_go_on_waits() {
        use EventKind::{BlockMended, DriveFailed};
        let mut taken = RecordedEvents::default();
        let seen = |age| {
            vec![
                event(1, DriveFailed, age),
                event(2, BlockMended, age),
                event(3, DriveFailed, age),
            ]
        };
        assert_eq!(numbers(taken.take(seen(1), NOW, false)), [1, 3]);
        assert_eq!(taken.to, 1, "the second is asked for again");
        assert!(numbers(taken.take(seen(2)[1..].to_vec(), NOW, false)).is_empty());
        // More was found: another event took its place.
        let later = vec![event(3, DriveFailed, 3), event(4, BlockMended, 0)];
        assert!(numbers(taken.take(later, NOW, false)).is_empty());
        assert_eq!(taken.to, 3);
        assert_eq!(
            numbers(taken.take(vec![event(4, BlockMended, 11)], NOW, false)),
            [4]
        );
        assert_eq!(taken.take(Vec::new(), NOW, false), []);
        assert_eq!(
            taken,
            RecordedEvents {
                to: 4,
                beyond: BTreeSet::new()
            }
        );
        assert_eq!(
            numbers(taken.take(vec![event(5, BlockMended, 0)], NOW, true)),
            [5]
        );
    }
}
