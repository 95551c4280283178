//! What jobs have of this machine: their record in the data directory, and where images may be.
//! Which jobs there are, and what becomes of them, the control plane knows
//! ([`::array::control::jobs`]); `images` does their work with files.

mod place;
mod record;

pub(crate) use place::{Directories, invalid, is_unchanged, seen_now};
pub(crate) use record::JobFile;

use crate::private;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The directory of sockets, in the data directory.
const SOCKETS: &str = "ashlar-images";

/// Where images are, and the programs that serve them.
#[derive(Debug)]
pub(crate) struct ImagePlaces {
    directories: Mutex<Directories>,
    sockets: PathBuf,
}

impl ImagePlaces {
    /// Images may be in `directories`, and sockets are in the data directory `data`.
    pub(crate) fn new(directories: Vec<PathBuf>, data: &Path) -> Self {
        let sockets = data.join(SOCKETS);
        // Of a server that was killed; nobody listens there any more.
        let _ = std::fs::remove_dir_all(&sockets);
        ImagePlaces {
            directories: Mutex::new(Directories::new(directories)),
            sockets,
        }
    }

    /// Where images may be.
    pub(crate) fn directories(&self) -> Directories {
        // Whoever panicked with this lock held has left a whole list behind.
        let directories = self.directories.lock();
        directories.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says where images may be from now on. Jobs that have begun are checked again when they go
    /// on after a restart.
    pub(crate) fn set_directories(&self, directories: Vec<PathBuf>) {
        let now = self.directories.lock();
        *now.unwrap_or_else(PoisonError::into_inner) = Directories::new(directories);
    }

    /// The directory for the socket of a job, to be made.
    pub(crate) fn socket(&self, id: u64) -> Result<PathBuf, String> {
        let made = private::create_directory(&self.sockets);
        made.map_err(|error| format!("can't make {}: {error}", self.sockets.display()))?;
        Ok(self.sockets.join(id.to_string()))
    }
}
