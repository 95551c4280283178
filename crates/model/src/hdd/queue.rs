//! The order of the arm's commands: shortest positioning time first, within an age.
//!
//! Of the commands that are there, one that the drive has had for longer than the
//! age limit is begun first, the oldest of them; else the one with the shortest
//! positioning that the drive reckons with (`cost`), from where the heads are now;
//! equal ones in the order of arrival. That this beats every order that looks at seeks alone, and
//! that it starves far commands without regard to age, is Worthington, Ganger and
//! Patt's, "Scheduling algorithms for modern disk drives" (SIGMETRICS 1994). They
//! take a part of the waiting off the positioning. Here it is a limit: taking a
//! hundredth off broke up sequential commands in a deep queue, which differ by
//! little in positioning, and cost them up to a tenth of their rate.
//!
//! Nothing starves: a command waits at most the limit, and then for the commands
//! that were there before it.
//!
//! A choice looks at every command once; the queue is bounded by the drive's tags
//! and by its cache.

use super::geometry::HeadPosition;
use crate::Request;
use base::Time;
use std::time::Duration;

/// A command for the medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub ticket: u64,
    pub request: Request,
    pub arrival: Time,
    /// When the controller is done with it and the arm may begin.
    pub ready: Time,
    /// The place of its first byte on the medium.
    pub place: HeadPosition,
    /// It was answered from the cache already; what is left is to write it.
    pub destage: bool,
}

/// The commands that the arm may choose from.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    jobs: Vec<Job>,
}

impl Queue {
    pub(super) fn with_capacity(jobs: usize) -> Queue {
        Queue {
            jobs: Vec::with_capacity(jobs),
        }
    }

    pub(super) fn push(&mut self, job: Job) {
        self.jobs.push(job);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter()
    }

    /// When the first command may be begun.
    pub(super) fn first_ready(&self) -> Option<Time> {
        self.jobs.iter().map(|job| job.ready).min()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Takes a command out by the index that [`Queue::best`] gave.
    pub(super) fn take(&mut self, index: usize) -> Job {
        self.jobs.swap_remove(index)
    }

    /// The index of the best of the commands that are ready at `now`, by the positioning
    /// that the drive reckons with, in nanoseconds.
    pub(super) fn best(
        &self,
        now: Time,
        age_limit: Duration,
        reckoned_ns: impl Fn(&Job) -> u64,
    ) -> Option<usize> {
        let is_ready = |(_, job): &(usize, &Job)| job.ready <= now;
        let key = |(_, job): &(usize, &Job)| {
            let in_time = now.since(job.ready) <= age_limit;
            let reckoned_ns = if in_time { reckoned_ns(job) } else { 0 };
            (in_time, reckoned_ns, job.ticket)
        };
        let ready = self.jobs.iter().enumerate().filter(is_ready);
        ready.min_by_key(key).map(|(index, _)| index)
    }
}
