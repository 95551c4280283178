//! The commands: what people and programs read, and the exit codes.

use crate::array::{Home, SITE, Serving, add_spare, ashlar, said};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;

#[test]
fn tables_are_for_people_and_json_for_programs() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let text = |args: &[&str]| String::from_utf8(serving.run(args).stdout).unwrap();
    let table = text(&["volume", "list"]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("NAME  POOL"), "{table}");
    assert!(lines[1].contains("8 MiB"), "{table}");
    assert!(text(&["status"]).contains("health    ok\n"));
    assert!(text(&["export", "list"]).contains("iqn.2026-11.dev.ashlar:a    0  v0"));
    assert_eq!(text(&["drive", "list"]).lines().count(), 3);
    assert!(
        text(&["pool", "list"])
            .lines()
            .nth(1)
            .unwrap()
            .starts_with("p0    10")
    );

    let status = serving.json(&["status"]);
    assert_eq!(
        (&status["site"], &status["volumes"]),
        (&json!("test"), &json!(1))
    );
    assert_eq!(status["portals"], json!([serving.portal]));
    let place = json!({"target": "iqn.2026-11.dev.ashlar:a", "lun": 0});
    assert_eq!(serving.json(&["volume", "show", "v0"])["export"], place);
    assert_eq!(serving.json(&["export", "list"])[0]["initiators"], "any");
    assert_eq!(serving.json(&["session", "list"]), json!([]));
    assert_eq!(serving.json(&["drive", "list"])[1]["name"], "d1");
}

#[test]
fn exit_codes_tell_failures_apart() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let target = "iqn.2026-11.dev.ashlar:a";
    let cases: &[(i32, &[&str], &str)] = &[
        (
            5,
            &["volume", "show", "no"],
            "error: there is no volume no\n",
        ),
        (5, &["pool", "show", "no"], "error: there is no pool no\n"),
        (5, &["drive", "show", "no"], "error: there is no drive no\n"),
        (
            5,
            &["export", "show", "iqn.no"],
            "error: there is no target iqn.no\n",
        ),
        (
            5,
            &["session", "drop", "9"],
            "error: there is no session 9\n",
        ),
        (
            5,
            &["volume", "create", "x", "--pool", "no", "--size", "1 MiB"],
            "error: there is no pool no\n",
        ),
        (
            5,
            &["volume", "delete", "--yes", "../pools/p0"],
            "error: there is no volume ../pools/p0\n",
        ),
        (
            6,
            &["volume", "create", "v0", "--pool", "p0", "--size", "1 MiB"],
            "there is a volume v0 already, in pool p0",
        ),
        (
            6,
            &["volume", "delete", "--yes", "v0"],
            "volume v0 is LUN 0 of target iqn.2026-11.dev.ashlar:a: `ashlar export delete",
        ),
        (
            6,
            &["export", "create", target, "--volume", "v0"],
            "there is a target iqn.2026-11.dev.ashlar:a already",
        ),
        (
            6,
            &[
                "export",
                "create",
                "iqn.2026-11.dev.ashlar:b",
                "--volume",
                "v0",
            ],
            "volume v0 is LUN 0 of target iqn.2026-11.dev.ashlar:a already",
        ),
        (
            5,
            &[
                "export",
                "create",
                "iqn.2026-11.dev.ashlar:b",
                "--volume",
                "no",
            ],
            "error: there is no volume no\n",
        ),
        (
            2,
            &["export", "create", "b", "--volume", "v0"],
            "target: found \"b\"; allowed: an iSCSI qualified name",
        ),
        (
            2,
            &[
                "export",
                "create",
                "iqn.2026-11.dev.ashlar:b",
                "--volume",
                "v0",
                "--volume",
                "v0",
            ],
            "volumes: found \"v0\" twice",
        ),
        (
            2,
            &[
                "export",
                "create",
                "iqn.2026-11.dev.ashlar:b",
                "--volume",
                "v0",
                "--initiator",
                "x",
            ],
            "initiators: found \"x\"; allowed: ",
        ),
        (
            2,
            &["volume", "create", "a b", "--pool", "p0", "--size", "1 MiB"],
            "name: found \"a b\"; allowed: ",
        ),
        (
            2,
            &["volume", "create", "x", "--pool", "p0", "--size", "1000 B"],
            "512 B to 1 PiB, a multiple of 512 bytes; the nearest: \"512 B\", \"1024 B\"",
        ),
        (
            2,
            &["volume", "create", "x", "--pool", "p0", "--size", "0"],
            ": allowed: 512 B to 1 PiB, a multiple of 512 bytes\n",
        ),
        (
            2,
            &["volume", "resize", "v0", "--size", "2 PiB"],
            ": allowed: 512 B to 1 PiB, a multiple of 512 bytes\n",
        ),
        (
            2,
            &["volume", "create", "x", "--pool", "p0", "--size", "lots"],
            "allowed: a number above zero and a unit",
        ),
        (2, &["volume", "resize", "v0", "--size", "1 MiB"], "v0"),
        (
            1,
            &[
                "volume", "create", "x", "--pool", "p0", "--size", "1 GiB", "--thick",
            ],
            "p0",
        ),
    ];
    for (code, args, part) in cases {
        let (found, said) = serving.refused(args);
        assert_eq!(found, *code, "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {part:?} is not in: {said}");
    }
    assert_eq!(
        serving.json(&["volume", "list"]).as_array().unwrap().len(),
        1
    );
    assert_eq!(
        serving.json(&["export", "list"]).as_array().unwrap().len(),
        1
    );
}

