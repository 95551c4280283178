//! Data blocks in RAM, for reads: S3-FIFO (Yang et al., "FIFO queues are all you need
//! for cache eviction", SOSP 2023).
//!
//! A block comes into a small queue first; only one that is asked for again while it
//! is there goes on to the main queue. What passes once, as a scan does, never gets
//! further. A list of names of blocks that left the small queue lets one that comes
//! back go straight to the main queue.
//!
//! What is read ahead of a sequential reader ([`Fills`]) comes into the small queue, and
//! the first read of it counts for nothing: so it passes as a scan does, too. What leaves unread is not
//! on the list: else readers that are short of room would fill the main queue with what passes once.
//!
//! Invariants: what is here is what the block holds; whoever changes a block
//! invalidates it. Memory stays under the capacity, overhead counted.

mod fills;
mod readers;

pub use fills::{Filling, Fills};
pub(crate) use readers::{Allowed, Readers};

use base::{BLOCK_BYTES, Slice};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;

/// Memory of a resident block: its data, and about what tables and queues take.
const ENTRY_BYTES: u64 = BLOCK_BYTES as u64 + 160;

/// The small queue has at least one in so many blocks.
const SMALL_PARTS: u64 = 10;

/// Times that a block must be asked for again to have another round.
const USES_MAX: u8 = 3;

/// Counters since the opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Blocks that were asked for and found.
    pub hits: u64,
    /// Blocks asked for and not found.
    pub misses: u64,
    /// Blocks that entered the cache, for readers or ahead of them.
    pub inserted: u64,
    /// Blocks sent out for others.
    pub evicted: u64,
    /// Bytes taken in before they were asked for.
    pub ahead_bytes: u64,
    /// Bytes of these that were asked for, then.
    pub ahead_used_bytes: u64,
    /// Memory that its blocks take now, bytes.
    pub resident_bytes: u64,
    /// Memory that it may use.
    pub capacity_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Small,
    Main,
}

struct Entry {
    data: Slice,
    uses: Cell<u8>,
    queue: Queue,
    /// Taken in before it was asked for, and not asked for since.
    is_ahead: Cell<bool>,
    /// Tells it from an earlier one of the same block that still has a place in a
    /// queue.
    ticket: u64,
}

#[derive(Default)]
struct Tables {
    entries: FxHashMap<u64, Entry>,
    small: VecDeque<(u64, u64)>,
    main: VecDeque<(u64, u64)>,
    small_blocks: u64,
    ghosts: VecDeque<u64>,
    ghost_names: FxHashMap<u64, ()>,
    tickets: u64,
}

/// The read cache of a pool, or of a lane of it.
pub struct ReadCache {
    capacity_blocks: Cell<u64>,
    tables: RefCell<Tables>,
    stats: RefCell<CacheStats>,
    fills: Fills,
    readers: Readers,
}

impl ReadCache {
    /// A cache of about `capacity_bytes`; 0 is none.
    pub fn new(capacity_bytes: u64) -> Self {
        let cache = ReadCache {
            capacity_blocks: Cell::new(0),
            tables: RefCell::default(),
            stats: RefCell::default(),
            fills: Fills::default(),
            readers: Readers::default(),
        };
        cache.set_capacity(capacity_bytes);
        cache
    }

    /// Changes how much it may use.
    pub fn set_capacity(&self, capacity_bytes: u64) {
        self.capacity_blocks.set(capacity_bytes / ENTRY_BYTES);
        self.stats.borrow_mut().capacity_bytes = capacity_bytes;
        self.make_room(0);
    }

    /// Memory that it may use.
    pub fn capacity_bytes(&self) -> u64 {
        self.stats.borrow().capacity_bytes
    }

    /// What is on its way here.
    pub fn fills(&self) -> &Fills {
        &self.fills
    }

