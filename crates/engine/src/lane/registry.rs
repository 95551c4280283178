//! The state that the lanes of a pool share: the lane of each zone, and the place of each drive.
//!
//! Nothing here is durable. Each lane's own labels and metadata say what it has, and it
//! says so here when it is opened.
//!
//! Invariants: see [`super`]. Nobody waits with the table locked.

use super::accord::{Accord, Departure};
use super::fullness::Judged;
use super::owners::Owners;
use super::requests::{Purpose, Rank, Requests};
use crate::label::{GroupEntry, GroupNumbers};
use base::Uuid;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Group and place of a drive.
pub type Standing = (u16, u16);

/// Shared by all lanes of a pool, each on its own thread.
#[derive(Clone, Debug)]
pub struct LaneRegistry {
    lanes: u16,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    /// Of a pool that is being made.
    uuid: Option<Uuid>,
    /// The lane that has each zone in use.
    zones: Owners,
    /// Lanes that could be opened, and that can't.
    ready: BTreeSet<u16>,
    /// See `ready`.
    refused: BTreeSet<u16>,
    /// Lanes that have said which zones they have.
    opened: BTreeSet<u16>,
    /// Every lane has been offered the drives that it lacks.
    is_completed: bool,
    /// Of each lane, where its drives stand.
    standings: BTreeMap<u16, BTreeMap<Uuid, Standing>>,
    /// Of each lane, the drives that wait to stand in.
    spares: BTreeMap<u16, BTreeSet<Uuid>>,
    /// Of each lane, the drives that have failed where they stand.
    failed: BTreeMap<u16, BTreeSet<Uuid>>,
    /// Of each lane, the drives that are copied, and those that they are copied to.
    successors: BTreeMap<u16, BTreeMap<Uuid, Uuid>>,
    /// Of drives that others are copied to, the lanes in which they hold everything.
    copied: BTreeMap<Uuid, BTreeSet<u16>>,
    /// Of each lane, the zones and pages of its groups, by index.
    groups: BTreeMap<u16, Vec<GroupNumbers>>,
    /// What they do about groups together.
    accord: Accord,
    /// Who asks others for zones.
    requests: Requests,
    /// Of each lane, pages taken or promised, and those that its zones give.
    spaces: BTreeMap<u16, (u64, i64)>,
    /// What was last said of how full the pool is.
    judged: Judged,
}

impl Table {
    /// The first of `zones` that nobody has, and that is not lent to another lane.
    fn first_free(&self, lane: u16, mut zones: Range<u32>) -> Option<u32> {
        loop {
            let free = self.zones.first_free(zones.clone())?;
            if !self.requests.is_for_another(lane, free) {
                return Some(free);
            }
            zones.start = free + 1;
        }
    }

    fn could_stand(&self, lane: u16, drive: Uuid, standing: Standing) -> bool {
        let others = self.standings.iter().filter(|(other, _)| **other != lane);
        let mut known = others.filter_map(|(_, standings)| standings.get(&drive));
        known.all(|other| *other == standing)
    }
}

/// Whether a group is neither on its way out nor gone.
fn stays(group: &GroupEntry) -> bool {
    group.drives > 0 && !group.leaving
}

/// Two lanes say that they have the same zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("zone {zone} is in use in lane {other} already")]
pub struct ZoneTaken {
    /// The zone that both claim.
    pub zone: u32,
    /// The lane that has it already.
    pub other: u16,
}

/// A request for zones of other lanes, until it is dropped (`requests`).
#[derive(Debug)]
pub struct ZoneRequest {
    registry: LaneRegistry,
    rank: Rank,
}

impl ZoneRequest {
    /// The waiter needs a zone still. Whether all other lanes have said no since its lane took one.
    pub fn is_refused(&self) -> bool {
        let lanes = self.registry.lanes;
        self.registry.table().requests.is_refused(self.rank, lanes)
    }
}

impl Drop for ZoneRequest {
    fn drop(&mut self) {
        self.registry.table().requests.end(self.rank);
    }
}

impl LaneRegistry {
    /// Of a pool that has so many lanes, none of which is open yet.
    ///
    /// # Panics
    /// For none, or more than [`super::LANES_MAX`].
    pub fn new(lanes: u16) -> Self {
        assert!((1..=super::LANES_MAX).contains(&lanes), "{lanes} lanes");
        LaneRegistry {
            lanes,
            table: Arc::default(),
        }
    }

