//! Making metadata records durable: [`Journal`], with its batches, generations and checkpoints.
//!
//! Order of writes and why it is safe: `docs/internals/format.md`, "Metadata".

use super::journal_cursor::{BatchEnd, BatchStart};
use crate::codec::Writer;
use crate::drives::{DriveFault, Member};
use crate::error::{PoolError, PoolErrorKind};
use crate::label::{LABEL_AREA_BYTES, PoolIdentity};
use crate::meta::Record;
use crate::meta::checkpoint::{self, Encoder, Step};
use crate::meta::journal::{BatchId, HEADER_BYTES, batch_bytes, encode_batch};
use crate::meta::record::RECORD_BYTES_MAX;
use crate::space::LaneState;
use crate::world::World;
use base::{DriveOffset, Slice};
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// How long the making of a checkpoint rests when it has nothing to write yet, so that
/// others can work.
const REST: Duration = Duration::from_micros(1);

/// Segments of a checkpoint that are on their way to the drives at once: the next ones are made
/// meanwhile.
const SEGMENTS_AT_ONCE: usize = 4;

async fn ended(batch: BatchEnd) -> Result<(), PoolError> {
    let gone = || PoolError::new(PoolErrorKind::Failed, "the pool has gone");
    batch.await.unwrap_or_else(|_| Err(gone()))
}

impl PoolIdentity {
    /// Where the journal area of `generation` begins on a metadata drive.
    pub fn journal_offset(&self, generation: u64) -> u64 {
        LABEL_AREA_BYTES + generation % 2 * u64::from(self.journal_bytes)
    }

    /// Where the checkpoint slot of `generation` begins on a metadata drive.
    pub fn checkpoint_offset(&self, generation: u64) -> u64 {
        let journals = 2 * u64::from(self.journal_bytes);
        LABEL_AREA_BYTES + journals + generation % 2 * self.checkpoint_bytes
    }

    /// Where both logs begin on each drive that carries them.
    pub fn logs_offset(&self) -> u64 {
        self.checkpoint_offset(0) + 2 * self.checkpoint_bytes
    }
}

