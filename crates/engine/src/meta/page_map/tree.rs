//! Tables of chunks: the storage of a map, which several maps can share.
//!
//! Tables and chunks are shared in two ways, and both are told apart:
//! - **Owners** are maps of volumes. A chunk that several own is copied by the one that
//!   changes it, and its pages have a holder more then.
//! - **Readers** ([`Tree`]s that were cloned: a checkpoint on its way) keep what was
//!   there alive, and hold no pages.

use super::{CHUNK, MapRun, UNMAPPED, chunk_bytes, mapped_in, runs_of};
use crate::meta::refs::Refs;
use base::{PageIndex, PhysPage};
use std::cell::Cell;
use std::rc::Rc;

/// Chunks of a table.
pub const TABLE: usize = 512;

/// Where the pages of a chunk lie.
pub type Entries = [u32; CHUNK];

/// Who owns a chunk, or a table: tables that are owned have chunks, maps of volumes have tables.
#[derive(Debug)]
struct Owners {
    now: Cell<u32>,
    /// There were several at some time. A reader that finds what several had at its moment needs
    /// this: by the time that it looks, some may be gone.
    were_several: Cell<bool>,
}

/// A run of pages of a map.
#[derive(Debug)]
pub struct Chunk {
    owners: Owners,
    entries: Entries,
}

/// A run of chunks of a map.
#[derive(Debug)]
pub struct Table {
    owners: Owners,
    chunks: [Option<Rc<Chunk>>; TABLE],
}

/// All of a map. A clone of it is a reader.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    tables: Vec<Option<Rc<Table>>>,
}

impl Owners {
    fn one() -> Self {
        Owners {
            now: Cell::new(1),
            were_several: Cell::new(false),
        }
    }

    fn are_several(&self) -> bool {
        self.now.get() > 1
    }

    /// Another one, who is one of the sharers.
    fn add(&self, refs: &mut Refs) {
        self.now.set(self.now.get() + 1);
        self.were_several.set(true);
        refs.owned.sharers += 1;
    }

    /// One of them has it no more; whether that was the last.
    fn take(&self, refs: &mut Refs) -> bool {
        self.now.set(self.now.get() - 1);
        if self.now.get() == 0 {
            return true;
        }
        refs.owned.sharers -= 1;
        false
    }
}

impl Chunk {
    fn new(entries: Entries) -> Rc<Self> {
        let owners = Owners::one();
        Rc::new(Chunk { owners, entries })
    }

    /// Where its pages lie.
    pub fn entries(&self) -> &Entries {
        &self.entries
    }

    /// The pages that it has.
    pub(super) fn pages(&self) -> impl Iterator<Item = PhysPage> + '_ {
        let mapped = self.entries.iter().filter(|&&entry| entry != UNMAPPED);
        mapped.map(|&entry| PhysPage(u64::from(entry)))
    }

    /// What it takes of a checkpoint at most.
    fn bytes(&self) -> u64 {
        chunk_bytes(mapped_in(&self.entries))
    }

    /// Tables that have it and are owned.
    pub fn owners(&self) -> u32 {
        self.owners.now.get()
    }

    /// Whether several owners had it at some time.
    pub fn was_shared(&self) -> bool {
        self.owners.were_several.get()
    }

    /// One of its owners has it no more.
    fn let_go(&self, refs: &mut Refs, freed: &mut Vec<PhysPage>) {
        if self.owners.take(refs) {
            refs.owned.resize_chunk(self.bytes(), 0);
            freed.extend(self.pages().filter(|page| refs.take(*page)));
        }
    }
}

impl Table {
    fn new() -> Rc<Self> {
        Rc::new(Table {
            owners: Owners::one(),
            chunks: [const { None }; TABLE],
        })
    }

    /// Chunks that it has.
    pub fn places(&self) -> u64 {
        self.chunks.iter().flatten().count() as u64
    }

    /// For an owner of its own, who is one of those that it has now.
    fn copy(self: &Rc<Self>, refs: &mut Refs) -> Rc<Self> {
        // Else only readers keep the old one.
        if !self.owners.take(refs) {
            let chunks = self.chunks.iter().flatten();
            chunks.for_each(|chunk| chunk.owners.add(refs));
        }
        Rc::new(Table {
            owners: Owners::one(),
            chunks: self.chunks.clone(),
        })
    }
}

