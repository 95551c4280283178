//! The data directory: drive files, records, and the lock that keeps a second
//! server out.

use crate::bring_up_error::{BringUpError, BringUpErrorKind};
use crate::private;
use crate::record::{CONFIGURATION_FILE, EVENTS_FILE};
use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Its lock, which has our process in it.
const LOCK_FILE: &str = "ashlar.lock";

/// A data directory that is ours until this is dropped.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    /// It, and those above it, as far as they were not there; the lowest first.
    made: Vec<PathBuf>,
    /// Locked; the kernel lets go of it however the process ends.
    _lock: File,
}

impl DataDir {
    /// Makes the directory if it isn't there, and locks it.
    pub(crate) fn take(path: &Path) -> Result<Self, BringUpError> {
        let failed = |context: String| {
            let context = format!("data directory {}: {context}", path.display());
            BringUpError::new(BringUpErrorKind::Data, context)
        };
        let made = private::create_directory(path)
            .map_err(|error| failed(format!("can't make it: {error}")))?;
        let path = path
            .canonicalize()
            .map_err(|error| failed(format!("can't find out where it is: {error}")))?;
        let lock_path = path.join(LOCK_FILE);
        private::tighten_directory(&path, lock_path.exists());
        let mut lock = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock_path)
            .map_err(|error| failed(format!("can't write to it: {error}")))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                let known = lock.read_to_string(&mut owner).is_ok() && !owner.trim().is_empty();
                let owner = if known {
                    format!(" (process {})", owner.trim())
                } else {
                    String::new()
                };
                return Err(failed(format!(
                    "another ashlar serve{owner} is using it; stop that one, or choose another --data"
                )));
            }
            Err(TryLockError::Error(error)) => {
                return Err(failed(format!("can't lock it: {error}")));
            }
        }
        if !is_at(&lock, &lock_path) {
            return Err(failed(
                "another ashlar serve has just removed it; start again".to_owned(),
            ));
        }
        // Only for the message above: who fails to write it still holds the lock.
        let _ = lock
            .set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| writeln!(lock, "{}", std::process::id()));
        Ok(DataDir {
            path,
            made,
            _lock: lock,
        })
    }

    /// Removes the directory if this start made it, and nothing but the lock is in it.
    pub(crate) fn take_back(&self) {
        if self.made.is_empty() {
            return;
        }
        let entries = fs::read_dir(&self.path).into_iter().flatten();
        let mut names = entries.map(|entry| entry.map(|entry| entry.file_name()));
        if !names.all(|name| name.is_ok_and(|name| name == LOCK_FILE)) {
            return;
        }
        // What can't be removed stays: the start has failed for a reason that is told already.
        if fs::remove_file(self.path.join(LOCK_FILE)).is_ok() {
            let mut made = self.made.iter();
            let _ = made.try_for_each(fs::remove_dir);
        }
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The record of the pools that were made here.
    pub(crate) fn made_file(&self) -> PathBuf {
        self.path.join("ashlar-data.json")
    }

    /// The array's configuration.
    pub(crate) fn configuration_file(&self) -> PathBuf {
        self.path.join(CONFIGURATION_FILE)
    }

    /// The exports that the API made, where servers of before kept them.
    pub(crate) fn exports_file(&self) -> PathBuf {
        self.path.join("ashlar-exports.json")
    }

    /// The hosts and their groups that the API made, as of before.
    pub(crate) fn hosts_file(&self) -> PathBuf {
        self.path.join("ashlar-hosts.json")
    }

    /// The record of events.
    pub(crate) fn events_file(&self) -> PathBuf {
        self.path.join(EVENTS_FILE)
    }
}

/// Whether `file` is still at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |about: fs::Metadata| (about.dev(), about.ino());
    let (ours, there) = (file.metadata(), fs::metadata(path));
    matches!((ours.map(id), there.map(id)), (Ok(ours), Ok(there)) if ours == there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_is_told_who_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("a/b");
        let first = DataDir::take(&data).unwrap();
        let error = DataDir::take(&data).unwrap_err();
        assert_eq!(error.kind, BringUpErrorKind::Data);
        let process = format!(
            "another ashlar serve (process {}) is using it",
            std::process::id()
        );
        assert!(error.context.contains(&process), "{error}");
        drop(first);
        DataDir::take(&data).unwrap();
    }

    #[test]
    fn only_what_was_made_and_is_empty_is_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("a/b");
        let taken = DataDir::take(&data).unwrap();
        taken.take_back();
        assert!(!dir.path().join("a").exists());
        // A server that opened the lock before it was removed does not have the directory.
        assert!(!is_at(&taken._lock, &data.join(LOCK_FILE)));
        drop(taken);
        let taken = DataDir::take(&data).unwrap();
        fs::write(data.join("d0.img"), "x").unwrap();
        taken.take_back();
        assert!(data.join(LOCK_FILE).exists() && data.join("d0.img").exists());
        drop(taken);
        fs::remove_file(data.join("d0.img")).unwrap();
        DataDir::take(&data).unwrap().take_back();
        assert!(data.join(LOCK_FILE).exists(), "it was there before");
    }

    #[test]
    fn a_file_in_its_place_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("file");
        fs::write(&data, "x").unwrap();
        let error = DataDir::take(&data).unwrap_err();
        assert_eq!(error.kind, BringUpErrorKind::Data);
        assert!(error.context.contains("file: can't make"), "{error}");
    }
}