#[test]
fn an_array_that_is_not_there_has_its_own_code() {
    // A port that nothing listens on: it was just given back.
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{free}");
    for args in [
        &["--api", &url, "status"][..],
        &["volume", "list", "--api", &url],
    ] {
        let (code, text) = said(ashlar().args(args).output().unwrap());
        assert_eq!(code, 4, "{args:?}: {text}");
        assert!(text.contains(&url), "{text}");
    }
}

#[test]
fn a_site_file_is_checked_without_an_array() {
    let home = Home::new(SITE);
    let check = |home: &Home| {
        ashlar()
            .args(["site", "check"])
            .arg(home.site())
            .output()
            .unwrap()
    };
    let output = check(&home);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("good: 2 drives, 1 pool, 1 volume"));
    home.set_site("[site]\nname = 1\n");
    let (code, text) = said(check(&home));
    assert_eq!(code, 2);
    assert!(
        text.contains("site.toml:2: site.name: found the number 1"),
        "{text}"
    );
}

#[test]
fn a_full_pool_has_its_own_status() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let body = r#"{"name":"x","pool":"p0","size_bytes":1073741824,"provisioning":"thick"}"#;
    let answer = request(&serving.api, "POST /api/v1/volumes", "", body);
    assert!(answer.starts_with("HTTP/1.1 507 "), "{answer}");
    assert!(answer.contains("\"kind\":\"full\""), "{answer}");
}

#[test]
fn the_api_refuses_what_it_does_not_know() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let unknown = r#"{"name":"x","pool":"p0","size_bytes":512,"compressed":true}"#;
    let evil = "Host: evil.example\r\n";
    for (line, headers, body, status, part) in [
        (
            "POST /api/v1/volumes",
            "",
            unknown,
            "400",
            "unknown field `compressed`",
        ),
        (
            "POST /api/v1/volumes",
            "",
            "{",
            "400",
            "\"kind\":\"invalid\"",
        ),
        (
            "POST /api/v1/hosts",
            "",
            "[null,null]",
            "400",
            "\"kind\":\"invalid\"",
        ),
        (
            "POST /api/v1/hosts",
            "",
            r#"["h",["iqn.2026-11.dev.ashlar:h"]]"#,
            "400",
            "the body: found a list; allowed: an object",
        ),
        (
            "GET /api/v1/nothing",
            "",
            "",
            "404",
            "\"kind\":\"not_found\"",
        ),
        (
            "GET /api/v1/sessions/x",
            "",
            "",
            "404",
            "\"kind\":\"not_found\"",
        ),
        (
            "PUT /api/v1/volumes",
            "",
            "",
            "405",
            "\"kind\":\"method_not_allowed\"",
        ),
        (
            "GET /api/v1/status",
            evil,
            "",
            "403",
            "\"kind\":\"forbidden\"",
        ),
        (
            "GET /api/v1/status",
            "Origin: http://evil.example\r\n",
            "",
            "403",
            "Origin is",
        ),
    ] {
        let answer = request(&serving.api, line, headers, body);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{line}: {answer}"
        );
        assert!(answer.contains(part), "{line}: {answer}");
    }
    let large = "x".repeat(100_000);
    let answer = request(&serving.api, "POST /api/v1/volumes", "", &large);
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("\"kind\":\"too_large\""), "{answer}");
}

