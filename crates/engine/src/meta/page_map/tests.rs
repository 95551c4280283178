//! Tests of maps: they hold the entries that were put in, and pages as long as any owner has them.

use super::*;
use crate::meta::refs::Owned;
use base::Prng;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

fn run(page: u64, phys: u64, count: u64) -> MapRun {
    let (page, phys) = (PageIndex(page), PhysPage(phys));
    MapRun { page, phys, count }
}

fn runs(map: &PageMap) -> Vec<MapRun> {
    map.runs().collect()
}

fn map_of(runs: &[MapRun]) -> PageMap {
    map_and_refs(runs).0
}

fn map_and_refs(runs: &[MapRun]) -> (PageMap, Refs) {
    let (mut map, mut refs) = <(PageMap, Refs)>::default();
    for run in runs {
        map.insert(*run, &mut refs).unwrap();
    }
    (map, refs)
}

#[test]
fn pages_are_found_again_and_run_together() {
    let pages = [(0, 7), (1, 8), (3, 9), (5000, 1), (5001, 0)];
    let map = map_of(&pages.map(|(page, phys)| run(page, phys, 1)));
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
    let first = (TABLE * CHUNK) as u64 - 1500;
    let mut map = map_of(&[run(first, 40, 3000)]);
    assert!(
        map.iter()
            .eq((0..3000).map(|i| (PageIndex(first + i), PhysPage(40 + i))))
    );
    let refs = &mut Refs::default();
    let taken = |page| Err(PageIndex(page));
    assert_eq!(
        map.insert(run(first + 2999, 9, 1), refs),
        taken(first + 2999)
    );
    assert_eq!(map.insert(run(first - 5, 9, 6), refs), taken(first));
    assert_eq!(map.get(PageIndex(first - 5)), None);
    assert_eq!(map.mapped(), 3000);
}

#[test]
fn the_last_place_of_the_format_ends_a_run() {
    let last = u64::from(UNMAPPED) - 1;
    let mut map = map_of(&[run(3, last, 1)]);
    let refs = &mut Refs::default();
    assert_eq!(runs(&map), [run(3, last, 1)]);
    assert_eq!(map.insert(run(7, last, 2), refs), Err(PageIndex(7)));
    assert_eq!(map.insert(run(7, u64::MAX, 2), refs), Err(PageIndex(7)));
}

#[test]
fn a_table_leaves_out_what_is_not_mapped() {
    let mut map = map_of(&[run(254, 5, 1)]);
    let refs = &mut Refs::default();
    let table = [9, UNMAPPED, 3, 2, UNMAPPED, 1];
    map.insert_table(PageIndex(253), table.into_iter(), refs)
        .unwrap();
    let pages: Vec<_> = map.iter().map(|(page, phys)| (page.0, phys.0)).collect();
    assert_eq!(pages, [(253, 9), (254, 5), (255, 3), (256, 2), (258, 1)]);
    assert_eq!(map.mapped(), 5);
    let again = map.insert_table(PageIndex(257), [8, 8].into_iter(), refs);
    assert_eq!(again, Err(PageIndex(258)));
    assert_eq!(map.get(PageIndex(257)), None);
}

#[test]
fn a_reader_keeps_what_was_and_holds_no_pages() {
    let mut map = map_of(&[run(0, 0, 4 * (TABLE * CHUNK) as u64)]);
    let (refs, freed) = (&mut Refs::default(), &mut Vec::new());
    let mut reader = map.view();
    let far = PageIndex((3 * TABLE * CHUNK) as u64);
    assert!(map.remap(far, PhysPage(1 << 30), refs, freed));
    assert_eq!(reader.get(far), Some(PhysPage(far.0)));
    assert_eq!(map.get(far), Some(PhysPage(1 << 30)));
    assert_eq!(
        (freed.as_slice(), refs.shared()),
        (&[PhysPage(far.0)][..], 0)
    );
    reader.let_go(5, TABLE + 3);
    assert_eq!(reader.get(PageIndex(0)), None);
    assert_eq!(map.get(PageIndex(0)), Some(PhysPage(0)));
    assert_eq!(reader.chunk_from(0).map(|(index, _)| index), Some(TABLE));
}

