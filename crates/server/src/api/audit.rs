//! The audit log of the API: a line for each request that changes something, with its user.
//!
//! Invariant: no secret is in such a line.

use super::BODY_BYTES_MAX;
use super::caller::Caller;
use super::problem;
use super::problem::Refusal;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// Characters of a body that a line has.
const SHOWN_MAX: usize = 400;

/// Passes a request on, and says in the log what came of it if it was to change something.
pub(super) async fn told(request: Request, next: Next) -> Response {
    let changes = !matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    let path = request.uri().path().to_owned();
    let query = request.uri().query().map(|query| format!("?{query}"));
    let query = query.unwrap_or_default();
    if !changes || path == "/api/v1/site/diff" {
        return next.run(request).await;
    }
    let caller = request.extensions().get::<ConnectInfo<Caller>>();
    let who = caller.map_or("somebody".to_owned(), |caller| caller.0.to_string());
    let method = request.method().clone();
    let (request, said) = match with_body(request).await {
        Ok(both) => both,
        Err(problem) => return problem.into_response(),
    };
    let response = next.run(request).await;
    let status = response.status();
    match status.is_success() {
        true => tracing::info!("{who}: {method} {path}{query}{said}: {}", status.as_u16()),
        false => tracing::warn!("{who}: {method} {path}{query}{said}: refused, {status}"),
    }
    response
}

/// A request, and what its body says. A long one, such as a site file, is not looked into.
async fn with_body(request: Request) -> Result<(Request, String), Refusal> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_none_or(|length| length == 0 || length > BODY_BYTES_MAX) {
        return Ok((request, String::new()));
    }
    let (parts, body) = request.into_parts();
    let bytes = problem::in_time(to_bytes(body, BODY_BYTES_MAX)).await?;
    let bytes = bytes.map_err(|error| Refusal::invalid(format!("can't read the body: {error}")))?;
    let said = match serde_json::from_slice(&bytes) {
        Ok(Value::Null) => String::new(),
        Ok(body) => format!(" {}", shown(body)),
        Err(_) => " (a body that is no JSON)".to_owned(),
    };
    Ok((Request::from_parts(parts, Body::from(bytes)), said))
}

/// A body as the log has it: without secrets, and not too long.
fn shown(mut body: Value) -> String {
    hide(&mut body);
    let text = body.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Takes all secrets out.
fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match key.contains("secret") || key == "text" {
                    true => *value = Value::from("…"),
                    false => hide(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(hide),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_secret_is_shown_however_deep() {
        let body = json!({
            "name": "esx1",
            "chap": { "name": "a", "secret": "x-secret-x", "mutual_secret": "x-secret-x" },
            "more": [{ "secret": "x-secret-x" }],
        });
        let said = shown(body);
        assert!(
            said.contains("esx1") && !said.contains("x-secret-x"),
            "{said}"
        );
        let long = shown(json!({ "name": "ä".repeat(1000) }));
        assert_eq!(long.chars().count(), SHOWN_MAX + 1);
    }
}
