//! Jobs of the array: which there are, what they are at work on, and their record.
//!
//! - [`job`], [`digest`]: a job as its record has it; content, on record as far as it is written.
//! - [`enter`], [`checks`]: how a job comes to be, and what one at work forbids others.
//! - [`run`]: from a job's beginning to its end, over restarts. [`moves`], [`volume_copy`]: what
//!   those do that need volumes only; images are the work of an [`ImageWork`].
//! - [`copy`]: content from a source to a target, which [`volume`]s are, and images.
//!
//! Invariants:
//! - A job is on record before it changes anything, so that whatever it has made is known
//!   after a crash.
//! - A volume under import is nobody's but its job's: it is exported, resized and deleted
//!   only once it is whole. A volume under export is neither resized nor deleted.
//! - What ends early takes back what it has made.
//! - No job gets the number of another, also when that one is forgotten: whoever asks for a job by
//!   its number hears of no other.

mod checks;
pub mod copy;
mod digest;
mod enter;
mod job;
mod moves;
mod progress;
mod run;
pub mod volume;
mod volume_copy;

pub use digest::Digest;
pub use job::{CopyOf, Job, Order, SeenFile};
pub use moves::NewMove;
pub use progress::{At, Progress};
pub use run::{ImageWork, NoImages};
pub use volume_copy::NewCopy;

use super::line::{Line, LinePlace};
use super::{ArrayError, ArrayErrorKind, Runtime};
use crate::records::Store;
use crate::wake::Flag;
use api::JobState;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Jobs that copy at once; others wait for their turn.
const RUNNING_MAX: usize = 2;
/// Jobs that have not ended.
const PENDING_MAX: usize = 64;
/// Jobs that have ended, and are told about still.
const ENDED_MAX: usize = 100;

/// Jobs have so long to rest when the server stops.
const STOP_MAX: Duration = Duration::from_secs(10);

/// What is on record of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRecord {
    pub jobs: Vec<Job>,
    /// The number of the next job. Of a record of before, which does not say it, it is 0.
    pub next: u64,
}

/// The jobs of an array.
pub struct Jobs {
    runtime: Arc<dyn Runtime>,
    store: Arc<dyn Store<JobRecord>>,
    jobs: Mutex<BTreeMap<u64, Entry>>,
    /// The number of the next job.
    next: AtomicU64,
    /// Its head writes the record: the newest is written last.
    saving: Arc<Line>,
    turns: Arc<Line>,
    stopping: Arc<Flag>,
}

struct Entry {
    job: Job,
    progress: Arc<Progress>,
    cancel: Arc<Flag>,
    /// It has a task.
    is_at_work: bool,
    /// Set when its task has ended, or it has none and never will.
    rests: Arc<Flag>,
    /// How much of it is on record.
    kept_bytes: u64,
    /// It is of before this start, and nobody has gone on with it yet. All others belong to
    /// whoever entered them.
    is_left: bool,
    /// Why its end is not on record, when that is so.
    unkept_end: Option<ArrayError>,
}

