//! A hard disk drive: arm, spindle, command queue, buffer.
//!
//! A command that arrives at `t` may be begun from `t + o`, with `o` the
//! controller's overhead. The arm does one at a time, and its time is
//!
//! ```text
//! service = seek(distance) + error + rotation + transfer          in nanoseconds
//! ```
//!
//! Seek is in `seek`; on the same cylinder under another head it is a head switch
//! instead. Rotation is the wait until the first byte comes under the head: the
//! spindle's position is time plus a phase, drawn once, modulo a revolution.
//! Transfer goes on along the tracks, switches included (`geometry`). Which
//! command is next is in `queue`: shortest positioning first, bounded by age. So
//! random commands one at a time take `o + seek + T/2 + transfer` on the average.
//!
//! A write ends on the medium, or, with the write cache on, when it is in the
//! buffer: after `o + length / interface rate`. The buffer's writes go to the
//! medium in the same queue as everything else. A write that finds the buffer full
//! waits, in order, until one has gone. A flush ends when every write that came
//! before it is on the medium. A read that the buffer holds, from a
//! write or from reading ahead (`read_ahead`), ends after `o + length / interface
//! rate`. A discard does nothing and takes `o`.
//!
//! At most `tags` commands are in the drive; the others wait before it, in order.
//!
//! Whoever calls makes the time pass: [`State::arrive`] with each command,
//! [`State::next_event`] for when to look again, [`State::advance`] then. Every
//! ticket ends exactly once, at a time no earlier than that of its arrival; equal
//! times end in the order of arrival. The phase and the errors of seeks are all that is random.
//!
//! Left out: defects, recalibration, errors, power saving, several read-ahead
//! segments, and what a maker's firmware does to be better than this.

pub mod closed_loop;
mod cost;
mod counters;
mod geometry;
mod presets;
mod queue;
mod read_ahead;
mod seek;
#[cfg(test)]
mod tests;

pub use counters::Counters;
pub use seek::SeekPoints;

use crate::{Completed, Request, RequestKind, Ticket};
use base::{Prng, Time};
use cost::Mechanism;
use queue::{Job, Queue};
use read_ahead::{ReadAhead, SegmentHit};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

/// What a drive is like. The constants of this type are drives with sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hdd {
    /// Class, as sites name it.
    pub name: &'static str,
    /// Bytes that it offers.
    pub capacity_bytes: u64,
    /// Revolutions of the spindle per minute.
    pub rpm: u32,
    /// Surfaces that hold data, each with a head.
    pub heads: u32,
    /// Zones of equal transfer rate, from 2.
    pub zones: u32,
    /// Sustained rate of the outermost zone, bytes per second.
    pub outer_bytes_per_s: u64,
    /// Sustained rate of the innermost zone, bytes per second.
    pub inner_bytes_per_s: u64,
    /// The seek times of reads, by distance.
    pub read_seek: SeekPoints,
    /// The seek times of writes, by distance.
    pub write_seek: SeekPoints,
    /// To the next head or on to the next cylinder; what tracks are skewed by.
    pub switch: Duration,
    /// The most by which a seek takes longer or shorter than the drive reckons.
    pub seek_error: Duration,
    /// The controller's, for every command.
    pub overhead: Duration,
    /// Between buffer and host, bytes per second.
    pub interface_bytes_per_s: u64,
    /// Room for written bytes that are not on the medium yet.
    pub cache_bytes: u64,
    /// The most that is read ahead.
    pub read_ahead_bytes: u64,
    /// Whether writes end in the buffer.
    pub write_cache: bool,
    /// Commands in the drive at once, and writes in the buffer, from 1.
    pub tags: usize,
    /// A command that has waited longer goes before all others.
    pub age_limit: Duration,
}

impl Hdd {
    /// Time of a revolution.
    pub const fn revolution(&self) -> Duration {
        Duration::from_nanos(60_000_000_000 / self.rpm as u64)
    }

    /// This drive with its write cache on.
    pub const fn with_write_cache(self) -> Hdd {
        Hdd {
            write_cache: true,
            ..self
        }
    }
}

/// What the arm is about until `end`.
#[derive(Clone, Copy, Debug)]
struct Active {
    job: Job,
    end: Time,
    /// The heads follow the read-ahead; a read waits for the rest of it.
    follows: bool,
}

