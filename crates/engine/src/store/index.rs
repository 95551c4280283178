//! The index of blocks that are in the data log and not yet in place.
//!
//! Invariants:
//! - For each block the newest entry is here, with its content; older ones are
//!   forgotten, so the log may trim them.
//! - A stripe with entries stands in the queue, or is being destaged.
//! - An entry that was found in the log at the opening, and every entry that takes
//!   its place before it has been destaged, is `replayed`: what lies in place is
//!   unknown, because the destaging of an earlier one may have been cut short.

use super::address::{InStripe, StripeRef};
use crate::ring::Hold;
use base::{Slice, Time};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// What a block is to hold.
#[derive(Clone, Debug)]
pub enum Content {
    /// These 4 KiB of data.
    Data(Slice),
    /// Zeroes, as if never written.
    Zero,
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
    queued: bool,
}

/// The entries of all stripes.
#[derive(Default)]
pub struct Index {
    stripes: FxHashMap<StripeRef, Stripe>,
    /// In order of their oldest entry, about.
    queue: VecDeque<(StripeRef, Time)>,
    blocks: usize,
    versions: u64,
    /// There may be entries from before the opening.
    may_have_replayed: bool,
}

impl Index {
    /// Blocks that have an entry.
    pub fn blocks(&self) -> usize {
        self.blocks
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
        if stripe.entries.insert(at.index, logged).is_none() {
            self.blocks += 1;
        }
    }

    /// What is in place is newer than the entry of this block.
    pub fn forget(&mut self, at: InStripe) {
        let Some(stripe) = self.stripes.get_mut(&at.stripe) else {
            return;
        };
        if stripe.entries.remove(&at.index).is_some() {
            self.blocks -= 1;
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

    /// When the oldest stripe in the queue came in.
    pub fn oldest(&self) -> Option<Time> {
        self.queue.front().map(|(_, since)| *since)
    }

    /// Takes the next stripe off the queue; it comes back by
    /// [`Index::settle`] when entries are left, or by [`Index::put_back`].
    pub fn next(&mut self) -> Option<StripeRef> {
        let (stripe, _) = self.queue.pop_front()?;
        if let Some(entries) = self.stripes.get_mut(&stripe) {
            entries.queued = false;
        }
        Some(stripe)
    }

    /// Puts a stripe at the end of the queue, if it has entries.
    pub fn put_back(&mut self, stripe: StripeRef, now: Time) {
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
            let newest = entries.entries.get_mut(&index);
            match newest {
                Some(newest) if newest.version == settled.version => {
                    entries.entries.remove(&index);
                    self.blocks -= 1;
                }
                // What lies in place is known again.
                Some(newest) => newest.replayed = false,
                None => {}
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
