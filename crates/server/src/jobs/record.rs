//! The record of jobs, a file in the data directory.

use crate::record::{self, RecordError};
use ::array::control::jobs::{Job, JobStore};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};

/// Its name, in the data directory.
const JOBS_FILE: &str = "ashlar-jobs.json";

/// The file.
#[derive(Clone, Debug)]
pub(crate) struct JobFile(PathBuf);

impl JobFile {
    /// In the data directory `data`.
    pub(crate) fn new(data: &Path) -> Self {
        JobFile(data.join(JOBS_FILE))
    }

    /// The jobs on record.
    ///
    /// # Errors
    /// The record is there and can't be read or understood.
    pub(crate) fn read(&self) -> Result<Vec<Job>, RecordError> {
        Ok(record::read(&self.0)?.unwrap_or_default())
    }
}

impl JobStore for JobFile {
    fn keep(&self, jobs: Vec<Job>) -> BoxFuture<'static, Result<(), String>> {
        let file = self.0.clone();
        record::write_aside("the jobs", move || record::write(&file, &jobs)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As versions before this one have written it: a move, and an import whose order says
    /// nothing yet of what came later.
    const BEFORE: &str = include_str!("record/before.json");

    #[tokio::test]
    async fn a_record_of_before_is_read_and_written_as_it_was() {
        let data = tempfile::tempdir().unwrap();
        let file = JobFile::new(data.path());
        assert!(file.read().unwrap().is_empty(), "there is none");
        std::fs::write(&file.0, BEFORE).unwrap();
        let jobs = file.read().unwrap();
        let [moves, import] = &jobs[..] else {
            panic!("found {jobs:?}");
        };
        assert_eq!(moves.order.to_pool.as_deref(), Some("p1"));
        assert_eq!(moves.stall_us, Some(812));
        assert_eq!(import.order.file, Path::new("/srv/images/a.qcow2"));
        assert_eq!(import.checkpoint_bytes(), 2560);
        assert_eq!(import.seen[0].modified_ns, 1_790_000_000_123_456_789);
        file.keep(jobs.clone()).await.unwrap();
        assert_eq!(file.read().unwrap(), jobs);
    }
}
