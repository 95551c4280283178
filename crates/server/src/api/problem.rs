//! Turns failures into JSON with the right HTTP status, also those of request bodies.

use crate::array::{ArrayError, ArrayErrorKind};
use api::{Problem, ProblemKind};
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// A body has so long to come.
const BODY_TIME: Duration = Duration::from_secs(10);

/// A request that is refused: its [`Problem`], with the HTTP status of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) Problem);

impl Refusal {
    pub(crate) fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Refusal(Problem::new(kind, message))
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Refusal(Problem::invalid(message))
    }

    pub(crate) fn not_there(what: &str, list: &str) -> Self {
        Refusal(Problem::not_there(what, list))
    }
}

fn status(kind: ProblemKind) -> StatusCode {
    match kind {
        ProblemKind::Invalid => StatusCode::BAD_REQUEST,
        ProblemKind::Forbidden => StatusCode::FORBIDDEN,
        ProblemKind::NotFound => StatusCode::NOT_FOUND,
        ProblemKind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ProblemKind::Exists | ProblemKind::Busy => StatusCode::CONFLICT,
        ProblemKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ProblemKind::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ProblemKind::Full => StatusCode::INSUFFICIENT_STORAGE,
        ProblemKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ProblemKind::Overdue => StatusCode::GATEWAY_TIMEOUT,
        ProblemKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (status(self.0.kind), Json(self.0)).into_response()
    }
}

impl From<ArrayError> for Refusal {
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
        Refusal::new(kind, error.context)
    }
}

/// What comes of reading a body, within its time.
pub(super) async fn in_time<T>(reading: impl Future<Output = T>) -> Result<T, Refusal> {
    let read = tokio::time::timeout(BODY_TIME, reading).await;
    read.map_err(|_| {
        let waited = BODY_TIME.as_secs();
        Refusal::invalid(format!("the body has not come within {waited} s"))
    })
}

/// A JSON body; one that can't be taken is a [`Refusal`] that says where and why.
///
/// Invariant: the JSON has the shape of `T`'s own JSON. Serde would take a list of values for an
/// object, too.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Serialize> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        if !is_json(request.headers()) {
            return Err(Refusal::new(
                ProblemKind::MediaType,
                "the body has to be JSON, with content-type: application/json",
            ));
        }
        let bytes = in_time(Bytes::from_request(request, state)).await?;
        let bytes = bytes.map_err(|error| match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                Refusal::new(ProblemKind::TooLarge, "the body is too large")
            }
            _ => Refusal::invalid(format!("the body: {}", error.body_text())),
        })?;
        body(&bytes).map(Body)
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE);
    let media_type = media_type.and_then(|value| value.to_str().ok());
    let essence = media_type.and_then(|text| text.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

fn body<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Result<T, Refusal> {
    let wrong = |error: JsonRejection| Refusal::invalid(error.body_text());
    let Json(body) = Json::<T>::from_bytes(bytes).map_err(wrong)?;
    let Json(found) = Json::<Value>::from_bytes(bytes).map_err(wrong)?;
    let meant = serde_json::to_value(&body).map_err(|error| {
        let message = format!("a bug: the body can't be written as JSON: {error}");
        Refusal::new(ProblemKind::Internal, message)
    })?;
    match odd_shape("the body", &found, &meant) {
        None => Ok(body),
        Some(odd) => Err(Refusal::invalid(odd)),
    }
}

/// Where `found` is of another kind than `meant`, and how.
fn odd_shape(place: &str, found: &Value, meant: &Value) -> Option<String> {
    match (found, meant) {
        (Value::Object(found), Value::Object(meant)) => found.iter().find_map(|(key, found)| {
            // What is as by default may not be written.
            let meant = meant.get(key)?;
            odd_shape(&format!("{place}, {key}"), found, meant)
        }),
        (Value::Array(found), Value::Array(meant)) => {
            let mut pairs = found.iter().zip(meant).enumerate();
            pairs.find_map(|(index, (found, meant))| {
                odd_shape(&format!("{place}[{index}]"), found, meant)
            })
        }
        (found, meant) if kind(found) == kind(meant) => None,
        (found, meant) => Some(format!(
            "{place}: found {}; allowed: {}",
            kind(found),
            kind(meant)
        )),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A path parameter; one of the wrong shape is a [`Refusal`] of kind `not_found`.
pub(crate) struct Segment<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Segment<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let path = axum::extract::Path::from_request_parts(parts, state).await;
        path.map(|axum::extract::Path(value)| Segment(value))
            .map_err(|error: PathRejection| {
                Refusal::new(
                    ProblemKind::NotFound,
                    format!("{}: {}", parts.uri.path(), error.body_text()),
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{ExportCreate, GroupAdd, HostCreate, VolumeCreate};

    fn refused<T: DeserializeOwned + Serialize>(text: &str) -> String {
        let problem = body::<T>(text.as_bytes()).err().unwrap();
        assert_eq!(problem.0.kind, ProblemKind::Invalid);
        problem.0.message
    }

    #[test]
    fn a_list_is_no_object_wherever_it_stands() {
        assert_eq!(
            refused::<HostCreate>(r#"["h", ["iqn.2026-11.dev.ashlar:h"]]"#),
            "the body: found a list; allowed: an object"
        );
        assert_eq!(
            refused::<GroupAdd>(r#"{"drives": [{"name": "d"}, ["d"]]}"#),
            "the body, drives[1]: found a list; allowed: an object"
        );
        assert_eq!(
            refused::<HostCreate>(r#"{"name": "h", "initiators": [], "chap": ["a", "b"]}"#),
            "the body, chap: found a list; allowed: an object"
        );
        assert_eq!(
            refused::<VolumeCreate>(
                r#"{"name": "v", "pool": "p", "size_bytes": 512, "provisioning": {"thin": null}}"#
            ),
            "the body, provisioning: found an object; allowed: text"
        );
    }

    #[test]
    fn what_is_meant_is_taken() {
        let create = r#"{"target": "t", "volumes": ["v"], "initiators": "any", "chap": null}"#;
        let create: ExportCreate = body(create.as_bytes()).unwrap();
        assert_eq!(create.volumes, ["v"]);
        let group = r#"{"drives": [{"name": "d", "size_bytes": null}]}"#;
        assert!(body::<GroupAdd>(group.as_bytes()).is_ok());
    }

    #[test]
    fn other_failures_say_where() {
        let wrong = refused::<VolumeCreate>(r#"{"name": "v", "pool": "p", "size_bytes": "x"}"#);
        assert!(wrong.contains("size_bytes"), "{wrong}");
        let wrong = refused::<VolumeCreate>(r#"{"name": "v", "unknown": 1}"#);
        assert!(wrong.contains("unknown"), "{wrong}");
        refused::<VolumeCreate>("{");
    }
}
