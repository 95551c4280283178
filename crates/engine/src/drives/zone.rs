//! Groups and zones: their places on drives, and the levels that they can have.

use crate::drives::{Member, PlaceMove};
use crate::label::{GroupEntry, GroupNumbers, GroupRole, PoolIdentity};
use crate::layout::{SumMap, SumOrder, ZoneShape, sum_area::area_bytes};
use crate::raid::spread::homes;
use crate::raid::{Geometry, Level, Protection, Spread};
use crate::world::World;
use base::{BLOCK_BYTES, DriveOffset, PhysPage};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A RAID group with its drives and its zones.
pub struct Group<W: World> {
    /// Its number in the pool.
    pub index: u16,
    /// Where its zones, in use or not, and their pages are among all.
    pub numbers: GroupNumbers,
    /// What it is for.
    pub role: GroupRole,
    /// How it is wider than its stripes, if it is.
    pub spread: Option<Spread>,
    sum_order: SumOrder,
    level: Cell<Level>,
    leaving: Cell<bool>,
    /// Moves of its zones' places that an opening may find done.
    pub(super) settling: Cell<usize>,
    places: RefCell<Vec<Rc<Member<W>>>>,
    /// Of a group that has left: drives with labels that nobody needs any more.
    departed: RefCell<Vec<Rc<Member<W>>>>,
    stride_bytes: u64,
    /// Of a spread group: how many places of its zones stand on each drive.
    held: RefCell<Vec<usize>>,
}

/// A zone in use.
pub struct Zone<W: World> {
    /// What the sums need to know.
    pub shape: ZoneShape,
    /// How it protects data.
    pub level: Level,
    /// The group it is part of.
    pub group: Rc<Group<W>>,
    /// Where its data begins on each drive.
    pub data: DriveOffset,
    /// The number of its first page.
    pub first_page: PhysPage,
    zone_bytes: u64,
    /// Of a spread group: the drive that each place stands on. Without it each place stands on its own.
    standing: Option<Box<[Cell<u8>]>>,
    /// Places that are on their way to another drive.
    pub(super) moves: RefCell<Vec<Rc<PlaceMove<W>>>>,
}

/// The shapes that `drives` drives can have.
fn geometries(
    drives: usize,
    spread: Option<Spread>,
    identity: &PoolIdentity,
) -> impl Iterator<Item = Geometry> {
    let unit = u64::from(identity.stripe_unit_bytes);
    Level::ALL.into_iter().filter_map(move |level| {
        Geometry::of_group(Protection { level, spread }, drives, unit).ok()
    })
}

/// Bytes of a drive from one zone to the next: sums first, then data. The same at
/// every level that the drives can have, so that a zone can change its level.
pub fn stride_bytes(drives: usize, spread: Option<Spread>, identity: &PoolIdentity) -> u64 {
    let slots = identity.slots();
    let unit = u64::from(identity.stripe_unit_bytes);
    let areas = geometries(drives, spread, identity)
        .map(|geometry| area_bytes(geometry, slots, identity.zone_bytes));
    let area = areas.max().unwrap_or(0).next_multiple_of(unit);
    (area + identity.zone_bytes).next_multiple_of(slots.alignment())
}

/// Pages that a zone of `drives` drives holds.
pub fn zone_capacity(
    protection: impl Into<Protection>,
    drives: usize,
    identity: &PoolIdentity,
) -> u64 {
    let unit = u64::from(identity.stripe_unit_bytes);
    let geometry = Geometry::of_group(protection.into(), drives, unit);
    let bytes = geometry.map_or(0, |geometry| geometry.zone_data_bytes(identity.zone_bytes));
    bytes / u64::from(identity.page_bytes)
}

impl<W: World> Group<W> {
    /// Whether zones of `shape` could be taken into use without losing data, were the drives at
    /// `places` gone, too: no span lacks more drives than it can lose. A spread group puts its zones on
    /// the drives that are there.
    pub fn has_enough_for(&self, shape: &Geometry, places: &[usize]) -> bool {
        let is_lost = |place: &usize| places.contains(place) || !self.place(*place).is_whole();
        if let Some(spread) = self.spread {
            let lost = (0..self.drives()).filter(is_lost).count();
            return lost <= usize::from(spread.spares) + shape.redundancy();
        }
        (0..shape.spans)
            .all(|span| shape.span_places(span).filter(is_lost).count() <= shape.redundancy())
    }

