//! Appending: entries to batches, batches to drives, in order to those who wait.

use super::format::{BatchId, data_crc, encode_header, header_bytes};
use super::{
    Appended, BLOCK, Batch, Entry, Hold, IN_FLIGHT_MAX, Outcome, Pending, Ring, RingError,
    RingErrorKind, State,
};
use crate::world::World;
use base::{BLOCK_BYTES, Slice};
use futures_channel::oneshot;
use futures_util::future::join_all;
use std::cell::Cell;
use std::rc::Rc;

/// Entries join a batch up to this many bytes.
const BATCH_BYTES: usize = 512 << 10;

impl<W: World> Ring<W> {
    /// Appends an entry; waits for room first. Ends when it, and all before it, are
    /// durable on every drive in use.
    ///
    /// # Errors
    /// `TooLarge` for more than a quarter of the ring; `Drive` when the ring is dead.
    pub async fn append(self: &Rc<Self>, entry: Entry) -> Outcome {
        self.check()?;
        let bytes = (header_bytes(std::iter::once(&entry)) + entry.data_bytes()) as u64;
        if bytes > self.capacity_bytes() / 4 {
            let context = format!(
                "{}: an entry of {bytes} bytes, and a ring of {} takes a quarter of that",
                self.spec.label,
                self.capacity_bytes()
            );
            return Err(RingError::new(RingErrorKind::TooLarge, context));
        }
        let (done, outcome) = oneshot::channel();
        self.state.borrow_mut().pending.push_back(Pending {
            entry,
            done,
            takes_reserve: false,
        });
        self.kick();
        told(outcome).await
    }

    /// Appends entries before all that wait, where there is room for them now, the reserve but for
    /// `leaves_bytes` included. `None` where there is not, and nothing is appended.
    ///
    /// # Errors
    /// `Drive` when the ring is dead.
    pub async fn append_with_reserve(
        self: &Rc<Self>,
        entries: Vec<Entry>,
        leaves_bytes: u64,
    ) -> Option<Result<Vec<Appended>, RingError>> {
        if let Err(error) = self.check() {
            return Some(Err(error));
        }
        let bytes = |entry: &Entry| header_bytes(std::iter::once(entry)) + entry.data_bytes();
        let all_bytes: usize = entries.iter().map(bytes).sum();
        let outcomes: Vec<_> = {
            let mut state = self.state.borrow_mut();
            // Others with the reserve may be on the queue still, and this goes before them.
            let queued = state.pending.iter().filter(|next| next.takes_reserve);
            let queued_bytes: usize = queued.map(|next| bytes(&next.entry)).sum();
            let all_bytes = (all_bytes + queued_bytes) as u64;
            if !state.fits(all_bytes, self.capacity_bytes(), leaves_bytes) {
                return None;
            }
            let append = |entry| {
                let (done, outcome) = oneshot::channel();
                state.pending.push_front(Pending {
                    entry,
                    done,
                    takes_reserve: true,
                });
                outcome
            };
            // The last one is first in the queue.
            let outcomes: Vec<_> = entries.into_iter().rev().map(append).collect();
            outcomes.into_iter().rev().collect()
        };
        self.kick();
        let appended = join_all(outcomes.into_iter().map(told)).await;
        Some(appended.into_iter().collect())
    }

    /// Sends off as many batches as may go.
    pub(super) fn kick(self: &Rc<Self>) {
        if self.check().is_err() {
            return self.refuse_all();
        }
        loop {
            let mut state = self.state.borrow_mut();
            if state.paused || state.in_flight >= IN_FLIGHT_MAX || state.pending.is_empty() {
                return;
            }
            let entries = state.collect(self.capacity_bytes(), self.reserve_bytes.get());
            if entries.is_empty() {
                if !std::mem::replace(&mut state.waits_for_room, true) {
                    self.world.reached("log full");
                }
                return;
            }
            state.waits_for_room = false;
            if entries.len() > 1 {
                self.world.reached("append joins a batch");
            }
            let (at, sequence, batch) = self.seal(&mut state, entries);
            drop(state);
            let ring = Rc::clone(self);
            self.world
                .spawn(async move { ring.send(at, sequence, batch).await });
        }
    }

    /// Gives the entries their place and stamps. Returns where the batch goes, which
    /// it is, and its bytes.
    fn seal(&self, state: &mut State, pending: Vec<Pending>) -> (u64, u64, Slice) {
        let (entries, done): (Vec<Entry>, Vec<_>) = pending
            .into_iter()
            .map(|pending| (pending.entry, pending.done))
            .unzip();
        let data: usize = entries.iter().map(Entry::data_bytes).sum();
        let bytes = header_bytes(entries.iter()) + data;
        let Some((at, skipped)) = state.room(bytes as u64, self.capacity_bytes()) else {
            unreachable!("there was room when the batch was collected")
        };
        if skipped > 0 || (at == 0 && state.next_sequence > 1) {
            self.world.reached("log wraps");
        }
        let first_stamp = self.stamps.get() + 1;
        self.stamps.set(self.stamps.get() + entries.len() as u64);
        let id = BatchId {
            incarnation: state.incarnation,
            sequence: state.next_sequence,
            first_stamp,
            at,
        };
        let crcs: Vec<Option<u32>> = entries.iter().map(data_crc).collect();
        let batch = self.encode(id, &entries, &crcs, bytes);
        let live = Rc::new(Cell::new(0));
        let appended = (first_stamp..).zip(crcs).map(|(stamp, data_crc)| Appended {
            stamp,
            data_crc,
            hold: Hold::new(&live),
        });
        let waiting = done.into_iter().zip(appended).collect();
        state.next_sequence += 1;
        state.head = at + bytes as u64;
        state.take(bytes as u64 + skipped);
        state.in_flight += 1;
        state.batches.push_back(Batch {
            at,
            len_bytes: bytes as u64,
            taken_bytes: bytes as u64 + skipped,
            first_stamp,
            live,
            durable: false,
            waiting,
            acknowledged: false,
        });
        (at, id.sequence, batch)
    }

