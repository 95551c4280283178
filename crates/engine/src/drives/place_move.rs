//! Places of zones on their way to other drives of their group: [`PlaceMove`].
//!
//! Invariants:
//! - Whoever writes to a place under the lock of a stripe, or of the checksums, writes to both drives.
//!   So what was copied stays what the place holds.
//! - A drive that missed something gets no place: the move is given up, and the drive has missed
//!   nothing of its own. Once the record is on its way, the drive has failed instead, for an opening may
//!   find the place there.
//! - No other place of the zone goes to the drive before the move has ended.

use super::{Member, Zone};
use crate::world::World;
use std::cell::Cell;
use std::rc::Rc;

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// What the place holds is written to the drive.
    Copying,
    /// The drive has missed something, or the move is over and the place stays.
    GivenUp,
    /// The record that the place stands there is on its way, or durable.
    Settling,
}

/// A place of a zone on its way to another drive of the group. What that has counts once the metadata
/// says so.
pub struct PlaceMove<W: World> {
    /// The place of the zone.
    pub place: usize,
    /// The drive that it goes to, where no place of the zone is.
    pub to: Rc<Member<W>>,
    stage: Cell<Stage>,
}

impl<W: World> PlaceMove<W> {
    /// Whether an opening may find the place there.
    pub fn is_settling(&self) -> bool {
        self.stage.get() == Stage::Settling
    }

    /// Whether it goes on: nobody has given it up.
    pub fn goes_on(&self) -> bool {
        self.stage.get() != Stage::GivenUp
    }

    /// The drive has missed something of the place. Whether that is no fault of the drive's own: the
    /// move is given up then.
    pub fn excuses(&self) -> bool {
        let is_hidden = self.to.planted("fault of a place that settles hidden");
        if self.is_settling() && !is_hidden {
            return false;
        }
        self.stage.set(Stage::GivenUp);
        true
    }
}

/// A drive that gets what is written to a place.
pub struct Taker<W: World> {
    /// That which is written to.
    pub member: Rc<Member<W>>,
    /// The move, where the place only goes to it.
    to: Option<Rc<PlaceMove<W>>>,
}

impl<W: World> Taker<W> {
    /// A drive that gets something for itself.
    pub fn alone(member: &Rc<Member<W>>) -> Taker<W> {
        Taker {
            member: Rc::clone(member),
            to: None,
        }
    }

    /// The drive that a place goes to.
    pub fn of_move(to: &Rc<PlaceMove<W>>) -> Taker<W> {
        Taker {
            member: Rc::clone(&to.to),
            to: Some(Rc::clone(to)),
        }
    }

    /// Whether it still is to get anything.
    pub fn goes_on(&self) -> bool {
        self.to.as_ref().is_none_or(|to| to.goes_on())
    }

    /// As [`PlaceMove::excuses`]; of the drive that the place stands on each fault is its own.
    pub fn excuses(&self) -> bool {
        self.to.as_ref().is_some_and(|to| to.excuses())
    }
}

impl<W: World> Zone<W> {
    /// Has a drive get all that is written to a place from now on.
    pub fn begin_move(&self, place: usize, to: &Rc<Member<W>>) -> Rc<PlaceMove<W>> {
        let begun = Rc::new(PlaceMove {
            place,
            to: Rc::clone(to),
            stage: Cell::new(Stage::Copying),
        });
        self.moves.borrow_mut().push(Rc::clone(&begun));
        begun
    }

    /// The record that a place stands on the drive that it moves to is on its way.
    pub fn settle(&self, moved: &PlaceMove<W>) {
        let before = moved.stage.replace(Stage::Settling);
        assert!(
            before == Stage::Copying,
            "a move of place {} settles",
            moved.place
        );
        self.group.settling.set(self.group.settling.get() + 1);
    }

    /// A move is over: the place has moved, or stays.
    pub fn end_move(&self, ended: &Rc<PlaceMove<W>>, has_settled: bool) {
        let mut moves = self.moves.borrow_mut();
        moves.retain(|other| !Rc::ptr_eq(other, ended));
        match has_settled {
            true => self.group.settling.set(self.group.settling.get() - 1),
            false => ended.stage.set(Stage::GivenUp),
        }
    }

    /// The move of a place, if it is on its way.
    pub fn move_of(&self, place: usize) -> Option<Rc<PlaceMove<W>>> {
        let moves = self.moves.borrow();
        let mut of_place = moves.iter().filter(|to| to.place == place);
        of_place.find(|to| to.goes_on()).cloned()
    }

    /// Whether a move of any place is under way, given up or not.
    pub fn has_moves(&self) -> bool {
        !self.moves.borrow().is_empty()
    }

    /// Whether another drive gets what a place holds: the place goes there, or its drive is copied.
    pub fn is_copied(&self, place: usize) -> bool {
        self.move_of(place).is_some() || self.place(place).successor().is_some()
    }

    /// The drives that get what is written to a place: the one that it stands on, and the one that it
    /// goes to, those of them that are in use.
    pub fn takers(&self, place: usize) -> impl Iterator<Item = Taker<W>> + use<W> {
        let is_alone = !self.has_moves();
        let to = match is_alone || self.group.is_planted("place on its way gets no writes") {
            true => None,
            false => self.move_of(place),
        };
        let own = Taker::alone(&self.place(place));
        let beside = to.map(|to| Taker::of_move(&to));
        let takers = std::iter::once(own).chain(beside);
        takers.filter(|taker| taker.member.is_writable())
    }
}
