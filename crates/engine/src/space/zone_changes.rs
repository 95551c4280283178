//! Zones that come into use and go out of it, and pages that overwrites move meanwhile.
//!
//! Invariants:
//! - Zones come into use under one lock. Who holds it sees all zones, and none whose checksums are
//!   being written.
//! - One zone at a time is emptied, and gives out no page meanwhile. Who calls that off has it
//!   give out pages again in the same moment. The zone that goes out of use is empty, and nobody can
//!   call that off any more.
//! - A full lane is not full for good while pages move: each gives back a page when it ends.

use crate::pages::Space;
use futures_util::lock::{Mutex, MutexGuard};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Zones on their way into use or out of it, and pages on their way to another place.
#[derive(Debug)]
pub(crate) struct ZoneChanges {
    space: Rc<RefCell<Space>>,
    /// Held while zones are taken into use.
    opening: Mutex<()>,
    /// The zone that is being emptied, as long as that can be called off.
    emptying: Cell<Option<u32>>,
    /// Pages taken by overwrites that give back as many when they end.
    pages_moving: Cell<u64>,
}

/// Overwrites that have taken pages, and give back as many when this is dropped.
#[derive(Debug)]
pub(crate) struct PagesMoving<'a> {
    all: &'a Cell<u64>,
    pages: u64,
}

impl Drop for PagesMoving<'_> {
    fn drop(&mut self) {
        self.all.set(self.all.get() - self.pages);
    }
}

impl ZoneChanges {
    /// No change of the zones that `space` has.
    pub(super) fn new(space: Rc<RefCell<Space>>) -> Self {
        ZoneChanges {
            space,
            opening: Mutex::default(),
            emptying: Cell::new(None),
            pages_moving: Cell::new(0),
        }
    }

    /// Waits until no zone is being taken into use; none is while the guard is held.
    pub async fn settle(&self) -> MutexGuard<'_, ()> {
        self.opening.lock().await
    }

    /// A zone is in use from now on. The caller has settled the zones.
    pub(super) fn add(&self, zone: u32, group: u16, pages: u64) {
        assert!(
            self.opening.try_lock().is_none(),
            "zone {zone} is taken into use without the lock"
        );
        self.space.borrow_mut().add_zone(zone, group, pages);
    }

    /// Has a zone give out no page, so that it can be emptied.
    ///
    /// # Panics
    /// When another is being emptied.
    pub fn begin_emptying(&self, zone: u32) {
        self.space.borrow_mut().avoid(zone, true);
        let before = self.emptying.replace(Some(zone));
        assert!(
            before.is_none(),
            "zone {zone} is to be emptied beside {before:?}"
        );
    }

    /// Whether a zone is being emptied, and that was not called off.
    pub fn is_emptying(&self, zone: u32) -> bool {
        self.emptying.get() == Some(zone)
    }

    /// Has the zone that is being emptied, if there is one, give out its free pages again.
    pub(super) fn call_off_emptying(&self) -> bool {
        let zone = self.emptying.take();
        if let Some(zone) = zone {
            self.space.borrow_mut().avoid(zone, false);
        }
        zone.is_some()
    }

    /// From now on nobody can call off that a zone is emptied. False when somebody has.
    pub fn end_emptying(&self, zone: u32) -> bool {
        let ended = self.emptying.take();
        assert!(
            ended.is_none_or(|ended| ended == zone),
            "zone {zone} is to be emptied, not {ended:?}"
        );
        ended.is_some()
    }

    /// A zone stays in use after all, and gives out pages again.
    pub fn keep(&self, zone: u32) {
        self.space.borrow_mut().avoid(zone, false);
    }

    /// A zone is out of use.
    ///
    /// # Panics
    /// When it has pages in use, or somebody could still call that off.
    pub fn remove(&self, zone: u32) {
        assert!(
            !self.is_emptying(zone),
            "zone {zone} goes out of use before it is empty"
        );
        self.space.borrow_mut().remove_zone(zone);
    }

    /// Overwrites have taken so many pages, and give back as many when the guard is dropped.
    pub fn move_pages(&self, pages: u64) -> PagesMoving<'_> {
        let all = &self.pages_moving;
        all.set(all.get() + pages);
        PagesMoving { all, pages }
    }

    /// Whether overwrites are about to give back pages.
    pub(super) fn are_pages_moving(&self) -> bool {
        self.pages_moving.get() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drives::PageNumbers;

    fn changes() -> ZoneChanges {
        let mut space = Space::new(PageNumbers::even(8));
        space.add_zone(0, 0, 8);
        space.add_zone(1, 0, 8);
        ZoneChanges::new(Rc::new(RefCell::new(space)))
    }

    #[test]
    fn a_zone_gives_out_pages_again_in_the_moment_in_which_it_is_called_off() {
        let changes = changes();
        let free = || changes.space.borrow().free();
        changes.begin_emptying(1);
        assert!(changes.is_emptying(1) && !changes.is_emptying(0));
        assert_eq!(free(), 8);
        assert!(changes.call_off_emptying());
        assert_eq!(free(), 16);
        assert!(!changes.end_emptying(1) && !changes.call_off_emptying());
    }

    #[test]
    fn an_emptied_zone_goes_out_of_use_and_nobody_calls_that_off() {
        let changes = changes();
        changes.begin_emptying(1);
        assert!(changes.end_emptying(1));
        assert!(!changes.call_off_emptying());
        changes.remove(1);
        assert_eq!(changes.space.borrow().pages(), 8);
    }

    #[test]
    #[should_panic(expected = "beside Some(0)")]
    fn two_zones_are_never_emptied_at_once() {
        let changes = changes();
        changes.begin_emptying(0);
        changes.begin_emptying(1);
    }

    #[test]
    #[should_panic(expected = "before it is empty")]
    fn a_zone_that_is_being_emptied_does_not_go() {
        let changes = changes();
        changes.begin_emptying(1);
        changes.remove(1);
    }

    #[test]
    #[should_panic(expected = "without the lock")]
    fn a_zone_comes_into_use_under_the_lock() {
        changes().add(2, 0, 8);
    }

    #[test]
    fn pages_move_until_all_have_ended() {
        let changes = changes();
        let one = changes.move_pages(1);
        let three = changes.move_pages(3);
        drop(one);
        assert!(changes.are_pages_moving());
        drop(three);
        assert!(!changes.are_pages_moving());
    }
}
