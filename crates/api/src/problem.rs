//! JSON of a request that failed.

use base::not_there;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// What programs match on.
    pub kind: ProblemKind,
    /// For people: what, where, and what can be done.
    pub message: String,
}

impl Problem {
    /// A failure of `kind`, with its message for people.
    pub fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Problem {
            kind,
            message: message.into(),
        }
    }

    /// That the request itself is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ProblemKind::Invalid, message)
    }

    /// As [`not_there`] says it.
    pub fn not_there(what: &str, list: &str) -> Self {
        Self::new(ProblemKind::NotFound, not_there(what, list))
    }
}

/// Kinds of failure. Each has one HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// 400: the request itself is wrong.
    Invalid,
    /// 403: the request names a host that isn't this one, or is of a user who may not ask.
    Forbidden,
    /// 404: no such thing.
    NotFound,
    /// 405: the resource doesn't do that.
    MethodNotAllowed,
    /// 409: there is such a thing already.
    Exists,
    /// 409: it is in use.
    Busy,
    /// 413: the body is too large.
    TooLarge,
    /// 415: the body is not said to be JSON.
    MediaType,
    /// 507: the pool has too few free pages.
    Full,
    /// 503: the pool has failed, or the array is stopping.
    Unavailable,
    /// 504: something has not answered in time. A change may still take place.
    Overdue,
    /// 500: a drive or a file failed underneath, or a bug.
    Internal,
}
