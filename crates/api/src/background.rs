//! JSON of work in the background, and of its limits.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether work in the background makes way for commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// It rests while commands come in.
    Yield,
    /// It takes what it can get.
    Full,
}

/// Limits of work in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rates {
    /// Bytes a second that a rebuild writes at most; none is no limit.
    pub rebuild_bytes_per_s: Option<u64>,
    /// Bytes of drives a second that a scrub looks through at most; none is no limit.
    pub scrub_bytes_per_s: Option<u64>,
    /// Hours that a rebuild takes at most, while commands come in; none is no bound.
    pub rebuild_hours: Option<u32>,
    /// Days in which a scrub that begins by itself goes over the pool; none lets no scrub begin by
    /// itself.
    pub scrub_days: Option<u32>,
    /// Whether it makes way for commands.
    pub background: Background,
}

/// New limits of work in the background; what is absent stays as it is. They
/// stay after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RatesChange {
    /// Bytes a second that a rebuild writes at most; 0 is no limit.
    #[serde(default)]
    pub rebuild_bytes_per_s: Option<u64>,
    /// Bytes of drives a second that a scrub looks through at most; 0 is no limit.
    #[serde(default)]
    pub scrub_bytes_per_s: Option<u64>,
    /// Hours that a rebuild takes at most, while commands come in; 0 is no bound.
    #[serde(default)]
    pub rebuild_hours: Option<u32>,
    /// Days in which a scrub that begins by itself goes over the pool; 0 lets no scrub begin by itself.
    #[serde(default)]
    pub scrub_days: Option<u32>,
    /// Whether it makes way for commands.
    #[serde(default)]
    pub background: Option<Background>,
}

/// Work in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Task {
    /// The kind of work: rebuild, scrub or move.
    pub kind: TaskKind,
    /// The drive, or the pool.
    pub subject: String,
    /// Bytes of drives done.
    pub done_bytes: u64,
    /// Bytes of drives in all.
    pub total_bytes: u64,
    /// Bytes a second so far.
    pub bytes_per_s: u64,
    /// Seconds left at that rate, when that can be said.
    pub left_s: Option<u64>,
    /// Seconds within which it ends at the latest, whatever commands come in, when there is such a
    /// bound.
    pub due_s: Option<u64>,
}

/// Kinds of work in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// A drive gets what it should hold.
    Rebuild,
    /// Everything is read and compared.
    Scrub,
    /// A group gets another level, or is emptied to leave the pool.
    Move,
}
