//! Finds the data and the holes of a file.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Whether `file` has data at `at`, which lies before its end, and how many bytes from
/// there on are alike. A file system that doesn't know says that all is data.
///
/// # Errors
/// Of the file system.
pub fn extent(file: &File, at: u64) -> io::Result<(bool, u64)> {
    let end = file.metadata()?.len();
    let left = end.saturating_sub(at);
    match seek(file, at, libc::SEEK_DATA)? {
        // None any more.
        None => Ok((false, left)),
        Some(data) if data > at => Ok((false, (data - at).min(left))),
        Some(_) => {
            let hole = seek(file, at, libc::SEEK_HOLE)?.unwrap_or(end);
            Ok((true, hole.saturating_sub(at).min(left)))
        }
    }
}

fn seek(file: &File, at: u64, whence: i32) -> io::Result<Option<u64>> {
    let from = i64::try_from(at).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the descriptor is open as long as `file` is; lseek touches no memory.
    let found = unsafe { libc::lseek(file.as_raw_fd(), from, whence) };
    match u64::try_from(found) {
        Ok(found) => Ok(Some(found)),
        Err(_) => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
            error => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn holes_and_data_are_told_apart() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 << 20).unwrap();
        assert_eq!(extent(&file, 0).unwrap(), (false, 8 << 20));
        file.write_all_at(&[7; 4096], 4 << 20).unwrap();
        assert_eq!(extent(&file, 512).unwrap(), (false, (4 << 20) - 512));
        let (is_data, len) = extent(&file, 4 << 20).unwrap();
        assert!(is_data && len >= 4096, "{len}");
        let after = (4 << 20) + len;
        assert_eq!(extent(&file, after).unwrap(), (false, (8 << 20) - after));
    }
}
