//! Where the journal of an open lane stands: the place of the next batch, the batches in flight, and
//! the checkpoint that frees the area behind.
//!
//! The cursor writes nothing: `commit` does, step by step, and asks the cursor for places.
//! Invariants:
//! - Inside a generation batches lie side by side, numbered without a gap, and inside the area.
//! - A generation is larger than all before it, so its area is never taken for an older one.
//! - A batch knows the batch before it. It becomes part of the state only after that one.
//! - At most [`BATCHES_AT_ONCE`] batches are in flight: recovery looks no further.

use crate::error::PoolError;
use crate::group_commit::GroupCommit;
use crate::meta::Record;
use crate::meta::journal::BATCHES_AT_ONCE;
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::Shared;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Ends when a checkpoint is durable, or has failed.
pub(super) type CheckpointEnd = Shared<oneshot::Receiver<()>>;

/// Ends with the outcome of a batch.
pub(super) type BatchEnd = Shared<oneshot::Receiver<Result<(), PoolError>>>;

/// The place of a batch in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchPlace {
    pub generation: u64,
    pub sequence: u64,
    /// Bytes of the generation's area before it.
    pub offset: u64,
}

/// A batch that has a place, and goes on its way now.
#[derive(Debug)]
pub(super) struct BatchStart {
    /// The batch before it, if any has to end first.
    pub before: Option<BatchEnd>,
    /// Takes the outcome, for all who wait for the batch.
    pub done: oneshot::Sender<Result<(), PoolError>>,
}

/// Where the journal stands. See `docs/internals/format.md`, "Metadata".
#[derive(Debug, Default)]
pub(super) struct JournalCursor {
    generation: Cell<u64>,
    /// Bytes used of the generation's area.
    used_bytes: Cell<u64>,
    /// Of the next batch.
    sequence: Cell<u64>,
    /// Records that wait for the next batch, as their callers gave them.
    pending: RefCell<Vec<Vec<Record>>>,
    /// Gives batches their places: the last of those that a caller's records are in.
    turns: GroupCommit<Result<Option<BatchEnd>, PoolError>>,
    /// Batches that are being written, in order.
    in_flight: RefCell<VecDeque<BatchEnd>>,
    /// A checkpoint is to be written before the next batch.
    checkpoint_wanted: Cell<bool>,
    /// The end of the checkpoint of this generation.
    checkpoint: RefCell<Option<CheckpointEnd>>,
}

impl JournalCursor {
    /// Has records wait for the next batch; they stay together.
    pub fn queue(&self, records: Vec<Record>) {
        self.pending.borrow_mut().push(records);
    }

    /// All that waits, in the order of its callers.
    pub fn take_queued(&self) -> Vec<Vec<Record>> {
        self.pending.take()
    }

    /// Runs `place`, which gives what waits its places, or waits for another caller's run that
    /// begins after now.
    pub async fn in_turn(
        &self,
        place: impl AsyncFnOnce() -> Result<Option<BatchEnd>, PoolError>,
    ) -> Result<Option<BatchEnd>, PoolError> {
        self.turns.run(place).await
    }

    /// Whether a batch of `bytes` fits an area of `area_bytes` behind those that are there.
    pub fn fits(&self, bytes: u64, area_bytes: u64) -> bool {
        self.used_bytes.get() + bytes <= area_bytes
    }

    /// The batch that has to end before another may begin, if too many are in flight.
    pub fn take_oldest_of_too_many(&self) -> Option<BatchEnd> {
        let mut in_flight = self.in_flight.borrow_mut();
        match in_flight.len() >= BATCHES_AT_ONCE {
            true => in_flight.pop_front(),
            false => None,
        }
    }

    /// The place for a batch of `bytes` in an area of `area_bytes`; the next batch lies behind it.
    ///
    /// # Panics
    /// When it does not fit: it would overwrite the other area.
    pub fn take_place(&self, bytes: u64, area_bytes: u64) -> BatchPlace {
        let offset = self.used_bytes.get();
        assert!(
            self.fits(bytes, area_bytes),
            "a batch of {bytes} bytes at {offset} overflows a journal area of {area_bytes}"
        );
        self.used_bytes.set(offset + bytes);
        BatchPlace {
            generation: self.generation.get(),
            sequence: self.sequence.replace(self.sequence.get() + 1),
            offset,
        }
    }

