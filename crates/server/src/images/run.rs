//! Runs a job to its end, or until the server stops.

use super::copy::Copy;
use super::header::{self, Layer};
use super::source::{Source, off};
use super::target::Target;
use super::volume::Reached;
use super::{moves, qemu, volume_copy};
use crate::array::{Array, ArrayError, ArrayErrorKind};
use crate::jobs::{Digest, Job, Jobs, Order, Seen};
use api::{Format, JobKind, JobState};
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often to look whether an image that isn't there has come back.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Sets a job to work.
pub(super) fn spawn(array: &Arc<Array>, id: u64) {
    let task = tokio::spawn(work(Arc::clone(array), id));
    array.jobs().goes_on(id, task);
}

/// Complains when hosts may write to the volume of an export.
pub(super) async fn check_still(array: &Array, order: &Order) -> Result<(), ArrayError> {
    let Some((target, _)) = array.lun_of(&order.volume, None).filter(|_| !order.live) else {
        return Ok(());
    };
    let sessions = array.sessions().await?;
    let of_it = |session: &&crate::shard::SessionInfo| session.target == target;
    match sessions.iter().find(of_it) {
        None => Ok(()),
        Some(session) => {
            let (volume, host) = (&order.volume, &session.initiator);
            let context = format!(
                "{host} is logged in to {target} and may write to volume {volume}, so the image \
                 would be of no one moment; export a snapshot of it, log it out, or say --live"
            );
            Err(ArrayError::new(ArrayErrorKind::Busy, context))
        }
    }
}

async fn work(array: Arc<Array>, id: u64) {
    let jobs = array.jobs();
    let Some(job) = jobs.get(id) else { return };
    if job.order.kind == JobKind::Move {
        return moves::work(&array, &job).await;
    }
    let Some((_, mut cancel)) = jobs.watched(id) else {
        return;
    };
    let mut stop = jobs.stopping();
    let outcome = tokio::select! {
        biased;
        // What is under way is dropped where it is, and on record since the last checkpoint.
        _ = stop.wait_for(|stop| *stop) => return,
        _ = cancel.wait_for(|cancel| *cancel) => None,
        outcome = copy(&array, &job) => Some(outcome),
    };
    let (state, sha256, mut error) = match outcome {
        Some(Ok(sum)) => (JobState::Done, sum, None),
        Some(Err(why)) => (JobState::Failed, None, Some(why)),
        None => (JobState::Cancelled, None, None),
    };
    if state != JobState::Done
        && let Err(left) = take_back(&array, &job).await
    {
        let why = error.map_or(String::new(), |why| why + "; ");
        error = Some(format!("{why}what it had made is left: {left}"));
    }
    let kind = match job.order.kind {
        JobKind::Import => "import",
        JobKind::Export => "export",
        JobKind::Move => "move",
        JobKind::Copy => "copy",
    };
    let (volume, file) = (&job.order.volume, job.order.file.display());
    match &error {
        None => tracing::info!("job {id}, {kind} of {volume}, {file}, {}", state.word()),
        Some(why) => {
            tracing::warn!(
                "job {id}, {kind} of {volume}, {file}, {}: {why}",
                state.word()
            );
        }
    }
    jobs.change(id, |job| {
        job.state = state;
        job.sha256 = sha256;
        job.error = error;
    });
    if let Err(error) = jobs.save().await {
        tracing::error!("{error}");
    }
}

async fn copy(array: &Arc<Array>, job: &Job) -> Result<Option<String>, String> {
    let jobs = array.jobs();
    let turn = jobs.turn().await;
    let _turn = turn.map_err(|error| error.to_string())?;
    set_state(jobs, job.id, JobState::Running, None);
    let sum = match job.order.kind {
        JobKind::Import => import(array, job).await.map(Some),
        JobKind::Export => export(array, job).await.map(Some),
        JobKind::Move => Err("it is not copied like this".to_owned()),
        JobKind::Copy => volume_copy::work(array, job).await,
    };
    Ok(sum?.map(|sum| sum.hex()))
}

fn set_state(jobs: &Jobs, id: u64, state: JobState, error: Option<String>) {
    jobs.change(id, |job| {
        job.state = state;
        job.error = error;
    });
}

async fn import(array: &Arc<Array>, job: &Job) -> Result<Digest, String> {
    let jobs = array.jobs();
    let layer = image(jobs, job).await?;
    let volume = volume(array, job).await?;
    let target = Target::Volume(volume.clone());
    let begun = job.checkpoint.clone().unwrap_or_else(Digest::new);
    // Before anything is copied; not again, for the files are the same.
    if begun.len_bytes() == 0 {
        qemu::check(&layer).await?;
    }
    let source = Source::image(layer, &jobs.socket(job.id)?).await?;
    let checkpoint = |digest| async { keep(jobs, job.id, digest).await };
    let sum = through(jobs, job, begun)?
        .run(source, Some(&target), checkpoint)
        .await?;
    check_seen(job)?;
    keep(jobs, job.id, sum.clone()).await?;
    if job.order.verify {
        verify(jobs, job, Source::volume(volume), &sum).await?;
    }
    Ok(sum)
}

