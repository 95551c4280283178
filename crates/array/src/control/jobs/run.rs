//! Runs a job to its end, or until the server stops; and at the next start goes on.

use super::{Digest, Job, Jobs};
use crate::control::{ArrayError, ArrayErrorKind, ControlPlane, PlacedVolume};
use crate::wake::Flag;
use api::{JobKind, JobState};
use engine::World;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, ready, select};
use std::pin::pin;
use std::sync::Arc;

/// Imports and exports images: the work that needs files and programs.
pub trait ImageWork<W: World>: Send + Sync {
    /// Does an import or export to its end, and gives the sum of the content. Dropped before, it
    /// is gone on with at the next start.
    fn run(
        &self,
        array: Arc<ControlPlane<W>>,
        job: Job,
    ) -> BoxFuture<'static, Result<Digest, String>>;

    /// Takes back the file that an export has made so far.
    fn take_back(&self, job: Job) -> BoxFuture<'static, Result<(), String>>;
}

/// An array without images.
pub struct NoImages;

impl<W: World> ImageWork<W> for NoImages {
    fn run(&self, _: Arc<ControlPlane<W>>, _: Job) -> BoxFuture<'static, Result<Digest, String>> {
        ready(Err("there are no images here".to_owned())).boxed()
    }

    fn take_back(&self, _: Job) -> BoxFuture<'static, Result<(), String>> {
        ready(Ok(())).boxed()
    }
}

/// Why a job ends before its work does.
pub(super) enum EarlyEnd {
    /// The server stops.
    Stop,
    Cancel,
}

impl Jobs {
    /// Ends when the job is to end early.
    pub(super) async fn asked(&self, cancel: &Flag) -> EarlyEnd {
        match select(pin!(self.stopping.wait()), pin!(cancel.wait())).await {
            Either::Left(_) => EarlyEnd::Stop,
            Either::Right(_) => EarlyEnd::Cancel,
        }
    }

    /// A job has ended, and that goes on record.
    pub(super) async fn end(&self, id: u64, state: JobState, error: Option<String>) {
        self.set_state(id, state, error);
        if let Err(error) = self.save().await {
            tracing::error!("{error}");
            if let Some(entry) = self.entries().get_mut(&id) {
                entry.unkept_end = Some(error);
            }
        }
    }

    /// What comes of `work`, or why nobody waits for that any more: it is dropped where it is.
    pub(super) async fn unless_asked<T>(
        &self,
        cancel: &Flag,
        work: impl Future<Output = T>,
    ) -> Result<T, EarlyEnd> {
        match select(pin!(self.asked(cancel)), pin!(work)).await {
            Either::Left((asked, _)) => Err(asked),
            Either::Right((outcome, _)) => Ok(outcome),
        }
    }
}

