//! Counters by which a read finds out that a page was copied meanwhile.
//!
//! Where a page lies before and after a read does not tell that: two copies may bring it
//! back to the same place, which was a page of others in between.

use base::PageIndex;
use std::cell::{Cell, RefCell};

/// Pages share counters: a read that is repeated for the copy of another page is rare, and
/// does no harm.
const COUNTERS: usize = 1024;

/// Counts the copies of a volume's pages.
#[derive(Debug, Default)]
pub struct Copied {
    /// None of a volume that never shared a page.
    counters: RefCell<Vec<Cell<u32>>>,
}

impl Copied {
    /// Changes when `page` is copied.
    pub fn count(&self, page: PageIndex) -> u32 {
        let counters = self.counters.borrow();
        counters.get(place(page)).map_or(0, Cell::get)
    }

    /// `page` has been copied: it lies elsewhere from now on.
    pub fn add(&self, page: PageIndex) {
        let mut counters = self.counters.borrow_mut();
        counters.resize_with(COUNTERS, Cell::default);
        let counter = &counters[place(page)];
        counter.set(counter.get().wrapping_add(1));
    }
}

fn place(page: PageIndex) -> usize {
    (page.0 % COUNTERS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_seen_by_those_that_began_before() {
        let copied = Copied::default();
        let before = [1, 2, 3].map(|page| copied.count(PageIndex(page)));
        copied.add(PageIndex(1));
        let after = copied.count(PageIndex(1));
        copied.add(PageIndex(2));
        assert_ne!(copied.count(PageIndex(1)), before[0]);
        assert_eq!(copied.count(PageIndex(1)), after);
        assert_ne!(copied.count(PageIndex(2)), before[1]);
        assert_eq!(copied.count(PageIndex(3)), before[2]);
    }
}
