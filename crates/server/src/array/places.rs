//! Keeps the paths of all drives.
//!
//! Invariants:
//! - A drive that the API adds is on record before it is part of a pool, so that it is
//!   found at the next start; one that is part of no pool any more is off the record, and the
//!   settings do not name it.
//! - An open pool says itself which drives it has. Records count for pools that are not open.

use super::departures::names;
use super::{Array, ArrayError, ArrayErrorKind};
use crate::own_files::kept_path;
use crate::record::{self, RecordError};
use engine::pool::PoolInfo;
use serde::{Deserialize, Serialize};
use site::{DriveSource, Site};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where a drive is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedDrive {
    /// The pool it was added to.
    pub pool: String,
    /// Name that it has in its pool.
    pub name: String,
    /// Its file or device.
    pub path: PathBuf,
    /// It is a device: never made.
    #[serde(default)]
    pub is_device: bool,
}

/// A drive to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDrive {
    /// The name that it is to have.
    pub name: String,
    /// A file relative to the data directory, or an absolute path.
    pub path: PathBuf,
    /// It is a device: never made.
    pub is_device: bool,
    /// Size to make the file with when it is not there; as large as the pool's
    /// largest drive unless said otherwise.
    pub size_bytes: Option<u64>,
}

/// Where the drives of an array are.
#[derive(Debug)]
pub struct DrivePlaces {
    data: PathBuf,
    settled: Mutex<Settled>,
    added: Mutex<Vec<AddedDrive>>,
}

/// What the settings say of drives.
#[derive(Debug)]
struct Settled {
    /// New drives come from these directories only.
    allowed: Vec<PathBuf>,
    drives: Vec<AddedDrive>,
}

impl Settled {
    /// A file's path is relative to the directory `data`.
    fn of(settings: &Site, data: &Path) -> Self {
        let place = |pool: &str, drive: &site::Drive| AddedDrive {
            pool: pool.to_owned(),
            name: drive.name.clone(),
            path: data.join(drive.source.path()),
            is_device: matches!(drive.source, DriveSource::Device { .. }),
        };
        let of_pool = |pool: &site::Pool| {
            let drives = pool.drives().filter_map(|name| settings.drive(name));
            drives
                .map(|drive| place(&pool.name, drive))
                .collect::<Vec<_>>()
        };
        let drives: Vec<AddedDrive> = settings.pools.iter().flat_map(of_pool).collect();
        let mut allowed = settings.api.drive_directories.clone();
        let parents = drives.iter().filter_map(|drive| drive.path.parent());
        allowed.extend(parents.map(Path::to_owned));
        allowed.push(data.to_owned());
        allowed.sort();
        allowed.dedup();
        Settled { allowed, drives }
    }
}

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

impl DrivePlaces {
    /// Those of the settings, and those that were `added`; files and records are in `data`.
    ///
    /// New drives come from the directories of the settings' drives, from `data`, and from the
    /// directories that the settings allow.
    pub fn new(data: PathBuf, settings: &Site, added: Vec<AddedDrive>) -> Self {
        DrivePlaces {
            settled: Mutex::new(Settled::of(settings, &data)),
            data,
            added: Mutex::new(added),
        }
    }

