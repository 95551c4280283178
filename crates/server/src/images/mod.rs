//! Jobs that import and export images, and that copy and move volumes.
//!
//! - [`place`]: which files of this machine may be used.
//! - [`header`]: what an image says of itself, and which other files it names.
//! - [`qemu`], [`nbd`]: QEMU's programs for formats that are not ours.
//! - [`source`], [`target`], [`copy`], [`digest`]: content from here to there.
//! - [`start`], [`run`]: a job from its beginning to its end; [`moves`]: one that moves;
//!   [`volume_copy`]: from volume to volume.
//!
//! Invariants:
//! - A job is on record before it changes anything, so that whatever it has made is known
//!   after a crash. What ends early takes back what it has made.
//! - A volume under import is nobody's but its job's: it is exported, resized and deleted
//!   only once it is whole. A volume under export is neither resized nor deleted.
//! - A file appears under its name when it is whole.

mod copy;
mod digest;
mod header;
mod job;
mod moves;
mod nbd;
mod place;
mod progress;
mod qemu;
mod run;
mod source;
mod start;
mod target;
mod volume;
mod volume_copy;

pub use moves::NewMove;
pub use start::{NewExport, NewImport};
pub use volume_copy::NewCopy;

use crate::array::{ArrayError, ArrayErrorKind};
use crate::private;
use crate::record::{self, RecordError};
use api::{JobKind, JobState};
use digest::Digest;
use engine::pool::SNAPSHOT_MARK;
use futures_util::future::join_all;
use job::Job;
use place::Directories;
use progress::Progress;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
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
pub struct Images {
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

impl Images {
    /// Where images may be.
    fn directories(&self) -> Directories {
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
        Ok(Images {
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
    pub fn jobs(&self) -> Vec<api::Job> {
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

    /// Complains when a job is at work on the volume called `name`, but `but`.
    ///
    /// # Errors
    /// Which job that is.
    pub(crate) fn check_free(&self, name: &str, but: Option<u64>) -> Result<(), ArrayError> {
        self.check(name, |job| Some(job.id) != but)
    }

    /// As [`Images::check_free`], for what an export of the volume does not disturb: one that
    /// is moved or copied to is a volume that hosts may have, also when the server starts
    /// with such a job to go on with.
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
    fn left(&self) -> Vec<Job> {
        let entries = self.entries();
        let left = entries.values().filter(|entry| entry.is_left);
        left.map(|entry| entry.job.clone())
            .filter(|job| !job.state.is_ended())
            .collect()
    }

    /// The task of a job is at work.
    fn goes_on(&self, id: u64, task: JoinHandle<()>) {
        if let Some(entry) = self.entries().get_mut(&id) {
            entry.task = Some(task);
            entry.is_left = false;
        }
    }

    fn get(&self, id: u64) -> Option<Job> {
        self.entries().get(&id).map(|entry| entry.job.clone())
    }

    /// Changes what is known of a job; not durably yet.
    fn change(&self, id: u64, change: impl FnOnce(&mut Job)) {
        if let Some(entry) = self.entries().get_mut(&id) {
            change(&mut entry.job);
        }
    }

    /// Writes the record.
    async fn save(&self) -> Result<(), ArrayError> {
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
    fn socket(&self, id: u64) -> Result<PathBuf, String> {
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
