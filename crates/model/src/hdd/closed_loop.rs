//! A host that keeps a fixed number of commands at a drive: each end brings the next arrival at
//! once. For measuring models, in tests and in the tables of `docs/internals/models.md`.

use super::State;
use crate::{Completed, Request};
use base::Time;
use std::time::Duration;

/// What the host saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Commands that ended, which are all that were sent.
    pub completed: u64,
    /// From the first arrival to the last end.
    pub elapsed: Duration,
    /// The longest that one took.
    pub longest: Duration,
    /// A fingerprint of all ends in their order (FNV-1a).
    pub trace: u64,
}

impl Outcome {
    /// Commands per second of `elapsed`.
    pub fn iops(&self) -> f64 {
        self.completed as f64 / self.elapsed.as_secs_f64()
    }
}

/// Sends `count` commands, `depth` at a time, from `begin` on; `next` makes them.
///
/// # Panics
/// When a command ends twice or never, or before it came.
pub fn run(
    state: &mut State,
    begin: Time,
    depth: u64,
    count: u64,
    mut next: impl FnMut() -> Request,
) -> Outcome {
    let mut outcome = Outcome {
        trace: 0xcbf2_9ce4_8422_2325,
        ..Outcome::default()
    };
    // By ticket, less the first: when it came; taken when it ended.
    let mut arrivals: Vec<Option<Time>> = Vec::new();
    let mut first_ticket = None;
    let mut send = |state: &mut State, arrivals: &mut Vec<Option<Time>>, now| {
        let ticket = state.arrive(next(), now).0;
        let first = *first_ticket.get_or_insert(ticket);
        assert_eq!(ticket - first, arrivals.len() as u64, "tickets are counted");
        arrivals.push(Some(now));
        first
    };
    let mut first = 0;
    for _ in 0..depth.min(count) {
        first = send(state, &mut arrivals, begin);
    }
    let mut completed: Vec<Completed> = Vec::new();
    let mut last = begin;
    while let Some(event) = state.next_event().filter(|_| outcome.completed < count) {
        state.advance(event, &mut completed);
        for Completed { ticket, end } in completed.drain(..) {
            let arrival = arrivals[(ticket.0 - first) as usize].take();
            assert!(arrival.is_some(), "{ticket:?} ended twice");
            let arrival = arrival.unwrap_or_default();
            assert!(arrival <= end && last <= end, "time runs back");
            last = end;
            outcome.completed += 1;
            outcome.longest = outcome.longest.max(end.since(arrival));
            for word in [ticket.0, end.0] {
                outcome.trace = (outcome.trace ^ word).wrapping_mul(0x0100_0000_01b3);
            }
            if (arrivals.len() as u64) < count {
                send(state, &mut arrivals, end);
            }
        }
    }
    assert_eq!(outcome.completed, count, "commands were lost");
    outcome.elapsed = last.since(begin);
    outcome
}
