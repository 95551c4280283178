//! Keeps the paths of drives that the API has added, and says whether a new one may be at a path.

use super::{AddedDrive, Array, ArrayError, ArrayErrorKind, DrivePlaces, DriveRecord, names};
use crate::own_files::kept_path;
use crate::record::{self, RecordError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use site::Site;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The record of the drives that the API added, in the data directory.
pub(crate) const DRIVES_FILE: &str = "ashlar-drives.json";

/// The drives that the API added before, as kept in the directory `data`.
///
/// # Errors
/// The record is there and can't be read or understood.
pub fn added(data: &Path) -> Result<Vec<AddedDrive>, RecordError> {
    let kept: Option<Vec<AddedDrive>> = record::read(&data.join(DRIVES_FILE))?;
    let there = |drive: AddedDrive| AddedDrive {
        path: data.join(&drive.path),
        ..drive
    };
    Ok(kept.unwrap_or_default().into_iter().map(there).collect())
}

/// Keeps which drives the API has added, in the directory `data`.
///
/// # Errors
/// The record can't be written.
pub(crate) fn keep_added(data: &Path, drives: &[AddedDrive]) -> Result<(), RecordError> {
    let kept = |drive: &AddedDrive| AddedDrive {
        path: kept_path(data, &drive.path),
        ..drive.clone()
    };
    let kept: Vec<AddedDrive> = drives.iter().map(kept).collect();
    record::write(&data.join(DRIVES_FILE), &kept)
}

/// Where the drives are that settings name or that were `added`, with a record in the directory
/// `data`.
pub(crate) fn drive_places(data: &Path, settings: &Site, added: Vec<AddedDrive>) -> DrivePlaces {
    let data = data.to_owned();
    let record = Arc::new(DriveFile { data: data.clone() });
    DrivePlaces::new(data, settings, added, record)
}

/// The record in its file.
#[derive(Debug)]
struct DriveFile {
    data: PathBuf,
}

impl DriveRecord for DriveFile {
    fn keep(&self, drives: Vec<AddedDrive>) -> BoxFuture<'static, Result<(), String>> {
        let data = self.data.clone();
        let write = move || keep_added(&data, &drives);
        record::write_aside("the drives", write).boxed()
    }
}

impl Array {
    /// Whether a new drive may be at `path`: the directory that it really is in is allowed. A
    /// link at `path` itself is followed, as those of `/dev/disk` are.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn check_allowed(&self, path: &Path) -> Result<(), ArrayError> {
        let parent = path.parent().unwrap_or(path);
        let parent = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
        let allows = |directory: &PathBuf| match directory.canonicalize() {
            Ok(real) => parent.starts_with(real),
            Err(_) => false,
        };
        let allowed = self.places().allowed();
        if allowed.iter().any(allows) {
            return Ok(());
        }
        let allowed = allowed.iter().map(|at| at.display().to_string());
        let context = format!(
            "{}: drives may be added from {} only; `ashlar settings set api.drive_directories=DIR` \
             allows others",
            path.display(),
            allowed.collect::<Vec<_>>().join(", ")
        );
        Err(ArrayError::new(ArrayErrorKind::Invalid, context))
    }

    /// That what is at `path` is no drive of another pool than `pool`, be that open, not open, or
    /// about to be made.
    ///
    /// # Errors
    /// It is.
    pub(crate) async fn check_unused(&self, path: &Path, pool: &str) -> Result<(), ArrayError> {
        let user = self.user_of(path).await?.filter(|user| user.pool != pool);
        user.map_or(Ok(()), |user| {
            let (path, name) = (path.display(), &user.name);
            let context = format!("{path} is drive {name} of pool {}", user.pool);
            Err(ArrayError::new(ArrayErrorKind::Exists, context))
        })
    }

    /// The drive that is at `path`: one that an open pool has, or one that records name of a pool
    /// that is not open.
    ///
    /// # Errors
    /// A shard has stopped.
    async fn user_of(&self, path: &Path) -> Result<Option<AddedDrive>, ArrayError> {
        let pools = self.pools().await?;
        let is_had = |drive: &AddedDrive| {
            let pool = pools.iter().find(|(_, info)| info.name == drive.pool);
            pool.is_none_or(|(_, info)| {
                let place = self.places().find_of(&drive.pool, &drive.name);
                let is_at = place.is_some_and(|place| place.path == drive.path);
                is_at && names(info).any(|name| *name == drive.name)
            })
        };
        let mut all = self.places().recorded_at(path).into_iter();
        Ok(all.find(is_had))
    }
}
