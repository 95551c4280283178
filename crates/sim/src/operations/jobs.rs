//! What jobs do while nobody asks, as far as their list says.

use super::explain::{Excuses, Outcome, UnderWay};
use super::model::{Job, Model, Task};
use super::observe::job_of;
use super::request::{End, Request};
use api::{JobKind, JobState};
use array::control::ControlPlane;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use world_sim::SimWorld;

/// Tells jobs apart: their number, their second, and their volume. Numbers come again when the last
/// job is forgotten.
type Key = (u64, u64, String);

/// The jobs that somebody has looked at. It outlives boots.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Those that have ended.
    ended: RefCell<BTreeSet<Key>>,
    /// Those that had ended, and were begun again: their end was not on record when the power went.
    back: RefCell<BTreeSet<Key>>,
}

fn key(job: &api::Job) -> Key {
    (job.id, job.began_unix_s, job.volume.clone())
}

fn happened(request: Request) -> UnderWay {
    UnderWay {
        number: 0,
        request,
        outcome: Outcome::Done,
    }
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
    ) -> Vec<UnderWay> {
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
        events.into_iter().map(happened).collect()
    }

    /// What jobs have done that ended and were forgotten since the last look: the number of one that
    /// was forgotten before comes again.
    pub(super) fn forgotten(
        array: &ControlPlane<SimWorld>,
        before: &Model,
        said: &Model,
        under_way: &[UnderWay],
    ) -> Vec<UnderWay> {
        let forgets = |one: &UnderWay| matches!(one.request, Request::ForgetJob { .. });
        if !under_way.iter().any(forgets) {
            return Vec::new();
        }
        let listed: BTreeSet<String> = array
            .jobs()
            .list()
            .into_iter()
            .map(|job| job.volume)
            .collect();
        let mut events = Vec::new();
        for (volume, job) in &before.jobs {
            if listed.contains(volume) {
                continue;
            }
            let volume = volume.clone();
            let there = said.volumes.get(&volume).map(|one| &one.pool);
            let is_done = match &job.task {
                Task::Move { to, .. } => there == Some(to),
                Task::Copy { .. } => there.is_some(),
            };
            if is_done && matches!(job.task, Task::Move { .. }) {
                let volume = volume.clone();
                events.push(Request::Arrives { volume });
            }
            let end = match is_done {
                true => End::Done,
                false if job.is_cancelled => End::Cancelled,
                false => End::Failed { excused: true },
            };
            events.push(Request::JobEnds { volume, end });
        }
        events.into_iter().map(happened).collect()
    }

    /// This is how it is.
    pub(super) fn note(&self, array: &ControlPlane<SimWorld>) {
        let list = array.jobs().list().into_iter();
        let ended = list.filter(|job| job.state.is_ended());
        self.ended.borrow_mut().extend(ended.map(|job| key(&job)));
    }
}
