//! A drive that is copied to another before it leaves, and its successor.
//!
//! Invariants:
//! - The old drive is the member, as before: it gets every write, answers reads, and counts in every
//!   judgement of what can be lost. The successor is a spare on the labels, and gets what is written to
//!   the zones of the old drive in the same moment.
//! - What the successor missed is acknowledged once the labels say that it is none any more.
//! - An old drive that goes out of use meanwhile has its place taken by the successor at once, as a
//!   drive that is being rebuilt. No write comes between.
//! - The old drive leaves by the generation of labels that gives its place to the successor.
//! - Whoever has got the old drive before it left still writes to both.
//!
//! When a copy begins, how far it is, and when it has ended is `pool::maintenance::succession`.

use super::{DriveFault, Drives, EventKind, Group, Member, SPARE_GROUP};
use crate::drive::DriveError;
use crate::label::{Label, MemberState};
use crate::world::World;
use base::{DriveOffset, Uuid};
use futures_util::future::join;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Told that a successor could not be written.
type Missed<W> = Rc<dyn Fn(&Rc<Member<W>>, DriveError)>;

/// The drive that another is copied to, as that one knows it.
pub(super) struct Successor<W: World> {
    member: Rc<Member<W>>,
    /// What lies before is each drive's own: labels, metadata and logs.
    zones: DriveOffset,
    missed: Missed<W>,
}

impl<W: World> Clone for Successor<W> {
    fn clone(&self) -> Self {
        Successor {
            member: Rc::clone(&self.member),
            zones: self.zones,
            missed: Rc::clone(&self.missed),
        }
    }
}

impl<W: World> Successor<W> {
    /// The drive that gets what is written to the old one.
    pub fn member(&self) -> &Rc<Member<W>> {
        &self.member
    }

    /// Whether it gets what is written there.
    pub fn takes(&self, at: DriveOffset) -> bool {
        at >= self.zones
    }

    /// Ends when both drives have: the answer is that of the drive which has the place.
    pub async fn both(
        &self,
        old: &Member<W>,
        own: impl Future<Output = Result<(), DriveError>>,
        theirs: impl Future<Output = Result<(), DriveError>>,
    ) -> Result<(), DriveError> {
        let (own, theirs) = join(own, theirs).await;
        if let Err(error) = theirs {
            (self.missed)(&self.member, error);
        }
        match self.has_place_of(old) {
            false => own,
            // The error, if there was one, has been seen to.
            true => Ok(()),
        }
    }

    /// Whether it has the place of the old drive by now. One that was given up has not.
    fn has_place_of(&self, old: &Member<W>) -> bool {
        let is_still = |other: Rc<Member<W>>| Rc::ptr_eq(&other, &self.member);
        let is_hidden = old.planted("failed write hidden by a successor that is given up");
        !self.member.succeeds() && (is_hidden || old.successor().is_some_and(is_still))
    }
}

impl<W: World> Drives<W> {
    /// The drives that others are copied to.
    pub fn successors(&self) -> Vec<Rc<Member<W>>> {
        let members = self.members().into_iter();
        members.filter_map(|member| member.successor()).collect()
    }

    /// The drive that is copied to this one.
    pub fn predecessor(&self, spare: &Member<W>) -> Option<Rc<Member<W>>> {
        let mut members = self.members().into_iter();
        members.find(|old| {
            let successor = old.successor();
            successor.is_some_and(|successor| std::ptr::eq(&*successor, spare))
        })
    }

    /// Has `spare` get all that is written to `old` from now on. No zone is being taken into use.
    pub fn begin_succession(self: &Rc<Self>, old: &Member<W>, spare: &Rc<Member<W>>) {
        spare.set_place(old.group(), old.place());
        spare.set_succeeds(true);
        spare.set_metadata(false);
        spare.set_log(false);
        self.link(old, spare);
        if self.world().planted("copied drive leaves at once") {
            self.take_out(old, "leaves");
        }
    }

