//! The map of one volume: logical page to physical page.
//!
//! Tables of chunks, chunks of 256 pages; four bytes of memory per page in every
//! chunk that has one mapped (16 MiB per TiB mapped at the default page size).
//!
//! Maps share tables and chunks: that is what makes a snapshot cost one pointer per
//! table. Whoever of the owners changes first copies one chunk, and its table's
//! pointers. A checkpoint keeps the map of one moment in the same way, as a reader.
//!
//! Invariants:
//! - A page is held as often as there are entries for it in chunks that volumes own;
//!   [`Refs`] has that, and is told of every change.
//! - A page goes to `freed` once nobody holds it any more, and then only.

mod copy;
mod tree;

pub use copy::{TakenPart, parts_of_copy};
pub use tree::{Chunk, Entries, TABLE, Table, Tree};

use super::record::{MAP_BYTES, TABLE_HEAD_BYTES};
use super::refs::Refs;
use base::{PageIndex, PhysPage};
use std::ops::Deref;

/// Pages of a chunk.
pub const CHUNK: usize = 256;
/// Bytes of a table of a whole chunk in a checkpoint.
pub const CHUNK_BYTES_MAX: usize = TABLE_HEAD_BYTES + 4 * CHUNK;

/// The most bytes of a checkpoint that a chunk with this many pages takes: as runs of pages or as a
/// table, whichever is shorter.
pub fn chunk_bytes(pages: usize) -> u64 {
    (pages * MAP_BYTES).min(CHUNK_BYTES_MAX) as u64
}

/// The most bytes of a checkpoint that a map takes whose pages are all mapped.
pub fn whole_map_bytes(pages: u64) -> u64 {
    let chunk = CHUNK as u64;
    pages / chunk * CHUNK_BYTES_MAX as u64 + chunk_bytes((pages % chunk) as usize)
}

/// Pages of a chunk that are mapped.
pub fn mapped_in(entries: &Entries) -> usize {
    entries.iter().filter(|&&entry| entry != UNMAPPED).count()
}

/// The entry of a page that is not mapped.
pub const UNMAPPED: u32 = u32::MAX;

/// Logical to physical pages.
#[derive(Debug, Default)]
pub struct PageMap {
    tree: Tree,
    mapped: u64,
}

impl Deref for PageMap {
    type Target = Tree;

    fn deref(&self) -> &Tree {
        &self.tree
    }
}

/// Pages that are consecutive on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapRun {
    /// The first logical page of the run.
    pub page: PageIndex,
    /// The physical page that `page` is mapped to.
    pub phys: PhysPage,
    /// How many there are.
    pub count: u64,
}

impl MapRun {
    /// Whether `phys` is one of its physical pages.
    pub fn has(&self, phys: PhysPage) -> bool {
        (self.phys.0..self.phys.0 + self.count).contains(&phys.0)
    }
}

impl PageMap {
    /// Maps a run of pages, all unmapped, to consecutive physical ones.
    ///
    /// # Errors
    /// The first page that is mapped already, or whose place is outside the format.
    /// Nothing has changed then.
    pub fn insert(&mut self, run: MapRun, refs: &mut Refs) -> Result<(), PageIndex> {
        let outside = |place: u64| place >= u64::from(UNMAPPED);
        if outside(run.phys.0.saturating_add(run.count.saturating_sub(1))) {
            return Err(run.page);
        }
        let parts = || parts(run.page, run.count as usize);
        for (chunk, from, len, _) in parts() {
            let there = self.part(chunk, from, len);
            let taken = there.and_then(|part| part.iter().position(|&entry| entry != UNMAPPED));
            if let Some(inside) = taken {
                return Err(PageIndex((chunk * CHUNK + from + inside) as u64));
            }
        }
        for (chunk, from, len, done) in parts() {
            // Below the limit of the format, as was checked.
            let first = (run.phys.0 + done as u64) as u32;
            self.change(chunk, refs, |entries| {
                for (entry, phys) in entries[from..from + len].iter_mut().zip(first..) {
                    *entry = phys;
                }
            });
        }
        Ok(())
    }