/// Exit code, and the error that a program reads.
fn error_for_programs(serving: &Serving, args: &[&str]) -> (i32, serde_json::Value) {
    let output = serving.run(args);
    assert!(output.stdout.is_empty(), "{args:?}");
    let error: serde_json::Value = serde_json::from_slice(&output.stderr)
        .unwrap_or_else(|_| panic!("{args:?}: {}", String::from_utf8_lossy(&output.stderr)));
    let code = output.status.code().unwrap();
    assert_eq!(error["exit_code"], code, "{args:?}");
    assert!(!error["message"].as_str().unwrap().is_empty(), "{args:?}");
    (code, error)
}

#[test]
fn programs_get_errors_as_json() {
    let home = Home::new(SITE);
    let serving = home.serve();
    for (args, code, kind, what) in [
        (
            &["volume", "show", "no", "--json"][..],
            5,
            "not_found",
            "volume show",
        ),
        (
            &[
                "volume", "create", "--json", "v0", "--pool", "p0", "--size", "1M",
            ],
            6,
            "exists",
            "volume create",
        ),
        (
            &["pool", "scrub", "no", "--json"],
            5,
            "not_found",
            "pool scrub",
        ),
        (
            &["drive", "fail", "no", "--json"],
            5,
            "not_found",
            "drive fail",
        ),
        (
            &["drive", "replace", "d0", "--with", "x", "--json"],
            2,
            "wrong",
            "drive replace",
        ),
        (
            &["volume", "delete", "v0", "--json"],
            6,
            "busy",
            "volume delete",
        ),
        (
            &["trash", "empty", "no", "--json"],
            5,
            "not_found",
            "trash empty",
        ),
        (&["volume", "create", "--json"], 2, "wrong", ""),
        (
            &["--api", "127.0.0.1:1", "volume", "list", "--json"],
            4,
            "unreachable",
            "volume list",
        ),
    ] {
        let (found, error) = error_for_programs(&serving, args);
        assert_eq!(
            (found, &error["kind"]),
            (code, &kind.into()),
            "{args:?}: {error}"
        );
        assert_eq!(error["what"], what, "{args:?}");
    }
}

#[test]
fn a_success_without_an_answer_is_an_object_for_programs() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let secret = home.file("secret");
    std::fs::write(&secret, "a secret of sixteen").unwrap();
    crate::array::make_private(&secret);
    let spare = add_spare("s0", "s0.img");
    for before in [
        &[
            "pool", "create", "p1", "--level", "simple", "e0.img", "--size", "64 MiB",
        ][..],
        &[
            "host",
            "create",
            "h0",
            "--initiator",
            "iqn.2026-11.dev.ashlar:h",
        ],
        &["host-group", "create", "hg", "h0"],
        &["volume", "create", "x", "--pool", "p0", "--size", "1 MiB"],
        &["group", "create", "g", "x"],
        &["portal", "add", "127.0.0.2:0"],
        &["snapshot", "schedule", "x", "--every", "1h", "--keep", "2"],
        &["volume", "create", "y", "--pool", "p0", "--size", "1 MiB"],
        &["volume", "copy", "x", "y", "--overwrite", "--yes"],
        &spare,
        &["drive", "fail", "d1", "--yes"],
    ] {
        serving.done(before);
    }
    serving.wait_healthy();
    let set_chap = [
        "discovery",
        "set-chap",
        "--chap-name",
        "n",
        "--chap-secret-file",
    ];
    for (args, name) in [
        (&["pool", "destroy", "p1", "--yes"][..], "p1"),
        (&["host-group", "delete", "hg"], "hg"),
        (&["host", "delete", "h0"], "h0"),
        (&["snapshot", "schedule", "x", "--remove", "1"], "1"),
        (&["group", "delete", "g"], "g"),
        (&["job", "cancel", "1"], "1"),
        (&["drive", "remove", "d1", "--yes"], "d1"),
        (&["trash", "empty", "--yes"], "trash"),
        (
            &[&set_chap[..], &[secret.to_str().unwrap()]].concat(),
            "CHAP",
        ),
        (&["discovery", "remove-chap"], "discovery"),
        (
            &["export", "delete", "iqn.2026-11.dev.ashlar:a", "--yes"],
            "iqn.2026-11.dev.ashlar:a",
        ),
        (&["portal", "remove", "127.0.0.2:0", "--yes"], "127.0.0.2:0"),
    ] {
        let done = serving.json(args);
        let text = done["done"]
            .as_str()
            .unwrap_or_else(|| panic!("{args:?}: {done}"));
        assert!(text.contains(name), "{args:?}: {text}");
    }
}

