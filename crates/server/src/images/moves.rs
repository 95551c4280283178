//! Jobs that move a volume to another pool while it is used.
//!
//! Invariants:
//! - Until the very end the volume stays where it is, whatever becomes of the job: what
//!   ends early takes its copy back, and what a stop of the server interrupts leaves it for
//!   the next start.
//! - Nobody copies any more when a job has ended, or the server goes on to close its pools.

use super::run;
use crate::array::{Array, ArrayError, CopyPlace, NewPlace, PlacedVolume};
use crate::jobs::{Job, Order, Progress};
use api::{Format, JobKind, JobState};
use base::Uuid;
use futures_util::future::join;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

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
enum Ended {
    Done(Option<Duration>),
    Failed(String),
    Cancelled,
    /// The server stops.
    Stopped,
}

/// Begins to move a volume.
///
/// # Errors
/// What stands in the way. Nothing is left then.
pub async fn move_volume(array: &Arc<Array>, new: NewMove) -> Result<api::Job, ArrayError> {
    let jobs = array.jobs();
    let there = array.check_move(&new.volume, &new.to).await?;
    let order = Order {
        kind: JobKind::Move,
        file: PathBuf::new(),
        format: Format::Raw,
        is_unrecognised: false,
        pool: there.pool.clone(),
        volume: new.volume,
        verify: false,
        rate_bytes_per_s: new.rate_bytes_per_s,
        options: BTreeMap::new(),
        live: false,
        to_pool: Some(new.to.pool.clone()),
        leave_snapshots: new.to.leave_snapshots,
        copy: None,
    };
    let uuid = Some(there.info.uuid.to_string());
    let id = jobs
        .enter(order, there.info.size_bytes, uuid, Vec::new())
        .await?;
    // So that what does not fit is said at once.
    if let Err(error) = array.begin_copy(&there, &new.to.pool).await {
        jobs.forget(id).await?;
        return Err(error);
    }
    run::spawn(array, id);
    jobs.job(id)
}

/// Does a job, to its end or until the server's.
pub(super) async fn work(array: &Arc<Array>, job: &Job) {
    let jobs = array.jobs();
    let Some((progress, cancel)) = jobs.watched(job.id) else {
        return;
    };
    let ended = go(array, job, &progress, cancel).await;
    let (state, stood, mut error) = match ended {
        Ended::Stopped => return,
        Ended::Done(stood) => (JobState::Done, stood, None),
        Ended::Failed(why) => (JobState::Failed, None, Some(why)),
        Ended::Cancelled => (JobState::Cancelled, None, None),
    };
    if state != JobState::Done
        && let Err(left) = take_back(array, job).await
    {
        let why = error.map_or(String::new(), |why| why + "; ");
        error = Some(format!("{why}its copy is left: {left}"));
    }
    let (id, volume) = (job.id, &job.order.volume);
    let to = job.order.to_pool.as_deref().unwrap_or_default();
    match (&error, stood) {
        (Some(why), _) => {
            tracing::warn!(
                "job {id}, move of {volume} to {to}, {}: {why}",
                state.word()
            );
        }
        (None, Some(stood)) => {
            let us = stood.as_micros();
            tracing::info!("job {id}, move of {volume} to {to}, done: it paused for {us} us");
        }
        (None, None) => {
            tracing::info!("job {id}, move of {volume} to {to}, {}", state.word());
        }
    }
    jobs.change(id, |job| {
        job.state = state;
        job.stall_us = stood.map(|stood| u64::try_from(stood.as_micros()).unwrap_or(u64::MAX));
        job.error = error;
    });
    if let Err(error) = jobs.save().await {
        tracing::error!("{error}");
    }
}

