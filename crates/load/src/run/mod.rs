//! The run of a plan: one thread per VM, all started at the same instant.
//!
//! Invariants: no measured I/O starts before every target of every VM is open
//! and large enough, and every disk that was to be filled is full; what was
//! measured is returned also when the run was stopped or a target went away. A target that
//! goes away during the run is opened again, for as long as the plan says.

mod attempts;
mod clock;
mod disks;
mod flow;
mod link;
mod network;
mod worker;

pub use worker::DRAIN_MAX;

use crate::endpoint::TargetError;
use clock::Clock;
use disks::Disks;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::Duration;
use worker::Worker;
use workload::kpi::{Measured, Window};
use workload::pattern::Pattern;
use workload::plan::Plan;

/// What the caller may do and see while a plan runs.
pub trait Observer {
    /// Called about ten times a second; `true` stops the run. It waits for up to
    /// `pause` itself (a signal may end the pause early).
    fn observe(&mut self, progress: &Progress, pause: Duration) -> bool;
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What it is doing.
    pub phase: Phase,
    /// Operations completed since the start (blocks written while filling).
    pub completed: u64,
    /// Sum of their response times in nanoseconds.
    pub response_ns: u64,
    /// Operations that ended with an error.
    pub failed: u64,
    /// Sessions that are lost and not back yet.
    pub away: u64,
}

/// The part of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Phase {
    /// Opening the targets of all VMs.
    Opening,
    /// Writing every disk once.
    Filling {
        /// Bytes written by all VMs.
        written_bytes: u64,
        /// Bytes to write.
        total_bytes: u64,
    },
    /// Putting load on the targets, warm-up included.
    Running {
        /// Time since the start.
        elapsed: Duration,
    },
}

/// What one VM's thread brings home; a target or a trace may be lost.
pub type VmOutcome = workload::outcome::VmOutcome<TargetError>;

/// What a run of real targets brings home.
pub type Outcome = workload::outcome::Outcome<TargetError>;

/// Why a run did not start.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError {
    /// A target cannot be used. All that failed are listed.
    #[error("{}", lines(.0))]
    Targets(Vec<TargetError>),
    /// Stopped before the load began.
    #[error("stopped before the load began")]
    Stopped,
}

fn lines(errors: &[TargetError]) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Counters that the threads share with the observer.
#[derive(Debug, Default)]
struct SharedCounters {
    stop: AtomicBool,
    completed: AtomicU64,
    response_ns: AtomicU64,
    failed: AtomicU64,
    away: AtomicU64,
    filled_bytes: AtomicU64,
    fill_bytes: AtomicU64,
}

/// What a thread tells before it may start: its disks are ready, or why not.
type Ready = Result<(), TargetError>;

struct Crew {
    threads: Vec<JoinHandle<Option<(VmOutcome, Window)>>>,
    ready: Receiver<Ready>,
    start: Vec<Sender<Clock>>,
    shared: Arc<SharedCounters>,
}

/// Runs `plan` to its end, or until `observer` stops it.
///
/// # Errors
/// When a target cannot be opened, is too small or read-only, or filling fails.
pub fn run(plan: &Plan, observer: &mut dyn Observer) -> Result<Outcome, RunError> {
    let crew = hire(plan);
    let count = crew.threads.len();
    let mut refused = Vec::new();
    let mut heard = 0;
    let mut interrupted = false;
    while heard < count {
        match crew.ready.try_recv() {
            Ok(ready) => {
                heard += 1;
                refused.extend(ready.err());
                continue;
            }
            Err(mpsc::TryRecvError::Disconnected) => break,
            Err(mpsc::TryRecvError::Empty) => {}
        }
        interrupted |= watch(&crew.shared, None, observer);
    }
    if interrupted || !refused.is_empty() {
        // Without a start, the threads end.
        drop(crew.start);
        join(crew.threads);
        return Err(if refused.is_empty() {
            RunError::Stopped
        } else {
            RunError::Targets(refused)
        });
    }
    let clock = Clock::start();
    for start in &crew.start {
        // A thread that is gone tells why when it is joined.
        let _ = start.send(clock);
    }
    while !crew.threads.iter().all(JoinHandle::is_finished) {
        interrupted |= watch(&crew.shared, Some(&clock), observer);
    }
    let ended = join(crew.threads);
    let window = ended
        .iter()
        .map(|(_, window)| *window)
        .reduce(shortest)
        .unwrap_or(window(plan));
    let vms = ended.into_iter().map(|(outcome, _)| outcome).collect();
    Ok(Outcome {
        vms,
        window,
        interrupted,
    })
}

