//! Events of pools as the array tells of them, puts them on record, and what they come to.
//!
//! - `telling`: from a lane's words to the array's; `recorded`: which of them are on record;
//!   `recorder`: puts them there; `losses`: which pools have lost blocks.

mod losses;
mod recorded;
mod recorder;
mod telling;

pub use losses::{Loss, Losses};
pub use recorder::{EventRecord, Recorder};
pub(super) use telling::{ClockReading, events_on};

use serde::{Deserialize, Serialize};

/// The kind of event that goes first: thousands may come of one bad drive, and they must
/// not hide what became of it.
pub const ROUTINE: &str = "block_mended";

/// An event of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolEvent {
    /// Name that the pool had when it happened.
    pub pool: String,
    /// The pool for life; empty in records of before this field.
    #[serde(default)]
    pub pool_uuid: String,
    /// The lane of the pool that it is of.
    #[serde(default)]
    pub lane: u16,
    /// Rises by one with every event of the pool, or of a lane of it, since it was opened.
    pub sequence: u64,
    /// When it happened, in microseconds since 1970.
    pub at_unix_us: u64,
    /// What it is about, in a word.
    pub kind: String,
    /// The event in words, for people; it may name drives and lanes.
    pub text: String,
    /// Blocks that it says are lost; of a scrub that has ended, all that it found lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_blocks: Option<u64>,
    /// The server was started again since.
    #[serde(skip)]
    pub before_start: bool,
}
