//! Keeps the paths of drives that the API has added, and says whether a new one may be at a path.

use super::{AddedDrive, Array, ArrayError, DrivePlaces};
use crate::own_files::kept_path;
use crate::record::{self, RecordError};
use ::array::records::Store;
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
fn keep_added(data: &Path, drives: &[AddedDrive]) -> Result<(), RecordError> {
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
    DrivePlaces::new(data.to_owned(), settings, added, drive_record(data))
}

/// What keeps that record.
pub(crate) fn drive_record(data: &Path) -> Arc<dyn Store<Vec<AddedDrive>>> {
    let data = data.to_owned();
    Arc::new(DriveFile { data })
}

/// The record in its file.
#[derive(Debug)]
struct DriveFile {
    data: PathBuf,
}

impl Store<Vec<AddedDrive>> for DriveFile {
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
        self.control.check_allowed(&**self.openings.bays(), path)
    }
}
