//! Puts jobs on record before they begin.

use super::{Entry, Job, Jobs, Order, PENDING_MAX, SeenFile};
use crate::control::{ArrayError, ArrayErrorKind};
use api::{JobKind, JobState};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Jobs {
    /// Puts a job on record.
    ///
    /// # Errors
    /// The server stops, there are too many, one is at work on the same, or the record can't be
    /// written.
    pub async fn enter(
        &self,
        order: Order,
        size_bytes: u64,
        volume_uuid: Option<String>,
        seen: Vec<SeenFile>,
    ) -> Result<u64, ArrayError> {
        if self.stopping.is_set() {
            let context = "the server is stopping".to_owned();
            return Err(ArrayError::new(ArrayErrorKind::Unavailable, context));
        }
        let id = {
            let mut entries = self.entries();
            check_entry(&entries, &order)?;
            let id = self.next.fetch_add(1, Relaxed);
            let job = Job {
                id,
                order,
                state: JobState::Queued,
                size_bytes,
                volume_uuid,
                seen,
                checkpoint: None,
                began_unix_s: self.runtime.unix_s(),
                resumed_bytes: None,
                sha256: None,
                stall_us: None,
                error: None,
            };
            entries.insert(id, Entry::of(job, Arc::clone(&self.runtime)));
            id
        };
        if self.runtime.planted("job begins before it is on record") {
            return Ok(id);
        }
        if let Err(error) = self.save().await {
            self.is_none(id);
            return Err(error);
        }
        Ok(id)
    }
}

/// That there is room for one more job, and none makes or reads the same.
fn check_entry(entries: &BTreeMap<u64, Entry>, order: &Order) -> Result<(), ArrayError> {
    let pending = entries.values().filter(|entry| !entry.job.state.is_ended());
    let busy = |context| Err(ArrayError::new(ArrayErrorKind::Busy, context));
    let (mut count, mut twice) = (0, None);
    for Entry { job, .. } in pending {
        count += 1;
        let same_volume = order.kind != JobKind::Export && job.order.volume == order.volume;
        let same_file = job.order.kind == JobKind::Export && job.order.file == order.file;
        if same_volume || same_file {
            twice = Some(job.id);
        }
    }
    if count >= PENDING_MAX {
        return busy(format!("{count} jobs are under way; wait for one to end"));
    }
    match twice {
        None => Ok(()),
        Some(id) => busy(format!("job {id} makes or reads that already")),
    }
}

#[cfg(test)]
mod tests;
