//! One stream of a VM while it runs: the operations that are due, and those under way.
//!
//! Invariants:
//! - At most `outstanding_max` operations are under way. What is due and finds no
//!   free slot waits in the source and keeps its intended start.
//! - Threads of a closed network have a slot each, of their own number, in their stream and
//!   in that of their commits; a thread has one operation under way in both together.
//! - Every operation whose intended start lies before the end of the run is
//!   issued, or counted as unfinished: nothing that was due is forgotten.

use super::network::Network;
use base::Time;
use std::collections::VecDeque;
use std::time::Duration;
use workload::generator::Operation;
use workload::kpi::{Measured, Recorder, Window};
use workload::profile::{Pacing, VmProfile};
use workload::source::Source;
use workload::trace::TraceError;

/// A stream while it runs.
pub struct Flow {
    source: Source,
    /// Whether operations have intended starts.
    open_loop: bool,
    starts: Starts,
    /// Where a slot goes on whose thread is through with what it does here.
    then: usize,
    /// `None` at the end of a trace.
    next: Option<Operation>,
    slots: Vec<Option<UnderWay>>,
    /// Slots that nothing is in, where no threads have them.
    free: Vec<usize>,
    /// Operations in slots.
    under_way: usize,
    /// When the last slot was given back after all were taken.
    freed: Time,
    recorder: Recorder,
    /// Of the run.
    end: Time,
}

/// What starts operations.
enum Starts {
    /// Their time, or a free slot.
    Free,
    /// Threads, in their slots.
    Threads(Network),
    /// Threads of another stream, whose slots are due since then.
    Commits(VecDeque<(Time, usize)>),
}

/// An operation that was issued.
#[derive(Clone, Copy)]
pub struct UnderWay {
    /// The operation as its source gave it.
    pub operation: Operation,
    /// The intended start; in a closed loop the issue.
    at: Time,
    issued: Time,
}

impl Flow {
    /// Stream `index` of `vm`, measured in `window`, at whose end the run ends.
    ///
    /// # Errors
    /// When the source has no first operation because of a fault in it.
    pub fn new(
        (vm, index): (&VmProfile, usize),
        mut source: Source,
        (window, seed): (Window, u64),
    ) -> Result<Flow, TraceError> {
        let stream = &vm.streams[index];
        let open_loop = matches!(stream.pacing, Pacing::Open { .. });
        let (starts, then, slots) = match stream.pacing {
            Pacing::Threads(threads) => {
                let network = Network::new(threads, (&vm.name, &stream.name), seed);
                let then = vm.commits_of(index).unwrap_or(index);
                (Starts::Threads(network), then, threads.count)
            }
            Pacing::Commits { of } => {
                let threads = vm.streams[of].threads().map_or(0, |threads| threads.count);
                (Starts::Commits(VecDeque::new()), of, threads)
            }
            _ => (Starts::Free, index, stream.outstanding_max),
        };
        Ok(Flow {
            next: source.draw()?,
            source,
            open_loop,
            starts,
            then,
            slots: vec![None; slots],
            free: (0..slots).rev().collect(),
            under_way: 0,
            freed: Time(0),
            recorder: Recorder::new(window, open_loop),
            end: window.end,
        })
    }

    /// Whether the next operation belongs to the run.
    pub fn is_due_ever(&self, now: Time) -> bool {
        match self.next {
            None => false,
            Some(next) if self.open_loop => next.at < self.end,
            Some(_) => now < self.end,
        }
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.under_way == 0
    }

    /// When the next operation is due, if one is and there is a slot for it; of threads, when one
    /// goes on.
    pub fn due(&self, now: Time) -> Option<Time> {
        let next = self.next.filter(|_| self.is_due_ever(now))?;
        match &self.starts {
            Starts::Free => (!self.free.is_empty()).then_some(next.at),
            Starts::Threads(network) => network.next(),
            Starts::Commits(due) => due.front().map(|(since, _)| *since),
        }
    }

    /// Issues the next operation if it is due and there is a slot for it.
    ///
    /// # Errors
    /// When the source has none after it because of a fault in it.
    pub fn issue(&mut self, now: Time) -> Result<Option<(usize, Operation)>, TraceError> {
        let due = self
            .next
            .filter(|next| next.at <= now && self.is_due_ever(now));
        let Some(operation) = due else {
            return Ok(None);
        };
        let Some((slot, since)) = self.take_slot(now) else {
            return Ok(None);
        };
        let at = if self.open_loop { operation.at } else { now };
        if self.open_loop {
            self.recorder.offered(at);
            self.recorder.issued(now, now.since(at.max(since)));
        } else {
            self.recorder.issued(now, now.since(since));
        }
        self.under_way += 1;
        self.slots[slot] = Some(UnderWay {
            operation,
            at,
            issued: now,
        });
        self.next = self.source.draw()?;
        Ok(Some((slot, operation)))
    }

