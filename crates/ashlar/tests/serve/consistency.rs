//! Consistency groups, by command and by request.

use crate::array::{Home, Serving, two_lanes_and_a_pool};
use crate::commands::request;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Two lanes with `a`, `b` and `v0`, and a second pool with `c`.
fn home() -> (Home, Serving) {
    let home = Home::new(&two_lanes_and_a_pool());
    let serving = home.serve();
    for (name, pool) in [("a", "p0"), ("b", "p0"), ("c", "p1")] {
        serving.done(&["volume", "create", name, "--pool", pool, "--size", "1 MiB"]);
    }
    (home, serving)
}

fn group(serving: &Serving, args: &[&str]) -> Value {
    serving.json(&[&["group"], args].concat())
}

fn names(list: &Value) -> Vec<&str> {
    let all = list.as_array().unwrap().iter();
    all.map(|one| one["name"].as_str().unwrap()).collect()
}

/// Of each own name of snapshots the volumes that have one, and when they were taken.
fn runs(list: &Value) -> BTreeMap<String, Vec<(String, u64)>> {
    let mut runs: BTreeMap<String, Vec<(String, u64)>> = BTreeMap::new();
    for one in list.as_array().unwrap() {
        let (volume, own) = one["name"].as_str().unwrap().split_once('@').unwrap();
        let at = one["at_unix_s"].as_u64().unwrap();
        let run = runs.entry(own.to_owned()).or_default();
        run.push((volume.to_owned(), at));
    }
    runs
}

#[test]
fn groups_are_made_changed_and_kept_over_a_kill() {
    let (home, serving) = home();
    assert_eq!(group(&serving, &["list"]), json!([]));
    let made = group(&serving, &["create", "db", "c", "a"]);
    assert_eq!(
        made,
        json!({"name": "db", "volumes": ["a", "c"], "schedules": []})
    );
    group(&serving, &["create", "web", "b"]);
    let changed = group(&serving, &["add", "db", "v0", "a"]);
    assert_eq!(changed["volumes"], json!(["a", "c", "v0"]));
    assert_eq!(
        group(&serving, &["remove", "db", "a"])["volumes"],
        json!(["c", "v0"])
    );
    serving.done(&["volume", "rename", "c", "log"]);
    assert_eq!(serving.stop("KILL").code(), None);

    let serving = home.serve();
    assert_eq!(names(&group(&serving, &["list"])), ["db", "web"]);
    let shown = group(&serving, &["show", "db"]);
    assert_eq!(shown["volumes"], json!(["log", "v0"]));
    let of = |name: &str| serving.json(&["volume", "show", name])["group"].clone();
    assert_eq!((of("log"), of("a")), (json!("db"), json!(null)));
    // What people say of it and what is cloned from it has nothing to do with that.
    assert_eq!(serving.json(&["volume", "show", "log"])["tags"], json!({}));
    serving.done(&["volume", "clone", "log", "copy"]);
    assert_eq!(of("copy"), json!(null));

    assert_eq!(
        group(&serving, &["remove", "web", "b"])["volumes"],
        json!([])
    );
    assert_eq!(serving.refused(&["group", "show", "web"]).0, 5);
    serving.done(&["group", "delete", "db"]);
    assert_eq!(group(&serving, &["list"]), json!([]));
    let longest = "x".repeat(64);
    assert_eq!(
        group(&serving, &["create", &longest, "a"])["name"],
        *longest
    );
    assert_eq!(serving.json(&["volume", "show", "log"])["pool"], "p1");
}

