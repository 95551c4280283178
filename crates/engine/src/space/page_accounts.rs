//! The pages of a lane by both of its accounts: the metadata that says who has a page, and the space
//! that says which pages are given out.
//!
//! Invariants:
//! - A page that a record maps is settled in the space in the same moment, so what is promised and
//!   not drawn yet is counted once.
//! - The metadata changes by records that are durable. What changes it otherwise is named here.
//! - A page that the metadata gives up is in the space until the caller of
//!   [`PageAccounts::take_freed`] releases it there: only then may others write it.

use super::{State, VolumeCore};
use crate::meta::{Promise, Record};
use crate::pages::Space;
use base::PhysPage;
use std::cell::{Ref, RefCell};
use std::rc::Rc;

/// The metadata of an open lane, and its space.
#[derive(Debug)]
pub(super) struct PageAccounts {
    state: RefCell<State>,
    /// The store reads it, and releases pages in it.
    space: Rc<RefCell<Space>>,
}

impl PageAccounts {
    /// Accounts that agree: `space` has given out the pages that `state` says.
    pub fn new(state: State, space: Rc<RefCell<Space>>) -> Self {
        let state = RefCell::new(state);
        PageAccounts { state, space }
    }

    /// The metadata, to look at. No wait may come while it is held.
    pub fn state(&self) -> Ref<'_, State> {
        self.state.borrow()
    }

    /// The space, to look at. No wait may come while it is held.
    pub fn space(&self) -> Ref<'_, Space> {
        self.space.borrow()
    }

    /// Makes a record that is durable part of the metadata.
    ///
    /// # Panics
    /// When it does not fit the metadata: it was journalled, so it has to.
    pub fn apply(&self, record: &Record) {
        let applied = self.state.borrow_mut().apply(record);
        assert!(applied.is_ok(), "{record:?} was journalled: {applied:?}");
        match record {
            Record::Map { phys, count, .. } => {
                self.space.borrow_mut().settle(*phys, u64::from(*count));
            }
            Record::Remap { phys, .. } | Record::Overlay { phys, .. } => {
                self.space.borrow_mut().settle(*phys, 1);
            }
            _ => {}
        }
    }

    /// Pages that nobody has any more. The caller releases them, since nobody else does.
    #[must_use]
    pub fn take_freed(&self) -> Vec<PhysPage> {
        self.state.borrow_mut().take_freed()
    }

    /// Gives up some of the maps that are left of deleted volumes; whether there are more.
    pub fn give_up_some(&self) -> bool {
        self.state.borrow_mut().give_up_some()
    }

    /// Takes a run of free pages, `max` at most; out of what was promised, if it `was_promised`.
    pub fn allocate(&self, max: u64, was_promised: bool) -> Option<(PhysPage, u64)> {
        let mut space = self.space.borrow_mut();
        let (first, count) = space.allocate_run(max)?;
        if was_promised {
            space.draw(first, count);
        }
        Some((first, count))
    }

    /// Pages that are promised and not given out yet.
    pub fn promised_pages(&self) -> u64 {
        let promised = self.state.borrow().promises.pages();
        // Both change in the same moment, when a page is mapped.
        promised.saturating_sub(self.space.borrow().drawn())
    }

    /// Bytes that maps may grow by when these are mapped.
    pub fn promised_map_bytes(&self) -> u64 {
        let pages = self.promised_pages();
        self.state.borrow().promises.map_bytes(pages)
    }

    /// Sets pages aside for a change under way; one at a time.
    pub fn pledge(&self, promise: Promise) {
        self.state.borrow_mut().promises.pledge(promise);
    }

    /// The change is over: what it did not need is anybody's.
    pub fn unpledge(&self) {
        self.state.borrow_mut().promises.release();
    }

    /// What was set aside is promised to a volume instead, in memory only.
    pub fn promise(&self, core: &VolumeCore) {
        let mut state = self.state.borrow_mut();
        state.promises.release();
        state.promise(core, true);
    }

    /// Changes the metadata without a durable record, as only a planted bug may.
    pub fn spoil<T>(&self, bug: impl FnOnce(&mut State) -> T) -> T {
        bug(&mut self.state.borrow_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drives::PageNumbers;
    use crate::meta::Promises;
    use std::iter::once;

    fn accounts(promised: u64) -> PageAccounts {
        let mut state = State::default();
        state.promises = Promises::new(4096, once(Promise::of(promised, promised)));
        let mut space = Space::new(PageNumbers::even(8));
        space.add_zone(0, 0, 8);
        PageAccounts::new(state, Rc::new(RefCell::new(space)))
    }

    #[test]
    fn a_page_that_was_promised_is_counted_once() {
        let accounts = accounts(5);
        assert_eq!(accounts.allocate(2, false), Some((PhysPage(0), 2)));
        assert_eq!(accounts.promised_pages(), 5);
        assert_eq!(accounts.allocate(2, true), Some((PhysPage(2), 2)));
        assert_eq!(accounts.promised_pages(), 3);
        accounts.pledge(Promise::of(1, 1));
        assert_eq!(accounts.promised_pages(), 4);
        accounts.unpledge();
        assert_eq!(accounts.promised_pages(), 3);
    }

    #[test]
    #[should_panic(expected = "was journalled")]
    fn a_record_that_does_not_fit_ends_everything() {
        accounts(0).apply(&Record::ZoneOff { zone: 3 });
    }
}
