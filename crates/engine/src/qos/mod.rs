//! Limits of volumes: how many I/Os and bytes a second hosts get, at most.
//!
//! [`Limits`] is what a volume is limited to, [`Account`] lets commands go that keep to it. One
//! account counts for a volume, whichever shard and target a command comes by.
//!
//! Invariants:
//! - Commands go in the order in which they came. A write that a host repeats by another path goes
//!   after the first one, and before all that the host writes next.
//! - A command that nobody waits for any more leaves the queue, and takes nothing of the limit.
//! - No command waits that would have to for longer than [`HOLD_MAX`] by one of the limits: it is
//!   refused, so that the queue of a volume is bounded in time.
//! - Another limit counts at once, also for what waits. What would wait too long then is refused.

mod account;
mod limits;
mod pace;

pub use account::{Account, Counts, Refused};
pub use limits::{
    BURST_S_MAX, BYTES_MAX, BYTES_MIN, IO_BYTES_MAX, IO_BYTES_MIN, IOS_MAX, Limits, Rate,
};

use std::time::Duration;

/// A command that would wait longer is refused. Linux gives a command 30 s and Windows 60 s before
/// they abort it, and heartbeats of clusters some seconds.
pub const HOLD_MAX: Duration = Duration::from_secs(4);

/// A volume that was idle may be ahead of its limit by so long. It makes up for timers that wake
/// late, so that the limit is reached.
const SLACK: Duration = Duration::from_millis(10);
