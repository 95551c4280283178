//! The progress of a job, as it runs.

use crate::control::Runtime;
use base::Time;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A rate is of at least so long.
const RATE_OVER: Duration = Duration::from_millis(500);

/// How far a job is; read by whoever asks, written by the job.
pub struct Progress {
    runtime: Arc<dyn Runtime>,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    at: At,
    /// When the rate was last looked at, and how far it was then.
    seen: (Time, u64),
}

/// How far a job is, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct At {
    /// Size of the disk.
    pub size_bytes: u64,
    /// Gone through, holes included.
    pub done_bytes: u64,
    /// Written, since the job was begun or gone on with.
    pub data_bytes: u64,
    /// Gone through in a second, of late.
    pub bytes_per_s: u64,
}

impl Progress {
    /// Of a job that has not begun.
    pub(super) fn new(runtime: Arc<dyn Runtime>) -> Self {
        let now = Now {
            at: At::default(),
            seen: (runtime.now(), 0),
        };
        Progress {
            runtime,
            now: Mutex::new(now),
        }
    }

    // Whoever panicked with this lock held has left whole numbers behind.
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It goes through a disk of `size_bytes`, from `done_bytes` on.
    pub fn begin(&self, done_bytes: u64, size_bytes: u64) {
        let mut now = self.now();
        now.at.size_bytes = size_bytes;
        now.at.done_bytes = done_bytes;
        now.at.bytes_per_s = 0;
        now.seen = (self.runtime.now(), done_bytes);
    }

    /// It has gone through `len` bytes more, with so much data.
    pub fn advance(&self, len: u64, data_bytes: u64) {
        let mut now = self.now();
        now.at.done_bytes += len;
        now.at.data_bytes += data_bytes;
        let took = self.runtime.now().since(now.seen.0);
        if took >= RATE_OVER {
            let fresh = ((now.at.done_bytes - now.seen.1) as f64 / took.as_secs_f64()) as u64;
            now.at.bytes_per_s = match now.at.bytes_per_s {
                0 => fresh,
                before => before / 2 + fresh / 2,
            };
            now.seen = (self.runtime.now(), now.at.done_bytes);
        }
    }

    /// How far it is.
    pub fn at(&self) -> At {
        self.now().at
    }
}