impl Tree {
    /// The chunk, if it is there.
    pub fn chunk(&self, index: usize) -> Option<&Rc<Chunk>> {
        self.tables.get(index / TABLE)?.as_ref()?.chunks[index % TABLE].as_ref()
    }

    /// Where `page` lies, if it is mapped.
    pub fn get(&self, page: PageIndex) -> Option<PhysPage> {
        let chunk = self.chunk(page.0 as usize / CHUNK)?;
        let entry = chunk.entries[page.0 as usize % CHUNK];
        (entry != UNMAPPED).then_some(PhysPage(u64::from(entry)))
    }

    /// Whether the chunk is one that other owners have, too.
    pub fn is_shared(&self, index: usize) -> bool {
        let Some(Some(table)) = self.tables.get(index / TABLE) else {
            return false;
        };
        let chunk = table.chunks[index % TABLE].as_ref();
        table.owners.are_several() || chunk.is_some_and(|chunk| chunk.owners.are_several())
    }

    /// The table that chunk `index` is in, if it is there and several owners have it.
    pub fn shared_table(&self, index: usize) -> Option<&Rc<Table>> {
        let table = self.tables.get(index / TABLE)?.as_ref()?;
        table.owners.are_several().then_some(table)
    }

    /// The same, if several owners had it at some time.
    pub fn once_shared_table(&self, index: usize) -> Option<&Rc<Table>> {
        let table = self.tables.get(index / TABLE)?.as_ref()?;
        table.owners.were_several.get().then_some(table)
    }

    /// The tables that there are, in the order of pages.
    pub fn tables(&self) -> impl Iterator<Item = &Rc<Table>> {
        self.tables.iter().flatten()
    }

    /// Chunks that there can be with the tables that there are.
    pub(super) fn chunks_end(&self) -> usize {
        self.tables.len() * TABLE
    }

    /// The first chunk at or after `index` that is there, with its index.
    pub fn chunk_from(&self, index: usize) -> Option<(usize, &Rc<Chunk>)> {
        let mut index = index;
        while let Some(table) = self.tables.get(index / TABLE) {
            let chunks = table.as_ref().and_then(|table| {
                (index % TABLE..TABLE).find_map(|at| Some((at, table.chunks[at].as_ref()?)))
            });
            if let Some((at, chunk)) = chunks {
                return Some((index / TABLE * TABLE + at, chunk));
            }
            index = (index / TABLE + 1) * TABLE;
        }
        None
    }