    /// Whether its zones in use survive without the drives at `places`, and without those that are
    /// not whole. Of a spread group.
    pub(super) fn zones_survive_without(&self, zones: &[Rc<Zone<W>>], places: &[usize]) -> bool {
        // One that holds nothing of any zone is no loss.
        let is_gone = |place: usize| {
            let is_needed = self.holds(place) || self.settling.get() > 0;
            is_needed && (places.contains(&place) || !self.place(place).is_whole())
        };
        let gone: Vec<bool> = (0..self.drives()).map(is_gone).collect();
        let count = gone.iter().filter(|gone| **gone).count();
        if self.is_planted("loss of a spread group judged by its spares") {
            return true;
        }
        let (mut zones, settles) = (zones.iter(), self.settling.get() > 0);
        zones.all(|zone| {
            let few = count <= zone.shape.geometry.redundancy() && !settles;
            few || zone.survives_without(&gone)
        })
    }

    /// Whether its world has this bug.
    pub(super) fn is_planted(&self, bug: &'static str) -> bool {
        let places = self.places.borrow();
        places.first().is_some_and(|member| member.planted(bug))
    }

    /// Where so many places of a zone stand at first; none where each is on its own drive.
    fn at_home(&self, zone: u32, places: usize) -> Option<Box<[Cell<u8>]>> {
        let homes = self
            .spread
            .map(|_| homes(zone - self.numbers.first_zone, self.drives()));
        homes.map(|homes| homes.take(places).map(Cell::new).collect())
    }

    /// Whether a place of any zone stands on the drive at this place.
    pub fn holds(&self, place: usize) -> bool {
        self.held.borrow().get(place).is_some_and(|held| *held > 0)
    }

    /// Counts the places of a zone among those that stand on the drives, or no longer.
    fn count_held(&self, standing: &[Cell<u8>], change: impl Fn(&mut usize)) {
        let mut held = self.held.borrow_mut();
        for on in standing {
            if let Some(held) = held.get_mut(usize::from(on.get())) {
                change(held);
            }
        }
    }

    /// Which of its drives hold all that they should, by place.
    pub fn whole(&self) -> Vec<bool> {
        let places = self.places.borrow();
        places.iter().map(|member| member.is_whole()).collect()
    }

    /// How its drives protect each other in zones taken into use from now on.
    pub fn protection(&self) -> Protection {
        Protection {
            level: self.level(),
            spread: self.spread,
        }
    }

    /// The shape of its zones at that level.
    ///
    /// # Errors
    /// What its number of drives should be.
    pub fn shape_at(&self, level: Level, unit_bytes: u64) -> Result<Geometry, String> {
        let spread = self.spread;
        Geometry::of_group(Protection { level, spread }, self.drives(), unit_bytes)
    }

    pub(super) fn new(
        index: u16,
        entry: GroupEntry,
        members: Vec<Rc<Member<W>>>,
        identity: &PoolIdentity,
    ) -> Self {
        Group {
            index,
            numbers: entry.numbers,
            role: entry.role,
            spread: entry.spread,
            sum_order: entry.sum_order,
            level: Cell::new(entry.level),
            leaving: Cell::new(entry.leaving),
            settling: Cell::new(0),
            stride_bytes: stride_bytes(members.len(), entry.spread, identity),
            held: RefCell::new(vec![0; members.len()]),
            places: RefCell::new(members),
            departed: RefCell::default(),
        }
    }

    /// The level of zones taken into use from now on.
    pub fn level(&self) -> Level {
        self.level.get()
    }

    /// Whether it is there for the logs, and has no zones.
    pub fn is_log(&self) -> bool {
        self.role == GroupRole::Log
    }

    /// Whether it is to leave the pool.
    pub fn leaves(&self) -> bool {
        self.leaving.get()
    }

    /// It is to leave the pool, or to stay.
    pub fn set_leaving(&self, leaving: bool) {
        self.leaving.set(leaving);
    }

    /// Zones taken into use from now on have this level.
    pub fn set_level(&self, level: Level) {
        self.level.set(level);
    }

    /// Bytes of each drive from one zone to the next.
    pub fn stride_bytes(&self) -> u64 {
        self.stride_bytes
    }

