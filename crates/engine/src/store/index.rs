//! The index of blocks that are in the data log and not yet in place.
//!
//! Invariants:
//! - For each block the newest entry is here, with its content; older ones are
//!   forgotten, so the log may trim them.
//! - A stripe with entries stands in the queue or in a sweep, or is being destaged.
//! - An entry that was found in the log at the opening, and every entry that takes
//!   its place before it has been destaged, is `replayed`: what lies in place is
//!   unknown, because the destaging of an earlier one may have been cut short.

use super::address::{InStripe, StripeRef};
use crate::integrity::Sum;
use crate::ring::Hold;
use base::{Slice, Time};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// 4 KiB of data that a block is to hold.
#[derive(Clone, Debug)]
pub struct Block {
    pub data: Slice,
    /// Their sum, where the log had to reckon it.
    known: Option<Sum>,
}

impl Block {
    pub fn new(data: Slice, known: Option<Sum>) -> Self {
        Block { data, known }
    }

    /// The sum of the data.
    pub fn sum(&self) -> Sum {
        self.known.unwrap_or_else(|| Sum::of(&self.data))
    }
}

/// What a block is to hold.
#[derive(Clone, Debug)]
pub enum Content {
    /// This data.
    Data(Block),
    /// Zeroes, as if never written.
    Zero,
}

impl Content {
    fn is_data(&self) -> bool {
        matches!(self, Content::Data(_))
    }
}

/// The newest entry of a block.
#[derive(Clone)]
pub struct Logged {
    pub content: Content,
    /// Tells it from an entry that takes its place.
    pub version: u64,
    pub replayed: bool,
    hold: Rc<Hold>,
}

#[derive(Default)]
struct Stripe {
    entries: BTreeMap<u32, Logged>,
    /// It stands in the queue or in a sweep.
    queued: bool,
}

/// Blocks of data that came to go in place, since the opening. What came is what was replaced, what went in
/// place, what was forgotten, and what waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Those that the log has taken, each as often as it was written.
    pub came_blocks: u64,
    /// Those that never went in place: later ones came for their blocks while they waited.
    pub replaced_blocks: u64,
    /// Those that went in place.
    pub placed_blocks: u64,
    /// Those that were older than what is in place already.
    pub forgotten_blocks: u64,
    /// Those that wait, some of them on their way.
    pub waiting_blocks: u64,
    /// Bytes beside these that went in place without passing the log, and that are on their way so.
    pub bypassed_bytes: u64,
    pub bypassing_bytes: u64,
}

/// The entries of all stripes.
#[derive(Default)]
pub struct Index {
    stripes: FxHashMap<StripeRef, Stripe>,
    /// In order of their oldest entry, about.
    queue: VecDeque<(StripeRef, Time)>,
    blocks: usize,
    flow: Flow,
    versions: u64,
    /// There may be entries from before the opening.
    may_have_replayed: bool,
}

impl Index {
    /// Blocks that have an entry.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Blocks of data that came, and where they are; counts those that wait one by one.
    pub fn flow(&self) -> Flow {
        let entries = self
            .stripes
            .values()
            .flat_map(|stripe| stripe.entries.values());
        Flow {
            waiting_blocks: entries.filter(|entry| entry.content.is_data()).count() as u64,
            ..self.flow
        }
    }

    /// The entry of a block.
    pub fn get(&self, at: InStripe) -> Option<&Logged> {
        if self.blocks == 0 {
            return None;
        }
        self.stripes.get(&at.stripe)?.entries.get(&at.index)
    }

    /// Whether the stripe has any entry.
    pub fn has(&self, stripe: StripeRef) -> bool {
        self.stripes.contains_key(&stripe)
    }

    /// Whether any stripe for which `concerns` says so has an entry.
    pub fn has_any(&self, concerns: impl Fn(StripeRef) -> bool) -> bool {
        self.stripes.keys().any(|stripe| concerns(*stripe))
    }

    /// The entry is durable in the log, and is what reads see from now on.
    pub fn insert(
        &mut self,
        at: InStripe,
        content: Content,
        hold: &Rc<Hold>,
        now: Time,
        replayed: bool,
    ) {
        self.versions += 1;
        self.may_have_replayed |= replayed;
        let stripe = self.stripes.entry(at.stripe).or_default();
        if !stripe.queued {
            stripe.queued = true;
            self.queue.push_back((at.stripe, now));
        }
        let unknown = stripe
            .entries
            .get(&at.index)
            .is_some_and(|old| old.replayed);
        let logged = Logged {
            content,
            version: self.versions,
            replayed: replayed || unknown,
            hold: Rc::clone(hold),
        };
        self.flow.came_blocks += u64::from(logged.content.is_data());
        match stripe.entries.insert(at.index, logged) {
            None => self.blocks += 1,
            Some(old) => self.flow.replaced_blocks += u64::from(old.content.is_data()),
        }
    }

    /// What is in place is newer than the entry of this block.
    pub fn forget(&mut self, at: InStripe) {
        let Some(stripe) = self.stripes.get_mut(&at.stripe) else {
            return;
        };
        if let Some(old) = stripe.entries.remove(&at.index) {
            self.blocks -= 1;
            self.flow.forgotten_blocks += u64::from(old.content.is_data());
        }
        if stripe.entries.is_empty() {
            self.stripes.remove(&at.stripe);
        }
    }

    /// Whether any entry is from before the opening, or took the place of one.
    pub fn has_replayed(&mut self) -> bool {
        if self.may_have_replayed {
            let mut entries = self
                .stripes
                .values()
                .flat_map(|stripe| stripe.entries.values());
            self.may_have_replayed = entries.any(|entry| entry.replayed);
        }
        self.may_have_replayed
    }

