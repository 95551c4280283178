//! The agreement of lanes about groups, so that a change of a pool is made in all of them or in
//! none.
//!
//! Invariants:
//! - The first lane decides: what its labels say of a group, durably, the others do, too,
//!   at once or after the next opening.
//! - A group that leaves is in the tables of all lanes, and its drives carry the labels of
//!   all, until nothing of any lane is in it; and no label on them goes before no table of
//!   any lane has it. The last lane's labels go first, the first one's last.
//! - A drive that any lane was ordered to take out of use goes in all.

use crate::label::GroupEntry;
use base::Uuid;
use std::collections::{BTreeMap, BTreeSet};

/// How far a lane is with a group that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Departure {
    /// Nothing of the lane is in it, and nothing will be.
    Emptied,
    /// The lane's table has it no more, durably.
    Left,
    /// The lane has no label on its drives any more.
    Wiped,
}

/// What the lanes have said.
#[derive(Debug, Default)]
pub(super) struct Accord {
    /// Of each lane, its groups as its labels have them.
    decided: BTreeMap<u16, Vec<GroupEntry>>,
    /// By group and lane.
    departures: BTreeMap<(u16, u16), Departure>,
    /// Of each lane, the drives that it was ordered to take out of use.
    ordered_out: BTreeMap<u16, BTreeSet<Uuid>>,
    /// Grows with everything that is said.
    turn: u64,
}

impl Accord {
    /// Keeps the decision of a lane; see [`super::LaneRegistry::decide`].
    pub fn decide(&mut self, lane: u16, groups: &[GroupEntry]) {
        if self
            .decided
            .get(&lane)
            .is_none_or(|before| before != groups)
        {
            self.decided.insert(lane, groups.to_vec());
            self.turn += 1;
        }
    }

    /// Keeps the drives that a lane was ordered to take out of use; see
    /// [`super::LaneRegistry::order_out`].
    pub fn order_out(&mut self, lane: u16, drives: BTreeSet<Uuid>) {
        let before = self.ordered_out.entry(lane).or_default();
        if *before != drives {
            *before = drives;
            self.turn += 1;
        }
    }

    /// Whether any lane was ordered to; see [`super::LaneRegistry::is_ordered_out`].
    pub fn is_ordered_out(&self, drive: Uuid) -> bool {
        let mut lanes = self.ordered_out.values();
        lanes.any(|drives| drives.contains(&drive))
    }

    /// The groups of the first lane, empty before it has decided; see
    /// [`super::LaneRegistry::first_lane`].
    pub fn first(&self) -> Vec<GroupEntry> {
        self.decided.get(&0).cloned().unwrap_or_default()
    }

    /// Keeps how far a lane is with a group; see [`super::LaneRegistry::say_departure`].
    pub fn say(&mut self, lanes: u16, (group, lane): (u16, u16), stage: Departure) -> bool {
        let before = self.departures.get(&(group, lane)).copied();
        if before < Some(stage) {
            self.departures.insert((group, lane), stage);
            self.turn += 1;
        }
        before < Some(stage) && self.all(0..lanes, group, stage)
    }

    /// Whether these lanes are so far.
    pub fn all(&self, mut lanes: std::ops::Range<u16>, group: u16, stage: Departure) -> bool {
        lanes.all(|lane| self.departures.get(&(group, lane)).copied() >= Some(stage))
    }

    /// A number that grows with every change; see [`super::LaneRegistry::turn`].
    pub fn turn(&self) -> u64 {
        self.turn
    }
}
