//! Jobs that move a volume to another pool while it is used.
//!
//! Invariants:
//! - Until the very end the volume stays where it is, whatever becomes of the job.
//! - A job that ends early takes its copy back. A job that a stop of the server interrupts leaves the
//!   copy for the next start.
//! - Nobody copies any more when a job has ended, or the server goes on to close its pools.

use super::run::{EarlyEnd, and_left};
use super::{Job, Order, Progress};
use crate::control::{ArrayError, ControlPlane, CopyPlace, NewPlace, PlacedVolume};
use crate::wake::Flag;
use api::{JobKind, JobState};
use engine::World;
use futures_util::future::{Either, join, select};
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// How often to look how far a copy is.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A volume to be moved.
#[derive(Clone, Debug)]
pub struct NewMove {
    /// Name of the volume to move.
    pub volume: String,
    /// The pool that it goes to, and whether its snapshots stay behind.
    pub to: NewPlace,
    /// Most data a second.
    pub rate_bytes_per_s: Option<u64>,
}

/// What came of a job.
enum MoveEnd {
    Done(Option<Duration>),
    Failed(String),
    Early(EarlyEnd),
}

impl<W: World> ControlPlane<W> {
    /// Begins to move a volume.
    ///
    /// # Errors
    /// What stands in the way. Nothing is left then.
    pub async fn move_volume(self: &Arc<Self>, new: NewMove) -> Result<api::Job, ArrayError> {
        let (jobs, to) = (&self.jobs, new.to.pool.clone());
        let (id, there) = self
            .enter_in_turn("move is entered beside other changes", |array| async move {
                array.enter_move(new).await
            })
            .await?;
        // So that what does not fit is said at once.
        if let Err(error) = self.begin_copy(&there, &to).await {
            jobs.forget(id).await?;
            return Err(error);
        }
        self.begin_job(id);
        jobs.job(id)
    }

    async fn enter_move(&self, new: NewMove) -> Result<(u64, PlacedVolume), ArrayError> {
        let there = self.check_move(&new.volume, &new.to).await?;
        let order = Order {
            rate_bytes_per_s: new.rate_bytes_per_s,
            to_pool: Some(new.to.pool),
            leave_snapshots: new.to.leave_snapshots,
            ..Order::new(JobKind::Move, there.pool.clone(), new.volume)
        };
        let (uuid, size_bytes) = (there.info.uuid.to_string(), there.info.size_bytes);
        let entered = self.jobs.enter(order, size_bytes, Some(uuid), Vec::new());
        Ok((entered.await?, there))
    }

    /// Does a job, to its end or until the server's.
    pub(super) async fn work_move(self: &Arc<Self>, job: &Job, cancel: &Flag) {
        let ended = match self.go(job, cancel).await {
            // The server ended just before the job did, and nobody has looked yet.
            MoveEnd::Early(EarlyEnd::Cancel) if self.has_arrived(job).await => MoveEnd::Done(None),
            ended => ended,
        };
        let (state, stood, mut error) = match ended {
            MoveEnd::Early(EarlyEnd::Stop) => return,
            MoveEnd::Done(stood) => (JobState::Done, stood, None),
            MoveEnd::Failed(why) => (JobState::Failed, None, Some(why)),
            MoveEnd::Early(EarlyEnd::Cancel) => (JobState::Cancelled, None, None),
        };
        if state != JobState::Done
            && let Err(left) = self.take_back_move(job).await
        {
            error = Some(and_left(error, "its copy", &left));
        }
        tell_end(job, state, stood, error.as_deref());
        self.jobs.change(job.id, |job| {
            job.stall_us = stood.map(|stood| u64::try_from(stood.as_micros()).unwrap_or(u64::MAX));
        });
        self.jobs.end(job.id, state, error).await;
    }

