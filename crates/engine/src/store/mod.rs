//! The blocks of a pool by address: logged, checked against their sums, mended.
//!
//! A write is durable once it is in the data log; what is in place follows, stripe
//! by stripe. Invariants (`README.md` beside this file says why):
//! - A row changes in place only under its stripe's lock, and (a) after its intent
//!   is durable, or (b) without one, if the stripe has no live intent and the whole
//!   row is in the data log, or fresh, or the code is a mirror.
//! - Log entries and intents are let go only when what they say is durable in place,
//!   sums included.
//! - What a read gives out has been checked against its sum.
//!
//! Rooms: [`address`] (where a block lies), `locks`, `index` (what is not in place
//! yet), `entry` (heads of log entries), `read`, `cold` (reads of what has no sums in RAM), `over` (pages over others), `ahead` (before it is asked for), `write`
//! (into the log, or around it), `row` (what a row holds, put together if need be), `plan` and `parity` (what
//! has to change in place), `change` (changing it), `intents` (what is made durable before), `destage` and `window` (when), `keep` (how
//! the logs are let go of), `heal` (stripes
//! looked through and put right), `forget` (blocks and zones given up), `freed` (pages given back), `replay` (after a crash), `counts`, `debt`.

pub mod address;
mod admission;
mod ahead;
pub(crate) mod change;
mod cold;
pub mod counts;
mod debt;
mod destage;
pub mod entry;
mod forget;
mod freed;
mod heal;
mod index;
mod intents;
mod keep;
mod locks;
mod over;
mod parity;
mod plan;
mod read;
mod replay;
mod row;
mod signal;
mod window;
mod write;

pub use address::StripeRef;
pub use debt::Debt;
pub use heal::Healed;
pub use index::Flow;
pub use locks::StripeGuard;
pub use read::Unreadable;
pub use write::Write;

use crate::cache::ReadCache;
use crate::drives::{Drives, Zone};
use crate::error::PoolError;
use crate::error::PoolErrorKind;
use crate::integrity::Integrity;
use crate::pages::Space;
use crate::ring::{Hold, Ring};
use crate::world::World;
use address::{InStripe, ZoneAddress};
use base::{BLOCK_BYTES, PhysPage, PoolOffset};
use counts::{Counts, IoCounts, Operations};
use freed::Freed;
use index::Index;
use locks::StripeLocks;
use rustc_hash::{FxHashMap, FxHashSet};
use signal::Signal;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// The blocks of a pool.
pub struct Store<W: World> {
    pub world: W,
    pub drives: Rc<Drives<W>>,
    pub integrity: Integrity<W>,
    /// Every change of data goes here first.
    pub log: Rc<Ring<W>>,
    /// What is about to be changed in place where there is parity.
    pub intents: Rc<Ring<W>>,
    pub space: Rc<RefCell<Space>>,
    pub cache: ReadCache,
    pub counts: Counts,
    pub(crate) locks: StripeLocks,
    index: RefCell<Index>,
    /// Stamp of the last intent of each stripe that had one.
    last_intents: RefCell<FxHashMap<StripeRef, u64>>,
    /// Pages that were given back while the log may still have something for them.
    freed: RefCell<Freed>,
    /// Blocks that can't be had, by pool address, of which that has been told.
    told_lost: RefCell<FxHashSet<u64>>,
    /// In place, but for the sums: let go once they are flushed.
    settled: RefCell<Vec<Rc<Hold>>>,
    /// A task writes blocks of sums.
    writes_sums: Cell<bool>,
    /// There may be something to destage.
    pub(crate) destager: Signal,
    /// There may be something to let go in the logs.
    pub(crate) keeper: Signal,
    /// There may be something to do for the drives.
    pub(crate) lifeline: Signal,
    /// A page lies over another.
    pub(crate) filler: Signal,
    intent_queue: intents::IntentQueue,
    admission: admission::Admission,
    window: window::Window,
    /// Nobody uses the store any more.
    ended: Cell<bool>,
}

/// A block of the pool: its zone, and its number there.
pub(crate) struct BlockAt<W: World> {
    pub zone: Rc<Zone<W>>,
    pub block: u64,
}

