//! The clock of a real run.

use base::Time;
use std::time::{Duration, Instant};

/// How far ahead the start of a run lies, so that no thread is late for it.
const LEAD: Duration = Duration::from_millis(20);

/// Time since the start of the run, the same for all threads.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that is at zero in a moment.
    pub fn start() -> Clock {
        Clock {
            origin: Instant::now() + LEAD,
        }
    }

    /// Time since the start; zero before it.
    pub fn now(&self) -> Time {
        Time(0) + Instant::now().saturating_duration_since(self.origin)
    }
}
