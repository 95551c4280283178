//! The map of one volume: logical page to physical page.
//!
//! Two levels; four bytes of memory per page in every run of 1,024 pages that
//! has one mapped (16 MiB per TiB mapped at the default page size).

use base::{PageIndex, PhysPage};

const CHUNK: usize = 1024;
const UNMAPPED: u32 = u32::MAX;

/// Logical to physical pages.
#[derive(Debug, Default)]
pub struct PageMap {
    chunks: Vec<Option<Box<[u32; CHUNK]>>>,
    mapped: u64,
}

impl PageMap {
    /// Where `page` lies, if it has been allocated.
    pub fn get(&self, page: PageIndex) -> Option<PhysPage> {
        let chunk = self.chunks.get(page.0 as usize / CHUNK)?.as_ref()?;
        let entry = chunk[page.0 as usize % CHUNK];
        (entry != UNMAPPED).then_some(PhysPage(u64::from(entry)))
    }

    /// Maps `page`, which is unmapped, to `phys`.
    ///
    /// # Panics
    /// When it is mapped already: two physical pages for one logical page means
    /// that acknowledged data is about to vanish.
    pub fn insert(&mut self, page: PageIndex, phys: PhysPage) {
        let entry = u32::try_from(phys.0).unwrap_or(UNMAPPED);
        assert!(
            entry != UNMAPPED,
            "physical page {phys} is outside the format"
        );
        let index = page.0 as usize / CHUNK;
        if self.chunks.len() <= index {
            self.chunks.resize_with(index + 1, || None);
        }
        let chunk = self.chunks[index].get_or_insert_with(|| Box::new([UNMAPPED; CHUNK]));
        let slot = &mut chunk[page.0 as usize % CHUNK];
        assert!(
            *slot == UNMAPPED,
            "page {page} is mapped to {slot}, and now to {phys} too"
        );
        *slot = entry;
        self.mapped += 1;
    }

    /// Maps `page`, which is mapped, to `phys` instead.
    ///
    /// # Panics
    /// When it is not mapped.
    pub fn remap(&mut self, page: PageIndex, phys: PhysPage) {
        let entry = u32::try_from(phys.0).unwrap_or(UNMAPPED);
        let chunk = self.chunks.get_mut(page.0 as usize / CHUNK);
        match chunk.and_then(Option::as_mut) {
            Some(chunk) if chunk[page.0 as usize % CHUNK] != UNMAPPED && entry != UNMAPPED => {
                chunk[page.0 as usize % CHUNK] = entry;
            }
            _ => panic!("page {page} is not mapped, or {phys} is outside the format"),
        }
    }

    /// Pages mapped.
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Every mapped page, in order.
    pub fn iter(&self) -> impl Iterator<Item = (PageIndex, PhysPage)> + '_ {
        self.chunks.iter().enumerate().flat_map(|(index, chunk)| {
            let entries = chunk.iter().flat_map(|chunk| chunk.iter().enumerate());
            entries
                .filter(|(_, phys)| **phys != UNMAPPED)
                .map(move |(at, phys)| {
                    (
                        PageIndex((index * CHUNK + at) as u64),
                        PhysPage(u64::from(*phys)),
                    )
                })
        })
    }

    /// Runs of pages that are consecutive on both sides: first page, first
    /// physical page, count.
    pub fn runs(&self) -> Vec<(PageIndex, PhysPage, u32)> {
        let mut runs: Vec<(PageIndex, PhysPage, u32)> = Vec::new();
        for (page, phys) in self.iter() {
            match runs.last_mut() {
                Some((first, at, count))
                    if first.0 + u64::from(*count) == page.0
                        && at.0 + u64::from(*count) == phys.0 =>
                {
                    *count += 1;
                }
                _ => runs.push((page, phys, 1)),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_again_and_run_together() {
        let mut map = PageMap::default();
        for (page, phys) in [(0, 7), (1, 8), (3, 9), (5000, 1), (5001, 0)] {
            map.insert(PageIndex(page), PhysPage(phys));
        }
        assert_eq!(map.get(PageIndex(1)), Some(PhysPage(8)));
        assert_eq!(map.get(PageIndex(2)), None);
        assert_eq!(map.get(PageIndex(1 << 30)), None);
        assert_eq!(map.mapped(), 5);
        let runs: Vec<_> = map.runs().iter().map(|(p, q, n)| (p.0, q.0, *n)).collect();
        assert_eq!(runs, [(0, 7, 2), (3, 9, 1), (5000, 1, 1), (5001, 0, 1)]);
    }

    #[test]
    #[should_panic(expected = "mapped to 7")]
    fn a_page_is_never_mapped_twice() {
        let mut map = PageMap::default();
        map.insert(PageIndex(0), PhysPage(7));
        map.insert(PageIndex(0), PhysPage(8));
    }
}