#[test]
fn only_what_is_mapped_is_mapped_elsewhere() {
    let mut map = map_of(&[run(0, 7, 1)]);
    let (refs, freed) = (&mut Refs::default(), &mut Vec::new());
    assert!(!map.remap(PageIndex(1), PhysPage(8), refs, freed));
    assert!(!map.remap(PageIndex(0), PhysPage(u64::MAX), refs, freed));
    assert!(map.remap(PageIndex(0), PhysPage(8), refs, freed));
    assert_eq!(map.get(PageIndex(0)), Some(PhysPage(8)));
    assert_eq!((map.mapped(), freed.as_slice()), (1, &[PhysPage(7)][..]));
}

#[test]
fn what_is_removed_is_given_back_and_the_rest_stays() {
    let (mut map, mut refs) = map_and_refs(&[run(252, 50, 8), run(5000, 1, 1)]);
    let (refs, freed) = (&mut refs, &mut Vec::new());
    map.remove(PageIndex(254), 4000, refs, freed);
    assert_eq!(*freed, (52..58).map(PhysPage).collect::<Vec<_>>());
    assert_eq!(runs(&map), [run(252, 50, 2), run(5000, 1, 1)]);
    assert_eq!(map.mapped(), 3);
    // The chunk that has nothing any more is gone, also for who goes over them.
    assert_eq!(map.chunk_from(1).map(|(index, _)| index), Some(19));
    map.remove(PageIndex(1), u64::MAX - 1, refs, freed);
    assert_eq!((map.mapped(), freed.len()), (0, 9));
    map.insert(run(254, 3, 1), refs).unwrap();
    assert_eq!(map.get(PageIndex(254)), Some(PhysPage(3)));
}

#[test]
fn pages_that_are_alike_are_counted_over_chunks() {
    let map = map_of(&[run(1000, 7, 2000)]);
    assert_eq!(map.alike(PageIndex(0), 5000), (false, 1000));
    assert_eq!(map.alike(PageIndex(1000), 5000), (true, 2000));
    assert_eq!(map.alike(PageIndex(1500), 20), (true, 20));
    assert_eq!(map.alike(PageIndex(3000), 1 << 20), (false, 1 << 20));
}

#[test]
fn chunks_that_are_shared_one_by_one_are_as_if_the_map_were() {
    let end = (2 * TABLE * CHUNK) as u64;
    let first = map_of(&[run(100, 1, end - 300)]);
    let mut second = PageMap::default();
    assert!(second.share_chunks(&first, 3, TABLE + 9, &mut Refs::default()));
    assert_eq!(second.mapped(), (TABLE + 6) as u64 * CHUNK as u64);
    assert!(second.is_shared(3) && first.is_shared(TABLE + 8));
    assert!(!first.is_shared(2) && !first.is_shared(TABLE + 9));
    assert!(!second.share_chunks(&first, TABLE + 8, TABLE + 12, &mut Refs::default()));
    let mut whole = PageMap::default();
    assert!(whole.share_chunks(&first, 0, 2 * TABLE, &mut Refs::default()));
    assert_eq!(runs(&whole), runs(&first));
}

/// Maps, what should be in them, and readers with what they should see.
#[derive(Default)]
struct Model {
    refs: Refs,
    maps: Vec<(PageMap, BTreeMap<u64, u64>)>,
    readers: Vec<(Tree, BTreeMap<u64, u64>)>,
    next_phys: u64,
    held: BTreeSet<u64>,
}

impl Model {
    /// Does to one of the maps what `draw` says; what must be free after it.
    fn step(&mut self, prng: &mut Prng) -> Vec<PhysPage> {
        let at = prng.below(self.maps.len() as u64) as usize;
        let page = match prng.chance(1, 2) {
            true => prng.below(600),
            false => prng.below(4) * (TABLE * CHUNK) as u64 + prng.below(300),
        };
        let count = prng.between(1, 300);
        let mut freed = Vec::new();
        let draw = prng.below(11);
        if draw >= 9 {
            let from = prng.below(self.maps.len() as u64) as usize;
            self.copy((from, at), page, prng, &mut freed);
            return freed;
        }
        let (refs, maps) = (&mut self.refs, self.maps.len());
        let (map, model) = &mut self.maps[at];
        match draw {
            8 => {
                let mut rest = map.cut(PageIndex(page), refs, &mut freed);
                while rest.give_up_some(refs, &mut freed) {}
                model.retain(|at, _| *at < page);
            }
            0 if maps < 8 => {
                let shared = (map.share(refs), model.clone());
                self.maps.push(shared);
            }
            1 if maps > 1 => {
                let (mut map, _) = self.maps.swap_remove(at);
                while map.give_up_some(refs, &mut freed) {}
            }
            2 => {
                map.remove(PageIndex(page), count, refs, &mut freed);
                model.retain(|at, _| !(page..page + count).contains(at));
            }
            3 => self.readers.push((map.view(), model.clone())),
            4 => drop(self.readers.pop()),
            _ => {
                for page in page..page + count.min(20) {
                    let phys = self.next_phys;
                    self.next_phys += 1;
                    self.held.insert(phys);
                    match model.insert(page, phys) {
                        Some(_) => {
                            assert!(map.remap(PageIndex(page), PhysPage(phys), refs, &mut freed))
                        }
                        None => map.insert(run(page, phys, 1), refs).unwrap(),
                    }
                }
            }
        }
        freed
    }

