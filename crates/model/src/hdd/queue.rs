//! The order of the arm's commands: shortest positioning time first, within an age.
//!
//! Of the commands that are there, one that the drive has had for longer than the
//! age limit is begun first, the oldest of them; else the one with the shortest
//! positioning, seek and rotation from where the heads are now; equal ones in the
//! order of arrival. That this beats every order that looks at seeks alone, and
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

/// Where the time of a command goes. In nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Positioning {
    pub seek_ns: u64,
    pub rotation_ns: u64,
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

    /// The index of the best of the commands that are ready at `now`, with its
    /// positioning.
    pub(super) fn best(
        &self,
        now: Time,
        age_limit: Duration,
        positioning: impl Fn(&Job) -> Positioning,
    ) -> Option<(usize, Positioning)> {
        let mut best: Option<((bool, u64, u64), usize, Positioning)> = None;
        for (index, job) in self.jobs.iter().enumerate() {
            if job.ready > now {
                continue;
            }
            let cost = positioning(job);
            let in_time = now.since(job.ready) <= age_limit;
            let cost_ns = if in_time {
                cost.seek_ns + cost.rotation_ns
            } else {
                0
            };
            let key = (in_time, cost_ns, job.ticket);
            if best.is_none_or(|(best, _, _)| key < best) {
                best = Some((key, index, cost));
            }
        }
        best.map(|(_, index, cost)| (index, cost))
    }
}
