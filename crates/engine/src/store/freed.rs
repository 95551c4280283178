//! Pages that were given back while the log still had entries for them.
//!
//! Invariants:
//! - A page is in here from when it is given back until the log has let go of all that it
//!   had then: its next owner zeroes what it does not write.
//! - There is room for so many pages. When more are given back at a time (a volume of
//!   millions is deleted), for a while every page counts as one of them: that costs
//!   zeroes, and no RAM.

use base::PhysPage;
use rustc_hash::FxHashMap;

/// Pages remembered one by one.
const PAGES_MAX: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Freed {
    /// With the last stamp of the log when they were given back.
    pages: FxHashMap<PhysPage, u64>,
    /// Up to this stamp, all pages count.
    all_up_to: Option<u64>,
}

impl Freed {
    /// `page` is given back; `last` is the log's last stamp, `tail` the first that it
    /// still has.
    pub fn insert(&mut self, page: PhysPage, last: u64, tail: u64) {
        if last < tail {
            // The log has nothing at all.
            return;
        }
        if self.pages.len() < PAGES_MAX || self.pages.contains_key(&page) {
            self.pages.insert(page, last);
            return;
        }
        // Stamps rise: this one covers all that were there before.
        self.all_up_to = Some(last);
        self.pages = FxHashMap::default();
    }

    /// Whether the log, which begins at `tail`, may have something of `page`.
    pub fn has(&self, page: PhysPage, tail: u64) -> bool {
        let own = self.pages.get(&page).copied();
        own.max(self.all_up_to).is_some_and(|stamp| stamp >= tail)
    }

    /// The log begins at `tail` now.
    pub fn forget_before(&mut self, tail: u64) {
        self.pages.retain(|_, stamp| *stamp >= tail);
        self.all_up_to = self.all_up_to.filter(|stamp| *stamp >= tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_counts_until_the_log_has_let_go() {
        let mut freed = Freed::default();
        freed.insert(PhysPage(1), 10, 11);
        assert!(!freed.has(PhysPage(1), 0), "the log was empty");
        freed.insert(PhysPage(1), 10, 5);
        assert!(freed.has(PhysPage(1), 10) && !freed.has(PhysPage(2), 10));
        assert!(!freed.has(PhysPage(1), 11));
        freed.forget_before(11);
        assert!(freed.pages.is_empty());
    }

    #[test]
    fn more_pages_than_there_is_room_for_make_all_pages_count() {
        let mut freed = Freed::default();
        for page in 0..3 * PAGES_MAX as u64 {
            freed.insert(PhysPage(page), 10 + page, 5);
            assert!(freed.pages.len() <= PAGES_MAX);
        }
        let last = 9 + 3 * PAGES_MAX as u64;
        assert!(freed.has(PhysPage(0), 5) && freed.has(PhysPage(u64::MAX), 5));
        assert!(freed.has(PhysPage(3 * PAGES_MAX as u64 - 1), last));
        freed.forget_before(last + 1);
        assert!(!freed.has(PhysPage(0), last + 1));
    }
}
