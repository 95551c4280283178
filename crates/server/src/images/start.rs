//! Starts jobs, and refuses every order that cannot be done before it makes anything.

use super::header;
use super::job::{Job, Order};
use super::place::{Seen, invalid};
use super::source::off;
use super::{Entry, Images, PENDING_MAX, qemu, run};
use crate::array::{Array, ArrayError, ArrayErrorKind, PlacedVolume};
use crate::wall_clock::now_unix_s;
use api::{Format, JobKind, JobState};
use engine::{Provisioning, VolumeSpec};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

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

impl Images {
    /// Begins to make a volume of an image.
    ///
    /// # Errors
    /// The image is not allowed, none, or of a size that no volume has; or what making
    /// the volume says. Nothing is left then.
    pub async fn import(array: &Arc<Array>, new: NewImport) -> Result<api::Job, ArrayError> {
        let images = array.images();
        let (allowed, path, format) = (images.directories(), new.file, new.format);
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
        let id = images.enter(order, size_bytes, None, seen).await?;
        let spec = VolumeSpec {
            name: new.name,
            size_bytes,
            provisioning: new.provisioning,
        };
        let made = array.create_volume_for(new.pool, spec, Some(id)).await;
        images.made(array, id, made).await
    }

    /// The volume of a job has been made, or has not: the job begins, or never was.
    pub(super) async fn made(
        &self,
        array: &Arc<Array>,
        id: u64,
        made: Result<PlacedVolume, ArrayError>,
    ) -> Result<api::Job, ArrayError> {
        let uuid = match made {
            Ok(placed) => placed.info.uuid.to_string(),
            Err(error) => {
                self.entries().remove(&id);
                self.save().await?;
                return Err(error);
            }
        };
        self.change(id, |job| job.volume_uuid = Some(uuid));
        self.save().await?;
        run::spawn(array, id);
        self.job(id)
    }

    /// Begins to make an image of a volume.
    ///
    /// # Errors
    /// There is no such volume, hosts may write to it, or the image can't be made there.
    pub async fn export(array: &Arc<Array>, new: NewExport) -> Result<api::Job, ArrayError> {
        let images = array.images();
        qemu::check_options(new.format, &new.options)?;
        let (allowed, path) = (images.directories(), new.file);
        let file = off(move || Ok(allowed.new_file(&path)))
            .await
            .map_err(invalid)??;
        if file.to_str().is_none_or(|path| path.contains([',', '\n'])) {
            return Err(invalid(
                "file: QEMU takes no names with commas or line breaks",
            ));
        }
        let placed = array.volume(&new.volume).await?;
        images.check_whole(&new.volume)?;
        placed.check_sound()?;
        images.check_still(&new.volume)?;
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
        let id = images
            .enter(order, placed.info.size_bytes, uuid, Vec::new())
            .await?;
        run::spawn(array, id);
        images.job(id)
    }

    /// Puts a job on record.
    pub(super) async fn enter(
        &self,
        order: Order,
        size_bytes: u64,
        volume_uuid: Option<String>,
        seen: Vec<Seen>,
    ) -> Result<u64, ArrayError> {
        if *self.stopping.borrow() {
            let context = "the server is stopping".to_owned();
            return Err(ArrayError::new(ArrayErrorKind::Unavailable, context));
        }
        let id = {
            let mut entries = self.entries();
            let pending = entries.values().filter(|entry| !entry.job.state.is_ended());
            let busy = |context| Err(ArrayError::new(ArrayErrorKind::Busy, context));
            let (mut count, mut twice) = (0, None);
            for Entry { job, .. } in pending {
                count += 1;
                let same_volume = order.kind != JobKind::Export && job.order.volume == order.volume;
                let same_file = job.order.kind == JobKind::Export && job.order.file == order.file;
                if same_volume || same_file {
                    twice = Some(job.id);
                }
            }
            if count >= PENDING_MAX {
                return busy(format!("{count} jobs are under way; wait for one to end"));
            }
            if let Some(id) = twice {
                return busy(format!("job {id} makes or reads that already"));
            }
            let id = self.next.fetch_add(1, Relaxed);
            entries.insert(
                id,
                Entry::of(Job {
                    id,
                    order,
                    state: JobState::Queued,
                    size_bytes,
                    volume_uuid,
                    seen,
                    checkpoint: None,
                    began_unix_s: now_unix_s(),
                    resumed_bytes: None,
                    sha256: None,
                    stall_us: None,
                    error: None,
                }),
            );
            id
        };
        if let Err(error) = self.save().await {
            self.entries().remove(&id);
            return Err(error);
        }
        Ok(id)
    }