/// A flush that waits for the writes before it.
#[derive(Clone, Copy, Debug)]
struct Barrier {
    ticket: u64,
    /// The controller is not done with it before.
    ready: Time,
}

/// One drive in time.
#[derive(Clone, Debug)]
pub struct State {
    drive: Hdd,
    mechanism: Mechanism,
    now: Time,
    next_ticket: u64,
    tags_used: usize,
    /// Before the drive, for want of a tag.
    outside: VecDeque<Job>,
    queue: Queue,
    active: Option<Active>,
    read_ahead: Option<ReadAhead>,
    /// Writes in the buffer that are not on the medium, and their bytes.
    dirty_writes: usize,
    dirty_bytes: u64,
    /// Writes that found the buffer full.
    parked: VecDeque<Job>,
    barriers: Vec<Barrier>,
    /// Ends that are certain.
    ends: BinaryHeap<Reverse<(Time, u64)>>,
    counters: Counters,
    by_stroke: [u64; STROKE_PARTS],
}

/// The stroke is cut into so many parts, to tell how much of it is used.
pub const STROKE_PARTS: usize = 64;

impl State {
    /// A drive at rest at time zero, its heads outside, its phase drawn.
    ///
    /// # Panics
    /// When the drive's figures contradict each other.
    pub fn new(drive: &Hdd, randomness: &mut Prng) -> State {
        assert!(drive.tags > 0, "a drive without a tag serves nothing");
        assert!(drive.interface_bytes_per_s > 0);
        State {
            drive: *drive,
            mechanism: Mechanism::new(drive, randomness),
            now: Time::default(),
            next_ticket: 0,
            tags_used: 0,
            outside: VecDeque::new(),
            queue: Queue::with_capacity(2 * drive.tags),
            active: None,
            read_ahead: None,
            dirty_writes: 0,
            dirty_bytes: 0,
            parked: VecDeque::new(),
            barriers: Vec::new(),
            ends: BinaryHeap::with_capacity(drive.tags),
            counters: Counters::default(),
            by_stroke: [0; STROKE_PARTS],
        }
    }

    /// A command comes.
    ///
    /// # Panics
    /// When time runs back or an event was passed over, and when the command
    /// reaches beyond the drive.
    pub fn arrive(&mut self, request: Request, now: Time) -> Ticket {
        assert!(now >= self.now, "time runs back: {now} after {}", self.now);
        let passed = self.next_event().is_some_and(|event| event < now);
        assert!(!passed, "an event before {now} was not looked at");
        let end = request.at.0.checked_add(request.len_bytes);
        assert!(
            end.is_some_and(|end| end <= self.drive.capacity_bytes),
            "beyond the end of the drive: {request:?}"
        );
        self.now = now;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.counters.arrived += 1;
        let job = Job {
            ticket,
            request,
            arrival: now,
            ready: now + self.drive.overhead,
            place: self.mechanism.place(request.at),
            destage: false,
        };
        if self.tags_used < self.drive.tags {
            self.admit(job);
        } else {
            self.outside.push_back(job);
        }
        Ticket(ticket)
    }

    /// When to call [`State::advance`] next, unless something arrives before.
    /// `None` when nothing is under way.
    pub fn next_event(&self) -> Option<Time> {
        let arm = match &self.active {
            Some(active) => Some(active.end),
            None => self.queue.first_ready().map(|ready| ready.max(self.now)),
        };
        let end = self.ends.peek().map(|Reverse((end, _))| *end);
        arm.into_iter().chain(end).min()
    }

    /// Lets the time pass until `now`; what ends is appended to `completed`, in
    /// the order of time.
    ///
    /// # Panics
    /// When time runs back.
    pub fn advance(&mut self, now: Time, completed: &mut Vec<Completed>) {
        assert!(now >= self.now, "time runs back: {now} after {}", self.now);
        while let Some(event) = self.next_event().filter(|&event| event <= now) {
            self.now = event;
            if let Some(active) = self.active.take_if(|active| active.end == event) {
                self.finish(active);
            }
            while let Some(Reverse((end, ticket))) = self.ends.peek().copied() {
                if end > event {
                    break;
                }
                self.ends.pop();
                let ticket = Ticket(ticket);
                completed.push(Completed { ticket, end });
                self.counters.completed += 1;
                self.tags_used -= 1;
                if let Some(mut job) = self.outside.pop_front() {
                    job.ready = event + self.drive.overhead;
                    self.admit(job);
                }
            }
            if self.active.is_none() {
                self.begin();
            }
        }
        self.now = now;
    }

