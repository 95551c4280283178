//! The drives of a pool: groups, zones, labels, and the handling of a drive that fails.
//!
//! Invariants:
//! - Nothing that a drive missed is acknowledged before the labels of the others say
//!   that it has failed. So an opening never trusts it again.
//! - A drive goes out of use only where every span of its group, at every level in
//!   use there, can do without it, and somebody else carries metadata and logs.
//! - Once the pool has stopped, nothing reaches its drives any more, and everything that
//!   waits is answered. So the next opening finds the logs as they were.
//!
//! Rooms: [`member`] (a drive in its pool), [`vitals`] (how it fares), [`doubt`] (what its errors
//! mean), `hung` (what waits for it), `zone` (zones and groups), `place_move` (places of zones
//! on their way to other drives), `numbers` (of their pages),
//! `labels`, `losses`, `succession` (drives that are copied before they leave), `departed` (drives that
//! are free again), `heartbeat` (who has the pool), `stamp` (whose a drive without a whole label is),
//! `roster` (which there are), [`events`].

mod departed;
pub mod doubt;
pub mod events;
pub mod fault;
pub(crate) mod heartbeat;
pub(crate) mod hung;
mod labels;
pub(crate) mod limits;
mod losses;
pub mod member;
mod numbers;
mod overdue;
mod place_move;
mod roster;
pub(crate) mod stamp;
mod succession;
mod turns;
pub mod vitals;
mod zone;

pub(crate) use departed::WIPED_BYTES;
pub use departed::{HASTY, Leftover};
pub use doubt::{Doubt, Verdict};
pub use events::{Event, EventKind, Mended};
pub use fault::{DriveFault, flush_each};
pub use limits::Limits;
pub use member::{Member, MemberInfo};
pub use numbers::PageNumbers;
pub use place_move::{PlaceMove, Taker};
pub use zone::{Group, Zone, stride_bytes, zone_capacity};

use crate::error::{PoolError, PoolErrorKind};
use crate::label::{Label, LabelSummary, MemberState, PoolIdentity};
use crate::lane::{LaneSlot, View};
use crate::raid::Level;
use crate::world::World;
use base::{DriveOffset, Uuid};
use events::Events;
use futures_util::lock::Mutex;
use heartbeat::Heart;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A drive under the name that the site gives it.
pub struct NamedDrive<W: World> {
    /// For messages; a pool is found by labels, not by names.
    pub name: String,
    /// The drive, which the caller has opened.
    pub drive: W::Drive,
}

/// The drives of groups, by group and place.
pub type Places<W> = Vec<Vec<Rc<Member<W>>>>;

/// The group number of a spare.
pub const SPARE_GROUP: u16 = u16::MAX;

/// The drives of a pool.
pub struct Drives<W: World> {
    world: W,
    lane: LaneSlot,
    identity: PoolIdentity,
    groups: RefCell<Vec<Rc<Group<W>>>>,
    numbers: PageNumbers,
    /// Drives that wait to stand in.
    spares: RefCell<Vec<Rc<Member<W>>>>,
    /// Drives that have left with operations in flight.
    retired: RefCell<Vec<Rc<Member<W>>>>,
    /// By number; none for those not in use.
    zones: RefCell<Vec<Option<Rc<Zone<W>>>>>,
    /// As last written, but for the drive's own identity and the tables.
    label: RefCell<Label>,
    writing: Mutex<()>,
    /// Changes of the member table asked for, and made durable.
    wanted: Cell<u64>,
    durable: Cell<u64>,
    /// The last of `wanted` that says of a drive that it is out of use.
    lost: Cell<u64>,
    /// Whether a task makes the last of `wanted` durable.
    settling: Cell<bool>,
    /// Whether somebody looks after drives that do not answer.
    watched: Cell<bool>,
    /// The drive that had to be there for the opening and did not answer.
    silent: RefCell<Option<String>>,
    /// Why the pool has stopped.
    failure: RefCell<Option<String>>,
    closed: Cell<bool>,
    events: Events,
    /// Told when a drive goes out of use.
    waker: RefCell<Option<Box<dyn Fn()>>>,
    /// Told why the pool stops, when it does: they refuse all that waits.
    stop_hooks: RefCell<Vec<StopHook>>,
    heart: Heart,
}