    /// The bytes of a batch, so many, of whose entries the data has these checksums.
    fn encode(&self, id: BatchId, entries: &[Entry], crcs: &[Option<u32>], bytes: usize) -> Slice {
        let mut batch = self.world.buffers().data(bytes);
        let mut to = header_bytes(entries.iter());
        if let Some(bytes) = batch.bytes_mut() {
            bytes[..to].copy_from_slice(&encode_header(&self.spec, id, entries, crcs));
        }
        for slice in entries.iter().flat_map(|entry| &entry.data) {
            assert!(
                slice.len().is_multiple_of(BLOCK_BYTES),
                "an entry of {} bytes",
                slice.len()
            );
            batch.put(to, slice);
            to += slice.len();
        }
        batch.freeze()
    }

    async fn send(self: Rc<Self>, at: u64, sequence: u64, batch: Slice) {
        // An error has made the ring dead: everybody hears of it below.
        let _ = self.write_all(self.on_drive(at), &batch).await;
        {
            let mut state = self.state.borrow_mut();
            state.in_flight -= 1;
            let place = (sequence - state.tail_sequence) as usize;
            state.batches[place].durable = true;
            if state.in_flight == 0
                && let Some(quiet) = state.quiet.take()
            {
                let _ = quiet.send(());
            }
        }
        if self.check().is_ok() {
            self.acknowledge();
        }
        self.kick();
    }

    /// Tells those whose batches are durable, in order, up to the first that is not.
    fn acknowledge(&self) {
        let mut told = Vec::new();
        let mut state = self.state.borrow_mut();
        // Thousands lie in a log, and those that are acknowledged are the first of them.
        let told_before = state.batches.partition_point(|batch| batch.acknowledged);
        for batch in state.batches.range_mut(told_before..) {
            if !batch.durable {
                break;
            }
            batch.acknowledged = true;
            told.append(&mut batch.waiting);
        }
        drop(state);
        for (done, appended) in told {
            // Who is gone gives the hold back by that.
            let _ = done.send(Ok(appended));
        }
    }

    pub(super) fn refuse_all(&self) {
        let Err(error) = self.check() else { return };
        let (pending, waiting): (Vec<_>, Vec<_>) = {
            let mut state = self.state.borrow_mut();
            let pending = state.pending.drain(..).collect();
            let waiting = state
                .batches
                .iter_mut()
                .flat_map(|batch| std::mem::take(&mut batch.waiting))
                .collect();
            (pending, waiting)
        };
        for Pending { done, .. } in pending {
            let _ = done.send(Err(error.clone()));
        }
        for (done, _) in waiting {
            let _ = done.send(Err(error.clone()));
        }
    }
}

/// What an append is told.
async fn told(outcome: oneshot::Receiver<Outcome>) -> Outcome {
    match outcome.await {
        Ok(outcome) => outcome,
        Err(oneshot::Canceled) => unreachable!("every append is answered"),
    }
}

impl State {
    /// Takes the entries of the next batch off the queue; none when there is no room
    /// for the first.
    fn collect(&mut self, capacity: u64, reserve: u64) -> Vec<Pending> {
        let mut taken: Vec<Pending> = Vec::new();
        let mut data = 0;
        while let Some(next) = self.pending.front() {
            let entries = taken
                .iter()
                .map(|pending| &pending.entry)
                .chain([&next.entry]);
            let bytes = header_bytes(entries) + data + next.entry.data_bytes();
            let too_long =
                !taken.is_empty() && (bytes > BATCH_BYTES || bytes as u64 > capacity / 4);
            let left = if next.takes_reserve { 0 } else { reserve };
            if too_long || !self.fits(bytes as u64, capacity, left) {
                break;
            }
            data += next.entry.data_bytes();
            taken.extend(self.pending.pop_front());
        }
        taken
    }

    /// Whether a batch of `bytes` has a place, and `left` bytes are free after it.
    fn fits(&self, bytes: u64, capacity: u64, left: u64) -> bool {
        let free = match self.is_wrapped() {
            true => self.tail - self.head,
            false => capacity - self.head + self.tail,
        };
        let room = self.room(bytes, capacity);
        room.is_some_and(|(_, skipped)| skipped + bytes + left <= free)
    }

    /// Whether what is in the ring goes on at its start.
    fn is_wrapped(&self) -> bool {
        self.head < self.tail || (self.head == self.tail && self.used_bytes > 0)
    }

    /// Where a batch of `bytes` goes, and what is skipped for it at the end.
    fn room(&self, bytes: u64, capacity: u64) -> Option<(u64, u64)> {
        assert!(bytes.is_multiple_of(BLOCK));
        if self.is_wrapped() {
            return (self.head + bytes <= self.tail).then_some((self.head, 0));
        }
        if self.head + bytes <= capacity {
            return Some((self.head, 0));
        }
        (bytes <= self.tail).then_some((0, capacity - self.head))
    }
}
