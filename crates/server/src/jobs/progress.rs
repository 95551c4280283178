//! The progress of a job, as it runs.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A rate is of at least so long.
const RATE_OVER: Duration = Duration::from_millis(500);

/// How far a job is; read by whoever asks, written by the job.
#[derive(Debug)]
pub(crate) struct Progress {
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    at: At,
    /// When the rate was last looked at, and how far it was then.
    seen: (Instant, u64),
}

/// How far a job is, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct At {
    /// Size of the disk.
    pub(crate) size_bytes: u64,
    /// Gone through, holes included.
    pub(crate) done_bytes: u64,
    /// Written, since the job was begun or gone on with.
    pub(crate) data_bytes: u64,
    /// Gone through in a second, of late.
    pub(crate) bytes_per_s: u64,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let now = Now {
            at: At::default(),
            seen: (Instant::now(), 0),
        };
        Progress {
            now: Mutex::new(now),
        }
    }

    // Whoever panicked with this lock held has left whole numbers behind.
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It goes through a disk of `size_bytes`, from `done_bytes` on.
    pub(crate) fn begin(&self, done_bytes: u64, size_bytes: u64) {
        let mut now = self.now();
        now.at.size_bytes = size_bytes;
        now.at.done_bytes = done_bytes;
        now.at.bytes_per_s = 0;
        now.seen = (Instant::now(), done_bytes);
    }

    /// It has gone through `len` bytes more, with so much data.
    pub(crate) fn advance(&self, len: u64, data_bytes: u64) {
        let mut now = self.now();
        now.at.done_bytes += len;
        now.at.data_bytes += data_bytes;
        let took = now.seen.0.elapsed();
        if took >= RATE_OVER {
            let fresh = ((now.at.done_bytes - now.seen.1) as f64 / took.as_secs_f64()) as u64;
            now.at.bytes_per_s = match now.at.bytes_per_s {
                0 => fresh,
                before => before / 2 + fresh / 2,
            };
            now.seen = (Instant::now(), now.at.done_bytes);
        }
    }

    /// How far it is.
    pub(crate) fn at(&self) -> At {
        self.now().at
    }
}