    /// Maps pages from `first` on to `places`; [`UNMAPPED`] among them are left out.
    ///
    /// # Errors
    /// The first page that is mapped already. Nothing has changed then.
    pub fn insert_table(
        &mut self,
        first: PageIndex,
        places: impl ExactSizeIterator<Item = u32> + Clone,
        refs: &mut Refs,
    ) -> Result<(), PageIndex> {
        for (chunk, from, len, done) in parts(first, places.len()) {
            let Some(there) = self.part(chunk, from, len) else {
                continue;
            };
            let mut pairs = there.iter().zip(places.clone().skip(done));
            let taken = pairs.position(|(entry, place)| *entry != UNMAPPED && place != UNMAPPED);
            if let Some(inside) = taken {
                return Err(PageIndex((chunk * CHUNK + from + inside) as u64));
            }
        }
        let mut rest = places.clone();
        for (chunk, from, len, _) in parts(first, places.len()) {
            let places = rest.by_ref().take(len);
            self.change(chunk, refs, |entries| {
                for (entry, place) in entries[from..from + len].iter_mut().zip(places) {
                    if place != UNMAPPED {
                        *entry = place;
                    }
                }
            });
        }
        Ok(())
    }

    /// Maps `page`, which is mapped, to `phys` instead. False, and nothing changed, when
    /// it is not mapped or `phys` is outside the format.
    pub fn remap(
        &mut self,
        page: PageIndex,
        phys: PhysPage,
        refs: &mut Refs,
        freed: &mut Vec<PhysPage>,
    ) -> bool {
        let place = u32::try_from(phys.0).unwrap_or(UNMAPPED);
        let Some(old) = self.get(page).filter(|_| place != UNMAPPED) else {
            return false;
        };
        self.tree.entries_mut(page.0 as usize / CHUNK, refs)[page.0 as usize % CHUNK] = place;
        if refs.take(old) {
            freed.push(old);
        }
        true
    }

    /// Maps none of `count` pages from `first` on any more.
    pub fn remove(
        &mut self,
        first: PageIndex,
        count: u64,
        refs: &mut Refs,
        freed: &mut Vec<PhysPage>,
    ) {
        let end = (self.tree.chunks_end() * CHUNK) as u64;
        let count = count.min(end.saturating_sub(first.0)) as usize;
        for (chunk, from, len, _) in parts(first, count) {
            let there = self.part(chunk, from, len);
            if there.is_none_or(|part| part.iter().all(|&entry| entry == UNMAPPED)) {
                continue;
            }
            let mut removed = Vec::new();
            self.change(chunk, refs, |entries| {
                for entry in &mut entries[from..from + len] {
                    if *entry != UNMAPPED {
                        removed.push(PhysPage(u64::from(*entry)));
                        *entry = UNMAPPED;
                    }
                }
            });
            freed.extend(removed.into_iter().filter(|page| refs.take(*page)));
            self.tree.drop_empty(chunk);
        }
    }

    /// Changes the entries of a chunk, and counts the pages that it has.
    fn change(&mut self, index: usize, refs: &mut Refs, change: impl FnOnce(&mut Entries)) {
        let entries = self.tree.entries_mut(index, refs);
        let before = mapped_in(entries);
        change(entries);
        let after = mapped_in(entries);
        refs.owned
            .resize_chunk(chunk_bytes(before), chunk_bytes(after));
        self.mapped = self.mapped + after as u64 - before as u64;
    }

    /// A map of the same pages, for another volume.
    pub fn share(&self, refs: &mut Refs) -> PageMap {
        PageMap {
            tree: self.tree.share(refs),
            mapped: self.mapped,
        }
    }

    /// Has what `from` has, from chunk `first` to the one before `end`. False when it has
    /// chunks of its own there.
    pub fn share_chunks(
        &mut self,
        from: &PageMap,
        first: usize,
        end: usize,
        refs: &mut Refs,
    ) -> bool {
        let shared = self.tree.share_chunks(&from.tree, first, end, refs);
        let mut next = first;
        while let Some((index, chunk)) = from.chunk_from(next).filter(|(index, _)| *index < end) {
            self.mapped += mapped_in(chunk.entries()) as u64;
            next = index + 1;
        }
        shared
    }

    /// Gives up a part of itself, some tens of thousands of pages; false when there is
    /// nothing left. What goes there must not be used any more.
    pub fn give_up_some(&mut self, refs: &mut Refs, freed: &mut Vec<PhysPage>) -> bool {
        self.mapped = 0;
        self.tree.give_up_table(refs, freed)
    }

