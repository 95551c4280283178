//! A drive under a fixed number of commands, as datasheets measure it.

use super::{Counters, Flash, State};
use crate::{Request, RequestKind, Ticket};
use base::{DriveOffset, Prng, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// What was measured, after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Commands that ended after the warm-up.
    pub completed: u64,
    /// Bytes that these commands read or wrote.
    pub bytes: u64,
    /// From the end of the warm-up to the last end.
    pub elapsed: Duration,
    /// Sum of the latencies of reads.
    pub read_latency: Duration,
    /// Reads among the completed commands.
    pub reads: u64,
    /// Sum of the latencies of writes.
    pub write_latency: Duration,
    /// Writes among the completed commands.
    pub writes: u64,
    /// What dies and channels did in all, warm-up included.
    pub counters: Counters,
}

impl Outcome {
    /// Commands per second of `elapsed`.
    pub fn iops(&self) -> f64 {
        self.completed as f64 / self.elapsed.as_secs_f64()
    }

    /// 10^6 bytes per second.
    pub fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.elapsed.as_secs_f64() / 1e6
    }

    /// Mean latency of reads, microseconds.
    pub fn read_micros(&self) -> f64 {
        self.read_latency.as_secs_f64() * 1e6 / self.reads as f64
    }

    /// Mean latency of writes, microseconds.
    pub fn write_micros(&self) -> f64 {
        self.write_latency.as_secs_f64() * 1e6 / self.writes as f64
    }
}

/// Commands of 4 KiB anywhere on the drive, so many hundredths of them writes.
pub fn random(flash: &Flash, writes: u64, mut prng: Prng) -> impl FnMut() -> Request {
    let blocks = flash.capacity_bytes / 4096;
    move || Request {
        at: DriveOffset(prng.below(blocks) * 4096),
        len_bytes: 4096,
        kind: if prng.below(100) < writes {
            RequestKind::Write
        } else {
            RequestKind::Read
        },
    }
}

/// Commands of 128 KiB, one behind the other from the beginning of the drive.
pub fn sequential(kind: RequestKind) -> impl FnMut() -> Request {
    let mut at = 0;
    move || {
        at += 131_072;
        Request {
            kind,
            at: DriveOffset(at - 131_072),
            len_bytes: 131_072,
        }
    }
}

/// Keeps `depth` commands outstanding, `next` making each, until `warm_up` and then
/// `measured` more have ended.
///
/// # Panics
/// When the drive rests while commands are outstanding, or ends one twice.
pub fn run(
    state: &mut State,
    depth: u64,
    (warm_up, measured): (u64, u64),
    mut next: impl FnMut() -> Request,
) -> Outcome {
    let mut began: BTreeMap<Ticket, (Time, Request)> = BTreeMap::new();
    let mut outcome = Outcome::default();
    let (mut now, mut from, mut ended) = (Time::default(), Time::default(), 0);
    let mut completed = Vec::new();
    for _ in 0..depth {
        let request = next();
        began.insert(state.arrive(request, now), (now, request));
    }
    while ended < warm_up + measured {
        let Some(event) = state.next_event() else {
            panic!("the drive rests with {} commands outstanding", began.len());
        };
        now = event;
        state.advance(now, &mut completed);
        for end in completed.drain(..) {
            let Some((begin, request)) = began.remove(&end.ticket) else {
                panic!("a command ended twice");
            };
            ended += 1;
            if ended > warm_up {
                record(&mut outcome, request, now - begin);
            } else {
                from = now;
            }
            let request = next();
            began.insert(state.arrive(request, now), (now, request));
        }
    }
    outcome.elapsed = now - from;
    outcome.counters = state.counters();
    outcome
}

fn record(outcome: &mut Outcome, request: Request, latency: Duration) {
    outcome.completed += 1;
    outcome.bytes += request.len_bytes;
    if request.kind == RequestKind::Read {
        outcome.reads += 1;
        outcome.read_latency += latency;
    } else {
        outcome.writes += 1;
        outcome.write_latency += latency;
    }
}
