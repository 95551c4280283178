//! Which physical pages are free.
//!
//! Next fit: pages are given out in rising order from where the last one was, so a
//! volume written in order lies in long runs.

use base::PhysPage;

/// The free pages of a pool.
#[derive(Debug)]
pub struct Space {
    /// One bit a page, set when used.
    used: Vec<u64>,
    pages: u64,
    free: u64,
    cursor: u64,
}

impl Space {
    /// A pool of `pages` free pages.
    pub fn new(pages: u64) -> Self {
        Space {
            used: vec![0; pages.div_ceil(64) as usize],
            pages,
            free: pages,
            cursor: 0,
        }
    }

    /// Pages in all.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Pages free.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// Takes a free page; `None` when there is none.
    pub fn allocate(&mut self) -> Option<PhysPage> {
        if self.free == 0 {
            return None;
        }
        let words = self.used.len() as u64;
        let (start, bit) = (self.cursor / 64, self.cursor % 64);
        // The first word is looked at twice: from the cursor on, and at the end from
        // its beginning.
        for step in 0..=words {
            let word = (start + step) % words;
            let skipped = if step == 0 { (1u64 << bit) - 1 } else { 0 };
            let free = !(self.used[word as usize] | skipped);
            let page = word * 64 + u64::from(free.trailing_zeros());
            if free != 0 && page < self.pages {
                self.take(PhysPage(page));
                self.cursor = (page + 1) % self.pages;
                return Some(PhysPage(page));
            }
        }
        unreachable!("{} pages are free and none was found", self.free)
    }

    /// Marks a page as used; false when it is used already or not there.
    pub fn claim(&mut self, page: PhysPage) -> bool {
        if page.0 >= self.pages || self.is_used(page) {
            return false;
        }
        self.take(page);
        true
    }

    /// Gives a page back.
    ///
    /// # Panics
    /// When it is free already: two owners would come of it.
    pub fn release(&mut self, page: PhysPage) {
        assert!(self.is_used(page), "page {page} is freed twice");
        self.used[(page.0 / 64) as usize] &= !(1 << (page.0 % 64));
        self.free += 1;
    }

    fn take(&mut self, page: PhysPage) {
        self.used[(page.0 / 64) as usize] |= 1 << (page.0 % 64);
        self.free -= 1;
    }

    fn is_used(&self, page: PhysPage) -> bool {
        self.used[(page.0 / 64) as usize] >> (page.0 % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_given_out_once_in_order_and_again_when_freed() {
        for pages in [1, 63, 64, 65, 130] {
            let mut space = Space::new(pages);
            let given: Vec<_> = std::iter::from_fn(|| space.allocate())
                .map(|p| p.0)
                .collect();
            assert_eq!(given, (0..pages).collect::<Vec<_>>());
            assert_eq!(space.free(), 0);
            for page in [0, pages / 2] {
                space.release(PhysPage(page));
                assert_eq!(space.allocate(), Some(PhysPage(page)), "of {pages}");
            }
        }
    }

    #[test]
    fn a_claimed_page_is_not_given_out() {
        let mut space = Space::new(3);
        assert!(space.claim(PhysPage(1)));
        assert!(!space.claim(PhysPage(1)));
        assert!(!space.claim(PhysPage(3)));
        assert_eq!(
            [space.allocate(), space.allocate()],
            [Some(PhysPage(0)), Some(PhysPage(2))]
        );
        assert_eq!(space.allocate(), None);
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn a_page_is_never_freed_twice() {
        let mut space = Space::new(3);
        space.claim(PhysPage(1));
        space.release(PhysPage(1));
        space.release(PhysPage(1));
    }
}