impl<W: World> Store<W> {
    /// Its parts, put together.
    pub fn new(
        drives: Rc<Drives<W>>,
        integrity: Integrity<W>,
        (log, intents): (Rc<Ring<W>>, Rc<Ring<W>>),
        space: Rc<RefCell<Space>>,
        cache: ReadCache,
    ) -> Self {
        Store {
            world: drives.world().clone(),
            drives,
            integrity,
            log,
            intents,
            space,
            cache,
            counts: Counts::default(),
            locks: StripeLocks::default(),
            index: RefCell::default(),
            last_intents: RefCell::default(),
            freed: RefCell::default(),
            told_lost: RefCell::default(),
            settled: RefCell::default(),
            writes_sums: Cell::new(false),
            destager: Signal::default(),
            keeper: Signal::default(),
            lifeline: Signal::default(),
            filler: Signal::default(),
            intent_queue: intents::IntentQueue::default(),
            admission: admission::Admission::default(),
            window: window::Window::default(),
            ended: Cell::new(false),
        }
    }

    fn page_blocks(&self) -> u64 {
        self.drives.page_bytes() / BLOCK
    }

    /// The zone of a block, and its number there.
    ///
    /// # Panics
    /// When no zone is there: every mapped page lies in one.
    pub(crate) fn block_at(&self, at: PoolOffset) -> BlockAt<W> {
        assert!(
            at.0.is_multiple_of(BLOCK),
            "address {at} is off the block grain"
        );
        let Some((zone, block)) = self.place_of(at.0 / BLOCK) else {
            panic!("address {at} lies in no zone");
        };
        match self.drives.zone(zone) {
            Some(zone) => BlockAt { zone, block },
            None => panic!("address {at} lies in zone {zone}, which is not in use"),
        }
    }

    /// The zone of a block of the pool, in use or not, and the block's number there. `None` where
    /// no group has its page.
    fn place_of(&self, block: u64) -> Option<(u32, u64)> {
        let of_page = self.page_blocks();
        let (zone, page) = self.drives.numbers().place(PhysPage(block / of_page))?;
        Some((zone, page * of_page + block % of_page))
    }

    /// The pool address of a zone's block, in blocks.
    fn pool_block(&self, zone: &Zone<W>, block: u64) -> u64 {
        zone.first_page.0 * self.page_blocks() + block
    }

    /// Whether the page that a zone's block belongs to is in use.
    fn is_used(&self, zone: &Zone<W>, block: u64) -> bool {
        self.space.borrow().is_used(self.page_of(zone, block))
    }

    /// Whether that page has an owner who has not mapped it yet.
    fn is_young(&self, zone: &Zone<W>, block: u64) -> bool {
        self.space.borrow().is_young(self.page_of(zone, block))
    }

    fn page_of(&self, zone: &Zone<W>, block: u64) -> PhysPage {
        PhysPage(self.pool_block(zone, block) / self.page_blocks())
    }

    /// Gives a page back.
    pub(crate) fn release(&self, page: PhysPage) {
        self.space.borrow_mut().release(page);
        self.note_freed(page);
    }

    fn note_freed(&self, page: PhysPage) {
        let (last, tail) = (self.log.last_stamp(), self.log.tail_stamp());
        self.freed.borrow_mut().insert(page, last, tail);
    }

    /// Whether a replay could find something in the log from before the page was
    /// given back, also where sums and index know nothing of it any more: of what made
    /// them forget, the intent log may have let go before the data log gets there.
    fn was_just_freed(&self, page: PhysPage) -> bool {
        self.freed.borrow().has(page, self.log.tail_stamp())
    }

    fn locate(&self, at: &BlockAt<W>) -> InStripe {
        at.zone.locate(at.block)
    }

    /// Whether an intent for the stripe may still be redone at the next opening.
    fn has_live_intent(&self, stripe: StripeRef) -> bool {
        let last = self.last_intents.borrow().get(&stripe).copied();
        last.is_some_and(|stamp| stamp >= self.intents.tail_stamp())
    }

    /// That the pool has not stopped.
    pub(crate) fn check(&self) -> Result<(), PoolError> {
        self.drives.check()
    }

    /// Stops the pool for `reason`, and says so.
    pub(crate) fn stop(&self, reason: String) -> PoolError {
        self.drives.stop(reason.clone());
        PoolError::new(PoolErrorKind::Failed, reason)
    }

    /// Whether the log still has something from before the opening.
    pub(crate) fn has_replayed(&self) -> bool {
        self.index.borrow_mut().has_replayed()
    }

    /// What the drives were used for since the opening.
    pub fn io(&self) -> IoCounts {
        let ring = |(count, bytes): (u64, u64)| Operations { count, bytes };
        let sums = self.integrity.stats();
        IoCounts {
            log_writes: ring(self.log.writes()),
            intent_writes: ring(self.intents.writes()),
            sum_writes: ring((sums.writes, sums.writes * BLOCK)),
            sum_loads: sums.loads,
            ..self.counts.in_place()
        }
    }

    /// Blocks in the data log that are not in place yet.
    pub fn blocks_logged(&self) -> usize {
        self.index.borrow().blocks()
    }
}