#[test]
fn a_report_on_standard_output_has_its_errors_as_json() {
    let home = Home::new(SITE);
    let site = home.site();
    let site = site.to_str().unwrap();
    for (args, code, kind, what) in [
        (
            &["load", "no-such", "--target", "file:/nowhere"][..],
            2,
            "wrong",
            "load",
        ),
        (
            &["load", "rand-4k-read", "--target", "file:/nowhere"],
            1,
            "failed",
            "load",
        ),
        (&["load"], 2, "wrong", ""),
        (&["rehearse", "/nowhere/site.toml"], 2, "wrong", "rehearse"),
        (&["rehearse", site], 2, "wrong", "rehearse"),
        (&["plan", site], 2, "wrong", "plan"),
    ] {
        let run = |json: &str| ashlar().args(args).args(["--json", json]).output().unwrap();
        let (found, text) = said(run("-"));
        let error: serde_json::Value =
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{args:?}: {text}"));
        assert_eq!((found, &error["exit_code"]), (code, &json!(code)), "{text}");
        assert_eq!(
            (&error["kind"], &error["what"]),
            (&json!(kind), &json!(what))
        );
        // Where people read what is printed, they read errors.
        let report = home.site().with_file_name("report.json");
        let (found, text) = said(run(report.to_str().unwrap()));
        assert_eq!((found, text.starts_with("error: ")), (code, true), "{text}");
    }
}

#[test]
fn what_changes_a_pool_or_a_drive_says_what_came_of_it() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let pool = serving.json(&["pool", "rates", "p0", "--scrub", "5 MiB"]);
    assert_eq!(pool["rates"]["scrub_bytes_per_s"], 5 << 20);
    for none in ["0", "unlimited"] {
        serving.done(&["pool", "rates", "p0", "--rebuild", "9 MiB"]);
        let pool = serving.json(&["pool", "rates", "p0", "--rebuild", none]);
        assert_eq!(pool["rates"]["rebuild_bytes_per_s"], json!(null), "{none}");
    }
    let pool = serving.json(&["pool", "thresholds", "p0", "--warn", "70"]);
    assert_eq!(pool["thresholds"]["warn_percent"], 70);
    assert_eq!(serving.json(&["pool", "scrub", "p0"])["name"], "p0");
    let pool = serving.json(&["drive", "fail", "--yes", "d1"]);
    assert_eq!(pool["failed_drives"], serde_json::json!(["d1"]));
    let replaced = serving.json(&["drive", "replace", "--yes", "d1"]);
    assert_eq!(replaced["drive"]["name"], "d1");
    serving.wait_healthy();
    let pool = serving.json(&add_spare("s0", "s0.img"));
    assert_eq!(pool["spares"], serde_json::json!(["s0"]));
    let pool = serving.json(&["pool", "grow", "p0", "e0.img", "e1.img"]);
    assert_eq!(pool["groups"].as_array().unwrap().len(), 2);
    let pool = serving.json(&["pool", "shrink", "p0", "--group", "1"]);
    assert_eq!(pool["name"], "p0");
}

