//! Names of rare paths and of planted bugs.
//!
//! Invariant: every name is used in the code at least once, and the simulator's
//! fixed seeds reach every mark and find every bug (`ashlar-sim`, `make sim`).

/// Paths that are taken seldom, and that the simulator must reach.
pub const MARKS: &[&str] = &[
    "append joins a batch",
    "block given up",
    "block mended",
    "blocks read ahead",
    "degraded start",
    "destage outlives a drive",
    "drive expelled",
    "drive given up",
    "drive suspect",
    "integrity block doubted",
    "integrity block evicted",
    "integrity block lost",
    "integrity copy mended",
    "log copy moved",
    "log copy rewritten in recovery",
    "log full",
    "log wraps",
    "metadata copy moved",
    "read around a suspect drive",
    "read-ahead overtaken by a write",
    "rebuild ends",
    "rebuild onto a drive that dies",
    "rebuild resumed",
    "replay after a crash",
    "scrub ends",
    "spare taken",
    "stripe put together to be changed",
    "suspect drive healthy again",
    "whole stripes go around the log",
    "zone taken into use",
];

/// Bugs that the simulated world can plant; each breaks a rule that the
/// simulator checks.
pub const BUGS: &[&str] = &[
    "ack before the second log copy",
    "bypass over a live intent",
    "destage not flushed",
    "destage skips a copy",
    "integrity read from one copy",
    "integrity slot not alternated",
    "intents not redone",
    "log copies not made equal",
    "log incarnation not checked",
    "log trimmed before it is durable",
    "log trimmed before the sums are flushed",
    "loss not on labels before ack",
    "map record before data",
    "no intent before a partial stripe",
    "one slot of sums believed",
    "page not zeroed around the data",
    "parity from stale data",
    "read-ahead not invalidated by a write",
    "rebuild skips the last stripe of a zone",
    "sums not verified on reads",
];