/// Told why the pool stops.
type StopHook = Box<dyn Fn(&str)>;

impl<W: World> Drives<W> {
    /// The drives that the `label` of a lane describes: groups by place, and spares.
    pub fn new(
        world: W,
        lane: LaneSlot,
        label: Label,
        groups: Places<W>,
        spares: Vec<Rc<Member<W>>>,
    ) -> Self {
        let identity = label.pool.clone();
        let heart = Heart::new(&world, identity.uuid);
        let numbers = PageNumbers::of(label.groups.iter().map(|group| group.numbers));
        let entries = label.groups.iter().zip(groups);
        let groups = (0..)
            .zip(entries)
            .map(|(index, (entry, members))| Rc::new(Group::new(index, *entry, members, &identity)))
            .collect();
        Drives {
            world,
            lane,
            groups: RefCell::new(groups),
            numbers,
            identity,
            spares: RefCell::new(spares),
            retired: RefCell::default(),
            zones: RefCell::default(),
            label: RefCell::new(label),
            writing: Mutex::new(()),
            wanted: Cell::new(0),
            durable: Cell::new(0),
            lost: Cell::new(0),
            settling: Cell::new(false),
            watched: Cell::new(false),
            silent: RefCell::default(),
            failure: RefCell::new(None),
            closed: Cell::new(false),
            events: Events::default(),
            waker: RefCell::new(None),
            stop_hooks: RefCell::default(),
            heart,
        }
    }

    /// The world that they are in.
    pub fn world(&self) -> &W {
        &self.world
    }

    /// Which lane of the pool this is.
    pub fn lane(&self) -> &LaneSlot {
        &self.lane
    }

    /// A drive as this lane sees it.
    pub fn view(&self, drive: W::Drive) -> View<W::Drive> {
        View::new(Rc::new(drive), self.identity.part())
    }

    /// What never changes of the pool.
    pub fn identity(&self) -> &PoolIdentity {
        &self.identity
    }

    /// The pool's name, from its label.
    pub fn name(&self) -> &str {
        &self.identity.name
    }

    /// The pool's identity for life, from its label.
    pub fn uuid(&self) -> Uuid {
        self.identity.uuid
    }

