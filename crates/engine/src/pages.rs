//! The free physical pages of a pool, zone by zone.
//!
//! Pages belong to zones, zones to groups. Groups take turns, a few pages at a time,
//! so that a volume is striped over all of them; inside a group pages are given out
//! in rising order from where the last one was, so that what is written in order lies
//! in long runs.

use crate::drives::PageNumbers;
use base::PhysPage;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};

/// Pages that one group gives before the next has its turn.
const TURN_PAGES: u64 = 4;

/// The pages of a zone.
#[derive(Debug)]
struct ZoneSpace {
    group: u16,
    /// The number of its first page.
    first: u64,
    pages: u64,
    free: u64,
    cursor: u64,
    /// One bit a page, set when used.
    used: Vec<u64>,
    /// Nothing is given out here: it is being emptied.
    avoided: bool,
}

/// The free pages of a pool, as far as its zones are in use.
#[derive(Debug)]
pub struct Space {
    numbers: PageNumbers,
    /// By number.
    zones: Vec<Option<ZoneSpace>>,
    /// Of each group, the zones that have free pages to give.
    open: BTreeMap<u16, BTreeSet<u32>>,
    /// Of each group, the zone that pages came from last.
    current: BTreeMap<u16, u32>,
    /// Given out, and not mapped yet.
    young: FxHashSet<PhysPage>,
    /// Those of them that were promised to their owner.
    drawn: FxHashSet<PhysPage>,
    turn: u16,
    left_of_turn: u64,
    pages: u64,
    free: u64,
    /// Counted, as a large pool has too many zones to add up whenever somebody takes a page.
    used: u64,
}

impl Space {
    /// No pages yet; those that come have these numbers.
    pub fn new(numbers: PageNumbers) -> Self {
        Space {
            numbers,
            zones: Vec::new(),
            open: BTreeMap::new(),
            current: BTreeMap::new(),
            young: FxHashSet::default(),
            drawn: FxHashSet::default(),
            turn: 0,
            left_of_turn: TURN_PAGES,
            pages: 0,
            free: 0,
            used: 0,
        }
    }

    /// Whether there are numbers for so many pages of a zone.
    pub fn has_numbers(&self, zone: u32, pages: u64) -> bool {
        self.first_number(zone, pages).is_some()
    }

    fn first_number(&self, zone: u32, pages: u64) -> Option<PhysPage> {
        let (first, most) = self.numbers.of_zone(zone)?;
        (pages <= most).then_some(first)
    }

    /// A zone with `pages` free pages.
    ///
    /// # Panics
    /// When it is there already, or there are no numbers for so many pages.
    pub fn add_zone(&mut self, zone: u32, group: u16, pages: u64) {
        let Some(first) = self.first_number(zone, pages) else {
            panic!("zone {zone} of {pages} pages has no numbers for them");
        };
        let space = ZoneSpace {
            group,
            first: first.0,
            pages,
            free: pages,
            cursor: 0,
            used: vec![0; pages.div_ceil(64) as usize],
            avoided: false,
        };
        let index = zone as usize;
        if self.zones.len() <= index {
            self.zones.resize_with(index + 1, || None);
        }
        let before = self.zones[index].replace(space);
        assert!(before.is_none(), "zone {zone} is there already");
        self.open.entry(group).or_default().insert(zone);
        self.pages += pages;
        self.free += pages;
    }

    /// Takes a zone away that has no page in use.
    ///
    /// # Panics
    /// When it has.
    pub fn remove_zone(&mut self, zone: u32) {
        let space = self.zones.get_mut(zone as usize).and_then(Option::take);
        let Some(space) = space else {
            panic!("zone {zone} is not there");
        };
        assert!(space.free == space.pages, "zone {zone} has pages in use");
        self.pages -= space.pages;
        if !space.avoided {
            self.free -= space.free;
        }
        if let Some(open) = self.open.get_mut(&space.group) {
            open.remove(&zone);
        }
    }