async fn go(
    array: &Arc<Array>,
    job: &Job,
    progress: &Progress,
    mut cancel: watch::Receiver<bool>,
) -> Ended {
    let jobs = array.jobs();
    let mut stop = jobs.stopping();
    let turn = tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => return Ended::Stopped,
        _ = cancel.wait_for(|cancel| *cancel) => return Ended::Cancelled,
        turn = jobs.turn() => turn,
    };
    let Ok(_turn) = turn else {
        return Ended::Stopped;
    };
    jobs.change(job.id, |job| {
        job.state = JobState::Running;
        job.error = None;
    });
    let (there, copy) = match ends(array, job).await {
        Ok(Some(ends)) => ends,
        Ok(None) => return Ended::Done(None),
        Err(why) => return Ended::Failed(why),
    };
    progress.begin(0, job.size_bytes);
    let rate = job.order.rate_bytes_per_s;
    let copying = array.copy_volume(&there, &copy, rate);
    let asked = async {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => Ended::Stopped,
            _ = cancel.wait_for(|cancel| *cancel) => Ended::Cancelled,
        }
    };
    match until(array, &there, progress, copying, asked).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Ended::Failed(error.context),
        Err(ended) => return ended,
    }
    if *cancel.borrow() {
        return Ended::Cancelled;
    }
    match array.hand_over(&there, &copy).await {
        Ok(stood) => Ended::Done(Some(stood)),
        Err(error) => Ended::Failed(error.context),
    }
}

/// Waits for the end of the copying, and tells how far it is; or has it end, when that is
/// asked for.
async fn until(
    array: &Array,
    there: &PlacedVolume,
    progress: &Progress,
    copying: impl Future<Output = Result<(), ArrayError>>,
    asked: impl Future<Output = Ended>,
) -> Result<Result<(), ArrayError>, Ended> {
    let mut copying = std::pin::pin!(copying);
    let mut asked = std::pin::pin!(asked);
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            ended = &mut asked => {
                // It runs on its pool's shard: it has ended only when it says so.
                let (stopped, _) = join(array.stop_copy(there), &mut copying).await;
                if let Err(error) = stopped {
                    tracing::warn!("ending the move of {}: {error}", there.info.name);
                }
                return Err(ended);
            }
            copied = &mut copying => return Ok(copied),
            _ = looks.tick() => {
                if let Some(now) = array.copy_progress(there).await {
                    let before = progress.at();
                    progress.advance(
                        now.done_bytes.saturating_sub(before.done_bytes),
                        now.data_bytes.saturating_sub(before.data_bytes),
                    );
                }
            }
        }
    }
}

/// The volume and its copy; `None` when it is there already: it arrived just before the
/// server ended.
async fn ends(array: &Arc<Array>, job: &Job) -> Result<Option<(PlacedVolume, CopyPlace)>, String> {
    let (volume, to) = (&job.order.volume, job.order.to_pool.as_deref());
    let to = to.ok_or("it does not say where to")?;
    let there = array.volume(volume).await;
    let there = there.map_err(|error| error.context)?;
    if job.volume_uuid.as_ref() != Some(&there.info.uuid.to_string()) {
        return Err(format!(
            "volume {volume} is another one than when the job began"
        ));
    }
    if there.pool == to {
        return Ok(None);
    }
    if there.about.transit.is_some() {
        return Err(format!("volume {volume} is withheld: see `ashlar events`"));
    }
    let copy = array.begin_copy(&there, to).await;
    Ok(Some((there, copy.map_err(|error| error.context)?)))
}

/// Has the volume stay where it is, and its copy go.
async fn take_back(array: &Array, job: &Job) -> Result<(), String> {
    let uuid = job.volume_uuid.as_deref();
    let uuid = uuid.and_then(|uuid| uuid.parse::<Uuid>().ok());
    let (Some(uuid), Some(to)) = (uuid, job.order.to_pool.as_deref()) else {
        return Ok(());
    };
    let said = |error: ArrayError| error.context;
    if let Ok(there) = array.volume(&job.order.volume).await
        && there.info.uuid == uuid
        && there.pool != to
        && there.about.transit.is_none()
    {
        array.stop_copy(&there).await.map_err(said)?;
    }
    array.drop_copy(uuid, to).await.map_err(said)
}
