//! JSON of events.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something that people should know of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Name of the pool that the event is about.
    pub pool: String,
    /// Rises by one with every event of the pool since its opening, that is since the
    /// server was started.
    pub sequence: u64,
    /// The server was started again since it happened.
    pub before_start: bool,
    /// When it happened, in seconds since 1970.
    pub at_unix_s: u64,
    /// What it is about: `drive_failed`, `drive_suspect`, `drive_healthy`, `drive_missing`,
    /// `drive_back`, `drive_warning`, `drive_warning_over`, `spare_taken`, `rebuild`,
    /// `block_mended`, `block_lost`, `copy_moved`, `scrub`, `group`, `schedule`, `move`, `trash`,
    /// `space`, `space_freed`, `trouble`, `pool_stopped`.
    pub kind: String,
    /// The event in words, for people; the wording may change.
    pub text: String,
}
