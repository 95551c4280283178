//! The sums of all data blocks, apart from the data, on several drives, and in RAM as
//! far as the budget goes.
//!
//! Invariants:
//! - A block of sums is read from all its copies, and the newest counts: so a write
//!   that a drive lost, tore or put elsewhere shows, and is put right.
//! - A new version is written only when the one before is durable on every copy in
//!   use, and to the other slot.
//! - What changes a sum is in a log first. So a copy that is put right never takes a
//!   write to a whole one: it gets the very slots of that one.
//! - A copy is whole when both its slots are: with one, it may be behind, and what it
//!   calls unwritten need not be. So it is believed only beside a whole copy, or where
//!   the logs have what a crash may have torn.
//! - When no copy can be had, every block it speaks for counts as lost: never as
//!   unwritten.
//! - Dirty blocks stay in RAM until they are flushed. What has changed in them may be durable in
//!   the data log meanwhile ([`record`]).
//! - Where buffers have no bytes, drives keep no sums: what is loaded is what went out of
//!   RAM ([`kept`]), and costs the reads that it would cost.

mod ahead;
mod areas;
pub mod block;
mod copied;
mod dirty;
mod flush;
mod held;
mod kept;
mod load;
mod record;
mod sum;
mod sums;
mod watermark;

pub use record::{RecordError, SUMS_ITEM, SUMS_ON_THEIR_WAY_ITEM, SumRecord};
pub use sum::Sum;
pub use watermark::Watermark;

use crate::drive::DriveError;
use crate::drives::{Drives, Zone};
use crate::group_commit::GroupCommit;
use crate::layout::{SumMap, ZoneShape};
use crate::range_lock::RangeLock;
use crate::world::World;
use dirty::{Changes, Dirty, Flight};
use futures_channel::oneshot;
use futures_util::future::join_all;
use futures_util::lock::Mutex;
use held::Held;
use kept::KeptSums;
use record::Records;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use sums::Sums;

/// Blocks that a new budget looks at, at most: so it keeps nobody waiting for long.
const EVICTION_STEPS_OF_BUDGET: usize = 1 << 14;

/// Counters since the opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntegrityStats {
    /// Blocks of sums read from drives.
    pub loads: u64,
    /// Drive writes of blocks of sums.
    pub writes: u64,
    /// Copies that were behind, torn or astray, and have been put right.
    pub mended: u64,
    /// Blocks of sums of which no copy could be had.
    pub lost: u64,
    /// Blocks of sums in RAM.
    pub resident: u64,
    /// Of them, not flushed yet.
    pub dirty: u64,
    /// Records of what has changed in a block that went to the log.
    pub records: u64,
}

/// A block of sums in RAM.
struct Cached {
    zone: u32,
    index: u32,
    sums: RefCell<Sums>,
    version: Cell<u64>,
    /// Log entries up to this stamp were in it when it came from the drives.
    up_to: u64,
    /// In the list of those that the next flush has something to do for.
    dirty: Cell<bool>,
    /// Sums changed, and the logs have what changed.
    changed: Cell<bool>,
    /// Which ones.
    changes: RefCell<Changes>,
    /// Some of them changed since `record` was made.
    unrecorded: Cell<bool>,
    /// What of it is in the log, in one entry.
    record: RefCell<Option<Held>>,
    /// What is on its way to the drives. `version` is that version then.
    flight: RefCell<Option<Flight>>,
    /// To be written for a reason that the logs do not have: one copy after the other.
    anew: Cell<bool>,
    /// Places whose copy is to become what a whole one is.
    behind: RefCell<Vec<usize>>,
    /// Looked at since the clock came by.
    used: Cell<bool>,
}

enum Slot {
    Loaded(Rc<Cached>),
    /// Somebody reads it; these wait.
    Loading(Vec<oneshot::Sender<()>>),
}

/// The sums of a pool.
pub struct Integrity<W: World> {
    world: W,
    drives: Rc<Drives<W>>,
    budget_blocks: Cell<usize>,
    /// See [`Integrity::set_apart`].
    is_apart: Cell<bool>,
    slots: RefCell<FxHashMap<u64, Slot>>,
    /// The order in which blocks are looked at for eviction.
    clock: RefCell<VecDeque<u64>>,
    dirty: Rc<Dirty>,
    flushing: GroupCommit<Result<(), DriveError>>,
    /// Whoever writes blocks has it.
    writing: RangeLock,
    /// Whoever makes records has it.
    recording: Mutex<()>,
    /// Blocks are being written that records can't speak for.
    is_mending: Cell<bool>,
    records: Records,
    /// What is not in RAM, where drives keep no bytes.
    kept: RefCell<KeptSums>,
    /// Blocks that a crash may have torn on all copies: the logs have what changed.
    may_be_torn: RefCell<FxHashSet<u64>>,
    /// What log entries have done to the sums so far.
    pub watermark: Rc<Watermark>,
    stats: RefCell<IntegrityStats>,
}

