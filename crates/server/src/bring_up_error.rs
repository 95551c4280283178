//! The errors that keep the server from serving.

use crate::record::RecordError;
use crate::shard::ShardGone;
use ::array::bring_up::{StartError, StartErrorKind};
use ::array::control::ArrayError;

/// What callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BringUpErrorKind {
    /// A portal or the API address can't be opened.
    Address,
    /// The data directory or a record in it can't be used.
    Data,
    /// A drive is missing, foreign, in use, too small or not empty.
    Drive,
    /// A pool can't be opened or made.
    Pool,
    /// A volume isn't what the site says and can't become it.
    Volume,
    /// An export can't be served.
    Export,
    /// The kernel doesn't give what is needed.
    System,
}

/// A bring-up that failed: what, where, and what can be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{context}")]
pub struct BringUpError {
    /// What callers match on.
    pub kind: BringUpErrorKind,
    /// For people; one line for each thing that is wrong.
    pub context: String,
}

impl BringUpError {
    pub(crate) fn new(kind: BringUpErrorKind, context: impl Into<String>) -> Self {
        BringUpError {
            kind,
            context: context.into(),
        }
    }

    pub(crate) fn address(what: &str, error: &std::io::Error, place: &str) -> Self {
        let advice = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                format!(
                    "another program (a second ashlar?) listens there; stop it or change {place}"
                )
            }
            std::io::ErrorKind::AddrNotAvailable => {
                format!("this machine has no such address; change {place}")
            }
            std::io::ErrorKind::PermissionDenied => {
                format!("ports below 1024 need privileges; change {place}")
            }
            _ => format!("change {place}"),
        };
        Self::new(
            BringUpErrorKind::Address,
            format!("{what}: {error}: {advice}"),
        )
    }
}

impl BringUpError {
    /// A Unix socket that can't be opened.
    pub(crate) fn socket(what: &str, error: &std::io::Error, place: &str) -> Self {
        let advice = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                format!("another ashlar serve listens there; stop that server, or change {place}")
            }
            std::io::ErrorKind::NotFound => {
                format!("make the directory above it, or change {place}")
            }
            std::io::ErrorKind::PermissionDenied => {
                format!("this user may not make it; change {place}")
            }
            _ => format!("change {place}"),
        };
        let context = format!("{what}: {error}: {advice}");
        Self::new(BringUpErrorKind::Address, context)
    }
}

impl From<RecordError> for BringUpError {
    fn from(error: RecordError) -> Self {
        Self::new(BringUpErrorKind::Data, error.to_string())
    }
}

impl From<ShardGone> for BringUpError {
    fn from(error: ShardGone) -> Self {
        Self::new(BringUpErrorKind::System, error.to_string())
    }
}

impl From<ArrayError> for BringUpError {
    fn from(error: ArrayError) -> Self {
        Self::new(BringUpErrorKind::Pool, error.context)
    }
}

impl From<StartError> for BringUpError {
    fn from(error: StartError) -> Self {
        let kind = match error.kind {
            StartErrorKind::Record => BringUpErrorKind::Data,
            StartErrorKind::Drive => BringUpErrorKind::Drive,
            StartErrorKind::Pool => BringUpErrorKind::Pool,
            StartErrorKind::Machine => BringUpErrorKind::System,
            StartErrorKind::Volume => BringUpErrorKind::Volume,
            StartErrorKind::Export => BringUpErrorKind::Export,
        };
        Self::new(kind, error.context)
    }
}
