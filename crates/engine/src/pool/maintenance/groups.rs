//! Changes of groups: another level, a new group, a group that leaves. [`GroupChanges`] judges them,
//! and begins them.
//!
//! Invariants:
//! - A new group's drives have labels before any label tells of the group, and no zone
//!   of it is in use before all do.
//! - A group leaves when no zone of it is in use, and no drive of it carries metadata or
//!   logs: see [`super::departures`].
//! - Of several lanes the first one decides, after all were asked; the others follow.

use super::candidates::{Candidate, Candidates};
use super::departures::Departures;
use super::new_groups::NewGroups;
use crate::drives::{EventKind, Group, Zone};
use crate::label::GroupRole;
use crate::pool::create::{check_log_level, invalid};
use crate::pool::{Lane, Level, NamedDrive, PoolError, PoolErrorKind};
use crate::raid::Protection;
use crate::space::LaneState;
use crate::world::World;
use base::size::{counted, human_pair};
use std::rc::Rc;

impl<W: World> Lane<W> {
    /// Gives a group another level, in the background: its zones are emptied and come
    /// back at the new level.
    ///
    /// # Errors
    /// `NotFound` for a group that is not there; `Invalid` for a level that it can't
    /// have, or can't go to; `Busy` while it goes to another, or leaves; `Full` when
    /// there is too little room to begin with.
    pub async fn convert_group(&self, index: u16, level: Level) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let group = inner.drives().found_group(index)?;
        if inner.drives().lane().index > 0 {
            return Departures::of(inner).follow().await;
        }
        let from = group.level();
        GroupChanges::of(inner).check_convert(&group, level)?;
        if from == level {
            return Ok(());
        }
        group.set_level(level);
        Departures::of(inner)
            .announce(format!("group {index} goes from level {from} to {level}"))
            .await
    }

    /// That [`Lane::convert_group`] could be done now. Every lane is asked before the first
    /// one begins: the others follow it then, whatever has changed meanwhile.
    ///
    /// # Errors
    /// As there.
    pub async fn check_convert_group(&self, index: u16, level: Level) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        GroupChanges::of(inner).check_convert(&inner.drives().found_group(index)?, level)
    }

    /// Groups that the first lane of the pool has, and keeps, and this one has not: their
    /// adding was cut short.
    pub fn groups_missing(&self) -> usize {
        let lane = self.inner.drives().lane();
        lane.registry.groups_missing(lane.index)
    }

    /// Groups that the pool has, or had.
    pub fn groups_ever(&self) -> usize {
        self.inner.drives().groups().len()
    }

    /// Adds a group of drives without labels, or that were part of this pool before and
    /// are no more; what is on them is lost. Of several lanes to the first one first. The logs
    /// move to a log group in the background.
    ///
    /// # Errors
    /// `Invalid` for what can't be, `Exists` for drives that have a label already,
    /// `TooSmall`; nothing has changed then.
    pub async fn add_group(
        &self,
        (protection, role): (impl Into<Protection>, GroupRole),
        drives: Vec<NamedDrive<W>>,
    ) -> Result<u16, PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let of = (protection.into(), role);
        let candidates: Vec<Candidate<'_, W>> = drives.iter().map(Candidate::from).collect();
        NewGroups::of(inner).check_new_drives(of, &candidates)?;
        // Lanes after the first find the labels that the first has just given them; see
        // `new_uuids`.
        if inner.drives().lane().index == 0 {
            for drive in &candidates {
                Candidates::of(inner.drives())
                    .check_unlabelled(drive)
                    .await?;
            }
        }
        let entry = NewGroups::of(inner).new_entry(of, &candidates)?;
        NewGroups::of(inner).check_lanes_agree(inner.drives().lane().index, &entry)?;
        let uuids = NewGroups::of(inner).new_uuids(&drives).await?;
        let index = inner.drives().groups().len() as u16;
        let members = (0..)
            .zip(drives.into_iter().zip(uuids))
            .map(|(place, (named, uuid))| NewGroups::of(inner).reserved_spare(place, named, uuid))
            .collect();
        // No zone is taken into use before all labels tell of the group.
        let _settled = inner.zone_changes().settle().await;
        inner.drives().add_group(entry, members).await?;
        inner.check()?;
        let what = match role {
            GroupRole::Data => "group",
            GroupRole::Log => "log group",
        };
        let text = format!("{what} {index} of level {} has been added", of.0);
        inner.drives().event(EventKind::Group, text);
        inner.world().reached("group added");
        inner.wake_background();
        Ok(index)
    }

    /// That this lane could add a group of these drives now.
    ///
    /// # Errors
    /// As [`Lane::add_group`].
    pub async fn check_add_group(
        &self,
        (protection, role): (impl Into<Protection>, GroupRole),
        drives: &[Candidate<'_, W>],
    ) -> Result<(), PoolError> {
        let (inner, of) = (&self.inner, (protection.into(), role));
        let planted = inner
            .world()
            .planted("group added without asking all lanes");
        if planted && inner.drives().lane().index > 0 {
            return Ok(());
        }
        inner.check()?;
        let _administration = inner.administration().await;
        NewGroups::of(inner).check_new_drives(of, drives)?;
        for drive in drives {
            Candidates::of(inner.drives())
                .check_unlabelled(drive)
                .await?;
        }
        let entry = NewGroups::of(inner).new_entry(of, drives)?;
        // No lane has it yet, so every lane is as the first one is.
        NewGroups::of(inner).check_lanes_agree(0, &entry)
    }

    /// Has a group leave, in the background: what it holds goes to the others first.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for the last group; `Busy`; `Full` when the others have too
    /// little room.
    pub async fn remove_group(&self, index: u16) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let group = inner.drives().found_group(index)?;
        let lane = inner.drives().lane();
        if lane.index > 0 {
            return Departures::of(inner).follow().await;
        }
        GroupChanges::of(inner).check_remove(&group)?;
        if group.leaves() {
            return Ok(());
        }
        GroupChanges::of(inner).leave(&group).await
    }

    /// That [`Lane::remove_group`] could be done now: see [`Lane::check_convert_group`].
    ///
    /// # Errors
    /// As there.
    pub async fn check_remove_group(&self, index: u16) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        GroupChanges::of(inner).check_remove(&inner.drives().found_group(index)?)
    }

    /// Takes back drives that were to be added to all lanes and could not be added to one
    /// of them: spares are let go, and a group that not all lanes have leaves. Of several
    /// lanes the last is asked first, and the first hears whether all `others_have`: the spares of
    /// the first lane are the pool's, so it keeps them while another has them still.
    ///
    /// # Errors
    /// When labels can't be written.
    pub async fn take_back(&self, names: &[String], others_have: bool) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let keeps_spares = inner.drives().lane().index == 0 && !others_have;
        for spare in inner.drives().spares() {
            if names.contains(&spare.name) && !keeps_spares {
                let patience = inner.background().patience();
                inner.drives().part_with_spare(&spare, patience).await?;
            }
        }
        if inner.drives().lane().index > 0 {
            return Departures::of(inner).follow().await;
        }
        let registry = &inner.drives().lane().registry;
        let is_new = |group: &Rc<Group<W>>| {
            let places = group.places();
            let all = places.iter().all(|member| names.contains(&member.name));
            all && !places.is_empty() && !group.leaves() && !registry.is_everywhere(group.index)
        };
        for group in inner.drives().groups().into_iter().filter(is_new) {
            GroupChanges::of(inner).leave(&group).await?;
        }
        Ok(())
    }
}