    /// How many drives it has.
    pub fn drives(&self) -> usize {
        self.places.borrow().len()
    }

    /// The drive at a place.
    pub fn place(&self, place: usize) -> Rc<Member<W>> {
        Rc::clone(&self.places.borrow()[place])
    }

    /// Its drives, by place.
    pub fn places(&self) -> Vec<Rc<Member<W>>> {
        self.places.borrow().clone()
    }

    /// It has left this lane. Drives that can be written are to be wiped.
    pub(super) fn drop_places(&self) {
        let mut departed = self.places.take();
        departed.retain(|member| member.is_writable());
        self.departed.replace(departed);
    }

    /// Its drives that are to be wiped, once it has left all lanes.
    pub fn departed(&self) -> Vec<Rc<Member<W>>> {
        self.departed.borrow().clone()
    }

    /// They are nobody's from now on.
    pub(super) fn forget_departed(&self) {
        self.departed.take();
    }

    pub(super) fn set_departed(&self, departed: Vec<Rc<Member<W>>>) {
        self.departed.replace(departed);
    }

    /// Puts another drive in a place.
    pub fn put(&self, place: usize, member: Rc<Member<W>>) {
        self.places.borrow_mut()[place] = member;
    }
}

impl<W: World> Zone<W> {
    pub(super) fn new(
        group: &Rc<Group<W>>,
        zone: u32,
        level: Level,
        incarnation: u32,
        identity: &PoolIdentity,
    ) -> Result<Self, String> {
        let unit = u64::from(identity.stripe_unit_bytes);
        let geometry = group.shape_at(level, unit).map_err(|allowed| {
            let drives = group.drives();
            format!("zone {zone} of level {level} has {drives} drives: allowed is {allowed}")
        })?;
        let first_page = group.numbers.first_page_of(zone);
        let first_page = first_page.ok_or_else(|| format!("there is no zone {zone}"))?;
        let local = u64::from(zone - group.numbers.first_zone);
        let area = DriveOffset(identity.data_start + local * group.stride_bytes);
        let data = area + (group.stride_bytes - identity.zone_bytes);
        let blocks = geometry.zone_data_bytes(identity.zone_bytes) / BLOCK_BYTES as u64;
        let zone = Zone {
            shape: ZoneShape {
                zone,
                incarnation,
                group: group.index,
                geometry,
                blocks,
                area,
                slots: identity.slots(),
                sums: SumMap::new(group.sum_order, geometry, blocks),
            },
            level,
            group: Rc::clone(group),
            data,
            first_page,
            zone_bytes: identity.zone_bytes,
            standing: group.at_home(zone, geometry.places()),
            moves: RefCell::default(),
        };
        if let Some(standing) = &zone.standing {
            group.count_held(standing, |held| *held += 1);
        }
        Ok(zone)
    }

    /// The drive's place in the group that a place of the zone stands on.
    pub fn drive_place(&self, place: usize) -> usize {
        match &self.standing {
            None => place,
            Some(standing) => usize::from(standing[place].get()),
        }
    }

    /// The drive that a place stands on.
    pub fn place(&self, place: usize) -> Rc<Member<W>> {
        self.group.place(self.drive_place(place))
    }

    /// Whether the drive that a place stands on holds what it should there.
    pub fn is_readable(&self, place: usize) -> bool {
        self.place(place).is_readable(self.shape.zone)
    }

    /// The places that no drive holds; `whole` says which drives of the group are.
    pub fn lost(&self, whole: &[bool]) -> Vec<usize> {
        if whole.iter().all(|is_whole| *is_whole) {
            return Vec::new();
        }
        let mut places: Vec<usize> = (0..self.shape.geometry.places()).collect();
        places.retain(|place| !whole[self.drive_place(*place)] && !self.is_readable(*place));
        places
    }

    /// The place of the zone that stands on the drive at this place of the group.
    pub fn place_on(&self, drive_place: usize) -> Option<usize> {
        match &self.standing {
            None => Some(drive_place),
            Some(standing) => standing
                .iter()
                .position(|on| usize::from(on.get()) == drive_place),
        }
    }

    /// The place of the zone that stands on a drive of its group.
    pub fn place_of(&self, member: &Member<W>) -> Option<usize> {
        let is_of_it = member.group() == self.group.index;
        self.place_on(usize::from(member.place()))
            .filter(|_| is_of_it)
    }

