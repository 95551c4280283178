//! Which pages of a volume have been copied lately: a read compares.
//!
//! Where a page lies before and after a read does not tell that: two copies may bring it
//! back to the same place, which was a page of others in between.

use base::PageIndex;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Copies that are remembered. A read during which there are more is repeated.
const REMEMBERED: usize = 256;

/// The last copies of a volume's pages, numbered from 0.
#[derive(Debug, Default)]
pub struct Copied {
    count: Cell<u64>,
    last: RefCell<VecDeque<PageIndex>>,
}

impl Copied {
    /// How many copies there have been.
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// `page` has been copied: it lies elsewhere from now on.
    pub fn add(&self, page: PageIndex) {
        let mut last = self.last.borrow_mut();
        if last.len() == REMEMBERED {
            last.pop_front();
        }
        last.push_back(page);
        self.count.set(self.count.get() + 1);
    }

    /// Whether `page` may have been copied since there were `count` copies.
    pub fn may_have_been(&self, page: PageIndex, count: u64) -> bool {
        let since = (self.count.get() - count) as usize;
        let last = self.last.borrow();
        since > last.len() || last.iter().rev().take(since).any(|copied| *copied == page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_seen_by_those_that_began_before() {
        let copied = Copied::default();
        assert!(!copied.may_have_been(PageIndex(1), copied.count()));
        let before = copied.count();
        copied.add(PageIndex(1));
        let after = copied.count();
        copied.add(PageIndex(2));
        assert!(copied.may_have_been(PageIndex(1), before));
        assert!(!copied.may_have_been(PageIndex(1), after));
        assert!(copied.may_have_been(PageIndex(2), after));
        assert!(!copied.may_have_been(PageIndex(3), before));
    }

    #[test]
    fn more_copies_than_are_remembered_may_have_been_of_any_page() {
        let copied = Copied::default();
        for page in 0..=REMEMBERED as u64 {
            copied.add(PageIndex(page));
        }
        assert!(copied.may_have_been(PageIndex(9999), 0));
        assert!(!copied.may_have_been(PageIndex(9999), 1));
    }
}
