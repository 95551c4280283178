//! The errors that requests to the array return.

use crate::shard::{ExportError, ExportErrorKind, ShardGone};
use engine::{PoolError, PoolErrorKind};

/// What callers act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayErrorKind {
    /// The request itself can't be met.
    Invalid,
    /// The array has nothing of that name.
    NotFound,
    /// There is such a thing already.
    Exists,
    /// It is in use.
    Busy,
    /// The pool has too few free pages.
    Full,
    /// The pool has failed, or the array is stopping.
    Unavailable,
    /// A drive or a file failed underneath, or a bug.
    Internal,
}

/// A failed request, naming the thing and what can be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{context}")]
pub struct ArrayError {
    /// What callers match on.
    pub kind: ArrayErrorKind,
    /// What failed and what can be done, for people; never matched on.
    pub context: String,
}

impl ArrayError {
    pub fn new(kind: ArrayErrorKind, context: String) -> Self {
        ArrayError { kind, context }
    }

    /// That there is no such thing; `list` is the command that lists those which are there.
    pub fn not_there(what: &str, list: &str) -> Self {
        Self::new(ArrayErrorKind::NotFound, base::not_there(what, list))
    }

    /// The same, of a drive that a user named.
    pub fn of_drive(self, name: &str) -> Self {
        Self::new(self.kind, format!("drive {name}: {}", self.context))
    }

    pub fn no_pool(name: &str) -> Self {
        Self::new(ArrayErrorKind::NotFound, format!("there is no pool {name}"))
    }

    pub fn no_export(target: &str) -> Self {
        Self::new(
            ArrayErrorKind::NotFound,
            format!("there is no target {target}"),
        )
    }

    pub fn no_volume(name: &str) -> Self {
        Self::new(
            ArrayErrorKind::NotFound,
            format!("there is no volume {name}"),
        )
    }
}

impl From<ShardGone> for ArrayError {
    fn from(gone: ShardGone) -> Self {
        Self::new(
            ArrayErrorKind::Unavailable,
            format!("{gone}; see the server's log"),
        )
    }
}

impl From<PoolError> for ArrayError {
    fn from(error: PoolError) -> Self {
        let kind = match error.kind {
            PoolErrorKind::Invalid | PoolErrorKind::TooManyPages => ArrayErrorKind::Invalid,
            PoolErrorKind::NotFound => ArrayErrorKind::NotFound,
            PoolErrorKind::Exists => ArrayErrorKind::Exists,
            PoolErrorKind::Busy | PoolErrorKind::InUse => ArrayErrorKind::Busy,
            PoolErrorKind::Full => ArrayErrorKind::Full,
            PoolErrorKind::Failed => ArrayErrorKind::Unavailable,
            // What is wrong with a drive that was given.
            PoolErrorKind::TooSmall
            | PoolErrorKind::Version
            | PoolErrorKind::Foreign
            | PoolErrorKind::Unlabelled
            | PoolErrorKind::Stale
            | PoolErrorKind::Missing => ArrayErrorKind::Invalid,
            PoolErrorKind::Corrupt | PoolErrorKind::Drive => ArrayErrorKind::Internal,
        };
        Self::new(kind, error.context)
    }
}

impl From<ExportError> for ArrayError {
    fn from(error: ExportError) -> Self {
        let kind = match error.kind {
            ExportErrorKind::Exists => ArrayErrorKind::Exists,
            ExportErrorKind::Invalid => ArrayErrorKind::Invalid,
            ExportErrorKind::NotFound => ArrayErrorKind::NotFound,
        };
        Self::new(kind, error.context)
    }
}