    /// How many lanes there are.
    pub fn lanes(&self) -> u16 {
        self.lanes
    }

    // Whoever panicked with this lock held has changed one entry or none.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The identity of a pool that is being made: the first that is drawn.
    pub fn pool_uuid_or(&self, draw: impl FnOnce() -> Uuid) -> Uuid {
        *self.table().uuid.get_or_insert_with(draw)
    }

    /// A lane says whether it could be opened; nothing has been written yet.
    pub fn say_ready(&self, lane: u16, ready: bool) {
        let mut table = self.table();
        match ready {
            true => table.ready.insert(lane),
            false => table.refused.insert(lane),
        };
    }

    /// Whether all lanes could be opened, once it is known.
    pub fn all_ready(&self) -> Option<bool> {
        let table = self.table();
        match table.refused.is_empty() {
            false => Some(false),
            true => (table.ready.len() == usize::from(self.lanes)).then_some(true),
        }
    }

    /// A lane says which zones it has in use.
    ///
    /// # Errors
    /// When another has one of them.
    pub fn open(&self, lane: u16, zones: impl Iterator<Item = u32>) -> Result<(), ZoneTaken> {
        let mut table = self.table();
        for zone in zones {
            if let Some(other) = table.zones.of(zone).filter(|other| *other != lane) {
                return Err(ZoneTaken { zone, other });
            }
            table.zones.set(zone, lane);
        }
        table.opened.insert(lane);
        Ok(())
    }

    /// Whether all lanes have said which zones they have: only then can the others be
    /// given out.
    pub fn all_opened(&self) -> bool {
        self.table().opened.len() == usize::from(self.lanes)
    }

    /// Every lane has been offered the drives that it lacks: what it has not now, it can't use.
    pub fn say_completed(&self) {
        self.table().is_completed = true;
    }

    /// Whether every lane has been offered the drives that it lacks.
    pub fn is_completed(&self) -> bool {
        self.table().is_completed
    }

    /// Takes the first zone of `zones` that nobody has.
    pub fn take_zone(&self, lane: u16, zones: Range<u32>) -> Option<u32> {
        let mut table = self.table();
        if table.opened.len() < usize::from(self.lanes) {
            return None;
        }
        let free = table.first_free(lane, zones)?;
        table.zones.set(free, lane);
        table.requests.note_taken(lane, free);
        Some(free)
    }

    /// A lane is about to give this zone back, which it has emptied for the request that ranks
    /// first: only its lane may take the zone then.
    pub fn lend_zone(&self, lane: u16, zone: u32) {
        self.table().requests.lend(lane, zone);
    }

    /// A lane has this zone no more.
    ///
    /// # Panics
    /// When it did not have it.
    pub fn give_zone_back(&self, lane: u16, zone: u32) {
        let had = self.table().zones.clear(zone);
        assert_eq!(had, Some(lane), "zone {zone} is not of lane {lane}");
    }

    /// Zones of `zones` that nobody has.
    pub fn free_zones(&self, zones: Range<u32>) -> u64 {
        self.table().zones.free(zones)
    }

    /// A lane says where its groups lie.
    ///
    /// # Errors
    /// The index of the first that lies elsewhere in another lane.
    pub fn set_groups(&self, lane: u16, groups: Vec<GroupNumbers>) -> Result<(), usize> {
        let mut table = self.table();
        for others in table.groups.values() {
            let both = groups.iter().zip(others);
            if let Some(differs) = both.into_iter().position(|(own, other)| own != other) {
                return Err(differs);
            }
        }
        table.groups.insert(lane, groups);
        Ok(())
    }

    /// Whether a lane may add group `index`: the first lane when all have the same groups, the
    /// others when the first has this one, of as many drives, and it stays. Where a zone lies on a
    /// drive depends on how many drives the group has.
    pub fn may_add_group(&self, lane: u16, index: usize, entry: &GroupEntry) -> bool {
        let table = self.table();
        let shape = |group: &GroupEntry| (group.numbers, group.drives, group.role, group.spread);
        let is_it = |first: &GroupEntry| stays(first) && shape(first) == shape(entry);
        match lane {
            0 => table.groups.values().all(|groups| groups.len() == index),
            _ => table.accord.first().get(index).is_some_and(is_it),
        }
    }

