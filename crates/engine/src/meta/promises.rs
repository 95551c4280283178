//! Pages that are promised to thick volumes, and not taken yet.
//!
//! Invariants:
//! - What is promised is, of each thick volume, the pages of its size less those mapped.
//!   Every change of either goes through [`super::State::apply`], which keeps the sum.
//! - What is set aside for a change under way becomes a promise in the same moment in
//!   which that change is made: it is counted once at all times.

/// What thick volumes may still take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// Zero until the pool is known: nothing is counted before.
    page_bytes: u64,
    promised: u64,
    pledged: u64,
}

impl Promises {
    /// Of a pool of such pages, whose thick volumes may take `promised` more.
    pub fn new(page_bytes: u64, promised: u64) -> Self {
        Promises {
            page_bytes,
            promised,
            pledged: 0,
        }
    }

    /// Page of the pool, once it is known.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Pages promised, and set aside to be.
    pub fn pages(&self) -> u64 {
        self.promised + self.pledged
    }

    /// Pages promised to thick volumes, without pledges.
    pub fn promised(&self) -> u64 {
        self.promised
    }

    /// Sets pages aside for a change under way; one at a time.
    pub fn pledge(&mut self, pages: u64) {
        assert!(self.pledged == 0, "two changes set pages aside");
        self.pledged = pages;
    }

    /// The change is over: what it did not need is anybody's.
    pub fn release(&mut self) {
        self.pledged = 0;
    }

    /// A volume may take `after` pages from now on, and might `before`; out of what was
    /// set aside, if need be.
    pub(super) fn change(&mut self, before: u64, after: u64, out_of_pledge: bool) {
        if out_of_pledge {
            let more = after.saturating_sub(before);
            self.pledged -= more.min(self.pledged);
        }
        self.promised = self.promised - before + after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_aside_becomes_a_promise_and_is_counted_once() {
        let mut promises = Promises::new(4096, 3);
        promises.pledge(10);
        assert_eq!((promises.pages(), promises.promised()), (13, 3));
        promises.change(0, 8, true);
        assert_eq!((promises.pages(), promises.promised()), (13, 11));
        promises.release();
        assert_eq!(promises.pages(), 11);
        // A page of it is mapped.
        promises.change(8, 7, false);
        assert_eq!(promises.pages(), 10);
    }
}
