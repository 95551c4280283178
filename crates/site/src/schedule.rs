//! Rules for schedules of snapshots.

use std::time::Duration;

/// Schedules of a volume or a consistency group, at most.
pub const SCHEDULES_MAX: u64 = 8;
/// The most snapshots that one keeps.
pub const KEEP_MAX: u64 = 1000;
/// Bytes of the name of a volume with schedules, at most: its snapshots are called by it.
pub const SCHEDULED_NAME_BYTES_MAX: usize = 40;

/// Snapshots that are taken by the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// From one to the next; a second or more.
    pub every: Duration,
    /// The newest so many stay.
    pub keep: u64,
}