    /// What was done so far. Work under way is counted from its beginning.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Commands that the arm sought for so far, by where they lie on the stroke, from the
    /// outermost part to the innermost.
    pub fn by_stroke(&self) -> &[u64; STROKE_PARTS] {
        &self.by_stroke
    }

    /// A command gets a tag.
    fn admit(&mut self, job: Job) {
        self.tags_used += 1;
        match job.request.kind {
            RequestKind::Read => self.admit_read(job),
            RequestKind::Write | RequestKind::DurableWrite => {
                let (from, end) = range(&job.request);
                self.forget_ahead(from, end);
                let is_durable = job.request.kind == RequestKind::DurableWrite;
                if is_durable || !self.drive.write_cache {
                    self.queue.push(job);
                } else if self.parked.is_empty() && self.has_room(&job) {
                    self.buffer(job);
                } else {
                    self.parked.push_back(job);
                }
            }
            RequestKind::Flush if self.dirty_writes > 0 => {
                self.barriers.push(Barrier {
                    ticket: job.ticket,
                    ready: job.ready,
                });
            }
            RequestKind::Flush | RequestKind::Discard => self.end(job.ready, &job),
        }
    }

    fn admit_read(&mut self, job: Job) {
        let (from, end) = range(&job.request);
        let holds = |write: &Job| {
            let (first, last) = range(&write.request);
            write.destage && first <= from && end <= last
        };
        if self.queue.iter().any(holds) {
            self.counters.hits += 1;
            let answered = job.ready + self.interface_time(&job.request);
            return self.end(answered, &job);
        }
        // Whoever waits already has the arm first, by age and distance.
        if !(self.queue.is_empty() && self.answer_ahead(&job)) {
            self.queue.push(job);
        }
    }

    /// What was read ahead of `from..end` is not true any more.
    fn forget_ahead(&mut self, from: u64, end: u64) {
        let forgotten = self
            .read_ahead
            .take_if(|ahead| ahead.overlaps(from, end))
            .filter(ReadAhead::is_running);
        if let Some(ahead) = forgotten {
            let end = ahead.end_at(&self.mechanism.geometry, self.now);
            self.mechanism.stand_at(end);
        }
    }

    /// Whether and when what is read ahead has all of a read.
    fn find_ahead(&self, job: &Job) -> SegmentHit {
        let (from, end) = range(&job.request);
        match &self.read_ahead {
            Some(ahead) if job.request.kind == RequestKind::Read => {
                ahead.find(&self.mechanism.geometry, from, end, self.now)
            }
            _ => SegmentHit::Not,
        }
    }

    /// Answers a read from what is read ahead. False when the medium must be asked.
    fn answer_ahead(&mut self, job: &Job) -> bool {
        let answered = job.ready.max(self.now) + self.interface_time(&job.request);
        match self.find_ahead(job) {
            SegmentHit::Whole => self.end(answered, job),
            SegmentHit::ComingAt(there) if self.active.is_none() => {
                let end = there.max(answered);
                self.counters.transfer += end.since(self.now);
                self.active = Some(Active {
                    job: *job,
                    end,
                    follows: true,
                });
            }
            SegmentHit::ComingAt(_) | SegmentHit::Not => return false,
        }
        self.counters.hits += 1;
        self.read_on(job);
        true
    }

    /// The host comes as far as `job`; so much of the segment is free again.
    fn read_on(&mut self, job: &Job) {
        let limit = range(&job.request).1 + self.drive.read_ahead_bytes;
        let limit = limit.min(self.drive.capacity_bytes);
        if let Some(ahead) = &mut self.read_ahead {
            ahead.extend(&self.mechanism.geometry, self.now, limit);
        }
    }