impl<W: World> ControlPlane<W> {
    /// Looks whether a job can be done, and puts it on record, with no change between. `bug` is that
    /// there may be one.
    pub(super) async fn enter_in_turn<T, F, Fut>(
        self: &Arc<Self>,
        bug: &'static str,
        enter: F,
    ) -> Result<T, ArrayError>
    where
        T: Send + 'static,
        F: FnOnce(Arc<Self>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ArrayError>> + Send + 'static,
    {
        match self.runtime.planted(bug) {
            true => enter(Arc::clone(self)).await,
            false => self.change(enter).await,
        }
    }

    /// Sets a job to work.
    pub fn begin_job(self: &Arc<Self>, id: u64) {
        let at_work = self.jobs.goes_on(id);
        let array = Arc::clone(self);
        let work = async move {
            array.work(id).await;
            drop(at_work);
        };
        // It goes on by itself: whoever waits for its end looks at the job.
        drop(self.runtime.see_through(work.boxed()));
    }

    /// The volume of a job has been made, or has not: the job begins, or never was.
    ///
    /// # Errors
    /// Why it has not been made.
    pub async fn begin_made(
        self: &Arc<Self>,
        id: u64,
        made: Result<PlacedVolume, ArrayError>,
    ) -> Result<api::Job, ArrayError> {
        let uuid = match made {
            Ok(placed) => placed.info.uuid.to_string(),
            Err(error) => {
                self.jobs.forget(id).await?;
                return Err(error);
            }
        };
        self.jobs.change(id, |job| job.volume_uuid = Some(uuid));
        if let Err(error) = self.jobs.save().await {
            // A start that finds no volume on record looks for one of that name.
            tracing::warn!("job {id} begins without its volume on record: {error}");
        }
        self.begin_job(id);
        self.jobs.job(id)
    }

    async fn work(self: &Arc<Self>, id: u64) {
        let jobs = &self.jobs;
        let (Some(job), Some(cancel)) = (jobs.get(id), jobs.cancelled(id)) else {
            return;
        };
        if job.order.kind == JobKind::Move {
            return self.work_move(&job, &cancel).await;
        }
        // What is under way is dropped where it is, and on record since the last checkpoint.
        let (state, sha256, mut error) =
            match jobs.unless_asked(&cancel, self.work_copy(&job)).await {
                Ok(Ok(sum)) => (JobState::Done, sum, None),
                Ok(Err(why)) => (JobState::Failed, None, Some(why)),
                Err(EarlyEnd::Cancel) => (JobState::Cancelled, None, None),
                Err(EarlyEnd::Stop) => return,
            };
        if state != JobState::Done
            && let Err(left) = self.take_back_made(&job).await
        {
            error = Some(and_left(error, "what it had made", &left));
        }
        tell_end(&job, state, error.as_deref());
        jobs.change(id, |job| job.sha256 = sha256);
        jobs.end(id, state, error).await;
    }

    async fn work_copy(self: &Arc<Self>, job: &Job) -> Result<Option<String>, String> {
        let _turn = self.jobs.turn().await;
        self.jobs.set_state(job.id, JobState::Running, None);
        let sum = match job.order.kind {
            JobKind::Import | JobKind::Export => {
                let run = self.images.run(Arc::clone(self), job.clone());
                run.await.map(Some)
            }
            JobKind::Move => Err("it is not copied like this".to_owned()),
            JobKind::Copy => self.work_volume_copy(job).await,
        };
        Ok(sum?.map(|sum| sum.hex()))
    }

    /// Takes back what a job has made.
    async fn take_back_made(self: &Arc<Self>, job: &Job) -> Result<(), String> {
        match job.order.kind {
            // What was there before stays.
            JobKind::Copy if job.order.copy.as_ref().is_none_or(|copy| !copy.makes) => Ok(()),
            JobKind::Import | JobKind::Copy => {
                let found = self.volume(&job.order.volume).await;
                let is_ours = found.is_ok_and(|placed| {
                    job.volume_uuid.as_ref() == Some(&placed.info.uuid.to_string())
                });
                if !is_ours {
                    return Ok(());
                }
                let deleted = self
                    .delete_at_once_for(job.order.volume.clone(), Some(job.id))
                    .await;
                deleted.map_err(|error| error.context)
            }
            JobKind::Move => Ok(()),
            JobKind::Export => self.images.take_back(job.clone()).await,
        }
    }

    /// Finds out what became of volumes that were being made when the server was killed; those
    /// that are being made now are left alone.
    ///
    /// # Errors
    /// A shard has stopped, or the record can't be written.
    pub(in crate::control) async fn settle_jobs(self: &Arc<Self>) -> Result<(), ArrayError> {
        let jobs = &self.jobs;
        let unsettled: Vec<(u64, String)> = {
            let left = jobs.left().into_iter();
            left.filter(|job| job.volume_uuid.is_none() && !self.makes_wait(job))
                .map(|job| (job.id, job.order.volume))
                .collect()
        };
        if self
            .runtime
            .planted("job is not told what became of its volume")
        {
            return Ok(());
        }
        for (id, volume) in unsettled {
            // Nobody else could make a volume of this name since the job was on record.
            match self.volume(&volume).await {
                Ok(placed) => jobs.change(id, |job| {
                    job.volume_uuid = Some(placed.info.uuid.to_string());
                }),
                Err(error) if error.kind == ArrayErrorKind::NotFound => {
                    let why = "the server ended before it had begun".to_owned();
                    jobs.set_state(id, JobState::Failed, Some(why));
                }
                Err(error) => return Err(error),
            }
            jobs.save().await?;
        }
        Ok(())
    }

    /// Goes on with jobs of before that have not ended, those that need a pool which is not
    /// open left out.
    pub fn resume_jobs(self: &Arc<Self>) {
        let left = self.jobs.left().into_iter();
        for job in left.filter(|job| !self.makes_wait(job)) {
            tracing::info!("continuing job {}", job.id);
            self.begin_job(job.id);
        }
    }

    /// Whether a job of before needs a pool that is not open, or may need it: where a volume of a
    /// copy is, its order does not say.
    fn makes_wait(&self, job: &Job) -> bool {
        let mut named = std::iter::once(&job.order.pool).chain(&job.order.to_pool);
        let is_copy = job.order.copy.is_some();
        named.any(|pool| self.is_closed(pool)) || is_copy && self.closed_names().is_some()
    }
}

/// Why a job ended, and that `what` is left of it.
pub(super) fn and_left(error: Option<String>, what: &str, left: &str) -> String {
    let why = error.map_or(String::new(), |why| why + "; ");
    format!("{why}{what} is left: {left}")
}

/// For the log.
fn tell_end(job: &Job, state: JobState, error: Option<&str>) {
    let kind = match job.order.kind {
        JobKind::Import => "import",
        JobKind::Export => "export",
        JobKind::Move => "move",
        JobKind::Copy => "copy",
    };
    let (id, state) = (job.id, state.word());
    let (volume, file) = (&job.order.volume, job.order.file.display());
    match error {
        None => tracing::info!("job {id}, {kind} of {volume}, {file}, {state}"),
        Some(why) => tracing::warn!("job {id}, {kind} of {volume}, {file}, {state}: {why}"),
    }
}