/// The journal of a lane, and the checkpoints that free its areas.
pub(crate) struct Journal<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Journal<'a, W> {
    pub(crate) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Journal { lane }
    }

    /// Makes `records` durable and part of the state, in the order of calls: all of them
    /// at once, or as many at once as the journal takes. Concurrent callers share a batch.
    ///
    /// # Errors
    /// When the pool has stopped, or stops now.
    pub async fn commit(&self, records: Vec<Record>) -> Result<(), PoolError> {
        self.lane.check()?;
        if records.is_empty() {
            return Ok(());
        }
        self.lane.journal_cursor.queue(records);
        self.place_in_turn().await
    }

    /// Ends when all that waits for a place has one, and is durable.
    async fn place_in_turn(&self) -> Result<(), PoolError> {
        let placed = self
            .lane
            .journal_cursor
            .in_turn(async || self.place_queued().await);
        match placed.await? {
            Some(last) => ended(last).await,
            None => Ok(()),
        }
    }

    /// Gives what waits its places in the journal; the last batch in flight. Whoever came
    /// while a checkpoint was begun has his place already.
    async fn place_queued(&self) -> Result<Option<BatchEnd>, PoolError> {
        self.lane.check()?;
        if self.lane.journal_cursor.take_wanted_checkpoint() {
            self.next_generation().await?;
        }
        let mut waiting = self
            .lane
            .journal_cursor
            .take_queued()
            .into_iter()
            .peekable();
        let per_batch = self.records_at_once();
        while let Some(mut records) = waiting.next() {
            // What belongs together is not torn: a crash leaves all of it or nothing.
            while let Some(more) = waiting.next_if(|more| records.len() + more.len() <= per_batch) {
                records.extend(more);
            }
            for batch in records.chunks(per_batch) {
                self.begin_batch(batch.to_vec()).await?;
            }
        }
        Ok(self.lane.journal_cursor.last_batch())
    }

    /// Records that are durable together or not at all, however long they are.
    pub fn records_at_once(&self) -> usize {
        (self.lane.identity().journal_bytes as usize - HEADER_BYTES) / RECORD_BYTES_MAX
    }

    /// Makes records that are durable part of the state.
    fn apply(&self, batch: &[Record]) {
        for record in batch {
            self.lane.pages.apply(record);
            if let Record::Overlay { backing, .. } = record
                && self.lane.world.planted("backing not held")
            {
                self.lane.spoil(|state| state.refs.take(*backing));
            }
        }
        self.release_freed();
    }

    /// Gives back some pages of deleted volumes; whether there are more.
    pub(crate) fn release_some(&self) -> bool {
        let more = self.lane.pages.give_up_some();
        self.release_freed();
        more
    }

    /// Gives back the pages that nobody has any more: only now may others write there.
    fn release_freed(&self) {
        for page in self.lane.pages.take_freed() {
            self.lane.store.release(page);
        }
    }

    /// Gives a batch its place, and sends it on its way.
    async fn begin_batch(&self, records: Vec<Record>) -> Result<(), PoolError> {
        let mut payload = Writer::default();
        records
            .iter()
            .for_each(|record| record.encode(&mut payload));
        let bytes = batch_bytes(payload.bytes.len()) as u64;
        let area_bytes = u64::from(self.lane.identity().journal_bytes);
        if !self.lane.journal_cursor.fits(bytes, area_bytes) {
            self.next_generation().await?;
        }
        while let Some(oldest) = self.lane.journal_cursor.take_oldest_of_too_many() {
            ended(oldest).await?;
        }
        let place = self.lane.journal_cursor.take_place(bytes, area_bytes);
        let id = BatchId {
            pool: self.lane.identity().lane_uuid(),
            generation: place.generation,
            sequence: place.sequence,
        };
        let batch = self
            .lane
            .world
            .buffers()
            .copy_of(&encode_batch(id, &payload.bytes))
            .freeze();
        let at = self.lane.identity().journal_offset(place.generation) + place.offset;
        let BatchStart { before, done } = self.lane.journal_cursor.begin_batch();
        let inner = Rc::clone(self.lane);
        self.lane.world.spawn(async move {
            let outcome = inner
                .journal()
                .write_batch(at, batch, &records, before)
                .await;
            let _ = done.send(outcome);
        });
        Ok(())
    }

    /// Makes a batch durable, and part of the state once all before it are.
    async fn write_batch(
        &self,
        at: u64,
        batch: Slice,
        records: &[Record],
        before: Option<BatchEnd>,
    ) -> Result<(), PoolError> {
        let written = match self
            .lane
            .world
            .planted("journal record acknowledged before durable")
        {
            true => {
                let inner = Rc::clone(self.lane);
                self.lane.world.spawn(async move {
                    let _ = inner.journal().write_metadata(at, &batch).await;
                });
                Ok(())
            }
            false => self.write_metadata(at, &batch).await,
        };
        if let Some(before) = before.filter(|_| !self.lane.world.planted("batches in any order")) {
            ended(before).await?;
        }
        written?;
        self.apply(records);
        Ok(())
    }

    /// Ends when no batch is in flight.
    async fn all_batches_ended(&self) -> Result<(), PoolError> {
        if let Some(last) = self.lane.journal_cursor.last_batch() {
            ended(last).await?;
        }
        self.lane.journal_cursor.forget_batches();
        Ok(())
    }

    /// Moves on to the other journal area, and writes the checkpoint that makes the
    /// one left behind free behind the scenes.
    async fn next_generation(&self) -> Result<(), PoolError> {
        // The area ahead is free only once the checkpoint after it is durable.
        let planted = self
            .lane
            .world
            .planted("journal area reused before its checkpoint");
        let under_way = self.lane.journal_cursor.checkpoint_end();
        if let Some(durable) = under_way.filter(|durable| durable.peek().is_none() && !planted) {
            self.lane
                .world
                .reached("journal switch waits for a checkpoint");
            let _ = durable.await;
        }
        self.lane.check()?;
        // What is in flight belongs to the state that the checkpoint is of.
        self.all_batches_ended().await?;
        let done = self.lane.journal_cursor.begin_checkpoint();
        self.begin_generation(self.lane.journal_cursor.generation() + 1);
        let checkpoint = self.checkpoint_now();
        let inner = Rc::clone(self.lane);
        self.lane.world.spawn(async move {
            if let Err(error) = inner.journal().write_checkpoint(checkpoint).await {
                inner.stop(error.context);
            }
            let _ = done.send(());
        });
        Ok(())
    }

    /// Writes a checkpoint of the present state to every metadata drive. Records go on
    /// in a new generation meanwhile.
    ///
    /// # Errors
    /// When the pool has stopped, or stops now.
    pub async fn checkpoint_to_all(&self) -> Result<(), PoolError> {
        // One that is under way is waited for here: in their turn, records would wait too.
        self.checkpoint_ended().await;
        // Whoever's turn it is begins it: callers of the same turn share it.
        self.lane.journal_cursor.want_checkpoint();
        self.place_in_turn().await?;
        self.checkpoint_ended().await;
        self.lane.check()
    }

    /// Ends when the checkpoint that is on its way, if any, is durable or has failed.
    pub async fn checkpoint_ended(&self) {
        if let Some(durable) = self.lane.journal_cursor.checkpoint_end() {
            let _ = durable.await;
        }
    }

    /// Sets the journal to the start of `generation`'s area.
    pub fn begin_generation(&self, generation: u64) {
        self.lane.journal_cursor.begin_generation(generation);
    }

    /// The present state as a checkpoint of the present generation, to be written. What
    /// changes from now on is not in it.
    pub fn checkpoint_now(&self) -> Encoder {
        let identity = self.lane.identity();
        let segment_bytes = checkpoint::segment_bytes(identity.journal_bytes);
        let generation = self.lane.journal_cursor.generation();
        let state = self.lane.state();
        Encoder::new(identity.lane_uuid(), generation, segment_bytes, &state)
    }

    /// Writes a checkpoint durably to every metadata drive, a few pieces at a time; the
    /// header last, when everything that it speaks of is there.
    ///
    /// # Errors
    /// When the pool has stopped, or stops now. Nothing of it is on its way then.
    pub async fn write_checkpoint(&self, checkpoint: Encoder) -> Result<(), PoolError> {
        let identity = self.lane.identity();
        let slot = identity.checkpoint_offset(checkpoint.generation());
        let slot_bytes = identity.checkpoint_bytes;
        let header = RefCell::new(None);
        let outcome = RefCell::new(Ok(()));
        let first = (checkpoint, slot + checkpoint::HEADER_BYTES as u64);
        let pieces = stream::unfold(first, async |(mut checkpoint, at)| {
            // The pool has stopped: the rest helps nobody.
            if outcome.borrow().is_err() {
                return None;
            }
            let bytes = self.next_segment(&mut checkpoint, &header).await?;
            let end = at + bytes.len() as u64;
            assert!(
                end <= slot + slot_bytes,
                "a checkpoint overflows its slot of {slot_bytes} bytes"
            );
            Some(((at, bytes), (checkpoint, end)))
        });
        let write = async |(at, bytes): (u64, Vec<u8>)| {
            let piece = self.lane.world.buffers().copy_of(&bytes).freeze();
            let written = self.write_metadata(at, &piece).await;
            if let Err(error) = written {
                *outcome.borrow_mut() = Err(error);
            }
        };
        pieces.for_each_concurrent(SEGMENTS_AT_ONCE, write).await;
        outcome.into_inner()?;
        let Some(header) = header.into_inner() else {
            unreachable!("a checkpoint ends with its header")
        };
        let header = self.lane.world.buffers().copy_of(&header).freeze();
        self.write_metadata(slot, &header).await
    }

    /// The next segment of a checkpoint; `None` behind the last one, with its header in `header`.
    async fn next_segment(
        &self,
        checkpoint: &mut Encoder,
        header: &RefCell<Option<Vec<u8>>>,
    ) -> Option<Vec<u8>> {
        loop {
            match checkpoint.step() {
                Step::More => self.lane.world.sleep(REST).await,
                Step::Segment(bytes) => return Some(bytes),
                Step::End(bytes) => {
                    header.replace(Some(bytes));
                    return None;
                }
            }
        }
    }

    /// Writes `data` durably to every healthy metadata drive.
    async fn write_metadata(&self, at: u64, data: &Slice) -> Result<(), PoolError> {
        let write = async |member: Rc<Member<W>>| {
            let outcome = member.write_durably(DriveOffset(at), data.clone()).await;
            outcome.err().map(|error| DriveFault { member, error })
        };
        let writes = self.lane.drives.metadata_members().into_iter().map(write);
        let faults: Vec<_> = join_all(writes).await.into_iter().flatten().collect();
        if !(faults.is_empty() && self.lane.drives.are_losses_durable())
            && let Err(error) = self.lane.drives.absorb(faults).await
        {
            self.lane
                .stop(format!("its metadata can't be written: {error}"));
        }
        self.lane.drives.check_failure()
    }
}
