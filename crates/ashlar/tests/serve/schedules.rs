//! Snapshots by the clock, as commands show them. Their times are tested in virtual time
//! (`crates/array/tests/control_plane/schedules.rs`).

use crate::array::{Home, SITE, Serving};
use crate::commands::request;

fn schedule(serving: &Serving, every: &str, keep: &str) {
    serving.done(&[
        "snapshot", "schedule", "v0", "--every", every, "--keep", keep,
    ]);
}

#[test]
fn a_schedule_goes_on_after_a_kill() {
    let home = Home::new(SITE);
    let serving = home.serve();
    schedule(&serving, "1h", "5");
    serving.wait(&["snapshot", "list"], |list| {
        list.as_array().unwrap().len() == 1
    });
    let before = serving.json(&["snapshot", "schedule", "v0"]);
    assert_eq!(serving.stop("KILL").code(), None);
    let serving = home.serve();
    assert_eq!(serving.json(&["snapshot", "schedule", "v0"]), before);
    // Another of the same volume takes its own at once.
    schedule(&serving, "2h", "9");
    serving.wait(&["snapshot", "list"], |list| {
        list.as_array().unwrap().len() == 2
    });
}

#[test]
fn wrong_schedules_are_refused_and_failures_are_told() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["snapshot", "create", "v0@s"]);
    let long = "x".repeat(41);
    serving.done(&["volume", "create", &long, "--pool", "p0", "--size", "1 MiB"]);
    let schedule = |volume, every, keep| {
        [
            "snapshot", "schedule", volume, "--every", every, "--keep", keep,
        ]
    };
    for (args, code) in [
        (schedule("no", "1h", "1"), 5),
        (schedule("v0@s", "1h", "1"), 2),
        (schedule("v0", "0 s", "1"), 2),
        (schedule("v0", "often", "1"), 2),
        (schedule("v0", "1h", "0"), 2),
        (schedule("v0", "1h", "1001"), 2),
        (schedule(&long, "1h", "1"), 2),
    ] {
        let (found, said) = serving.refused(&args);
        assert_eq!(found, code, "{args:?}: {said}");
    }
    let every = ["snapshot", "schedule", "v0", "--every", "1h"];
    assert_eq!(serving.refused(&every).0, 2, "without --keep");
    assert_eq!(
        serving
            .refused(&["snapshot", "schedule", "v0", "--remove", "1"])
            .0,
        5
    );
    let answer = request(
        &serving.api,
        "DELETE /api/v1/volumes/v0/schedules/x",
        "",
        "",
    );
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    for body in [r#"{"every_s":60}"#, r#"{"every_s":-1,"keep":1}"#] {
        let answer = request(&serving.api, "POST /api/v1/volumes/v0/schedules", "", body);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    for _ in 0..8 {
        serving.done(&schedule("v0", "1h", "1"));
    }
    let (code, said) = serving.refused(&schedule("v0", "1h", "1"));
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("has 8 schedules"), "{said}");

    // One whose old snapshot is in use can't go.
    serving.done(&["volume", "create", "w", "--pool", "p0", "--size", "1 MiB"]);
    serving.done(&schedule("w", "1s", "1"));
    let list = serving.wait(&["snapshot", "list", "w"], |list| {
        list.as_array().unwrap().len() == 1
    });
    let snapshot = list[0]["name"].as_str().unwrap();
    let target = "iqn.2026-11.dev.ashlar:b";
    let exported = serving.run(&["export", "create", "--any", target, "--volume", snapshot]);
    if exported.status.success() {
        let is_of_it = |event: &serde_json::Value| {
            event["kind"] == "schedule" && event["text"].as_str().unwrap().contains("volume 'w'")
        };
        serving.wait(&["events"], |events| {
            events.as_array().unwrap().iter().any(is_of_it)
        });
    }
}
