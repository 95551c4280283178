//! Dies and channels, and the order in which their work waits.
//!
//! Invariants: a die and a channel do one thing at a time; the busy time is the sum of
//! the operations that were done; a suspended operation is resumed with what was left.

use super::agenda::{Agenda, Event};
use super::{Flash, MOST_SUSPENDS};
use base::{Prng, Time};
use std::collections::VecDeque;
use std::time::Duration;

/// What a job does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Sense,
    Transfer,
    Program,
    Erase,
}

/// A page that is read for a command, or a unit that is programmed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// The read command, or none for a program.
    pub(super) read_for: Option<u64>,
    /// Whether the unit is moved by collection.
    pub(super) collected: bool,
    pub(super) die: usize,
    /// Over the channel.
    pub(super) bytes: u64,
    pub(super) stage: Stage,
}

/// What was done since the drive was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Pages sensed, for hosts and for collection.
    pub reads: u64,
    /// Units programmed, for hosts and for collection.
    pub programs: u64,
    /// Of them moved by collection.
    pub collected: u64,
    /// Blocks of all planes that were erased.
    pub erases: u64,
    /// Programs and erases suspended for a read.
    pub suspends: u64,
    /// Bytes over the channels.
    pub transferred_bytes: u64,
    /// Time in which dies were busy, added up over dies.
    pub dies_busy: Duration,
    /// Time in which channels were busy, added up over channels.
    pub channels_busy: Duration,
}

#[derive(Clone, Debug, Default)]
struct Die {
    running: Option<(Job, Time)>,
    generation: u64,
    reads: VecDeque<Job>,
    background: VecDeque<Job>,
    suspended: Option<(Job, Duration)>,
    suspends: u8,
    programs_in_block: u32,
}

#[derive(Clone, Debug, Default)]
struct Channel {
    running: Option<Job>,
    queue: VecDeque<Job>,
}

/// All dies and channels of a drive.
#[derive(Clone, Debug)]
pub(super) struct Nand {
    dies: Vec<Die>,
    channels: Vec<Channel>,
    pub(super) counters: Counters,
}

impl Nand {
    pub(super) fn new(flash: &Flash, randomness: &mut Prng) -> Nand {
        let mut dies = vec![Die::default(); flash.dies()];
        for die in &mut dies {
            // Blocks fill up at different times, or all dies would erase at once.
            die.programs_in_block = randomness.below(u64::from(flash.programs_per_block)) as u32;
        }
        Nand {
            dies,
            channels: vec![Channel::default(); flash.channels],
            counters: Counters::default(),
        }
    }

    /// Begins a job at its stage.
    pub(super) fn submit(&mut self, flash: &Flash, agenda: &mut Agenda, job: Job, now: Time) {
        if job.stage == Stage::Transfer {
            let channel = job.die % flash.channels;
            self.channels[channel].queue.push_back(job);
            return self.start_channel(flash, agenda, channel, now);
        }
        let mut before = Duration::ZERO;
        if job.read_for.is_some() {
            self.dies[job.die].reads.push_back(job);
            before = self.suspend(flash, job.die, now);
        } else {
            self.dies[job.die].background.push_back(job);
        }
        self.start_die(flash, agenda, job.die, now, before);
    }

    /// Suspends the program or erase under way, where that can be; what it takes.
    fn suspend(&mut self, flash: &Flash, die: usize, now: Time) -> Duration {
        let die = &mut self.dies[die];
        let (Some(takes), Some((job, end))) = (flash.suspend, die.running) else {
            return Duration::ZERO;
        };
        let begun = matches!(job.stage, Stage::Program | Stage::Erase);
        let left = end.since(now);
        // What ends sooner than it could be suspended is left to end.
        if !begun || die.suspends == MOST_SUSPENDS || left <= takes {
            return Duration::ZERO;
        }
        die.suspended = Some((job, left));
        die.suspends += 1;
        die.running = None;
        self.counters.dies_busy -= left;
        self.counters.suspends += 1;
        takes
    }

    fn start_die(
        &mut self,
        flash: &Flash,
        agenda: &mut Agenda,
        at: usize,
        now: Time,
        before: Duration,
    ) {
        let die = &mut self.dies[at];
        if die.running.is_some() {
            return;
        }
        let (job, takes) = if let Some(job) = die.reads.pop_front() {
            (job, before + flash.t_read)
        } else if let Some(resumed) = die.suspended.take() {
            resumed
        } else if let Some(job) = die.background.pop_front() {
            die.suspends = 0;
            (job, background_time(flash, &job))
        } else {
            return;
        };
        die.generation += 1;
        die.running = Some((job, now + takes));
        self.counters.dies_busy += takes;
        let generation = die.generation;
        agenda.put(
            now + takes,
            Event::Die {
                die: at,
                generation,
            },
        );
    }

    fn start_channel(&mut self, flash: &Flash, agenda: &mut Agenda, at: usize, now: Time) {
        let channel = &mut self.channels[at];
        if channel.running.is_some() {
            return;
        }
        let Some(job) = channel.queue.pop_front() else {
            return;
        };
        channel.running = Some(job);
        let takes = transfer_time(job.bytes, flash.channel_bytes_per_second);
        self.counters.channels_busy += takes;
        self.counters.transferred_bytes += job.bytes;
        agenda.put(now + takes, Event::Channel(at));
    }

    /// A die's operation is over; the job that ended with it.
    pub(super) fn die_done(
        &mut self,
        flash: &Flash,
        agenda: &mut Agenda,
        (at, generation): (usize, u64),
        now: Time,
    ) -> Option<Job> {
        let die = &mut self.dies[at];
        if die.generation != generation || die.running.is_none() {
            // What was to end here has been suspended since.
            return None;
        }
        let (mut job, _) = die.running.take()?;
        let mut ended = None;
        match job.stage {
            Stage::Sense => {
                self.counters.reads += 1;
                job.stage = Stage::Transfer;
                self.submit(flash, agenda, job, now);
            }
            Stage::Program => {
                self.counters.programs += 1;
                self.counters.collected += u64::from(job.collected);
                die.programs_in_block += 1;
                if die.programs_in_block >= flash.programs_per_block {
                    die.programs_in_block = 0;
                    job.stage = Stage::Erase;
                    die.background.push_front(job);
                } else {
                    ended = Some(job);
                }
            }
            Stage::Erase => {
                self.counters.erases += 1;
                ended = Some(job);
            }
            Stage::Transfer => unreachable!("a die transfers nothing"),
        }
        self.start_die(flash, agenda, at, now, Duration::ZERO);
        ended
    }

    /// A channel's transfer is over; the job that ended with it.
    pub(super) fn channel_done(
        &mut self,
        flash: &Flash,
        agenda: &mut Agenda,
        at: usize,
        now: Time,
    ) -> Option<Job> {
        let mut job = self.channels[at].running.take()?;
        self.start_channel(flash, agenda, at, now);
        if job.read_for.is_some() {
            return Some(job);
        }
        job.stage = Stage::Program;
        self.submit(flash, agenda, job, now);
        None
    }
}

fn background_time(flash: &Flash, job: &Job) -> Duration {
    match job.stage {
        Stage::Program => flash.t_program,
        Stage::Erase => flash.t_erase,
        // A unit is a page of each plane, and planes are sensed together.
        Stage::Sense | Stage::Transfer => flash.t_read,
    }
}

/// So many bytes at such a rate, rounded up to a nanosecond.
pub(super) fn transfer_time(bytes: u64, bytes_per_second: u64) -> Duration {
    let nanos = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_second));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