    fn link(self: &Rc<Self>, old: &Member<W>, spare: &Rc<Member<W>>) {
        spare.set_state(MemberState::Rebuilding);
        let drives = Rc::downgrade(self);
        let missed = move |spare: &Rc<Member<W>>, error: DriveError| {
            if let Some(drives) = drives.upgrade() {
                drives.lose_successor(spare, error);
                drives.settle_labels_soon();
            }
        };
        old.set_successor(Some(Successor {
            member: Rc::clone(spare),
            zones: DriveOffset(self.identity().data_start),
            missed: Rc::new(missed),
        }));
    }

    /// A successor could not be written: the old drive stays, if it is there still.
    fn lose_successor(&self, successor: &Rc<Member<W>>, error: DriveError) {
        if self.check_failure().is_err() || !successor.is_writable() {
            return;
        }
        if successor.succeeds() {
            let text = format!("drive '{}' can't take the copy: {error}", successor.name);
            self.drop_spare(successor);
            successor.vitals().give_up();
            self.event(EventKind::Rebuild, text);
            return self.wake();
        }
        let member = Rc::clone(successor);
        let fault = DriveFault { member, error };
        if !self.expel(&fault) {
            self.stop(format!("it can't do without {fault:?}"));
        }
    }

    /// Ends a copy whose successor does not come: the old drive stays. Whether one was under way.
    ///
    /// What the successor misses from now on is acknowledged once the labels say so.
    pub(super) fn leave_successor(&self, spare: &Rc<Member<W>>) -> bool {
        let Some(old) = self.predecessor(spare) else {
            return false;
        };
        self.world().reached("copy of a drive given up");
        old.set_successor(None);
        spare.set_succeeds(false);
        spare.set_place(SPARE_GROUP, 0);
        spare.set_metadata(false);
        spare.set_log(false);
        spare.set_state(MemberState::Failed);
        self.retire(spare);
        let lane = self.lane();
        lane.registry.forget_copied(lane.index, spare.uuid);
        if !self
            .world()
            .planted("successor that missed a write stays one")
        {
            self.note_loss();
        }
        let (name, old) = (&spare.name, &old.name);
        let text = format!("copy of drive '{old}' to '{name}' has ended early: '{old}' stays");
        self.event(EventKind::Rebuild, text);
        true
    }

    /// Ends a copy; the successor is a spare as before.
    pub fn call_off_succession(&self, spare: &Rc<Member<W>>) {
        if self.leave_successor(spare) {
            spare.set_state(MemberState::Spare);
            spare.rebuilt().borrow_mut().clear();
        }
    }

    /// Has the successor of a drive that is out of use take its place, to be rebuilt.
    pub(super) fn promote_successor(&self, old: &Member<W>) {
        let Some(new) = old.successor().filter(|new| new.succeeds()) else {
            return;
        };
        self.world().reached("copied drive lost");
        self.take_place(old, &new);
        let text = format!(
            "drive '{}' stands in for '{}', which was copied to it (place {} of group {})",
            new.name,
            old.name,
            new.place(),
            new.group()
        );
        self.event(EventKind::SpareTaken, text);
    }

    /// The successor holds everything and takes the place of the old drive, which is out of use
    /// from now on. Reads of it that are under way end as they would. No zone is being taken into
    /// use.
    pub fn succeed(&self, old: &Rc<Member<W>>, new: &Rc<Member<W>>) {
        new.set_state(MemberState::Healthy);
        self.take_place(old, new);
        old.set_metadata(false);
        old.set_log(false);
        self.retire(old);
        let text = format!(
            "drive '{}' is out of use: it was copied to '{}' ({})",
            old.name,
            new.name,
            old.whereabouts()
        );
        self.event(EventKind::DriveFailed, text);
        self.note_loss();
    }

    fn take_place(&self, old: &Member<W>, new: &Rc<Member<W>>) {
        self.change_spares(|spares| spares.retain(|spare| !Rc::ptr_eq(spare, new)));
        new.set_succeeds(false);
        self.group(old.group())
            .put(usize::from(old.place()), Rc::clone(new));
    }

