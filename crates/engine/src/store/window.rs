//! The window of the destager: how many stripes may be on their way in place, and which come next.
//!
//! Invariants:
//! - A place in the window that was taken is given back, however its stripe ends.
//! - The window is whole, or at its limit, while somebody waits for an empty log, and no longer: also
//!   when the one who waits goes away.

use super::StripeRef;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Stripes on their way for each drive of the pool: a disk gets enough to choose from.
const PER_DRIVE: usize = 16;

/// Stripes of a whole window, however few drives there are, and however many.
const WHOLE_MIN: usize = 64;
const WHOLE_MAX: usize = 2048;

/// Stripes on their way, at least, while nearly nothing waits in the log.
const LEAST: usize = 2;

/// The window of a store.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Stripes that go in place next.
    sweep: RefCell<VecDeque<StripeRef>>,
    under_way: Cell<usize>,
    /// How many may be under way, where that is not for the drives to say.
    limit: Cell<Option<usize>>,
    /// How many wait for the log to be emptied as fast as it goes.
    draining: Cell<u32>,
}

impl Window {
    /// Stripes on their way in place.
    pub(super) fn under_way(&self) -> usize {
        self.under_way.get()
    }

    /// A stripe begins.
    pub(super) fn begin(&self) {
        self.under_way.set(self.under_way.get() + 1);
    }

    /// A stripe has ended.
    ///
    /// # Panics
    /// None is under way.
    pub(super) fn end(&self) {
        let left = self.under_way.get().checked_sub(1);
        assert!(left.is_some(), "no stripe is under way");
        self.under_way.set(left.unwrap_or_default());
    }

    /// Has at most so many stripes be under way.
    pub(super) fn set_limit(&self, stripes: Option<usize>) {
        self.limit.set(stripes);
    }

    /// Stripes that may be under way in a pool of so many drives. They are few while little waits in
    /// the log, so that reads find the drives free. They are all when `enough` bytes wait, or when
    /// somebody drains the log.
    pub(super) fn stripes(&self, drives: usize, waiting: u64, enough: u64) -> usize {
        let most = (drives * PER_DRIVE).clamp(WHOLE_MIN, WHOLE_MAX);
        let least = (drives / 2).max(LEAST);
        let by_log = match self.is_draining() {
            true => most,
            false => least + (most - least) * waiting.min(enough) as usize / enough as usize,
        };
        self.limit.get().unwrap_or(by_log)
    }

    /// Has the log be emptied as fast as it goes, until what this gives is dropped.
    pub(super) fn drain(&self) -> Draining<'_> {
        self.draining.set(self.draining.get() + 1);
        Draining(self)
    }

    /// Whether somebody waits for an empty log.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.get() > 0
    }

    /// The next stripe of the sweep; when that has ended, of the one that `sweep` makes.
    pub(super) fn next(&self, sweep: impl FnOnce() -> VecDeque<StripeRef>) -> Option<StripeRef> {
        if self.sweep.borrow().is_empty() {
            let sweep = sweep();
            self.sweep.replace(sweep);
        }
        self.sweep.borrow_mut().pop_front()
    }

    /// Stripes that somebody has just now come last in the sweep.
    pub(super) fn put_off(&self, busy: Vec<StripeRef>) {
        self.sweep.borrow_mut().extend(busy);
    }
}

/// Somebody waits for an empty log.
#[must_use = "the log is drained only until this is dropped"]
pub(super) struct Draining<'a>(&'a Window);

impl Drop for Draining<'_> {
    fn drop(&mut self) {
        self.0.draining.set(self.0.draining.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_with_what_waits_and_is_whole_for_who_drains() {
        let window = Window::default();
        let stripes = |waiting| window.stripes(8, waiting, 1000);
        assert_eq!([stripes(0), stripes(500), stripes(1000)], [4, 66, 128]);
        assert_eq!(stripes(5000), 128, "no more than the whole window");
        let [one, other] = [window.drain(), window.drain()];
        assert_eq!(stripes(0), 128);
        drop(one);
        assert_eq!(stripes(0), 128, "another still drains");
        drop(other);
        assert_eq!(stripes(0), 4);
        window.set_limit(Some(1));
        assert_eq!(stripes(1000), 1);
    }

    #[test]
    #[should_panic(expected = "no stripe is under way")]
    fn a_place_is_given_back_once() {
        let window = Window::default();
        window.begin();
        window.end();
        window.end();
    }
}
