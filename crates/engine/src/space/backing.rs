//! The readers that read through a page to its backing, and pages that have just become whole:
//! [`Backings`].
//!
//! Invariants:
//! - A page lets go of its backing only when nobody reads through it any more, and nobody
//!   begins to: so what backs is never free, and somebody else's, while it is read.
//! - Between two looks at a page's backing nothing is taken for granted: whoever was told
//!   of one keeps [`Backing`] as long as it counts on it.

use super::LaneState;
use crate::error::PoolError;
use crate::meta::Record;
use crate::world::World;
use base::PhysPage;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

/// How often it is looked whether all have ended.
const PAUSE: Duration = Duration::from_micros(50);

/// Those who read through pages to their backings.
#[derive(Debug, Default)]
pub(super) struct BackingReaders {
    /// How often somebody has waited for those before.
    turn: Cell<u64>,
    users: Rc<Users>,
    /// Pages that have all themselves, and have not let go of their backing yet.
    becoming_whole: RefCell<BTreeSet<PhysPage>>,
}

/// How many there are who began in each turn.
#[derive(Debug, Default)]
struct Users(RefCell<BTreeMap<u64, u64>>);

/// What backs a page, held there.
#[derive(Debug)]
pub(crate) struct Backing {
    /// The physical page of the backing.
    pub page: PhysPage,
    turn: u64,
    users: Rc<Users>,
}

impl BackingReaders {
    fn hold(&self, page: PhysPage) -> Backing {
        let (turn, users) = (self.turn.get(), Rc::clone(&self.users));
        *users.0.borrow_mut().entry(turn).or_default() += 1;
        Backing { page, turn, users }
    }

    /// Begins a turn; the one before.
    fn turn(&self) -> u64 {
        self.turn.replace(self.turn.get() + 1)
    }

    /// Whether anybody is left who began in `turn` or before.
    fn has_users(&self, turn: u64) -> bool {
        let users = self.users.0.borrow();
        users
            .first_key_value()
            .is_some_and(|(first, _)| *first <= turn)
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        let mut users = self.users.0.borrow_mut();
        if let Some(count) = users.get_mut(&self.turn) {
            *count -= 1;
            if *count == 0 {
                users.remove(&self.turn);
            }
        }
    }
}

/// The pages of a lane that lie over others, and who reads through them.
pub(crate) struct Backings<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Backings<'a, W> {
    pub(crate) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Backings { lane }
    }

    /// What backs a page, if anything does. No wait may come between the look at the map
    /// and this.
    pub(crate) fn backing(&self, page: PhysPage) -> Option<Backing> {
        let backing = self.lane.state().backings.get(page)?;
        if self.is_becoming_whole(page) {
            return None;
        }
        Some(self.lane.backing_readers.hold(backing))
    }

    /// Whether a page needs its backing no more, and has it still.
    pub(crate) fn is_becoming_whole(&self, page: PhysPage) -> bool {
        self.lane
            .backing_readers
            .becoming_whole
            .borrow()
            .contains(&page)
    }

    /// A page has all of its content itself: it lets go of its backing. Some volume keeps
    /// it until this ends.
    ///
    /// # Errors
    /// When the pool has stopped, or stops now.
    pub(crate) async fn become_whole(&self, page: PhysPage) -> Result<(), PoolError> {
        self.lane
            .backing_readers
            .becoming_whole
            .borrow_mut()
            .insert(page);
        if !self.lane.world.planted("backing let go while it is read") {
            self.nobody_reads_through().await;
        }
        let outcome = self
            .lane
            .journal()
            .commit(vec![Record::Whole { phys: page }])
            .await;
        self.lane
            .backing_readers
            .becoming_whole
            .borrow_mut()
            .remove(&page);
        outcome
    }

    /// Ends when all who read through a page at the call have ended.
    async fn nobody_reads_through(&self) {
        let before = self.lane.backing_readers.turn();
        while self.lane.backing_readers.has_users(before) {
            self.lane.world.sleep(PAUSE).await;
        }
    }

    /// Pages that have a backing.
    pub(crate) fn backed_pages(&self) -> u64 {
        self.lane.state().backings.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_waits_for_all_who_began_before_and_for_no_other() {
        let readers = BackingReaders::default();
        let first = readers.hold(PhysPage(1));
        let one = readers.turn();
        let second = readers.hold(PhysPage(1));
        let two = readers.turn();
        let third = readers.hold(PhysPage(2));
        assert!(readers.has_users(one) && readers.has_users(two));
        drop(second);
        assert!(readers.has_users(two), "the first began before, too");
        drop(first);
        assert!(!readers.has_users(two));
        assert_eq!(third.page, PhysPage(2));
    }
}
