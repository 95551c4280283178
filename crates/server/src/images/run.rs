//! The work of jobs on images, which the control plane has them do.

use super::header::{self, Layer};
use super::qemu;
use super::source::{Source, off};
use super::target::Target;
use crate::array::{ArrayError, ArrayErrorKind};
use crate::jobs::{ImagePlaces, is_unchanged};
use ::array::control::ControlPlane;
use ::array::control::jobs::copy;
use ::array::control::jobs::volume::Reached;
use ::array::control::jobs::{Digest, ImageWork, Job, Jobs, Order};
use api::{Format, JobKind, JobState};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use world_real::RealWorld;

/// How often to look whether an image that isn't there has come back.
const LOOK_EVERY: Duration = Duration::from_secs(2);

type Control = ControlPlane<RealWorld>;
type Volume = Reached<RealWorld>;

/// Does the work of jobs on images of this machine.
pub(crate) struct Images(pub(crate) Arc<ImagePlaces>);

impl ImageWork<RealWorld> for Images {
    fn run(&self, array: Arc<Control>, job: Job) -> BoxFuture<'static, Result<Digest, String>> {
        let places = Arc::clone(&self.0);
        let work = async move {
            match job.order.kind {
                JobKind::Import => import(&array, &places, &job).await,
                JobKind::Export => export(&array, &places, &job).await,
                JobKind::Move | JobKind::Copy => Err("it has to do with no image".to_owned()),
            }
        };
        work.boxed()
    }

    fn take_back(&self, job: Job) -> BoxFuture<'static, Result<(), String>> {
        let directory = part_directory(&job);
        let remove = move || match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(format!("{}: {error}", directory.display()))
            }
            _ => Ok(()),
        };
        off(remove).boxed()
    }
}

/// Complains when hosts may write to the volume of an export.
pub(super) async fn check_still(array: &Control, order: &Order) -> Result<(), ArrayError> {
    if order.live {
        return Ok(());
    }
    let volume = &order.volume;
    let Some((host, target)) = array.user_of(volume).await? else {
        return Ok(());
    };
    let context = format!(
        "{host} is logged in to {target} and may write to volume {volume}, so the image would be of no \
         one moment; export a snapshot of it, log it out, or say --live"
    );
    Err(ArrayError::new(ArrayErrorKind::Busy, context))
}

async fn import(array: &Control, places: &ImagePlaces, job: &Job) -> Result<Digest, String> {
    let jobs = array.jobs();
    let layer = image(places, jobs, job).await?;
    let volume = volume(array, job).await?;
    let begun = job.checkpoint.clone().unwrap_or_else(Digest::empty);
    // Before anything is copied; not again, for the files are the same.
    if begun.len_bytes() == 0 {
        qemu::check(&layer).await?;
    }
    let source = Source::image(layer, &places.socket(job.id)?).await?;
    let checkpoint = |digest| async { keep(jobs, job.id, digest).await };
    let sum = jobs
        .through(job, begun)?
        .run(source, Some(&volume), checkpoint)
        .await?;
    check_seen(job)?;
    keep(jobs, job.id, sum.clone()).await?;
    if job.order.verify {
        verify(jobs, job, volume, &sum).await?;
    }
    Ok(sum)
}

async fn export(array: &Control, places: &ImagePlaces, job: &Job) -> Result<Digest, String> {
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
            Digest::empty()
        }
    };
    let target = Target::image(&part, *format, &places.socket(job.id)?).await?;
    let checkpoint = |digest| async {
        check_still(array, &job.order)
            .await
            .map_err(|error| error.context)?;
        target.flush().await?;
        keep(jobs, job.id, digest).await
    };
    let source = volume;
    let sum = jobs
        .through(job, begun)?
        .run(source, Some(&target), checkpoint)
        .await?;
    check_still(array, &job.order)
        .await
        .map_err(|error| error.context)?;
    target.finish().await?;
    if job.order.verify {
        let (allowed, path, format) = (places.directories(), part.clone(), *format);
        let layer = off(move || {
            header::inspect(&allowed, &path, Some(format)).map_err(|error| error.context)
        });
        let source = Source::image(layer.await?, &places.socket(job.id)?).await?;
        verify(jobs, job, source, &sum).await?;
    }
    keep(jobs, job.id, sum.clone()).await?;
    let (part, file) = (part.clone(), file.clone());
    off(move || publish(&part, &file)).await?;
    Ok(sum)
}

async fn keep(jobs: &Jobs, id: u64, digest: Digest) -> Result<(), String> {
    jobs.keep(id, digest).await.map_err(|error| error.context)
}

/// The image of an import. One that isn't there when the server goes on is waited for: it
/// may be on a file system that is mounted later.
async fn image(places: &ImagePlaces, jobs: &Jobs, job: &Job) -> Result<Layer, String> {
    loop {
        let (allowed, order) = (places.directories(), job.order.clone());
        let looked = off(move || Ok(header::inspect(&allowed, &order.file, Some(order.format))));
        let error = match looked.await? {
            Ok(layer) => {
                check_seen(job)?;
                jobs.set_state(job.id, JobState::Running, None);
                return Ok(layer);
            }
            Err(error) => error,
        };
        if error.kind != ArrayErrorKind::NotFound || job.resumed_bytes.is_none() {
            return Err(error.context);
        }
        jobs.set_state(job.id, JobState::Waiting, Some(error.context));
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Complains when a file is not what it was when the job began.
fn check_seen(job: &Job) -> Result<(), String> {
    for seen in &job.seen {
        if !is_unchanged(seen) {
            let path = seen.path.display();
            return Err(format!(
                "{path} has changed since the import began; begin again"
            ));
        }
    }
    Ok(())
}

async fn volume(array: &Control, job: &Job) -> Result<Volume, String> {
    let name = &job.order.volume;
    let found = Reached::find(array, name)
        .await
        .map_err(|error| error.context)?;
    let is_it = job.volume_uuid.as_ref() == Some(&found.uuid().to_string())
        && found.size_bytes() == job.size_bytes;
    match is_it {
        true => Ok(found),
        false => Err(format!(
            "volume {name} is another one than when the job began"
        )),
    }
}

async fn verify(
    jobs: &Jobs,
    job: &Job,
    source: impl copy::Source,
    sum: &Digest,
) -> Result<(), String> {
    jobs.set_state(job.id, JobState::Verifying, None);
    let nothing = |_| async { Ok(()) };
    let back = jobs
        .through(job, Digest::empty())?
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
async fn unchanged(jobs: &Jobs, job: &Job, volume: &Volume) -> Result<Option<Digest>, String> {
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
    let mut again = jobs.through(job, Digest::empty())?;
    again.size_bytes = begun.len_bytes();
    let nothing = |_| async { Ok(()) };
    let now = again.run(volume.clone(), None, nothing).await?;
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
