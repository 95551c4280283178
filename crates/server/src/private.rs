//! Keeps the files of an array private to its user.
//!
//! Drives hold the data of guests, records hold secrets, and a user who can open a file can also
//! lock it.
//!
//! What is made is private from the start. What was there before, made by an older version or by
//! other programs, is tightened, and the log says so.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What a file or directory allows to others than its owner.
const OF_OTHERS: u32 = 0o077;

/// Others may only remove their own files in a directory with this: it is shared on purpose.
const STICKY: u32 = 0o1000;

/// Opens `path` for writing, empty; made if it isn't there.
///
/// # Errors
/// Of the file system.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}

/// Makes a directory, and those above it that are missing. Gives those that it made, the lowest
/// first.
///
/// # Errors
/// Of the file system.
pub(crate) fn create_directory(path: &Path) -> io::Result<Vec<PathBuf>> {
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let missing = path.ancestors().take_while(is_missing);
    let missing = missing.map(Path::to_owned).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    Ok(missing)
}

/// Takes from others what they may do with the file at `path`, if it is one.
pub(crate) fn tighten(path: &Path) {
    // A link is followed: it is the file that is read. What can't be looked at is told of by
    // who needs it.
    let metadata = fs::metadata(path).ok();
    if let Some(metadata) = metadata.filter(Metadata::is_file) {
        tighten_it(path, &metadata);
    }
}

/// Takes from others what they may do with a data directory, `is_ours` from before, and with the
/// files in it.
pub(crate) fn tighten_directory(path: &Path, is_ours: bool) {
    let Ok(metadata) = fs::metadata(path) else {
        return;
    };
    if is_ours && metadata.mode() & STICKY == 0 {
        tighten_it(path, &metadata);
    } else if metadata.mode() & OF_OTHERS != 0 {
        let path = path.display();
        tracing::warn!("others than the array can look into its data directory {path}");
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_record = name.to_string_lossy().starts_with("ashlar");
        // Of other files only drives are ours, and those are looked at one by one.
        if is_record && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            tighten(&entry.path());
        }
    }
}

fn tighten_it(path: &Path, metadata: &Metadata) {
    let mode = metadata.mode() & 0o7777;
    if mode & OF_OTHERS == 0 {
        return;
    }
    let private = mode & !OF_OTHERS;
    match fs::set_permissions(path, Permissions::from_mode(private)) {
        Ok(()) => tracing::warn!(
            "{}: others than its owner could open it (mode {mode:04o}); its mode is {private:04o} now",
            path.display()
        ),
        Err(error) => tracing::warn!(
            "{}: others than its owner can open it (mode {mode:04o}), and that can't be changed: {error}",
            path.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn what_is_made_is_private_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let (file, directory) = (dir.path().join("file"), dir.path().join("a/b"));
        create(&file).unwrap();
        create_directory(&directory).unwrap();
        assert_eq!((mode(&file), mode(&directory)), (0o600, 0o700));
        assert_eq!(mode(&dir.path().join("a")), 0o700);
    }

    #[test]
    fn a_data_directory_of_ours_and_its_records_are_tightened() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        fs::create_dir(&data).unwrap();
        let (record, other) = (data.join("ashlar-hosts.json"), data.join("notes"));
        for file in [&record, &other] {
            fs::write(file, "x").unwrap();
            fs::set_permissions(file, Permissions::from_mode(0o644)).unwrap();
        }
        fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
        tighten_directory(&data, false);
        assert_eq!((mode(&data), mode(&record)), (0o755, 0o600));
        tighten_directory(&data, true);
        assert_eq!((mode(&data), mode(&other)), (0o700, 0o644));
        // One that is shared on purpose stays so.
        fs::set_permissions(&data, Permissions::from_mode(0o1777)).unwrap();
        tighten_directory(&data, true);
        assert_eq!(mode(&data), 0o1777);
    }

    #[test]
    fn only_a_file_is_tightened() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("drive");
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o664)).unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        tighten(&file);
        tighten(dir.path());
        tighten(&dir.path().join("none"));
        assert_eq!((mode(&file), mode(dir.path())), (0o600, 0o755));
    }
}
