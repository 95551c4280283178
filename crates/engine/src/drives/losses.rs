//! Taking failed drives out of use.
//!
//! Invariants:
//! - A drive that goes out of use is asked nothing any more, and what is in flight on it
//!   ends at once: nobody waits for it.
//! - Whoever has gone on without a drive reports success only when the labels say so.

use super::{Drives, EventKind, Group};
use crate::drive::{DriveError, DriveErrorKind};
use crate::drives::{DriveFault, Member};
use crate::error::PoolError;
use crate::label::MemberState;
use crate::raid::Geometry;
use crate::world::World;
use base::DriveOffset;
use std::rc::Rc;

impl<W: World> Drives<W> {
    /// Takes drives that failed a write out of use, and makes that durable, and all that was
    /// taken out of use before: with no faults it waits for those.
    ///
    /// # Errors
    /// The fault of a drive that the pool can't do without: it stays in use, and the
    /// pool has stopped, for the drive lacks something that no other write repeats. That
    /// the pool has stopped before.
    pub async fn absorb(&self, faults: Vec<DriveFault<W>>) -> Result<(), DriveError> {
        if let Err(fault) = self.lose(faults).await {
            if !self.world.planted("failed write stops nothing") {
                self.stop(format!("it can't do without {fault:?}"));
            }
            return Err(fault.error);
        }
        let stopped = |error: PoolError| DriveError {
            kind: DriveErrorKind::Other,
            operation: "write",
            at: DriveOffset(0),
            len_bytes: 0,
            context: error.context,
        };
        self.check_failure().map_err(stopped)
    }

    /// Takes drives out of use that are gone, as a read has found, and makes that durable.
    /// Those that the pool can't do without stay: what they hold may be read later.
    pub async fn absorb_read(&self, fault: DriveFault<W>) {
        // Whoever asked gets the block from elsewhere, or says that it can't be had.
        let _ = self.lose(vec![fault]).await;
    }

    /// Takes drives out of use, durably.
    ///
    /// # Errors
    /// The fault of the first drive that the pool can't do without.
    async fn lose(&self, faults: Vec<DriveFault<W>>) -> Result<(), DriveFault<W>> {
        for fault in faults {
            if fault.member.is_writable() && !self.expel(&fault) {
                return Err(fault);
            }
        }
        if self.world.planted("loss not on labels before ack") {
            return Ok(());
        }
        self.settle_labels().await;
        Ok(())
    }

    /// Stops the pool, for the only drive that has something does not answer.
    pub fn stop_without(&self, member: &Member<W>) {
        let name = &member.name;
        self.stop(format!(
            "it can't do without drive '{name}', which does not answer"
        ));
    }

    /// Whether the labels say of every drive that it is out of use which is. Until then
    /// nothing is acknowledged that such a drive has missed; [`Drives::absorb`] waits.
    pub fn are_losses_durable(&self) -> bool {
        self.durable.get() >= self.lost.get() || self.world.planted("ack while the labels lag")
    }

    /// Marks the drive as failed in memory; false when the pool needs it.
    pub(super) fn expel(&self, fault: &DriveFault<W>) -> bool {
        if fault.member.succeeds() && self.drop_spare(&fault.member) {
            fault.member.vitals().give_up();
            return true;
        }
        if !self.has(&fault.member) {
            // Its successor has its place.
            fault.member.set_state(MemberState::Failed);
            return true;
        }
        if !self.can_lose(&fault.member) {
            return false;
        }
        self.world.reached("drive expelled");
        self.take_out(&fault.member, &format!("is out of use: {}", fault.error));
        true
    }

    /// Takes a drive out of use in memory. What is in flight on it ends; who waited for
    /// that finds that it has failed, and waits for the labels.
    pub fn take_out(&self, member: &Member<W>, why: &str) {
        member.set_state(MemberState::Failed);
        self.promote_successor(member);
        let text = format!("drive '{}' {why} ({})", member.name, member.whereabouts());
        self.event(EventKind::DriveFailed, text);
        self.note_loss();
        self.wake();
        member.vitals().give_up();
    }

    /// Takes drives out of use in memory that can't be waited for: each as far as the
    /// pool can do without it when those before it are gone. All in one instant, so that
    /// nobody who is told of one waits for the next. Returns those that the pool needs.
    pub fn give_up(&self, drives: Vec<(Rc<Member<W>>, String)>) -> Vec<Rc<Member<W>>> {
        let mut needed = Vec::new();
        for (member, reason) in drives {
            if self.drop_spare(&member) {
                self.want_labels();
                member.vitals().give_up();
            } else if !self.has(&member) {
                member.vitals().give_up();
                continue;
            } else if member.is_writable() && self.can_lose(&member) {
                self.take_out(&member, &format!("is out of use: {reason}"));
            } else {
                match member.is_writable() {
                    true => needed.push(member),
                    // Out of use already: nobody is to wait for it.
                    false => member.vitals().give_up(),
                }
                continue;
            }
            self.world.reached("drive given up");
        }
        needed
    }

