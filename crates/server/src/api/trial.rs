//! Requests that only ask whether a change is possible, and change nothing.
//!
//! A client sends such a request before it asks its user to confirm, so that no user confirms an
//! impossible deletion.

use super::types::Problem;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::Deserialize;
use utoipa::IntoParams;

/// Whether a request is a trial.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Trial {
    /// Nothing is changed: the answer says whether it could be done, as far as that is known before.
    #[serde(default)]
    check: bool,
}

/// [`Trial`] of a request.
pub(super) struct Tried(Result<Query<Trial>, QueryRejection>);

impl<S: Send + Sync> FromRequestParts<S> for Tried {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        Ok(Tried(Query::from_request_parts(parts, state).await))
    }
}

impl Tried {
    /// Whether nothing is to be changed.
    ///
    /// # Errors
    /// The query is none.
    pub(super) fn only_check(self) -> Result<bool, Problem> {
        match self.0 {
            Ok(Query(trial)) => Ok(trial.check),
            Err(wrong) => Err(Problem::invalid(wrong.body_text())),
        }
    }
}
