//! The space that remains once a group has left: asked before it leaves, as a pool that is too
//! full then empties its trash.
//!
//! Invariant: zones that no lane has taken yet count once for all lanes.

use super::fullness::Thresholds;
use crate::drives::Zone;
use crate::pool::{Lane, PoolError};
use crate::space::promise;
use crate::world::World;
use std::rc::Rc;

/// What is taken of a pool, and the room that it has, without one of its groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// Bytes in use or promised to thick volumes, those of the group included.
    taken_bytes: u64,
    /// Bytes of the zones in use in the other groups, without those that are kept back.
    in_use_bytes: u64,
    /// Bytes of the other groups' zones that no lane has taken yet.
    unopened_bytes: u64,
}

impl Remains {
    /// That of several lanes together.
    pub fn of_lanes(lanes: impl IntoIterator<Item = Remains>) -> Remains {
        let with = |all: Remains, lane: Remains| Remains {
            taken_bytes: all.taken_bytes + lane.taken_bytes,
            in_use_bytes: all.in_use_bytes + lane.in_use_bytes,
            unopened_bytes: all.unopened_bytes.max(lane.unopened_bytes),
        };
        lanes.into_iter().reduce(with).unwrap_or_default()
    }

    /// Bytes that would be used, in percent of those that are left.
    pub fn percent(&self) -> u64 {
        let percent = u128::from(self.taken_bytes) * 100 / u128::from(self.capacity_bytes().max(1));
        u64::try_from(percent).unwrap_or(u64::MAX)
    }

    /// Whether the pool would be past the threshold of its alarm.
    pub fn is_past_alarm(&self, thresholds: Thresholds) -> bool {
        self.percent() >= u64::from(thresholds.alarm_percent)
    }

    /// Bytes that volumes could map in all.
    pub fn capacity_bytes(&self) -> u64 {
        self.in_use_bytes + self.unopened_bytes
    }

    /// Bytes that would be free.
    pub fn free_bytes(&self) -> u64 {
        self.capacity_bytes().saturating_sub(self.taken_bytes)
    }
}

impl<W: World> Lane<W> {
    /// What this lane would take, and have, without the group of this number.
    ///
    /// # Errors
    /// `NotFound` for a group that is not there.
    pub fn remains_without(&self, index: u16) -> Result<Remains, PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let group = inner.drives().found_group(index)?;
        let of_group = inner.drives().zones_of(&group);
        let (used, others) = {
            let space = inner.space();
            let used_in = |zone: &Rc<Zone<W>>| space.used_in(zone.shape.zone);
            let of_group: u64 = of_group.iter().map(used_in).sum();
            let free = space.free() - space.free_of(index);
            (space.used(), space.used() - of_group + free)
        };
        let unopened = inner.drives().unopened_pages() - inner.drives().unopened_of(&group);
        let kept = promise::kept_of(others + unopened);
        let page_bytes = inner.page_bytes();
        Ok(Remains {
            taken_bytes: (used + inner.promised_pages()) * page_bytes,
            in_use_bytes: others.saturating_sub(kept) * page_bytes,
            unopened_bytes: unopened * page_bytes,
        })
    }
}
