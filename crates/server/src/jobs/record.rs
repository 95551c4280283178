//! The record of jobs, a file in the data directory.
//!
//! Its content is the jobs; the number of the next stands beside that. So versions of before read it,
//! too.

use crate::record::{self, RecordError};
use ::array::control::jobs::{Job, JobRecord};
use ::array::records::Store;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Its name, in the data directory.
const JOBS_FILE: &str = "ashlar-jobs.json";

/// What stands beside the jobs.
#[derive(Default, Serialize, Deserialize)]
struct Beside {
    #[serde(default)]
    next: u64,
}

/// The file.
#[derive(Clone, Debug)]
pub(crate) struct JobFile(PathBuf);

impl JobFile {
    /// In the data directory `data`.
    pub(crate) fn new(data: &Path) -> Self {
        JobFile(data.join(JOBS_FILE))
    }

    /// What is on record.
    ///
    /// # Errors
    /// The record is there and can't be read or understood.
    pub(crate) fn read(&self) -> Result<JobRecord, RecordError> {
        let found: Option<(Vec<Job>, Beside)> = record::read_with(&self.0)?;
        let (jobs, Beside { next }) = found.unwrap_or_default();
        Ok(JobRecord { jobs, next })
    }
}

impl Store<JobRecord> for JobFile {
    fn keep(&self, record: JobRecord) -> BoxFuture<'static, Result<(), String>> {
        let file = self.0.clone();
        let JobRecord { jobs, next } = record;
        let write = move || record::write_with(&file, &jobs, &Beside { next });
        record::write_aside("the jobs", write).boxed()
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
        assert_eq!(file.read().unwrap(), JobRecord::default(), "there is none");
        std::fs::write(&file.0, BEFORE).unwrap();
        let mut found = file.read().unwrap();
        let [moves, import] = &found.jobs[..] else {
            panic!("found {found:?}");
        };
        assert_eq!(moves.order.to_pool.as_deref(), Some("p1"));
        assert_eq!(moves.stall_us, Some(812));
        assert_eq!(import.order.file, Path::new("/srv/images/a.qcow2"));
        assert_eq!(import.checkpoint_bytes(), 2560);
        assert_eq!(import.seen[0].modified_ns, 1_790_000_000_123_456_789);
        assert_eq!(found.next, 0);
        found.next = 1 << 40;
        file.keep(found.clone()).await.unwrap();
        assert_eq!(file.read().unwrap(), found);
        // A version of before looks for the jobs only.
        let jobs: Option<Vec<Job>> = record::read(&file.0).unwrap();
        assert_eq!(jobs, Some(found.jobs));
    }
}
