//! One VM's thread: issues operations when they are due, takes completions down.
//!
//! Invariants:
//! - At most `outstanding_max` operations are under way. What is due and finds no
//!   free slot waits in the generator and keeps its intended start.
//! - Every operation whose intended start lies before the end of the run is
//!   issued, or counted as unfinished: nothing that was due is forgotten.

use super::clock::Clock;
use super::disks::Disks;
use super::{Shared, VmOutcome};
use crate::generator::{Generator, Kind, Operation};
use crate::kpi::{Recorder, Window};
use crate::os;
use crate::plan::Plan;
use crate::profile::Pacing;
use crate::target::{Completion, TargetError};
use base::Time;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// After the end of the run, what is under way or was due gets this long to
/// complete.
pub const DRAIN_MAX: Duration = Duration::from_secs(5);

/// A wait ends this much before it is due and the rest is polled: a thread that
/// slept takes about that long to run again.
const SPIN: Duration = Duration::from_micros(30);

/// The longest wait, so that a stop is noticed.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// One VM while it runs.
pub struct Worker {
    clock: Clock,
    disks: Disks,
    generator: Generator,
    /// Whether operations have intended starts.
    open_loop: bool,
    next: Operation,
    slots: Vec<Option<UnderWay>>,
    free: Vec<usize>,
    /// When the last slot was given back after all were taken.
    freed: Time,
    recorder: Recorder,
    end: Time,
    shared: Arc<Shared>,
    completions: Vec<Completion>,
}

#[derive(Clone, Copy)]
struct UnderWay {
    operation: Operation,
    /// The intended start; in a closed loop the issue.
    at: Time,
    issued: Time,
}

impl Worker {
    /// VM `index` of the plan, on its open disks.
    pub fn new(
        plan: &Plan,
        index: usize,
        disks: Disks,
        clock: Clock,
        shared: Arc<Shared>,
    ) -> Worker {
        let vm = &plan.profile.vms[index];
        let mut generator = Generator::new(vm, &disks.capacities_bytes(), plan.seed);
        let open_loop = matches!(vm.pacing, Pacing::Open { .. });
        let start = Time(0) + plan.warmup;
        let window = Window {
            start,
            end: start + plan.duration,
        };
        Worker {
            clock,
            disks,
            next: generator.draw(),
            generator,
            open_loop,
            slots: vec![None; vm.outstanding_max],
            free: (0..vm.outstanding_max).rev().collect(),
            freed: Time(0),
            recorder: Recorder::new(window, open_loop),
            end: window.end,
            shared,
            completions: Vec::new(),
        }
    }

    /// Runs to the end.
    pub fn run(mut self) -> (VmOutcome, Window) {
        os::be_punctual();
        let lost = self.work().err();
        let now = self.clock.now();
        if lost.is_some() || self.stopped() {
            self.recorder.cut(now);
        } else {
            self.settle(now);
        }
        let disk_bytes = self.disks.capacities_bytes();
        let (measured, window) = self.recorder.finish(now);
        (
            VmOutcome {
                measured,
                lost,
                disk_bytes,
            },
            window,
        )
    }

    fn stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    fn work(&mut self) -> Result<(), TargetError> {
        let drained = self.end + DRAIN_MAX;
        while !self.stopped() {
            self.issue_due()?;
            let now = self.clock.now();
            let idle = self.free.len() == self.slots.len();
            if now >= drained || (now >= self.end && idle && !self.is_due_ever()) {
                break;
            }
            let until = if self.is_due_ever() && !self.free.is_empty() {
                self.next.at
            } else if now < self.end {
                self.end
            } else {
                drained
            };
            let left = until.since(now).min(WAIT_MAX);
            self.disks
                .wait(left.saturating_sub(SPIN), &mut self.completions)?;
            self.take_completions();
        }
        Ok(())
    }

    /// Whether the next operation belongs to the run.
    fn is_due_ever(&self) -> bool {
        if self.open_loop {
            self.next.at < self.end
        } else {
            self.clock.now() < self.end
        }
    }

    fn issue_due(&mut self) -> Result<(), TargetError> {
        let mut issued = false;
        loop {
            let now = self.clock.now();
            if self.next.at > now || !self.is_due_ever() {
                break;
            }
            let Some(slot) = self.free.pop() else { break };
            let operation = self.next;
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
            self.disks.submit(slot as u64, &operation)?;
            self.next = self.generator.draw();
            issued = true;
        }
        if issued { self.disks.flush() } else { Ok(()) }
    }

    fn take_completions(&mut self) {
        if self.completions.is_empty() {
            return;
        }
        let now = self.clock.now();
        if self.free.is_empty() || !self.open_loop {
            self.freed = now;
        }
        let mut completions = std::mem::take(&mut self.completions);
        for Completion { token, outcome } in completions.drain(..) {
            let slot = token as usize;
            let Some(UnderWay {
                operation,
                at,
                issued,
            }) = self.slots.get_mut(slot).and_then(Option::take)
            else {
                unreachable!("endpoints complete a request once: slot {slot}")
            };
            self.free.push(slot);
            match outcome {
                Ok(()) => {
                    self.recorder
                        .completed(now, operation.kind, operation.bytes, at, issued);
                    let response = u64::try_from((now - at).as_nanos()).unwrap_or(u64::MAX);
                    self.shared.completed.fetch_add(1, Ordering::Relaxed);
                    self.shared
                        .response_ns
                        .fetch_add(response, Ordering::Relaxed);
                }
                Err(answer) => {
                    self.recorder.failed(now, self.failure(&operation, &answer));
                    self.shared.failed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        self.completions = completions;
    }

    fn failure(&self, operation: &Operation, answer: &str) -> String {
        let kind = match operation.kind {
            Kind::Read => "read",
            Kind::Write => "write",
        };
        let Operation {
            offset_bytes,
            bytes,
            disk,
            ..
        } = *operation;
        let url = self.disks.url(disk);
        format!("{url}: a {kind} of {bytes} bytes at byte {offset_bytes} of disk {disk}: {answer}")
    }

    /// The run is over: what did not complete counts as unfinished.
    fn settle(&mut self, now: Time) {
        for UnderWay { operation, at, .. } in self.slots.iter().flatten() {
            self.recorder.unfinished(now, operation.kind, *at);
        }
        if self.open_loop {
            while self.next.at < self.end {
                self.recorder.offered(self.next.at);
                self.recorder.unfinished(now, self.next.kind, self.next.at);
                self.next = self.generator.draw();
            }
        }
    }
}