    /// The sequential readers of what is here.
    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }

    /// Bytes that readers may have ahead of them, together: three quarters of what new blocks may take,
    /// so that they are there still when they are wanted.
    pub fn ahead_bytes_max(&self) -> u64 {
        let capacity = self.capacity_blocks.get();
        let tables = self.tables.borrow();
        let main = tables.entries.len() as u64 - tables.small_blocks;
        let small = (capacity - main.min(capacity)).max(capacity / SMALL_PARTS);
        small * 3 / 4 * BLOCK_BYTES as u64
    }

    /// Whether a block is here. Nobody asked for it: it is not counted.
    pub fn contains(&self, block: u64) -> bool {
        self.tables.borrow().entries.contains_key(&block)
    }

    /// Whether there is any.
    pub fn is_on(&self) -> bool {
        self.capacity_blocks.get() > 0
    }

    /// What a block holds, if it is here.
    pub fn get(&self, block: u64) -> Option<Slice> {
        if !self.is_on() {
            return None;
        }
        let tables = self.tables.borrow();
        let mut stats = self.stats.borrow_mut();
        let Some(entry) = tables.entries.get(&block) else {
            stats.misses += 1;
            return None;
        };
        stats.hits += 1;
        match entry.is_ahead.replace(false) {
            // As if it came in only now.
            true => stats.ahead_used_bytes += BLOCK_BYTES as u64,
            false => entry.uses.set((entry.uses.get() + 1).min(USES_MAX)),
        }
        Some(entry.data.clone())
    }

    /// So many blocks were asked for that are not here; whoever looked found that without a count.
    pub fn count_missed(&self, blocks: u64) {
        if self.is_on() {
            self.stats.borrow_mut().misses += blocks;
        }
    }

    /// Takes in what a block holds, before it is asked for.
    pub fn insert_ahead(&self, block: u64, data: Slice) {
        self.take_in(block, data, true);
    }

    /// Takes in what a block holds.
    pub fn insert(&self, block: u64, data: Slice) {
        self.take_in(block, data, false);
    }

    fn take_in(&self, block: u64, data: Slice, is_ahead: bool) {
        if !self.is_on() {
            return;
        }
        let mut tables = self.tables.borrow_mut();
        if tables.entries.contains_key(&block) {
            return;
        }
        drop(tables);
        self.make_room(1);
        tables = self.tables.borrow_mut();
        // One that was here not long ago goes on to the main queue: at once, or, read
        // ahead, when it has been asked for.
        let was_here = tables.ghost_names.remove(&block).is_some();
        let queue = match was_here && !is_ahead {
            true => Queue::Main,
            false => Queue::Small,
        };
        tables.forget_the_gone(self.capacity_blocks.get());
        tables.tickets += 1;
        let ticket = tables.tickets;
        match queue {
            Queue::Small => {
                tables.small_blocks += 1;
                tables.small.push_back((block, ticket));
            }
            Queue::Main => tables.main.push_back((block, ticket)),
        }
        let uses = Cell::new(0);
        tables.entries.insert(
            block,
            Entry {
                data,
                uses,
                queue,
                is_ahead: Cell::new(is_ahead && !was_here),
                ticket,
            },
        );
        let mut stats = self.stats.borrow_mut();
        stats.inserted += 1;
        stats.ahead_bytes += if is_ahead { BLOCK_BYTES as u64 } else { 0 };
    }

    /// These blocks hold something else now.
    pub fn invalidate(&self, blocks: Range<u64>) {
        self.fills.change(&blocks);
        let mut tables = self.tables.borrow_mut();
        if tables.entries.is_empty() {
            return;
        }
        if blocks.end - blocks.start > tables.entries.len() as u64 {
            // A whole zone: what is here is less than what it spans.
            let here = tables.entries.keys().copied();
            let concerned: Vec<u64> = here.filter(|block| blocks.contains(block)).collect();
            concerned.into_iter().for_each(|block| tables.remove(block));
            return;
        }
        for block in blocks {
            tables.remove(block);
        }
    }

    /// Its counters since the opening.
    pub fn stats(&self) -> CacheStats {
        CacheStats {
            resident_bytes: self.tables.borrow().entries.len() as u64 * ENTRY_BYTES,
            ..*self.stats.borrow()
        }
    }

    fn make_room(&self, blocks: u64) {
        let capacity = self.capacity_blocks.get();
        let mut tables = self.tables.borrow_mut();
        while tables.entries.len() as u64 + blocks > capacity && !tables.entries.is_empty() {
            let from_small = tables.small_blocks > capacity / SMALL_PARTS || tables.main.is_empty();
            let sent = match from_small {
                true => tables.leave_small(capacity),
                false => tables.leave_main(),
            };
            self.stats.borrow_mut().evicted += u64::from(sent);
        }
    }
}

impl Tables {
    fn remove(&mut self, block: u64) {
        if let Some(entry) = self.entries.remove(&block)
            && entry.queue == Queue::Small
        {
            self.small_blocks -= 1;
        }
    }

    /// Blocks that were invalidated leave their places in the queues behind: not too
    /// many of them.
    fn forget_the_gone(&mut self, capacity: u64) {
        if ((self.small.len() + self.main.len()) as u64) < 2 * capacity + 16 {
            return;
        }
        let Tables {
            entries,
            small,
            main,
            ..
        } = self;
        let is_there = |(block, ticket): &(u64, u64)| {
            entries
                .get(block)
                .is_some_and(|entry| entry.ticket == *ticket)
        };
        small.retain(is_there);
        main.retain(is_there);
    }

    /// The oldest of the small queue goes: out, or on to the main queue. Whether one
    /// went out.
    fn leave_small(&mut self, capacity: u64) -> bool {
        let Some((block, ticket)) = self.small.pop_front() else {
            return self.leave_main();
        };
        let Some(entry) = self
            .entries
            .get_mut(&block)
            .filter(|entry| entry.ticket == ticket)
        else {
            return false;
        };
        if entry.uses.get() > 0 {
            entry.uses.set(0);
            entry.queue = Queue::Main;
            self.small_blocks -= 1;
            self.main.push_back((block, ticket));
            return false;
        }
        let was_asked_for = !entry.is_ahead.get();
        self.remove(block);
        if was_asked_for {
            self.ghosts.push_back(block);
            self.ghost_names.insert(block, ());
        }
        while self.ghosts.len() as u64 > capacity {
            if let Some(oldest) = self.ghosts.pop_front() {
                self.ghost_names.remove(&oldest);
            }
        }
        true
    }