    /// A slot for the next operation, and since when it could have been issued there.
    fn take_slot(&mut self, now: Time) -> Option<(usize, Time)> {
        let (slot, since) = match &mut self.starts {
            Starts::Free => return self.free.pop().map(|slot| (slot, self.freed)),
            Starts::Threads(network) => network.take_due(now)?,
            Starts::Commits(due) => {
                let (since, slot) = due.pop_front()?;
                (slot, since)
            }
        };
        Some((slot, since))
    }

    /// An operation in a slot has ended, well or not; the flow that goes on in the same slot, if one
    /// does.
    pub fn ended(&mut self, slot: usize, now: Time, went_well: bool) -> Option<usize> {
        match &mut self.starts {
            Starts::Free => None,
            Starts::Threads(network) => network.ended(slot, now, went_well).then_some(self.then),
            Starts::Commits(_) => Some(self.then),
        }
    }

    /// Goes on in a slot, where the operation before went well or not: threads have ended a
    /// transaction, and commits are due.
    pub fn go_on(&mut self, slot: usize, now: Time, went_well: bool) {
        match &mut self.starts {
            Starts::Free => {}
            Starts::Threads(network) => {
                if let Some(began) = network.think(slot, now, went_well) {
                    self.recorder.transacted(now, began);
                }
            }
            Starts::Commits(due) => due.push_back((now, slot)),
        }
    }

    /// Several operations may have completed: from now on, what finds a slot is late
    /// by what has passed since.
    pub fn before_completions(&mut self, now: Time) {
        if self.free.is_empty() || !self.open_loop {
            self.freed = now;
        }
    }

    /// Gives the slot of a completed operation back.
    pub fn take(&mut self, slot: usize) -> UnderWay {
        let Some(under_way) = self.slots.get_mut(slot).and_then(Option::take) else {
            unreachable!("endpoints complete a request once: slot {slot}")
        };
        self.under_way -= 1;
        if matches!(self.starts, Starts::Free) {
            self.free.push(slot);
        }
        under_way
    }

    /// Takes down that an operation has completed well; returns its response time.
    pub fn completed(&mut self, now: Time, done: &UnderWay) -> Duration {
        let UnderWay {
            operation,
            at,
            issued,
        } = *done;
        self.recorder
            .completed(now, operation.kind, operation.bytes, at, issued);
        now - at
    }

    /// Takes down that an operation has failed.
    pub fn failed(&mut self, now: Time, what: String) {
        self.recorder.failed(now, what);
    }

    /// Takes down that an operation met a unit attention and was sent again.
    pub fn attention(&mut self, what: String) {
        self.recorder.attention(what);
    }

    /// Gives the slots of operations back that went with their session, and tells which.
    pub fn lose(&mut self, now: Time, is_lost: impl Fn(usize, &Operation) -> bool) -> Vec<usize> {
        let mut lost = Vec::new();
        for slot in 0..self.slots.len() {
            let under_way = self.slots[slot].as_ref();
            if under_way.is_some_and(|under_way| is_lost(slot, &under_way.operation)) {
                self.take(slot);
                self.recorder.lost(now);
                lost.push(slot);
            }
        }
        lost
    }

    /// The run was stopped: what did not complete is nobody's fault.
    pub fn cut(&mut self, now: Time) {
        self.recorder.cut(now);
    }

    /// The run is over: what did not complete counts as unfinished.
    ///
    /// # Errors
    /// As [`Flow::issue`].
    pub fn settle(&mut self, now: Time) -> Result<(), TraceError> {
        for UnderWay { operation, at, .. } in self.slots.iter().flatten() {
            self.recorder.unfinished(now, operation.kind, *at);
        }
        if self.open_loop {
            while let Some(next) = self.next.filter(|next| next.at < self.end) {
                self.recorder.offered(next.at);
                self.recorder.unfinished(now, next.kind, next.at);
                self.next = self.source.draw()?;
            }
        }
        Ok(())
    }

    /// What was measured, and the window it was measured in.
    pub fn finish(self, now: Time) -> (Measured, Window) {
        self.recorder.finish(now)
    }
}
