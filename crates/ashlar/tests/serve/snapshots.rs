//! Snapshots, clones, names and tags, by command and by request.

use crate::array::{Home, SITE};
use crate::commands::request;
use serde_json::{Value, json};

const TARGET: &str = "iqn.2026-11.dev.ashlar:a";

fn names(list: &Value) -> Vec<&str> {
    let all = list.as_array().unwrap().iter();
    all.map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn snapshots_and_clones_come_and_go_in_any_order() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let taken = serving.json(&["snapshot", "create", "v0@one"]);
    assert_eq!(taken["volume"], "v0");
    assert_eq!(taken["size_bytes"], 8 << 20);
    assert!(taken["at_unix_s"].as_u64().unwrap() > 1_700_000_000);
    serving.done(&["snapshot", "create", "v0@two"]);
    let clone = serving.json(&["volume", "clone", "v0@one", "copy"]);
    assert_eq!(clone["origin"]["volume"], "v0@one");
    assert_eq!(clone["read_only"], false);
    serving.done(&["volume", "clone", "copy", "copy2"]);
    serving.done(&["snapshot", "create", "copy@s"]);

    let all = serving.json(&["snapshot", "list"]);
    assert_eq!(names(&all), ["copy@s", "v0@one", "v0@two"]);
    let of = serving.json(&["snapshot", "list", "v0"]);
    assert_eq!(names(&of), ["v0@one", "v0@two"]);
    let volumes = serving.json(&["volume", "list"]);
    assert_eq!(names(&volumes), ["copy", "copy2", "v0"], "no snapshots");
    assert_eq!(serving.json(&["status"])["volumes"], 3);
    assert_eq!(
        serving.json(&["snapshot", "show", "v0@one"])["volume"],
        "v0"
    );

    // What others were taken from goes first.
    serving.done(&["snapshot", "delete", "--yes", "v0@one"]);
    let gone = &serving.json(&["volume", "show", "copy"])["origin"];
    assert_eq!(
        (&gone["volume"], &gone["name"]),
        (&json!(null), &json!("v0@one"))
    );
    let deleted = serving.json(&["volume", "delete", "--yes", "copy", "--at-once"]);
    assert_eq!(deleted["snapshots"], json!(["copy@s"]));
    assert_eq!(deleted["clones"], json!(["copy2"]));
    assert_eq!(deleted["until_unix_s"], json!(null));
    assert_eq!(
        serving.json(&["snapshot", "show", "copy@s"])["volume"],
        json!(null)
    );
    // Nothing changes over a restart.
    assert_eq!(serving.stop("KILL").code(), None);
    let serving = home.serve();
    let all = serving.json(&["snapshot", "list"]);
    assert_eq!(names(&all), ["copy@s", "v0@two"]);
    let volumes = serving.json(&["volume", "list"]);
    assert_eq!(names(&volumes), ["copy2", "v0"]);
    serving.done(&["snapshot", "delete", "--yes", "copy@s"]);
}

#[test]
fn a_pool_shows_volumes_and_snapshots_apart() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let show = || String::from_utf8(serving.run(&["pool", "show", "p0"]).stdout).unwrap();
    assert!(show().contains("  8 MiB in all\n"), "{}", show());
    for name in ["v0@a", "v0@b"] {
        serving.done(&["snapshot", "create", name]);
    }
    let line = "  8 MiB in all, and 16 MiB in snapshots\n";
    assert!(show().contains(line), "{}", show());
    assert!(show().contains("warning from 80 % used"), "{}", show());
}

