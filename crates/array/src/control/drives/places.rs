//! Where the drives of an array are, by the settings and by the record of those that were added.
//!
//! Invariants:
//! - A drive that the API adds is on record before it is part of a pool. So the next start finds it.
//! - A drive that is part of no pool any more is off the record, and the settings do not name it.
//! - An open pool says itself which drives it has. Records count for pools that are not open.

use crate::control::departures::Departures;
use crate::control::{ArrayError, ArrayErrorKind};
use crate::records::Store;
use engine::pool::PoolInfo;
use serde::{Deserialize, Serialize};
use site::{DriveSource, Site};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// Where the drives of an array are.
pub struct DrivePlaces {
    data: PathBuf,
    settled: Mutex<Settled>,
    added: Mutex<Vec<AddedDrive>>,
    /// Who looks at what leaves.
    pub(in crate::control) departures: Departures,
    /// Keeps those that were added.
    record: Arc<dyn Store<Vec<AddedDrive>>>,
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

/// How a record in the data directory `data` names the file at `path`. `data.join` is the way back.
pub fn kept_path(data: &Path, path: &Path) -> PathBuf {
    match path.strip_prefix(data) {
        Ok(inside) if inside != Path::new("") => inside.to_owned(),
        _ => path.to_owned(),
    }
}

/// The names of all drives that a pool, or a lane of one, has: those of a group that has left as
/// long as they are not wiped.
pub fn names(info: &PoolInfo) -> impl Iterator<Item = &String> {
    let all = info.members.iter().chain(&info.spares);
    all.map(|member| &member.name).chain(&info.departed)
}

impl DrivePlaces {
    /// Those of the settings, and those that were `added`, which `record` keeps. Paths are relative
    /// to the data directory `data`.
    ///
    /// New drives come from the directories of the settings' drives, from `data`, and from the
    /// directories that the settings allow.
    pub fn new(
        data: PathBuf,
        settings: &Site,
        added: Vec<AddedDrive>,
        record: Arc<dyn Store<Vec<AddedDrive>>>,
    ) -> Self {
        DrivePlaces {
            settled: Mutex::new(Settled::of(settings, &data)),
            data,
            added: Mutex::new(added),
            departures: Departures::default(),
            record,
        }
    }

    /// The directory of files and records.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Has other settings count.
    pub fn follow(&self, settings: &Site) {
        *self.settled() = Settled::of(settings, &self.data);
    }

    // As below.
    fn settled(&self) -> MutexGuard<'_, Settled> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// New drives come from these directories only.
    pub fn allowed(&self) -> Vec<PathBuf> {
        self.settled().allowed.clone()
    }

    /// The drives that the settings name.
    pub fn named(&self) -> Vec<AddedDrive> {
        self.settled().drives.clone()
    }

    /// Where the settings say that the drive called `name` of this pool is.
    pub fn named_of(&self, pool: &str, name: &str) -> Option<AddedDrive> {
        let settled = self.settled();
        let mut drives = settled.drives.iter();
        let found = drives.find(|drive| drive.pool == pool && drive.name == name);
        found.cloned()
    }

    /// The drives that were added.
    // Whoever panicked with this lock held has left a whole list behind.
    pub fn added(&self) -> MutexGuard<'_, Vec<AddedDrive>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the drive called `name` is.
    pub fn find(&self, name: &str) -> Option<AddedDrive> {
        self.find_where(|drive| drive.name == name)
    }

    /// Where the drive called `name` of this pool is.
    pub fn find_of(&self, pool: &str, name: &str) -> Option<AddedDrive> {
        self.find_where(|drive| drive.name == name && drive.pool == pool)
    }

    /// How records and settings name the file at `path`.
    pub fn kept_path(&self, path: &Path) -> PathBuf {
        kept_path(&self.data, path)
    }

    /// Where a drive of the settings is.
    pub fn path_of(&self, drive: &site::Drive) -> PathBuf {
        self.data.join(drive.source.path())
    }

    /// The drives that records say are at `path`.
    pub fn recorded_at(&self, path: &Path) -> Vec<AddedDrive> {
        self.all_where(|drive| drive.path == path)
    }

    /// Whether a drive that an open pool has is at `path`, as far as records say.
    pub fn has_at(&self, info: &PoolInfo, path: &Path) -> bool {
        let is_at = |name: &String| {
            let place = self.find_of(&info.name, name);
            place.is_some_and(|place| place.path == path)
        };
        names(info).any(is_at)
    }

    /// Where the drives of a pool are, or have been.
    pub fn of_pool(&self, pool: &str) -> Vec<PathBuf> {
        let drives = self.all_where(|drive| drive.pool == pool).into_iter();
        let mut paths: Vec<PathBuf> = drives.map(|drive| drive.path).collect();
        paths.sort();
        paths.dedup();
        paths
    }

    fn find_where(&self, is_it: impl Fn(&AddedDrive) -> bool) -> Option<AddedDrive> {
        self.all_where(is_it).into_iter().next()
    }

    /// Drives by record and settings; those that were added go first.
    fn all_where(&self, is_it: impl Fn(&AddedDrive) -> bool) -> Vec<AddedDrive> {
        let mut all = self.added().clone();
        all.extend(self.named());
        all.retain(is_it);
        all
    }

    /// Whether the settings say that the drive called `name` of this pool is at `path`.
    pub fn is_of_settings(&self, path: &Path, pool: &str, name: &str) -> bool {
        let is_it = |known: &AddedDrive| known.path == path && known.name == name;
        let settled = self.settled();
        let mut drives = settled.drives.iter();
        drives.any(|known| known.pool == pool && is_it(known))
    }

    /// Forgets where the drive called `name` of this pool was added: the settings say it.
    ///
    /// # Errors
    /// The record can't be written.
    pub async fn forget_added(&self, pool: &str, name: &str) -> Result<(), ArrayError> {
        let mut kept = self.added().clone();
        let all = kept.len();
        kept.retain(|drive| drive.pool != pool || drive.name != name);
        match kept.len() < all {
            true => self.keep(kept).await,
            false => Ok(()),
        }
    }

    /// Keeps which drives were added.
    ///
    /// # Errors
    /// The record can't be written.
    pub async fn keep(&self, drives: Vec<AddedDrive>) -> Result<(), ArrayError> {
        let kept = self.record.keep(drives.clone()).await;
        kept.map_err(|context| ArrayError::new(ArrayErrorKind::Internal, context))?;
        *self.added() = drives;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_data_directory_is_named_from_there() {
        let data = Path::new("/srv/a");
        for (path, kept) in [
            ("/srv/a/d0.img", "d0.img"),
            ("/srv/a/drives/d0.img", "drives/d0.img"),
            ("/srv/ab/d0.img", "/srv/ab/d0.img"),
            ("/dev/sdb", "/dev/sdb"),
            ("/srv/a", "/srv/a"),
        ] {
            assert_eq!(kept_path(data, Path::new(path)), Path::new(kept));
        }
    }
}