/// One thread per VM, waiting for its start.
fn hire(plan: &Plan) -> Crew {
    let pattern = Arc::new(Pattern::new(plan.seed));
    let shared = Arc::new(SharedCounters::default());
    // Filling starts when all targets are open, so that its progress has a total.
    let opened = Arc::new(Barrier::new(plan.vms.len()));
    let (tell, ready) = mpsc::channel();
    let mut threads = Vec::new();
    let mut start = Vec::new();
    for index in 0..plan.vms.len() {
        let (send, wait) = mpsc::channel();
        start.push(send);
        let name = plan.profile.vms[index].name.clone();
        let (plan, tell) = (plan.clone(), tell.clone());
        let (pattern, shared, opened) = (
            Arc::clone(&pattern),
            Arc::clone(&shared),
            Arc::clone(&opened),
        );
        let body = move || {
            let disks = Disks::open(&plan, index, pattern);
            opened.wait();
            let disks = disks.and_then(|mut disks| {
                if plan.fill {
                    disks.fill(&shared)?;
                }
                Ok(disks)
            });
            let disks = match disks {
                Ok(disks) => {
                    // Nobody listens any more when the run was called off.
                    tell.send(Ok(())).ok()?;
                    disks
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                    return None;
                }
            };
            let clock = wait.recv().ok()?;
            Some(worked(&plan, index, disks, clock, shared))
        };
        match std::thread::Builder::new().name(name).spawn(body) {
            Ok(thread) => threads.push(thread),
            Err(error) => panic!("the system gives no thread for a VM: {error}"),
        }
    }
    Crew {
        threads,
        ready,
        start,
        shared,
    }
}

/// What VM `index` does from the start to the end. One whose trace has gone away since
/// it was surveyed ends at once.
fn worked(
    plan: &Plan,
    index: usize,
    disks: Disks,
    clock: Clock,
    shared: Arc<SharedCounters>,
) -> (VmOutcome, Window) {
    let disk_bytes = disks.capacities_bytes();
    match Worker::new(plan, index, disks, clock, shared) {
        Ok(worker) => worker.run(),
        Err(lost) => {
            let streams = &plan.profile.vms[index].streams;
            let outcome = VmOutcome {
                measured: Measured::default(),
                streams: vec![Measured::default(); streams.len()],
                lost: Some(lost),
                outages: Vec::new(),
                disk_bytes,
            };
            (outcome, window(plan))
        }
    }
}

/// Shows the observer where the run is.
fn watch(shared: &SharedCounters, clock: Option<&Clock>, observer: &mut dyn Observer) -> bool {
    const PAUSE: Duration = Duration::from_millis(100);
    let total_bytes = shared.fill_bytes.load(Ordering::Relaxed);
    let phase = match clock {
        Some(clock) => Phase::Running {
            elapsed: Duration::from_nanos(clock.now().as_nanos()),
        },
        None if total_bytes == 0 => Phase::Opening,
        None => {
            let written_bytes = shared.filled_bytes.load(Ordering::Relaxed);
            Phase::Filling {
                written_bytes,
                total_bytes,
            }
        }
    };
    let progress = Progress {
        phase,
        completed: shared.completed.load(Ordering::Relaxed),
        response_ns: shared.response_ns.load(Ordering::Relaxed),
        failed: shared.failed.load(Ordering::Relaxed),
        away: shared.away.load(Ordering::Relaxed),
    };
    let stop = observer.observe(&progress, PAUSE);
    if stop {
        shared.stop.store(true, Ordering::Relaxed);
    }
    stop
}

fn join(threads: Vec<JoinHandle<Option<(VmOutcome, Window)>>>) -> Vec<(VmOutcome, Window)> {
    let mut ended = Vec::new();
    for thread in threads {
        match thread.join() {
            Ok(outcome) => ended.extend(outcome),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    ended
}

fn shortest(a: Window, b: Window) -> Window {
    if b.end < a.end { b } else { a }
}

/// The part of the run that is measured, if nobody stops it.
fn window(plan: &Plan) -> Window {
    let start = base::Time(0) + plan.warmup;
    Window {
        start,
        end: start + plan.duration,
    }
}
