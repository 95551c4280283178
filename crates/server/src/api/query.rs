//! Refuses requests to change something that have parameters which nobody reads.
//!
//! A parameter says how to make a change. A server that ignored one would make another change
//! than the client means, such as a real deletion for a trial of a newer version.

use super::problem::Refusal;
use axum::extract::{MatchedPath, Query, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::openapi::path::{Operation, ParameterIn, PathItem};
use utoipa::openapi::{OpenApi, RefOr};

/// The parameters that the description has of each change, by path and method.
#[derive(Debug)]
pub(super) struct KnownParameters(BTreeMap<(String, String), Vec<String>>);

impl KnownParameters {
    pub(super) fn new(description: &OpenApi) -> Self {
        let mut known = BTreeMap::new();
        for (path, item) in &description.paths.paths {
            for (method, operation) in changes(item) {
                known.insert((path.clone(), method.to_string()), parameters(operation));
            }
        }
        KnownParameters(known)
    }

    fn check(&self, request: &Request) -> Result<(), Refusal> {
        let path = request.extensions().get::<MatchedPath>();
        let path = path.map_or("", MatchedPath::as_str).to_owned();
        let Some(known) = self.0.get(&(path, request.method().to_string())) else {
            return Ok(());
        };
        let pairs: Query<Vec<(String, String)>> = Query::try_from_uri(request.uri())
            .map_err(|wrong| Refusal::invalid(wrong.body_text()))?;
        let Some((other, _)) = pairs.iter().find(|(key, _)| !known.contains(key)) else {
            return Ok(());
        };
        let allowed = match &known[..] {
            [] => "no parameters".to_owned(),
            some => some.join(", "),
        };
        let message = format!("the query: found {other:?}; allowed: {allowed}");
        Err(Refusal::invalid(message))
    }
}

fn changes(item: &PathItem) -> impl Iterator<Item = (Method, &Operation)> {
    [
        (Method::POST, &item.post),
        (Method::PUT, &item.put),
        (Method::PATCH, &item.patch),
        (Method::DELETE, &item.delete),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_ref()?)))
}

fn parameters(of: &Operation) -> Vec<String> {
    let all = of.parameters.iter().flatten();
    let keys = all.filter_map(|parameter| match parameter {
        RefOr::T(one) if one.parameter_in == ParameterIn::Query => Some(one.name.clone()),
        _ => None,
    });
    keys.collect()
}

/// Passes a request on whose parameters are all known.
pub(super) async fn known_only(
    State(known): State<Arc<KnownParameters>>,
    request: Request,
    next: Next,
) -> Response {
    match known.check(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}
