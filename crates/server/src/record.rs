//! Small JSON records in the data directory, replaced whole or not at all.
//!
//! A record is written to a file beside it, synced, renamed over it, and the
//! directory is synced. One write of this process goes on at a time: two would
//! write the same file beside the record. A record that is there and can't be understood is an
//! error, never an empty record. What was read is durable: a process that was killed may have left the
//! record renamed, and its directory not synced.

use crate::private;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The array's configuration, in the data directory.
pub(crate) const CONFIGURATION_FILE: &str = "ashlar-configuration.json";
/// The record of events, there.
pub(crate) const EVENTS_FILE: &str = "ashlar-events.jsonl";

/// Version of the records' format; a newer one is refused.
const FORMAT: u32 = 1;

/// Held while a record is replaced.
static REPLACING: Mutex<()> = Mutex::new(());

#[derive(Serialize)]
struct Out<'a, T, B> {
    format: u32,
    #[serde(flatten)]
    beside: &'a B,
    content: &'a T,
}

#[derive(Deserialize)]
struct In<T, B> {
    #[serde(flatten)]
    beside: B,
    content: T,
}

/// Nothing stands beside the content.
#[derive(Serialize, Deserialize)]
struct Nothing {}

#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// A record that can't be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {context}", path.display())]
pub struct RecordError {
    /// Path of the record's file.
    pub path: PathBuf,
    /// What happened and what can be done.
    pub context: String,
}

/// The record in `path`; `None` when there is no such file.
///
/// # Errors
/// The file can't be read, isn't a record, or was written by a newer version.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, RecordError> {
    let found: Option<(T, Nothing)> = read_with(path)?;
    Ok(found.map(|(content, _)| content))
}

/// As [`read`], with what stands beside the content.
///
/// # Errors
/// As there.
pub(crate) fn read_with<T: DeserializeOwned, B: DeserializeOwned>(
    path: &Path,
) -> Result<Option<(T, B)>, RecordError> {
    let failed = |context: String| RecordError {
        path: path.to_owned(),
        context,
    };
    // A pipe in its place would have nobody at the other end.
    if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        return Err(failed("it is no file; move it away".to_owned()));
    }
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(format!("can't read it: {error}"))),
    };
    let synced = sync_directory_of(path);
    synced.map_err(|error| failed(format!("can't sync its directory: {error}")))?;
    let damaged = |error: serde_json::Error| {
        failed(format!(
            "can't understand it ({error}); restore it from a copy, or move it away"
        ))
    };
    let Format { format } = serde_json::from_slice(&bytes).map_err(damaged)?;
    if format != FORMAT {
        return Err(failed(format!(
            "it has format {format}, this version knows {FORMAT}; use the version that wrote it"
        )));
    }
    let record: In<T, B> = serde_json::from_slice(&bytes).map_err(damaged)?;
    Ok(Some((record.content, record.beside)))
}

/// Writes the record in `path`, durably.
///
/// # Errors
/// The old record is still there then, unless only the last sync failed.
pub fn write<T: Serialize>(path: &Path, content: &T) -> Result<(), RecordError> {
    write_with(path, content, &Nothing {})
}

/// As [`write`], with something beside the content, which versions that do not know it skip.
///
/// # Errors
/// As there.
pub(crate) fn write_with<T: Serialize, B: Serialize>(
    path: &Path,
    content: &T,
    beside: &B,
) -> Result<(), RecordError> {
    write_bytes(path, content, beside).map_err(|error| RecordError {
        path: path.to_owned(),
        context: format!("can't write it: {error}; see that the data directory has room"),
    })
}

/// Has `write` write a record where it holds up no task. `what` is written.
///
/// # Errors
/// Why it can't be, for people.
pub(crate) async fn write_aside(
    what: &str,
    write: impl FnOnce() -> Result<(), RecordError> + Send + 'static,
) -> Result<(), String> {
    match tokio::task::spawn_blocking(write).await {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(error) => Err(format!("writing {what} ended early: {error}")),
    }
}

fn write_bytes<T: Serialize, B: Serialize>(path: &Path, content: &T, beside: &B) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(&Out {
        format: FORMAT,
        beside,
        content,
    })?;
    text.push('\n');
    replace(path, text.as_bytes())
}

/// Has the file at `path` hold `content`, durably: that, or all that it held before.
///
/// # Errors
/// Of the file system. Unless only the last sync failed, what was there still is.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    // Whoever panicked with this lock held has left what a crash leaves.
    let _replacing = REPLACING.lock().unwrap_or_else(PoisonError::into_inner);
    // What a write that was cut short has left may be for others.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Some have secrets, and none is for others.
    let mut file = private::create(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    sync_directory_of(path)
}

/// Makes durable which files are in the directory of `path`.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_record_comes_back_and_replaces_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.json");
        assert_eq!(read::<Vec<u32>>(&path).unwrap(), None);
        write(&path, &vec![1, 2]).unwrap();
        write(&path, &vec![3]).unwrap();
        assert_eq!(read::<Vec<u32>>(&path).unwrap(), Some(vec![3]));
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "for its owner only");
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }

    #[test]
    fn what_is_no_file_is_no_record() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("r.json");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [dir.path(), &socket] {
            let error = read::<Vec<u32>>(path).unwrap_err();
            assert!(error.to_string().contains("is no file"), "{error}");
        }
    }

    #[test]
    fn a_damaged_record_is_never_an_empty_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.json");
        for damaged in [
            "",
            "{",
            "{\"format\": 1}",
            "[]",
            "{\"format\": 1, \"content\": \"x\"}",
        ] {
            fs::write(&path, damaged).unwrap();
            let message = read::<Vec<u32>>(&path).unwrap_err().to_string();
            assert!(
                message.contains("r.json: can't understand it"),
                "{damaged:?}: {message}"
            );
        }
    }

    #[test]
    fn a_newer_record_is_refused_by_its_format() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.json");
        fs::write(&path, "{\"format\": 2, \"content\": {\"a\": 1}}").unwrap();
        let message = read::<Vec<u32>>(&path).unwrap_err().to_string();
        assert!(
            message.contains("has format 2") && message.contains("knows 1"),
            "{message}"
        );
    }

    #[test]
    fn a_record_that_cannot_be_written_leaves_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.json");
        write(&path, &1u32).unwrap();
        // A directory where the new version would be written.
        fs::create_dir(path.with_extension("new")).unwrap();
        let message = write(&path, &2u32).unwrap_err().to_string();
        assert!(message.contains("r.json: can't write it"), "{message}");
        assert_eq!(read::<u32>(&path).unwrap(), Some(1));
    }

    #[test]
    fn records_that_are_written_together_are_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.json");
        std::thread::scope(|scope| {
            for writer in 0..8u32 {
                let path = &path;
                scope.spawn(move || {
                    for length in 0..20 {
                        write(path, &vec![writer; 1000 * length]).unwrap();
                        let found = read::<Vec<u32>>(path).unwrap().unwrap();
                        assert!(found.iter().all(|other| *other == found[0]));
                    }
                });
            }
        });
    }
}
