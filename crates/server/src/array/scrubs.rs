//! Keeps how far scrubs are in a file of the data directory.
//!
//! Invariant: a file that can't be read keeps no array from starting. The scrubs begin anew.

use crate::record;
use ::array::control::ScrubNote;
use ::array::records::Store;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The record of the scrubs, in the data directory.
const SCRUBS_FILE: &str = "ashlar-scrubs.json";

/// The record in the directory `data`, and what it says.
pub(crate) fn scrubs(data: &Path) -> (Arc<dyn Store<Vec<ScrubNote>>>, Vec<ScrubNote>) {
    let path = data.join(SCRUBS_FILE);
    let notes: Option<Vec<ScrubNote>> = record::read(&path).unwrap_or_else(|error| {
        tracing::error!("scrubs that run by themselves begin again: {error}");
        None
    });
    (Arc::new(ScrubFile { path }), notes.unwrap_or_default())
}

/// The record in its file.
#[derive(Debug)]
struct ScrubFile {
    path: PathBuf,
}

impl Store<Vec<ScrubNote>> for ScrubFile {
    fn keep(&self, notes: Vec<ScrubNote>) -> BoxFuture<'static, Result<(), String>> {
        let path = self.path.clone();
        let write = move || record::write(&path, &notes);
        record::write_aside("how far scrubs are", write).boxed()
    }
}