    async fn go(self: &Arc<Self>, job: &Job, cancel: &Flag) -> MoveEnd {
        let jobs = &self.jobs;
        let _turn = match jobs.unless_asked(cancel, jobs.turn()).await {
            Ok(turn) => turn,
            Err(asked) => return MoveEnd::Early(asked),
        };
        let Some(progress) = jobs.progress(job.id) else {
            return MoveEnd::Early(EarlyEnd::Stop);
        };
        jobs.set_state(job.id, JobState::Running, None);
        let (there, copy) = match self.ends(job).await {
            Ok(Some(ends)) => ends,
            Ok(None) => return MoveEnd::Done(None),
            Err(why) => return MoveEnd::Failed(why),
        };
        progress.begin(0, job.size_bytes);
        let rate = job.order.rate_bytes_per_s;
        let copying = self.copy_volume(&there, &copy, rate);
        match self.until(&there, &progress, copying, cancel).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return MoveEnd::Failed(error.context),
            Err(asked) => return MoveEnd::Early(asked),
        }
        if cancel.is_set() {
            return MoveEnd::Early(EarlyEnd::Cancel);
        }
        match self.hand_over(&there, &copy).await {
            Ok(stood) => MoveEnd::Done(Some(stood)),
            Err(error) => MoveEnd::Failed(error.context),
        }
    }

    /// Waits for the end of the copying, and tells how far it is; or has it end, when that is
    /// asked for.
    async fn until(
        &self,
        there: &PlacedVolume,
        progress: &Progress,
        copying: impl Future<Output = Result<(), ArrayError>>,
        cancel: &Flag,
    ) -> Result<Result<(), ArrayError>, EarlyEnd> {
        let mut copying = pin!(copying);
        let work = async {
            let looks = pin!(self.look_on(there, progress));
            match select(&mut copying, looks).await {
                Either::Left((copied, _)) => copied,
                Either::Right((never, _)) => match never {},
            }
        };
        match self.jobs.unless_asked(cancel, work).await {
            Ok(copied) => Ok(copied),
            Err(asked) => {
                // It runs on its pool's shard: it has ended only when it says so.
                let (stopped, _) = join(self.stop_copy(there), copying).await;
                if let Err(error) = stopped {
                    tracing::warn!("ending the move of {}: {error}", there.info.name);
                }
                Err(asked)
            }
        }
    }

    /// Tells how far a copy is, again and again.
    async fn look_on(&self, there: &PlacedVolume, progress: &Progress) -> Infallible {
        loop {
            if let Some(now) = self.copy_progress(there).await {
                let before = progress.at();
                progress.advance(
                    now.done_bytes.saturating_sub(before.done_bytes),
                    now.data_bytes.saturating_sub(before.data_bytes),
                );
            }
            self.runtime.sleep(LOOK_EVERY).await;
        }
    }

    /// The volume and its copy; `None` when it is there already: it arrived just before the
    /// server ended.
    async fn ends(
        self: &Arc<Self>,
        job: &Job,
    ) -> Result<Option<(PlacedVolume, CopyPlace)>, String> {
        let (volume, to) = (&job.order.volume, job.order.to_pool.as_deref());
        let to = to.ok_or("it does not say where to")?;
        let there = self.volume(volume).await;
        let there = there.map_err(|error| error.context)?;
        if job.volume_uuid.as_ref() != Some(&there.info.uuid.to_string()) {
            return Err(format!(
                "volume {volume} is another one than when the job began"
            ));
        }
        if there.pool == to && !self.runtime.planted("move that has arrived is begun again") {
            return Ok(None);
        }
        if there.properties.transit.is_some() {
            return Err(format!("volume {volume} is withheld: see `ashlar events`"));
        }
        let copy = self.begin_copy(&there, to).await;
        Ok(Some((there, copy.map_err(|error| error.context)?)))
    }

    /// Whether the volume is where it was to go.
    async fn has_arrived(&self, job: &Job) -> bool {
        let there = self.volume(&job.order.volume).await;
        there.is_ok_and(|there| {
            job.uuid() == Some(there.info.uuid) && job.order.to_pool == Some(there.pool)
        })
    }

    /// Has the volume stay where it is, and its copy go.
    async fn take_back_move(&self, job: &Job) -> Result<(), String> {
        let (Some(uuid), Some(to)) = (job.uuid(), job.order.to_pool.as_deref()) else {
            return Ok(());
        };
        let said = |error: ArrayError| error.context;
        if let Ok(there) = self.volume(&job.order.volume).await
            && there.info.uuid == uuid
            && there.pool != to
            && there.properties.transit.is_none()
        {
            self.stop_copy(&there).await.map_err(said)?;
        }
        if self.runtime.planted("cancelled move leaves its copy") {
            return Ok(());
        }
        self.drop_copy(uuid, to).await.map_err(said)
    }
}

/// For the log.
fn tell_end(job: &Job, state: JobState, stood: Option<Duration>, error: Option<&str>) {
    let (id, volume) = (job.id, &job.order.volume);
    let to = job.order.to_pool.as_deref().unwrap_or_default();
    match (error, stood) {
        (Some(why), _) => {
            let state = state.word();
            tracing::warn!("job {id}, move of {volume} to {to}, {state}: {why}");
        }
        (None, Some(stood)) => {
            let us = stood.as_micros();
            tracing::info!("job {id}, move of {volume} to {to}, done: it paused for {us} us");
        }
        (None, None) => {
            tracing::info!("job {id}, move of {volume} to {to}, {}", state.word());
        }
    }
}
