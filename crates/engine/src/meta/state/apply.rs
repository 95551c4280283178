//! What each record changes in the metadata.
//!
//! [`State::make`] is a table: a kind of record that is missing there does not compile.

use super::{Provisioning, State, VolumeCore, ZoneState, mapped_twice};
use crate::meta::page_map::{MapRun, UNMAPPED};
use crate::meta::properties::{LiveProperties, Name, Property};
use crate::meta::record::HOME;
use crate::meta::{InFlight, Record, VolumeId};
use base::{PageIndex, PhysPage, Uuid};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

impl<L: InFlight> State<L> {
    /// Makes a change, without what follows from it for promises and backings.
    pub(super) fn make(&mut self, record: &Record) -> Result<(), String> {
        match record {
            Record::Create {
                id,
                uuid,
                name,
                size_bytes,
                provisioning,
                read_only,
            } => self.create(VolumeCore {
                id: *id,
                uuid: *uuid,
                name: Name::new(name),
                properties: LiveProperties::default(),
                provisioning: Cell::new(*provisioning),
                is_promised: Cell::new(*provisioning == Provisioning::Thick),
                detects_zeroes: Cell::new(false),
                read_only: *read_only,
                size_bytes: Cell::new(*size_bytes),
                ready: Cell::new(false),
                map: RefCell::default(),
                live: L::default(),
            })?,
            Record::Ready { id } => self.known(*id)?.ready.set(true),
            Record::Resize { id, size_bytes } => self.known(*id)?.size_bytes.set(*size_bytes),
            Record::Behave {
                id,
                provisioning,
                detects_zeroes,
            } => {
                let core = self.known(*id)?;
                core.provisioning.set(*provisioning);
                core.is_promised.set(*provisioning == Provisioning::Thick);
                core.detects_zeroes.set(*detects_zeroes);
            }
            Record::Delete { id } => self.delete(*id)?,
            Record::Share { id, from } => self.share(*id, *from)?,
            Record::Restore { id, from } => self.restore(*id, *from)?,
            Record::Copy {
                id,
                page,
                from,
                from_page,
                count,
            } => self.copy(*id, *page, (*from, *from_page), *count as usize)?,
            Record::Shrink {
                id,
                size_bytes,
                end,
            } => self.shrink(*id, *size_bytes, *end)?,
            Record::Map {
                id,
                page,
                phys,
                count,
            } => self.map(*id, *page, *phys, u64::from(*count))?,
            Record::Remap { id, page, phys } => self.remap(*id, *page, *phys)?,
            Record::Overlay {
                id,
                page,
                phys,
                backing,
            } => self.overlay(*id, *page, *phys, *backing)?,
            Record::Whole { phys } => self.become_whole(*phys),
            Record::Backed { phys, backing } => {
                if !self.backings.insert(*phys, *backing) {
                    return Err(format!(
                        "page {phys} is backed by {backing}, outside the format"
                    ));
                }
            }
            Record::Unmap { id, page, count } => self.unmap(*id, *page, u64::from(*count))?,
            Record::ZoneOn {
                zone,
                level,
                incarnation,
            } => {
                let (level, incarnation) = (*level, *incarnation);
                self.zone_on(*zone, ZoneState { level, incarnation })?;
            }
            Record::ZoneOff { zone } => self.zone_off(*zone)?,
            Record::Moved { zone, place, drive } => self.place_moved(*zone, *place, *drive)?,
            Record::Rebuilt { member, zone } => self.rebuilt_in(*member, *zone),
            Record::NextIncarnation { incarnation } => {
                self.next_incarnation = self.next_incarnation.max(*incarnation);
            }
            Record::RebuildOver { member } => {
                self.rebuilt.remove(member);
            }
            Record::NextId { id } => self.next_id = self.next_id.max(id.0),
            Record::Property(id, property) => self.say(*id, property)?,
        }
        Ok(())
    }

    fn create(&mut self, core: VolumeCore<L>) -> Result<(), String> {
        let id = core.id;
        if self.volumes.contains_key(&id) || id.0 < self.next_id {
            return Err(format!("volume id {} is given out twice", id.0));
        }
        self.volumes.insert(id, Rc::new(core));
        self.next_id = id.0 + 1;
        Ok(())
    }

    fn delete(&mut self, id: VolumeId) -> Result<(), String> {
        let core = self.known(id)?;
        let (map, properties) = (core.map.take(), core.properties.bytes());
        self.properties_bytes -= properties;
        self.volumes.remove(&id);
        self.give_up(map);
        Ok(())
    }

    fn share(&mut self, id: VolumeId, from: VolumeId) -> Result<(), String> {
        let from = Rc::clone(self.known(from)?);
        let core = Rc::clone(self.known(id)?);
        if core.map.borrow().mapped() > 0 {
            return Err(format!("volume id {} has pages, and would share", id.0));
        }
        let mut empty = core.map.replace(from.map.borrow().share(&mut self.refs));
        while empty.give_up_some(&mut self.refs, &mut self.freed) {}
        Ok(())
    }

