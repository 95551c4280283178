//! The API against its own description, by two programs of others: `openapi-spec-validator` says
//! whether the description is one, and `schemathesis` whether the API keeps to it, with thousands of
//! requests that are right and wrong. `make setup` installs both.

use crate::array::{Home, SECOND_POOL, SECOND_VOLUME, SITE};
use crate::commands::request;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Far above what a run takes, so that only a hang reaches it, in seconds.
const DEADLINE_S: &str = "900";

/// What has to hold of each answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance,negative_data_rejection,unsupported_method";

/// A program that `scripts/api-checkers` installs.
fn checker(name: &str) -> PathBuf {
    let executable = std::env::current_exe().unwrap();
    // target/<profile>/deps/<test>
    let target = executable.ancestors().nth(3).unwrap();
    let path = target.join("api-checkers/bin").join(name);
    assert!(path.is_file(), "no {}; run: make setup", path.display());
    path
}

/// Runs a program in `directory`, which has to succeed.
fn succeeds(program: &Path, directory: &Path, arguments: &[&str]) {
    let output = Command::new("timeout")
        .args(["--signal=KILL", DEADLINE_S])
        .arg(program)
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{program:?} {arguments:?}: {}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A site with two pools, and room for what is made.
fn site() -> String {
    format!("{SITE}{SECOND_POOL}{SECOND_VOLUME}").replace("64 MiB", "160 MiB")
}

/// A method and a path, whatever its parameters are called.
type Operation = (String, String);

fn operation(method: &str, path: &str) -> Operation {
    let mut parts = path.trim_start_matches("/api/v1").split('/');
    let mut unnamed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_parameter = part.starts_with('{');
        unnamed.push('/');
        unnamed.push_str(if is_parameter { "{}" } else { part });
    }
    (method.to_uppercase(), unnamed)
}

/// The operations that the page on the API lists.
fn documented() -> BTreeSet<Operation> {
    let page = include_str!("../../../../docs/reference/api.md");
    let mut all = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with("| `/")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let paths = cells[1].split(", ").map(|path| path.trim_matches('`'));
        for path in paths {
            all.extend(cells[2].split(", ").map(|method| operation(method, path)));
        }
    }
    all
}

#[test]
fn the_page_on_the_api_lists_what_the_description_describes() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let answer = request(&serving.api, "GET /api/v1/openapi.json", "", "");
    let (_, description) = answer.split_once("\r\n\r\n").unwrap();
    let description: serde_json::Value = serde_json::from_str(description).unwrap();
    let paths = description["paths"].as_object().unwrap().iter();
    let described: BTreeSet<Operation> = paths
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().keys();
            methods.map(move |method| operation(method, path))
        })
        .collect();
    let mut documented = documented();
    // It does not describe itself.
    documented.remove(&operation("GET", "/openapi.json"));
    let missing: Vec<_> = described.difference(&documented).collect();
    let unknown: Vec<_> = documented.difference(&described).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "{missing:?} {unknown:?}"
    );
}

#[test]
fn the_description_is_one() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let answer = request(&serving.api, "GET /api/v1/openapi.json", "", "");
    let (_, description) = answer.split_once("\r\n\r\n").unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("openapi.json"), description).unwrap();
    let validator = checker("openapi-spec-validator");
    let arguments = ["--errors", "all", "openapi.json"];
    succeeds(&validator, directory.path(), &arguments);
}

/// Requests as the description has them and as it does not: with names that nobody has, and then
/// with names of what is there.
#[test]
fn the_api_keeps_to_its_description() {
    keeps_to_its_description("", &[]);
    // What a deletion takes away, later requests would not find.
    keeps_to_its_description(NAMES, &["--exclude-method", "DELETE"]);
}

fn keeps_to_its_description(configuration: &str, more: &[&str]) {
    let home = Home::new(&site());
    let serving = home.serve();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("schemathesis.toml");
    std::fs::write(file, format!("{CHECKED}{configuration}")).unwrap();
    let description = format!("{}/api/v1/openapi.json", serving.api);
    let mut arguments = vec!["run", &description, "--checks", CHECKS];
    arguments.extend(["--phases", "examples,coverage,fuzzing"]);
    arguments.extend(["--max-examples", "30", "--seed", "18"]);
    arguments.extend(["--generation-database", "none", "--continue-on-failure"]);
    arguments.extend(["--request-timeout", "60", "--no-color"]);
    arguments.extend(more);
    succeeds(&checker("schemathesis"), directory.path(), &arguments);
    // It still answers.
    serving.json(&["status"]);
}

/// A request for more than a pool has is answered by 507: that is no fault of the server.
const CHECKED: &str = r#"
[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 507]
"#;

/// What is there, as a configuration of schemathesis.
const NAMES: &str = r#"
[[operations]]
include-path-regex = "/pools/"
parameters = { "path.name" = ["p0", "p1"], "path.index" = [0, 1] }
[[operations]]
include-path-regex = "/(volumes|trash)/"
parameters = { "path.name" = ["v0", "v1"], "path.number" = [1, 2] }
[[operations]]
include-path-regex = "/qos/"
parameters = { "path.volume" = ["v0", "v1"] }
[[operations]]
include-path-regex = "/drives/"
parameters = { "path.name" = ["d0", "e0"] }
[[operations]]
include-path-regex = "/exports/"
parameters = { "path.target" = ["iqn.2026-11.dev.ashlar:a", "iqn.2026-11.dev.ashlar:b"] }
"#;