    /// Groups that the first lane has, and this one has not: those before the first that
    /// leaves, or has left.
    pub fn groups_missing(&self, lane: u16) -> usize {
        let table = self.table();
        let own = table.groups.get(&lane).map_or(0, Vec::len);
        let first = table.accord.first();
        first
            .iter()
            .skip(own)
            .take_while(|group| stays(group))
            .count()
    }

    /// Whether all lanes have this group, or had it.
    pub fn is_everywhere(&self, group: u16) -> bool {
        let table = self.table();
        let has = |groups: &Vec<GroupNumbers>| groups.len() > usize::from(group);
        table.groups.len() == usize::from(self.lanes) && table.groups.values().all(has)
    }

    /// A lane says what its labels say of its groups, durably.
    pub fn decide(&self, lane: u16, groups: &[GroupEntry]) {
        self.table().accord.decide(lane, groups);
    }

    /// A lane says which drives it was ordered to take out of use, durably.
    pub fn order_out(&self, lane: u16, drives: BTreeSet<Uuid>) {
        self.table().accord.order_out(lane, drives);
    }

    /// Whether any lane was ordered to take this drive out of use.
    pub fn is_ordered_out(&self, drive: Uuid) -> bool {
        self.table().accord.is_ordered_out(drive)
    }

    /// What the first lane's labels say of its groups: the others follow.
    pub fn first_lane(&self) -> Vec<GroupEntry> {
        self.table().accord.first()
    }

    /// A lane says how far it is with a group that leaves. True when it was the last that
    /// all others have waited for.
    pub fn say_departure(&self, lane: u16, group: u16, stage: Departure) -> bool {
        let mut table = self.table();
        let all_are_there = table.opened.len() == usize::from(self.lanes);
        table.accord.say(self.lanes, (group, lane), stage) && all_are_there
    }

    /// Whether all lanes are so far with a group that leaves.
    pub fn have_departed(&self, group: u16, stage: Departure) -> bool {
        self.table().accord.all(0..self.lanes, group, stage)
    }

    /// Whether it is a lane's turn to wipe the drives of a group of its labels.
    pub fn may_wipe(&self, lane: u16, group: u16) -> bool {
        let table = self.table();
        let after = lane + 1..self.lanes;
        table.accord.all(0..self.lanes, group, Departure::Left)
            && table.accord.all(after, group, Departure::Wiped)
    }

    /// Changes whenever a lane says something of groups that others may have to act on.
    pub fn turn(&self) -> u64 {
        self.table().accord.turn()
    }

    /// Whether any lane has this drive.
    pub fn knows(&self, drive: Uuid) -> bool {
        let table = self.table();
        let mut standings = table.standings.values();
        let mut spares = table.spares.values();
        standings.any(|lane| lane.contains_key(&drive)) || spares.any(|lane| lane.contains(&drive))
    }

    /// Another lane that uses this drive, or has it wait.
    pub fn user_beside(&self, lane: u16, drive: Uuid) -> Option<u16> {
        let table = self.table();
        let has_failed = |lane| {
            let failed = table.failed.get(lane);
            failed.is_some_and(|failed| failed.contains(&drive))
        };
        let stand = table.standings.iter();
        let stand = stand.filter(|(lane, known)| known.contains_key(&drive) && !has_failed(lane));
        let wait = table.spares.iter();
        let wait = wait.filter(|(_, known)| known.contains(&drive));
        let lanes = stand
            .map(|(lane, _)| *lane)
            .chain(wait.map(|(lane, _)| *lane));
        lanes.filter(|other| *other != lane).min()
    }

    /// A lane says where its drives stand, which of them have failed, and which wait to
    /// stand in.
    pub fn set_standings(
        &self,
        lane: u16,
        standings: BTreeMap<Uuid, Standing>,
        failed: BTreeSet<Uuid>,
        spares: BTreeSet<Uuid>,
    ) {
        let mut table = self.table();
        table.standings.insert(lane, standings);
        table.failed.insert(lane, failed);
        table.spares.insert(lane, spares);
    }

    /// Whether a lane could have a drive stand there: no other has it anywhere else.
    pub fn could_stand(&self, lane: u16, drive: Uuid, standing: Standing) -> bool {
        self.table().could_stand(lane, drive, standing)
    }

