//! One VM's thread: it issues the operations of its streams when they are due, and records their
//! completions.

use super::clock::Clock;
use super::disks::Disks;
use super::flow::Flow;
use super::{SharedCounters, VmOutcome, window};
use crate::endpoint::{Completion, TargetError};
use crate::os;
use base::Time;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use workload::generator::{Kind, Operation};
use workload::kpi::{Measured, Window};
use workload::plan::Plan;
use workload::source::Source;

/// After the end of the run, what is under way or was due gets this long to
/// complete.
pub const DRAIN_MAX: Duration = Duration::from_secs(5);

/// A wait ends this much before it is due and the rest is polled: a thread that
/// slept takes about that long to run again.
const SPIN: Duration = Duration::from_micros(30);

/// The longest wait, so that a stop is noticed.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// A token is a stream's number, from this bit on, and below it a slot of it.
const SLOT_BITS: u32 = 32;

fn token(stream: usize, slot: usize) -> u64 {
    (stream as u64) << SLOT_BITS | slot as u64
}

/// One VM while it runs.
pub struct Worker {
    clock: Clock,
    disks: Disks,
    flows: Vec<Flow>,
    window: Window,
    shared: Arc<SharedCounters>,
    completions: Vec<Completion>,
    /// Targets that were away when it was last told.
    away: u64,
}

impl Worker {
    /// VM `index` of the plan, on its open disks.
    ///
    /// # Errors
    /// When a trace cannot be read.
    pub fn new(
        plan: &Plan,
        index: usize,
        mut disks: Disks,
        clock: Clock,
        shared: Arc<SharedCounters>,
    ) -> Result<Worker, TargetError> {
        let vm = &plan.profile.vms[index];
        let window = window(plan);
        disks.outlive_losses(clock, plan.reconnect_for);
        let sources = Source::of_vm(vm, &disks.capacities_bytes(), plan.seed)?;
        let of_stream = sources.into_iter().enumerate();
        let flows =
            of_stream.map(|(stream, source)| Flow::new((vm, stream), source, (window, plan.seed)));
        Ok(Worker {
            clock,
            disks,
            flows: flows.collect::<Result<_, _>>()?,
            window,
            shared,
            completions: Vec::new(),
            away: 0,
        })
    }

    /// Runs to the end.
    pub fn run(mut self) -> (VmOutcome, Window) {
        os::be_punctual();
        let mut lost = self.work().err();
        let now = self.clock.now();
        let cut = lost.is_some() || self.stopped();
        let disk_bytes = self.disks.capacities_bytes();
        let (mut streams, mut window) = (Vec::new(), self.window);
        let mut measured: Option<Measured> = None;
        for mut flow in self.flows {
            if cut {
                flow.cut(now);
            } else if let Err(fault) = flow.settle(now) {
                lost = Some(fault.into());
            }
            let (of_stream, its_window) = flow.finish(now);
            window = its_window;
            match &mut measured {
                Some(measured) => measured.merge(&of_stream),
                None => measured = Some(of_stream.clone()),
            }
            streams.push(of_stream);
        }
        let outcome = VmOutcome {
            measured: measured.unwrap_or_default(),
            streams,
            lost,
            outages: self.disks.outages(),
            disk_bytes,
        };
        (outcome, window)
    }

    fn stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    fn work(&mut self) -> Result<(), TargetError> {
        let end = self.window.end;
        let drained = end + DRAIN_MAX;
        while !self.stopped() {
            self.issue_due()?;
            self.take_losses();
            let now = self.clock.now();
            let idle = self.flows.iter().all(Flow::is_idle);
            let more = self.flows.iter().any(|flow| flow.is_due_ever(now));
            if now >= drained || (now >= end && idle && !more) {
                break;
            }
            let due = self.flows.iter().filter_map(|flow| flow.due(now)).min();
            let until = match due {
                Some(due) => due,
                None if now < end => end,
                None => drained,
            };
            let left = until.since(now).min(WAIT_MAX);
            self.disks
                .wait(left.saturating_sub(SPIN), &mut self.completions)?;
            self.take_attentions();
            self.take_completions();
            self.take_losses();
        }
        Ok(())
    }

    fn issue_due(&mut self) -> Result<(), TargetError> {
        let mut issued = false;
        for (index, flow) in self.flows.iter_mut().enumerate() {
            while let Some((slot, operation)) = flow.issue(self.clock.now())? {
                self.disks.submit(token(index, slot), &operation)?;
                issued = true;
            }
        }
        if issued { self.disks.flush() } else { Ok(()) }
    }

    /// What was under way to links that are lost has failed.
    fn take_losses(&mut self) {
        while let Some(link) = self.disks.take_lost() {
            let now = self.clock.now();
            let mut lost = Vec::new();
            for (index, flow) in self.flows.iter_mut().enumerate() {
                let disks = &self.disks;
                flow.before_completions(now);
                let slots = flow.lose(now, |slot, operation| {
                    disks.was_lost(link, token(index, slot), operation)
                });
                lost.extend(slots.into_iter().map(|slot| (index, slot)));
            }
            let count = lost.len() as u64;
            for (index, slot) in lost {
                self.go_on((index, slot), now, false);
            }
            self.disks.count_lost(link, count);
            self.shared.failed.fetch_add(count, Ordering::Relaxed);
        }
        let away = self.disks.away();
        if away != self.away {
            self.shared.away.fetch_add(away, Ordering::Relaxed);
            self.shared.away.fetch_sub(self.away, Ordering::Relaxed);
            self.away = away;
        }
    }

    /// Lets the thread go on whose operation has ended in a slot of a flow, well or not, where a
    /// thread has it.
    fn go_on(&mut self, (index, slot): (usize, usize), now: Time, went_well: bool) {
        if let Some(then) = self.flows[index].ended(slot, now, went_well) {
            self.flows[then].go_on(slot, now, went_well);
        }
    }

    /// Takes down what targets told instead of doing an operation; those go on.
    fn take_attentions(&mut self) {
        for (token, what) in self.disks.attentions() {
            if let Some(flow) = self.flows.get_mut((token >> SLOT_BITS) as usize) {
                flow.attention(what);
            }
        }
    }

    fn take_completions(&mut self) {
        if self.completions.is_empty() {
            return;
        }
        let now = self.clock.now();
        for flow in &mut self.flows {
            flow.before_completions(now);
        }
        let mut completions = std::mem::take(&mut self.completions);
        for Completion { token, outcome } in completions.drain(..) {
            let slot = token as usize & ((1 << SLOT_BITS) - 1);
            let index = (token >> SLOT_BITS) as usize;
            let flow = &mut self.flows[index];
            let done = flow.take(slot);
            let went_well = outcome.is_ok();
            match outcome {
                Ok(()) => {
                    let response = flow.completed(now, &done);
                    let response_ns = u64::try_from(response.as_nanos()).unwrap_or(u64::MAX);
                    self.shared.completed.fetch_add(1, Ordering::Relaxed);
                    self.shared
                        .response_ns
                        .fetch_add(response_ns, Ordering::Relaxed);
                }
                Err(answer) => {
                    flow.failed(now, failure(&self.disks, &done.operation, &answer));
                    self.shared.failed.fetch_add(1, Ordering::Relaxed);
                }
            }
            self.go_on((index, slot), now, went_well);
        }
        self.completions = completions;
    }
}

fn failure(disks: &Disks, operation: &Operation, answer: &str) -> String {
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
    let url = disks.url(disk);
    format!("{url}: a {kind} of {bytes} bytes at byte {offset_bytes} of disk {disk}: {answer}")
}