    /// Where each place stands when all drives are whole.
    pub fn home_of(&self, place: usize) -> usize {
        if self.standing.is_none() {
            return place;
        }
        let local = self.shape.zone - self.group.numbers.first_zone;
        let mut homes = homes(local, self.group.drives());
        homes.nth(place).map_or(place, usize::from)
    }

    /// Places that do not stand at home, and the drives that they stand on.
    pub fn away(&self) -> Vec<(usize, usize)> {
        let Some(standing) = &self.standing else {
            return Vec::new();
        };
        let local = self.shape.zone - self.group.numbers.first_zone;
        let homes = homes(local, self.group.drives()).zip(standing);
        let away = homes
            .enumerate()
            .filter(|(_, (home, on))| *home != on.get());
        away.map(|(place, (_, on))| (place, usize::from(on.get())))
            .collect()
    }

    /// Drives of the group that no place stands on, nor is on its way to.
    pub fn spare_drives(&self) -> Vec<usize> {
        let Some(standing) = &self.standing else {
            return Vec::new();
        };
        let moves = self.moves.borrow();
        let is_free = |drive: &usize| {
            standing.iter().all(|on| usize::from(on.get()) != *drive)
                && moves.iter().all(|to| usize::from(to.to.place()) != *drive)
        };
        (0..self.group.drives()).filter(is_free).collect()
    }

    /// A place stands on the drive at this place of the group from now on.
    ///
    /// # Errors
    /// When it can't: another place is there, or there is no such drive.
    pub fn stand(&self, place: usize, drive_place: usize) -> Result<(), String> {
        self.stand_all(std::iter::once((place, drive_place)))
    }

    /// Places stand on these drives of the group from now on.
    ///
    /// # Errors
    /// When they can't: two places would be on one drive, or there is no such place or drive.
    pub fn stand_all(&self, places: impl Iterator<Item = (usize, usize)>) -> Result<(), String> {
        let number = self.shape.zone;
        let Some(standing) = &self.standing else {
            return Err(format!("the places of zone {number} can't move"));
        };
        self.group.count_held(standing, |held| *held -= 1);
        let stood = self.set_standing(standing, places);
        self.group.count_held(standing, |held| *held += 1);
        stood
    }

    fn set_standing(
        &self,
        standing: &[Cell<u8>],
        places: impl Iterator<Item = (usize, usize)>,
    ) -> Result<(), String> {
        let number = self.shape.zone;
        for (place, drive) in places {
            let on = standing.get(place).filter(|_| drive < self.group.drives());
            let Some(on) = on else {
                return Err(format!(
                    "place {place} of zone {number} stands on drive {drive} of its group, and there is no such place or drive"
                ));
            };
            on.set(drive as u8);
        }
        let mut drives: Vec<u8> = standing.iter().map(Cell::get).collect();
        drives.sort_unstable();
        match drives.windows(2).find(|pair| pair[0] == pair[1]) {
            None => Ok(()),
            Some(pair) => Err(format!(
                "two places of zone {number} stand on drive {} of its group",
                pair[0]
            )),
        }
    }

    /// Whether no span lacks more drives than it can lose, when those are gone for which `is_gone`
    /// says so, by their places in the group.
    fn survives_without(&self, is_gone: &[bool]) -> bool {
        let geometry = self.shape.geometry;
        let is_lost = |place: &usize| {
            let may_be = self.move_of(*place).filter(|to| to.is_settling());
            let to = may_be.is_some_and(|to| is_gone[usize::from(to.to.place())]);
            to || is_gone[self.drive_place(*place)]
        };
        let lost_of = |span| geometry.span_places(span).filter(is_lost).count();
        (0..geometry.spans).all(|span| lost_of(span) <= geometry.redundancy())
    }

    /// Bytes of each drive that are its data.
    pub fn zone_bytes(&self) -> u64 {
        self.zone_bytes
    }

    /// Pages that it holds.
    pub fn pages(&self, page_bytes: u64) -> u64 {
        self.shape.blocks * BLOCK_BYTES as u64 / page_bytes
    }
}

impl<W: World> Drop for Zone<W> {
    fn drop(&mut self) {
        if let Some(standing) = &self.standing {
            self.group.count_held(standing, |held| *held -= 1);
        }
    }
}
