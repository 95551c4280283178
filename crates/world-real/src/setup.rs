//! Asks the kernel for an io_uring, and explains a refusal.

use io_uring::IoUring;
use std::fmt;
use std::io;

/// Operations that can be queued for one submission. More wait in the ring's
/// own backlog.
const SUBMISSION_ENTRIES: u32 = 256;

/// Operations that the kernel works on at once. The ring never has more under
/// way, so that completions cannot overflow.
const COMPLETION_ENTRIES: u32 = 4096;

/// Why a real world could not start, as far as callers act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartErrorKind {
    /// The kernel has no io_uring (before Linux 5.6, or built without).
    Unsupported,
    /// The kernel has io_uring, and this process may not use it.
    Denied,
    /// A limit of the process or the machine is reached: memory, locked memory
    /// or open files.
    Limit,
    /// Anything else the kernel said.
    Other,
}

/// A real world that could not start: what was asked for, what the kernel said
/// and what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{asked}: {said}{}{advice}", if advice.is_empty() { "" } else { "; " })]
pub struct StartError {
    /// What callers match on.
    pub kind: StartErrorKind,
    asked: &'static str,
    said: String,
    advice: &'static str,
}

impl StartError {
    pub(super) fn event_loop(error: &io::Error) -> Self {
        Self::of("can't start an event loop", error)
    }

    pub(super) fn entropy(error: &io::Error) -> Self {
        Self::of("can't get entropy from the kernel", error)
    }

    pub(super) fn ring(error: &io::Error) -> Self {
        Self::of("can't set up io_uring", error)
    }

    fn of(asked: &'static str, error: &io::Error) -> Self {
        let kind = match error.raw_os_error() {
            Some(libc::ENOSYS) => StartErrorKind::Unsupported,
            Some(libc::EPERM | libc::EACCES) => StartErrorKind::Denied,
            Some(libc::ENOMEM | libc::EMFILE | libc::ENFILE) => StartErrorKind::Limit,
            _ => StartErrorKind::Other,
        };
        StartError {
            kind,
            asked,
            said: error.to_string(),
            advice: kind.advice(),
        }
    }
}

impl StartErrorKind {
    fn advice(self) -> &'static str {
        match self {
            StartErrorKind::Unsupported => "Ashlar needs Linux 5.6 or later with io_uring",
            StartErrorKind::Denied => {
                "set the sysctl kernel.io_uring_disabled to 0, and in a container \
                 allow the io_uring system calls in its seccomp profile"
            }
            StartErrorKind::Limit => {
                "raise the limits on open files (ulimit -n) and locked memory (ulimit -l)"
            }
            StartErrorKind::Other => "",
        }
    }
}

impl fmt::Display for StartErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StartErrorKind::Unsupported => "not supported by the kernel",
            StartErrorKind::Denied => "denied",
            StartErrorKind::Limit => "a limit is reached",
            StartErrorKind::Other => "refused",
        })
    }
}

/// An io_uring for this thread alone.
///
/// # Errors
/// When the kernel refuses even the plainest one.
pub(super) fn ring() -> Result<IoUring, StartError> {
    tuned().or_else(|_| plain())
}

/// Linux 6.1 and later: completions are worked off when the owning thread asks,
/// not by interrupting it.
fn tuned() -> Result<IoUring, StartError> {
    IoUring::builder()
        .dontfork()
        .setup_cqsize(COMPLETION_ENTRIES)
        .setup_submit_all()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .build(SUBMISSION_ENTRIES)
        .map_err(|e| StartError::ring(&e))
}

/// What any kernel with io_uring gives, however little memory it may lock.
pub(super) fn plain() -> Result<IoUring, StartError> {
    IoUring::builder()
        .dontfork()
        .setup_clamp()
        .setup_cqsize(COMPLETION_ENTRIES)
        .build(SUBMISSION_ENTRIES)
        .map_err(|e| StartError::ring(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do() {
        let cases = [
            (libc::ENOSYS, StartErrorKind::Unsupported, "Linux 5.6"),
            (
                libc::EPERM,
                StartErrorKind::Denied,
                "kernel.io_uring_disabled",
            ),
            (libc::ENOMEM, StartErrorKind::Limit, "ulimit -l"),
            (libc::EMFILE, StartErrorKind::Limit, "ulimit -n"),
            (libc::EINVAL, StartErrorKind::Other, "Invalid argument"),
        ];
        for (errno, kind, advice) in cases {
            let error = StartError::ring(&io::Error::from_raw_os_error(errno));
            assert_eq!(error.kind, kind);
            let text = error.to_string();
            assert!(text.starts_with("can't set up io_uring: "), "{text}");
            assert!(text.contains(advice), "{text}");
        }
    }
}