    /// Gives out nothing of this zone any more, or again.
    pub fn avoid(&mut self, zone: u32, avoided: bool) {
        let Some(space) = self.zones.get_mut(zone as usize).and_then(Option::as_mut) else {
            return;
        };
        if std::mem::replace(&mut space.avoided, avoided) == avoided {
            return;
        }
        let open = self.open.entry(space.group).or_default();
        match avoided {
            true => {
                self.free -= space.free;
                open.remove(&zone);
            }
            false => {
                self.free += space.free;
                // One without free pages would be asked for them again and again.
                if space.free > 0 {
                    open.insert(zone);
                }
            }
        }
    }

    /// Pages of all zones in use, free or not.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Pages that can be given out.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// Pages that are given out, mapped yet or not.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Pages that volumes have mapped.
    pub fn mapped(&self) -> u64 {
        self.used() - self.young.len() as u64
    }

    /// Free pages of a group's zones.
    pub fn free_of(&self, group: u16) -> u64 {
        let zones = self.open.get(&group).into_iter().flatten();
        zones
            .filter_map(|zone| self.zone(*zone))
            .map(|zone| zone.free)
            .sum()
    }

    /// Pages in use in a zone.
    pub fn used_in(&self, zone: u32) -> u64 {
        self.zone(zone).map_or(0, |space| space.pages - space.free)
    }

    /// Pages of a zone that can be given out.
    pub fn free_in(&self, zone: u32) -> u64 {
        let here = self.zones.get(zone as usize).and_then(Option::as_ref);
        here.filter(|space| !space.avoided)
            .map_or(0, |space| space.free)
    }

    /// Takes a free page; `None` when there is none.
    pub fn allocate(&mut self) -> Option<PhysPage> {
        self.allocate_run(1).map(|(page, _)| page)
    }

    /// Takes a run of consecutive free pages, `max` at most; `None` when there is
    /// none.
    pub fn allocate_run(&mut self, max: u64) -> Option<(PhysPage, u64)> {
        let group = self.next_group()?;
        let zone = self.next_zone(group)?;
        let space = self.zones.get_mut(zone as usize)?.as_mut()?;
        let first = space.next_free()?;
        let mut count = 0;
        while count < max.max(1) && first + count < space.pages && !space.is_used(first + count) {
            space.set_used(first + count, true);
            count += 1;
        }
        space.cursor = (first + count) % space.pages;
        self.left_of_turn = self.left_of_turn.saturating_sub(count);
        let first = space.first + first;
        self.free -= count;
        self.used += count;
        self.close_if_full(zone);
        self.young.extend((first..first + count).map(PhysPage));
        Some((PhysPage(first), count))
    }

    /// Pages of a run, at most, that leave each of so many groups its turn.
    pub fn run_pages(&self, groups: usize) -> u64 {
        match groups {
            0 | 1 => u64::MAX,
            _ => TURN_PAGES,
        }
    }

    /// A run of pages that were given out is mapped.
    pub fn settle(&mut self, first: PhysPage, count: u64) {
        for page in first.0..first.0 + count {
            self.young.remove(&PhysPage(page));
            self.drawn.remove(&PhysPage(page));
        }
    }

    /// A run of pages that were just given out was promised to whom they were given.
    pub fn draw(&mut self, first: PhysPage, count: u64) {
        self.drawn.extend((first.0..first.0 + count).map(PhysPage));
    }

    /// Pages given out and not mapped yet that were promised to their owners.
    pub fn drawn(&self) -> u64 {
        self.drawn.len() as u64
    }

    /// Whether a page was given out and is not mapped: what lies there may be of its
    /// owner, or still of one before.
    pub fn is_young(&self, page: PhysPage) -> bool {
        self.young.contains(&page)
    }

