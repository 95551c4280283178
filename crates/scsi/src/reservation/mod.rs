//! Reservations of a logical unit: persistent reservations (SPC-4 clause 5.13) and the old kind
//! (SPC-2 clause 5.5).
//!
//! Invariants:
//! - Who holds a persistent reservation is registered. Of the kinds for all registrants
//!   there is no single holder, and it ends with the last registration.
//! - A change is made to a copy, which takes the place of what was there once it is durable,
//!   where it has to be (APTPL). So a command sees all of a change or nothing.
//! - There are at most [`REGISTRANTS_MAX`] registrations.

mod access;
mod kept;
mod out;
mod port;
mod report;

pub(crate) use access::Access;
pub use kept::Unreadable;
pub(crate) use out::{Order, Refusal};
pub use port::{InitiatorPort, NexusId};
pub(crate) use report::report;

use crate::sense::Attention;

/// Registrations of one logical unit, at most: nodes of a large cluster, each by several
/// paths.
pub const REGISTRANTS_MAX: usize = 256;

/// Kinds of persistent reservations (SPC-4 table 213).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    WriteExclusive = 1,
    ExclusiveAccess = 3,
    WriteExclusiveRegistrants = 5,
    ExclusiveAccessRegistrants = 6,
    WriteExclusiveAll = 7,
    ExclusiveAccessAll = 8,
}

impl Kind {
    pub(crate) const ALL: [Kind; 6] = [
        Kind::WriteExclusive,
        Kind::ExclusiveAccess,
        Kind::WriteExclusiveRegistrants,
        Kind::ExclusiveAccessRegistrants,
        Kind::WriteExclusiveAll,
        Kind::ExclusiveAccessAll,
    ];

    pub(crate) fn of(code: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == code)
    }

    /// Whether every registrant holds it.
    pub(crate) fn is_of_all(self) -> bool {
        matches!(self, Kind::WriteExclusiveAll | Kind::ExclusiveAccessAll)
    }

    /// Whether registrants who do not hold it have access.
    fn admits_registrants(self) -> bool {
        !matches!(self, Kind::WriteExclusive | Kind::ExclusiveAccess)
    }

    /// Whether who has no access may still read.
    fn admits_readers(self) -> bool {
        matches!(
            self,
            Kind::WriteExclusive | Kind::WriteExclusiveRegistrants | Kind::WriteExclusiveAll
        )
    }
}

/// An I_T nexus with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registrant {
    pub(crate) nexus: NexusId,
    pub(crate) key: u64,
}

/// A persistent reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldReservation {
    pub(crate) kind: Kind,
    /// Who made it. Of a kind for all registrants just one of them.
    pub(crate) by: NexusId,
}

/// All that is reserved of a logical unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reservations {
    /// PRGENERATION: counts changes of registrations since the start.
    generation: u32,
    registrants: Vec<Registrant>,
    held: Option<HeldReservation>,
    /// APTPL: all of this is there again after a loss of power.
    is_kept: bool,
    /// Who holds a reservation of the old kind.
    old: Option<NexusId>,
}

impl Reservations {
    fn registrant(&self, nexus: &NexusId) -> Option<&Registrant> {
        self.registrants.iter().find(|one| one.nexus == *nexus)
    }

    fn is_registered(&self, nexus: &NexusId) -> bool {
        self.registrant(nexus).is_some()
    }

    fn is_holder(&self, nexus: &NexusId) -> bool {
        self.held.as_ref().is_some_and(|held| match held.kind {
            kind if kind.is_of_all() => self.is_registered(nexus),
            _ => held.by == *nexus,
        })
    }

    /// Who registered, and whether he holds the reservation: for people.
    pub(crate) fn holders(&self) -> impl Iterator<Item = (&NexusId, u64, bool)> {
        let all = self.registrants.iter();
        all.map(|one| (&one.nexus, one.key, self.is_holder(&one.nexus)))
    }

    /// The kind of the reservation that is held, as its code.
    pub(crate) fn held_kind(&self) -> Option<u8> {
        self.held.as_ref().map(|held| held.kind as u8)
    }

    /// RESERVE. False when another has it.
    pub(crate) fn reserve_old(&mut self, nexus: &NexusId) -> bool {
        if let Some(holder) = &self.old {
            return holder == nexus;
        }
        // Compatible handling (SPC-4 clause 5.13.3): who has the persistent one may, to no
        // effect; any other may not, and with registrations there is no old kind.
        if !self.registrants.is_empty() {
            return self.may_handle_compatibly(nexus);
        }
        self.old = Some(nexus.clone());
        true
    }

    /// RELEASE. False when it is refused; releasing what is another's changes nothing.
    pub(crate) fn release_old(&mut self, nexus: &NexusId) -> bool {
        if self.old.is_none() && !self.registrants.is_empty() {
            return self.may_handle_compatibly(nexus);
        }
        self.old_ends(nexus);
        true
    }

    /// What was reserved in the old way by this nexus is so no more: it has released it, or
    /// is gone.
    pub(crate) fn old_ends(&mut self, nexus: &NexusId) {
        self.old = self.old.take().filter(|holder| holder != nexus);
    }

    /// As [`Reservations::old_ends`], whoever it was: the unit was reset.
    pub(crate) fn reset(&mut self) {
        self.old = None;
    }

    /// These, with what is reserved in the old way in `now`: that may have changed meanwhile.
    pub(crate) fn with_old_of(mut self, now: &Reservations) -> Self {
        self.old.clone_from(&now.old);
        self
    }

    fn may_handle_compatibly(&self, nexus: &NexusId) -> bool {
        match &self.held {
            Some(held) if !held.kind.admits_registrants() || held.kind.is_of_all() => {
                self.is_holder(nexus)
            }
            Some(_) => self.is_registered(nexus),
            None => false,
        }
    }
}

/// Somebody has to hear of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DueAttention {
    pub(crate) nexus: NexusId,
    pub(crate) attention: Attention,
}
