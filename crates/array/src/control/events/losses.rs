//! Which pools have lost blocks, by the record of events.
//!
//! Invariant: a loss counts until a whole scrub of that lane ends after it with no block lost, also
//! over restarts.

use super::PoolEvent;
use std::collections::BTreeMap;

/// What is known of blocks that a pool has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Events that told of lost blocks.
    pub events: u64,
    /// Lost blocks that the last whole scrub since has found.
    pub scrubbed_blocks: u64,
    /// When the first of these events was, in microseconds since 1970.
    pub since_unix_us: u64,
}

impl Loss {
    fn and(self, other: Loss) -> Loss {
        Loss {
            events: self.events + other.events,
            scrubbed_blocks: self.scrubbed_blocks + other.scrubbed_blocks,
            since_unix_us: self.since_unix_us.min(other.since_unix_us),
        }
    }
}

/// Losses of lanes, by the UUID of the pool and the lane.
#[derive(Clone, Debug, Default)]
pub struct Losses(BTreeMap<(String, u16), Loss>);

impl Losses {
    /// Takes in events, oldest first.
    pub fn take(&mut self, events: &[PoolEvent]) {
        for event in events {
            let is_scrub = event.kind == "scrub";
            let (Some(lost), true) = (event.lost_blocks, is_scrub || event.kind == "block_lost")
            else {
                continue;
            };
            let lane = (event.pool_uuid.clone(), event.lane);
            if is_scrub && lost == 0 {
                self.0.remove(&lane);
                continue;
            }
            let loss = self.0.entry(lane).or_insert(Loss {
                events: 0,
                scrubbed_blocks: 0,
                since_unix_us: event.at_unix_us,
            });
            match is_scrub {
                true => loss.scrubbed_blocks = lost,
                false => loss.events += 1,
            }
        }
    }

    /// What the pool with this UUID has lost.
    pub fn of(&self, pool_uuid: &str) -> Option<Loss> {
        let of_pool = self.0.iter().filter(|((uuid, _), _)| uuid == pool_uuid);
        of_pool.map(|(_, loss)| *loss).reduce(Loss::and)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, (lane, lost_blocks): (u16, Option<u64>), at_unix_us: u64) -> PoolEvent {
        PoolEvent {
            pool: "p".to_owned(),
            pool_uuid: "u".to_owned(),
            lane,
            sequence: 0,
            at_unix_us,
            kind: kind.to_owned(),
            text: String::new(),
            lost_blocks,
            before_start: false,
        }
    }

    fn loss(events: u64, scrubbed_blocks: u64, since_unix_us: u64) -> Option<Loss> {
        Some(Loss {
            events,
            scrubbed_blocks,
            since_unix_us,
        })
    }

    #[test]
    fn a_loss_counts_until_a_scrub_of_its_lane_ends_with_none() {
        let mut losses = Losses::default();
        let steps = [
            (event("scrub", (0, None), 1), None),
            (event("block_lost", (0, Some(1)), 2), loss(1, 0, 2)),
            (event("block_lost", (1, Some(1)), 3), loss(2, 0, 2)),
            (event("scrub", (0, None), 4), loss(2, 0, 2)),
            (event("scrub", (0, Some(7)), 5), loss(2, 7, 2)),
            (event("scrub", (0, Some(0)), 6), loss(1, 0, 3)),
            (event("rebuild", (1, Some(0)), 7), loss(1, 0, 3)),
            (event("scrub", (1, Some(0)), 8), None),
            // Told of before the record began.
            (event("scrub", (1, Some(2)), 9), loss(0, 2, 9)),
        ];
        for (event, expected) in steps {
            losses.take(std::slice::from_ref(&event));
            assert_eq!(losses.of("u"), expected, "after {event:?}");
        }
        assert_eq!(losses.of("another"), None);
    }
}