/// Sums held in RAM, for looking at and changing without a wait.
pub struct Pinned {
    /// First integrity block of the run.
    map: SumMap,
    /// With the number of each.
    blocks: Vec<(u64, Rc<Cached>)>,
    dirty: Rc<Dirty>,
    /// There are no bytes whose sums these could be, and drives write sums.
    is_modelled: bool,
}

fn key(zone: u32, index: u64) -> u64 {
    u64::from(zone) << 32 | index
}

impl<W: World> Integrity<W> {
    /// A table that keeps about `budget_blocks` blocks of sums in RAM, 4 KiB each (about
    /// 150 bytes each where buffers have no bytes).
    pub fn new(drives: Rc<Drives<W>>, budget_blocks: usize, watermark: Rc<Watermark>) -> Self {
        Integrity {
            world: drives.world().clone(),
            drives,
            budget_blocks: Cell::new(budget_blocks.max(1)),
            is_apart: Cell::new(true),
            slots: RefCell::default(),
            clock: RefCell::default(),
            dirty: Rc::default(),
            flushing: GroupCommit::default(),
            writing: RangeLock::default(),
            recording: Mutex::new(()),
            is_mending: Cell::new(false),
            records: Records::default(),
            kept: RefCell::default(),
            may_be_torn: RefCell::default(),
            watermark,
            stats: RefCell::default(),
        }
    }

    /// Changes how many blocks of sums are kept in RAM. Where these are fewer than before, some go
    /// now, and others with each that is read.
    pub fn set_budget(&self, blocks: usize) {
        self.budget_blocks.set(blocks.max(1));
        self.evict(EVICTION_STEPS_OF_BUDGET);
    }

    /// How many blocks of sums are kept in RAM at most, about.
    pub fn budget_blocks(&self) -> usize {
        self.budget_blocks.get()
    }

    /// How many blocks of sums the zones in use have.
    pub fn blocks_on_drives(&self) -> u64 {
        let zones = self.drives.zones();
        zones.iter().map(|zone| zone.shape.sums.count()).sum()
    }

    /// Whether sums are written apart from their blocks. Drives that carry them along, in sectors of
    /// 520 bytes or the like, have no such writes; they can only be modelled.
    pub fn set_apart(&self, apart: bool) {
        self.is_apart.set(apart);
    }

    /// The sum of a block, when it is in RAM.
    pub fn peek(&self, zone: &ZoneShape, block: u64) -> Option<Sum> {
        let (index, at) = zone.sums.place(block);
        match self.slots.borrow().get(&key(zone.zone, index))? {
            Slot::Loaded(cached) => {
                cached.used.set(true);
                Some(cached.sums.borrow().get(at))
            }
            Slot::Loading(_) => None,
        }
    }

    /// Whether the sums of `blocks` are in RAM.
    pub fn has(&self, zone: &ZoneShape, blocks: Range<u64>) -> bool {
        let slots = self.slots.borrow();
        let mut parts = zone.sums.parts(blocks);
        parts.all(|(index, _)| match slots.get(&key(zone.zone, index)) {
            Some(Slot::Loaded(cached)) => {
                cached.used.set(true);
                true
            }
            _ => false,
        })
    }

    /// Brings the sums of `blocks` into RAM and keeps them there. Sums that can't be
    /// had come as [`Sum::LOST`].
    pub async fn pin(&self, zone: &ZoneShape, blocks: Range<u64>) -> Pinned {
        let mut pinned = Pinned {
            map: zone.sums,
            blocks: Vec::with_capacity(1),
            dirty: Rc::clone(&self.dirty),
            is_modelled: self.is_byteless() && self.is_apart.get(),
        };
        let mut indices: SmallVec<[u64; 4]> = SmallVec::new();
        for (index, _) in zone.sums.parts(blocks) {
            if !indices.contains(&index) {
                indices.push(index);
            }
        }
        match indices[..] {
            [index] => {
                let cached = self.cached(zone.zone, index).await;
                pinned.blocks.push((index, cached));
            }
            _ => {
                let loads = indices.iter().map(|index| self.cached(zone.zone, *index));
                let cached = join_all(loads).await;
                pinned.blocks.extend(indices.into_iter().zip(cached));
            }
        }
        pinned
    }

    /// The logs have a change of this block's sum: a crash may have torn the sums on
    /// all copies.
    pub fn may_be_torn(&self, zone: &ZoneShape, block: u64) {
        let key = key(zone.zone, zone.sums.place(block).0);
        self.may_be_torn.borrow_mut().insert(key);
    }