    /// The epoch of this opening.
    pub fn epoch(&self) -> u64 {
        self.label.borrow().epoch
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u64 {
        u64::from(self.identity.page_bytes)
    }

    /// Which zone each page number is of.
    pub fn numbers(&self) -> &PageNumbers {
        &self.numbers
    }

    /// The group at `index`, whether it has left or not.
    pub fn group(&self, index: u16) -> Rc<Group<W>> {
        Rc::clone(&self.groups.borrow()[usize::from(index)])
    }

    /// All groups in their order, those that left included.
    pub fn groups(&self) -> Vec<Rc<Group<W>>> {
        self.groups.borrow().clone()
    }

    /// Drives that wait to stand in.
    pub fn spares(&self) -> Vec<Rc<Member<W>>> {
        self.spares.borrow().clone()
    }

    /// Takes in a drive that waits to stand in, or gives one away.
    pub fn change_spares(&self, change: impl FnOnce(&mut Vec<Rc<Member<W>>>)) {
        change(&mut self.spares.borrow_mut());
    }

    /// The drives of all groups, by group and place.
    pub fn members(&self) -> Vec<Rc<Member<W>>> {
        let groups = self.groups.borrow();
        groups.iter().flat_map(|group| group.places()).collect()
    }

    /// How many drives all groups have.
    pub fn count(&self) -> usize {
        let groups = self.groups.borrow();
        groups.iter().map(|group| group.drives()).sum()
    }

    /// Whether an arm moves in any of them.
    pub fn has_disks(&self) -> bool {
        let members = self.members();
        members.iter().any(|member| member.is_rotational())
    }

    /// Whether a drive with this label is of another pool, or in use in this one. A drive
    /// that was of this pool before may come back, as a new one.
    pub fn has_use_for(&self, label: &LabelSummary) -> bool {
        let spares = self.spares();
        let members = self.members();
        let mut all = members.iter().chain(&spares);
        let known = all.find(|member| member.uuid == label.drive_uuid);
        let departed = self.departed();
        label.pool_uuid != self.uuid()
            || known.is_some_and(|member| member.state() != MemberState::Failed)
            // It is about to be wiped. The other lanes take what the first has taken.
            || self.lane.index == 0 && departed.iter().any(|member| member.uuid == label.drive_uuid)
    }

    /// Drives in use that what is written of the metadata goes to.
    pub fn metadata_members(&self) -> Vec<Rc<Member<W>>> {
        let mut members = self.members();
        members.extend(self.successors());
        members.retain(|member| member.takes_metadata() && member.is_writable());
        members
    }

    /// Drives that carry the logs.
    pub fn log_members(&self) -> Vec<Rc<Member<W>>> {
        let mut members = self.members();
        members.extend(self.successors());
        members.retain(|member| member.log() && member.is_writable());
        members
    }

    /// A zone that is in use.
    pub fn zone(&self, zone: u32) -> Option<Rc<Zone<W>>> {
        self.zones.borrow().get(zone as usize)?.clone()
    }

    /// All zones that are in use.
    pub fn zones(&self) -> Vec<Rc<Zone<W>>> {
        self.zones.borrow().iter().flatten().cloned().collect()
    }

    /// The group that a zone belongs to.
    pub fn group_of_zone(&self, zone: u32) -> Option<Rc<Group<W>>> {
        let groups = self.groups.borrow();
        let of = |group: &&Rc<Group<W>>| group.numbers.zone_range().contains(&zone);
        groups.iter().find(of).cloned()
    }

    /// Zone `zone` is in use from now on.
    ///
    /// # Errors
    /// When it is not one, or can't be of that level.
    pub fn zone_on(
        &self,
        zone: u32,
        level: Level,
        incarnation: u32,
    ) -> Result<Rc<Zone<W>>, String> {
        let group = self
            .group_of_zone(zone)
            .ok_or_else(|| format!("there is no zone {zone}"))?;
        let made = Rc::new(Zone::new(&group, zone, level, incarnation, &self.identity)?);
        let mut zones = self.zones.borrow_mut();
        if zones.len() <= zone as usize {
            zones.resize_with(zone as usize + 1, || None);
        }
        zones[zone as usize] = Some(Rc::clone(&made));
        Ok(made)
    }

    /// Zone `zone` is in use, as the metadata says, with the places in `moved` on these drives of its
    /// group.
    ///
    /// # Errors
    /// When it is not one, can't be of that level, or its places can't stand there.
    pub fn take_up_zone(
        &self,
        zone: u32,
        (level, incarnation): (Level, u32),
        moved: Option<&BTreeMap<u8, u8>>,
    ) -> Result<Rc<Zone<W>>, String> {
        let zone = self.zone_on(zone, level, incarnation)?;
        if let Some(moved) = moved.filter(|_| !self.world.planted("moves of places forgotten")) {
            let moved = moved.iter();
            let moved = moved.map(|(place, drive)| (usize::from(*place), usize::from(*drive)));
            zone.stand_all(moved)?;
        }
        Ok(zone)
    }

    /// Zone `zone` is not in use any more.
    pub fn zone_off(&self, zone: u32) {
        if let Some(slot) = self.zones.borrow_mut().get_mut(zone as usize) {
            *slot = None;
        }
    }

    /// That the pool is in use and sound.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(&self) -> Result<(), PoolError> {
        self.check_failure()?;
        if self.closed.get() {
            let context = format!("pool '{}' is closed", self.name());
            return Err(PoolError::new(PoolErrorKind::Failed, context));
        }
        Ok(())
    }