#[test]
fn the_description_names_every_resource() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let answer = request(&serving.api, "GET /api/v1/openapi.json", "", "");
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let description: serde_json::Value = serde_json::from_str(body).unwrap();
    let paths: Vec<&String> = description["paths"].as_object().unwrap().keys().collect();
    assert_eq!(
        paths,
        [
            "/api/v1/check/drives/{name}",
            "/api/v1/check/pools/{name}",
            "/api/v1/check/portals/{address}",
            "/api/v1/check/settings",
            "/api/v1/check/snapshots/{name}",
            "/api/v1/check/volumes/{name}",
            "/api/v1/check/volumes/{name}/restore",
            "/api/v1/consistency-groups",
            "/api/v1/consistency-groups/{name}",
            "/api/v1/consistency-groups/{name}/schedules",
            "/api/v1/consistency-groups/{name}/schedules/{number}",
            "/api/v1/consistency-groups/{name}/snapshots",
            "/api/v1/discovery/chap",
            "/api/v1/drives",
            "/api/v1/drives/{name}",
            "/api/v1/drives/{name}/fail",
            "/api/v1/drives/{name}/redundancy",
            "/api/v1/drives/{name}/replace",
            "/api/v1/events",
            "/api/v1/exports",
            "/api/v1/exports/{target}",
            "/api/v1/host-groups",
            "/api/v1/host-groups/{name}",
            "/api/v1/hosts",
            "/api/v1/hosts/{name}",
            "/api/v1/jobs",
            "/api/v1/jobs/{id}",
            "/api/v1/pools",
            "/api/v1/pools/{name}",
            "/api/v1/pools/{name}/cache",
            "/api/v1/pools/{name}/groups",
            "/api/v1/pools/{name}/groups/{index}",
            "/api/v1/pools/{name}/rates",
            "/api/v1/pools/{name}/scrub",
            "/api/v1/pools/{name}/spares",
            "/api/v1/pools/{name}/thresholds",
            "/api/v1/portals",
            "/api/v1/portals/{address}",
            "/api/v1/qos",
            "/api/v1/qos/{volume}",
            "/api/v1/sessions",
            "/api/v1/sessions/{id}",
            "/api/v1/settings",
            "/api/v1/site",
            "/api/v1/site/apply",
            "/api/v1/site/diff",
            "/api/v1/snapshots",
            "/api/v1/snapshots/{name}",
            "/api/v1/stats",
            "/api/v1/stats/capture",
            "/api/v1/stats/initiators",
            "/api/v1/stats/sessions",
            "/api/v1/stats/volumes",
            "/api/v1/status",
            "/api/v1/trash",
            "/api/v1/trash/{name}",
            "/api/v1/trash/{name}/restore",
            "/api/v1/volumes",
            "/api/v1/volumes/{name}",
            "/api/v1/volumes/{name}/clone",
            "/api/v1/volumes/{name}/copy",
            "/api/v1/volumes/{name}/export",
            "/api/v1/volumes/{name}/import",
            "/api/v1/volumes/{name}/move",
            "/api/v1/volumes/{name}/provisioning",
            "/api/v1/volumes/{name}/restore",
            "/api/v1/volumes/{name}/schedules",
            "/api/v1/volumes/{name}/schedules/{number}",
            "/api/v1/volumes/{name}/shrinking",
            "/api/v1/volumes/{name}/snapshots",
            "/api/v1/volumes/{name}/space",
        ]
    );
    assert!(description["components"]["schemas"]["Problem"].is_object());
}

/// One HTTP request, written by hand, so that its headers can be wrong.
pub fn request(api: &str, line: &str, headers: &str, body: &str) -> String {
    let address = api.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let host = if headers.contains("Host:") {
        String::new()
    } else {
        format!("Host: {address}\r\n")
    };
    let head = format!(
        "{line} HTTP/1.1\r\n{host}{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The server may have answered and closed before it has all.
    let _ = stream.write_all(body.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