#[test]
fn wrong_requests_for_snapshots_are_refused_and_change_nothing() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["snapshot", "create", "v0@s"]);
    let long = format!("v0@{}", "x".repeat(62));
    let cases: &[(&str, &[&str], &str)] = &[
        (
            "wrong",
            &["snapshot", "create", "v0"],
            "snapshot: found \"v0\"",
        ),
        (
            "invalid",
            &["snapshot", "create", "v0@"],
            "name: found \"\"",
        ),
        (
            "invalid",
            &["snapshot", "create", "v0@a b"],
            "name: found \"a b\"",
        ),
        (
            "invalid",
            &["snapshot", "create", "v0@a@b"],
            "name: found \"a@b\"",
        ),
        (
            "invalid",
            &["snapshot", "create", &long],
            "allowed are 64 bytes",
        ),
        ("not_found", &["snapshot", "create", "no@s"], "volume no"),
        ("exists", &["snapshot", "create", "v0@s"], "snapshot v0@s"),
        ("not_found", &["snapshot", "show", "v0"], "snapshot v0"),
        (
            "not_found",
            &["snapshot", "delete", "--yes", "v0"],
            "snapshot v0",
        ),
        ("not_found", &["snapshot", "list", "no"], "volume no"),
        ("not_found", &["volume", "clone", "no", "x"], "volume no"),
        (
            "invalid",
            &["volume", "clone", "v0", "x@y"],
            "name: found \"x@y\"",
        ),
        ("exists", &["volume", "clone", "v0@s", "v0"], "volume v0"),
        (
            "invalid",
            &["volume", "resize", "v0@s", "--size", "1 MiB"],
            "v0@s",
        ),
    ];
    for (kind, args, part) in cases {
        let (found, said) = serving.refusal(args);
        assert_eq!(found, *kind, "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {part:?} is not in: {said}");
    }
    for (line, body, status) in [
        ("GET /api/v1/snapshots?volumes=v0", "", "400"),
        ("GET /api/v1/volumes?tags=a", "", "400"),
        ("DELETE /api/v1/volumes/v0?force=maybe", "", "400"),
        ("POST /api/v1/volumes/v0/snapshots", "{}", "400"),
        (
            "POST /api/v1/volumes/v0@s/snapshots",
            r#"{"name":"t"}"#,
            "400",
        ),
        (
            "POST /api/v1/volumes/v0/clone",
            r#"{"name":"x","a":1}"#,
            "400",
        ),
        ("PATCH /api/v1/volumes/v0", "{}", "400"),
        ("PATCH /api/v1/volumes/v0", r#"{"size":1}"#, "400"),
    ] {
        let answer = request(&serving.api, line, "", body);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{line}: {answer}"
        );
    }
    assert_eq!(names(&serving.json(&["snapshot", "list"])), ["v0@s"]);
    assert_eq!(names(&serving.json(&["volume", "list"])), ["v0"]);
}

