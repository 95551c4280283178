//! Failures as JSON with the right HTTP status, and request bodies whose
//! failures are such JSON too.

use super::types::{Problem, ProblemKind};
use crate::array::{ArrayError, ArrayErrorKind};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// A body has so long to come.
const BODY_TIME: Duration = Duration::from_secs(10);

impl Problem {
    pub(crate) fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Problem {
            kind,
            message: message.into(),
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ProblemKind::Invalid, message)
    }

    fn status(&self) -> StatusCode {
        match self.kind {
            ProblemKind::Invalid => StatusCode::BAD_REQUEST,
            ProblemKind::Forbidden => StatusCode::FORBIDDEN,
            ProblemKind::NotFound => StatusCode::NOT_FOUND,
            ProblemKind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            ProblemKind::Exists | ProblemKind::Busy => StatusCode::CONFLICT,
            ProblemKind::Full => StatusCode::INSUFFICIENT_STORAGE,
            ProblemKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ProblemKind::Overdue => StatusCode::GATEWAY_TIMEOUT,
            ProblemKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.status(), Json(self)).into_response()
    }
}

impl From<ArrayError> for Problem {
    fn from(error: ArrayError) -> Self {
        let kind = match error.kind {
            ArrayErrorKind::Invalid => ProblemKind::Invalid,
            ArrayErrorKind::NotFound => ProblemKind::NotFound,
            ArrayErrorKind::Exists => ProblemKind::Exists,
            ArrayErrorKind::Busy => ProblemKind::Busy,
            ArrayErrorKind::Full => ProblemKind::Full,
            ArrayErrorKind::Unavailable => ProblemKind::Unavailable,
            ArrayErrorKind::Internal => ProblemKind::Internal,
        };
        if kind == ProblemKind::Internal {
            tracing::error!("{}", error.context);
        }
        Problem::new(kind, error.context)
    }
}

/// What comes of reading a body, within its time.
pub(super) async fn in_time<T>(reading: impl Future<Output = T>) -> Result<T, Problem> {
    let read = tokio::time::timeout(BODY_TIME, reading).await;
    read.map_err(|_| {
        let waited = BODY_TIME.as_secs();
        Problem::invalid(format!("the body has not come within {waited} s"))
    })
}

/// A JSON body; one that can't be taken is a [`Problem`] of kind `invalid`.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match in_time(Json::from_request(request, state)).await? {
            Ok(Json(body)) => Ok(Body(body)),
            Err(JsonRejection::MissingJsonContentType(_)) => Err(Problem::invalid(
                "the body has to be JSON, with content-type: application/json",
            )),
            Err(other) => Err(Problem::invalid(other.body_text())),
        }
    }
}

/// A path parameter; one of the wrong shape is a [`Problem`] of kind `not_found`.
pub(crate) struct Segment<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Segment<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = axum::extract::Path::from_request_parts(parts, state).await;
        path.map(|axum::extract::Path(value)| Segment(value))
            .map_err(|error: PathRejection| {
                Problem::new(
                    ProblemKind::NotFound,
                    format!("{}: {}", parts.uri.path(), error.body_text()),
                )
            })
    }
}
