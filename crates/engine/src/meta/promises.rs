//! Pages that are promised to thick volumes, and not taken yet.
//!
//! Invariants:
//! - What is promised is, of each thick volume, the pages of its size less those mapped.
//!   Every change of either goes through [`super::State::apply`], which keeps the sum.
//! - What is set aside for a change under way becomes a promise in the same moment in
//!   which that change is made: it is counted once at all times.

use super::page_map::whole_map_bytes;
use super::record::MAP_BYTES;

/// What one thick volume may still take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// Pages that it has not mapped.
    pub pages: u64,
    /// Bytes that its map can grow by in a checkpoint when these pages are mapped, at most.
    pub map_bytes: u64,
}

impl Promise {
    /// That of pages of a volume that has so many in all. Its map can't grow beyond that of all, and the
    /// pages that are mapped take as much of it as if they were side by side, or more.
    pub fn of(pages: u64, of_pages: u64) -> Self {
        let mapped = of_pages.saturating_sub(pages);
        let left = whole_map_bytes(of_pages) - whole_map_bytes(mapped);
        Promise {
            pages,
            map_bytes: left.min(pages * MAP_BYTES as u64),
        }
    }
}

/// What thick volumes may still take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// Zero until the pool is known: nothing is counted before.
    page_bytes: u64,
    promised: Promise,
    pledged: Promise,
}

impl Promises {
    /// Of a pool of such pages, whose thick volumes may take so much more.
    pub fn new(page_bytes: u64, promised: impl Iterator<Item = Promise>) -> Self {
        let promised = promised.fold(Promise::default(), |all, one| Promise {
            pages: all.pages + one.pages,
            map_bytes: all.map_bytes + one.map_bytes,
        });
        Promises {
            page_bytes,
            promised,
            pledged: Promise::default(),
        }
    }

    /// Page of the pool, once it is known.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Pages promised, and set aside to be.
    pub fn pages(&self) -> u64 {
        self.promised.pages + self.pledged.pages
    }

    /// Bytes that maps can grow by, if only so many of the pages are still to be mapped.
    pub fn map_bytes(&self, pages: u64) -> u64 {
        let all = self.promised.map_bytes + self.pledged.map_bytes;
        all.min(pages * MAP_BYTES as u64)
    }

    /// Pages promised to thick volumes, without pledges.
    pub fn promised(&self) -> u64 {
        self.promised.pages
    }

    /// Sets pages aside for a change under way; one at a time.
    pub fn pledge(&mut self, promise: Promise) {
        assert!(self.pledged.pages == 0, "two changes set pages aside");
        self.pledged = promise;
    }

    /// The change is over: what it did not need is anybody's.
    pub fn release(&mut self) {
        self.pledged = Promise::default();
    }

    /// A volume may take `after` from now on, and might `before`; out of what was set aside, if need be.
    pub(super) fn change(&mut self, before: Promise, after: Promise, out_of_pledge: bool) {
        let part = |before: u64, after: u64, (promised, pledged): (&mut u64, &mut u64)| {
            if out_of_pledge {
                *pledged -= after.saturating_sub(before).min(*pledged);
            }
            *promised = *promised - before + after;
        };
        let (promised, pledged) = (&mut self.promised, &mut self.pledged);
        part(
            before.pages,
            after.pages,
            (&mut promised.pages, &mut pledged.pages),
        );
        part(
            before.map_bytes,
            after.map_bytes,
            (&mut promised.map_bytes, &mut pledged.map_bytes),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::page_map::CHUNK_BYTES_MAX;

    #[test]
    fn what_is_set_aside_becomes_a_promise_and_is_counted_once() {
        let pages = |pages| Promise::of(pages, 300);
        let mut promises = Promises::new(4096, [pages(3)].into_iter());
        promises.pledge(pages(10));
        assert_eq!((promises.pages(), promises.promised()), (13, 3));
        promises.change(Promise::default(), pages(8), true);
        assert_eq!((promises.pages(), promises.promised()), (13, 11));
        promises.release();
        assert_eq!(promises.pages(), 11);
        // A page of it is mapped.
        promises.change(pages(8), pages(7), false);
        assert_eq!(promises.pages(), 10);
        assert_eq!(promises.map_bytes(10), 10 * MAP_BYTES as u64);
        assert_eq!(promises.map_bytes(2), 2 * MAP_BYTES as u64);
    }

    #[test]
    fn a_map_grows_by_no_more_than_that_of_all_pages() {
        let (page, chunk) = (MAP_BYTES as u64, CHUNK_BYTES_MAX as u64);
        let bytes = |pages, of_pages| Promise::of(pages, of_pages).map_bytes;
        assert_eq!(bytes(10, 10_000), 10 * page);
        assert_eq!(bytes(512, 512), 2 * chunk);
        assert_eq!(bytes(513, 513), 2 * chunk + page);
        // 212 pages take as much as a chunk, if they lie in no more than one.
        assert_eq!(bytes(300, 512), chunk);
        assert_eq!(bytes(500, 512), 2 * chunk - 12 * page);
        // Volumes whose pages are all mapped make no room for others.
        let volumes = [Promise::of(0, 10_000), Promise::of(300, 512)];
        let promises = Promises::new(4096, volumes.into_iter());
        assert_eq!(promises.map_bytes(300), chunk);
    }

    #[test]
    fn a_volume_that_grows_is_promised_no_more_than_its_new_pages_alone() {
        for (pages, of_pages) in [(0, 100), (100, 100), (40, 256), (1, 1000), (700, 1000)] {
            for more in [1, 60, 61, 256, 1000] {
                let after = Promise::of(pages + more, of_pages + more).map_bytes;
                let before = Promise::of(pages, of_pages).map_bytes;
                let new = more * MAP_BYTES as u64;
                assert!(after >= before && after - before <= new, "{pages}, {more}");
            }
        }
    }
}