async fn export(array: &Arc<Array>, job: &Job) -> Result<Digest, String> {
    let jobs = array.jobs();
    let Order { file, format, .. } = &job.order;
    let part = part(job);
    let whole = job.checkpoint.as_ref();
    let whole = whole.filter(|sum| sum.len_bytes() == job.size_bytes);
    if let Some(sum) = whole.filter(|_| !part.exists() && file.exists()) {
        // It ended together with the server, and only its record is behind.
        return Ok(sum.clone());
    }
    let volume = volume(array, job).await?;
    let begun = match unchanged(jobs, job, &volume).await? {
        Some(begun) => begun,
        None => {
            jobs.change(job.id, |job| {
                job.checkpoint = None;
                job.resumed_bytes = job.resumed_bytes.map(|_| 0);
            });
            make_part(job).await?;
            Digest::new()
        }
    };
    let target = Target::image(&part, *format, &jobs.socket(job.id)?).await?;
    let checkpoint = |digest| async {
        check_still(array, &job.order)
            .await
            .map_err(|error| error.context)?;
        target.flush().await?;
        keep(jobs, job.id, digest).await
    };
    let source = Source::volume(volume);
    let sum = through(jobs, job, begun)?
        .run(source, Some(&target), checkpoint)
        .await?;
    check_still(array, &job.order)
        .await
        .map_err(|error| error.context)?;
    target.finish().await?;
    if job.order.verify {
        let (allowed, path, format) = (jobs.directories(), part.clone(), *format);
        let layer = off(move || {
            header::inspect(&allowed, &path, Some(format)).map_err(|error| error.context)
        });
        let source = Source::image(layer.await?, &jobs.socket(job.id)?).await?;
        verify(jobs, job, source, &sum).await?;
    }
    keep(jobs, job.id, sum.clone()).await?;
    let (part, file) = (part.clone(), file.clone());
    off(move || publish(&part, &file)).await?;
    Ok(sum)
}

/// How to go through the disk of a job, of which `digest` has been done.
pub(super) fn through(jobs: &Jobs, job: &Job, digest: Digest) -> Result<Copy, String> {
    let (progress, _) = jobs.watched(job.id).ok_or("the job is gone")?;
    Ok(Copy {
        progress,
        digest,
        size_bytes: job.size_bytes,
        rate_bytes_per_s: job.order.rate_bytes_per_s,
    })
}

pub(super) async fn keep(jobs: &Jobs, id: u64, digest: Digest) -> Result<(), String> {
    jobs.keep(id, digest).await.map_err(|error| error.context)
}

