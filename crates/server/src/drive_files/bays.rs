//! The places of drives on this machine: files and devices.

use super::{is_open_here, mend_aside, open};
use crate::own_files::foreign;
use crate::shard::ShardState;
use ::array::openings::{DriveBays, MadeFiles, NotOpen, NotOpenKind, OpenBay, Patience, READ_TIME};
use engine::pool::PoolSpec;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use world_real::{OpenDrive, OpenError, OpenErrorKind, RealDrive, RealWorld, within};

/// A smaller file is no drive.
const DRIVE_BYTES_MIN: u64 = 1 << 20;

/// Files and devices, as the array in the data directory `data` may use them.
#[derive(Debug)]
pub(crate) struct FileBays {
    data: PathBuf,
}

impl FileBays {
    /// Of the array in the data directory `data`.
    pub(crate) fn new(data: PathBuf) -> Self {
        FileBays { data }
    }
}

/// A file or a device that is open.
struct OpenFile(OpenDrive);

impl OpenBay<RealWorld> for OpenFile {
    fn door(&self, state: &ShardState) -> RealDrive {
        RealDrive::of(state.world(), &self.0)
    }
}

impl DriveBays<RealWorld> for FileBays {
    fn open<'a>(
        &'a self,
        path: &'a Path,
        patience: &'a mut Patience,
    ) -> BoxFuture<'a, Result<Arc<dyn OpenBay<RealWorld>>, NotOpen>> {
        let opened = async move {
            match open(path, patience).await {
                Ok(open) => Ok(Arc::new(OpenFile(open)) as Arc<dyn OpenBay<RealWorld>>),
                Err(error) => Err(not_open(&error)),
            }
        };
        opened.boxed()
    }

    fn is_taken<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, bool> {
        let path = path.to_owned();
        let looking = tokio::task::spawn_blocking(move || path.exists());
        looking.map(|looked| looked.unwrap_or(true)).boxed()
    }

    fn is_open_here<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, bool> {
        is_open_here(path).boxed()
    }

    fn foreign<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Option<String>> {
        foreign(&self.data, path).boxed()
    }

    fn is_below(&self, path: &Path, directories: &[PathBuf]) -> bool {
        let parent = path.parent().unwrap_or(path);
        let parent = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
        let is_in = |directory: &PathBuf| match directory.canonicalize() {
            Ok(real) => parent.starts_with(real),
            Err(_) => false,
        };
        directories.iter().any(is_in)
    }

    fn is_labelled(&self, path: &Path) {
        mend_aside(path.to_owned());
    }

    fn make_files(&self, files: Vec<(PathBuf, u64)>) -> BoxFuture<'_, MadeFiles> {
        let making = tokio::task::spawn_blocking(move || {
            let mut made = Vec::new();
            let outcome = files.into_iter().try_for_each(|(path, size)| {
                RealDrive::create_file(&path, size)?;
                made.push(path);
                Ok::<(), OpenError>(())
            });
            (made, outcome)
        });
        let made = async move {
            match making.await {
                Ok((made, outcome)) => (Some(made), outcome.map_err(|error| error.to_string())),
                Err(error) => (
                    None,
                    Err(format!("making drive files ended early: {error}")),
                ),
            }
        };
        made.boxed()
    }

    fn remove_file<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), String>> {
        let path = path.to_owned();
        let removing = tokio::task::spawn_blocking(move || match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.to_string()),
            _ => Ok(()),
        });
        let removed = removing.map(|ended| ended.unwrap_or_else(|error| Err(error.to_string())));
        removed.boxed()
    }

    fn files(&self) -> BoxFuture<'_, Vec<PathBuf>> {
        files_in(&self.data).boxed()
    }

    fn suit(&self, spec: PoolSpec) -> Result<PoolSpec, String> {
        let nonce = nonce()?;
        Ok(PoolSpec { nonce, ..spec })
    }
}

fn not_open(error: &OpenError) -> NotOpen {
    NotOpen {
        kind: match error.kind {
            OpenErrorKind::NotFound => NotOpenKind::NotFound,
            OpenErrorKind::InUse => NotOpenKind::InUse,
            OpenErrorKind::Silent => NotOpenKind::Silent,
            OpenErrorKind::NotReady => NotOpenKind::NotReady,
            _ => NotOpenKind::Other,
        },
        context: error.to_string(),
    }
}

/// What no other pool was made with.
fn nonce() -> Result<u64, String> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| format!("no random numbers: {error}"))?;
    Ok(u64::from_le_bytes(random))
}

/// The files in the data directory that may be drives.
async fn files_in(data: &Path) -> Vec<PathBuf> {
    let listed = within(data, READ_TIME, |path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let is_large = |entry: &std::fs::DirEntry| {
            let about = entry.metadata();
            about.is_ok_and(|about| about.is_file() && about.len() >= DRIVE_BYTES_MIN)
        };
        let files = entries.filter(is_large).map(|entry| entry.path());
        Ok(files.collect::<Vec<_>>())
    });
    let mut files = listed.await.unwrap_or_default();
    files.sort();
    files
}