    /// The group whose turn it is, or the next that has something to give.
    fn next_group(&mut self) -> Option<u16> {
        let has = |group: &u16| self.open.get(group).is_some_and(|open| !open.is_empty());
        if self.left_of_turn > 0 && has(&self.turn) {
            return Some(self.turn);
        }
        let after = self.open.range(self.turn.saturating_add(1)..);
        let next = after
            .chain(self.open.range(..=self.turn))
            .map(|(group, _)| *group)
            .find(has)?;
        self.turn = next;
        self.left_of_turn = TURN_PAGES;
        Some(next)
    }

    fn next_zone(&mut self, group: u16) -> Option<u32> {
        let open = self.open.get(&group)?;
        if let Some(current) = self.current.get(&group).filter(|zone| open.contains(zone)) {
            return Some(*current);
        }
        let next = *open.first()?;
        self.current.insert(group, next);
        Some(next)
    }

    fn zone(&self, zone: u32) -> Option<&ZoneSpace> {
        self.zones.get(zone as usize)?.as_ref()
    }

    fn find(&self, page: PhysPage) -> Option<(u32, u64)> {
        let (zone, inside) = self.numbers.place(page)?;
        (inside < self.zone(zone)?.pages).then_some((zone, inside))
    }

    /// Whether a page is in use; one that is not there is not.
    pub fn is_used(&self, page: PhysPage) -> bool {
        self.find(page)
            .and_then(|(zone, inside)| Some(self.zone(zone)?.is_used(inside)))
            .unwrap_or(false)
    }

    /// Marks a page as used; false when it is used already or not there.
    pub fn claim(&mut self, page: PhysPage) -> bool {
        let Some((zone, inside)) = self.find(page) else {
            return false;
        };
        let space = self.zones.get_mut(zone as usize).and_then(Option::as_mut);
        let Some(space) = space.filter(|space| !space.is_used(inside)) else {
            return false;
        };
        space.set_used(inside, true);
        self.used += 1;
        if !space.avoided {
            self.free -= 1;
        }
        self.close_if_full(zone);
        true
    }

    /// The number behind those of all pages of zones in use.
    pub fn numbers_end(&self) -> u64 {
        let ends = self
            .zones
            .iter()
            .flatten()
            .map(|zone| zone.first + zone.pages);
        ends.max().unwrap_or(0)
    }

    /// Marks pages as used, all of which are free, and none of whose zones is avoided: those whose bits
    /// are set in `claimed`, a bit for each number from 0 on. Their bits are cleared. Returns how many
    /// they were.
    pub fn take_claimed(&mut self, claimed: &mut [u64]) -> u64 {
        let mut taken = 0;
        for zone in 0..self.zones.len() as u32 {
            let Some(space) = self.zones[zone as usize].as_mut() else {
                continue;
            };
            let before = space.free;
            for (word, at) in space.used.iter_mut().zip((0..space.pages).step_by(64)) {
                *word = take_bits(claimed, space.first + at, (space.pages - at).min(64));
                space.free -= u64::from(word.count_ones());
            }
            taken += before - space.free;
            self.close_if_full(zone);
        }
        self.free -= taken;
        self.used += taken;
        taken
    }

    /// A zone without a free page has none to give.
    fn close_if_full(&mut self, zone: u32) {
        if let Some(space) = self.zones.get(zone as usize).and_then(Option::as_ref)
            && space.free == 0
            && let Some(open) = self.open.get_mut(&space.group)
        {
            open.remove(&zone);
        }
    }

    /// Gives a page back.
    ///
    /// # Panics
    /// When it is free already: two owners would come of it.
    pub fn release(&mut self, page: PhysPage) {
        let used = self.is_used(page);
        let Some((zone, inside)) = self.find(page).filter(|_| used) else {
            panic!("page {page} is freed twice");
        };
        self.young.remove(&page);
        self.drawn.remove(&page);
        if let Some(space) = self.zones.get_mut(zone as usize).and_then(Option::as_mut) {
            space.set_used(inside, false);
            self.used -= 1;
            if !space.avoided {
                self.free += 1;
                self.open.entry(space.group).or_default().insert(zone);
            }
        }
    }
}

