//! The map of one volume: logical page to physical page.
//!
//! Tables of chunks, chunks of 1,024 pages; four bytes of memory per page in every
//! chunk that has one mapped (16 MiB per TiB mapped at the default page size).
//!
//! A clone shares tables and chunks with the original, and costs one pointer per
//! table. Whoever of the two changes first copies one chunk, and its table's pointers:
//! that is how a checkpoint keeps the map of one moment while the pool goes on.

use base::{PageIndex, PhysPage};
use std::rc::Rc;

/// Pages of a chunk.
pub const CHUNK: usize = 1024;
/// Chunks of a table.
const TABLE: usize = 256;
/// The entry of a page that is not mapped.
pub const UNMAPPED: u32 = u32::MAX;

type Chunk = [u32; CHUNK];
type Table = [Option<Rc<Chunk>>; TABLE];

/// Logical to physical pages.
#[derive(Clone, Debug, Default)]
pub struct PageMap {
    tables: Vec<Option<Rc<Table>>>,
    mapped: u64,
}

/// Pages that are consecutive on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapRun {
    /// The first page.
    pub page: PageIndex,
    /// Where it lies.
    pub phys: PhysPage,
    /// How many there are.
    pub count: u64,
}

impl PageMap {
    /// Where `page` lies, if it has been allocated.
    pub fn get(&self, page: PageIndex) -> Option<PhysPage> {
        let entry = self.chunk(page.0 as usize / CHUNK)?[page.0 as usize % CHUNK];
        (entry != UNMAPPED).then_some(PhysPage(u64::from(entry)))
    }

    fn chunk(&self, index: usize) -> Option<&Chunk> {
        self.tables.get(index / TABLE)?.as_ref()?[index % TABLE].as_deref()
    }

    /// The chunk to write into. Made when it is not there, copied when it is shared.
    fn chunk_mut(&mut self, index: usize) -> &mut Chunk {
        if self.tables.len() <= index / TABLE {
            self.tables.resize(index / TABLE + 1, None);
        }
        let table =
            self.tables[index / TABLE].get_or_insert_with(|| Rc::new([const { None }; TABLE]));
        let chunk = &mut Rc::make_mut(table)[index % TABLE];
        Rc::make_mut(chunk.get_or_insert_with(|| Rc::new([UNMAPPED; CHUNK])))
    }

    /// Maps a run of pages, all unmapped, to consecutive physical ones.
    ///
    /// # Errors
    /// The first page that is mapped already, or whose place is outside the format.
    /// Nothing has changed then.
    pub fn insert(&mut self, run: MapRun) -> Result<(), PageIndex> {
        let outside = |place: u64| place >= u64::from(UNMAPPED);
        if outside(run.phys.0.saturating_add(run.count.saturating_sub(1))) {
            return Err(run.page);
        }
        let parts = || parts(run.page, run.count as usize);
        for (chunk, from, len, _) in parts() {
            let there = self.chunk(chunk).map(|chunk| &chunk[from..from + len]);
            let taken = there.and_then(|part| part.iter().position(|&entry| entry != UNMAPPED));
            if let Some(inside) = taken {
                return Err(PageIndex((chunk * CHUNK + from + inside) as u64));
            }
        }
        for (chunk, from, len, done) in parts() {
            let entries = &mut self.chunk_mut(chunk)[from..from + len];
            // Below the limit of the format, as was checked.
            let first = (run.phys.0 + done as u64) as u32;
            for (entry, phys) in entries.iter_mut().zip(first..) {
                *entry = phys;
            }
        }
        self.mapped += run.count;
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
    ) -> Result<(), PageIndex> {
        for (chunk, from, len, done) in parts(first, places.len()) {
            let Some(there) = self.chunk(chunk) else {
                continue;
            };
            let mut pairs = there[from..from + len]
                .iter()
                .zip(places.clone().skip(done));
            let taken = pairs.position(|(entry, place)| *entry != UNMAPPED && place != UNMAPPED);
            if let Some(inside) = taken {
                return Err(PageIndex((chunk * CHUNK + from + inside) as u64));
            }
        }
        let mut rest = places.clone();
        for (chunk, from, len, _) in parts(first, places.len()) {
            let mut mapped = 0;
            let entries = &mut self.chunk_mut(chunk)[from..from + len];
            for (entry, place) in entries.iter_mut().zip(rest.by_ref().take(len)) {
                if place != UNMAPPED {
                    *entry = place;
                    mapped += 1;
                }
            }
            self.mapped += mapped;
        }
        Ok(())
    }

