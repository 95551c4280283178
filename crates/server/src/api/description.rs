//! Completes the OpenAPI description of the API with the failures of each kind of request.
//!
//! Handlers name their answer and the failures that are theirs alone. The failures that follow from
//! the kind of request are added here.
//!
//! Invariant: every response has a description, and every failure is a [`Problem`].

use api::Problem;
use utoipa::openapi::path::{Operation, ParameterIn, PathItem};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, Response};
use utoipa::{OpenApi as _, ToSchema};

#[derive(utoipa::OpenApi)]
#[openapi(info(
    title = "Ashlar",
    description = "Unified storage for virtual machines: drives, pools, volumes, exports, sessions."
))]
struct Base;

/// The description before any resource is in it.
pub(super) fn base() -> OpenApi {
    Base::openapi()
}

/// Completes the description once all resources are in it.
pub(super) fn complete(description: &mut OpenApi) {
    for item in description.paths.paths.values_mut() {
        for (method, operation) in operations(item) {
            complete_operation(method, operation);
        }
    }
}

/// Methods of HTTP that a resource has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Get,
    Put,
    Post,
    Patch,
    Delete,
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    [
        (Method::Get, item.get.as_mut()),
        (Method::Put, item.put.as_mut()),
        (Method::Post, item.post.as_mut()),
        (Method::Patch, item.patch.as_mut()),
        (Method::Delete, item.delete.as_mut()),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation?)))
}

fn complete_operation(method: Method, operation: &mut Operation) {
    for status in failures(method, operation) {
        let responses = &mut operation.responses.responses;
        responses
            .entry(status.to_string())
            .or_insert_with(|| RefOr::T(problem()));
    }
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            response.description = meaning(status).to_owned();
        }
    }
}

/// Failures that requests of this kind can end with.
fn failures(method: Method, operation: &Operation) -> Vec<u16> {
    let parameters = operation.parameters.iter().flatten();
    let places: Vec<&ParameterIn> = parameters
        .filter_map(|parameter| match parameter {
            RefOr::T(parameter) => Some(&parameter.parameter_in),
            RefOr::Ref(_) => None,
        })
        .collect();
    let has_body = operation.request_body.is_some();
    let mut statuses = vec![403, 500, 503, 504];
    if has_body || method != Method::Get || places.contains(&&ParameterIn::Query) {
        statuses.push(400);
    }
    if places.contains(&&ParameterIn::Path) {
        statuses.push(404);
    }
    if method != Method::Get {
        statuses.push(409);
    }
    if has_body {
        statuses.extend([413, 415]);
    }
    statuses
}

fn problem() -> Response {
    let schema = Ref::from_schema_name(Problem::name());
    let content = Content::new(Some(schema));
    Response::builder()
        .content("application/json", content)
        .build()
}

/// What a status says, where the handler does not say more.
fn meaning(status: &str) -> &'static str {
    match status {
        "200" => "Done. The body says how things are now.",
        "201" => "Made. The body shows it.",
        "202" => "Begun. It continues in the background.",
        "204" => "Done. There is no body.",
        "400" => "The request is wrong; nothing was changed.",
        "403" => "The caller may not ask, or the request is addressed to another host.",
        "404" => "There is no such thing.",
        "409" => "There is such a thing already, or it is in use.",
        "413" => "The body is too large.",
        "415" => "The body is not said to be JSON.",
        "500" => "A drive or a file failed underneath, or there is a bug.",
        "503" => "The pool has failed, or the array is stopping.",
        "504" => "Something has not answered in time. A change may still take place.",
        "507" => "The pool has too few free pages.",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use crate::api::described;
    use serde_json::Value;
    use std::collections::BTreeMap;

    fn all() -> Vec<(String, Value)> {
        let description = serde_json::to_value(described().1).unwrap();
        let mut all = Vec::new();
        for (path, item) in description["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                all.push((format!("{method} {path}"), operation.clone()));
            }
        }
        assert!(all.len() > 50, "{}", all.len());
        all
    }

    #[test]
    fn every_response_is_described_and_every_failure_is_a_problem() {
        for (name, operation) in all() {
            for (status, response) in operation["responses"].as_object().unwrap() {
                let text = response["description"].as_str().unwrap_or_default();
                assert!(!text.is_empty(), "{name}: {status} has no description");
                if status.starts_with(['4', '5']) {
                    let schema = &response["content"]["application/json"]["schema"]["$ref"];
                    assert_eq!(schema, "#/components/schemas/Problem", "{name}: {status}");
                }
            }
        }
    }

    #[test]
    fn failures_follow_from_the_kind_of_request() {
        let all: BTreeMap<String, Value> = all().into_iter().collect();
        let statuses = |name: &str| -> Vec<String> {
            let responses = all[name]["responses"].as_object().unwrap();
            responses.keys().cloned().collect()
        };
        assert_eq!(
            statuses("get /api/v1/jobs"),
            ["200", "403", "500", "503", "504"]
        );
        let renamed = statuses("patch /api/v1/hosts/{name}");
        for status in ["400", "403", "404", "409", "413", "415"] {
            assert!(
                renamed.iter().any(|other| other == status),
                "{status}: {renamed:?}"
            );
        }
        assert!(statuses("get /api/v1/volumes").contains(&"400".to_owned()));
    }

    #[test]
    fn parameters_are_where_they_are_sent() {
        for (name, operation) in all() {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let key = parameter["name"].as_str().unwrap();
                let is_of_path = name.contains(&format!("{{{key}}}"));
                let place = if is_of_path { "path" } else { "query" };
                assert_eq!(parameter["in"], place, "{name}: {key}");
                assert_eq!(parameter["required"], is_of_path, "{name}: {key}");
            }
        }
    }
}
