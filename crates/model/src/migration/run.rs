//! Migrations in time: from one instant at which something ends to the next.

use super::method::Method;
use super::outcome::{Interval, Migrated, Outcome, Round};
use super::rate::{Copying, Rate, Shares, payload_rate, share};
use super::{Path, Vm};
use std::time::Duration;

/// Below this much a copy has ended.
const NOTHING_BYTES: f64 = 1.0;
/// A machine that is slowed down writes at this part of the rate at which it is copied.
/// vSphere says only that pages are dirtied slower than they are sent; a half is ours.
const THROTTLED: f64 = 0.5;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Queued,
    /// Until then, seconds.
    Building(f64),
    /// Bytes of memory that the round still has; the machine runs.
    Copying(f64),
    /// The same while it is stopped.
    Stopped(f64),
    Resuming(f64),
    TearingDown(f64),
    Ended,
}

/// One migration on its way.
struct Moving<'a> {
    vm: &'a Vm,
    link: usize,
    phase: Phase,
    rate: Rate,
    round: Round,
    round_began: f64,
    done: Migrated,
}

/// Moves `vms`, in this order, and says how it went.
///
/// # Panics
/// When a path has no link or lets none move, when there is no part of a core for TCP, and
/// when a machine is bound to a link that does not exist.
pub fn migrate(method: &Method, path: &Path, vms: &[Vm]) -> Outcome {
    assert!(path.links > 0 && path.at_once > 0, "nothing can move");
    assert!(method.stop.rounds > 0, "memory is copied at least once");
    let begin = |(number, vm)| Moving::new(vm, number, path);
    let mut moving: Vec<Moving<'_>> = vms.iter().enumerate().map(begin).collect();
    let mut intervals = Vec::new();
    let mut now = 0.0;
    loop {
        admit(method, path, &mut moving, now);
        let shares = assign_rates(method, path, &mut moving);
        let Some(next) = moving
            .iter()
            .filter_map(|each| each.next(now))
            .reduce(f64::min)
        else {
            break;
        };
        if next > now {
            intervals.push(interval(method, path, &shares, now, next));
        }
        for each in &mut moving {
            each.advance(method, now, next);
        }
        now = next;
    }
    assert!(
        moving.iter().all(|each| each.phase == Phase::Ended),
        "a migration has no core or link to end with"
    );
    Outcome {
        migrations: moving.into_iter().map(|each| each.done).collect(),
        intervals,
        link_payload: payload_rate(path, method.transport),
    }
}