    /// Maps `page`, which is mapped, to `phys` instead; where it lay before. `None`, and
    /// nothing changed, when it is not mapped or `phys` is outside the format.
    pub fn remap(&mut self, page: PageIndex, phys: PhysPage) -> Option<PhysPage> {
        let place = u32::try_from(phys.0).unwrap_or(UNMAPPED);
        let old = self.get(page).filter(|_| place != UNMAPPED)?;
        self.chunk_mut(page.0 as usize / CHUNK)[page.0 as usize % CHUNK] = place;
        Some(old)
    }

    /// Maps none of `count` pages from `first` on any more; where those lay that were
    /// goes to `freed`, in order.
    pub fn remove(&mut self, first: PageIndex, count: u64, freed: &mut Vec<PhysPage>) {
        let end = (self.tables.len() * TABLE * CHUNK) as u64;
        let count = count.min(end.saturating_sub(first.0)) as usize;
        for (chunk, from, len, _) in parts(first, count) {
            let there = self.chunk(chunk).map(|chunk| &chunk[from..from + len]);
            if there.is_none_or(|part| part.iter().all(|&entry| entry == UNMAPPED)) {
                continue;
            }
            let before = freed.len();
            for entry in &mut self.chunk_mut(chunk)[from..from + len] {
                if *entry != UNMAPPED {
                    freed.push(PhysPage(u64::from(*entry)));
                    *entry = UNMAPPED;
                }
            }
            self.mapped -= (freed.len() - before) as u64;
            self.drop_if_empty(chunk);
        }
    }

    /// A chunk that has nothing costs nothing.
    fn drop_if_empty(&mut self, index: usize) {
        let is_empty = |chunk: &Chunk| chunk.iter().all(|&entry| entry == UNMAPPED);
        if self.chunk(index).is_some_and(is_empty)
            && let Some(Some(table)) = self.tables.get_mut(index / TABLE)
        {
            Rc::make_mut(table)[index % TABLE] = None;
        }
    }

    /// How many pages from `first` on, `max` at most, are mapped as it is or are not as
    /// it is not; and which of both.
    pub fn alike(&self, first: PageIndex, max: u64) -> (bool, u64) {
        let is_mapped = self.get(first).is_some();
        let mut count = 0;
        for (chunk, from, len, _) in parts(first, max as usize) {
            let alike = match self.chunk(chunk) {
                None if is_mapped => 0,
                None => len,
                Some(chunk) => chunk[from..from + len]
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

    /// Pages mapped.
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// The first chunk at or after `index` that is there, with its index.
    pub fn chunk_from(&self, index: usize) -> Option<(usize, &Chunk)> {
        let mut index = index;
        while let Some(table) = self.tables.get(index / TABLE) {
            let chunks = table.as_ref().and_then(|table| {
                (index % TABLE..TABLE).find_map(|at| Some((at, table[at].as_deref()?)))
            });
            if let Some((at, chunk)) = chunks {
                return Some((index / TABLE * TABLE + at, chunk));
            }
            index = (index / TABLE + 1) * TABLE;
        }
        None
    }

    /// Lets go of the tables from that of chunk `first` to the one before that of chunk
    /// `end`: for a clone whose reader is past them, so that changes of the original
    /// need no copies there any more.
    pub fn let_go(&mut self, first: usize, end: usize) {
        let passed = self.tables.iter_mut().take(end / TABLE).skip(first / TABLE);
        passed.for_each(|table| *table = None);
    }

    /// Every mapped page, in order.
    pub fn iter(&self) -> impl Iterator<Item = (PageIndex, PhysPage)> + '_ {
        self.runs().flat_map(|run| {
            (0..run.count).map(move |at| (PageIndex(run.page.0 + at), PhysPage(run.phys.0 + at)))
        })
    }

    /// Runs of pages that are consecutive on both sides, in order; they end where a
    /// chunk does.
    pub fn runs(&self) -> impl Iterator<Item = MapRun> + '_ {
        let chunks =
            std::iter::successors(self.chunk_from(0), |(index, _)| self.chunk_from(index + 1));
        chunks.flat_map(|(index, chunk)| runs_of(index, chunk))
    }
}

/// The runs of a chunk.
pub fn runs_of(index: usize, chunk: &Chunk) -> impl Iterator<Item = MapRun> + '_ {
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
    let expected = (*phys..UNMAPPED).skip(1);
    let more = rest.iter().zip(expected);
    let count = 1 + more.take_while(|(entry, place)| **entry == *place).count();
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
mod tests {
    use super::*;