    /// Copies pages of one map over others of a map, by whole chunks now and then.
    fn copy(
        &mut self,
        (from, to): (usize, usize),
        page: u64,
        prng: &mut Prng,
        freed: &mut Vec<PhysPage>,
    ) {
        let whole = |page: u64| page / CHUNK as u64 * CHUNK as u64;
        let (there, count) = (prng.below(700), prng.between(1, 700));
        let (there, page) = match prng.chance(1, 2) {
            true => (whole(there), whole(page)),
            false => (there, page),
        };
        for (there, here, len) in parts_of_copy(PageIndex(there), PageIndex(page), count as usize) {
            let taken = self.maps[from].0.taken(there, len);
            let map = &mut self.maps[to].0;
            map.put(here, &taken, &mut self.refs, freed);
        }
        let range = there..there + count;
        let copied = self.maps[from]
            .1
            .range(range)
            .map(|(at, phys)| (*at, *phys));
        let copied: Vec<_> = copied.collect();
        let model = &mut self.maps[to].1;
        model.retain(|at, _| !(page..page + count).contains(at));
        model.extend(
            copied
                .into_iter()
                .map(|(at, phys)| (at - there + page, phys)),
        );
    }

    fn check(&mut self, freed: Vec<PhysPage>) {
        let mut holders: BTreeMap<u64, u64> = BTreeMap::new();
        let mut chunks: BTreeMap<*const Chunk, u64> = BTreeMap::new();
        let mut tables: BTreeSet<*const Table> = BTreeSet::new();
        let (mut owned, mut places) = (Owned::default(), 0);
        for (map, model) in &self.maps {
            for table in map.tables() {
                match tables.insert(Rc::as_ptr(table)) {
                    true => places += table.places(),
                    false => owned.sharers += 1,
                }
            }
            assert!(
                map.iter()
                    .map(|(page, phys)| (page.0, phys.0))
                    .eq(model.clone())
            );
            assert_eq!(map.mapped(), model.len() as u64);
            let mut next = 0;
            while let Some((index, chunk)) = map.chunk_from(next) {
                next = index + 1;
                let pages = chunk.pages().count() as u64;
                if chunks.insert(Rc::as_ptr(chunk), pages).is_some() {
                    continue;
                }
                for phys in chunk.pages() {
                    *holders.entry(phys.0).or_default() += 1;
                }
            }
        }
        owned.sharers += places - chunks.len() as u64;
        let pages = chunks.values().map(|pages| *pages as usize);
        owned.chunk_bytes = pages.map(chunk_bytes).sum();
        assert_eq!(self.refs.owned, owned);
        for (reader, model) in &self.readers {
            let seen = |page: &u64| reader.get(PageIndex(*page)).map(|phys| phys.0);
            assert!(model.iter().all(|(page, phys)| seen(page) == Some(*phys)));
        }
        for page in freed {
            assert!(self.held.remove(&page.0), "page {page} was freed twice");
        }
        assert!(
            holders.keys().eq(self.held.iter()),
            "what is held is what is in maps"
        );
        for (phys, entries) in holders {
            let beyond = self.refs.beyond_first(PhysPage(phys));
            assert_eq!(u64::from(beyond) + 1, entries, "page {phys}");
        }
    }
}

#[test]
fn pages_are_free_when_the_last_map_lets_go_and_no_earlier() {
    for seed in 0..40 {
        let mut prng = Prng::from_seed(seed);
        let mut model = Model {
            maps: vec![Default::default()],
            ..Model::default()
        };
        for _ in 0..120 {
            let freed = model.step(&mut prng);
            model.check(freed);
        }
    }
}
