//! Translates the kernel's error numbers into errors of a drive.

use engine::drive::DriveErrorKind;
use std::io;

/// A completion's result as a count of bytes.
///
/// # Errors
/// The error whose negated number the result is.
pub(super) fn count(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}

/// The kind of a failed read or write.
pub(super) fn kind(error: &io::Error) -> DriveErrorKind {
    match error.raw_os_error() {
        // What the block layer makes of media, protection and lost-transport
        // errors; a mirror's other copy decides which it was.
        Some(libc::EIO | libc::EILSEQ | libc::ENODATA | libc::EREMOTEIO) => DriveErrorKind::Media,
        Some(libc::ENOSPC | libc::EDQUOT) => DriveErrorKind::NoSpace,
        Some(libc::ENODEV | libc::ENXIO | libc::EBADFD | libc::ESHUTDOWN) => DriveErrorKind::Gone,
        // So do file systems whose server is gone: FUSE, NFS.
        Some(libc::ENOTCONN | libc::ESTALE | libc::ENOMEDIUM) => DriveErrorKind::Gone,
        // ENOLINK among them: a transport that resets, and is back soon. The block layer has no
        // word for one that stays away but that the device goes (ENODEV).
        _ => DriveErrorKind::Other,
    }
}

/// The kind of a failed flush. It is never about single blocks: whatever the
/// kernel said, no write since the last flush can be relied on.
pub(super) fn flush_kind(error: &io::Error) -> DriveErrorKind {
    match kind(error) {
        DriveErrorKind::Media => DriveErrorKind::Other,
        other => other,
    }
}

/// Whether io_uring_enter(2) can be asked again later.
pub(super) fn is_short_of_resources(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::EBUSY | libc::ENOMEM)
    )
}

/// Whether an operation may succeed when it is tried again: the machine was short of
/// something, or somebody came between. It says nothing of the drive.
pub(super) fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::EBUSY | libc::EINTR | libc::ENOMEM | libc::ENOBUFS)
    )
}

/// Whether a transfer is to be tried again, by a worker that may block.
pub(super) fn wants_a_worker(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_map_to_what_callers_act_on() {
        let cases = [
            (libc::EIO, DriveErrorKind::Media),
            (libc::ENODATA, DriveErrorKind::Media),
            (libc::ENOSPC, DriveErrorKind::NoSpace),
            (libc::EDQUOT, DriveErrorKind::NoSpace),
            (libc::ENODEV, DriveErrorKind::Gone),
            (libc::ENXIO, DriveErrorKind::Gone),
            (libc::EBADFD, DriveErrorKind::Gone),
            (libc::ENOTCONN, DriveErrorKind::Gone),
            (libc::ENOMEM, DriveErrorKind::Other),
            (libc::EINVAL, DriveErrorKind::Other),
            (libc::ENOLINK, DriveErrorKind::Other),
        ];
        for (errno, expected) in cases {
            let error = count(-errno).unwrap_err();
            assert_eq!(kind(&error), expected, "{error}");
            let of_flush = flush_kind(&error);
            assert_ne!(
                of_flush,
                DriveErrorKind::Media,
                "a flush is not about single blocks"
            );
        }
        assert_eq!(count(4096).unwrap(), 4096);
    }
}