/// Groups that go to another level, or leave.
pub(super) struct GroupChanges<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> GroupChanges<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        GroupChanges { lane }
    }

    fn check_remove(&self, group: &Rc<Group<W>>) -> Result<(), PoolError> {
        let (index, name) = (group.index, self.lane.drives().name());
        if group.leaves() && self.lane.drives().lane().registry.lanes() > 1 {
            // It is asked again, for lanes that have not begun.
            return Ok(());
        }
        let others = |other: &Rc<Group<W>>| {
            !Rc::ptr_eq(other, group) && self.lane.drives().takes_zones(other)
        };
        if !self.lane.drives().groups().iter().any(others) {
            return Err(invalid(format!(
                "group {index} of pool '{name}' can't leave: no other group could take over"
            )));
        }
        self.check_settled(group)?;
        if group.is_log() {
            // It holds no pages, and all drives of the pool have room for the logs.
            return Ok(());
        }
        let of_group = self.lane.drives().zones_of(group);
        let used: u64 = of_group
            .iter()
            .map(|zone| self.lane.space().used_in(zone.shape.zone))
            .sum();
        let free_here = self.free_in(group);
        let free_elsewhere = self.lane.free_pages().saturating_sub(free_here);
        // What is promised has to find room there, too.
        let used = used + self.lane.promised_pages();
        if free_elsewhere < used {
            let page_bytes = self.lane.page_bytes();
            let (held, left) = human_pair(used * page_bytes, free_elsewhere * page_bytes);
            return Err(PoolError::new(
                PoolErrorKind::Full,
                format!(
                    "group {index} of pool '{name}' holds {held}, and the others have {left} left: delete volumes or add a group first"
                ),
            ));
        }
        Ok(())
    }

    /// A group is emptied from now on, to leave.
    async fn leave(&self, group: &Rc<Group<W>>) -> Result<(), PoolError> {
        {
            // A zone that is being taken into use is in use, or not.
            let _settled = self.lane.zone_changes().settle().await;
            group.set_leaving(true);
        }
        let index = group.index;
        Departures::of(self.lane)
            .announce(format!("group {index} is emptied, to leave the pool"))
            .await
    }

    fn check_convert(&self, group: &Rc<Group<W>>, level: Level) -> Result<(), PoolError> {
        let (index, from, name) = (group.index, group.level(), self.lane.drives().name());
        if from == level {
            return Ok(());
        }
        if group.is_log() {
            return Err(invalid(format!(
                "group {index} of pool '{name}' is its log group, which keeps its level: remove it, and add one of level {level}"
            )));
        }
        if group.spread.is_some() {
            return Err(invalid(format!(
                "group {index} of pool '{name}' has distributed spares and keeps its level: add a group of level {level}, and remove it"
            )));
        }
        if let Some(log) = self.lane.drives().log_group() {
            check_log_level(name, log.level(), [level])?;
        }
        check_levels(index, name, (from, level))?;
        self.check_settled(group)?;
        let unit = u64::from(self.lane.identity().stripe_unit_bytes);
        let shape = group.shape_at(level, unit).map_err(|allowed| {
            invalid(format!(
                "group {index} of pool '{name}' has {}: level {level} takes {allowed}",
                counted(group.drives() as u64, "drive")
            ))
        })?;
        if !group.has_enough_for(&shape, &[]) {
            return Err(invalid(format!(
                "group {index} of pool '{name}' lacks drives that level {level} can't do without: replace those that are out of use first"
            )));
        }
        if !self.has_room_for(&self.lane.drives().zones_of(group)) {
            return Err(PoolError::new(
                PoolErrorKind::Full,
                format!(
                    "group {index} of pool '{name}' has no zone that could be emptied: there are too few free pages"
                ),
            ));
        }
        Ok(())
    }

    /// That a group is neither on its way to another level nor out of the pool.
    fn check_settled(&self, group: &Group<W>) -> Result<(), PoolError> {
        let moves = |zone: &Rc<Zone<W>>| zone.group.index == group.index;
        if group.leaves() || self.lane.drives().zones_to_empty().iter().any(moves) {
            let context = format!(
                "group {} of pool '{}' is being changed already: wait until that is done",
                group.index,
                self.lane.drives().name()
            );
            return Err(PoolError::new(PoolErrorKind::Busy, context));
        }
        Ok(())
    }

    /// Whether one of `zones` could be emptied into the free pages of all others.
    fn has_room_for(&self, zones: &[Rc<Zone<W>>]) -> bool {
        let space = self.lane.space();
        let numbers = zones.iter().map(|zone| zone.shape.zone);
        let Some(least) = numbers.min_by_key(|zone| space.used_in(*zone)) else {
            return true;
        };
        let used = space.used_in(least);
        let free_there = space.free_in(least);
        drop(space);
        self.lane.free_pages() >= used + free_there + self.lane.promised_pages()
    }

    /// Pages that a group could give.
    fn free_in(&self, group: &Rc<Group<W>>) -> u64 {
        let in_use = self.lane.space().free_of(group.index);
        in_use + self.lane.drives().unopened_of(group)
    }
}

/// That a group may go from one level to another while it is used.
fn check_levels(index: u16, name: &str, (from, level): (Level, Level)) -> Result<(), PoolError> {
    if may_go(from, level) {
        return Ok(());
    }
    let possible = Level::ALL.into_iter().filter(|to| may_go(from, *to));
    let possible: Vec<&str> = possible.map(Level::as_str).collect();
    let possible = match &possible[..] {
        [] => "it can go to no other".to_owned(),
        levels => format!("possible is {}", levels.join(" or ")),
    };
    let fewer = match from.can_become(level) {
        true => ", where it would survive the loss of fewer drives",
        false => "",
    };
    Err(invalid(format!(
        "group {index} of pool '{name}' can't go from level {from} to {level} while it is used{fewer}: {possible}"
    )))
}

/// Whether a group may go from one level to another: it must survive as many losses.
fn may_go(from: Level, to: Level) -> bool {
    from.can_become(to) && to.redundancy() >= from.redundancy()
}