    /// As [`LaneRegistry::could_stand`]; it does from then on.
    pub fn may_stand(&self, lane: u16, drive: Uuid, standing: Standing) -> bool {
        let mut table = self.table();
        let may = table.could_stand(lane, drive, standing);
        if may {
            let own = table.standings.entry(lane).or_default();
            own.insert(drive, standing);
        }
        may
    }

    /// The drive that another lane has there, if it is not `drive`. Of two lanes that
    /// could each take the other's, the first keeps its own.
    pub fn stand_in(&self, lane: u16, standing: Standing, drive: Uuid) -> Option<Uuid> {
        let table = self.table();
        let could_follow = |other: u16| {
            let spares = table.spares.get(&other);
            other > lane && spares.is_some_and(|spares| spares.contains(&drive))
        };
        let others = table.standings.iter();
        let others = others.filter(|(other, _)| **other != lane && !could_follow(**other));
        let mut there = others.flat_map(|(_, standings)| {
            let here = standings.iter().filter(|(_, place)| **place == standing);
            here.map(|(uuid, _)| *uuid)
        });
        there.find(|other| *other != drive)
    }

    /// As [`LaneRegistry::stand_in`], of a lane that can't use `drive` at all: it is nowhere
    /// there, also not among those that wait to stand in.
    pub fn replaced_by(&self, lane: u16, standing: Standing, drive: Uuid) -> Option<Uuid> {
        let table = self.table();
        let has = |other: &u16| {
            let (standings, spares) = (table.standings.get(other), table.spares.get(other));
            standings.is_some_and(|standings| standings.contains_key(&drive))
                || spares.is_some_and(|spares| spares.contains(&drive))
        };
        let others = table.standings.iter();
        let mut others = others.filter(|(other, _)| **other != lane && !has(other));
        others.find_map(|(_, standings)| {
            let mut here = standings.iter().filter(|(_, place)| **place == standing);
            here.next().map(|(uuid, _)| *uuid)
        })
    }

    /// A lane says which drives are copied, and to which.
    pub fn set_successors(&self, lane: u16, successors: BTreeMap<Uuid, Uuid>) {
        self.table().successors.insert(lane, successors);
    }

    /// The drive that another lane copies `drive` to.
    pub fn successor_beside(&self, lane: u16, drive: Uuid) -> Option<Uuid> {
        let table = self.table();
        let others = table.successors.iter().filter(|(other, _)| **other != lane);
        let mut found = others.filter_map(|(_, known)| known.get(&drive).copied());
        found.next()
    }

    /// Whether every lane has this drive, at a place or waiting.
    pub fn is_known_in_all(&self, drive: Uuid) -> bool {
        let table = self.table();
        (0..self.lanes).all(|lane| {
            let (standings, spares) = (table.standings.get(&lane), table.spares.get(&lane));
            standings.is_some_and(|known| known.contains_key(&drive))
                || spares.is_some_and(|known| known.contains(&drive))
        })
    }

    /// A drive that another is copied to holds everything that a lane has there.
    pub fn say_copied(&self, lane: u16, drive: Uuid) {
        let mut table = self.table();
        table.copied.entry(drive).or_default().insert(lane);
    }

    /// Whether a lane has said so.
    pub fn has_said_copied(&self, lane: u16, drive: Uuid) -> bool {
        let table = self.table();
        let lanes = table.copied.get(&drive);
        lanes.is_some_and(|lanes| lanes.contains(&lane))
    }

    /// Whether all lanes have said so, or have let the old drive go.
    pub fn is_copied_in_all(&self, drive: Uuid, standing: Standing) -> bool {
        let table = self.table();
        (0..self.lanes).all(|lane| {
            let has_said = table.copied.get(&drive);
            let stands = table.standings.get(&lane);
            let stands = stands.is_some_and(|known| known.get(&drive) == Some(&standing));
            let successors = table.successors.get(&lane);
            let mut successors = successors.into_iter().flat_map(BTreeMap::values);
            // It may be copied itself by now.
            has_said.is_some_and(|lanes| lanes.contains(&lane))
                || stands && successors.all(|other| *other != drive)
        })
    }

    /// A drive is no successor any more: what was said of it is forgotten.
    pub fn forget_copied(&self, lane: u16, drive: Uuid) {
        if let Some(lanes) = self.table().copied.get_mut(&drive) {
            lanes.remove(&lane);
        }
    }

