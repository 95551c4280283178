//! The files that this process has open: how many it may have, and whether one is among them.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// The limits of this process, in file descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// How many it may have by now.
    pub soft: u64,
    /// How many it could have at most.
    pub hard: u64,
}

/// Raises the soft limit of open files to the hard one, and gives both.
///
/// # Errors
/// The kernel does not say, or does not let it.
pub fn raise_descriptors() -> io::Result<Descriptors> {
    let mut limits = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limits` has room for the answer.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limits) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limits.rlim_cur < limits.rlim_max {
        limits.rlim_cur = limits.rlim_max;
        // SAFETY: the kernel only reads `limits`.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limits) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(Descriptors {
        soft: limits.rlim_cur,
        hard: limits.rlim_max,
    })
}

/// Whether this process has the file or the block device at `path` open, by that name or another.
///
/// # Errors
/// There is nothing at `path`, or the system does not say which files are open.
pub fn is_open_here(path: &Path) -> io::Result<bool> {
    let there = fs::metadata(path)?;
    for entry in fs::read_dir("/proc/self/fd")? {
        // One may be closed just now.
        if let Ok(open) = fs::metadata(entry?.path())
            && is_same(&open, &there)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    let is_device = |file: &Metadata| file.file_type().is_block_device();
    match (is_device(one), is_device(other)) {
        (true, true) => one.rdev() == other.rdev(),
        (false, false) => one.dev() == other.dev() && one.ino() == other.ino(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn an_open_file_is_known_by_any_of_its_names_and_another_in_its_place_is_not() {
        let home = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| home.path().join(name));
        let open = File::create(&first).unwrap();
        assert!(is_open_here(&first).unwrap());
        fs::rename(&first, &second).unwrap();
        drop(File::create(&first).unwrap());
        assert!(is_open_here(&second).unwrap());
        assert!(!is_open_here(&first).unwrap());
        drop(open);
        assert!(!is_open_here(&second).unwrap());
        assert!(is_open_here(&home.path().join("none")).is_err());
    }
}
