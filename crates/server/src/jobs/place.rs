//! Checks that an image is under a directory that the settings allow.
//!
//! Invariant: what is given out is a path without links, under an allowed directory. Who
//! may write to these directories is trusted not to change them at the same moment.

use ::array::control::jobs::SeenFile;
use ::array::control::{ArrayError, ArrayErrorKind};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The directories that images may be in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directories {
    allowed: Vec<PathBuf>,
}

pub(crate) fn invalid(context: impl Into<String>) -> ArrayError {
    ArrayError::new(ArrayErrorKind::Invalid, context.into())
}

impl Directories {
    pub(crate) fn new(allowed: Vec<PathBuf>) -> Self {
        Directories { allowed }
    }

    /// The file at `path`, which has to be there.
    ///
    /// # Errors
    /// It is not there, no plain file, or not where images may be.
    pub(crate) fn existing(&self, path: &Path) -> Result<PathBuf, ArrayError> {
        self.check_any(path)?;
        let real = path.canonicalize().map_err(|error| {
            let kind = match error.kind() {
                std::io::ErrorKind::NotFound => ArrayErrorKind::NotFound,
                _ => ArrayErrorKind::Invalid,
            };
            // Outside, nobody is told what is there.
            match self.is_inside(path) {
                true => ArrayError::new(kind, format!("{}: {error}", path.display())),
                false => self.outside(path),
            }
        })?;
        if !self.is_inside(&real) {
            return Err(self.outside(path));
        }
        // Asked before it is opened: opening a pipe waits, a device may do anything.
        let is_file = fs::metadata(&real).is_ok_and(|found| found.is_file());
        match is_file {
            true => Ok(real),
            false => Err(invalid(format!("{}: it is no file", path.display()))),
        }
    }

    /// Where a new file at `path` will be.
    ///
    /// # Errors
    /// Something is there, its directory isn't, or is not where images may be.
    pub(crate) fn new_file(&self, path: &Path) -> Result<PathBuf, ArrayError> {
        self.check_any(path)?;
        let (Some(name), Some(directory)) = (path.file_name(), path.parent()) else {
            return Err(invalid(format!("{}: it names no file", path.display())));
        };
        let directory = directory
            .canonicalize()
            .map_err(|error| match self.is_inside(path) {
                true => invalid(format!("{}: {error}", directory.display())),
                false => self.outside(path),
            })?;
        if !self.is_inside(&directory) {
            return Err(self.outside(path));
        }
        let real = directory.join(name);
        if real.symlink_metadata().is_ok() {
            let context = format!("{} is there already; choose another name", real.display());
            return Err(ArrayError::new(ArrayErrorKind::Exists, context));
        }
        Ok(real)
    }

    fn check_any(&self, path: &Path) -> Result<(), ArrayError> {
        if self.allowed.is_empty() {
            return Err(invalid(
                "no directory is allowed for images; `ashlar settings set \
                 images.directories=/srv/images` allows one, for example",
            ));
        }
        let climbs = path.components().any(|part| part.as_os_str() == "..");
        match path.is_absolute() && !climbs {
            true => Ok(()),
            false => Err(invalid(format!(
                "file: found {:?}; allowed: an absolute path without \"..\"",
                path.display()
            ))),
        }
    }

    /// Whether `path` begins with an allowed directory, by name or by where that really is.
    fn is_inside(&self, path: &Path) -> bool {
        let inside = |allowed: &PathBuf| match allowed.canonicalize() {
            Ok(real) => path.starts_with(real) || path.starts_with(allowed),
            Err(_) => path.starts_with(allowed),
        };
        self.allowed.iter().any(inside)
    }

    fn outside(&self, path: &Path) -> ArrayError {
        let allowed: Vec<_> = self
            .allowed
            .iter()
            .map(|at| at.display().to_string())
            .collect();
        invalid(format!(
            "{}: images may be under {} only; `ashlar settings set images.directories=` allows others",
            path.display(),
            allowed.join(", ")
        ))
    }
}

/// The file at `path`, as it is now.
///
/// # Errors
/// It can't be opened.
pub(crate) fn seen_now(path: &Path) -> std::io::Result<SeenFile> {
    let found = File::open(path)?.metadata()?;
    Ok(SeenFile {
        path: path.to_owned(),
        size_bytes: found.len(),
        modified_ns: i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec()),
        inode: found.ino(),
    })
}

/// Whether a file is still what it was when it was looked at.
pub(crate) fn is_unchanged(seen: &SeenFile) -> bool {
    seen_now(&seen.path).is_ok_and(|now| now == *seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_inside_is_given_out() {
        let home = tempfile::tempdir().unwrap();
        let (inside, outside) = (home.path().join("in"), home.path().join("out"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(inside.join("a"), "x").unwrap();
        fs::write(outside.join("b"), "x").unwrap();
        std::os::unix::fs::symlink(outside.join("b"), inside.join("link")).unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("way")).unwrap();
        let images = Directories::new(vec![inside.clone()]);
        assert!(images.existing(&inside.join("a")).is_ok());
        for wrong in ["link", "way/b", "../out/b", "none", ""] {
            assert!(images.existing(&inside.join(wrong)).is_err(), "{wrong}");
        }
        assert!(images.existing(&outside.join("b")).is_err());
        assert!(images.existing(Path::new("a")).is_err());
        assert!(images.new_file(&inside.join("new")).is_ok());
        for wrong in ["a", "link", "way/new", "none/new", "../out/new"] {
            assert!(images.new_file(&inside.join(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn none_allowed_says_how_to_allow() {
        let none = Directories::default()
            .existing(Path::new("/a"))
            .unwrap_err();
        assert!(none.context.contains("images.directories="), "{none}");
    }

    #[test]
    fn what_is_outside_is_not_told_about() {
        let home = tempfile::tempdir().unwrap();
        let images = Directories::new(vec![home.path().join("in")]);
        let said = |path: &str| images.existing(Path::new(path)).unwrap_err().context;
        assert_eq!(said("/none").replace("/none", "/etc"), said("/etc"));
    }
}
