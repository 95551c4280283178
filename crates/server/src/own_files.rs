//! Tells the files of one data directory from those of another.
//!
//! Invariants:
//! - Records name a file in their data directory by its path from there. So a directory that is
//!   moved or copied has its own files.
//! - An array uses no drive, and wipes none, that is in another array's data directory: a record or
//!   a site file with an absolute path may be a copy, too.

pub(crate) use ::array::control::kept_path;

use crate::record::CONFIGURATION_FILE;
use std::path::{Path, PathBuf};
use std::time::Duration;
use world_real::within;

/// How long a file system may take to say where a path leads to.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Why the array in the data directory `data` may not use the file at `path`: it is in the data
/// directory of another array, or its file system does not answer.
pub(crate) async fn foreign(data: &Path, path: &Path) -> Option<String> {
    let data = data.to_owned();
    let asked = within(path, ANSWER_TIME, move |path| Ok(is_foreign(&data, path)));
    asked.await.unwrap_or_else(|error| Some(error.to_string()))
}

/// The file that `path` leads to, also when it is not there yet.
fn real(path: &Path) -> PathBuf {
    let parent = || {
        let parent = path.parent()?.canonicalize().ok()?;
        Some(parent.join(path.file_name()?))
    };
    let found = path.canonicalize().ok();
    found.or_else(parent).unwrap_or_else(|| path.to_owned())
}

fn is_foreign(data: &Path, path: &Path) -> Option<String> {
    let real = real(path);
    let mut above = real.ancestors().skip(1);
    let owner = above.find(|at| *at == data || at.join(CONFIGURATION_FILE).exists())?;
    (owner != data).then(|| {
        format!(
            "{} is in the data directory of another array, {}: if it is a drive of this array, move \
             the file out of there, and have `ashlar site apply` look for it in its new place",
            path.display(),
            owner.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_nearest_data_directory_has_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let (outer, inner) = (top.join("outer"), top.join("outer/inner"));
        fs::create_dir_all(inner.join("drives")).unwrap();
        fs::write(outer.join(CONFIGURATION_FILE), "").unwrap();
        fs::write(inner.join(CONFIGURATION_FILE), "").unwrap();
        let foreign = |data: &Path, path: PathBuf| is_foreign(data, &path).is_some();
        assert!(!foreign(&inner, inner.join("drives/d0.img")));
        assert!(!foreign(&outer, outer.join("d0.img")));
        assert!(!foreign(&outer, top.join("d0.img")));
        assert!(foreign(&outer, inner.join("drives/d0.img")));
        assert!(foreign(&inner, outer.join("d0.img")));
        assert!(foreign(&inner, inner.join("drives/../../d0.img")));
        std::os::unix::fs::symlink(&outer, top.join("link")).unwrap();
        assert!(foreign(&inner, top.join("link/d0.img")));
        fs::write(outer.join("d0.img"), "").unwrap();
        std::os::unix::fs::symlink(outer.join("d0.img"), inner.join("d1.img")).unwrap();
        assert!(foreign(&inner, inner.join("d1.img")), "a link to a file");
    }
}
