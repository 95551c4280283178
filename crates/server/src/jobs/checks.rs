//! What a job at work forbids others.

use super::{Entry, Job, Jobs};
use crate::array_error::{ArrayError, ArrayErrorKind};
use api::JobKind;
use base::Uuid;
use engine::pool::SNAPSHOT_MARK;
use std::collections::BTreeSet;

impl Jobs {
    /// Complains when a job is at work on the volume called `name`, but `but`.
    ///
    /// # Errors
    /// Which job that is.
    pub(crate) fn check_free(&self, name: &str, but: Option<u64>) -> Result<(), ArrayError> {
        self.check(name, |job| Some(job.id) != but)
    }

    /// As [`Jobs::check_free`], for what an export of the volume does not disturb. Hosts may have
    /// a volume that is moved or copied to, also when the server starts with such a job.
    ///
    /// # Errors
    /// Which job that is.
    pub(crate) fn check_whole(&self, name: &str) -> Result<(), ArrayError> {
        self.check(name, |job| job.order.kind == JobKind::Import)
    }

    /// Complains when a job is at work on the volume called `name` or a snapshot of it,
    /// which would get another name as well.
    ///
    /// # Errors
    /// Which job that is.
    pub(crate) fn check_name_stays(&self, name: &str) -> Result<(), ArrayError> {
        let entries = self.entries();
        let mut pending = entries.values().filter(|entry| !entry.job.state.is_ended());
        let of = |entry: &&Entry| {
            let rest = entry.job.order.volume.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(SNAPSHOT_MARK))
        };
        match pending.find(of).map(|entry| entry.job.order.volume.clone()) {
            None => Ok(()),
            Some(volume) => {
                drop(entries);
                self.check_free(&volume, None)
            }
        }
    }

    fn check(&self, name: &str, counts: impl Fn(&Job) -> bool) -> Result<(), ArrayError> {
        let entries = self.entries();
        let mut pending = entries.values().filter(|entry| !entry.job.state.is_ended());
        let found = pending.find(|entry| entry.job.order.volume == name && counts(&entry.job));
        let Some(Entry { job, .. }) = found else {
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

    /// Identities of the volumes that jobs move.
    pub(crate) fn moving(&self) -> BTreeSet<Uuid> {
        let entries = self.entries();
        let pending = entries.values().filter(|entry| !entry.job.state.is_ended());
        let moves = pending.filter(|entry| entry.job.order.kind == JobKind::Move);
        let uuids = moves.filter_map(|entry| entry.job.volume_uuid.as_deref()?.parse().ok());
        uuids.collect()
    }

    /// Complains when a job moves the volume called `name`, and its snapshots would have to
    /// go with it.
    ///
    /// # Errors
    /// Which job that is.
    pub(crate) fn check_snapshots(&self, name: &str) -> Result<(), ArrayError> {
        self.check(name, |job| {
            job.order.kind == JobKind::Move && !job.order.leave_snapshots
        })
    }

    /// Complains when a job moves the volume called `name`.
    ///
    /// # Errors
    /// Which job that is.
    pub(crate) fn check_still(&self, name: &str) -> Result<(), ArrayError> {
        self.check(name, |job| job.order.kind == JobKind::Move)
    }
}
