//! How a copy goes: how far it is, and whether it is to go on. Whoever copies looks at it
//! after each piece; others may be on another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// How a copy goes. Clones are of the same copy.
#[derive(Clone, Debug, Default)]
pub struct Course(Arc<State>);

#[derive(Debug, Default)]
struct State {
    stopped: AtomicBool,
    done: AtomicU64,
}

impl Course {
    /// It is to end after the piece that it is at.
    pub fn stop(&self) {
        self.0.stopped.store(true, Relaxed);
    }

    /// Whether it is to go on.
    pub fn goes_on(&self) -> bool {
        !self.0.stopped.load(Relaxed)
    }

    /// Bytes that are done.
    pub fn done(&self) -> u64 {
        self.0.done.load(Relaxed)
    }

    /// So many bytes are done. Says whether to go on.
    pub fn reach(&self, done: u64) -> bool {
        self.0.done.store(done, Relaxed);
        self.goes_on()
    }
}
