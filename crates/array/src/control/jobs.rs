//! What jobs that are at work on volumes forbid others.

use super::{ArrayError, ArrayErrorKind};
use base::Uuid;
use engine::pool::SNAPSHOT_MARK;
use std::collections::BTreeSet;

/// What a job does with its volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobWork {
    /// Fills it from an image.
    Import,
    /// Writes it to an image.
    Export,
    /// Moves it to another pool.
    Move {
        /// Its snapshots stay where they are.
        leaves_snapshots: bool,
    },
    /// Copies another volume to it.
    Copy,
}

/// A job that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingJob {
    /// The number that users see.
    pub id: u64,
    /// Name of its volume.
    pub volume: String,
    /// Identity of its volume, once there is one.
    pub uuid: Option<Uuid>,
    /// What it does with it.
    pub work: JobWork,
}

/// Knows the jobs of the array.
pub trait Jobs: Send + Sync {
    /// Those that have not ended, by number.
    fn pending(&self) -> Vec<PendingJob>;

    /// Complains when a job is at work on the volume called `name`, but `but`.
    ///
    /// # Errors
    /// Which job that is.
    fn check_free(&self, name: &str, but: Option<u64>) -> Result<(), ArrayError> {
        check(self.pending(), name, |job| Some(job.id) != but)
    }

    /// As [`Jobs::check_free`], for what an export of the volume does not disturb. Hosts may have
    /// a volume that is moved or copied to, also when the server starts with such a job.
    ///
    /// # Errors
    /// Which job that is.
    fn check_whole(&self, name: &str) -> Result<(), ArrayError> {
        check(self.pending(), name, |job| job.work == JobWork::Import)
    }

    /// Complains when a job is at work on the volume called `name` or a snapshot of it,
    /// which would get another name as well.
    ///
    /// # Errors
    /// Which job that is.
    fn check_name_stays(&self, name: &str) -> Result<(), ArrayError> {
        let of = |job: &PendingJob| {
            let rest = job.volume.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(SNAPSHOT_MARK))
        };
        match self.pending().into_iter().find(of) {
            None => Ok(()),
            Some(job) => self.check_free(&job.volume, None),
        }
    }

    /// Complains when a job moves the volume called `name`, and its snapshots would have to
    /// go with it.
    ///
    /// # Errors
    /// Which job that is.
    fn check_snapshots(&self, name: &str) -> Result<(), ArrayError> {
        let takes_them = JobWork::Move {
            leaves_snapshots: false,
        };
        check(self.pending(), name, |job| job.work == takes_them)
    }

    /// Complains when a job moves the volume called `name`.
    ///
    /// # Errors
    /// Which job that is.
    fn check_still(&self, name: &str) -> Result<(), ArrayError> {
        check(self.pending(), name, |job| job.work.is_move())
    }

    /// Identities of the volumes that jobs move.
    fn moving(&self) -> BTreeSet<Uuid> {
        let pending = self.pending().into_iter();
        let moves = pending.filter(|job| job.work.is_move());
        moves.filter_map(|job| job.uuid).collect()
    }
}

/// An array without jobs.
pub struct NoJobs;

impl Jobs for NoJobs {
    fn pending(&self) -> Vec<PendingJob> {
        Vec::new()
    }
}

impl JobWork {
    fn is_move(self) -> bool {
        matches!(self, JobWork::Move { .. })
    }
}

fn check(
    pending: Vec<PendingJob>,
    name: &str,
    counts: impl Fn(&PendingJob) -> bool,
) -> Result<(), ArrayError> {
    let found = pending
        .into_iter()
        .find(|job| job.volume == name && counts(job));
    let Some(PendingJob { id, work, .. }) = found else {
        return Ok(());
    };
    let what = match work {
        JobWork::Import => "is being imported",
        JobWork::Export => "is being exported to a file",
        JobWork::Move { .. } => "is being moved to another pool",
        JobWork::Copy => "is being copied to",
    };
    let context = format!(
        "volume {name} {what} by job {id}; wait for its end, or end it with `ashlar job \
         cancel {id}`"
    );
    Err(ArrayError::new(ArrayErrorKind::Busy, context))
}
