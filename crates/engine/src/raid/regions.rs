//! Where the copies of a group may differ.
//!
//! A write that is cut short may leave copies that differ. A region is marked
//! dirty, durably, before the first write to it; after a crash its copies are made
//! equal again, before anything there is read. A region
//! without writes for a while is marked clean.
//!
//! Invariants:
//! - While a write is in flight in a region, the region's dirty mark is durable and
//!   no clean mark is on its way.
//! - A region is a suspect from the opening after a crash until its copies have
//!   been made equal.

use base::{GroupOffset, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;

#[derive(Debug, Default)]
struct Region {
    in_flight: u32,
    /// The dirty mark is durable.
    marked: bool,
    last_write: Time,
}

/// The regions that are not clean.
#[derive(Debug)]
pub struct Regions {
    region_bytes: u64,
    active: BTreeMap<u32, Region>,
    suspects: BTreeSet<u32>,
}

impl Regions {
    /// Regions of which `dirty` were so when the pool was last in use.
    pub fn new(region_bytes: u32, dirty: &BTreeSet<u32>) -> Self {
        let marked = |region: &u32| {
            (
                *region,
                Region {
                    marked: true,
                    ..Region::default()
                },
            )
        };
        Regions {
            region_bytes: u64::from(region_bytes),
            active: dirty.iter().map(marked).collect(),
            suspects: dirty.clone(),
        }
    }

    /// The regions that a run of bytes touches.
    pub fn of(&self, at: GroupOffset, len: usize) -> RangeInclusive<u32> {
        let last = at.0 + len as u64 - 1;
        (at.0 / self.region_bytes) as u32..=(last / self.region_bytes) as u32
    }

    /// Where a region begins, and its length.
    pub fn span(&self, region: u32) -> (GroupOffset, u64) {
        (
            GroupOffset(u64::from(region) * self.region_bytes),
            self.region_bytes,
        )
    }

    /// A write begins. Returns the regions whose mark is not durable yet: the
    /// caller makes it so and says [`Regions::marked`] before it writes.
    pub fn begin(&mut self, regions: RangeInclusive<u32>) -> Vec<u32> {
        let mut unmarked = Vec::new();
        for region in regions {
            let entry = self.active.entry(region).or_default();
            entry.in_flight += 1;
            if !entry.marked {
                unmarked.push(region);
            }
        }
        unmarked
    }

    /// The dirty marks of `regions` are durable.
    pub fn marked(&mut self, regions: &[u32]) {
        for region in regions {
            if let Some(entry) = self.active.get_mut(region) {
                entry.marked = true;
            }
        }
    }

    /// A write has ended, well or not.
    pub fn end(&mut self, regions: RangeInclusive<u32>, now: Time) {
        for region in regions {
            let entry = self.active.get_mut(&region);
            let entry = entry.unwrap_or_else(|| panic!("region {region} lost while written"));
            assert!(entry.in_flight > 0, "region {region} has no write to end");
            entry.in_flight -= 1;
            entry.last_write = now;
        }
    }

    /// Whether copies may differ anywhere in `regions` because of a crash.
    pub fn is_suspect(&self, mut regions: RangeInclusive<u32>) -> bool {
        !self.suspects.is_empty() && regions.any(|region| self.suspects.contains(&region))
    }

    /// The first suspect, if there is one.
    pub fn next_suspect(&self) -> Option<u32> {
        self.suspects.first().copied()
    }

    /// Suspects left.
    pub fn suspects(&self) -> usize {
        self.suspects.len()
    }

    /// The copies of `region` are equal again.
    pub fn equalised(&mut self, region: u32) {
        self.suspects.remove(&region);
    }

    /// Takes out the marked regions without a write since `idle` before `now`. The
    /// caller queues their clean marks before it awaits anything.
    pub fn take_idle(&mut self, now: Time, idle: Duration) -> Vec<u32> {
        let is_idle = |region: &u32, entry: &Region| {
            entry.in_flight == 0
                && entry.marked
                && now.since(entry.last_write) >= idle
                && !self.suspects.contains(region)
        };
        let taken: Vec<u32> = self
            .active
            .iter()
            .filter(|(r, e)| is_idle(r, e))
            .map(|(region, _)| *region)
            .collect();
        for region in &taken {
            self.active.remove(region);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_clean_only_when_idle_and_marked() {
        let mut regions = Regions::new(4096, &BTreeSet::new());
        let touched = regions.of(GroupOffset(4000), 200);
        assert_eq!(touched, 0..=1);
        assert_eq!(regions.begin(touched.clone()), [0, 1]);
        assert_eq!(
            regions.begin(0..=0),
            [0],
            "not marked yet, so a second write marks too"
        );
        regions.marked(&[0, 1]);
        regions.end(touched, Time(100));
        let idle = Duration::from_nanos(10);
        assert_eq!(
            regions.take_idle(Time(110), idle),
            [1],
            "region 0 still has a write"
        );
        regions.end(0..=0, Time(105));
        assert!(regions.take_idle(Time(110), idle).is_empty());
        assert_eq!(regions.take_idle(Time(115), idle), [0]);
        assert_eq!(
            regions.begin(0..=0),
            [0],
            "a clean region must be marked again"
        );
    }

    #[test]
    fn suspects_stay_until_equalised() {
        let mut regions = Regions::new(4096, &BTreeSet::from([2, 5]));
        assert!(regions.is_suspect(1..=2));
        assert!(
            regions.begin(2..=2).is_empty(),
            "its mark is durable already"
        );
        regions.end(2..=2, Time(0));
        assert!(regions.take_idle(Time(1000), Duration::ZERO).is_empty());
        regions.equalised(2);
        assert!(!regions.is_suspect(2..=2));
        assert_eq!(regions.take_idle(Time(1000), Duration::ZERO), [2]);
        assert_eq!(regions.next_suspect(), Some(5));
    }
}
