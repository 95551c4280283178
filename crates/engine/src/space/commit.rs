//! Making metadata records durable: batches, generations, checkpoints.
//!
//! Order of writes and why it is safe: `docs/internals/format.md`, "Metadata".

use crate::codec::Writer;
use crate::drives::{DriveFault, Member};
use crate::error::{PoolError, PoolErrorKind};
use crate::label::{LABEL_AREA_BYTES, PoolIdentity};
use crate::meta::Record;
use crate::meta::checkpoint::{self, Encoder, Step};
use crate::meta::journal::{BATCHES_AT_ONCE, BatchId, HEADER_BYTES, batch_bytes, encode_batch};
use crate::meta::record::RECORD_BYTES_MAX;
use crate::space::LaneState;
use crate::world::World;
use base::{DriveOffset, Slice};
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{Shared, join_all};
use std::rc::Rc;
use std::time::Duration;

/// How long the making of a checkpoint rests when it has nothing to write yet, so that
/// others can work.
const REST: Duration = Duration::from_micros(1);

/// What comes of a batch.
pub(crate) type OnItsWay = Shared<oneshot::Receiver<Result<(), PoolError>>>;

async fn ended(batch: OnItsWay) -> Result<(), PoolError> {
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

impl<W: World> LaneState<W> {
    /// Makes `records` durable and part of the state, in the order of calls: all of them
    /// at once, or as many at once as the journal takes. Concurrent callers share a batch.
    ///
    /// # Errors
    /// When the pool has stopped, or stops now.
    pub async fn commit(self: &Rc<Self>, records: Vec<Record>) -> Result<(), PoolError> {
        self.check()?;
        if records.is_empty() {
            return Ok(());
        }
        self.journal.pending.borrow_mut().push(records);
        let commit = &self.journal.commit;
        match commit.run(async || self.place_pending().await).await? {
            Some(last) => ended(last).await,
            None => Ok(()),
        }
    }

    /// Gives what is pending its places in the journal; the last batch on its way. Whoever
    /// came while a checkpoint was begun has his place already.
    async fn place_pending(self: &Rc<Self>) -> Result<Option<OnItsWay>, PoolError> {
        self.check()?;
        if self.journal.checkpoint_wanted.replace(false) {
            self.next_generation().await?;
        }
        let mut waiting = self.journal.pending.take().into_iter().peekable();
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
        let last = self.journal.on_their_way.borrow().back().cloned();
        Ok(last)
    }

    /// Records that are durable together or not at all, however long they are.
    pub fn records_at_once(&self) -> usize {
        (self.identity().journal_bytes as usize - HEADER_BYTES) / RECORD_BYTES_MAX
    }

    /// Makes records that are durable part of the state.
    fn apply(&self, batch: &[Record]) {
        let mut state = self.state.borrow_mut();
        for record in batch {
            let applied = state.apply(record);
            assert!(applied.is_ok(), "{record:?} was journalled: {applied:?}");
            if let Record::Overlay { backing, .. } = record
                && self.world.planted("backing not held")
            {
                state.refs.take(*backing);
            }
            match record {
                Record::Map { phys, count, .. } => {
                    self.space.borrow_mut().settle(*phys, u64::from(*count));
                }
                Record::Remap { phys, .. } | Record::Overlay { phys, .. } => {
                    self.space.borrow_mut().settle(*phys, 1);
                }
                _ => {}
            }
        }
        // Only now may others write there.
        for page in state.take_freed() {
            self.store.release(page);
        }
    }

    /// Gives a batch its place, and sends it on its way.
    async fn begin_batch(self: &Rc<Self>, records: Vec<Record>) -> Result<(), PoolError> {
        let mut payload = Writer::default();
        records
            .iter()
            .for_each(|record| record.encode(&mut payload));
        let journal = &self.journal;
        let bytes = batch_bytes(payload.bytes.len()) as u64;
        if journal.used.get() + bytes > u64::from(self.identity().journal_bytes) {
            self.next_generation().await?;
        }
        while journal.on_their_way.borrow().len() >= BATCHES_AT_ONCE {
            let first = journal.on_their_way.borrow_mut().pop_front();
            if let Some(first) = first {
                ended(first).await?;
            }
        }
        let generation = journal.generation.get();
        let id = BatchId {
            pool: self.identity().lane_uuid(),
            generation,
            sequence: journal.sequence.get(),
        };
        let batch = self
            .world
            .buffers()
            .copy_of(&encode_batch(id, &payload.bytes))
            .freeze();
        let at = self.identity().journal_offset(generation) + journal.used.get();
        journal.used.set(journal.used.get() + bytes);
        journal.sequence.set(journal.sequence.get() + 1);
        let before = journal.on_their_way.borrow().back().cloned();
        let (done, durable) = oneshot::channel();
        let durable = durable.shared();
        journal.on_their_way.borrow_mut().push_back(durable);
        let inner = Rc::clone(self);
        self.world.spawn(async move {
            let outcome = inner.write_batch(at, batch, &records, before).await;
            let _ = done.send(outcome);
        });
        Ok(())
    }

    /// Makes a batch durable, and part of the state once all before it are.
    async fn write_batch(
        self: &Rc<Self>,
        at: u64,
        batch: Slice,
        records: &[Record],
        before: Option<OnItsWay>,
    ) -> Result<(), PoolError> {
        let written = match self
            .world
            .planted("journal record acknowledged before durable")
        {
            true => {
                let inner = Rc::clone(self);
                self.world.spawn(async move {
                    let _ = inner.write_metadata(at, &batch).await;
                });
                Ok(())
            }
            false => self.write_metadata(at, &batch).await,
        };
        if let Some(before) = before.filter(|_| !self.world.planted("batches in any order")) {
            ended(before).await?;
        }
        written?;
        self.apply(records);
        Ok(())
    }

    /// Ends when no batch is on its way.
    async fn all_batches_ended(&self) -> Result<(), PoolError> {
        let last = self.journal.on_their_way.borrow().back().cloned();
        if let Some(last) = last {
            ended(last).await?;
        }
        self.journal.on_their_way.borrow_mut().clear();
        Ok(())
    }

    /// Moves on to the other journal area, and writes the checkpoint that makes the
    /// one left behind free behind the scenes.
    async fn next_generation(self: &Rc<Self>) -> Result<(), PoolError> {
        // The area ahead is free only once the checkpoint after it is durable.
        let planted = self
            .world
            .planted("journal area reused before its checkpoint");
        let under_way = self.journal.checkpoint.borrow().clone();
        if let Some(durable) = under_way.filter(|durable| durable.peek().is_none() && !planted) {
            self.world.reached("journal switch waits for a checkpoint");
            let _ = durable.await;
        }
        self.check()?;
        // What is on its way belongs to the state that the checkpoint is of.
        self.all_batches_ended().await?;
        let (done, durable) = oneshot::channel();
        self.journal.checkpoint.replace(Some(durable.shared()));
        self.begin_generation(self.journal.generation.get() + 1);
        let checkpoint = self.checkpoint_now();
        let inner = Rc::clone(self);
        self.world.spawn(async move {
            if let Err(error) = inner.write_checkpoint(checkpoint).await {
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
    pub async fn checkpoint_to_all(self: &Rc<Self>) -> Result<(), PoolError> {
        // One that is under way is waited for here: in their turn, records would wait too.
        self.checkpoint_ended().await;
        // Whoever's turn it is begins it: callers of the same turn share it.
        self.journal.checkpoint_wanted.set(true);
        let commit = &self.journal.commit;
        let last = commit.run(async || self.place_pending().await).await?;
        if let Some(last) = last {
            ended(last).await?;
        }
        self.checkpoint_ended().await;
        self.check()
    }

    /// Ends when the checkpoint that is on its way, if any, is durable or has failed.
    pub async fn checkpoint_ended(&self) {
        let under_way = self.journal.checkpoint.borrow().clone();
        if let Some(durable) = under_way {
            let _ = durable.await;
        }
    }

    /// Sets the journal to the start of `generation`'s area.
    pub fn begin_generation(&self, generation: u64) {
        self.journal.generation.set(generation);
        self.journal.used.set(0);
        self.journal.sequence.set(0);
    }

    /// The present state as a checkpoint of the present generation, to be written. What
    /// changes from now on is not in it.
    pub fn checkpoint_now(&self) -> Encoder {
        let identity = self.identity();
        let segment_bytes = checkpoint::segment_bytes(identity.journal_bytes);
        let generation = self.journal.generation.get();
        let state = self.state.borrow();
        Encoder::new(identity.lane_uuid(), generation, segment_bytes, &state)
    }

    /// Writes a checkpoint durably to every metadata drive, a piece at a time; the
    /// header last, when everything that it speaks of is there.
    pub async fn write_checkpoint(&self, mut checkpoint: Encoder) -> Result<(), PoolError> {
        let slot = self.identity().checkpoint_offset(checkpoint.generation());
        let mut at = slot + checkpoint::HEADER_BYTES as u64;
        loop {
            match checkpoint.step() {
                Step::More => self.world.sleep(REST).await,
                Step::Segment(bytes) => {
                    let end = at + bytes.len() as u64;
                    assert!(
                        end <= slot + self.identity().checkpoint_bytes,
                        "a checkpoint overflows its slot of {} bytes",
                        self.identity().checkpoint_bytes
                    );
                    let piece = self.world.buffers().copy_of(&bytes).freeze();
                    self.write_metadata(at, &piece).await?;
                    at = end;
                }
                Step::End(header) => {
                    let header = self.world.buffers().copy_of(&header).freeze();
                    return self.write_metadata(slot, &header).await;
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
        let writes = self.drives.metadata_members().into_iter().map(write);
        let faults: Vec<_> = join_all(writes).await.into_iter().flatten().collect();
        if !(faults.is_empty() && self.drives.are_losses_durable())
            && let Err(error) = self.drives.absorb(faults).await
        {
            self.stop(format!("its metadata can't be written: {error}"));
        }
        self.drives.check_failure()
    }
}
