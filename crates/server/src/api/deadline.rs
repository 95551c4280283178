//! Answers every request in bounded time, whatever a shard or a drive does.
//!
//! A request whose handler panics gets an answer, too.
//!
//! Invariant: a handler runs to its end also when nobody waits for it any more: a change that
//! takes long is not left half done.

use super::problem::Refusal;
use super::trial;
use crate::array::Array;
use crate::panics;
use api::ProblemKind;
use axum::extract::{FromRef, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long is waited before an answer says that there is none.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For a shard, when it is only to say how it is.
    pub look: Duration,
    /// For all that a request does.
    pub request: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            look: Duration::from_secs(3),
            request: Duration::from_secs(30),
        }
    }
}

/// What handlers have.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) array: Arc<Array>,
    pub(super) patience: Patience,
}

impl FromRef<Served> for Arc<Array> {
    fn from_ref(served: &Served) -> Self {
        Arc::clone(&served.array)
    }
}

/// Runs a request within its time.
pub(super) async fn in_time(
    State(served): State<Served>,
    request: Request,
    next: Next,
) -> Response {
    let what = format!("{} {}", request.method(), request.uri().path());
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD)
        && !request.uri().path().starts_with(trial::PATHS);
    let handled = tokio::spawn(panics::heard(next.run(request)));
    match timeout(served.patience.request, handled).await {
        Ok(Ok(Ok(response))) => response,
        Ok(Ok(Err(panic))) => ended_early(&what, &panic),
        Ok(Err(error)) => ended_early(&what, &error.to_string()),
        Err(_) => overdue(&served, &what, changes).await.into_response(),
    }
}

fn ended_early(what: &str, why: &str) -> Response {
    tracing::error!("{what} ended early: {why}");
    let message = format!("a bug: {what} ended early: {why}; see the server's log");
    Refusal::new(ProblemKind::Internal, message).into_response()
}

/// What has not answered, as far as it can be told.
async fn overdue(served: &Served, what: &str, changes: bool) -> Refusal {
    let waited = served.patience.request.as_secs();
    let silent = served.array.silent_shards(served.patience.look).await;
    let silent: Vec<String> = silent
        .iter()
        .map(|shard| format!("shard {shard}"))
        .collect();
    let who = match &silent[..] {
        [] => "all shards answer: a drive, or a change before this one, takes its time".to_owned(),
        [one] => format!("{one} does not answer: a drive may hang"),
        all => format!("{} do not answer: a drive may hang", all.join(" and ")),
    };
    let then = match changes {
        true => "; the change may still take place: look before it is tried again",
        false => "",
    };
    let message = format!("{what} has no answer after {waited} s: {who}{then}");
    tracing::warn!("{message}");
    Refusal::new(ProblemKind::Overdue, message)
}
