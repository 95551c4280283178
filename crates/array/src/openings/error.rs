//! What keeps pools from being opened, made or destroyed.

use crate::error::{ArrayError, ArrayErrorKind};
use crate::pool::opening::NotOpened;
use crate::shard::ShardGone;

/// What callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpeningErrorKind {
    /// A record can't be used.
    Record,
    /// A drive is missing, foreign, in use, too small or not empty.
    Drive,
    /// A pool can't be opened or made.
    Pool,
    /// A shard has stopped, or the machine does not give what is needed.
    Machine,
}

/// Pools that can't be opened, made or destroyed: what, where, and what can be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{context}")]
pub struct OpeningError {
    /// What callers match on.
    pub kind: OpeningErrorKind,
    /// For people; one line for each thing that is wrong.
    pub context: String,
}

impl OpeningError {
    pub fn new(kind: OpeningErrorKind, context: impl Into<String>) -> Self {
        OpeningError {
            kind,
            context: context.into(),
        }
    }

    /// A record that can't be written.
    pub(super) fn record(context: String) -> Self {
        Self::new(OpeningErrorKind::Record, context)
    }

    pub(super) fn pool(context: String) -> Self {
        Self::new(OpeningErrorKind::Pool, context)
    }

    /// Why a pool can't be made.
    pub(super) fn not_made(pool: &str, why: NotOpened) -> Self {
        match why {
            NotOpened::Lane(error) => Self::pool(format!("pool {pool}: {error}")),
            NotOpened::Shard(gone) => gone.into(),
        }
    }
}

impl From<ShardGone> for OpeningError {
    fn from(gone: ShardGone) -> Self {
        Self::new(OpeningErrorKind::Machine, gone.to_string())
    }
}

impl From<ArrayError> for OpeningError {
    fn from(error: ArrayError) -> Self {
        Self::pool(error.context)
    }
}

impl From<OpeningError> for ArrayError {
    fn from(error: OpeningError) -> Self {
        let kind = match error.kind {
            OpeningErrorKind::Drive | OpeningErrorKind::Pool => ArrayErrorKind::Invalid,
            OpeningErrorKind::Record | OpeningErrorKind::Machine => ArrayErrorKind::Internal,
        };
        ArrayError::new(kind, error.context)
    }
}
