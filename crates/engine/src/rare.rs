//! Names of rare paths and of planted bugs.
//!
//! Invariant: every name is used in the code at least once, and the simulator's
//! fixed seeds reach every mark and find every bug (`ashlar-sim`, `make sim`).

/// Paths that are taken seldom, and that the simulator must reach.
pub const MARKS: &[&str] = &[];

/// Bugs that the simulated world can plant; each breaks a rule that the
/// simulator checks.
pub const BUGS: &[&str] = &[];
