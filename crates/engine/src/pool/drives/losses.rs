//! Taking failed drives out of use.

use super::{Drives, EventKind, Group};
use crate::drive::DriveError;
use crate::pool::MemberState;
use crate::raid::{DriveFault, Geometry, Member};
use crate::ring::Losses;
use crate::world::World;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::rc::Rc;

impl<W: World> Drives<W> {
    /// Takes the drives of `faults` out of use and makes that durable.
    ///
    /// # Errors
    /// The fault of a drive that the pool can't do without: it stays in use, and
    /// what it was to do has failed.
    pub async fn absorb(&self, faults: Vec<DriveFault<W>>) -> Result<(), DriveError> {
        for fault in &faults {
            if fault.member.is_writable() && !self.expel(fault) {
                return Err(fault.error.clone());
            }
        }
        if self.world.planted("loss not on labels before ack") {
            return Ok(());
        }
        self.settle_labels().await;
        Ok(())
    }

    /// Marks the drive as failed in memory; false when the pool needs it.
    pub(super) fn expel(&self, fault: &DriveFault<W>) -> bool {
        let member = &fault.member;
        if !self.can_lose(member) {
            return false;
        }
        member.set_state(MemberState::Failed);
        self.world.reached("drive expelled");
        self.event(
            EventKind::DriveFailed,
            format!("drive '{}' is out of use: {}", member.name, fault.error),
        );
        self.want_labels();
        self.wake();
        true
    }

    /// Takes a drive out of use that can't be waited for, durably, and ends what is in
    /// flight on it; false when the pool needs it.
    pub async fn give_up(&self, member: &Rc<Member<W>>, reason: &str) -> bool {
        if !self.drop_spare(member) {
            if !member.is_writable() || !self.can_lose(member) {
                return false;
            }
            member.set_state(MemberState::Failed);
            self.event(
                EventKind::DriveFailed,
                format!("drive '{}' is out of use: {reason}", member.name),
            );
        }
        self.world.reached("drive given up");
        self.want_labels();
        self.wake();
        // Only now: who waited finds that it has failed, and waits for the labels.
        member.vitals().give_up();
        self.settle_labels().await;
        true
    }

    /// Whether the pool can do without this drive, too.
    pub fn can_lose(&self, member: &Rc<Member<W>>) -> bool {
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

    /// Whether zones of a group can be taken into use: it stays, and has the drives that
    /// its level needs.
    pub fn takes_zones(&self, group: &Group<W>) -> bool {
        let unit = u64::from(self.identity.stripe_unit_bytes);
        let shape = Geometry::of(group.level(), group.drives(), unit);
        !group.leaves()
            && shape.is_ok_and(|shape| {
                (0..shape.spans).all(|span| {
                    let lost = shape
                        .span_places(span)
                        .filter(|place| !group.place(*place).is_whole());
                    lost.count() <= shape.redundancy()
                })
            })
    }

    /// Whether a group's data survives without the drives at `places`, at every level
    /// in use there.
    pub fn survives_without(&self, group: &Rc<Group<W>>, places: &[usize]) -> bool {
        let is_lost = |place: usize| places.contains(&place) || !group.place(place).is_whole();
        let survives = |geometry: Geometry| {
            (0..geometry.spans).all(|span| {
                let lost = geometry
                    .span_places(span)
                    .filter(|place| is_lost(*place))
                    .count();
                lost <= geometry.redundancy()
            })
        };
        let unit = u64::from(self.identity.stripe_unit_bytes);
        // A group that leaves takes no new zones: what it has in use is all there is.
        let of_new = Geometry::of(group.level(), group.drives(), unit).into_iter();
        let of_new = of_new.filter(|_| !group.leaves());
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
        seen.into_iter().all(survives)
    }
}

/// The rings know the drives by this.
pub struct RingLosses<W: World>(pub Rc<Drives<W>>);

impl<W: World> Losses<W> for RingLosses<W> {
    fn absorb(&self, faults: Vec<DriveFault<W>>) -> LocalBoxFuture<'_, Result<(), DriveError>> {
        self.0.absorb(faults).boxed_local()
    }
}