    fn run(page: u64, phys: u64, count: u64) -> MapRun {
        let (page, phys) = (PageIndex(page), PhysPage(phys));
        MapRun { page, phys, count }
    }

    fn runs(map: &PageMap) -> Vec<MapRun> {
        map.runs().collect()
    }

    #[test]
    fn pages_are_found_again_and_run_together() {
        let mut map = PageMap::default();
        for (page, phys) in [(0, 7), (1, 8), (3, 9), (5000, 1), (5001, 0)] {
            map.insert(run(page, phys, 1)).unwrap();
        }
        assert_eq!(map.get(PageIndex(1)), Some(PhysPage(8)));
        assert_eq!(map.get(PageIndex(2)), None);
        assert_eq!(map.get(PageIndex(1 << 30)), None);
        assert_eq!(map.mapped(), 5);
        let expected = [run(0, 7, 2), run(3, 9, 1), run(5000, 1, 1), run(5001, 0, 1)];
        assert_eq!(runs(&map), expected);
        assert_eq!(map.iter().count(), 5);
    }

    #[test]
    fn a_run_over_chunks_and_tables_is_there_from_end_to_end() {
        let mut map = PageMap::default();
        let first = (TABLE * CHUNK) as u64 - 1500;
        map.insert(run(first, 40, 3000)).unwrap();
        assert!(
            map.iter()
                .eq((0..3000).map(|i| (PageIndex(first + i), PhysPage(40 + i))))
        );
        assert_eq!(
            map.insert(run(first + 2999, 9, 1)),
            Err(PageIndex(first + 2999))
        );
        assert_eq!(map.insert(run(first - 5, 9, 6)), Err(PageIndex(first)));
        assert_eq!(map.get(PageIndex(first - 5)), None);
        assert_eq!(map.mapped(), 3000);
    }

    #[test]
    fn the_last_place_of_the_format_ends_a_run() {
        let mut map = PageMap::default();
        let last = u64::from(UNMAPPED) - 1;
        map.insert(run(3, last, 1)).unwrap();
        assert_eq!(runs(&map), [run(3, last, 1)]);
        assert_eq!(map.insert(run(7, last, 2)), Err(PageIndex(7)));
        assert_eq!(map.insert(run(7, u64::MAX, 2)), Err(PageIndex(7)));
    }

