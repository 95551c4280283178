//! Puts jobs on record before they begin.

use super::{Entry, Job, Jobs, Order, PENDING_MAX, Seen};
use crate::wall_clock::now_unix_s;
use ::array::control::{ArrayError, ArrayErrorKind};
use api::{JobKind, JobState};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

impl Jobs {
    /// Puts a job on record.
    pub(crate) async fn enter(
        &self,
        order: Order,
        size_bytes: u64,
        volume_uuid: Option<String>,
        seen: Vec<Seen>,
    ) -> Result<u64, ArrayError> {
        if *self.stopping.borrow() {
            let context = "the server is stopping".to_owned();
            return Err(ArrayError::new(ArrayErrorKind::Unavailable, context));
        }
        let id = {
            let mut entries = self.entries();
            check_entry(&entries, &order)?;
            let id = self.next.fetch_add(1, Relaxed);
            entries.insert(
                id,
                Entry::of(Job {
                    id,
                    order,
                    state: JobState::Queued,
                    size_bytes,
                    volume_uuid,
                    seen,
                    checkpoint: None,
                    began_unix_s: now_unix_s(),
                    resumed_bytes: None,
                    sha256: None,
                    stall_us: None,
                    error: None,
                }),
            );
            id
        };
        if let Err(error) = self.save().await {
            self.entries().remove(&id);
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
mod tests {
    use super::*;
    use crate::jobs::Digest;
    use api::Format;
    use std::path::PathBuf;

    fn order(volume: &str) -> Order {
        Order {
            kind: JobKind::Import,
            file: PathBuf::new(),
            format: Format::Raw,
            is_unrecognised: false,
            pool: "p0".to_owned(),
            volume: volume.to_owned(),
            verify: false,
            rate_bytes_per_s: None,
            options: BTreeMap::new(),
            live: false,
            to_pool: None,
            leave_snapshots: false,
            copy: None,
        }
    }

    #[tokio::test]
    async fn only_jobs_of_before_are_left_to_be_gone_on_with() {
        let data = tempfile::tempdir().unwrap();
        let jobs = Jobs::read(Vec::new(), data.path()).unwrap();
        let ended = jobs.enter(order("a"), 1, None, Vec::new()).await.unwrap();
        jobs.change(ended, |job| job.state = JobState::Failed);
        let before = jobs.enter(order("b"), 1, None, Vec::new()).await.unwrap();
        assert!(jobs.left().is_empty(), "they belong to who entered them");
        let jobs = Jobs::read(Vec::new(), data.path()).unwrap();
        // Its volume is being made, and it has no task yet.
        jobs.enter(order("c"), 1, None, Vec::new()).await.unwrap();
        let left: Vec<u64> = jobs.left().iter().map(|job| job.id).collect();
        assert_eq!(left, [before]);
        jobs.goes_on(before, tokio::spawn(async {}));
        assert!(jobs.left().is_empty());
    }

    #[tokio::test]
    async fn what_is_kept_is_told_once_it_is_on_record() {
        let data = tempfile::tempdir().unwrap();
        let jobs = Jobs::read(Vec::new(), data.path()).unwrap();
        let id = jobs.enter(order("a"), 9, None, Vec::new()).await.unwrap();
        let kept = || jobs.job(id).unwrap().kept_bytes;
        let mut digest = Digest::new();
        digest.add(&[1; 4096]);
        // Nothing can be written where a directory is.
        let beside = data.path().join("ashlar-jobs.new");
        std::fs::create_dir(&beside).unwrap();
        let keep = || jobs.keep(id, digest.clone());
        assert!(keep().await.is_err());
        assert_eq!(kept(), 0);
        std::fs::remove_dir(&beside).unwrap();
        keep().await.unwrap();
        assert_eq!(kept(), 4096);
        let jobs = Jobs::read(Vec::new(), data.path()).unwrap();
        assert_eq!(jobs.job(id).unwrap().kept_bytes, 4096);
    }
}