    /// A lane says how many pages are taken or promised, and how many its zones give, without what
    /// it keeps of all there is.
    pub fn say_space(&self, lane: u16, taken: u64, pages: i64) {
        self.table().spaces.insert(lane, (taken, pages));
    }

    /// What all lanes have said.
    pub fn space(&self) -> (u64, i64) {
        let table = self.table();
        let spaces = table.spaces.values();
        spaces.fold((0, 0), |sum, lane| (sum.0 + lane.0, sum.1 + lane.1))
    }

    /// Looks at, or changes, what was last said of how full the pool is.
    pub(crate) fn with_judged<T>(&self, visit: impl FnOnce(&mut Judged) -> T) -> T {
        visit(&mut self.table().judged)
    }

    /// A lane asks the others for a zone.
    #[must_use]
    pub fn request_zone(&self, lane: u16, purpose: Purpose) -> ZoneRequest {
        let rank = self.table().requests.begin(lane, purpose);
        let registry = self.clone();
        ZoneRequest { registry, rank }
    }

    /// Whether this lane is to answer a request.
    pub fn is_wanted_of(&self, lane: u16) -> bool {
        self.table().requests.is_wanted_of(lane)
    }

    /// Whether a write of this lane has asked for a zone, and has no page yet.
    pub fn has_waiting_write(&self, lane: u16) -> bool {
        self.table().requests.has_write(lane)
    }

    /// This lane has no zone to lend.
    pub fn refuse_zone(&self, lane: u16) {
        self.table().requests.refuse(lane);
    }

