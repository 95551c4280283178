//! Groups and zones: their places on drives, and the levels that they can have.

use crate::drives::Member;
use crate::label::{GroupEntry, GroupNumbers, GroupRole, PoolIdentity};
use crate::layout::{ZoneShape, sum_area::area_bytes};
use crate::raid::{Geometry, Level};
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
    level: Cell<Level>,
    leaving: Cell<bool>,
    places: RefCell<Vec<Rc<Member<W>>>>,
    /// Of a group that has left: drives with labels that nobody needs any more.
    departed: RefCell<Vec<Rc<Member<W>>>>,
    stride_bytes: u64,
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
}

/// The shapes that `drives` drives can have.
fn geometries(drives: usize, identity: &PoolIdentity) -> impl Iterator<Item = Geometry> {
    let unit = u64::from(identity.stripe_unit_bytes);
    Level::ALL
        .into_iter()
        .filter_map(move |level| Geometry::of(level, drives, unit).ok())
}

/// Bytes of a drive from one zone to the next: sums first, then data. The same at
/// every level that the drives can have, so that a zone can change its level.
pub fn stride_bytes(drives: usize, identity: &PoolIdentity) -> u64 {
    let slots = identity.slots();
    let unit = u64::from(identity.stripe_unit_bytes);
    let areas = geometries(drives, identity)
        .map(|geometry| area_bytes(geometry, slots, identity.zone_bytes));
    let area = areas.max().unwrap_or(0).next_multiple_of(unit);
    (area + identity.zone_bytes).next_multiple_of(slots.alignment())
}

/// Pages that a zone of `drives` drives holds at `level`.
pub fn zone_capacity(level: Level, drives: usize, identity: &PoolIdentity) -> u64 {
    let geometry = Geometry::of(level, drives, u64::from(identity.stripe_unit_bytes));
    let bytes = geometry.map_or(0, |geometry| geometry.zone_data_bytes(identity.zone_bytes));
    bytes / u64::from(identity.page_bytes)
}

impl<W: World> Group<W> {
    /// Whether no span of `shape` lacks more drives than it can lose, were those at
    /// `places` gone, too.
    pub fn has_enough_for(&self, shape: &Geometry, places: &[usize]) -> bool {
        let is_lost = |place: &usize| places.contains(place) || !self.place(*place).is_whole();
        (0..shape.spans)
            .all(|span| shape.span_places(span).filter(is_lost).count() <= shape.redundancy())
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
            level: Cell::new(entry.level),
            leaving: Cell::new(entry.leaving),
            stride_bytes: stride_bytes(members.len(), identity),
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
        let geometry = Geometry::of(level, group.drives(), unit).map_err(|allowed| {
            format!(
                "zone {zone} of level {level} has {} drives: allowed is {allowed}",
                group.drives()
            )
        })?;
        let first_page = group.numbers.first_page_of(zone);
        let first_page = first_page.ok_or_else(|| format!("there is no zone {zone}"))?;
        let local = u64::from(zone - group.numbers.first_zone);
        let area = DriveOffset(identity.data_start + local * group.stride_bytes);
        let data = area + (group.stride_bytes - identity.zone_bytes);
        Ok(Zone {
            shape: ZoneShape {
                zone,
                incarnation,
                group: group.index,
                geometry,
                blocks: geometry.zone_data_bytes(identity.zone_bytes) / BLOCK_BYTES as u64,
                area,
                slots: identity.slots(),
            },
            level,
            group: Rc::clone(group),
            data,
            first_page,
            zone_bytes: identity.zone_bytes,
        })
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