    /// A batch that was given the last place is in flight from now on.
    ///
    /// # Panics
    /// When too many are: recovery would not find the last.
    pub fn begin_batch(&self) -> BatchStart {
        let mut in_flight = self.in_flight.borrow_mut();
        assert!(
            in_flight.len() < BATCHES_AT_ONCE,
            "{} batches are in flight",
            in_flight.len()
        );
        let before = in_flight.back().cloned();
        let (done, end) = oneshot::channel();
        in_flight.push_back(end.shared());
        BatchStart { before, done }
    }

    /// The last batch that was begun, if any may be in flight.
    pub fn last_batch(&self) -> Option<BatchEnd> {
        self.in_flight.borrow().back().cloned()
    }

    /// All batches have ended.
    pub fn forget_batches(&self) {
        self.in_flight.borrow_mut().clear();
    }

    /// Has a checkpoint written before the next batch.
    pub fn want_checkpoint(&self) {
        self.checkpoint_wanted.set(true);
    }

    /// Whether one is wanted; whoever asks writes it.
    pub fn take_wanted_checkpoint(&self) -> bool {
        self.checkpoint_wanted.replace(false)
    }

    /// The end of the last checkpoint that was begun since the opening.
    pub fn checkpoint_end(&self) -> Option<CheckpointEnd> {
        self.checkpoint.borrow().clone()
    }

    /// A checkpoint begins; the sender says that it has ended.
    pub fn begin_checkpoint(&self) -> oneshot::Sender<()> {
        let (done, end) = oneshot::channel();
        self.checkpoint.replace(Some(end.shared()));
        done
    }

    /// The generation of the next batch.
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// Goes to the start of a generation's area.
    ///
    /// # Panics
    /// When the generation is not a new one, or a batch of another is in flight.
    pub fn begin_generation(&self, generation: u64) {
        assert!(
            generation > self.generation.get(),
            "generation {generation} of the journal follows {}",
            self.generation.get()
        );
        assert!(
            self.in_flight.borrow().is_empty(),
            "a generation of the journal begins while batches are in flight"
        );
        self.generation.set(generation);
        self.used_bytes.set(0);
        self.sequence.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_lie_side_by_side_and_each_knows_the_one_before() {
        let cursor = JournalCursor::default();
        cursor.begin_generation(7);
        assert!(cursor.fits(4096, 8192) && !cursor.fits(8193, 8192));
        let first = cursor.take_place(4096, 8192);
        let one = cursor.begin_batch();
        let second = cursor.take_place(4096, 8192);
        let two = cursor.begin_batch();
        assert_eq!((first.generation, first.sequence, first.offset), (7, 0, 0));
        assert_eq!((second.sequence, second.offset), (1, 4096));
        assert!(one.before.is_none());
        assert!(two.before.is_some_and(|before| before.peek().is_none()));
        assert!(!cursor.fits(1, 8192));
    }

    #[test]
    fn too_many_batches_wait_for_the_oldest() {
        let cursor = JournalCursor::default();
        let started: Vec<_> = (0..BATCHES_AT_ONCE).map(|_| cursor.begin_batch()).collect();
        assert!(cursor.take_oldest_of_too_many().is_some());
        assert!(cursor.take_oldest_of_too_many().is_none());
        assert_eq!(started.len(), BATCHES_AT_ONCE);
        cursor.forget_batches();
        assert!(cursor.last_batch().is_none());
    }

    #[test]
    #[should_panic(expected = "overflows a journal area")]
    fn a_batch_never_overflows_its_area() {
        JournalCursor::default().take_place(8193, 8192);
    }

    #[test]
    #[should_panic(expected = "follows 3")]
    fn a_generation_is_never_begun_again() {
        let cursor = JournalCursor::default();
        cursor.begin_generation(3);
        cursor.begin_generation(3);
    }

    #[test]
    #[should_panic(expected = "while batches are in flight")]
    fn a_generation_begins_behind_all_batches() {
        let cursor = JournalCursor::default();
        let _batch = cursor.begin_batch();
        cursor.begin_generation(1);
    }
}
