//! Changes of groups: another level, a new group, a group that leaves.
//!
//! Invariants:
//! - A new group's drives have labels before any label tells of the group, and no zone
//!   of it is in use before all do.
//! - A group leaves when no zone of it is in use, and no drive of it carries metadata or
//!   logs: see [`super::departures`].
//! - Of several lanes the first one decides, after all were asked; the others follow.

use super::candidates::Candidate;
use crate::drives::Member;
use crate::drives::{EventKind, Group, SPARE_GROUP, Zone, stride_bytes, zone_pages};
use crate::label::{GROUPS_MAX, GroupEntry, GroupRole, MEMBERS_MAX, MemberEntry};
use crate::meta::checkpoint;
use crate::pool::create::{check_log_level, check_log_room, check_name};
use crate::pool::{LabelSummary, Lane, Level, MemberState, NamedDrive, PoolError, PoolErrorKind};
use crate::raid::Geometry;
use crate::space::LaneState;
use crate::world::World;
use base::Uuid;
use base::size::{counted, human, human_pair};
use std::rc::Rc;

use crate::drive::Drive;

fn invalid(context: String) -> PoolError {
    PoolError::new(PoolErrorKind::Invalid, context)
}

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
        let group = inner.drives.found_group(index)?;
        if inner.drives.lane().index > 0 {
            return inner.follow().await;
        }
        let from = group.level();
        inner.check_convert(&group, level)?;
        if from == level {
            return Ok(());
        }
        group.set_level(level);
        inner
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
        inner.check_convert(&inner.drives.found_group(index)?, level)
    }

    /// Groups that the first lane of the pool has, and keeps, and this one has not: their
    /// adding was cut short.
    pub fn groups_missing(&self) -> usize {
        let lane = self.inner.drives.lane();
        lane.registry.groups_missing(lane.index)
    }

    /// Groups that the pool has, or had.
    pub fn groups_ever(&self) -> usize {
        self.inner.drives.groups().len()
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
        (level, role): (Level, GroupRole),
        drives: Vec<NamedDrive<W>>,
    ) -> Result<u16, PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let candidates: Vec<Candidate<'_, W>> = drives.iter().map(Candidate::from).collect();
        inner.check_new_drives((level, role), &candidates)?;
        // Lanes after the first find the labels that the first has just given them; see
        // `new_uuids`.
        if inner.drives.lane().index == 0 {
            for drive in &candidates {
                inner.check_unlabelled(drive).await?;
            }
        }
        let entry = inner.new_entry((level, role), &candidates)?;
        inner.check_lanes_agree(inner.drives.lane().index, &entry)?;
        let uuids = inner.new_uuids(&drives).await?;
        let index = inner.drives.groups().len() as u16;
        let members = (0..)
            .zip(drives.into_iter().zip(uuids))
            .map(|(place, (named, uuid))| inner.reserved_spare(place, named, uuid))
            .collect();
        // No zone is taken into use before all labels tell of the group.
        let _settled = inner.zone_changes().settle().await;
        inner.drives.add_group(entry, members).await?;
        inner.check()?;
        let what = match role {
            GroupRole::Data => "group",
            GroupRole::Log => "log group",
        };
        let text = format!("{what} {index} of level {level} has been added");
        inner.drives.event(EventKind::Group, text);
        inner.world.reached("group added");
        inner.wake_background();
        Ok(index)
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
        let group = inner.drives.found_group(index)?;
        let lane = inner.drives.lane();
        if lane.index > 0 {
            return inner.follow().await;
        }
        inner.check_remove(&group)?;
        if group.leaves() {
            return Ok(());
        }
        inner.leave(&group).await
    }

    /// That [`Lane::remove_group`] could be done now: see [`Lane::check_convert_group`].
    ///
    /// # Errors
    /// As there.
    pub async fn check_remove_group(&self, index: u16) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        inner.check_remove(&inner.drives.found_group(index)?)
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
        let keeps_spares = inner.drives.lane().index == 0 && !others_have;
        for spare in inner.drives.spares() {
            if names.contains(&spare.name) && !keeps_spares {
                let patience = inner.background().patience();
                inner.drives.part_with_spare(&spare, patience).await?;
            }
        }
        if inner.drives.lane().index > 0 {
            return inner.follow().await;
        }
        let registry = &inner.drives.lane().registry;
        let is_new = |group: &Rc<Group<W>>| {
            let places = group.places();
            let all = places.iter().all(|member| names.contains(&member.name));
            all && !places.is_empty() && !group.leaves() && !registry.is_everywhere(group.index)
        };
        for group in inner.drives.groups().into_iter().filter(is_new) {
            inner.leave(&group).await?;
        }
        Ok(())
    }
}