    /// Stripes that have entries.
    pub fn stripes(&self) -> usize {
        self.stripes.len()
    }

    /// Takes the oldest stripes off the queue, up to the first that is not due; each is begun by
    /// [`Index::begin`] later.
    pub fn take_oldest(&mut self, most: usize, is_due: impl Fn(Time) -> bool) -> Vec<StripeRef> {
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some((stripe, since)) = self.queue.front()
            && is_due(*since)
        {
            taken.push(*stripe);
            self.queue.pop_front();
        }
        taken
    }

    /// A stripe is about to be destaged. It comes back by [`Index::settle`] when entries are left.
    pub fn begin(&mut self, stripe: StripeRef) {
        if let Some(entries) = self.stripes.get_mut(&stripe) {
            entries.queued = false;
        }
    }

    /// Puts a stripe at the end of the queue, if it has entries.
    fn put_back(&mut self, stripe: StripeRef, now: Time) {
        if let Some(entries) = self.stripes.get_mut(&stripe)
            && !entries.queued
        {
            entries.queued = true;
            self.queue.push_back((stripe, now));
        }
    }

    /// The stripe's entries as they are now, by block.
    pub fn snapshot(&self, stripe: StripeRef) -> BTreeMap<u32, Logged> {
        self.stripes
            .get(&stripe)
            .map(|stripe| stripe.entries.clone())
            .unwrap_or_default()
    }

    /// The entries of `done` are in place. Gives back what held them in the log; an
    /// entry that took the place of one stays.
    pub fn settle(
        &mut self,
        stripe: StripeRef,
        done: BTreeMap<u32, Logged>,
        now: Time,
    ) -> Vec<Rc<Hold>> {
        let mut holds = Vec::new();
        let Some(entries) = self.stripes.get_mut(&stripe) else {
            return holds;
        };
        for (index, settled) in done {
            let is_data = u64::from(settled.content.is_data());
            let flow = &mut self.flow;
            flow.placed_blocks += is_data;
            let newest = entries.entries.get_mut(&index);
            match newest {
                Some(newest) if newest.version == settled.version => {
                    entries.entries.remove(&index);
                    self.blocks -= 1;
                }
                // What lies in place is known again. What was replaced was on its way already.
                Some(newest) => {
                    newest.replayed = false;
                    flow.replaced_blocks = flow.replaced_blocks.saturating_sub(is_data);
                }
                None => flow.forgotten_blocks = flow.forgotten_blocks.saturating_sub(is_data),
            }
            holds.push(settled.hold);
        }
        if entries.entries.is_empty() {
            self.stripes.remove(&stripe);
        } else {
            self.put_back(stripe, now);
        }
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::BufPool;
    use std::time::Duration;

    fn at(number: u32) -> InStripe {
        let stripe = StripeRef {
            zone: 0,
            number,
            span: 0,
        };
        InStripe { stripe, index: 0 }
    }

    fn insert(index: &mut Index, number: u32, millis: u64) {
        let hold = Rc::new(Hold::of_no_ring());
        let now = Time(0) + Duration::from_millis(millis);
        index.insert(at(number), Content::Zero, &hold, now, false);
    }

    #[test]
    fn a_sweep_takes_the_oldest_up_to_the_first_that_is_not_due() {
        let mut index = Index::default();
        for (number, millis) in [(9, 0), (3, 1), (5, 2), (1, 50)] {
            insert(&mut index, number, millis);
        }
        let is_due = |since: Time| since.since(Time(0)) < Duration::from_millis(10);
        let numbers = |taken: Vec<StripeRef>| -> Vec<u32> {
            taken.into_iter().map(|stripe| stripe.number).collect()
        };
        assert_eq!(numbers(index.take_oldest(2, is_due)), [9, 3]);
        // What comes in for a stripe of a sweep goes with it.
        insert(&mut index, 9, 60);
        assert_eq!(numbers(index.take_oldest(9, is_due)), [5]);
        assert_eq!(numbers(index.take_oldest(9, |_| true)), [1]);
        // Once it has begun, it is for a later one.
        index.begin(at(9).stripe);
        insert(&mut index, 9, 70);
        assert_eq!(numbers(index.take_oldest(9, |_| true)), [9]);
    }

    /// A block that is written over on its way goes in place twice, and one that waits does so once.
    #[test]
    fn what_came_is_replaced_in_place_or_waits() {
        let (mut index, hold) = (Index::default(), Rc::new(Hold::of_no_ring()));
        let buffers = BufPool::length_only();
        let data = || Content::Data(Block::new(buffers.zeros(4096), None));
        let insert =
            |index: &mut Index, content| index.insert(at(3), content, &hold, Time(0), false);
        insert(&mut index, data());
        insert(&mut index, data());
        let on_its_way = index.snapshot(at(3).stripe);
        insert(&mut index, data());
        insert(&mut index, Content::Zero);
        let flow = |index: &Index| {
            let Flow {
                came_blocks,
                replaced_blocks,
                placed_blocks,
                forgotten_blocks,
                waiting_blocks,
                ..
            } = index.flow();
            [
                came_blocks,
                replaced_blocks,
                placed_blocks,
                forgotten_blocks,
                waiting_blocks,
            ]
        };
        assert_eq!(flow(&index), [3, 3, 0, 0, 0]);
        index.settle(at(3).stripe, on_its_way, Time(0));
        assert_eq!(flow(&index), [3, 2, 1, 0, 0]);
        insert(&mut index, data());
        assert_eq!(flow(&index), [4, 2, 1, 0, 1]);
        index.forget(at(3));
        assert_eq!(flow(&index), [4, 2, 1, 1, 0]);
    }
}
