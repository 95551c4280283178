//! Runs of blocks on their way into the cache: ahead of any reader, or for a read, so that other
//! readers need not ask a drive, too.
//!
//! Invariant: nothing comes in by a fill ahead of a reader of which a block has been changed
//! since the fill began. So that one needs no lock against writes; a read has one.

use futures_channel::oneshot;
use std::cell::{Cell, RefCell};
use std::ops::Range;

#[derive(Debug)]
struct Fill {
    id: u64,
    blocks: Range<u64>,
    /// Somebody reads them now, and it isn't ahead of anybody.
    is_asked_for: bool,
    is_sound: bool,
    waiting: Vec<oneshot::Sender<()>>,
}

/// Runs of this many blocks are counted together.
const COUNTED_BLOCKS: u64 = 64;
const COUNTERS: usize = 1024;

/// All fills under way.
#[derive(Debug)]
pub struct Fills {
    fills: RefCell<Vec<Fill>>,
    last: Cell<u64>,
    /// Blocks of those that nobody has asked for yet.
    ahead_blocks: Cell<u64>,
    /// Fills by where they are, so that most blocks are known to be in none without a look
    /// at each: there may be hundreds.
    counters: RefCell<Box<[u32; COUNTERS]>>,
}

impl Default for Fills {
    fn default() -> Self {
        Fills {
            fills: RefCell::default(),
            last: Cell::default(),
            ahead_blocks: Cell::default(),
            counters: RefCell::new(Box::new([0; COUNTERS])),
        }
    }
}

/// The counters that a run of blocks has a part in.
fn counters_of(blocks: &Range<u64>) -> impl Iterator<Item = usize> {
    let counted = blocks.start / COUNTED_BLOCKS..blocks.end.div_ceil(COUNTED_BLOCKS);
    let counted = counted.start..counted.end.min(counted.start + COUNTERS as u64);
    counted.map(|counted| (counted % COUNTERS as u64) as usize)
}

/// A fill under way; dropping it ends it.
#[derive(Debug)]
pub struct Filling<'a> {
    fills: &'a Fills,
    id: u64,
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Fills {
    /// A fill of `blocks` ahead of a reader begins: what is read from now on counts.
    pub fn begin(&self, blocks: Range<u64>) -> Filling<'_> {
        self.add(blocks, false)
    }

    /// A read of `blocks` begins that brings them here.
    pub fn begin_read(&self, blocks: Range<u64>) -> Filling<'_> {
        self.add(blocks, true)
    }

    fn add(&self, blocks: Range<u64>, is_asked_for: bool) -> Filling<'_> {
        self.last.set(self.last.get() + 1);
        let id = self.last.get();
        let mut counters = self.counters.borrow_mut();
        counters_of(&blocks).for_each(|counter| counters[counter] += 1);
        if !is_asked_for {
            let ahead = self.ahead_blocks.get() + blocks.end - blocks.start;
            self.ahead_blocks.set(ahead);
        }
        self.fills.borrow_mut().push(Fill {
            id,
            blocks,
            is_asked_for,
            is_sound: true,
            waiting: Vec::new(),
        });
        Filling { fills: self, id }
    }

    /// Whether no fill has any of `blocks`; often not known without a look at them.
    fn surely_none(&self, blocks: &Range<u64>) -> bool {
        let counters = self.counters.borrow();
        counters_of(blocks).all(|counter| counters[counter] == 0)
    }

    /// `blocks` hold something else now.
    pub fn change(&self, blocks: &Range<u64>) {
        if self.surely_none(blocks) {
            return;
        }
        let mut fills = self.fills.borrow_mut();
        for fill in fills
            .iter_mut()
            .filter(|fill| overlap(&fill.blocks, blocks))
        {
            fill.is_sound = false;
            // Nobody gets anything from it any more.
            fill.waiting.clear();
        }
    }

    /// Whether any of `blocks` may be on its way.
    pub fn concern(&self, blocks: &Range<u64>) -> bool {
        if self.surely_none(blocks) {
            return false;
        }
        let fills = self.fills.borrow();
        let mut fills = fills.iter();
        fills.any(|fill| fill.is_sound && overlap(&fill.blocks, blocks))
    }

    /// Whether any fill under way, good for anything or not, reads any of `blocks`.
    pub fn any_in(&self, blocks: &Range<u64>) -> bool {
        if self.surely_none(blocks) {
            return false;
        }
        let fills = self.fills.borrow();
        fills.iter().any(|fill| overlap(&fill.blocks, blocks))
    }

    /// Ends for those fills that may bring any of `blocks`: each when the fill ends, or
    /// is good for nothing any more.
    pub fn ends(&self, blocks: &Range<u64>) -> Vec<oneshot::Receiver<()>> {
        let mut fills = self.fills.borrow_mut();
        fills
            .iter_mut()
            .filter(|fill| fill.is_sound && overlap(&fill.blocks, blocks))
            .map(|fill| {
                let (done, end) = oneshot::channel();
                fill.waiting.push(done);
                end
            })
            .collect()
    }

    /// Blocks on their way ahead of readers, about.
    pub fn blocks(&self) -> u64 {
        self.ahead_blocks.get()
    }
}

