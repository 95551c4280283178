//! Starts jobs, and refuses every order that cannot be done before it makes anything.

use super::header;
use super::source::off;
use super::{qemu, run};
use crate::array::{Array, ArrayError};
use crate::jobs::{invalid, seen_now};
use ::array::control::jobs::{Order, SeenFile};
use api::{Format, JobKind};
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
    let (allowed, path, format) = (array.image_places().directories(), new.file, new.format);
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
    let seen: std::io::Result<Vec<SeenFile>> = layer.files().into_iter().map(seen_now).collect();
    let order = Order {
        file: layer.path,
        format: layer.format,
        is_unrecognised: layer.is_unrecognised,
        verify: new.verify,
        rate_bytes_per_s: new.rate_bytes_per_s,
        ..Order::new(JobKind::Import, new.pool.clone(), new.name.clone())
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
    array.begin_made(id, made).await
}

/// Begins to make an image of a volume.
///
/// # Errors
/// There is no such volume, hosts may write to it, or the image can't be made there.
pub async fn export(array: &Arc<Array>, new: NewExport) -> Result<api::Job, ArrayError> {
    let jobs = array.jobs();
    qemu::check_options(new.format, &new.options)?;
    let (allowed, path) = (array.image_places().directories(), new.file);
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
        file,
        format: new.format,
        verify: new.verify,
        rate_bytes_per_s: new.rate_bytes_per_s,
        options: new.options,
        live: new.live,
        ..Order::new(JobKind::Export, placed.pool, new.volume)
    };
    run::check_still(array, &order).await?;
    let uuid = Some(placed.info.uuid.to_string());
    let id = jobs
        .enter(order, placed.info.size_bytes, uuid, Vec::new())
        .await?;
    array.begin_job(id);
    jobs.job(id)
}
