//! A shard: its pools, the targets homed on it, and the sessions of those.
//!
//! Invariant: all that a [`ShardState`] holds lives and dies where the shard runs; others reach
//! it by a [`ShardHandle`] only.

pub mod latency;
pub mod ledger;
mod link;
pub mod remote_volume;
pub mod session;
pub mod space_reclaim;
mod state;
mod statistics;
pub mod tally;
pub mod watch;

pub use link::{Link, ShardGone, ShardHandle, Visit};
pub use session::SessionInfo;
pub(crate) use state::close_in_time;
pub use state::{
    CLOSE_MAX, DRAIN_MAX, ExportError, ExportErrorKind, ShardState, UnitTraits, Watches,
};
pub use statistics::{Counted, CountedSession};
pub use tally::{Flow, Kind, Timing, Totals};
