//! What jobs do while nobody asks, as far as their list says.

use super::explain::Excuses;
use super::model::{Job, Model};
use super::observe::job_of;
use super::request::{End, Request};
use api::{JobKind, JobState};
use array::control::ControlPlane;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use world_sim::SimWorld;

/// Tells jobs apart: their number, their second, and their volume.
type Key = (u64, u64, String);

/// The jobs that somebody has looked at. It outlives boots.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Those that have ended.
    ended: RefCell<BTreeSet<Key>>,
    /// Those that had ended, and were begun again: their end was not on record when the power went.
    back: RefCell<BTreeSet<Key>>,
    /// All of them. A number is of one job for ever.
    numbers: RefCell<BTreeMap<u64, Key>>,
}

fn key(job: &api::Job) -> Key {
    (job.id, job.began_unix_s, job.volume.clone())
}

impl Seen {
    /// Numbers of jobs that have ended.
    pub(super) fn ended(&self) -> Vec<u64> {
        self.ended.borrow().iter().map(|key| key.0).collect()
    }

    /// Jobs that had ended before the power went, and begin again.
    pub(super) fn come_back(&self, array: &ControlPlane<SimWorld>) -> BTreeMap<String, Job> {
        let mut ended = self.ended.borrow_mut();
        let mut found = BTreeMap::new();
        for one in array.jobs().pending() {
            let key = (one.id, one.began_unix_s, one.order.volume.clone());
            if ended.remove(&key) {
                self.back.borrow_mut().insert(key);
                found.insert(one.order.volume.clone(), job_of(one));
            }
        }
        found
    }

    /// What jobs have done since the last look, by what is `said` now.
    pub(super) fn events(
        &self,
        array: &ControlPlane<SimWorld>,
        said: &Model,
        excuses: Excuses,
    ) -> impl Iterator<Item = Request> {
        let mut events = Vec::new();
        for job in array.jobs().list() {
            let key = key(&job);
            if self.ended.borrow().contains(&key) {
                continue;
            }
            let volume = job.volume.clone();
            let there = said.volumes.get(&volume).map(|volume| &volume.pool);
            let is_move = job.kind == JobKind::Move;
            let has_moved = match job.state {
                JobState::Done => true,
                JobState::Failed | JobState::Cancelled => false,
                _ => there == job.to_pool.as_ref(),
            };
            if is_move && has_moved {
                let volume = volume.clone();
                events.push(Request::Arrives { volume });
            }
            let is_recorded = excuses.record_fails && !is_move;
            let is_back = self.back.borrow().contains(&key);
            let excused = excuses.shards_stall || is_recorded || is_back;
            let end = match job.state {
                JobState::Done => End::Done,
                JobState::Failed => End::Failed { excused },
                JobState::Cancelled => End::Cancelled,
                _ => continue,
            };
            events.push(Request::JobEnds { volume, end });
        }
        events.into_iter()
    }

    /// This is how it is.
    ///
    /// # Errors
    /// A job has the number of another.
    pub(super) fn note(&self, array: &ControlPlane<SimWorld>) -> Result<(), String> {
        for job in array.jobs().list() {
            let key = key(&job);
            let mut numbers = self.numbers.borrow_mut();
            let first = numbers.entry(job.id).or_insert_with(|| key.clone());
            if *first != key {
                let (id, then, now) = (job.id, &first.2, &key.2);
                return Err(format!("job {id} is of {now} now, and was of {then}"));
            }
            if job.state.is_ended() {
                self.ended.borrow_mut().insert(key);
            }
        }
        Ok(())
    }
}