    /// The data directory.
    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    /// Has other settings count.
    pub(super) fn follow(&self, settings: &Site) {
        *self.settled() = Settled::of(settings, &self.data);
    }

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
        let settled = self.settled();
        if settled.allowed.iter().any(allows) {
            return Ok(());
        }
        let allowed = settled.allowed.iter().map(|at| at.display().to_string());
        let context = format!(
            "{}: drives may be added from {} only; `ashlar settings set api.drive_directories=DIR` \
             allows others",
            path.display(),
            allowed.collect::<Vec<_>>().join(", ")
        );
        Err(ArrayError::new(ArrayErrorKind::Invalid, context))
    }

    // As below.
    fn settled(&self) -> MutexGuard<'_, Settled> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The drives that the settings name.
    pub(super) fn named(&self) -> Vec<AddedDrive> {
        self.settled().drives.clone()
    }

    // Whoever panicked with this lock held has left a whole list behind.
    pub(super) fn added(&self) -> MutexGuard<'_, Vec<AddedDrive>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the drive called `name` is.
    pub(super) fn find(&self, name: &str) -> Option<AddedDrive> {
        self.find_where(|drive| drive.name == name)
    }

    /// Where the drive called `name` of this pool is.
    pub(super) fn find_of(&self, pool: &str, name: &str) -> Option<AddedDrive> {
        self.find_where(|drive| drive.name == name && drive.pool == pool)
    }

    /// How records and settings name the file at `path`.
    pub(super) fn kept_path(&self, path: &Path) -> PathBuf {
        kept_path(&self.data, path)
    }

    /// Where a drive of the settings is.
    pub(crate) fn path_of(&self, drive: &site::Drive) -> PathBuf {
        self.data.join(drive.source.path())
    }

    /// The drives that records say are at `path`.
    fn recorded_at(&self, path: &Path) -> Vec<AddedDrive> {
        let added = self.added().clone();
        let settled = self.named();
        let all = added.into_iter().chain(settled);
        all.filter(|drive| drive.path == path).collect()
    }

    /// Whether a drive that an open pool has is at `path`, as far as records say.
    pub(super) fn has_at(&self, info: &PoolInfo, path: &Path) -> bool {
        let is_at = |name: &String| {
            let place = self.find_of(&info.name, name);
            place.is_some_and(|place| place.path == path)
        };
        names(info).any(is_at)
    }

    /// Where the drives of a pool are, or have been.
    pub(crate) fn of_pool(&self, pool: &str) -> Vec<PathBuf> {
        let added = self.added().clone();
        let settled = self.named();
        let all = added.into_iter().chain(settled);
        let mut paths: Vec<PathBuf> = all
            .filter(|drive| drive.pool == pool)
            .map(|drive| drive.path)
            .collect();
        paths.sort();
        paths.dedup();
        paths
    }

    fn find_where(&self, is_it: impl Fn(&AddedDrive) -> bool) -> Option<AddedDrive> {
        let added = self.added().iter().find(|drive| is_it(drive)).cloned();
        let settled = || {
            self.settled()
                .drives
                .iter()
                .find(|drive| is_it(drive))
                .cloned()
        };
        added.or_else(settled)
    }

    /// Whether the settings say that the drive called `name` of this pool is at `path`.
    pub(super) fn is_of_settings(&self, path: &Path, pool: &str, name: &str) -> bool {
        let is_it = |known: &AddedDrive| known.path == path && known.name == name;
        let settled = self.settled();
        let mut drives = settled.drives.iter();
        drives.any(|known| known.pool == pool && is_it(known))
    }

    /// Forgets where the drive called `name` of this pool was added: the settings say it.
    ///
    /// # Errors
    /// The record can't be written.
    pub(crate) async fn forget_added(&self, pool: &str, name: &str) -> Result<(), ArrayError> {
        let mut kept = self.added().clone();
        let all = kept.len();
        kept.retain(|drive| drive.pool != pool || drive.name != name);
        match kept.len() < all {
            true => self.keep(kept).await,
            false => Ok(()),
        }
    }

    pub(super) async fn keep(&self, drives: Vec<AddedDrive>) -> Result<(), ArrayError> {
        let (data, kept) = (self.data.clone(), drives.clone());
        let written = tokio::task::spawn_blocking(move || keep_added(&data, &kept)).await;
        let failed = |context: String| ArrayError::new(ArrayErrorKind::Internal, context);
        match written {
            Ok(Ok(())) => *self.added() = drives,
            Ok(Err(error)) => return Err(failed(error.to_string())),
            Err(error) => return Err(failed(format!("writing the drives ended early: {error}"))),
        }
        Ok(())
    }
}

impl Array {
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
                let place = self.drives.find_of(&drive.pool, &drive.name);
                let is_at = place.is_some_and(|place| place.path == drive.path);
                is_at && names(info).any(|name| *name == drive.name)
            })
        };
        let mut all = self.drives.recorded_at(path).into_iter();
        Ok(all.find(is_had))
    }

    /// Takes all places but that of `new` off the record where a drive of its name was: it has
    /// replaced that one.
    pub(super) async fn forget_other_places(&self, pool: &str, new: &NewDrive) {
        let path = self.drives.data.join(&new.path);
        let mut kept = self.drives.added().clone();
        let all = kept.len();
        let is_other =
            |drive: &AddedDrive| drive.pool == pool && drive.name == new.name && drive.path != path;
        kept.retain(|drive| !is_other(drive));
        if kept.len() < all
            && let Err(error) = self.drives.keep(kept).await
        {
            tracing::warn!("where drive {} was stays on record: {error}", new.name);
        }
    }
}
