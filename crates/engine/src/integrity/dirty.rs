//! Blocks of sums in RAM that are not on the drives as they are.
//!
//! They are written in **sweeps**: all that there are when one begins, in the order in which they
//! lie on the drives, a part at a time. What becomes dirty meanwhile is for the next sweep.

use super::block::SUMS;
use super::held::Held;
use super::{Cached, Sum};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;

/// So many blocks may be listed that are clean.
const LISTED_MIN: usize = 64;

const WORDS: usize = SUMS.div_ceil(64);

/// Which sums of a block have changed since its version on the drives.
#[derive(Debug, Default)]
pub(super) struct Changes(Option<Box<[u64; WORDS]>>);

impl Changes {
    /// Takes note of a change; whether there was none of that sum.
    fn insert(&mut self, at: usize) -> bool {
        let words = self.0.get_or_insert_with(|| Box::new([0; WORDS]));
        let (word, bit) = (&mut words[at / 64], 1 << (at % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Takes note of all of these, too.
    fn insert_all(&mut self, others: &Changes) {
        if let Some(others) = &others.0 {
            let words = self.0.get_or_insert_with(|| Box::new([0; WORDS]));
            words
                .iter_mut()
                .zip(others.iter())
                .for_each(|(word, other)| *word |= other);
        }
    }

    fn len(&self) -> u64 {
        let words = self.0.iter().flat_map(|words| words.iter());
        words.map(|word| u64::from(word.count_ones())).sum()
    }

    /// The places of those sums and of `others`, in order.
    fn places_with(&self, others: Option<&Changes>) -> impl Iterator<Item = usize> {
        (0..WORDS).flat_map(move |number| {
            let word = self.word(number) | others.map_or(0, |others| others.word(number));
            let is_set = move |bit: &usize| word >> bit & 1 == 1;
            (0..64).filter(is_set).map(move |bit| number * 64 + bit)
        })
    }

    fn word(&self, number: usize) -> u64 {
        self.0.as_ref().map_or(0, |words| words[number])
    }
}

/// A version of a block that is on its way to the drives.
#[derive(Debug)]
pub(super) struct Flight {
    /// The version that is durable.
    pub(super) base: u64,
    /// What the next one changes.
    changes: Changes,
    /// The newest record from before it set out, until there is a newer one.
    pub(super) record: Option<Held>,
}

/// Lists of dirty blocks. A block may stand in a list that it no longer belongs to: what the block
/// itself says counts.
#[derive(Default)]
pub(super) struct Dirty {
    /// Dirty since the sweep began.
    fresh: RefCell<Vec<Rc<Cached>>>,
    /// The rest of the sweep.
    sweep: RefCell<VecDeque<Rc<Cached>>>,
    /// Of these some copy is behind, or all are: no record in the log says what to do.
    unfit: RefCell<Vec<Rc<Cached>>>,
    /// Changed since the newest record in the log.
    unrecorded: RefCell<Vec<Rc<Cached>>>,
    blocks: Cell<usize>,
    changes: Cell<u64>,
}

impl Dirty {
    /// How many blocks are dirty.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.get()
    }

    /// How many sums of them have changed.
    pub(super) fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Whether any of the blocks is of that zone.
    pub(super) fn has_any_of(&self, zone: u32) -> bool {
        let is_of_it = |cached: &Rc<Cached>| cached.zone == zone && cached.dirty.get();
        self.fresh.borrow().iter().any(is_of_it) || self.sweep.borrow().iter().any(is_of_it)
    }

    /// All of them, in no order, and some more than once. They stay in the lists.
    pub(super) fn all(&self) -> Vec<Rc<Cached>> {
        self.those(|_| true)
    }

    /// Those of a zone, likewise.
    pub(super) fn of_zone(&self, zone: u32) -> Vec<Rc<Cached>> {
        self.those(|cached| cached.zone == zone)
    }

    fn those(&self, is_wanted: impl Fn(&Cached) -> bool) -> Vec<Rc<Cached>> {
        let (fresh, sweep) = (self.fresh.borrow(), self.sweep.borrow());
        let all = sweep.iter().chain(fresh.iter());
        all.filter(|cached| cached.dirty.get() && is_wanted(cached))
            .cloned()
            .collect()
    }

    /// Drops from the lists who does not belong there any more, where many don't.
    fn tidy_up(&self) {
        let most = 2 * self.blocks.get() + LISTED_MIN;
        let is_dirty = |cached: &Rc<Cached>| cached.dirty.get();
        let (mut fresh, mut sweep) = (self.fresh.borrow_mut(), self.sweep.borrow_mut());
        if fresh.len() + sweep.len() > most {
            fresh.retain(is_dirty);
            sweep.retain(is_dirty);
        }
        let mut unfit = self.unfit.borrow_mut();
        if unfit.len() > most {
            unfit.retain(is_dirty);
        }
        let mut unrecorded = self.unrecorded.borrow_mut();
        if unrecorded.len() > most {
            unrecorded.retain(|cached| cached.unrecorded.get());
        }
    }

    /// Whether there are any that records can't speak for.
    pub(super) fn has_unfit(&self) -> bool {
        let unfit = self.unfit.borrow();
        unfit.iter().any(|cached| cached.dirty.get())
    }

    /// Those that records can't speak for.
    pub(super) fn take_unfit(&self) -> Vec<Rc<Cached>> {
        let mut unfit = self.unfit.take();
        unfit.retain(|cached| cached.dirty.get());
        unfit
    }

    /// The next `most` of the sweep. When it is over, the next one begins, in the order of `place`.
    pub(super) fn next_of_sweep<K: Ord>(
        &self,
        most: usize,
        place: impl FnMut(&Rc<Cached>) -> K,
    ) -> Vec<Rc<Cached>> {
        let mut sweep = self.sweep.borrow_mut();
        if sweep.is_empty() {
            let mut all = self.fresh.take();
            all.retain(|cached| cached.dirty.get());
            all.sort_by_cached_key(place);
            *sweep = all.into();
        }
        let mut next = Vec::with_capacity(most.min(sweep.len()));
        while next.len() < most
            && let Some(cached) = sweep.pop_front()
        {
            if cached.dirty.get() {
                next.push(cached);
            }
        }
        next
    }

    /// Those that have changed since their newest record.
    pub(super) fn take_unrecorded(&self) -> Vec<Rc<Cached>> {
        let mut unrecorded = self.unrecorded.take();
        unrecorded.retain(|cached| cached.unrecorded.replace(false));
        unrecorded
    }
}

impl Cached {
    /// The sum at `at` has changed, and the logs have what it changed to.
    pub(super) fn set_changed(self: &Rc<Self>, at: usize, dirty: &Dirty) {
        self.set_recorded(at, dirty);
        self.set_unrecorded(dirty);
    }

    /// The sum at `at` differs from the one on the drives, as the block's record has it.
    pub(super) fn set_recorded(self: &Rc<Self>, at: usize, dirty: &Dirty) {
        self.changed.set(true);
        if self.changes.borrow_mut().insert(at) {
            dirty.changes.set(dirty.changes.get() + 1);
        }
        self.set_dirty(dirty);
    }

    fn set_unrecorded(self: &Rc<Self>, dirty: &Dirty) {
        if self.changed.get() && !self.unrecorded.replace(true) {
            dirty.unrecorded.borrow_mut().push(Rc::clone(self));
        }
    }

    /// No copy is whole, or counts: all are to be written, one after the other.
    pub(super) fn set_anew(self: &Rc<Self>, dirty: &Dirty) {
        self.anew.set(true);
        self.set_unfit(dirty);
    }

    /// The copies at these places are to become what a whole one is.
    pub(super) fn set_behind(
        self: &Rc<Self>,
        places: impl IntoIterator<Item = usize>,
        dirty: &Dirty,
    ) {
        self.behind.borrow_mut().extend(places);
        self.set_unfit(dirty);
    }

    fn set_unfit(self: &Rc<Self>, dirty: &Dirty) {
        dirty.unfit.borrow_mut().push(Rc::clone(self));
        self.set_dirty(dirty);
    }

    fn set_dirty(self: &Rc<Self>, dirty: &Dirty) {
        if !self.dirty.replace(true) {
            dirty.tidy_up();
            dirty.blocks.set(dirty.blocks.get() + 1);
            dirty.fresh.borrow_mut().push(Rc::clone(self));
        }
    }

    /// A flush takes it over, unless another one has. What is asked of it from here on is for the
    /// next one.
    pub(super) fn set_clean(&self, dirty: &Dirty) -> bool {
        let was_dirty = self.dirty.replace(false);
        if was_dirty {
            dirty.blocks.set(dirty.blocks.get() - 1);
        }
        was_dirty
    }

    /// A version that has all that has changed so far sets out for the drives. Returns whether that
    /// is anything.
    pub(super) fn set_out(&self, dirty: &Dirty) -> bool {
        if !self.changed.replace(false) {
            return false;
        }
        let changes = mem::take(&mut *self.changes.borrow_mut());
        dirty.changes.set(dirty.changes.get() - changes.len());
        let record = self.record.take();
        self.flight
            .borrow_mut()
            .get_or_insert_with(|| Flight {
                base: self.version.get(),
                changes: Changes::default(),
                record,
            })
            .changes
            .insert_all(&changes);
        true
    }

    /// The newest version is durable on every copy in use.
    pub(super) fn arrive(&self) {
        self.flight.take();
        if !self.changed.get() {
            // It has all that the record has.
            self.unrecorded.set(false);
            self.record.take();
        }
    }

    /// The log has a newer record. The one before is of no use any more: it was on top of the same
    /// version.
    pub(super) fn set_record(&self, held: Held) {
        if let Some(flight) = &mut *self.flight.borrow_mut() {
            flight.record = None;
        }
        self.record.replace(Some(held));
    }

    /// The stamp of its newest record.
    pub(super) fn record_stamp(&self) -> Option<u64> {
        let stamp = |held: &Option<Held>| held.as_ref().map(|held| held.stamp);
        let flight = self.flight.borrow();
        let before = flight.as_ref().and_then(|flight| stamp(&flight.record));
        stamp(&self.record.borrow()).or(before)
    }

    /// Whether some change is not in a version that is durable.
    pub(super) fn is_ahead(&self) -> bool {
        self.changed.get() || self.flight.borrow().is_some()
    }

    /// What has changed since the version that is durable, or, without `flight`, since the one that
    /// is on its way.
    pub(super) fn changes(&self, flight: Option<&Flight>) -> Vec<(u16, Sum)> {
        let (sums, changes) = (self.sums.borrow(), self.changes.borrow());
        let places = changes.places_with(flight.map(|flight| &flight.changes));
        places.map(|at| (at as u16, sums.get(at))).collect()
    }
}