/// The image of an import. One that isn't there when the server goes on is waited for: it
/// may be on a file system that is mounted later.
async fn image(jobs: &Jobs, job: &Job) -> Result<Layer, String> {
    loop {
        let (allowed, order) = (jobs.directories(), job.order.clone());
        let looked = off(move || Ok(header::inspect(&allowed, &order.file, Some(order.format))));
        let error = match looked.await? {
            Ok(layer) => {
                check_seen(job)?;
                set_state(jobs, job.id, JobState::Running, None);
                return Ok(layer);
            }
            Err(error) => error,
        };
        if error.kind != ArrayErrorKind::NotFound || job.resumed_bytes.is_none() {
            return Err(error.context);
        }
        set_state(jobs, job.id, JobState::Waiting, Some(error.context));
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Complains when a file is not what it was when the job began.
fn check_seen(job: &Job) -> Result<(), String> {
    for seen in &job.seen {
        let now = Seen::now(seen.path()).map_err(|error| error.to_string());
        if now.as_ref() != Ok(seen) {
            let path = seen.path().display();
            return Err(format!(
                "{path} has changed since the import began; begin again"
            ));
        }
    }
    Ok(())
}

async fn volume(array: &Array, job: &Job) -> Result<Reached, String> {
    let name = &job.order.volume;
    let found = Reached::find(array, name)
        .await
        .map_err(|error| error.context)?;
    let is_it = job.volume_uuid.as_ref() == Some(&found.uuid().to_string())
        && found.size_bytes == job.size_bytes;
    match is_it {
        true => Ok(found),
        false => Err(format!(
            "volume {name} is another one than when the job began"
        )),
    }
}

async fn verify(jobs: &Jobs, job: &Job, source: Source, sum: &Digest) -> Result<(), String> {
    set_state(jobs, job.id, JobState::Verifying, None);
    let nothing = |_| async { Ok(()) };
    let back = through(jobs, job, Digest::new())?
        .run(source, None, nothing)
        .await?;
    match back == *sum {
        true => Ok(()),
        false => Err(format!(
            "what was copied has the sum {}, what was read back {}",
            sum.hex(),
            back.hex()
        )),
    }
}

/// What of an export can be gone on with after a restart: its file has it, and the volume
/// has still what it had.
async fn unchanged(jobs: &Jobs, job: &Job, volume: &Reached) -> Result<Option<Digest>, String> {
    let Some(begun) = job.checkpoint.clone().filter(|_| part(job).is_file()) else {
        return Ok(None);
    };
    let is_stream = job
        .order
        .options
        .values()
        .any(|value| value == "streamOptimized");
    if is_stream {
        // What was written after the checkpoint can't be written again.
        return Ok(None);
    }
    let mut again = through(jobs, job, Digest::new())?;
    again.size_bytes = begun.len_bytes();
    let nothing = |_| async { Ok(()) };
    let now = again
        .run(Source::volume(volume.clone()), None, nothing)
        .await?;
    Ok((now == begun).then_some(begun))
}

/// Where an image is until it is whole: under its own name, which some formats have inside,
/// in a directory of the job's.
fn part(job: &Job) -> PathBuf {
    let name = job.order.file.file_name().unwrap_or_default();
    part_directory(job).join(name)
}

fn part_directory(job: &Job) -> PathBuf {
    let directory = job.order.file.parent().unwrap_or(Path::new("/"));
    // The volume's identity, since other arrays may export to the same directory.
    let uuid = job.volume_uuid.as_deref().unwrap_or_default();
    directory.join(format!(".ashlar-export-{uuid}-{}", job.id))
}

async fn make_part(job: &Job) -> Result<(), String> {
    let (directory, part) = (part_directory(job), part(job));
    let Order {
        format, options, ..
    } = &job.order;
    let size_bytes = job.size_bytes;
    let is_resumed = job.resumed_bytes.is_some();
    let is_raw = *format == Format::Raw;
    let file = part.clone();
    off(move || {
        let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
        if is_resumed && directory.exists() {
            // Of this job, before the server was started again.
            fs::remove_dir_all(&directory).map_err(failed)?;
        }
        DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .map_err(failed)?;
        // QEMU may write it, and can't make it.
        let file = File::create_new(file).map_err(failed)?;
        if is_raw {
            file.set_len(size_bytes).map_err(failed)?;
        }
        Ok(())
    })
    .await?;
    match is_raw {
        true => Ok(()),
        false => qemu::create(&part, *format, options, size_bytes).await,
    }
}

/// Gives a whole image its name, durably; never to the place of another.
fn publish(part: &Path, file: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let synced = File::open(part).and_then(|part| part.sync_all());
    synced.map_err(failed)?;
    match fs::hard_link(part, file) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let inode = |path: &Path| fs::symlink_metadata(path).map(|found| found.ino()).ok();
            // It may have got its name just before the server ended.
            if inode(part) != inode(file) {
                return Err(format!("{} has come to be meanwhile", file.display()));
            }
        }
        // A file system without links.
        Err(_) if file.symlink_metadata().is_err() => fs::rename(part, file).map_err(failed)?,
        Err(error) => return Err(failed(error)),
    }
    if let Some(directory) = part.parent() {
        fs::remove_dir_all(directory).map_err(failed)?;
    }
    let directory = file.parent().unwrap_or(Path::new("/"));
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(failed)
}

/// Takes back what a job has made.
async fn take_back(array: &Arc<Array>, job: &Job) -> Result<(), String> {
    match job.order.kind {
        // What was there before stays.
        JobKind::Copy if job.order.copy.as_ref().is_none_or(|copy| !copy.makes) => Ok(()),
        JobKind::Import | JobKind::Copy => {
            let found = array.volume(&job.order.volume).await;
            let is_ours = found.is_ok_and(|placed| {
                job.volume_uuid.as_ref() == Some(&placed.info.uuid.to_string())
            });
            if !is_ours {
                return Ok(());
            }
            let deleted = array
                .delete_at_once_for(job.order.volume.clone(), Some(job.id))
                .await;
            deleted.map_err(|error| error.context)
        }
        JobKind::Move => Ok(()),
        JobKind::Export => {
            let directory = part_directory(job);
            off(move || match fs::remove_dir_all(&directory) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(format!("{}: {error}", directory.display()))
                }
                _ => Ok(()),
            })
            .await
        }
    }
}