    /// This lane answers no more. Its own requests are answered as ever.
    pub fn fall_silent(&self, lane: u16) {
        self.table().requests.fall_silent(lane);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_in_one_lane_and_none_is_given_out_too_early() {
        let registry = LaneRegistry::new(2);
        registry.open(0, [3, 5].into_iter()).unwrap();
        assert_eq!(registry.take_zone(0, 0..8), None, "lane 1 may have it");
        let taken = registry.open(1, [4, 5].into_iter()).unwrap_err();
        assert_eq!(taken, ZoneTaken { zone: 5, other: 0 });
        registry.open(1, [4].into_iter()).unwrap();
        assert_eq!(registry.free_zones(0..8), 5);
        assert_eq!(registry.take_zone(1, 3..8), Some(6));
        assert_eq!(registry.take_zone(0, 3..8), Some(7));
        assert_eq!(registry.take_zone(0, 3..8), None);
        registry.give_zone_back(1, 4);
        assert_eq!(registry.take_zone(0, 3..8), Some(4));
    }

    #[test]
    fn lanes_are_opened_together_or_not_at_all() {
        let registry = LaneRegistry::new(2);
        registry.say_ready(1, true);
        assert_eq!(registry.all_ready(), None);
        registry.say_ready(0, true);
        assert_eq!(registry.all_ready(), Some(true));
        let registry = LaneRegistry::new(2);
        registry.say_ready(1, false);
        assert_eq!(registry.all_ready(), Some(false));
    }

    #[test]
    #[should_panic(expected = "is not of lane 1")]
    fn a_lane_gives_back_only_what_it_has() {
        let registry = LaneRegistry::new(2);
        registry.open(0, [3].into_iter()).unwrap();
        registry.give_zone_back(1, 3);
    }

    #[test]
    fn a_drive_stands_at_one_place_in_all_lanes() {
        let registry = LaneRegistry::new(3);
        let (drive, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert!(registry.may_stand(0, drive, (0, 1)));
        assert!(!registry.may_stand(1, drive, (0, 2)));
        assert!(registry.may_stand(1, drive, (0, 1)));
        assert_eq!(registry.stand_in(2, (0, 1), other), Some(drive));
        assert_eq!(registry.stand_in(0, (0, 1), drive), None);
        assert_eq!(registry.stand_in(0, (0, 1), other), Some(drive));
        let spares = BTreeSet::from([other]);
        registry.set_standings(
            1,
            BTreeMap::from([(drive, (0, 1))]),
            BTreeSet::new(),
            spares,
        );
        assert_eq!(
            registry.stand_in(0, (0, 1), other),
            None,
            "lane 1 could, too"
        );
        registry.set_standings(0, BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        registry.set_standings(1, BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        assert!(registry.may_stand(2, drive, (7, 7)));
    }

    #[test]
    fn drives_are_wiped_when_all_lanes_have_left_the_last_lane_first() {
        let registry = LaneRegistry::new(3);
        for lane in 0..3 {
            registry.open(lane, [].into_iter()).unwrap();
        }
        registry.say_departure(0, 4, Departure::Left);
        registry.say_departure(2, 4, Departure::Left);
        assert!(!registry.have_departed(4, Departure::Emptied), "lane 1");
        registry.say_departure(1, 4, Departure::Emptied);
        assert!(registry.have_departed(4, Departure::Emptied));
        assert!(!registry.may_wipe(2, 4), "lane 1 has it still");
        assert!(registry.say_departure(1, 4, Departure::Left));
        let turns = |registry: &LaneRegistry| [0, 1, 2].map(|lane| registry.may_wipe(lane, 4));
        assert_eq!(turns(&registry), [false, false, true]);
        let turn = registry.turn();
        assert!(!registry.say_departure(2, 4, Departure::Wiped));
        assert_ne!(registry.turn(), turn);
        assert_eq!(turns(&registry), [false, true, true]);
        assert!(!registry.say_departure(1, 4, Departure::Wiped));
        assert!(registry.say_departure(0, 4, Departure::Wiped), "told once");
        assert!(!registry.say_departure(0, 4, Departure::Wiped));
    }

    #[test]
    fn a_drive_that_another_lane_could_use_was_not_replaced_there() {
        let registry = LaneRegistry::new(2);
        let (old, new) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let stands = |drive| BTreeMap::from([(drive, (0, 1))]);
        registry.set_standings(0, stands(old), BTreeSet::new(), BTreeSet::from([new]));
        registry.set_standings(1, stands(new), BTreeSet::new(), BTreeSet::new());
        assert_eq!(registry.replaced_by(0, (0, 1), old), Some(new));
        assert_eq!(registry.replaced_by(1, (0, 1), new), None, "lane 0 has it");
        // It has come back there: nothing is wrong with it.
        registry.set_standings(1, stands(new), BTreeSet::new(), BTreeSet::from([old]));
        assert_eq!(registry.replaced_by(0, (0, 1), old), None);
        assert_eq!(registry.replaced_by(1, (0, 1), new), None);
    }

    #[test]
    fn a_copy_waits_for_lanes_that_copy_and_not_for_those_that_are_further() {
        let registry = LaneRegistry::new(2);
        let [old, new, next] = [1, 2, 3].map(Uuid::from_u128);
        let at = (0, 1);
        let stand = |lane, drives: &[Uuid], copied: &[(Uuid, Uuid)]| {
            let standings = drives.iter().map(|drive| (*drive, at)).collect();
            registry.set_standings(lane, standings, BTreeSet::new(), BTreeSet::new());
            registry.set_successors(lane, copied.iter().copied().collect());
        };
        stand(0, &[old, new], &[(old, new)]);
        stand(1, &[old, new], &[(old, new)]);
        assert_eq!(registry.successor_beside(0, old), Some(new));
        assert_eq!(registry.successor_beside(0, new), None);
        registry.say_copied(0, new);
        assert!(!registry.is_copied_in_all(new, at), "lane 1 copies still");
        assert!(registry.is_known_in_all(new) && !registry.is_known_in_all(next));
        registry.forget_copied(0, new);
        assert!(!registry.has_said_copied(0, new));
        registry.say_copied(0, new);
        // Lane 1 has let the old drive go, and copies the new one.
        stand(1, &[new, next], &[(new, next)]);
        assert!(registry.is_copied_in_all(new, at));
        assert!(!registry.is_copied_in_all(next, at));
    }

    #[test]
    fn a_lane_uses_a_drive_until_it_has_failed_there() {
        let registry = LaneRegistry::new(2);
        let (drive, spare) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let stands = BTreeMap::from([(drive, (0, 1))]);
        let spares = BTreeSet::from([spare]);
        assert_eq!(registry.user_beside(0, drive), None);
        registry.set_standings(1, stands.clone(), BTreeSet::new(), spares);
        assert_eq!(registry.user_beside(0, drive), Some(1));
        assert_eq!(registry.user_beside(0, spare), Some(1));
        assert_eq!(registry.user_beside(1, drive), None, "its own");
        registry.set_standings(1, stands, BTreeSet::from([drive]), BTreeSet::new());
        assert_eq!(registry.user_beside(0, drive), None);
        assert_eq!(registry.user_beside(0, spare), None);
    }
}