    /// Has the label of a drive that has left say so: it has old data from now on, and must not
    /// open the pool with that when the other drives are away. Nobody waits for it.
    pub fn tell_retired(&self, old: &Rc<Member<W>>) {
        let label = Label {
            drive_uuid: old.uuid,
            ..self.label.borrow().clone()
        };
        let (world, old) = (self.world().clone(), Rc::clone(old));
        let slot = label.slot_offset();
        self.world().spawn(async move {
            let bytes = world.buffers().copy_of(&label.encode()).freeze();
            drop(old.write_durably(slot, bytes).await);
        });
    }

    /// Whether a drive is part of the pool still.
    pub fn has(&self, member: &Rc<Member<W>>) -> bool {
        let mut all = self.members().into_iter().chain(self.spares());
        all.any(|other| Rc::ptr_eq(&other, member))
    }

    fn retire(&self, member: &Rc<Member<W>>) {
        self.retired.borrow_mut().push(Rc::clone(member));
    }

    /// Drives that have left with operations in flight, which nobody else looks after.
    pub(super) fn retired(&self) -> Vec<Rc<Member<W>>> {
        let mut retired = self.retired.borrow_mut();
        // Who holds a drive still may flush it, or write to it.
        let spares = self.spares();
        let is_spare =
            |member: &Rc<Member<W>>| spares.iter().any(|spare| Rc::ptr_eq(spare, member));
        retired.retain(|member| {
            member.outstanding() > 0 || (Rc::strong_count(member) > 1 && !is_spare(member))
        });
        retired.clone()
    }

    /// Whether writes are under way to a drive that was a successor: they may land after what is
    /// written to it next.
    pub fn is_still_written(&self, spare: &Member<W>) -> bool {
        let mut retired = self.retired().into_iter();
        retired.any(|other| std::ptr::eq(&*other, spare) && other.outstanding() > 0)
    }

    /// Takes up the copies that labels say were under way: the successor of a drive that is there
    /// no more has its place.
    pub fn take_up_successors(self: &Rc<Self>) {
        for spare in self.spares().into_iter().filter(|spare| spare.succeeds()) {
            let groups = self.groups();
            let group = groups.get(usize::from(spare.group()));
            let mut places = group
                .map_or_else(Vec::new, |group| group.places())
                .into_iter();
            let old = places.find(|old| old.place() == spare.place());
            match old {
                Some(old) if old.is_whole() => {
                    // The old drive has them still.
                    spare.set_metadata(false);
                    spare.set_log(false);
                    self.link(&old, &spare);
                }
                Some(old) if old.state() == MemberState::Failed => {
                    self.link(&old, &spare);
                    self.promote_successor(&old);
                }
                _ => {
                    spare.set_succeeds(false);
                    spare.set_place(SPARE_GROUP, 0);
                }
            }
        }
    }

    /// A crash may have left a zone half changed on a successor, which nobody reads: it is copied
    /// anew.
    pub fn doubt_successors(&self, zone: u32) {
        let Some(group) = self.group_of_zone(zone) else {
            return;
        };
        let successors = group.places().into_iter();
        for successor in successors.filter_map(|member| member.successor()) {
            successor.rebuilt().borrow_mut().remove(&zone);
        }
    }

    /// A zone is out of use: it is whole on no drive.
    pub fn doubt_rebuilt(&self, group: &Group<W>, zone: u32) {
        self.doubt_successors(zone);
        for member in group.places() {
            member.rebuilt().borrow_mut().remove(&zone);
        }
    }

    /// The zones that are whole on each successor.
    pub fn copied_zones(&self) -> BTreeMap<Uuid, BTreeSet<u32>> {
        let successors = self.successors().into_iter();
        let zones = successors.map(|new| (new.uuid, new.rebuilt().borrow().clone()));
        zones.collect()
    }
}