    /// Finds out what became of volumes that were being made when the server was killed; those
    /// that are being made now are left alone.
    ///
    /// # Errors
    /// A shard has stopped, or the record can't be written.
    pub(crate) async fn settle(array: &Arc<Array>) -> Result<(), ArrayError> {
        let images = array.images();
        let unsettled: Vec<(u64, String)> = {
            let left = images.left().into_iter();
            left.filter(|job| job.volume_uuid.is_none() && !waits(array, job))
                .map(|job| (job.id, job.order.volume))
                .collect()
        };
        for (id, volume) in unsettled {
            // Nobody else could make a volume of this name since the job was on record.
            match array.volume(&volume).await {
                Ok(placed) => images.change(id, |job| {
                    job.volume_uuid = Some(placed.info.uuid.to_string());
                }),
                Err(error) if error.kind == ArrayErrorKind::NotFound => {
                    images.change(id, |job| {
                        job.state = JobState::Failed;
                        job.error = Some("the server ended before it had begun".to_owned());
                    });
                }
                Err(error) => return Err(error),
            }
            images.save().await?;
        }
        Ok(())
    }

    /// Goes on with jobs of before that have not ended, those that need a pool which is not
    /// open left out.
    pub(crate) fn resume(array: &Arc<Array>) {
        let pending: Vec<u64> = {
            let left = array.images().left().into_iter();
            left.filter(|job| !waits(array, job))
                .map(|job| job.id)
                .collect()
        };
        for id in pending {
            tracing::info!("continuing job {id}");
            run::spawn(array, id);
        }
    }
}

/// Whether a job of before needs a pool that is not open, or may need it: where a volume of a
/// copy is, its order does not say.
fn waits(array: &Array, job: &Job) -> bool {
    let mut named = std::iter::once(&job.order.pool).chain(&job.order.to_pool);
    let is_copy = job.order.copy.is_some();
    named.any(|pool| array.is_closed(pool)) || is_copy && array.closed_names().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(volume: &str) -> Order {
        Order {
            kind: JobKind::Import,
            file: PathBuf::new(),
            format: Format::Raw,
            is_unrecognised: false,
            pool: "p0".to_owned(),
            volume: volume.to_owned(),
            verify: false,
            rate_bytes_per_s: None,
            options: BTreeMap::new(),
            live: false,
            to_pool: None,
            leave_snapshots: false,
            copy: None,
        }
    }

    #[tokio::test]
    async fn only_jobs_of_before_are_left_to_be_gone_on_with() {
        let data = tempfile::tempdir().unwrap();
        let images = Images::read(Vec::new(), data.path()).unwrap();
        let ended = images.enter(order("a"), 1, None, Vec::new()).await.unwrap();
        images.change(ended, |job| job.state = JobState::Failed);
        let before = images.enter(order("b"), 1, None, Vec::new()).await.unwrap();
        assert!(images.left().is_empty(), "they belong to who entered them");
        let images = Images::read(Vec::new(), data.path()).unwrap();
        // Its volume is being made, and it has no task yet.
        images.enter(order("c"), 1, None, Vec::new()).await.unwrap();
        let left: Vec<u64> = images.left().iter().map(|job| job.id).collect();
        assert_eq!(left, [before]);
        images.goes_on(before, tokio::spawn(async {}));
        assert!(images.left().is_empty());
    }

    #[tokio::test]
    async fn what_is_kept_is_told_once_it_is_on_record() {
        let data = tempfile::tempdir().unwrap();
        let images = Images::read(Vec::new(), data.path()).unwrap();
        let id = images.enter(order("a"), 9, None, Vec::new()).await.unwrap();
        let kept = || images.job(id).unwrap().kept_bytes;
        let mut digest = crate::images::Digest::new();
        digest.add(&[1; 4096]);
        // Nothing can be written where a directory is.
        let beside = data.path().join("ashlar-jobs.new");
        std::fs::create_dir(&beside).unwrap();
        let keep = || run::keep(&images, id, digest.clone());
        assert!(keep().await.is_err());
        assert_eq!(kept(), 0);
        std::fs::remove_dir(&beside).unwrap();
        keep().await.unwrap();
        assert_eq!(kept(), 4096);
        let images = Images::read(Vec::new(), data.path()).unwrap();
        assert_eq!(images.job(id).unwrap().kept_bytes, 4096);
    }
}
