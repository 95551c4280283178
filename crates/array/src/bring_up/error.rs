//! What keeps an array from starting.

use crate::error::ArrayError;
use crate::openings::{OpeningError, OpeningErrorKind};

/// What callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartErrorKind {
    /// A record can't be used.
    Record,
    /// A drive is missing, foreign, in use, too small or not empty.
    Drive,
    /// A pool can't be opened or made.
    Pool,
    /// A shard has stopped, or the machine does not give what is needed.
    Machine,
    /// A volume can't be made as the site file says.
    Volume,
    /// An export can't be served.
    Export,
}

/// A start that failed: what, where, and what can be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{context}")]
pub struct StartError {
    /// What callers match on.
    pub kind: StartErrorKind,
    /// For people; one line for each thing that is wrong.
    pub context: String,
}

impl StartError {
    pub(super) fn new(kind: StartErrorKind, context: impl Into<String>) -> Self {
        StartError {
            kind,
            context: context.into(),
        }
    }

    /// A record that can't be read or written.
    pub(super) fn record(context: String) -> Self {
        Self::new(StartErrorKind::Record, context)
    }
}

impl From<ArrayError> for StartError {
    fn from(error: ArrayError) -> Self {
        Self::new(StartErrorKind::Pool, error.context)
    }
}

impl From<OpeningError> for StartError {
    fn from(error: OpeningError) -> Self {
        let kind = match error.kind {
            OpeningErrorKind::Record => StartErrorKind::Record,
            OpeningErrorKind::Drive => StartErrorKind::Drive,
            OpeningErrorKind::Pool => StartErrorKind::Pool,
            OpeningErrorKind::Machine => StartErrorKind::Machine,
        };
        Self::new(kind, error.context)
    }
}
