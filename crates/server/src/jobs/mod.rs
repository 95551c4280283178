//! Jobs of the array: which there are, what they are at work on, and their record.
//!
//! - [`place`]: which files of this machine may be used.
//! - [`digest`]: content, on record as far as it is written.
//! - [`checks`]: what a job at work forbids others.
//!
//! `images` has their work.
//!
//! Invariants:
//! - A job is on record before it changes anything, so that whatever it has made is known
//!   after a crash.
//! - A volume under import is nobody's but its job's: it is exported, resized and deleted
//!   only once it is whole. A volume under export is neither resized nor deleted.

mod checks;
mod digest;
mod enter;
mod job;
mod place;
mod progress;

pub(crate) use digest::Digest;
pub(crate) use job::{CopyOf, Job, Order};
pub(crate) use place::{Directories, Seen, invalid};
pub(crate) use progress::Progress;

use crate::private;
use crate::record::{self, RecordError};
use ::array::control::{ArrayError, ArrayErrorKind};
use api::JobState;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Jobs that copy at once; others wait for their turn.
const RUNNING_MAX: usize = 2;
/// Jobs that have not ended.
const PENDING_MAX: usize = 64;
/// Jobs that have ended, and are told about still.
const ENDED_MAX: usize = 100;

/// Jobs have so long to rest when the server stops.
const STOP_MAX: Duration = Duration::from_secs(10);

/// The record of jobs, and the directory of sockets, in the data directory.
const JOBS_FILE: &str = "ashlar-jobs.json";
const SOCKETS: &str = "ashlar-images";

/// The jobs of an array.
#[derive(Debug)]
pub(crate) struct Jobs {
    directories: Mutex<Directories>,
    sockets: PathBuf,
    file: PathBuf,
    jobs: Mutex<BTreeMap<u64, Entry>>,
    /// The number of the next job.
    next: AtomicU64,
    /// Held while the record is written: the newest is written last.
    saving: tokio::sync::Mutex<()>,
    turns: Arc<Semaphore>,
    stopping: watch::Sender<bool>,
}

#[derive(Debug)]
struct Entry {
    job: Job,
    progress: Arc<Progress>,
    cancel: watch::Sender<bool>,
    task: Option<JoinHandle<()>>,
    /// How much of it is on record.
    kept_bytes: u64,
    /// It is of before this start, and nobody has gone on with it yet. All others belong to
    /// whoever entered them.
    is_left: bool,
}

impl Entry {
    fn of(job: Job) -> Self {
        Entry {
            kept_bytes: 0,
            job,
            progress: Arc::new(Progress::new()),
            cancel: watch::Sender::new(false),
            task: None,
            is_left: false,
        }
    }

    /// A job that was on record when the server started.
    fn of_before(job: Job) -> Self {
        let is_left = !job.state.is_ended();
        Entry {
            is_left,
            kept_bytes: checkpoint_bytes(&job),
            ..Entry::of(job)
        }
    }
}

