//! Tells the files of one data directory from those of another.
//!
//! Invariants:
//! - Records name a file in their data directory by its path from there. So a directory that is
//!   moved or copied has its own files.
//! - An array uses no drive, and wipes none, that is in another array's data directory: a record or
//!   a site file with an absolute path may be a copy, too.

use crate::array::configuration::CONFIGURATION_FILE;
use std::path::{Path, PathBuf};

/// How a record in the data directory `data` names the file at `path`. `data.join` is the way back.
pub(crate) fn kept_path(data: &Path, path: &Path) -> PathBuf {
    match path.strip_prefix(data) {
        Ok(inside) if inside != Path::new("") => inside.to_owned(),
        _ => path.to_owned(),
    }
}

/// Why the array in the data directory `data` may not use the file at `path`: it is in the data
/// directory of another array.
pub(crate) fn is_foreign(data: &Path, path: &Path) -> Option<String> {
    let parent = path.parent()?;
    let real = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
    let mut above = real.ancestors();
    let owner = above.find(|at| *at == data || at.join(CONFIGURATION_FILE).exists())?;
    (owner != data).then(|| {
        format!(
            "{} is in the data directory of another array, {}: move the file out of there if it is \
             this array's, and correct its path in the site file",
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
    }
}