    /// Whether the pool can do without this drive, too.
    pub fn can_lose(&self, member: &Rc<Member<W>>) -> bool {
        if self.check_failure().is_err() {
            // Nothing that fails after a stop says anything of a drive.
            return false;
        }
        let others = |carries: &dyn Fn(&Member<W>) -> bool| {
            let members = self.members();
            members
                .iter()
                .any(|other| !Rc::ptr_eq(other, member) && other.is_writable() && carries(other))
        };
        if member.metadata() && !others(&|other| other.metadata()) {
            return false;
        }
        if member.log() && !others(&|other| other.log()) {
            return false;
        }
        self.survives_without(&self.group(member.group()), &[usize::from(member.place())])
    }

    /// Whether everything in the drive's group keeps some redundancy when the drive goes.
    pub fn is_covered_without(&self, member: &Rc<Member<W>>) -> bool {
        let group = self.group(member.group());
        let (shapes, own) = (self.shapes_of(&group), usize::from(member.place()));
        let places = group.places();
        let mut others = places
            .iter()
            .filter(|other| !Rc::ptr_eq(other, member) && other.is_writable());
        others.all(|other| {
            let both = [own, usize::from(other.place())];
            self.zones_survive_without(&group, &shapes, &both)
        })
    }

    /// Whether zones of a group can be taken into use: it stays, and has the drives that
    /// its level needs.
    pub fn takes_zones(&self, group: &Group<W>) -> bool {
        let unit = u64::from(self.identity.stripe_unit_bytes);
        let shape = group.shape_at(group.level(), unit);
        !group.leaves()
            && !group.is_log()
            && shape.is_ok_and(|shape| group.has_enough_for(&shape, &[]))
    }

    /// Whether a group's data survives without the drives at `places`, at every level
    /// in use there; and of a log group the logs, as far as they lie there.
    pub fn survives_without(&self, group: &Rc<Group<W>>, places: &[usize]) -> bool {
        if group.is_log() {
            let carriers = self.log_members();
            let stays = |member: &Rc<Member<W>>| {
                let place = usize::from(member.place());
                member.group() != group.index || !places.contains(&place)
            };
            return carriers.is_empty() || carriers.iter().any(stays);
        }
        self.zones_survive_without(group, &self.shapes_of(group), places)
    }

    /// The same of a group of data, whose zones have, or would have, these shapes.
    fn zones_survive_without(
        &self,
        group: &Rc<Group<W>>,
        shapes: &[Geometry],
        places: &[usize],
    ) -> bool {
        let mut shapes = shapes.iter();
        let has_enough = shapes.all(|shape| group.has_enough_for(shape, places));
        // Where places stand differs from zone to zone in a spread group only.
        let is_alike = group.spread.is_none();
        has_enough && (is_alike || group.zones_survive_without(&self.zones_of(group), places))
    }

    /// Whether two drives of a group are of one span, at any level in use there. In a spread group all
    /// are, in some zone.
    pub fn share_a_span(&self, group: &Rc<Group<W>>, one: usize, other: usize) -> bool {
        if group.spread.is_some() {
            return true;
        }
        let shapes = self.shapes_of(group);
        shapes
            .iter()
            .any(|shape| shape.span_of(one) == shape.span_of(other))
    }

    /// The shapes of a group's zones, and of those that it would take into use.
    fn shapes_of(&self, group: &Rc<Group<W>>) -> Vec<Geometry> {
        let unit = u64::from(self.identity.stripe_unit_bytes);
        // A group that leaves takes no new zones: what it has in use is all there is. Logs have no
        // zones.
        let of_new = group.shape_at(group.level(), unit).into_iter();
        let of_new = of_new.filter(|_| !group.leaves() || group.is_log());
        let of_zones = self.zones();
        let in_use = of_zones
            .iter()
            .filter(|zone| Rc::ptr_eq(&zone.group, group))
            .map(|zone| zone.shape.geometry);
        let mut seen: Vec<Geometry> = Vec::new();
        for geometry in of_new.chain(in_use) {
            if !seen.contains(&geometry) {
                seen.push(geometry);
            }
        }
        seen
    }
}