impl Filling<'_> {
    /// Whether a fill that began before this one may bring `block`. Of two fills it is the
    /// later one that leaves a block to the other.
    pub fn is_behind_another(&self, block: u64) -> bool {
        let fills = self.fills.fills.borrow();
        let mut earlier = fills.iter().filter(|fill| fill.id < self.id);
        earlier.any(|fill| fill.is_sound && fill.blocks.contains(&block))
    }

    /// Whether none of its blocks has been changed since it began.
    pub fn is_sound(&self) -> bool {
        let fills = self.fills.fills.borrow();
        fills.iter().any(|fill| fill.id == self.id && fill.is_sound)
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        let mut fills = self.fills.fills.borrow_mut();
        // They come in the order of their numbers.
        let Ok(at) = fills.binary_search_by_key(&self.id, |fill| fill.id) else {
            return;
        };
        let mut counters = self.fills.counters.borrow_mut();
        counters_of(&fills[at].blocks).for_each(|counter| counters[counter] -= 1);
        // Who waits finds the channel closed, and looks again.
        let ended = fills.remove(at);
        if !ended.is_asked_for {
            let blocks = ended.blocks.end - ended.blocks.start;
            let ahead = &self.fills.ahead_blocks;
            ahead.set(ahead.get() - blocks);
        }
        drop((fills, counters));
        drop(ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_change_spoils_the_fills_that_it_meets() {
        let fills = Fills::default();
        let (low, high) = (fills.begin(0..10), fills.begin(10..20));
        assert_eq!(fills.blocks(), 20);
        fills.change(&(20..30));
        assert!(low.is_sound() && high.is_sound());
        fills.change(&(9..10));
        assert!(!low.is_sound() && high.is_sound());
        assert!(!fills.concern(&(0..10)) && fills.concern(&(0..11)));
        assert!(fills.any_in(&(0..10)));
        drop(high);
        assert!(!fills.concern(&(0..30)));
        let read = fills.begin_read(10..20);
        assert!(fills.concern(&(0..30)));
        assert_eq!(fills.blocks(), 10, "nothing is read ahead there");
        let later = fills.begin(15..30);
        assert!(later.is_behind_another(19) && !later.is_behind_another(20));
        assert!(!read.is_behind_another(19));
        drop(later);
        drop(read);
        assert_eq!(fills.blocks(), 10);
    }

    #[test]
    fn fills_are_found_wherever_they_are_and_however_long() {
        let mut prng = base::Prng::from_seed(8);
        let fills = Fills::default();
        let mut under_way: Vec<(Range<u64>, Filling<'_>)> = Vec::new();
        for _ in 0..3000 {
            let mut run = |most: u64| {
                let start = prng.below(1 << 20);
                start..start + prng.between(1, most)
            };
            let (blocks, asked) = (run(100_000), run(3000));
            let found = under_way.iter().any(|(blocks, _)| overlap(blocks, &asked));
            assert_eq!(fills.concern(&asked), found);
            assert_eq!(fills.any_in(&asked), found);
            match prng.chance(1, 2) && under_way.len() < 6 {
                true => under_way.push((blocks.clone(), fills.begin(blocks))),
                false if under_way.is_empty() => {}
                false => {
                    let at = prng.below(under_way.len() as u64) as usize;
                    drop(under_way.swap_remove(at));
                }
            }
        }
        under_way.clear();
        assert!(fills.counters.borrow().iter().all(|count| *count == 0));
    }

    #[test]
    fn who_waits_goes_on_when_a_fill_ends_or_is_spoilt() {
        let fills = Fills::default();
        let (low, high) = (fills.begin(0..10), fills.begin(10..20));
        let mut ends = fills.ends(&(5..15));
        assert_eq!(ends.len(), 2);
        assert!(ends.iter_mut().all(|end| end.now_or_never().is_none()));
        fills.change(&(0..1));
        assert!((&mut ends[0]).now_or_never().is_some());
        assert!((&mut ends[1]).now_or_never().is_none());
        drop((low, high));
        assert!((&mut ends[1]).now_or_never().is_some());
        assert!(fills.ends(&(0..100)).is_empty());
    }
}