/// Lets migrations leave the queue.
fn admit(method: &Method, path: &Path, moving: &mut [Moving<'_>], now: f64) {
    let is_under_way = |each: &&Moving<'_>| !matches!(each.phase, Phase::Queued | Phase::Ended);
    let under_way = moving.iter().filter(is_under_way).count();
    let queued = moving.iter_mut().filter(|each| each.phase == Phase::Queued);
    for each in queued.take(path.at_once.saturating_sub(under_way)) {
        each.phase = Phase::Building(now + method.build.as_secs_f64());
        each.done.begun = Duration::from_secs_f64(now);
    }
}

fn assign_rates(method: &Method, path: &Path, moving: &mut [Moving<'_>]) -> Shares {
    let mut copying: Vec<&mut Moving<'_>> = moving.iter_mut().filter(|m| m.copies()).collect();
    let connections: Vec<Copying> = copying.iter().map(|m| Copying { link: m.link }).collect();
    let shares = share(method, path, &connections);
    for (each, &rate) in copying.iter_mut().zip(&shares.rates) {
        each.rate = rate;
    }
    shares
}

fn interval(method: &Method, path: &Path, shares: &Shares, from: f64, to: f64) -> Interval {
    let payload = payload_rate(path, method.transport);
    Interval {
        from: Duration::from_secs_f64(from),
        to: Duration::from_secs_f64(to),
        links: shares.links.iter().map(|used| used / payload).collect(),
        source_cores: shares.source_cores,
        destination_cores: shares.destination_cores,
    }
}

const NO_ROUND: Round = Round {
    memory_bytes: 0.0,
    wire_bytes: 0.0,
    duration: Duration::ZERO,
};

impl<'a> Moving<'a> {
    fn new(vm: &'a Vm, number: usize, path: &Path) -> Moving<'a> {
        let link = vm.link.unwrap_or(number % path.links);
        assert!(link < path.links, "bound to link {link} of {}", path.links);
        Moving {
            vm,
            link,
            phase: Phase::Queued,
            rate: Rate::default(),
            round: NO_ROUND,
            round_began: 0.0,
            done: Migrated {
                begun: Duration::ZERO,
                stopped: Duration::ZERO,
                resumed: Duration::ZERO,
                ended: Duration::ZERO,
                rounds: Vec::new(),
                speed: 1.0,
            },
        }
    }

    fn copies(&self) -> bool {
        matches!(self.phase, Phase::Copying(_) | Phase::Stopped(_))
    }

    /// When its phase or round ends at the present rate.
    fn next(&self, now: f64) -> Option<f64> {
        match self.phase {
            Phase::Queued | Phase::Ended => None,
            Phase::Building(end) | Phase::Resuming(end) | Phase::TearingDown(end) => Some(end),
            Phase::Copying(left) | Phase::Stopped(left) if left < NOTHING_BYTES => Some(now),
            Phase::Copying(left) | Phase::Stopped(left) => {
                (self.rate.memory > 0.0).then(|| now + left / self.rate.memory)
            }
        }
    }

    fn advance(&mut self, method: &Method, from: f64, now: f64) {
        // Rounding may leave bytes that take less time than a number of seconds can tell.
        let ends = self.next(from) == Some(now);
        let copied = self.rate.memory * (now - from);
        match &mut self.phase {
            Phase::Copying(left) | Phase::Stopped(left) => {
                let copied = if ends { *left } else { copied.min(*left) };
                *left -= copied;
                self.round.memory_bytes += copied;
                self.round.wire_bytes += self.rate.wire * (now - from);
            }
            _ => {}
        }
        let at = Duration::from_secs_f64(now);
        match self.phase {
            Phase::Building(end) if end <= now => {
                let unsent = self.vm.untouched_bytes.min(self.vm.memory_bytes);
                self.begin_round(now);
                self.phase = Phase::Copying((self.vm.memory_bytes - unsent) as f64);
            }
            Phase::Copying(left) if left < NOTHING_BYTES => self.end_round(method, now),
            Phase::Stopped(left) if left < NOTHING_BYTES => {
                self.close_round(now);
                self.phase = Phase::Resuming(now + method.resume.as_secs_f64());
            }
            Phase::Resuming(end) if end <= now => {
                self.done.resumed = at;
                self.phase = Phase::TearingDown(now + method.tear_down.as_secs_f64());
            }
            Phase::TearingDown(end) if end <= now => {
                self.done.ended = at;
                self.phase = Phase::Ended;
            }
            _ => {}
        }
    }

    fn begin_round(&mut self, now: f64) {
        self.round = NO_ROUND;
        self.round_began = now;
    }

    fn close_round(&mut self, now: f64) {
        self.round.duration = Duration::from_secs_f64(now - self.round_began);
        self.done.rounds.push(self.round);
    }

    /// What was dirtied meanwhile is the next round, or the last one.
    fn end_round(&mut self, method: &Method, now: f64) {
        self.close_round(now);
        let took = self.round.duration;
        let activity = &self.vm.activity;
        let dirty = activity.dirty_bytes(took, self.done.speed);
        let dirty = dirty.min(self.vm.memory_bytes as f64);
        let written = activity.dirty_bytes(Duration::from_secs(1), 1.0);
        if method.stop.throttle && written * self.done.speed >= self.rate.memory {
            // Fewer pages are dirtied from now on; those of this round are as they are.
            self.done.speed = THROTTLED * self.rate.memory / written;
        }
        let goal = self.rate.memory * method.stop.goal.as_secs_f64();
        self.begin_round(now);
        if dirty <= goal || self.done.rounds.len() >= method.stop.rounds as usize {
            self.done.stopped = Duration::from_secs_f64(now);
            self.phase = Phase::Stopped(dirty);
        } else {
            self.phase = Phase::Copying(dirty);
        }
    }
}
