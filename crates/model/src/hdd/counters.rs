//! Counters of a drive's work, for utilisation and the like.

use std::time::Duration;

/// Counts and times since the beginning. Times are of the arm unless they say
/// otherwise; they are added when the arm begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Commands that hosts sent so far.
    pub arrived: u64,
    /// Commands that have been answered so far.
    pub completed: u64,
    /// Reads that the buffer answered, the medium's help while reading ahead
    /// included.
    pub hits: u64,
    /// Reads and writes that the arm sought for, destages among them.
    pub served: u64,
    /// Writes of the buffer that went to the medium.
    pub destaged: u64,
    /// Commands that the arm was too late for, by a revolution.
    pub missed: u64,
    /// Seeking and switching heads.
    pub seek: Duration,
    /// Waiting for the first byte to come round.
    pub rotation: Duration,
    /// Reading or writing on the medium.
    pub transfer: Duration,
    /// Time that host commands waited for the arm, after the controller's overhead.
    pub queued: Duration,
}

impl Counters {
    /// All time of the arm. Over elapsed time it is the drive's utilisation.
    pub fn busy(&self) -> Duration {
        self.seek + self.rotation + self.transfer
    }
}
