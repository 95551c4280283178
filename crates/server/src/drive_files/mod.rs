//! Opens files and devices as drives, for this machine's [`DriveBays`].
//!
//! A drive that is in use is tried again for a while: what a server that was just killed
//! had in flight holds it for a moment longer, and so does who has just let go of it.
//!
//! Invariant: nobody waits for what does not answer.

mod bays;

pub(crate) use bays::FileBays;

use crate::private;
use ::array::openings;
use site::human;
use std::path::{Path, PathBuf};
use std::time::Duration;
use world_real::{OpenDrive, OpenError, OpenErrorKind, reserve_holes};

/// Drives that are in use are tried so far apart.
const IN_USE_PAUSE: Duration = Duration::from_millis(50);

/// An opening takes no longer: what takes longer does not answer.
const OPEN_TIME: Duration = Duration::from_secs(5);

/// How long there is to wait for drives that are in use: one for all that are opened
/// together, so that many of them don't take many times as long to be refused.
#[derive(Debug, Default)]
pub struct Patience(openings::Patience);

impl Patience {
    /// Opens the drive at `path`.
    ///
    /// # Errors
    /// It is not there, not fit to be a drive, or still in use.
    pub async fn open(&mut self, path: &Path) -> Result<OpenDrive, OpenError> {
        open(path, &mut self.0).await
    }
}

async fn open(path: &Path, patience: &mut openings::Patience) -> Result<OpenDrive, OpenError> {
    loop {
        match OpenDrive::open_within(path, OPEN_TIME).await {
            Err(error) if error.kind == OpenErrorKind::InUse && patience.look_again() => {
                tokio::time::sleep(IN_USE_PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

/// Has a drive file be private, and have all its space. Its file system may hold whoever asks: no
/// shard waits for that.
fn mend_aside(path: PathBuf) {
    let mend = move || {
        private::tighten(&path);
        let (holes, path) = (reserve_holes(&path), path.display());
        match holes {
            Ok(0) => {}
            Ok(bytes) => {
                tracing::info!("{path}: it had holes; {} are reserved for it", human(bytes))
            }
            Err(error) => tracing::warn!(
                "{error}: the drive's file has holes, and writes into them fail when the file \
                 system is full: free space there, and start again"
            ),
        }
    };
    let begun = std::thread::Builder::new()
        .name("drive file".to_owned())
        .spawn(mend);
    if let Err(error) = begun {
        tracing::warn!("no thread to look at a drive's file: {error}");
    }
}

/// How long a file system may take to say what is at a path.
const PLACE_TIME: Duration = Duration::from_secs(5);

/// Whether this process has the file or the device at `path` open. Another may have been put there.
async fn is_open_here(path: &Path) -> bool {
    let asked = world_real::within(path, PLACE_TIME, |path| {
        Ok(world_real::is_open_here(path).unwrap_or(false))
    });
    asked.await.unwrap_or(false)
}