/// The task of a job. Dropped when that has ended, also by a failed assertion.
struct AtWork(Arc<Flag>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl Entry {
    fn of(job: Job, runtime: Arc<dyn Runtime>) -> Self {
        Entry {
            kept_bytes: 0,
            job,
            progress: Arc::new(Progress::new(runtime)),
            cancel: Arc::default(),
            is_at_work: false,
            rests: Arc::default(),
            is_left: false,
            unkept_end: None,
        }
    }

    /// A job that was on record when the server started.
    fn of_before(job: Job, runtime: Arc<dyn Runtime>) -> Self {
        Entry {
            is_left: !job.state.is_ended(),
            kept_bytes: job.checkpoint_bytes(),
            ..Entry::of(job, runtime)
        }
    }
}

impl Jobs {
    /// The jobs that are on record, which `store` keeps from now on.
    pub fn new(
        runtime: Arc<dyn Runtime>,
        store: Arc<dyn Store<JobRecord>>,
        record: JobRecord,
    ) -> Self {
        let JobRecord {
            jobs: mut kept,
            next: said,
        } = record;
        for job in kept.iter_mut().filter(|job| !job.state.is_ended()) {
            job.state = JobState::Queued;
            job.resumed_bytes = Some(job.checkpoint_bytes());
        }
        let after = kept.iter().map(|job| job.id + 1).max().unwrap_or(1);
        let next = match runtime.planted("number of a job comes again") {
            true => after,
            false => after.max(said),
        };
        let entry = |job: Job| (job.id, Entry::of_before(job, Arc::clone(&runtime)));
        Jobs {
            jobs: Mutex::new(kept.into_iter().map(entry).collect()),
            runtime,
            store,
            next: AtomicU64::new(next),
            saving: Arc::default(),
            turns: Arc::new(Line::with_places(RUNNING_MAX)),
            stopping: Arc::default(),
        }
    }

    // Whoever panicked with this lock held has left whole jobs behind.
    fn entries(&self) -> MutexGuard<'_, BTreeMap<u64, Entry>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All jobs that are known, oldest first.
    pub fn list(&self) -> Vec<api::Job> {
        self.entries().values().map(info).collect()
    }

    /// The job of this number.
    ///
    /// # Errors
    /// There is none.
    pub fn job(&self, id: u64) -> Result<api::Job, ArrayError> {
        let entries = self.entries();
        entries.get(&id).map(info).ok_or_else(|| no_job(id))
    }

    /// Ends the job of this number, which takes back what it has made; one that has ended
    /// is forgotten.
    ///
    /// # Errors
    /// There is none, or the record can't be written. One that has ended stays then, and can be
    /// forgotten later.
    pub async fn cancel(&self, id: u64) -> Result<(), ArrayError> {
        let (ended, rests) = {
            let mut entries = self.entries();
            let entry = entries.get_mut(&id).ok_or_else(|| no_job(id))?;
            if entry.job.state.is_ended() {
                (entries.remove(&id), None)
            } else {
                entry.cancel.set();
                if entry.is_left {
                    // It waits for its pool, and ends when that is open.
                    return Ok(());
                }
                (None, Some(Arc::clone(&entry.rests)))
            }
        };
        if let Some(rests) = rests {
            return self.has_ended(id, &rests).await;
        }
        let kept = self.save().await;
        if let (Err(_), Some(ended)) = (&kept, ended) {
            self.entries().insert(id, ended);
        }
        kept
    }

    /// Waits for the end of a job that is cancelled.
    ///
    /// # Errors
    /// Its end is not on record.
    async fn has_ended(&self, id: u64, rests: &Flag) -> Result<(), ArrayError> {
        if self.runtime.planted("cancelled job is not waited for") {
            return Ok(());
        }
        rests.wait().await;
        if self
            .runtime
            .planted("job is cancelled though its end is not on record")
        {
            return Ok(());
        }
        // One that is none any more never began.
        let entries = self.entries();
        let unkept = entries.get(&id).and_then(|entry| entry.unkept_end.clone());
        match unkept {
            None => Ok(()),
            Some(error) => Err(ArrayError {
                context: format!(
                    "job {id} has ended: the change is made, but a restart may begin the job again: \
                     {}",
                    error.context
                ),
                ..error
            }),
        }
    }

    /// Has all jobs rest, to be gone on with at the next start; takes no new ones.
    pub async fn stop(&self) {
        self.stopping.set();
        let at_work: Vec<Arc<Flag>> = {
            let entries = self.entries();
            let at_work = entries.values().filter(|entry| entry.is_at_work);
            at_work.map(|entry| Arc::clone(&entry.rests)).collect()
        };
        let rest = join_all(at_work.iter().map(|rests| rests.wait()));
        let ended = self.runtime.in_time(STOP_MAX, rest).await;
        if ended.is_none() {
            tracing::warn!("jobs that do not rest are left: a drive may hang");
        }
    }

    /// Jobs of before this start that nobody has gone on with yet.
    fn left(&self) -> Vec<Job> {
        let entries = self.entries();
        let left = entries.values().filter(|entry| entry.is_left);
        left.map(|entry| entry.job.clone())
            .filter(|job| !job.state.is_ended())
            .collect()
    }

    /// A job has a task from now on, which ends when what this gives is dropped.
    fn goes_on(&self, id: u64) -> Option<AtWork> {
        let mut entries = self.entries();
        let entry = entries.get_mut(&id)?;
        entry.is_at_work = true;
        entry.is_left = false;
        Some(AtWork(Arc::clone(&entry.rests)))
    }

    fn get(&self, id: u64) -> Option<Job> {
        self.entries().get(&id).map(|entry| entry.job.clone())
    }

    /// Changes what is known of a job; not durably yet.
    pub fn change(&self, id: u64, change: impl FnOnce(&mut Job)) {
        if let Some(entry) = self.entries().get_mut(&id) {
            change(&mut entry.job);
        }
    }

    /// Says what becomes of a job; not durably yet.
    pub fn set_state(&self, id: u64, state: JobState, error: Option<String>) {
        self.change(id, |job| {
            job.state = state;
            job.error = error;
        });
    }

    /// How far a job is.
    pub fn progress(&self, id: u64) -> Option<Arc<Progress>> {
        let entries = self.entries();
        Some(Arc::clone(&entries.get(&id)?.progress))
    }

    /// Set when somebody has ended a job.
    fn cancelled(&self, id: u64) -> Option<Arc<Flag>> {
        let entries = self.entries();
        Some(Arc::clone(&entries.get(&id)?.cancel))
    }

    /// Waits until a job may copy.
    async fn turn(&self) -> LinePlace {
        self.turns.stand().await
    }

    /// Keeps on record how much of a job is written for certain.
    ///
    /// # Errors
    /// It can't be kept.
    pub async fn keep(&self, id: u64, digest: Digest) -> Result<(), ArrayError> {
        self.change(id, |job| job.checkpoint = Some(digest));
        self.save().await
    }

    /// Takes a job off the record that never began.
    async fn forget(&self, id: u64) -> Result<(), ArrayError> {
        self.is_none(id);
        self.save().await
    }

    /// A job that never began is none; not durably yet.
    fn is_none(&self, id: u64) {
        if let Some(entry) = self.entries().remove(&id) {
            entry.rests.set();
        }
    }

    /// Writes the record.
    ///
    /// # Errors
    /// It can't be written.
    pub async fn save(&self) -> Result<(), ArrayError> {
        let turn = self.saving.stand().await;
        let record = {
            let mut entries = self.entries();
            let ended = entries.values().filter(|entry| entry.job.state.is_ended());
            let ended: Vec<u64> = ended.map(|entry| entry.job.id).collect();
            for id in ended.iter().rev().skip(ENDED_MAX) {
                entries.remove(id);
            }
            let jobs = entries.values().map(|entry| entry.job.clone());
            JobRecord {
                jobs: jobs.collect(),
                next: self.next.load(Relaxed),
            }
        };
        let kept = record.jobs.iter();
        let kept = kept.map(|job| (job.id, job.checkpoint_bytes(), job.state.is_ended()));
        let kept: Vec<(u64, u64, bool)> = kept.collect();
        let failed = |context| ArrayError::new(ArrayErrorKind::Internal, context);
        self.write(record, turn).await.map_err(failed)?;
        let mut entries = self.entries();
        for (id, kept_bytes, has_ended) in kept {
            if let Some(entry) = entries.get_mut(&id) {
                entry.kept_bytes = kept_bytes;
                if has_ended {
                    entry.unkept_end = None;
                }
            }
        }
        Ok(())
    }

    /// Writes `record`. It has the turn until it is written, also when nobody waits for that any
    /// more: what is written next must not be overtaken.
    async fn write(&self, record: JobRecord, turn: LinePlace) -> Result<(), String> {
        let write = self.store.keep(record);
        let written = self.runtime.outcome(async move {
            let written = write.await;
            drop(turn);
            written
        });
        written.await?
    }
}

fn no_job(id: u64) -> ArrayError {
    ArrayError::new(ArrayErrorKind::NotFound, format!("there is no job {id}"))
}

fn invalid(context: impl Into<String>) -> ArrayError {
    ArrayError::new(ArrayErrorKind::Invalid, context.into())
}

fn info(entry: &Entry) -> api::Job {
    let (job, at) = (&entry.job, entry.progress.at());
    let kept_bytes = entry.kept_bytes;
    let is_at_work = matches!(job.state, JobState::Running | JobState::Verifying);
    let done_bytes = match job.state {
        JobState::Done => job.size_bytes,
        _ if at.size_bytes > 0 => at.done_bytes,
        _ => kept_bytes,
    };
    let bytes_per_s = if is_at_work { at.bytes_per_s } else { 0 };
    let left = job.size_bytes.saturating_sub(done_bytes);
    api::Job {
        id: job.id,
        kind: job.order.kind,
        state: job.state,
        volume: job.order.volume.clone(),
        pool: job.order.pool.clone(),
        to_pool: job.order.to_pool.clone(),
        source: job.order.copy.as_ref().map(|copy| copy.source.clone()),
        file: job.order.file.display().to_string(),
        format: job.order.format,
        format_unrecognised: job.order.is_unrecognised,
        began_unix_s: job.began_unix_s,
        size_bytes: job.size_bytes,
        done_bytes,
        data_bytes: at.data_bytes,
        kept_bytes,
        resumed_bytes: job.resumed_bytes,
        bytes_per_s,
        left_s: (bytes_per_s > 0).then(|| left.div_ceil(bytes_per_s.max(1))),
        sha256: job.sha256.clone(),
        stall_us: job.stall_us,
        error: job.error.clone(),
    }
}
