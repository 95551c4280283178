//! Admission of writes to the log: who waits while much of it is still to go in place.
//!
//! A log that runs full frees its room in lumps: as much as a sweep puts in place. So a write
//! waits earlier, for its turn: while what waits to go in place takes more than
//! [`WAITING_LOG_PARTS`] of the log. Each stripe that is in place lets the next writes in: fewer and
//! fewer beyond that, none beyond [`RISING_LOG_PARTS`] more. The rest takes what is in place and not
//! let go of yet, so the log itself stays short of full.
//!
//! Invariants:
//! - Writes are admitted in the order in which they come.
//! - While somebody waits, the destager has work that is due: each settled stripe, and each tick
//!   of the destager, looks at who waits. When the pool stops, all are admitted, and refused by the
//!   log.

use super::Store;
use crate::world::World;
use futures_channel::oneshot;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// So many parts of the log, of so many, may wait to go in place before writes wait. The destager
/// takes young entries, too, earlier than that ([`Store::log_is_filling`]).
const WAITING_LOG_PARTS: (u64, u64) = (3, 4);

/// The same, where records of sums take their part of the log.
const WAITING_BESIDE_RECORDS_PARTS: (u64, u64) = (1, 2);

/// Over one in so many parts of the log the back-pressure rises, until no write is let in.
const RISING_LOG_PARTS: u64 = 16;

/// A block that may come for one that went in place, in parts: so small stripes count, too.
const EXCHANGED_BLOCK: u64 = 1 << 10;

/// Over about so many blocks is the mean of the bytes that the log takes for a block. What is
/// believed to wait would jump with each large batch of writes otherwise, and writes would stop.
const LATELY_BLOCKS: u64 = 16384;

/// A write that waits for its turn.
struct Waiting {
    blocks: usize,
    turn: oneshot::Sender<Admitted>,
}

/// Who waits, and what is admitted and not in the index yet.
#[derive(Default)]
pub(super) struct Admission {
    waiting: RefCell<VecDeque<Waiting>>,
    admitted_blocks: Rc<Cell<usize>>,
    /// What may come for blocks that went in place lately, though much waits.
    exchanged: Cell<u64>,
    /// Bytes that the log has taken, of which [`Store::note_logged`] knows.
    noted_bytes: Cell<u64>,
    /// Bytes that it took lately, and blocks.
    lately: Cell<(u64, u64)>,
}

/// A write on its way to the log; it counts as one that waits to go in place.
pub(super) struct Admitted {
    all_blocks: Rc<Cell<usize>>,
    blocks: usize,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.all_blocks.set(self.all_blocks.get() - self.blocks);
    }
}

impl<W: World> Store<W> {
    /// Waits until the log takes a write of so many blocks.
    pub(super) async fn admit(&self, blocks: usize) -> Admitted {
        let nobody_waits = self.admission.waiting.borrow().is_empty();
        if nobody_waits && (self.takes_more() || self.check().is_err()) {
            return self.admitted(blocks);
        }
        self.world.reached("write waits for stripes to go in place");
        let (turn, waiting) = oneshot::channel();
        let next = Waiting { blocks, turn };
        self.admission.waiting.borrow_mut().push_back(next);
        self.destager.set();
        match waiting.await {
            Ok(admitted) => admitted,
            Err(oneshot::Canceled) => unreachable!("everybody is admitted"),
        }
    }

    /// Lets in those whose turn it is.
    pub(super) fn admit_next(&self) {
        while self.check().is_err() || self.takes_more() {
            let Some(next) = self.admission.waiting.borrow_mut().pop_front() else {
                return;
            };
            // Who has gone gives back what was admitted.
            let _ = next.turn.send(self.admitted(next.blocks));
        }
    }

    fn admitted(&self, blocks: usize) -> Admitted {
        let exchanged = &self.admission.exchanged;
        let taken = blocks as u64 * EXCHANGED_BLOCK;
        exchanged.set(exchanged.get().saturating_sub(taken));
        let all_blocks = Rc::clone(&self.admission.admitted_blocks);
        all_blocks.set(all_blocks.get() + blocks);
        Admitted { all_blocks, blocks }
    }

    fn takes_more(&self) -> bool {
        self.admission.exchanged.get() >= EXCHANGED_BLOCK
            || self.waiting_bytes() < self.free_bytes()
    }

    /// Below so many bytes that wait, writes are let in freely.
    pub(super) fn free_bytes(&self) -> u64 {
        self.log_bytes(WAITING_LOG_PARTS, WAITING_BESIDE_RECORDS_PARTS)
    }

    /// So many parts of the log, of so many; others where records of sums take their part of it.
    pub(super) fn log_bytes(&self, usual: (u64, u64), beside_records: (u64, u64)) -> u64 {
        let (parts, of) = match self.integrity.keeps_records() {
            true => beside_records,
            false => usual,
        };
        self.log.capacity_bytes() * parts / of
    }

    /// So many blocks went in place: others may come for them, fewer the more wait.
    pub(super) fn exchange(&self, blocks: usize) {
        let over = self.waiting_bytes().saturating_sub(self.free_bytes());
        let rising = (self.log.capacity_bytes() / RISING_LOG_PARTS).max(1);
        let exchanged = &self.admission.exchanged;
        let nobody_waits = self.admission.waiting.borrow().is_empty();
        exchanged.set(match over == 0 || nobody_waits {
            true => 0,
            false => {
                let share = rising - over.min(rising);
                exchanged.get() + blocks as u64 * EXCHANGED_BLOCK * share / rising
            }
        });
    }

    /// Bytes of the log that are to go in place still, about: blocks differ in what they take.
    pub(super) fn waiting_bytes(&self) -> u64 {
        let admitted = self.admission.admitted_blocks.get();
        self.bytes_of(self.index.borrow().blocks() + admitted)
    }

    /// Bytes that the log takes for so many blocks, about.
    pub(super) fn bytes_of(&self, blocks: usize) -> u64 {
        let (bytes, all_blocks) = self.admission.lately.get();
        blocks as u64 * (bytes / all_blocks.max(1))
    }

    /// Has an entry without blocks that wait not count for those of others.
    pub(super) fn note_logged_sums(&self, head_bytes: usize) {
        let noted_bytes = &self.admission.noted_bytes;
        let bytes = (head_bytes as u64).next_multiple_of(super::BLOCK);
        noted_bytes.set(noted_bytes.get() + bytes);
    }

    /// Takes note of the bytes that the log took for so many blocks.
    pub(super) fn note_logged(&self, blocks: usize) {
        let admission = &self.admission;
        let taken_bytes = self.log.taken_bytes();
        let noted_bytes = admission.noted_bytes.replace(taken_bytes);
        let new_bytes = taken_bytes.saturating_sub(noted_bytes);
        let (bytes, all_blocks) = admission.lately.get();
        let (bytes, all_blocks) = (bytes + new_bytes, all_blocks + blocks as u64);
        admission.lately.set(match all_blocks > LATELY_BLOCKS {
            true => (bytes / 2, all_blocks / 2),
            false => (bytes, all_blocks),
        });
    }
}