    /// The arm turns to the best commands that are ready, until one keeps it.
    fn begin(&mut self) {
        if let Some(ahead) = &self.read_ahead
            && ahead.is_running()
        {
            let end = ahead.end_at(&self.mechanism.geometry, self.now);
            self.mechanism.stand_at(end);
        }
        while self.active.is_none() {
            let (now, age_limit) = (self.now, self.drive.age_limit);
            let reckoned_ns = |job: &Job| match self.find_ahead(job) {
                SegmentHit::Not => self.mechanism.reckoned_ns(job, now),
                SegmentHit::Whole | SegmentHit::ComingAt(_) => 0,
            };
            let Some(job) = self.queue.best(now, age_limit, reckoned_ns) else {
                return;
            };
            let job = self.queue.take(job);
            if !self.answer_ahead(&job) {
                self.seek_for(job);
            }
        }
    }

    fn seek_for(&mut self, job: Job) {
        let now = self.now;
        let cost = self.mechanism.position(&job, now);
        if let Some(ahead) = &mut self.read_ahead {
            ahead.stop(now);
        }
        let transfer_ns = self.mechanism.transfer_ns(&job);
        let cylinders = u64::from(self.mechanism.geometry.cylinders());
        let part = u64::from(job.place.cylinder) * STROKE_PARTS as u64 / cylinders;
        self.by_stroke[part as usize] += 1;
        self.mechanism.stand_at(range(&job.request).1);
        let nanos = Duration::from_nanos;
        self.counters.served += 1;
        self.counters.seek += nanos(cost.seek_ns);
        self.counters.rotation += nanos(cost.rotation_ns);
        self.counters.transfer += nanos(transfer_ns);
        self.counters.missed += u64::from(cost.is_missed);
        if !job.destage {
            self.counters.queued += now.since(job.arrival + self.drive.overhead);
        }
        let end = now + nanos(cost.seek_ns + cost.rotation_ns + transfer_ns);
        self.active = Some(Active {
            job,
            end,
            follows: false,
        });
    }

    fn finish(&mut self, active: Active) {
        let Active { job, end, follows } = active;
        if job.destage {
            self.destaged(&job);
            return;
        }
        self.end(end, &job);
        if job.request.kind == RequestKind::Read && !follows {
            let (from, last) = range(&job.request);
            let limit = last + self.drive.read_ahead_bytes;
            let limit = limit.min(self.drive.capacity_bytes);
            self.read_ahead = Some(ReadAhead::after(from, last, end, limit));
        }
    }

    /// A write of the buffer is on the medium.
    fn destaged(&mut self, job: &Job) {
        self.counters.destaged += 1;
        self.dirty_writes -= 1;
        self.dirty_bytes -= job.request.len_bytes;
        while let Some(first) = self.parked.front().copied() {
            if !self.has_room(&first) {
                break;
            }
            self.parked.pop_front();
            self.buffer(Job {
                ready: first.ready.max(self.now),
                ..first
            });
        }
        let (queue, now) = (&self.queue, self.now);
        let oldest = queue.iter().filter(|write| write.destage);
        let oldest = oldest.map(|write| write.ticket).min().unwrap_or(u64::MAX);
        let ends = &mut self.ends;
        self.barriers.retain(|barrier| {
            let waits = oldest < barrier.ticket;
            if !waits {
                ends.push(Reverse((now.max(barrier.ready), barrier.ticket)));
            }
            waits
        });
    }

    /// A write larger than the buffer goes through an empty one.
    fn has_room(&self, job: &Job) -> bool {
        let bytes = self.dirty_bytes.saturating_add(job.request.len_bytes);
        self.dirty_writes == 0
            || (self.dirty_writes < self.drive.tags && bytes <= self.drive.cache_bytes)
    }

    /// Answers a write from the buffer and leaves the medium to later.
    fn buffer(&mut self, job: Job) {
        self.dirty_writes += 1;
        self.dirty_bytes += job.request.len_bytes;
        let ready = job.ready + self.interface_time(&job.request);
        self.end(ready, &job);
        self.queue.push(Job {
            ready,
            destage: true,
            ..job
        });
    }

    fn end(&mut self, at: Time, job: &Job) {
        self.ends.push(Reverse((at, job.ticket)));
    }

    fn interface_time(&self, request: &Request) -> Duration {
        let nanos = u128::from(request.len_bytes) * 1_000_000_000;
        let nanos = nanos / u128::from(self.drive.interface_bytes_per_s);
        Duration::from_nanos(nanos as u64)
    }
}

/// First byte, and first byte after the last.
fn range(request: &Request) -> (u64, u64) {
    (request.at.0, request.at.0 + request.len_bytes)
}