    #[test]
    fn a_table_leaves_out_what_is_not_mapped() {
        let mut map = PageMap::default();
        map.insert(run(1022, 5, 1)).unwrap();
        let table = [9, UNMAPPED, 3, 2, UNMAPPED, 1];
        map.insert_table(PageIndex(1021), table.into_iter())
            .unwrap();
        let pages: Vec<_> = map.iter().map(|(page, phys)| (page.0, phys.0)).collect();
        assert_eq!(
            pages,
            [(1021, 9), (1022, 5), (1023, 3), (1024, 2), (1026, 1)]
        );
        assert_eq!(map.mapped(), 5);
        let again = map.insert_table(PageIndex(1025), [8, 8].into_iter());
        assert_eq!(again, Err(PageIndex(1026)));
        assert_eq!(map.get(PageIndex(1025)), None);
    }

    #[test]
    fn what_is_removed_is_given_back_and_the_rest_stays() {
        let mut map = PageMap::default();
        map.insert(run(1020, 50, 8)).unwrap();
        map.insert(run(5000, 1, 1)).unwrap();
        let kept = map.clone();
        let mut freed = Vec::new();
        map.remove(PageIndex(1022), 3000, &mut freed);
        assert_eq!(freed, (52..58).map(PhysPage).collect::<Vec<_>>());
        assert_eq!(runs(&map), [run(1020, 50, 2), run(5000, 1, 1)]);
        assert_eq!((map.mapped(), kept.mapped()), (3, 9));
        assert_eq!(runs(&kept).iter().map(|run| run.count).sum::<u64>(), 9);
        // The chunk that has nothing any more is gone, also for who goes over them.
        assert_eq!(map.chunk_from(1).map(|(index, _)| index), Some(4));
        map.remove(PageIndex(1), u64::MAX - 1, &mut freed);
        assert_eq!((map.mapped(), freed.len()), (0, 9));
        map.insert(run(1022, 3, 1)).unwrap();
        assert_eq!(map.get(PageIndex(1022)), Some(PhysPage(3)));
    }

    #[test]
    fn pages_that_are_alike_are_counted_over_chunks() {
        let mut map = PageMap::default();
        map.insert(run(1000, 7, 2000)).unwrap();
        assert_eq!(map.alike(PageIndex(0), 5000), (false, 1000));
        assert_eq!(map.alike(PageIndex(1000), 5000), (true, 2000));
        assert_eq!(map.alike(PageIndex(1500), 20), (true, 20));
        assert_eq!(map.alike(PageIndex(3000), 1 << 20), (false, 1 << 20));
    }

    #[test]
    fn a_clone_keeps_what_was_while_the_original_goes_on() {
        let mut map = PageMap::default();
        map.insert(run(0, 0, 4 * (TABLE * CHUNK) as u64)).unwrap();
        let mut snapshot = map.clone();
        let far = PageIndex((3 * TABLE * CHUNK) as u64);
        assert_eq!(map.remap(far, PhysPage(7)), Some(PhysPage(far.0)));
        assert_eq!(snapshot.get(far), Some(PhysPage(far.0)));
        assert_eq!(map.get(far), Some(PhysPage(7)));
        // What the snapshot has let go of belongs to the original alone.
        snapshot.let_go(5, TABLE + 3);
        assert_eq!(snapshot.get(PageIndex(0)), None);
        assert_eq!(map.get(PageIndex(0)), Some(PhysPage(0)));
        assert_eq!(snapshot.chunk_from(0).map(|(index, _)| index), Some(TABLE));
        assert!(
            map.tables[0]
                .as_ref()
                .is_some_and(|table| Rc::strong_count(table) == 1)
        );
    }

    #[test]
    fn only_what_is_mapped_is_mapped_elsewhere() {
        let mut map = PageMap::default();
        map.insert(run(0, 7, 1)).unwrap();
        assert_eq!(map.remap(PageIndex(1), PhysPage(8)), None);
        assert_eq!(map.remap(PageIndex(0), PhysPage(u64::MAX)), None);
        assert_eq!(map.remap(PageIndex(0), PhysPage(8)), Some(PhysPage(7)));
        assert_eq!(map.get(PageIndex(0)), Some(PhysPage(8)));
        assert_eq!(map.mapped(), 1);
    }
}