    fn restore(&mut self, id: VolumeId, from: VolumeId) -> Result<(), String> {
        let theirs = Rc::clone(self.known(from)?);
        let theirs = theirs.map.borrow().share(&mut self.refs);
        let before = self.known(id)?.map.replace(theirs);
        self.give_up(before);
        Ok(())
    }

    fn map(
        &mut self,
        id: VolumeId,
        page: PageIndex,
        phys: PhysPage,
        count: u64,
    ) -> Result<(), String> {
        let run = MapRun { page, phys, count };
        let core = Rc::clone(self.known(id)?);
        let mapped = core.map.borrow_mut().insert(run, &mut self.refs);
        mapped.map_err(|page| mapped_twice(id, page))?;
        self.begin_anew(phys, count);
        Ok(())
    }

    fn remap(&mut self, id: VolumeId, page: PageIndex, phys: PhysPage) -> Result<(), String> {
        let core = Rc::clone(self.known(id)?);
        let mut map = core.map.borrow_mut();
        if !map.remap(page, phys, &mut self.refs, &mut self.freed) {
            return Err(format!(
                "page {page} of volume id {} moves and lies nowhere",
                id.0
            ));
        }
        self.begin_anew(phys, 1);
        Ok(())
    }

    /// A page that others have, too, becomes the volume's own: `phys`, which lies over `backing`.
    fn overlay(
        &mut self,
        id: VolumeId,
        page: PageIndex,
        phys: PhysPage,
        backing: PhysPage,
    ) -> Result<(), String> {
        let core = Rc::clone(self.known(id)?);
        let mut map = core.map.borrow_mut();
        if self.backings.get(backing).is_some() || phys == backing {
            return Err(format!("page {phys} would be backed by one that is, too"));
        }
        let is_inside = phys.0 < u64::from(UNMAPPED) && backing.0 < u64::from(UNMAPPED);
        if map.get(page).is_none() || !is_inside {
            return Err(format!(
                "page {page} of volume id {} is to lie over another, and lies nowhere",
                id.0
            ));
        }
        self.begin_anew(phys, 1);
        // Before the map lets go: what it had is often what backs.
        if self.counted {
            self.refs.add(backing);
        }
        self.backings.insert(phys, backing);
        map.remap(page, phys, &mut self.refs, &mut self.freed);
        Ok(())
    }

    /// A page has all of its content itself, and lets go of its backing.
    fn become_whole(&mut self, phys: PhysPage) {
        let backing = self.backings.remove(phys);
        if let Some(backing) = backing.filter(|_| self.counted)
            && self.refs.take(backing)
        {
            self.freed.push(backing);
        }
    }

    fn unmap(&mut self, id: VolumeId, page: PageIndex, count: u64) -> Result<(), String> {
        let core = Rc::clone(self.known(id)?);
        let mut map = core.map.borrow_mut();
        map.remove(page, count, &mut self.refs, &mut self.freed);
        Ok(())
    }

    fn zone_on(&mut self, zone: u32, state: ZoneState) -> Result<(), String> {
        if self.zones.contains_key(&zone) {
            return Err(format!("zone {zone} is taken into use twice"));
        }
        let next = state.incarnation + 1;
        self.zones.insert(zone, state);
        self.next_incarnation = self.next_incarnation.max(next);
        Ok(())
    }

    fn zone_off(&mut self, zone: u32) -> Result<(), String> {
        if self.zones.remove(&zone).is_none() {
            return Err(format!("zone {zone} goes out of use and was not in it"));
        }
        self.moved.remove(&zone);
        self.rebuilt.values_mut().for_each(|zones| {
            zones.remove(&zone);
        });
        Ok(())
    }

    fn rebuilt_in(&mut self, member: Uuid, zone: u32) {
        self.rebuilt.entry(member).or_default().insert(zone);
    }

    fn place_moved(&mut self, zone: u32, place: u8, drive: u8) -> Result<(), String> {
        if !self.zones.contains_key(&zone) {
            return Err(format!(
                "place {place} of zone {zone} moves, which is not in use"
            ));
        }
        let places = self.moved.entry(zone).or_default();
        match drive {
            HOME => places.remove(&place),
            drive => places.insert(place, drive),
        };
        if places.is_empty() {
            self.moved.remove(&zone);
        }
        Ok(())
    }

    fn say(&mut self, id: VolumeId, property: &Property) -> Result<(), String> {
        let core = Rc::clone(self.known(id)?);
        self.properties_bytes -= core.properties.bytes();
        core.properties.apply(&core.name, property);
        self.properties_bytes += core.properties.bytes();
        Ok(())
    }
}