impl ZoneSpace {
    fn is_used(&self, page: u64) -> bool {
        self.used[(page / 64) as usize] >> (page % 64) & 1 == 1
    }

    fn set_used(&mut self, page: u64, used: bool) {
        let word = &mut self.used[(page / 64) as usize];
        match used {
            true => {
                *word |= 1 << (page % 64);
                self.free -= 1;
            }
            false => {
                *word &= !(1 << (page % 64));
                self.free += 1;
            }
        }
    }

    /// The first free page from the cursor on, and round.
    fn next_free(&self) -> Option<u64> {
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
                return Some(page);
            }
        }
        unreachable!("{} pages are free and none was found", self.free)
    }
}

/// Takes `len` bits out of `words`, 64 at most, from bit `at` on.
fn take_bits(words: &mut [u64], at: u64, len: u64) -> u64 {
    let (word, shift) = ((at / 64) as usize, at % 64);
    let mask = u64::MAX >> (64 - len);
    let mut bits = words[word] >> shift & mask;
    words[word] &= !(mask << shift);
    if shift + len > 64 {
        let above = 64 - shift;
        bits |= words[word + 1] << above & mask;
        words[word + 1] &= !(mask >> above);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(space: &mut Space) -> Vec<u64> {
        std::iter::from_fn(|| space.allocate())
            .map(|page| page.0)
            .collect()
    }

    #[test]
    fn pages_are_young_until_they_are_mapped_or_given_back() {
        let mut space = Space::new(PageNumbers::even(8));
        space.add_zone(1, 0, 8);
        assert_eq!(space.allocate_run(3), Some((PhysPage(8), 3)));
        assert!((8..11).all(|page| space.is_young(PhysPage(page))));
        assert_eq!((space.used(), space.mapped()), (3, 0));
        space.settle(PhysPage(8), 2);
        space.release(PhysPage(10));
        assert!((8..16).all(|page| !space.is_young(PhysPage(page))));
        assert!(space.is_used(PhysPage(9)) && !space.is_used(PhysPage(10)));
        // What the maps say at an opening is mapped.
        assert!(space.claim(PhysPage(10)) && !space.is_young(PhysPage(10)));
    }

    #[test]
    fn used_pages_are_those_of_all_zones() {
        let mut space = Space::new(PageNumbers::even(70));
        let mut prng = base::Prng::from_seed(5);
        for zone in 0..4 {
            space.add_zone(zone, zone as u16 % 2, 70);
        }
        for _ in 0..3000 {
            let zone = prng.below(4) as u32;
            let page = PhysPage(prng.below(4 * 70));
            match prng.below(5) {
                0 => space.avoid(zone, prng.chance(1, 2)),
                1 => drop(space.allocate_run(prng.between(1, 9))),
                2 => _ = space.claim(page),
                3 if space.used_in(zone) == 0 => {
                    space.remove_zone(zone);
                    space.add_zone(zone, zone as u16 % 2, 70);
                }
                _ if space.is_used(page) => space.release(page),
                _ => {}
            }
            let zones: u64 = (0..4).map(|zone| space.used_in(zone)).sum();
            assert_eq!(space.used(), zones);
        }
    }

    #[test]
    fn every_page_is_given_out_once_in_order_and_again_when_freed() {
        for pages in [1, 63, 64, 65, 130] {
            let mut space = Space::new(PageNumbers::even(200));
            space.add_zone(1, 0, pages);
            assert_eq!(all(&mut space), (200..200 + pages).collect::<Vec<_>>());
            assert_eq!(space.free(), 0);
            for page in [200, 200 + pages / 2] {
                space.release(PhysPage(page));
                assert_eq!(space.allocate(), Some(PhysPage(page)), "of {pages}");
            }
        }
    }

    #[test]
    fn groups_take_turns_and_one_goes_on_when_the_other_is_full() {
        let mut space = Space::new(PageNumbers::even(100));
        space.add_zone(0, 0, 6);
        space.add_zone(5, 1, 100);
        let given = all(&mut space);
        assert_eq!(given.len(), 106);
        let expected = [0, 1, 2, 3, 500, 501, 502, 503, 4, 5, 504];
        assert_eq!(given[..11], expected);
        assert_eq!(space.free_of(1), 0);
    }

    #[test]
    fn runs_are_consecutive_and_end_at_what_is_used() {
        let mut space = Space::new(PageNumbers::even(100));
        space.add_zone(0, 0, 10);
        assert!(space.claim(PhysPage(4)));
        assert!(!space.claim(PhysPage(4)));
        assert!(!space.claim(PhysPage(10)));
        assert_eq!(space.allocate_run(8), Some((PhysPage(0), 4)));
        assert_eq!(space.allocate_run(3), Some((PhysPage(5), 3)));
        assert_eq!(space.allocate_run(3), Some((PhysPage(8), 2)));
        assert_eq!(space.allocate_run(1), None);
        assert_eq!(space.used_in(0), 10);
    }

    /// A zone that fills its numbers, and one behind that does not.
    fn two_zones(numbers: u32) -> Space {
        let mut space = Space::new(PageNumbers::even(numbers));
        space.add_zone(0, 0, u64::from(numbers));
        space.add_zone(2, 1, 130);
        space
    }

    #[test]
    fn pages_are_claimed_all_at_once_as_one_by_one() {
        let mut prng = base::Prng::from_seed(4);
        for numbers in [192, 200, 131].into_iter().cycle().take(300) {
            let (mut whole, mut single) = (two_zones(numbers), two_zones(numbers));
            let mut claimed = vec![0; whole.numbers_end().div_ceil(64) as usize];
            let mut taken = 0;
            for _ in 0..prng.below(1 + u64::from(numbers)) {
                let page = prng.below(whole.numbers_end());
                claimed[(page / 64) as usize] |= 1 << (page % 64);
                taken += u64::from(single.claim(PhysPage(page)));
            }
            assert_eq!(whole.take_claimed(&mut claimed), taken);
            let in_zones = (0..whole.numbers_end()).map(PhysPage);
            let in_zones = in_zones.filter(|page| whole.find(*page).is_some());
            let left = |page: PhysPage| claimed[(page.0 / 64) as usize] >> (page.0 % 64) & 1;
            assert_eq!(
                in_zones.map(left).sum::<u64>(),
                0,
                "taken out of what was claimed"
            );
            for zone in [0, 2] {
                assert_eq!(whole.used_in(zone), single.used_in(zone));
            }
            assert_eq!(whole.free(), single.free());
            assert_eq!(all(&mut whole), all(&mut single));
        }
    }

    #[test]
    fn an_avoided_zone_gives_nothing_until_it_is_taken_away() {
        let mut space = Space::new(PageNumbers::even(100));
        space.add_zone(0, 0, 4);
        space.add_zone(1, 0, 4);
        let page = space.allocate().unwrap();
        space.avoid(0, true);
        assert_eq!(space.free(), 4);
        assert_eq!(all(&mut space), [100, 101, 102, 103]);
        space.release(page);
        assert_eq!(space.allocate(), None);
        space.remove_zone(0);
        assert_eq!((space.pages(), space.free()), (4, 0));
        assert!(!space.is_used(page));
    }

    #[test]
    fn a_full_zone_that_was_avoided_does_not_stand_before_others() {
        let mut space = Space::new(PageNumbers::even(100));
        space.add_zone(0, 0, 2);
        assert_eq!(all(&mut space), [0, 1]);
        space.avoid(0, true);
        space.avoid(0, false);
        space.add_zone(1, 0, 2);
        assert_eq!(all(&mut space), [100, 101]);
        space.release(PhysPage(1));
        assert_eq!(all(&mut space), [1]);
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn a_page_is_never_freed_twice() {
        let mut space = Space::new(PageNumbers::even(3));
        space.add_zone(0, 0, 3);
        space.claim(PhysPage(1));
        space.release(PhysPage(1));
        space.release(PhysPage(1));
    }
}