    /// That the pool has not stopped (closing goes on through this).
    pub(crate) fn check_failure(&self) -> Result<(), PoolError> {
        match self.failure.borrow().as_ref() {
            None => Ok(()),
            Some(reason) => {
                let context = format!("pool '{}' has stopped: {reason}", self.name());
                Err(PoolError::new(PoolErrorKind::Failed, context))
            }
        }
    }

    /// Why the pool has stopped, if it has.
    pub fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// Stops the pool: nothing is acknowledged from now on, nothing reaches a drive, and
    /// what waits is refused. The first reason stays.
    pub fn stop(&self, reason: String) {
        if self.failure.borrow().is_some() {
            return;
        }
        self.event(
            EventKind::PoolStopped,
            format!("pool '{}' has stopped: {reason}", self.name()),
        );
        self.failure.replace(Some(reason.clone()));
        self.world.reached("pool stops");
        // Whatever goes on for a moment must not let go of a log entry, mark a drive as
        // failed, or wait for a drive that hangs.
        if self.world.planted("stopped pool goes on writing") {
            return;
        }
        let beside = self.spares().into_iter().chain(self.retired());
        for member in self.members().into_iter().chain(beside) {
            member.vitals().give_up();
        }
        for hook in self.stop_hooks.borrow().iter() {
            hook(&reason);
        }
        self.wake();
    }

    /// Calls `hook` with the reason when the pool stops.
    pub(crate) fn on_stop(&self, hook: impl Fn(&str) + 'static) {
        self.stop_hooks.borrow_mut().push(Box::new(hook));
    }

    /// The pool is closed from now on.
    pub(crate) fn set_closed(&self) {
        self.closed.set(true);
    }

    /// Calls `wake` whenever a drive goes out of use.
    pub fn set_waker(&self, wake: impl Fn() + 'static) {
        self.waker.replace(Some(Box::new(wake)));
    }

    fn wake(&self) {
        if let Some(wake) = self.waker.borrow().as_ref() {
            wake();
        }
    }

    /// The pool has been started, and watches its drives itself.
    pub(crate) fn set_watched(&self) {
        self.watched.set(true);
    }

    /// See [`Drives::set_watched`].
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.get()
    }

    /// The pool can't be opened: it needs a drive that does not answer.
    pub(crate) fn stop_for_silence(&self, member: &Member<W>) {
        let text = format!(
            "drive '{}' does not answer, and pool '{}' can't do without it",
            member.name,
            self.name()
        );
        self.silent.borrow_mut().get_or_insert(text.clone());
        self.stop(text);
        member.vitals().give_up();
    }

    /// What an opening failed for: the drive that does not answer, where there is one.
    pub(crate) fn because_of_silence(&self, error: PoolError) -> PoolError {
        match self.silent.borrow().as_ref() {
            Some(text) => PoolError::new(PoolErrorKind::Missing, text.clone()),
            None => error,
        }
    }

    /// Something that people should know of.
    pub fn event(&self, kind: EventKind, text: String) {
        self.events.push(self.world.now(), kind, text);
    }

    /// Tells of something, and of how many blocks are lost by it.
    pub fn event_of_loss(&self, kind: EventKind, text: String, lost_blocks: u64) {
        let now = self.world.now();
        self.events.push_with(now, kind, text, Some(lost_blocks));
    }

    /// Tells of a block of a drive that was put right.
    pub fn mended(&self, drive: &str, what: Mended, at: DriveOffset) {
        self.events.mended(self.world.now(), drive, what, at);
    }

    /// Events with a higher number than `sequence`, as far as they are kept.
    pub fn events_since(&self, sequence: u64) -> Vec<Event> {
        self.events.since(sequence)
    }

    /// Where the journal area of `generation` begins on each drive.
    pub fn journal_at(&self, generation: u64) -> DriveOffset {
        DriveOffset(self.identity.journal_offset(generation))
    }
}
