//! Blocks of sums of which only so many copies were read as a read of data takes.
//!
//! A block of sums is loaded from all its copies, r + 1 of them, and the newest counts. A read that
//! has the data does with one fewer: the drive of the data bears witness, too. Where r copies on other
//! drives of its span are whole, of one version, and agree with the data, all of that is right: for
//! it to be wrong, r + 1 drives of the span would have to be.
//!
//! Invariants:
//! - A partial block proves data on drives that no copy of it was read from, in the span of the copies.
//!   That a block was never written, or is lost, is nothing that it can say.
//! - Nothing changes sums while a block is partial: who changes one loads the block from all copies,
//!   which takes the place of the partial one.
//! - A block that the logs have something of is never partial.

use super::block::{self, SUMS};
use super::load::{Pair, newest_of_pair};
use super::{Integrity, Slot, Sum, Sums, key};
use crate::drives::Zone;
use crate::world::World;
use futures_util::future::join_all;
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

/// Copies, as places of drives and pairs in their areas.
type Copies = SmallVec<[(usize, u64); 3]>;

/// A block of sums that some of its copies agree on.
pub(super) struct Partial {
    pub(super) sums: Sums,
    /// Where these copies are.
    places: SmallVec<[usize; 3]>,
    /// Looked at since the clock came by.
    pub(super) used: Cell<bool>,
}

impl Partial {
    /// The sums of a run of blocks of this one; `None` when one of them says that its block has no
    /// content.
    fn of(&self, blocks: Range<u64>) -> Option<SmallVec<[Sum; 4]>> {
        self.used.set(true);
        let sums = blocks.map(|block| self.sums.get((block % SUMS as u64) as usize));
        sums.map(|sum| sum.is_written().then_some(sum)).collect()
    }
}

/// Whether one block has the sums of all of `blocks`, and which.
fn block_of(blocks: &Range<u64>) -> Option<u64> {
    let (first, last) = (blocks.start, blocks.end - 1);
    (first / SUMS as u64 == last / SUMS as u64).then_some(first / SUMS as u64)
}

impl<W: World> Integrity<W> {
    /// Whether the sums of `blocks` are in RAM as far as data on the drive at `place` needs them.
    pub fn proves(&self, zone: &Zone<W>, blocks: &Range<u64>, place: usize) -> bool {
        let index = block_of(blocks);
        index.is_some_and(|index| self.partial(zone, index, place).is_some())
    }

    /// The sums that prove data of `blocks` on the drive at `place`, from RAM or from the copies that
    /// it takes. `None` when these do not suffice: then all have to be loaded.
    pub async fn sums_beside(
        &self,
        zone: &Zone<W>,
        blocks: Range<u64>,
        place: usize,
    ) -> Option<SmallVec<[Sum; 4]>> {
        let index = block_of(&blocks)?;
        if let Some(partial) = self.partial(zone, index, place) {
            return partial.of(blocks);
        }
        let copies = self.witnesses(zone, index, place)?;
        self.load_partial(zone, index, &copies).await?.of(blocks)
    }

    fn partial(&self, zone: &Zone<W>, index: u64, place: usize) -> Option<Rc<Partial>> {
        let slots = self.slots.borrow();
        match slots.get(&key(zone.shape.zone, index)) {
            Some(Slot::Partial(partial)) if proves(zone, &partial.places, place) => {
                Some(Rc::clone(partial))
            }
            _ => None,
        }
    }

    /// The copies of a block that prove data on the drive at `place`; `None` when there are not
    /// enough, when the block is here or on its way, and when the logs have something of it.
    fn witnesses(&self, zone: &Zone<W>, index: u64, place: usize) -> Option<Copies> {
        let (number, geometry) = (zone.shape.zone, zone.shape.geometry);
        let key = key(number, index);
        if self.slots.borrow().contains_key(&key)
            || self.may_be_torn.borrow().contains(&key)
            || self.records.has(key)
        {
            return None;
        }
        let is_other = |at: usize| {
            let own = at == place && !self.world.planted("sums vouch for their own drive");
            let member = zone.group.place(at);
            !own && member.is_readable(number) && !member.is_asked_last()
        };
        let copies = block::copies(geometry, index).filter(|(at, _)| is_other(*at));
        let copies: Copies = copies.take(geometry.redundancy()).collect();
        let places: SmallVec<[usize; 3]> = copies.iter().map(|(at, _)| *at).collect();
        let is_enough = proves(zone, &places, place)
            || self.world.planted("sums vouch for their own drive") && !places.is_empty();
        is_enough.then_some(copies)
    }

    async fn load_partial(
        &self,
        zone: &Zone<W>,
        index: u64,
        copies: &[(usize, u64)],
    ) -> Option<Rc<Partial>> {
        let key = key(zone.shape.zone, index);
        let before = self
            .slots
            .borrow_mut()
            .insert(key, Slot::Loading(Vec::new()));
        assert!(before.is_none(), "sums {key:#x} are read twice at once");
        let found = self.agreed(zone, index, copies).await;
        let partial = found.map(|sums| {
            Rc::new(Partial {
                sums,
                places: copies.iter().map(|(place, _)| *place).collect(),
                used: Cell::new(true),
            })
        });
        let before = {
            let mut slots = self.slots.borrow_mut();
            match &partial {
                Some(partial) => slots.insert(key, Slot::Partial(Rc::clone(partial))),
                None => slots.remove(&key),
            }
        };
        if partial.is_some() {
            self.world.reached("sums read from fewer copies");
            self.clock.borrow_mut().push_back(key);
        }
        if let Some(Slot::Loading(waiting)) = before {
            for done in waiting {
                let _ = done.send(());
            }
        }
        self.evict_for_one();
        partial
    }

    /// What all of `copies` say of a block; `None` when one can't be read, is not whole, or is of
    /// another version.
    async fn agreed(&self, zone: &Zone<W>, index: u64, copies: &[(usize, u64)]) -> Option<Sums> {
        self.count(|stats| stats.loads += 1);
        let id = self.block_id(zone, index);
        let reads = copies.iter().map(async |(place, pair)| {
            let member = zone.group.place(*place);
            let slots = self.read_slots(zone, &member, *pair).await.ok()?;
            match self.is_byteless() {
                true => Some(self.kept_pair(zone, index)),
                false => newest_of_pair(id, &slots),
            }
        });
        let mut pairs = join_all(reads).await.into_iter();
        let first = pairs.next()??;
        let agrees = |pair: Option<Pair>| {
            pair.is_some_and(|pair| pair.whole && pair.version == first.version)
        };
        (first.whole && pairs.all(agrees)).then_some(first.sums)
    }
}

/// Whether sums of copies at `places` prove data on the drive at `place`.
fn proves<W: World>(zone: &Zone<W>, places: &[usize], place: usize) -> bool {
    let geometry = zone.shape.geometry;
    let span = geometry.span_of(place);
    let others = places.iter().filter(|at| **at != place);
    let of_span = others.filter(|at| geometry.span_of(**at) == span);
    geometry.redundancy() > 0 && of_span.count() >= geometry.redundancy()
}