#[test]
fn a_renamed_volume_keeps_its_identity_its_export_and_its_snapshots() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["volume", "create", "api", "--pool", "p0", "--size", "1 MiB"]);
    let other = "iqn.2026-11.dev.ashlar:b";
    serving.done(&["snapshot", "create", "api@s"]);
    let create = [
        "export", "create", "--any", other, "--volume", "api", "--volume", "api@s",
    ];
    serving.done(&create);
    let uuid = serving.json(&["volume", "show", "v0"])["uuid"].clone();
    serving.done(&["snapshot", "create", "v0@s"]);

    let renamed = serving.json(&["volume", "rename", "v0", "web01"]);
    assert_eq!(
        (&renamed["name"], &renamed["uuid"]),
        (&json!("web01"), &uuid)
    );
    assert_eq!(renamed["export"]["target"], TARGET);
    serving.done(&["volume", "rename", "api", "web02"]);
    assert_eq!(
        names(&serving.json(&["snapshot", "list"])),
        ["web01@s", "web02@s"]
    );
    let exported = |serving: &crate::array::Serving, target: &str| {
        let luns = serving.json(&["export", "show", target])["luns"].clone();
        let luns = luns.as_array().unwrap().clone();
        let name = |lun: &Value| lun["volume"].as_str().unwrap().to_owned();
        luns.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(exported(&serving, other), ["web02", "web02@s"]);
    let (code, said) = serving.refused(&["volume", "rename", "web01", "web02"]);
    assert_eq!(code, 6, "{said}");
    let (code, said) = serving.refused(&["volume", "rename", "web01", "a b"]);
    assert_eq!(code, 2, "{said}");

    // The site file still says v0: it is the same volume, and not made anew.
    assert_eq!(serving.stop("KILL").code(), None);
    let serving = home.serve();
    assert_eq!(
        names(&serving.json(&["volume", "list"])),
        ["web01", "web02"]
    );
    assert_eq!(serving.json(&["volume", "show", "web01"])["uuid"], uuid);
    assert_eq!(exported(&serving, TARGET), ["web01"]);
    assert_eq!(exported(&serving, other), ["web02", "web02@s"]);
    let parts = ["volume v0", "called web01 now"];
    assert!(home.has_logged("WARN", &parts), "{}", home.log());
    assert_eq!(serving.stop("TERM").code(), Some(0));

    // Now it has caught up, and another rename is followed as well.
    home.set_site(&SITE.replace("\"v0\"", "\"web01\""));
    let serving = home.serve();
    assert!(!home.log().contains("is called web01 now"));
    serving.done(&["volume", "rename", "web01", "web03"]);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    let serving = home.serve();
    assert_eq!(
        names(&serving.json(&["volume", "list"])),
        ["web02", "web03"]
    );
    assert_eq!(exported(&serving, TARGET), ["web03"]);
    assert_eq!(serving.stop("TERM").code(), Some(0));

    // A file that was applied may have described the volume under the name that it had: another file
    // that says this name means that volume, and none is made.
    let more = "[[volume]]\nname = \"api\"\npool = \"p0\"\nsize = \"1 MiB\"\n[[export]]";
    home.set_site(
        &SITE
            .replace("\"v0\"", "\"web03\"")
            .replace("[[export]]", more),
    );
    let serving = home.serve();
    serving.apply(&home);
    let volumes = serving.json(&["volume", "list"]);
    assert_eq!(names(&volumes), ["web02", "web03"]);
}

#[test]
fn volumes_are_found_by_their_tags() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["volume", "create", "w", "--pool", "p0", "--size", "1 MiB"]);
    serving.done(&["volume", "tag", "v0", "vm=web01", "role=system disk"]);
    serving.done(&["volume", "tag", "w", "vm=web02"]);
    serving.done(&[
        "volume",
        "describe",
        "v0",
        "system disk of the first web server",
    ]);
    let find = |tag: &str| {
        let found = serving.json(&["volume", "list", "--tag", tag]);
        names(&found)
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(find("vm=web01"), ["v0"]);
    assert_eq!(find("role=system disk"), ["v0"]);
    assert_eq!(find("vm"), ["v0", "w"]);
    assert!(find("vm=web").is_empty() && find("_description.1").is_empty());
    serving.done(&["volume", "tag", "v0", "owner=ann", "--remove", "role"]);
    let show = |serving: &crate::array::Serving| {
        let shown = serving.json(&["volume", "show", "v0"]);
        (shown["tags"].clone(), shown["description"].clone())
    };
    let wanted = (
        json!({"vm": "web01", "owner": "ann"}),
        json!("system disk of the first web server"),
    );
    assert_eq!(show(&serving), wanted);
    for args in [
        &["volume", "tag", "v0", "novalue"][..],
        &["volume", "tag", "v0", "a b=x"],
        &["volume", "tag", "v0", "_own=x"],
        &["volume", "tag", "v0", "k="],
        &["volume", "tag", "v0"],
        &["volume", "describe", "v0", "two\nlines"],
        &["volume", "describe", "v0", &"x".repeat(241)],
    ] {
        let (code, said) = serving.refused(args);
        assert_eq!(code, 2, "{args:?}: {said}");
    }
    assert_eq!(serving.stop("KILL").code(), None);
    let serving = home.serve();
    assert_eq!(show(&serving), wanted);
    serving.done(&["volume", "describe", "v0", ""]);
    assert_eq!(show(&serving).1, "");
}