impl<W: World> LaneState<W> {
    fn check_remove(&self, group: &Rc<Group<W>>) -> Result<(), PoolError> {
        let (index, name) = (group.index, self.drives.name());
        if group.leaves() && self.drives.lane().registry.lanes() > 1 {
            // It is asked again, for lanes that have not begun.
            return Ok(());
        }
        let others =
            |other: &Rc<Group<W>>| !Rc::ptr_eq(other, group) && self.drives.takes_zones(other);
        if !self.drives.groups().iter().any(others) {
            return Err(invalid(format!(
                "group {index} of pool '{name}' can't leave: no other group could take over"
            )));
        }
        self.check_settled(group)?;
        if group.is_log() {
            // It holds no pages, and all drives of the pool have room for the logs.
            return Ok(());
        }
        let of_group = self.drives.zones_of(group);
        let used: u64 = of_group
            .iter()
            .map(|zone| self.space().used_in(zone.shape.zone))
            .sum();
        let free_here = self.free_in(group);
        let free_elsewhere = self.free_pages().saturating_sub(free_here);
        // What is promised has to find room there, too.
        let used = used + self.promised_pages();
        if free_elsewhere < used {
            let page_bytes = self.page_bytes();
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
    async fn leave(self: &Rc<Self>, group: &Rc<Group<W>>) -> Result<(), PoolError> {
        {
            // A zone that is being taken into use is in use, or not.
            let _settled = self.zone_changes().settle().await;
            group.set_leaving(true);
        }
        let index = group.index;
        self.announce(format!("group {index} is emptied, to leave the pool"))
            .await
    }

    fn check_convert(&self, group: &Rc<Group<W>>, level: Level) -> Result<(), PoolError> {
        let (index, from, name) = (group.index, group.level(), self.drives.name());
        if from == level {
            return Ok(());
        }
        if group.is_log() {
            return Err(invalid(format!(
                "group {index} of pool '{name}' is its log group, which keeps its level: remove it, and add one of level {level}"
            )));
        }
        if let Some(log) = self.drives.log_group() {
            check_log_level(name, log.level(), [level])?;
        }
        if !from.can_become(level) {
            return Err(invalid(format!(
                "group {index} of pool '{name}' can't go from level {from} to {level} while it is used: possible are 10 to 50, 10 to 6, and 50 to 6"
            )));
        }
        self.check_settled(group)?;
        let unit = u64::from(self.identity().stripe_unit_bytes);
        let shape = Geometry::of(level, group.drives(), unit).map_err(|allowed| {
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
        if !self.has_room_for(&self.drives.zones_of(group)) {
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
        if group.leaves() || self.drives.zones_to_empty().iter().any(moves) {
            let context = format!(
                "group {} of pool '{}' is being changed already: wait until that is done",
                group.index,
                self.drives.name()
            );
            return Err(PoolError::new(PoolErrorKind::Busy, context));
        }
        Ok(())
    }

    /// Whether one of `zones` could be emptied into the free pages of all others.
    fn has_room_for(&self, zones: &[Rc<Zone<W>>]) -> bool {
        let space = self.space();
        let numbers = zones.iter().map(|zone| zone.shape.zone);
        let Some(least) = numbers.min_by_key(|zone| space.used_in(*zone)) else {
            return true;
        };
        let used = space.used_in(least);
        let free_there = space.free_in(least);
        drop(space);
        self.free_pages() >= used + free_there + self.promised_pages()
    }

    /// Pages that a group could give.
    fn free_in(&self, group: &Rc<Group<W>>) -> u64 {
        let in_use = self.space().free_of(group.index);
        in_use + self.drives.unopened_of(group)
    }

    /// Makes a change of groups durable, and begins with what follows from it.
    pub(super) async fn announce(self: &Rc<Self>, text: String) -> Result<(), PoolError> {
        self.drives.want_labels();
        self.drives.settle_labels().await;
        self.drives.event(EventKind::Group, text);
        self.wake_background();
        self.check()
    }

    /// A spare that is to become part of a new group.
    fn reserved_spare(&self, place: u16, named: NamedDrive<W>, uuid: Uuid) -> Rc<Member<W>> {
        let spares = self.drives.spares();
        if let Some(spare) = spares.iter().find(|spare| spare.uuid == uuid) {
            // The addition was cut short here, before the group was on labels.
            spare.set_reserved(true);
            return Rc::clone(spare);
        }
        let drive = self.drives.view(named.drive);
        let entry = MemberEntry {
            uuid,
            group: SPARE_GROUP,
            place,
            state: MemberState::Spare,
            metadata: false,
            log: false,
            ordered_out: false,
            reserved: true,
            capacity_bytes: drive.geometry().capacity_bytes,
            name: named.name,
        };
        Rc::new(Member::new(&self.world, drive, &entry))
    }

    /// That the log is protected as well as data is when there is such a group, too.
    fn check_roles(&self, level: Level, role: GroupRole) -> Result<(), PoolError> {
        if self.drives.lane().index > 0 {
            // The first lane decides. This one may not know yet what leaves there.
            return Ok(());
        }
        let (name, log) = (self.drives.name(), self.drives.log_group());
        match (role, log) {
            (GroupRole::Data, None) => Ok(()),
            (GroupRole::Data, Some(log)) => check_log_level(name, log.level(), [level]),
            (GroupRole::Log, Some(log)) => Err(invalid(format!(
                "pool '{name}' has a log group already, group {}: remove that one first",
                log.index
            ))),
            (GroupRole::Log, None) => {
                let mut data = self.drives.groups();
                data.retain(|group| group.drives() > 0 && !group.is_log());
                let in_use = self.drives.zones().into_iter().map(|zone| zone.level);
                let levels = data.iter().map(|group| group.level()).chain(in_use);
                check_log_level(name, level, levels)
            }
        }
    }

    /// That so many drives of these names make another group.
    pub(super) fn check_new_drives(
        &self,
        (level, role): (Level, GroupRole),
        drives: &[Candidate<'_, W>],
    ) -> Result<(), PoolError> {
        let name = self.drives.name();
        let unit = u64::from(self.identity().stripe_unit_bytes);
        if let Err(allowed) = Geometry::of(level, drives.len(), unit) {
            return Err(invalid(format!(
                "{} for a group of level {level} in pool '{name}': allowed is {allowed}",
                counted(drives.len() as u64, "drive")
            )));
        }
        self.check_roles(level, role)?;
        let spares = self.drives.spares();
        let spares = spares.iter().filter(|spare| !spare.is_reserved());
        let members = self.drives.members().len() + spares.count();
        if self.drives.groups().len() >= GROUPS_MAX || members + drives.len() > MEMBERS_MAX {
            return Err(invalid(format!(
                "pool '{name}' can't have another group of {}: allowed are {GROUPS_MAX} groups and {MEMBERS_MAX} drives",
                counted(drives.len() as u64, "drive")
            )));
        }
        let mut names = drives.iter().map(|drive| drive.name);
        names.try_for_each(|drive| check_name("drive", drive))
    }

    /// The identities of new drives: in all lanes those that the first has given them.
    async fn new_uuids(&self, drives: &[NamedDrive<W>]) -> Result<Vec<Uuid>, PoolError> {
        let (index, pool) = (self.drives.groups().len(), self.drives.uuid());
        if self.drives.lane().index == 0 {
            let at = self.world.now().as_nanos();
            let mut prng = self.world.prng(&format!("group {index} of {pool} at {at}"));
            return Ok(drives.iter().map(|_| prng.uuid()).collect());
        }
        let mut uuids = Vec::new();
        for (place, named) in drives.iter().enumerate() {
            let label = self.label_of_first_lane(&named.drive).await?;
            let is_there = |label: &LabelSummary| {
                label.pool_uuid == pool
                    && (usize::from(label.group), usize::from(label.place)) == (index, place)
            };
            let label = label.filter(is_there).ok_or_else(|| {
                invalid(format!(
                    "drive '{}' is not at place {place} of group {index} in the first lane of pool '{}'",
                    named.name, self.identity().name
                ))
            })?;
            uuids.push(label.drive_uuid);
        }
        Ok(uuids)
    }

    /// That the group to be added is the next one in every lane, and lies in the same
    /// zones in all.
    pub(super) fn check_lanes_agree(&self, lane: u16, entry: &GroupEntry) -> Result<(), PoolError> {
        let registry = &self.drives.lane().registry;
        let index = self.drives.groups().len();
        match registry.may_add_group(lane, index, entry) {
            true => Ok(()),
            false => Err(invalid(format!(
                "group {index} of pool '{}' is not the same in all lanes: add the one that is there in some first",
                self.identity().name
            ))),
        }
    }

    /// How many zones the smallest of a new group's drives has room for.
    fn zones_on(&self, drives: &[Candidate<'_, W>]) -> Result<u64, PoolError> {
        let identity = self.identity();
        let name = &identity.name;
        let smallest = drives.iter().min_by_key(|drive| drive.capacity_bytes);
        let (smallest, drive) =
            smallest.map_or((0, ""), |drive| (drive.capacity_bytes, drive.name));
        let smallest = smallest.saturating_sub(identity.part().of_others_bytes());
        let stride = stride_bytes(drives.len(), identity);
        let zones = smallest.saturating_sub(identity.data_start) / stride;
        if zones == 0 {
            let (there, needed) = human_pair(smallest, identity.data_start + stride);
            return Err(PoolError::new(
                PoolErrorKind::TooSmall,
                format!(
                    "drive '{drive}' has {there} and is too small for pool '{name}': a drive of this group needs {needed} or more"
                ),
            ));
        }
        Ok(zones)
    }

    /// Where the zones of a new group are among all.
    pub(super) fn new_entry(
        self: &Rc<Self>,
        (level, role): (Level, GroupRole),
        drives: &[Candidate<'_, W>],
    ) -> Result<GroupEntry, PoolError> {
        let groups = self.drives.groups();
        let first_zone = groups
            .iter()
            .map(|group| group.first_zone + group.zones)
            .max();
        let first_zone = first_zone.unwrap_or(0);
        let zones = match role {
            GroupRole::Data => self.new_zones(u64::from(first_zone), drives)?,
            GroupRole::Log => {
                let capacities = drives.iter().map(|drive| drive.capacity_bytes);
                check_log_room(self.identity(), capacities.min().unwrap_or(0))?;
                0
            }
        };
        Ok(GroupEntry {
            level,
            role,
            leaving: false,
            drives: drives.len() as u16,
            first_zone,
            zones: zones as u32,
        })
    }

    /// How many zones a new group of these drives has, the first of them of this number.
    fn new_zones(
        self: &Rc<Self>,
        first_zone: u64,
        drives: &[Candidate<'_, W>],
    ) -> Result<u64, PoolError> {
        let identity = self.identity();
        let name = &identity.name;
        let zones = self.zones_on(drives)?;
        let groups = self.drives.groups();
        let all_zones = first_zone + zones;
        // As at the creation: for whole drives of data, a little too much.
        let zone_bytes = |zones: u64, drives: u64| zones * drives * identity.zone_bytes;
        let data = |group: &Rc<Group<W>>| zone_bytes(u64::from(group.zones), group.drives() as u64);
        let bytes: u64 =
            groups.iter().map(data).sum::<u64>() + zone_bytes(zones, drives.len() as u64);
        let pages = bytes / u64::from(identity.page_bytes);
        let needed = checkpoint::slot_bytes(
            pages,
            all_zones,
            identity.volumes_max,
            identity.journal_bytes,
        );
        if needed + self.metadata_room().more_properties_bytes(0) > identity.checkpoint_bytes
            || all_zones * zone_pages(identity) >= u64::from(u32::MAX)
        {
            return Err(invalid(format!(
                "pool '{name}' can't grow by {}: its metadata was laid out for fewer; add a smaller group, or make a second pool",
                human(zone_bytes(zones, drives.len() as u64))
            )));
        }
        let stripe = 8 * drives.len() as u64 * u64::from(identity.stripe_unit_bytes);
        if stripe > identity.intent_bytes {
            return Err(invalid(format!(
                "a group of {} drives is too wide for the logs of pool '{name}': allowed are {}",
                drives.len(),
                identity.intent_bytes / 8 / u64::from(identity.stripe_unit_bytes)
            )));
        }
        Ok(zones)
    }
}
