//! The errors of pools.

/// What went wrong with a pool, as far as callers act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolErrorKind {
    /// The request itself can't be met (wrong count, size, name).
    Invalid,
    /// A drive has no label: it belongs to no pool.
    Unlabelled,
    /// A drive carries the label of another pool.
    Foreign,
    /// A drive of the pool is not among those given.
    Missing,
    /// A drive has an older state of the pool than the others.
    Stale,
    /// A drive is smaller than its label says, or than asked for.
    TooSmall,
    /// The pool would have more pages than there are page numbers.
    TooManyPages,
    /// A label or the metadata is of another format version.
    Version,
    /// The metadata can't be read from any copy.
    Corrupt,
    /// A volume of that name is there already.
    Exists,
    /// No volume of that name.
    NotFound,
    /// The volume is in use.
    Busy,
    /// Not enough free pages.
    Full,
    /// A drive operation failed.
    Drive,
    /// Another host has the pool open.
    InUse,
    /// The pool has stopped after losing more than its redundancy.
    Failed,
}

/// A failed pool operation, naming the pool, drive or volume.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{context}")]
pub struct PoolError {
    /// What callers match on.
    pub kind: PoolErrorKind,
    /// For people: what, where, and what can be done.
    pub context: String,
}

impl PoolError {
    pub(crate) fn new(kind: PoolErrorKind, context: impl Into<String>) -> Self {
        PoolError {
            kind,
            context: context.into(),
        }
    }
}