    /// Whether a zone has sums that are not flushed.
    pub fn is_dirty(&self, zone: u32) -> bool {
        self.dirty.has_any_of(zone) || self.records.has_any_of(zone)
    }

    /// Forgets the blocks of a zone that goes out of use; all of them are flushed.
    ///
    /// # Panics
    /// When one is not.
    pub fn forget_zone(&self, zone: u32) {
        let of_zone = |key: &u64| (*key >> 32) as u32 == zone;
        assert!(
            !self.is_dirty(zone),
            "zone {zone} goes out of use with checksums not flushed"
        );
        self.slots.borrow_mut().retain(|key, _| !of_zone(key));
        self.clock.borrow_mut().retain(|key| !of_zone(key));
        self.may_be_torn.borrow_mut().retain(|key| !of_zone(key));
        self.kept.borrow_mut().forget(zone);
    }

    /// Has the sums of `blocks` say what they would if these had been written long ago,
    /// in RAM and, as far as that can be, on the drives. Only where buffers have no bytes.
    ///
    /// # Panics
    /// Where they have.
    pub(crate) fn lay_out(&self, zone: &Zone<W>, blocks: Range<u64>) {
        assert!(
            self.is_byteless(),
            "checksums of data with bytes come from the data"
        );
        let number = zone.shape.zone;
        for (index, part) in zone.shape.sums.parts(blocks) {
            if let Some(Slot::Loaded(cached)) = self.slots.borrow().get(&key(number, index)) {
                cached.sums.borrow_mut().write_bytelessly(part);
                continue;
            }
            let mut kept = self.kept.borrow_mut();
            let block = kept.block(
                (number, index),
                zone.shape.sums.count(),
                self.first_version(),
            );
            block.sums.write_bytelessly(part);
        }
    }

    /// Whether drives keep no sums, since there are no bytes to keep.
    fn is_byteless(&self) -> bool {
        self.world.buffers().is_length_only()
    }

    /// The number of the first version that this opening of the pool writes.
    fn first_version(&self) -> u64 {
        self.drives.epoch() << 32
    }

    /// Whether so much is dirty that it should be flushed.
    pub fn wants_flush(&self) -> bool {
        self.dirty.blocks() * 2 > self.budget_blocks.get()
    }

    /// Whether the next flush has something to do.
    pub fn has_unflushed(&self) -> bool {
        self.dirty.blocks() > 0 || self.records.found() > 0
    }

    /// Its counters at this moment.
    pub fn stats(&self) -> IntegrityStats {
        IntegrityStats {
            resident: self.slots.borrow().len() as u64,
            dirty: self.dirty.blocks() as u64,
            ..*self.stats.borrow()
        }
    }

    fn count(&self, change: impl FnOnce(&mut IntegrityStats)) {
        change(&mut self.stats.borrow_mut());
    }
}

impl Cached {
    /// As it is on the drives.
    fn new((zone, index): (u32, u64), version: u64, up_to: u64, sums: Sums) -> Self {
        Cached {
            zone,
            index: index as u32,
            sums: RefCell::new(sums),
            version: Cell::new(version),
            up_to,
            dirty: Cell::new(false),
            changed: Cell::new(false),
            changes: RefCell::default(),
            unrecorded: Cell::new(false),
            record: RefCell::default(),
            flight: RefCell::default(),
            anew: Cell::new(false),
            behind: RefCell::default(),
            used: Cell::new(true),
        }
    }
}

impl Pinned {
    fn at(&self, block: u64) -> (&Rc<Cached>, usize) {
        let (index, at) = self.map.place(block);
        let Some(cached) = self.find(index) else {
            panic!("the checksum of block {block} is not pinned")
        };
        (cached, at)
    }

    fn find(&self, index: u64) -> Option<&Rc<Cached>> {
        let found = self.blocks.iter().find(|(other, _)| *other == index);
        found.map(|(_, cached)| cached)
    }

    /// The sum of a block.
    pub fn get(&self, block: u64) -> Sum {
        let (cached, at) = self.at(block);
        cached.sums.borrow().get(at)
    }

    /// Changes the sum of a block to what a log entry with that stamp has, unless the
    /// drives had that, or what came after it, already.
    pub fn set_again(&self, block: u64, sum: Sum, stamp: u64) {
        let (cached, _) = self.at(block);
        if cached.up_to < stamp {
            self.set(block, sum);
        }
    }

    /// Changes the sum of a block, as a log has it; a flush makes it durable.
    pub fn set(&self, block: u64, sum: Sum) {
        let (cached, at) = self.at(block);
        // Without bytes all data has one sum; on drives each write changes it.
        let is_of_data = self.is_modelled && sum != Sum::UNWRITTEN;
        if cached.sums.borrow_mut().set(at, sum) != sum || is_of_data {
            cached.set_changed(at, &self.dirty);
        }
    }
}