    /// The map as it is now, for a reader.
    pub fn view(&self) -> Tree {
        self.tree.clone()
    }

    /// Chunks of `count` pages from `first` on that others have, too.
    pub fn shared_chunks(&self, first: PageIndex, count: u64) -> u64 {
        let (first, end) = (first.0 as usize, (first.0 + count) as usize);
        let chunks = first / CHUNK..end.div_ceil(CHUNK);
        let chunks = chunks.start..chunks.end.min(self.tree.chunks_end());
        chunks.filter(|chunk| self.is_shared(*chunk)).count() as u64
    }

    /// Pages of `count` from `first` on that are not mapped.
    pub fn unmapped(&self, first: PageIndex, count: u64) -> u64 {
        let holes = parts(first, count as usize).map(|(chunk, from, len, _)| {
            self.part(chunk, from, len).map_or(len, |part| {
                part.iter().filter(|&&entry| entry == UNMAPPED).count()
            })
        });
        holes.sum::<usize>() as u64
    }

    /// Where `page` lies, and whether others have it there, too.
    pub fn place(&self, page: PageIndex, refs: &Refs) -> Option<(PhysPage, bool)> {
        let phys = self.get(page)?;
        let shared = self.is_shared(page.0 as usize / CHUNK) || refs.beyond_first(phys) > 0;
        Some((phys, shared))
    }

    /// A part of a chunk that is there.
    fn part(&self, chunk: usize, from: usize, len: usize) -> Option<&[u32]> {
        self.chunk(chunk)
            .map(|chunk| &chunk.entries()[from..from + len])
    }

    /// How many pages from `first` on, `max` at most, are mapped as it is or are not as
    /// it is not; and which of both.
    pub fn alike(&self, first: PageIndex, max: u64) -> (bool, u64) {
        let is_mapped = self.get(first).is_some();
        let mut count = 0;
        for (chunk, from, len, _) in parts(first, max as usize) {
            let alike = match self.part(chunk, from, len) {
                None if is_mapped => 0,
                None => len,
                Some(part) => part
                    .iter()
                    .take_while(|&&entry| (entry != UNMAPPED) == is_mapped)
                    .count(),
            };
            count += alike as u64;
            if alike < len {
                break;
            }
        }
        (is_mapped, count)
    }

    /// Pages that are mapped, shared or not.
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Every mapped page, in order.
    pub fn iter(&self) -> impl Iterator<Item = (PageIndex, PhysPage)> + '_ {
        self.runs().flat_map(|run| {
            (0..run.count).map(move |at| (PageIndex(run.page.0 + at), PhysPage(run.phys.0 + at)))
        })
    }
}

/// The runs of a chunk.
pub fn runs_of(index: usize, chunk: &Entries) -> impl Iterator<Item = MapRun> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        let (at, phys, count) = next_run(chunk, from)?;
        from = at + count;
        Some(MapRun {
            page: PageIndex((index * CHUNK + at) as u64),
            phys: PhysPage(u64::from(phys)),
            count: count as u64,
        })
    })
}

/// The first run of `entries` at or after `from`: where it begins, its first physical
/// page, its length.
pub fn next_run(entries: &[u32], from: usize) -> Option<(usize, u32, usize)> {
    let rest = entries.get(from..)?;
    let skipped = rest.iter().position(|&entry| entry != UNMAPPED)?;
    let (phys, rest) = rest[skipped..].split_first()?;
    let mut count = 1;
    for (&entry, inside) in rest.iter().zip(1..) {
        if entry == UNMAPPED || entry.wrapping_sub(*phys) != inside {
            break;
        }
        count += 1;
    }
    Some((from + skipped, *phys, count))
}

/// `len` pages from `first` on by chunks: the chunk, where in it, how many, how many
/// came before.
fn parts(first: PageIndex, len: usize) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let (first, mut done) = (first.0 as usize, 0);
    std::iter::from_fn(move || {
        let at = first + done;
        let part = (len - done).min(CHUNK - at % CHUNK);
        let found = (at / CHUNK, at % CHUNK, part, done);
        done += part;
        (part > 0).then_some(found)
    })
}

#[cfg(test)]
mod tests;