#[test]
fn wrong_requests_for_groups_are_refused_and_change_nothing() {
    let (_home, serving) = home();
    group(&serving, &["create", "db", "a", "c"]);
    serving.done(&["snapshot", "create", "b@s"]);
    let long = "x".repeat(41);
    serving.done(&["volume", "create", &long, "--pool", "p0", "--size", "1 MiB"]);
    group(&serving, &["create", "long", &long]);
    // It has as much said of it as can be.
    serving.done(&["volume", "clone", "b", "full"]);
    let tags: Vec<String> = (0..32).map(|number| format!("k{number}=v")).collect();
    let tags = tags.iter().map(String::as_str);
    let tag: Vec<&str> = ["volume", "tag", "full"].into_iter().chain(tags).collect();
    serving.done(&tag);
    serving.done(&[
        "group", "schedule", "db", "--every", "1h", "--keep", "1", "--json",
    ]);
    serving.wait(&["snapshot", "list"], |list| {
        list.as_array().unwrap().len() == 3
    });
    let before = (
        group(&serving, &["list"]),
        serving.json(&["volume", "list"]),
    );
    let hourly = ["--every", "1h", "--keep", "1"];
    let cases: &[(&str, &[&str], &str)] = &[
        ("exists", &["create", "db", "b"], "group db"),
        (
            "busy",
            &["create", "web", "b", "a"],
            "ashlar group remove db a",
        ),
        ("not_found", &["create", "web", "b", "no"], "volume no"),
        ("invalid", &["create", "web", "b@s"], "b@s is a snapshot"),
        ("invalid", &["create", "web", "b", "full"], "33 attributes"),
        ("invalid", &["create", "a b", "b"], "name: found \"a b\""),
        ("wrong", &["create", "web"], "VOLUME"),
        ("not_found", &["add", "web", "b"], "group web"),
        ("not_found", &["add", "db", "b", "no"], "volume no"),
        ("invalid", &["add", "db", "b", "b@s"], "b@s is a snapshot"),
        (
            "busy",
            &["add", "db", "b", &long],
            "ashlar group remove long",
        ),
        ("not_found", &["remove", "db", "a", "b"], "b is not in"),
        ("not_found", &["remove", "web", "a"], "group web"),
        ("not_found", &["delete", "web"], "group web"),
        ("not_found", &["snapshot", "web", "s"], "group web"),
        (
            "invalid",
            &["snapshot", "db", "of/two"],
            "name: found \"of/two\"",
        ),
        ("not_found", &["schedule", "web"], "group web"),
        (
            "not_found",
            &["schedule", "db", "--remove", "7"],
            "has no schedule 7",
        ),
        (
            "invalid",
            &["schedule", "db", "--every", "1h", "--keep", "0"],
            "keep: found 0",
        ),
        (
            "invalid",
            &[&["schedule", "long"], &hourly[..]].concat(),
            "up to 40 bytes",
        ),
    ];
    for (kind, args, part) in cases {
        let (found, said) = serving.refusal(&[&["group"], *args].concat());
        assert_eq!(found, *kind, "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {part:?} is not in: {said}");
    }
    // Who joins a group with schedules has to have room for its snapshots' names.
    serving.done(&["group", "delete", "long"]);
    let (kind, said) = serving.refusal(&["group", "add", "db", &long]);
    assert_eq!(kind, "invalid", "{said}");
    assert!(said.contains("40 bytes"), "{said}");
    group(&serving, &["create", "long", &long]);
    let path = "/api/v1/consistency-groups";
    for (line, body, status) in [
        (
            format!("POST {path}"),
            r#"{"name":"web","volumes":[]}"#,
            400,
        ),
        (format!("POST {path}"), r#"{"name":"web"}"#, 400),
        (format!("PATCH {path}/db"), "{}", 400),
        (
            format!("PATCH {path}/db"),
            r#"{"add":["b"],"remove":["c","b"]}"#,
            400,
        ),
        (
            format!("PATCH {path}/db"),
            r#"{"add":["b"],"remove":["v0"]}"#,
            404,
        ),
        (format!("PATCH {path}/db"), r#"{"name":"web"}"#, 400),
        (format!("PUT {path}/db"), "{}", 405),
        (format!("DELETE {path}/db/schedules/x"), "", 404),
    ] {
        let answer = request(&serving.api, &line, "", body);
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{line} {body}: {answer}");
    }
    let after = (
        group(&serving, &["list"]),
        serving.json(&["volume", "list"]),
    );
    assert_eq!(after, before);
}

#[test]
fn all_volumes_of_a_group_are_taken_at_one_instant_or_none() {
    let (_home, serving) = home();
    group(&serving, &["create", "db", "a", "b", "c", "v0"]);
    let taken = group(&serving, &["snapshot", "db", "noon"]);
    assert_eq!(names(&taken), ["a@noon", "b@noon", "c@noon", "v0@noon"]);
    let run = &runs(&taken)["noon"];
    assert!(run.iter().all(|(_, at)| *at == run[0].1), "{run:?}");

    // A name is taken in the last pool only.
    serving.done(&["snapshot", "create", "c@late"]);
    let before = serving.json(&["snapshot", "list"]);
    let (code, said) = serving.refused(&["group", "snapshot", "db", "late"]);
    assert_eq!((code, said.contains("c@late")), (6, true), "{said}");
    assert_eq!(serving.json(&["snapshot", "list"]), before);
}

#[test]
fn what_comes_from_the_trash_is_in_its_group_with_the_schedules_of_now() {
    let (_home, serving) = home();
    group(&serving, &["create", "db", "a", "c"]);
    let hourly = |every: &str| {
        group(
            &serving,
            &["schedule", "db", "--every", every, "--keep", "1"],
        );
    };
    hourly("1h");
    serving.done(&["volume", "delete", "--yes", "a"]);
    assert_eq!(group(&serving, &["show", "db"])["volumes"], json!(["c"]));
    let taken = group(&serving, &["snapshot", "db", "without"]);
    assert_eq!(names(&taken), ["c@without"]);
    hourly("2h");
    serving.done(&["group", "schedule", "db", "--remove", "1"]);
    serving.done(&["trash", "restore", "a"]);
    assert_eq!(
        group(&serving, &["show", "db"])["volumes"],
        json!(["a", "c"])
    );
    // What `a` has by itself is what the group had.
    group(&serving, &["remove", "db", "c"]);
    let shown = group(&serving, &["schedule", "db"]);
    let all = shown.as_array().unwrap();
    assert_eq!(
        (all.len(), &all[0]["every_s"]),
        (1, &json!(7200)),
        "{shown}"
    );

    // A group whose last volume is in the trash is gone as long as that is.
    serving.done(&["volume", "delete", "--yes", "a"]);
    assert_eq!(serving.refused(&["group", "show", "db"]).0, 5);
    serving.done(&["trash", "restore", "a", "--name", "again"]);
    let shown = group(&serving, &["show", "db"]);
    assert_eq!(shown["volumes"], json!(["again"]));
    assert_eq!(shown["schedules"][0]["every_s"], 7200);
}

#[test]
fn a_volume_on_its_way_fails_a_run_and_is_in_its_group_when_it_is_there() {
    let (_home, serving) = home();
    let url = format!("iscsi://{}/iqn.2026-11.dev.ashlar:a/0", serving.portal);
    let fill = ["load", "rand-4k-read", "--target", &url, "--fill"];
    serving.done(&[&fill[..], &["--duration", "1s", "--warmup", "0s"]].concat());
    group(&serving, &["create", "db", "v0", "c"]);
    let slowly = ["--pool", "p1", "--rate", "64 KiB", "--detach"];
    let job = serving.json(&[&["volume", "move", "v0"], &slowly[..]].concat());
    let (kind, said) = serving.refusal(&["group", "snapshot", "db", "now"]);
    assert_eq!(kind, "busy", "{said}");
    assert!(said.contains("v0 is being moved"), "{said}");
    group(
        &serving,
        &["schedule", "db", "--every", "1h", "--keep", "1"],
    );
    serving.wait(&["events"], |events| {
        let events = events.as_array().unwrap();
        events.iter().any(|event| event["kind"] == "schedule")
    });
    let told = &serving.events_of("schedule")[0];
    assert!(
        told.contains("group 'db'") && told.contains("volume v0 is"),
        "{told}"
    );
    assert_eq!(serving.json(&["snapshot", "list"]), json!([]));

    serving.done(&["job", "cancel", &job["id"].to_string()]);
    serving.wait(&["job", "list"], |jobs| jobs[0]["state"] == "cancelled");
    let moved = serving.json(&["volume", "move", "v0", "--pool", "p1"]);
    assert_eq!(moved["state"], "done");
    serving.done(&["group", "remove", "db", "c"]);
    // All that is known of the group is what `v0` has taken along.
    let shown = group(&serving, &["show", "db"]);
    assert_eq!(shown["volumes"], json!(["v0"]));
    assert_eq!(shown["schedules"][0]["every_s"], 3600);
    let taken = group(&serving, &["snapshot", "db", "there"]);
    assert_eq!(
        (names(&taken), &taken[0]["pool"]),
        (vec!["v0@there"], &json!("p1"))
    );
}
