//! Keeps the roster in a file of the data directory.
//!
//! Invariant: a file that can't be read keeps no array from starting. It is set aside, with an error
//! in the log, and the roster is empty.

use super::{KnownDrive, Roster};
use crate::own_files::kept_path;
use crate::record;
use ::array::records::Store;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The record of the roster, in the data directory.
const ROSTER_FILE: &str = "ashlar-roster.json";

/// What the name of a record ends with that could not be read.
const UNREADABLE: &str = ".unreadable";

/// The roster in the directory `data`.
pub(crate) fn roster(data: &Path) -> Roster {
    let path = data.join(ROSTER_FILE);
    let known: Option<Vec<KnownDrive>> = record::read(&path).unwrap_or_else(|error| {
        tracing::error!("failed drives of before are forgotten: {error}");
        set_aside(&path);
        None
    });
    let there = |drive: KnownDrive| drive.at(|path| data.join(path));
    let known = known.unwrap_or_default().into_iter().map(there).collect();
    Roster::new(known, Arc::new(RosterFile { path }))
}

/// The record in its file.
#[derive(Debug)]
struct RosterFile {
    path: PathBuf,
}

impl Store<Vec<KnownDrive>> for RosterFile {
    fn keep(&self, drives: Vec<KnownDrive>) -> BoxFuture<'static, Result<(), String>> {
        let path = self.path.clone();
        let write = move || {
            let data = path.parent().unwrap_or(&path);
            let kept = |drive: KnownDrive| drive.at(|path| kept_path(data, path));
            let kept: Vec<KnownDrive> = drives.into_iter().map(kept).collect();
            record::write(&path, &kept)
        };
        record::write_aside("the roster", write).boxed()
    }
}

/// Has a record that can't be read be out of the way of the next one.
fn set_aside(path: &Path) {
    let mut aside = path.as_os_str().to_owned();
    aside.push(UNREADABLE);
    match std::fs::rename(path, &aside) {
        Ok(()) => tracing::error!("{} is kept as {}", path.display(), aside.display()),
        Err(error) => tracing::error!("{}: can't set it aside: {error}", path.display()),
    }
}
