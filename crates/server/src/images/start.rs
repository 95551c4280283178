//! Starts jobs, and refuses every order that cannot be done before it makes anything.

use super::header;
use super::source::off;
use super::{qemu, run};
use crate::array::Jobs as _;
use crate::array::{Array, ArrayError, ArrayErrorKind, PlacedVolume};
use crate::jobs::{Job, Order, Seen, invalid};
use api::{Format, JobKind, JobState};
use engine::{Provisioning, VolumeSpec};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A volume to be made of an image.
#[derive(Clone, Debug)]
pub struct NewImport {
    /// Path of the image, under a directory that the site allows.
    pub file: PathBuf,
    /// Its format, if the user says so.
    pub format: Option<Format>,
    /// The pool that the volume is to be in.
    pub pool: String,
    /// The name it is to have.
    pub name: String,
    /// How the new volume takes space.
    pub provisioning: Provisioning,
    /// Read it back in the end.
    pub verify: bool,
    /// Most data a second.
    pub rate_bytes_per_s: Option<u64>,
}

/// An image to be made of a volume.
#[derive(Clone, Debug)]
pub struct NewExport {
    /// Name of the volume or snapshot that is read.
    pub volume: String,
    /// The image to make.
    pub file: PathBuf,
    /// Format that the image is made in.
    pub format: Format,
    /// Options of the format, as `qemu-img create` has them; none may name a file.
    pub options: BTreeMap<String, String>,
    /// Read it back in the end.
    pub verify: bool,
    /// Also while hosts may write to the volume.
    pub live: bool,
    /// Most data a second.
    pub rate_bytes_per_s: Option<u64>,
}

/// Begins to make a volume of an image.
///
/// # Errors
/// The image is not allowed, none, or of a size that no volume has; or what making
/// the volume says. Nothing is left then.
pub async fn import(array: &Arc<Array>, new: NewImport) -> Result<api::Job, ArrayError> {
    let jobs = array.jobs();
    let (allowed, path, format) = (jobs.directories(), new.file, new.format);
    let inspected = off(move || Ok(header::inspect(&allowed, &path, format)));
    let layer = inspected.await.map_err(invalid)??;
    let size_bytes = layer.size_bytes;
    if !site::is_volume_size(size_bytes) {
        return Err(invalid(format!(
            "{}: its size is {} ({size_bytes} bytes); allowed for a volume: {}",
            layer.path.display(),
            site::human(size_bytes),
            site::VOLUME_SIZES.rule()
        )));
    }
    let seen: std::io::Result<Vec<Seen>> = layer.files().into_iter().map(Seen::now).collect();
    let order = Order {
        kind: JobKind::Import,
        file: layer.path,
        format: layer.format,
        is_unrecognised: layer.is_unrecognised,
        pool: new.pool.clone(),
        volume: new.name.clone(),
        verify: new.verify,
        rate_bytes_per_s: new.rate_bytes_per_s,
        options: BTreeMap::new(),
        live: false,
        to_pool: None,
        leave_snapshots: false,
        copy: None,
    };
    array.check_new(&new.pool, &new.name).await?;
    let seen = seen.map_err(|error| invalid(error.to_string()))?;
    let id = jobs.enter(order, size_bytes, None, seen).await?;
    let spec = VolumeSpec {
        name: new.name,
        size_bytes,
        provisioning: new.provisioning,
    };
    let made = array.create_volume_for(new.pool, spec, Some(id)).await;
    begin_made(array, id, made).await
}

/// The volume of a job has been made, or has not: the job begins, or never was.
pub(super) async fn begin_made(
    array: &Arc<Array>,
    id: u64,
    made: Result<PlacedVolume, ArrayError>,
) -> Result<api::Job, ArrayError> {
    let jobs = array.jobs();
    let uuid = match made {
        Ok(placed) => placed.info.uuid.to_string(),
        Err(error) => {
            jobs.forget(id).await?;
            return Err(error);
        }
    };
    jobs.change(id, |job| job.volume_uuid = Some(uuid));
    jobs.save().await?;
    run::spawn(array, id);
    jobs.job(id)
}

/// Begins to make an image of a volume.
///
/// # Errors
/// There is no such volume, hosts may write to it, or the image can't be made there.
pub async fn export(array: &Arc<Array>, new: NewExport) -> Result<api::Job, ArrayError> {
    let jobs = array.jobs();
    qemu::check_options(new.format, &new.options)?;
    let (allowed, path) = (jobs.directories(), new.file);
    let file = off(move || Ok(allowed.new_file(&path)))
        .await
        .map_err(invalid)??;
    if file.to_str().is_none_or(|path| path.contains([',', '\n'])) {
        return Err(invalid(
            "file: QEMU takes no names with commas or line breaks",
        ));
    }
    let placed = array.volume(&new.volume).await?;
    jobs.check_whole(&new.volume)?;
    placed.check_sound()?;
    jobs.check_still(&new.volume)?;
    let order = Order {
        kind: JobKind::Export,
        file,
        format: new.format,
        is_unrecognised: false,
        pool: placed.pool,
        volume: new.volume,
        verify: new.verify,
        rate_bytes_per_s: new.rate_bytes_per_s,
        options: new.options,
        live: new.live,
        to_pool: None,
        leave_snapshots: false,
        copy: None,
    };
    run::check_still(array, &order).await?;
    let uuid = Some(placed.info.uuid.to_string());
    let id = jobs
        .enter(order, placed.info.size_bytes, uuid, Vec::new())
        .await?;
    run::spawn(array, id);
    jobs.job(id)
}

/// Finds out what became of volumes that were being made when the server was killed; those
/// that are being made now are left alone.
///
/// # Errors
/// A shard has stopped, or the record can't be written.
pub(crate) async fn settle(array: &Arc<Array>) -> Result<(), ArrayError> {
    let jobs = array.jobs();
    let unsettled: Vec<(u64, String)> = {
        let left = jobs.left().into_iter();
        left.filter(|job| job.volume_uuid.is_none() && !waits(array, job))
            .map(|job| (job.id, job.order.volume))
            .collect()
    };
    for (id, volume) in unsettled {
        // Nobody else could make a volume of this name since the job was on record.
        match array.volume(&volume).await {
            Ok(placed) => jobs.change(id, |job| {
                job.volume_uuid = Some(placed.info.uuid.to_string());
            }),
            Err(error) if error.kind == ArrayErrorKind::NotFound => {
                jobs.change(id, |job| {
                    job.state = JobState::Failed;
                    job.error = Some("the server ended before it had begun".to_owned());
                });
            }
            Err(error) => return Err(error),
        }
        jobs.save().await?;
    }
    Ok(())
}

/// Goes on with jobs of before that have not ended, those that need a pool which is not
/// open left out.
pub(crate) fn resume(array: &Arc<Array>) {
    let pending: Vec<u64> = {
        let left = array.jobs().left().into_iter();
        left.filter(|job| !waits(array, job))
            .map(|job| job.id)
            .collect()
    };
    for id in pending {
        tracing::info!("continuing job {id}");
        run::spawn(array, id);
    }
}
/// Whether a job of before needs a pool that is not open, or may need it: where a volume of a
/// copy is, its order does not say.
fn waits(array: &Array, job: &Job) -> bool {
    let mut named = std::iter::once(&job.order.pool).chain(&job.order.to_pool);
    let is_copy = job.order.copy.is_some();
    named.any(|pool| array.is_closed(pool)) || is_copy && array.closed_names().is_some()
}
