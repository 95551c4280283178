//! Copies of map ranges, to another map or within a map, and the cutting off of a map.
//!
//! Invariants:
//! - A page that comes in is held once more before the one that it replaces is let go of:
//!   what is on both sides is never free in between.
//! - A chunk comes as a whole where both sides have whole chunks; its pages are then held
//!   by it, as before.

use super::{CHUNK, Chunk, PageMap, Refs, UNMAPPED, parts};
use base::{PageIndex, PhysPage};
use std::rc::Rc;

/// What a map has of a part that lies within a chunk of the other side.
#[derive(Debug)]
pub enum TakenPart {
    /// A whole chunk, if one is there.
    Chunk(Option<Rc<Chunk>>),
    /// The physical page of each page, [`UNMAPPED`] for none.
    Pages(Vec<u32>),
}

/// The parts of a copy of `count` pages from page `from` to page `to`, each within a chunk
/// where it goes: from where, to where, how many. In the order in which nothing is
/// overwritten that is still to be copied, should both be of one map.
pub fn parts_of_copy(
    from: PageIndex,
    to: PageIndex,
    count: usize,
) -> impl Iterator<Item = (PageIndex, PageIndex, usize)> {
    let parts: Vec<_> = parts(to, count)
        .map(|(_, _, len, done)| {
            let at = |first: PageIndex| PageIndex(first.0 + done as u64);
            (at(from), at(to), len)
        })
        .collect();
    let backwards = to > from;
    let len = parts.len();
    (0..len).map(move |at| parts[if backwards { len - 1 - at } else { at }])
}

impl PageMap {
    /// What it has in `len` pages from `first` on, for another place.
    pub fn taken(&self, first: PageIndex, len: usize) -> TakenPart {
        if len == CHUNK && first.0.is_multiple_of(CHUNK as u64) {
            return TakenPart::Chunk(self.chunk(first.0 as usize / CHUNK).cloned());
        }
        let mut pages = Vec::with_capacity(len);
        for (chunk, from, len, _) in parts(first, len) {
            match self.part(chunk, from, len) {
                Some(part) => pages.extend_from_slice(part),
                None => pages.resize(pages.len() + len, UNMAPPED),
            }
        }
        TakenPart::Pages(pages)
    }

    /// Has `taken` from `first` on, instead of what it has there; what nobody has any more
    /// goes to `freed`.
    pub fn put(
        &mut self,
        first: PageIndex,
        taken: &TakenPart,
        refs: &mut Refs,
        freed: &mut Vec<PhysPage>,
    ) {
        let index = first.0 as usize / CHUNK;
        match taken {
            TakenPart::Chunk(None) => self.remove(first, CHUNK as u64, refs, freed),
            TakenPart::Chunk(Some(chunk)) => {
                let before = self.chunk(index).map_or(0, |chunk| chunk.pages().count());
                self.tree.put_chunk(index, chunk, refs, freed);
                self.mapped -= before as u64;
                self.mapped += chunk.pages().count() as u64;
            }
            TakenPart::Pages(pages) if pages.iter().all(|&entry| entry == UNMAPPED) => {
                self.remove(first, pages.len() as u64, refs, freed);
            }
            TakenPart::Pages(pages) => self.put_pages(first, pages, refs, freed),
        }
    }

    fn put_pages(
        &mut self,
        first: PageIndex,
        pages: &[u32],
        refs: &mut Refs,
        freed: &mut Vec<PhysPage>,
    ) {
        let (index, from) = (first.0 as usize / CHUNK, first.0 as usize % CHUNK);
        let (mut before, mut new) = (Vec::new(), Vec::new());
        self.change(index, refs, |entries| {
            for (entry, &page) in entries[from..].iter_mut().zip(pages) {
                if *entry == page {
                    continue;
                }
                let mapped = |entry| (entry != UNMAPPED).then_some(PhysPage(u64::from(entry)));
                new.extend(mapped(page));
                before.extend(mapped(*entry));
                *entry = page;
            }
        });
        new.into_iter().for_each(|page| refs.add(page));
        freed.extend(before.into_iter().filter(|page| refs.take(*page)));
    }

    /// Ends before `first`. What lay behind it is in the map that is given, to be given up.
    pub fn cut(&mut self, first: PageIndex, refs: &mut Refs, freed: &mut Vec<PhysPage>) -> PageMap {
        let whole = first.0.div_ceil(CHUNK as u64);
        self.remove(first, whole * CHUNK as u64 - first.0, refs, freed);
        let tree = self.tree.split_off(whole as usize, refs);
        let mut mapped = 0;
        let mut next = 0;
        while let Some((index, chunk)) = tree.chunk_from(next) {
            mapped += chunk.pages().count() as u64;
            next = index + 1;
        }
        self.mapped -= mapped;
        PageMap { tree, mapped }
    }

    /// Has `chunk`, which somebody has, at `index`, too. False when it has one of its own
    /// there.
    pub fn adopt(&mut self, index: usize, chunk: &Rc<Chunk>, refs: &mut Refs) -> bool {
        if self.chunk(index).is_some() {
            return false;
        }
        self.tree.put_chunk(index, chunk, refs, &mut Vec::new());
        self.mapped += chunk.pages().count() as u64;
        true
    }
}
