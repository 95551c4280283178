//! One stream of a VM while it runs: the operations that are due, and those under way.
//!
//! Invariants:
//! - At most `outstanding_max` operations are under way. What is due and finds no
//!   free slot waits in the source and keeps its intended start.
//! - Every operation whose intended start lies before the end of the run is
//!   issued, or counted as unfinished: nothing that was due is forgotten.

use base::Time;
use std::time::Duration;
use workload::generator::Operation;
use workload::kpi::{Measured, Recorder, Window};
use workload::profile::{Pacing, Stream};
use workload::source::Source;
use workload::trace::TraceError;

/// A stream while it runs.
pub struct Flow {
    source: Source,
    /// Whether operations have intended starts.
    open_loop: bool,
    /// `None` at the end of a trace.
    next: Option<Operation>,
    slots: Vec<Option<UnderWay>>,
    free: Vec<usize>,
    /// When the last slot was given back after all were taken.
    freed: Time,
    recorder: Recorder,
    /// Of the run.
    end: Time,
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
    /// `stream` of a VM, measured in `window`, at whose end the run ends.
    ///
    /// # Errors
    /// When the source has no first operation because of a fault in it.
    pub fn new(stream: &Stream, mut source: Source, window: Window) -> Result<Flow, TraceError> {
        let open_loop = matches!(stream.pacing, Pacing::Open { .. });
        Ok(Flow {
            next: source.draw()?,
            source,
            open_loop,
            slots: vec![None; stream.outstanding_max],
            free: (0..stream.outstanding_max).rev().collect(),
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
        self.free.len() == self.slots.len()
    }

    /// When the next operation is due, if one is and there is a slot for it.
    pub fn due(&self, now: Time) -> Option<Time> {
        let next = self.next.filter(|_| self.is_due_ever(now))?;
        (!self.free.is_empty()).then_some(next.at)
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
        let Some(slot) = self.free.pop() else {
            return Ok(None);
        };
        let at = if self.open_loop { operation.at } else { now };
        if self.open_loop {
            self.recorder.offered(at);
            self.recorder.issued(now, now.since(at.max(self.freed)));
        } else {
            self.recorder.issued(now, now.since(self.freed));
        }
        self.slots[slot] = Some(UnderWay {
            operation,
            at,
            issued: now,
        });
        self.next = self.source.draw()?;
        Ok(Some((slot, operation)))
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
        self.free.push(slot);
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

    /// Gives the slots of operations back that went with their session; returns how many.
    pub fn lose(&mut self, now: Time, is_lost: impl Fn(usize, &Operation) -> bool) -> u64 {
        let mut count = 0;
        for slot in 0..self.slots.len() {
            let under_way = self.slots[slot].as_ref();
            if under_way.is_some_and(|under_way| is_lost(slot, &under_way.operation)) {
                self.take(slot);
                self.recorder.lost(now);
                count += 1;
            }
        }
        count
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
