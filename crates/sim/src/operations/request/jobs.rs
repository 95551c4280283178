//! What requests of jobs come to, and what jobs do by themselves.

use super::super::model::{Id, Job, Model, Task, Volume};
use super::{Change, Request, changed, insert_new};
use engine::Provisioning;
use std::collections::BTreeMap;

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::operations) enum End {
    Done,
    /// Something that the model does not know may have been in its way, if that is `excused`.
    Failed {
        excused: bool,
    },
    Cancelled,
}

impl Request {
    /// The volume of the job that it makes.
    pub(in crate::operations) fn job_of(&self) -> Option<&String> {
        match self {
            Request::Move { volume, .. } => Some(volume),
            Request::Copy { target, .. } => Some(target),
            _ => None,
        }
    }

    /// As above.
    pub(super) fn change_jobs(&self, model: &mut Model, number: u64) -> Option<Change> {
        Some(match self {
            Request::Move {
                volume,
                to,
                leave_snapshots,
            } => begin_move(model, volume, to, *leave_snapshots),
            Request::Copy {
                source,
                target,
                pool,
            } => begin_copy(model, (source, target), pool.as_ref(), number),
            Request::CancelJob { volume } => match model.jobs.get_mut(volume) {
                None => Change::Refused,
                Some(job) => {
                    job.is_cancelled = true;
                    Change::Done
                }
            },
            Request::ForgetJob { .. } => Change::Done,
            Request::Arrives { volume } => arrive(model, volume),
            Request::JobEnds { volume, end } => end_job(model, volume, *end),
            _ => return None,
        })
    }

    /// Whether the server ended in the middle of making the volume of a job, which has failed then.
    pub(super) fn without_its_volume(&self, before: &Model, number: u64) -> Vec<Model> {
        let mut all = self.outcomes(before, number);
        if let Request::Copy { target, .. } = self {
            for model in &mut all {
                model.volumes.remove(target);
            }
        }
        all
    }
}

fn begin_move(model: &mut Model, name: &str, to: &str, leave_snapshots: bool) -> Change {
    let volume = model.volumes.get(name).filter(|one| !one.is_snapshot);
    let Some(volume) = volume.filter(|_| !model.jobs.contains_key(name)) else {
        return Change::Refused;
    };
    let of = |one: &Volume| one.is_snapshot && one.of == Some(volume.id);
    let has_snapshots = model.volumes.values().any(of);
    let is_there = model.pools.contains(to);
    if !is_there || volume.pool == to || has_snapshots && !leave_snapshots {
        return Change::Refused;
    }
    let task = Task::Move {
        from: volume.pool.clone(),
        to: to.to_owned(),
        leaves_snapshots: leave_snapshots,
    };
    let is_cancelled = false;
    model
        .jobs
        .insert(name.to_owned(), Job { task, is_cancelled });
    Change::Done
}

/// The volume is there at once.
fn begin_copy(
    model: &mut Model,
    (source, target): (&str, &str),
    pool: Option<&String>,
    number: u64,
) -> Change {
    let Some(of) = model.volumes.get(source) else {
        return Change::Refused;
    };
    let pool = pool.unwrap_or(&of.pool).clone();
    if !model.pools.contains(&pool) || model.jobs.contains_key(target) {
        return Change::Refused;
    }
    let copy = Volume {
        id: Id::New(number * 8),
        pool,
        size_bytes: of.size_bytes,
        provisioning: Provisioning::Thin,
        detects_zeroes: false,
        is_snapshot: false,
        of: None,
        tags: BTreeMap::new(),
        description: String::new(),
        group: None,
        schedules: BTreeMap::new(),
    };
    let task = Task::Copy {
        source: source.to_owned(),
        size_bytes: of.size_bytes,
    };
    let is_cancelled = false;
    let change = insert_new(model, target, copy);
    if change == Change::Done {
        model
            .jobs
            .insert(target.to_owned(), Job { task, is_cancelled });
    }
    change
}

/// A volume that moves is in its new pool; its job has not ended yet.
fn arrive(model: &mut Model, name: &str) -> Change {
    let Some(Task::Move { to, .. }) = model.jobs.get(name).map(|job| &job.task) else {
        return Change::Refused;
    };
    match model.volumes.get_mut(name) {
        None => Change::Refused,
        Some(volume) => {
            volume.pool.clone_from(to);
            Change::Done
        }
    }
}

fn end_job(model: &mut Model, name: &str, end: End) -> Change {
    let Some(job) = model.jobs.remove(name) else {
        return Change::Refused;
    };
    let pool = model.volumes.get(name).map(|volume| &volume.pool);
    let is_called_off = end == End::Cancelled && job.is_cancelled;
    match (job.task, end) {
        (Task::Move { to, .. }, End::Done) => changed(pool == Some(&to)),
        (Task::Move { from, .. }, End::Cancelled) => changed(is_called_off && pool == Some(&from)),
        (Task::Move { .. }, End::Failed { excused }) => changed(excused),
        (Task::Copy { .. }, End::Done) => changed(pool.is_some()),
        (Task::Copy { source, size_bytes }, _) => {
            let source = model.volumes.get(&source);
            let is_whole = source.is_some_and(|source| source.size_bytes >= size_bytes);
            let may_fail =
                !is_whole || pool.is_none() || matches!(end, End::Failed { excused: true });
            if !is_called_off && (end == End::Cancelled || !may_fail) {
                return Change::Refused;
            }
            // One that a target shows stays.
            if model.target_of(name).is_none() {
                model.volumes.remove(name);
            }
            Change::Done
        }
    }
}
