//! Tries operations of a drive again that the kernel refused for a passing reason.
//!
//! A lack of memory, or something in the way, says nothing of the drive. One refusal must not put
//! it out of use.
//!
//! Invariants:
//! - Pauses grow, and end: together they are shorter than the time after which an operation
//!   in flight puts its drive out of use (`engine::pool::maintenance::health::Limits::hung`).
//! - Nothing is tried again whose error may stand for writes of before: the kernel tells that
//!   once, and the second try would end well without them.

use super::errno;
use std::io;
use std::time::Duration;

/// The first pause; each one after it is twice as long, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(512);

/// All pauses of an operation together are no longer.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is left of the patience with one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retries {
    pause: Duration,
    left: Duration,
}

impl Retries {
    /// For an operation that did nothing if it failed.
    pub(super) fn some() -> Self {
        Retries {
            pause: FIRST_PAUSE,
            left: PATIENCE,
        }
    }

    /// For an operation whose error may be about others.
    pub(super) fn none() -> Self {
        Retries {
            pause: FIRST_PAUSE,
            left: Duration::ZERO,
        }
    }

    /// How long to wait before the operation is tried again; `None` when its `error` is
    /// final.
    pub(super) fn pause(&mut self, error: &io::Error) -> Option<Duration> {
        let pause = self.pause;
        if !errno::is_transient(error) || pause > self.left {
            return None;
        }
        self.left -= pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(errno: i32) -> io::Error {
        io::Error::from_raw_os_error(errno)
    }

    #[test]
    fn pauses_grow_and_end_before_the_drive_counts_as_hung() {
        for errno in [
            libc::ENOMEM,
            libc::EAGAIN,
            libc::EBUSY,
            libc::EINTR,
            libc::ENOBUFS,
        ] {
            let mut retries = Retries::some();
            let pauses: Vec<Duration> =
                std::iter::from_fn(|| retries.pause(&error(errno))).collect();
            assert!(pauses.len() > 8, "{pauses:?}");
            assert!(pauses.is_sorted(), "{pauses:?}");
            let all: Duration = pauses.iter().sum();
            assert!(all > Duration::from_secs(2) && all <= PATIENCE, "{all:?}");
        }
    }

    #[test]
    fn what_is_about_the_drive_is_final() {
        for errno in [libc::EIO, libc::ENXIO, libc::ENOSPC, libc::EINVAL] {
            assert_eq!(Retries::some().pause(&error(errno)), None);
        }
        assert_eq!(Retries::none().pause(&error(libc::ENOMEM)), None);
    }
}
