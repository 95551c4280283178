//! What jobs that are at work on volumes forbid others.

use super::{Job, Jobs};
use crate::error::{ArrayError, ArrayErrorKind};
use api::JobKind;
use base::Uuid;
use engine::pool::SNAPSHOT_MARK;
use std::collections::BTreeSet;

impl Jobs {
    /// Those that have not ended, by number.
    pub fn pending(&self) -> Vec<Job> {
        let entries = self.entries();
        let pending = entries.values().filter(|entry| !entry.job.state.is_ended());
        pending.map(|entry| entry.job.clone()).collect()
    }

    /// Complains when a job is at work on the volume called `name`, but `but`.
    ///
    /// # Errors
    /// Which job that is.
    pub fn check_free(&self, name: &str, but: Option<u64>) -> Result<(), ArrayError> {
        self.check(name, |job| Some(job.id) != but)
    }

    /// As [`Jobs::check_free`], for what an export of the volume does not disturb. Hosts may have
    /// a volume that is moved or copied to, also when the server starts with such a job.
    ///
    /// # Errors
    /// Which job that is.
    pub fn check_whole(&self, name: &str) -> Result<(), ArrayError> {
        self.check(name, |job| job.order.kind == JobKind::Import)
    }

    /// Complains when a job is at work on the volume called `name` or a snapshot of it,
    /// which would get another name as well.
    ///
    /// # Errors
    /// Which job that is.
    pub(in crate::control) fn check_name_stays(&self, name: &str) -> Result<(), ArrayError> {
        let of = |job: &Job| {
            let rest = job.order.volume.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(SNAPSHOT_MARK))
        };
        match self.pending().into_iter().find(of) {
            None => Ok(()),
            Some(job) => self.check_free(&job.order.volume, None),
        }
    }

    /// Complains when a job moves the volume called `name`, and its snapshots would have to
    /// go with it.
    ///
    /// # Errors
    /// Which job that is.
    pub(in crate::control) fn check_snapshots(&self, name: &str) -> Result<(), ArrayError> {
        self.check(name, |job| {
            job.order.kind == JobKind::Move && !job.order.leave_snapshots
        })
    }

    /// Complains when a job moves the volume called `name`.
    ///
    /// # Errors
    /// Which job that is.
    pub fn check_still(&self, name: &str) -> Result<(), ArrayError> {
        self.check(name, |job| job.order.kind == JobKind::Move)
    }

    /// Identities of the volumes that jobs move.
    pub(in crate::control) fn moving(&self) -> BTreeSet<Uuid> {
        let pending = self.pending().into_iter();
        let moves = pending.filter(|job| job.order.kind == JobKind::Move);
        moves.filter_map(|job| job.uuid()).collect()
    }

    fn check(&self, name: &str, counts: impl Fn(&Job) -> bool) -> Result<(), ArrayError> {
        let mut pending = self.pending().into_iter();
        let Some(job) = pending.find(|job| job.order.volume == name && counts(job)) else {
            return Ok(());
        };
        let what = match job.order.kind {
            JobKind::Import => "is being imported",
            JobKind::Export => "is being exported to a file",
            JobKind::Move => "is being moved to another pool",
            JobKind::Copy => "is being copied to",
        };
        let id = job.id;
        let context = format!(
            "volume {name} {what} by job {id}; wait for its end, or end it with `ashlar job \
             cancel {id}`"
        );
        Err(ArrayError::new(ArrayErrorKind::Busy, context))
    }
}