impl Jobs {
    /// Where images may be.
    pub(crate) fn directories(&self) -> Directories {
        // Whoever panicked with this lock held has left a whole list behind.
        let directories = self.directories.lock();
        directories.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says where images may be from now on. Jobs that have begun are checked again when they go
    /// on after a restart.
    pub(crate) fn set_directories(&self, directories: Vec<PathBuf>) {
        let now = self.directories.lock();
        *now.unwrap_or_else(PoisonError::into_inner) = Directories::new(directories);
    }

    /// The jobs on record in the data directory `data`; images may be in `directories`.
    ///
    /// # Errors
    /// The record is there and can't be read or understood.
    pub fn read(directories: Vec<PathBuf>, data: &Path) -> Result<Self, RecordError> {
        let file = data.join(JOBS_FILE);
        let mut kept: Vec<Job> = record::read(&file)?.unwrap_or_default();
        let sockets = data.join(SOCKETS);
        // Of a server that was killed; nobody listens there any more.
        let _ = std::fs::remove_dir_all(&sockets);
        for job in kept.iter_mut().filter(|job| !job.state.is_ended()) {
            job.state = JobState::Queued;
            job.resumed_bytes = Some(checkpoint_bytes(job));
        }
        let next = kept.iter().map(|job| job.id + 1).max().unwrap_or(1);
        let entries = kept.into_iter().map(|job| (job.id, Entry::of_before(job)));
        Ok(Jobs {
            directories: Mutex::new(Directories::new(directories)),
            sockets,
            file,
            jobs: Mutex::new(entries.collect()),
            next: AtomicU64::new(next),
            saving: tokio::sync::Mutex::default(),
            turns: Arc::new(Semaphore::new(RUNNING_MAX)),
            stopping: watch::Sender::new(false),
        })
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
    /// There is none.
    pub async fn cancel(&self, id: u64) -> Result<(), ArrayError> {
        let ended = {
            let mut entries = self.entries();
            let entry = entries.get_mut(&id).ok_or_else(|| no_job(id))?;
            if entry.job.state.is_ended() {
                entries.remove(&id);
                None
            } else {
                entry.cancel.send_replace(true);
                Some(entry.task.take())
            }
        };
        match ended {
            None => self.save().await,
            Some(Some(task)) => {
                // However it ended: its state says so.
                let _ = task.await;
                Ok(())
            }
            // Somebody else waits for it already.
            Some(None) => Ok(()),
        }
    }

    /// Has all jobs rest, to be gone on with at the next start; takes no new ones.
    pub(crate) async fn stop(&self) {
        self.stopping.send_replace(true);
        let tasks: Vec<_> = {
            let mut entries = self.entries();
            entries
                .values_mut()
                .filter_map(|entry| entry.task.take())
                .collect()
        };
        // However they end.
        let ended = join_all(tasks);
        if timeout(STOP_MAX, ended).await.is_err() {
            tracing::warn!("jobs that do not rest are left: a drive may hang");
        }
    }

    /// Jobs of before this start that nobody has gone on with yet.
    pub(crate) fn left(&self) -> Vec<Job> {
        let entries = self.entries();
        let left = entries.values().filter(|entry| entry.is_left);
        left.map(|entry| entry.job.clone())
            .filter(|job| !job.state.is_ended())
            .collect()
    }

    /// The task of a job is at work.
    pub(crate) fn goes_on(&self, id: u64, task: JoinHandle<()>) {
        if let Some(entry) = self.entries().get_mut(&id) {
            entry.task = Some(task);
            entry.is_left = false;
        }
    }

    pub(crate) fn get(&self, id: u64) -> Option<Job> {
        self.entries().get(&id).map(|entry| entry.job.clone())
    }

    /// Changes what is known of a job; not durably yet.
    pub(crate) fn change(&self, id: u64, change: impl FnOnce(&mut Job)) {
        if let Some(entry) = self.entries().get_mut(&id) {
            change(&mut entry.job);
        }
    }

    /// How far a job is, and whether it is to end early.
    pub(crate) fn watched(&self, id: u64) -> Option<(Arc<Progress>, watch::Receiver<bool>)> {
        let entries = self.entries();
        let entry = entries.get(&id)?;
        Some((Arc::clone(&entry.progress), entry.cancel.subscribe()))
    }

    /// Turns true when all jobs are to rest.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Waits until a job may copy.
    pub(crate) async fn turn(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.turns.acquire().await
    }

    /// Keeps on record how much of a job is written for certain.
    pub(crate) async fn keep(&self, id: u64, digest: Digest) -> Result<(), ArrayError> {
        self.change(id, |job| job.checkpoint = Some(digest));
        self.save().await
    }

    /// Takes a job off the record that never began.
    pub(crate) async fn forget(&self, id: u64) -> Result<(), ArrayError> {
        self.entries().remove(&id);
        self.save().await
    }

    /// Writes the record.
    pub(crate) async fn save(&self) -> Result<(), ArrayError> {
        let _turn = self.saving.lock().await;
        let jobs = {
            let mut entries = self.entries();
            let ended = entries.values().filter(|entry| entry.job.state.is_ended());
            let ended: Vec<u64> = ended.map(|entry| entry.job.id).collect();
            for id in ended.iter().rev().skip(ENDED_MAX) {
                entries.remove(id);
            }
            entries
                .values()
                .map(|entry| entry.job.clone())
                .collect::<Vec<_>>()
        };
        let kept = jobs.iter().map(|job| (job.id, checkpoint_bytes(job)));
        let kept: Vec<(u64, u64)> = kept.collect();
        let file = self.file.clone();
        let failed = |context: String| ArrayError::new(ArrayErrorKind::Internal, context);
        let written = tokio::task::spawn_blocking(move || record::write(&file, &jobs)).await;
        match written {
            Ok(outcome) => outcome.map_err(|error| failed(error.to_string()))?,
            Err(error) => return Err(failed(format!("writing the jobs ended early: {error}"))),
        }
        let mut entries = self.entries();
        for (id, kept_bytes) in kept {
            if let Some(entry) = entries.get_mut(&id) {
                entry.kept_bytes = kept_bytes;
            }
        }
        Ok(())
    }

    /// The directory for the socket of a job, to be made.
    pub(crate) fn socket(&self, id: u64) -> Result<PathBuf, String> {
        let made = private::create_directory(&self.sockets);
        made.map_err(|error| format!("can't make {}: {error}", self.sockets.display()))?;
        Ok(self.sockets.join(id.to_string()))
    }
}

/// How far the checkpoint of a job is.
fn checkpoint_bytes(job: &Job) -> u64 {
    job.checkpoint.as_ref().map_or(0, Digest::len_bytes)
}

fn no_job(id: u64) -> ArrayError {
    ArrayError::new(ArrayErrorKind::NotFound, format!("there is no job {id}"))
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