    /// The oldest of the main queue goes out, or has another round. Whether one went
    /// out.
    fn leave_main(&mut self) -> bool {
        let Some((block, ticket)) = self.main.pop_front() else {
            return false;
        };
        let Some(entry) = self
            .entries
            .get_mut(&block)
            .filter(|entry| entry.ticket == ticket)
        else {
            return false;
        };
        if entry.uses.get() > 0 {
            entry.uses.set(entry.uses.get() - 1);
            self.main.push_back((block, ticket));
            return false;
        }
        self.remove(block);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{BufPool, Prng};

    fn block(pool: &BufPool, value: u64) -> Slice {
        pool.copy_of(&[value as u8; BLOCK_BYTES]).freeze()
    }

    #[test]
    fn what_is_put_in_comes_out_until_it_is_invalidated() {
        let (pool, cache) = (BufPool::new(), ReadCache::new(100 * ENTRY_BYTES));
        assert!(cache.get(7).is_none());
        cache.insert(7, block(&pool, 1));
        assert_eq!(cache.get(7).unwrap().bytes().unwrap()[0], 1);
        cache.invalidate(0..100);
        assert!(cache.get(7).is_none());
        cache.insert(7, block(&pool, 2));
        assert_eq!(cache.get(7).unwrap().bytes().unwrap()[0], 2);
        let stats = cache.stats();
        assert_eq!((stats.hits, stats.misses, stats.inserted), (2, 2, 2));
    }

    #[test]
    fn a_hot_set_survives_a_scan_ten_times_the_cache() {
        let (pool, cache) = (BufPool::new(), ReadCache::new(1000 * ENTRY_BYTES));
        let look = |number: u64| match cache.get(number) {
            Some(_) => true,
            None => {
                cache.insert(number, block(&pool, number));
                false
            }
        };
        for _ in 0..5 {
            (0..500).for_each(|number| {
                look(number);
            });
        }
        (10_000..20_000).for_each(|number| {
            look(number);
        });
        let kept = (0..500).filter(|number| look(*number)).count();
        assert!(kept >= 490, "{kept} of 500 are left");
    }

    #[test]
    fn what_is_read_ahead_passes_as_a_scan_does() {
        let (pool, cache) = (BufPool::new(), ReadCache::new(1000 * ENTRY_BYTES));
        (0..500).for_each(|number| cache.insert(number, block(&pool, number)));
        (0..500).for_each(|number| drop(cache.get(number)));
        for number in 10_000..20_000 {
            cache.insert_ahead(number, block(&pool, number));
            assert!(cache.contains(number) && cache.get(number).is_some());
        }
        let kept = (0..500).filter(|number| cache.contains(*number)).count();
        assert!(kept >= 490, "{kept} of 500 are left");
        let stats = cache.stats();
        let bytes = 10_000 * BLOCK_BYTES as u64;
        assert_eq!((stats.ahead_bytes, stats.ahead_used_bytes), (bytes, bytes));
        assert_eq!((stats.hits, stats.misses), (10_500, 0));
    }

    #[test]
    fn what_was_read_ahead_and_left_unread_takes_no_room_of_the_main_queue() {
        let (pool, cache) = (BufPool::new(), ReadCache::new(100 * ENTRY_BYTES));
        for first in (0..4_000).step_by(200) {
            (first..first + 200).for_each(|at| cache.insert_ahead(at, block(&pool, at)));
            // They are asked for too late: all have left.
            for at in first..first + 50 {
                assert!(cache.get(at).is_none());
                cache.insert(at, block(&pool, at));
            }
        }
        let tables = cache.tables.borrow();
        assert_eq!(
            tables.entries.len() as u64,
            tables.small_blocks,
            "none is in the main queue"
        );
    }

    #[test]
    fn it_never_grows_beyond_its_capacity_and_0_is_off() {
        let (pool, cache) = (BufPool::new(), ReadCache::new(50 * ENTRY_BYTES));
        let mut prng = Prng::from_seed(1);
        for _ in 0..20_000 {
            let number = prng.below(200);
            match prng.below(4) {
                0 => cache.invalidate(number..number + 3),
                1 => drop(cache.get(number)),
                _ => cache.insert(number, block(&pool, number)),
            }
            assert!(cache.stats().resident_bytes <= 50 * ENTRY_BYTES);
            let tables = cache.tables.borrow();
            let small = tables
                .entries
                .values()
                .filter(|entry| entry.queue == Queue::Small)
                .count();
            assert_eq!(small as u64, tables.small_blocks);
        }
        cache.set_capacity(0);
        cache.insert(1, block(&pool, 1));
        assert!(!cache.is_on() && cache.get(1).is_none());
        assert_eq!(cache.stats().resident_bytes, 0);
    }
}