    /// Runs of pages that are consecutive on both sides, in order; they end where a
    /// chunk does.
    pub fn runs(&self) -> impl Iterator<Item = MapRun> + '_ {
        let chunks =
            std::iter::successors(self.chunk_from(0), |(index, _)| self.chunk_from(index + 1));
        chunks.flat_map(|(index, chunk)| runs_of(index, &chunk.entries))
    }

    /// Lets go of the tables from that of chunk `first` to the one before that of chunk
    /// `end`: for a reader who is past them, so that changes of the original need no
    /// copies there any more.
    pub fn let_go(&mut self, first: usize, end: usize) {
        let passed = self.tables.iter_mut().take(end / TABLE).skip(first / TABLE);
        passed.for_each(|table| *table = None);
    }

    /// Another owner's: all is shared from now on.
    pub(super) fn share(&self, refs: &mut Refs) -> Tree {
        self.tables().for_each(|table| table.owners.add(refs));
        self.clone()
    }

    /// The table that chunk `index` is in, to be changed: made when it is not there,
    /// copied when somebody else has it, too.
    fn table_mut(&mut self, index: usize, refs: &mut Refs) -> &mut Table {
        if self.tables.len() <= index / TABLE {
            self.tables.resize(index / TABLE + 1, None);
        }
        let table = self.tables[index / TABLE].get_or_insert_with(Table::new);
        if table.owners.are_several() || Rc::strong_count(table) > 1 {
            *table = table.copy(refs);
        }
        match Rc::get_mut(table) {
            Some(table) => table,
            None => unreachable!("a table that was copied is nobody else's"),
        }
    }

    /// Has `chunk`, which somebody has, at `index`, too, instead of what it has there;
    /// pages that were held by nobody else go to `freed`.
    pub(super) fn put_chunk(
        &mut self,
        index: usize,
        chunk: &Rc<Chunk>,
        refs: &mut Refs,
        freed: &mut Vec<PhysPage>,
    ) {
        if self.chunk(index).is_some_and(|own| Rc::ptr_eq(own, chunk)) {
            return;
        }
        let place = &mut self.table_mut(index, refs).chunks[index % TABLE];
        chunk.owners.add(refs);
        if let Some(before) = place.replace(Rc::clone(chunk)) {
            before.let_go(refs, freed);
        }
    }

    /// What lies from chunk `first` on, which is no other map's from now on, in a map of
    /// its own.
    pub(super) fn split_off(&mut self, first: usize, refs: &mut Refs) -> Tree {
        let mut rest = Tree::default();
        let whole = first.div_ceil(TABLE);
        if self.tables.len() > whole {
            rest.tables = self.tables.split_off(whole);
        }
        if !first.is_multiple_of(TABLE) && matches!(self.tables.get(first / TABLE), Some(Some(_))) {
            let (mut table, from) = (Table::new(), self.table_mut(first, refs));
            if let Some(new) = Rc::get_mut(&mut table) {
                let chunks = new.chunks.iter_mut().zip(&mut from.chunks);
                chunks
                    .skip(first % TABLE)
                    .for_each(|(to, from)| *to = from.take());
            }
            rest.tables.push(Some(table));
        }
        rest
    }

    /// The entries of a chunk, to be changed: made when they are not there, copied when
    /// somebody else has them, too.
    pub(super) fn entries_mut(&mut self, index: usize, refs: &mut Refs) -> &mut Entries {
        let table = self.table_mut(index, refs);
        let chunk =
            table.chunks[index % TABLE].get_or_insert_with(|| Chunk::new([UNMAPPED; CHUNK]));
        if chunk.owners.are_several() || Rc::strong_count(chunk) > 1 {
            // Else only readers keep the old one.
            if !chunk.owners.take(refs) {
                refs.owned.resize_chunk(0, chunk.bytes());
                chunk.pages().for_each(|page| refs.add(page));
            }
            *chunk = Chunk::new(chunk.entries);
        }
        match Rc::get_mut(chunk) {
            Some(chunk) => &mut chunk.entries,
            None => unreachable!("a chunk that was copied is nobody else's"),
        }
    }

    /// Takes a chunk away that has nothing, and that `entries_mut` gave last.
    pub(super) fn drop_empty(&mut self, index: usize) {
        if let Some(Some(table)) = self.tables.get_mut(index / TABLE)
            && let Some(table) = Rc::get_mut(table)
            && let Some(chunk) = &table.chunks[index % TABLE]
            && chunk.pages().next().is_none()
        {
            table.chunks[index % TABLE] = None;
        }
    }

    /// Has the chunks of `from` from `first` to the one before `end`, where it has none
    /// of its own: whole tables where the run has all of one.
    pub(super) fn share_chunks(
        &mut self,
        from: &Tree,
        first: usize,
        end: usize,
        refs: &mut Refs,
    ) -> bool {
        let mut index = first;
        while index < end {
            let Some(Some(theirs)) = from.tables.get(index / TABLE) else {
                index = (index / TABLE + 1) * TABLE;
                continue;
            };
            if self.tables.len() <= index / TABLE {
                self.tables.resize(index / TABLE + 1, None);
            }
            let own = &mut self.tables[index / TABLE];
            let stop = ((index / TABLE + 1) * TABLE).min(end);
            if own.is_none() && stop - index == TABLE {
                theirs.owners.add(refs);
                *own = Some(Rc::clone(theirs));
                index = stop;
                continue;
            }
            let Some(table) = Rc::get_mut(own.get_or_insert_with(Table::new)) else {
                return false;
            };
            for at in index % TABLE..index % TABLE + (stop - index) {
                let Some(chunk) = &theirs.chunks[at] else {
                    continue;
                };
                if table.chunks[at].is_some() {
                    return false;
                }
                chunk.owners.add(refs);
                table.chunks[at] = Some(Rc::clone(chunk));
            }
            index = stop;
        }
        true
    }

    /// Gives up the last table; pages that were held by nobody else go to `freed`. False
    /// when there is none.
    pub(super) fn give_up_table(&mut self, refs: &mut Refs, freed: &mut Vec<PhysPage>) -> bool {
        let Some(table) = self.tables.pop() else {
            return false;
        };
        let Some(table) = table else { return true };
        if !table.owners.take(refs) {
            return true;
        }
        for chunk in table.chunks.iter().flatten() {
            chunk.let_go(refs, freed);
        }
        true
    }
}
