//! Which drives, groups and zones there are: by name, by what they are for, and what is left of
//! them.
//!
//! Nothing is changed here. Groups that have left stay in the tables without drives; those who ask
//! for a group here never get such a one.

use super::{Drives, Group, Member, Zone, zone_capacity};
use crate::error::{PoolError, PoolErrorKind};
use crate::world::World;
use std::collections::BTreeMap;
use std::rc::Rc;

impl<W: World> Drives<W> {
    /// The group of this number, if it has drives.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    pub fn found_group(&self, index: u16) -> Result<Rc<Group<W>>, PoolError> {
        let groups = self.groups();
        let found = groups
            .into_iter()
            .find(|group| group.index == index && group.drives() > 0);
        found.ok_or_else(|| {
            let context = format!("there is no group {index} in pool '{}'", self.name());
            PoolError::new(PoolErrorKind::NotFound, context)
        })
    }

    /// The group that the logs are to lie on, where there is one.
    pub fn log_group(&self) -> Option<Rc<Group<W>>> {
        let groups = self.groups().into_iter();
        let mut there = groups.filter(|group| group.drives() > 0 && !group.leaves());
        there.find(|group| group.is_log())
    }

    /// The spare of this name or identity; none that is to become part of a new group.
    pub fn named_spare(&self, name: &str) -> Option<Rc<Member<W>>> {
        let spares = self.spares().into_iter();
        let mut free = spares.filter(|spare| !spare.is_reserved());
        free.find(|spare| spare.name == name || spare.uuid.to_string() == name)
    }

    /// The drive of a group that has this name or identity.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    pub fn named_member(&self, name: &str) -> Result<Rc<Member<W>>, PoolError> {
        let found = self
            .members()
            .into_iter()
            .find(|member| member.name == name || member.uuid.to_string() == name);
        found.ok_or_else(|| {
            let context = format!(
                "there is no drive '{name}' in a group of pool '{}'",
                self.name()
            );
            PoolError::new(PoolErrorKind::NotFound, context)
        })
    }

    /// Groups of data that don't leave; a pool has one.
    pub fn staying_groups(&self) -> Vec<Rc<Group<W>>> {
        let mut groups = self.groups();
        groups.retain(|group| group.drives() > 0 && !group.leaves() && !group.is_log());
        groups
    }

    /// Other groups that data can go to.
    pub fn groups_beside(&self, leaving: &Rc<Group<W>>) -> Vec<Rc<Group<W>>> {
        let mut others = self.groups();
        others.retain(|group| !Rc::ptr_eq(group, leaving) && self.takes_zones(group));
        others
    }

    /// The zones in use in a group.
    pub fn zones_of(&self, group: &Rc<Group<W>>) -> Vec<Rc<Zone<W>>> {
        let mut zones = self.zones();
        zones.retain(|zone| Rc::ptr_eq(&zone.group, group));
        zones
    }

    /// The places of a group's zones that do not stand at home, out of all that have ever moved.
    pub fn away<'a>(
        &'a self,
        group: &'a Rc<Group<W>>,
        moved: &'a BTreeMap<u32, BTreeMap<u8, u8>>,
    ) -> impl Iterator<Item = (Rc<Zone<W>>, usize)> + 'a {
        let zones = moved.range(group.numbers.zone_range());
        let zones = zones.filter_map(|(zone, _)| self.zone(*zone));
        zones.flat_map(|zone| {
            let away = zone.away().into_iter();
            away.map(move |(place, _)| (Rc::clone(&zone), place))
        })
    }

    /// Zones that are to go out of use.
    pub fn zones_to_empty(&self) -> Vec<Rc<Zone<W>>> {
        let mut zones = self.zones();
        zones.retain(|zone| zone.group.leaves() || zone.level != zone.group.level());
        zones
    }

    /// Whether a zone is still the one that it was: it may have been emptied, or given
    /// to another lane, and taken into use anew.
    pub fn is_in_use(&self, zone: &Rc<Zone<W>>) -> bool {
        let now = self.zone(zone.shape.zone);
        now.is_some_and(|now| Rc::ptr_eq(&now, zone))
    }

    /// Pages of zones that are not in use yet.
    pub fn unopened_pages(&self) -> u64 {
        let groups = self.groups();
        groups.iter().map(|group| self.unopened_of(group)).sum()
    }

    /// Pages of a group's zones that are not in use yet.
    pub fn unopened_of(&self, group: &Group<W>) -> u64 {
        if !self.takes_zones(group) {
            return 0;
        }
        let zones = group.numbers.zone_range();
        let unopened = self.lane().registry.free_zones(zones);
        unopened * zone_capacity(group.protection(), group.drives(), self.identity())
    }
}
