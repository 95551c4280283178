//! Commands that destroy something ask, and ask only for what can be done.

use crate::array::{Home, SECOND_POOL, SITE, Serving, two_lanes_and_a_pool};
use crate::commands::request;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// That a command is refused since nobody can be asked, and says all of these.
fn assert_asks(serving: &Serving, args: &[&str], parts: &[&str]) {
    let (code, said) = serving.refused(args);
    assert_eq!(code, 2, "{args:?}: {said}");
    for part in parts.iter().chain(&["--yes"]) {
        assert!(said.contains(part), "{args:?}: {part:?} is not in: {said}");
    }
}

fn with_yes<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &["--yes"]].concat()
}

fn state(serving: &Serving, drive: &str) -> Value {
    serving.json(&["drive", "show", drive])["state"].clone()
}

#[test]
fn restoring_over_what_is_there_asks() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["snapshot", "create", "v0@s"]);
    let discard = ["snapshot", "restore", "v0@s", "--force", "--discard"];
    let parts = ["what volume v0 has now is lost", "iqn.2026-11.dev.ashlar:a"];
    assert_asks(&serving, &discard, &parts);
    let force = ["snapshot", "restore", "v0@s", "--force"];
    assert_asks(
        &serving,
        &force,
        &["volume v0 changes under the initiators"],
    );
    let snapshots = serving.json(&["snapshot", "list"]);
    assert_eq!(snapshots.as_array().unwrap().len(), 1, "{snapshots}");
    // What can't be done is said first.
    for (code, args) in [
        (6, &["snapshot", "restore", "v0@s", "--discard"][..]),
        (5, &["snapshot", "restore", "v0@no", "--discard", "--force"]),
        (
            5,
            &["snapshot", "restore", "v0@s", "--discard", "--to", "no"],
        ),
    ] {
        let (found, said) = serving.refused(args);
        assert_eq!(found, code, "{args:?}: {said}");
    }
    serving.done(&with_yes(&discard));
    // Where nothing is lost, nobody is asked.
    serving.done(&["volume", "clone", "v0", "c"]);
    serving.done(&["snapshot", "create", "c@s"]);
    serving.done(&["snapshot", "restore", "c@s"]);
}

#[test]
fn shrinking_asks_and_says_what_is_lost() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let shrink = [
        "volume",
        "resize",
        "v0",
        "--size",
        "4 MiB",
        "--force-shrink",
    ];
    let parts = ["volume v0 loses", "4 MiB, of which 0 B are mapped"];
    assert_asks(&serving, &shrink, &parts);
    let size = |size: u64| {
        assert_eq!(serving.json(&["volume", "show", "v0"])["size_bytes"], size);
    };
    size(8 << 20);
    let nobody = [
        "volume",
        "resize",
        "no",
        "--size",
        "4 MiB",
        "--force-shrink",
    ];
    assert_eq!(serving.refused(&nobody).0, 5);
    serving.done(&with_yes(&shrink));
    size(4 << 20);
    // Growing loses nothing, whatever is said.
    serving.done(&[
        "volume",
        "resize",
        "v0",
        "--size",
        "5 MiB",
        "--force-shrink",
    ]);
    size(5 << 20);
}

#[test]
fn taking_redundancy_away_asks() {
    let home = Home::new(&two_lanes_and_a_pool());
    let serving = home.serve();
    let fail = ["drive", "fail", "d1"];
    let parts = ["without drive d1, group 0 of pool p0 has no redundancy"];
    assert_asks(&serving, &fail, &parts);
    let replace = ["drive", "replace", "d1"];
    let healthy = "drive d1 is healthy: it leaves pool p0";
    let until = "until the new drive is rebuilt, group 0 of pool p0 has no redundancy";
    assert_asks(&serving, &replace, &[healthy, until]);
    assert_eq!(state(&serving, "d1"), "healthy");
    // What can't be done is said first.
    for args in [&["drive", "fail", "e0"][..], &["drive", "replace", "e0"]] {
        let (kind, said) = serving.refusal(args);
        assert_eq!(kind, "invalid", "{said}");
        assert!(said.contains("without drive 'e0'"), "{said}");
        assert!(!said.contains("--yes"), "{said}");
    }
    // A spare takes nothing with it.
    serving.add_spare("s0", "s0.img");
    serving.done(&["drive", "fail", "s0"]);
    serving.done(&with_yes(&fail));
    assert_eq!(state(&serving, "d1"), "failed");
    // What has failed already is replaced unasked.
    serving.done(&replace);
}

#[test]
fn drives_of_groups_that_keep_redundancy_go_unasked() {
    let drive = |name: &str| {
        format!("[[drive]]\nname = \"{name}\"\nfile = \"{name}.img\"\nsize = \"64 MiB\"\n")
    };
    let names = ["f0", "f1", "f2", "f3", "f4"];
    let drives: String = names.map(drive).concat();
    let pool = format!(
        "[[pool]]\nname = \"p6\"\nlevel = \"6\"\ndrives = {}\n",
        json!(names)
    );
    let home = Home::new(&format!("{SITE}{drives}{pool}"));
    let serving = home.serve();
    serving.done(&["drive", "fail", "f0"]);
    let parts = ["without drive f1, group 0 of pool p6 has no redundancy"];
    assert_asks(&serving, &["drive", "fail", "f1"], &parts);
}

#[test]
fn nobody_is_asked_for_what_can_not_be_done() {
    let site = SITE.replace("name = \"test\"", "name = \"test\"\ntrash = \"1 h\"");
    let home = Home::new(&format!("{site}{SECOND_POOL}"));
    let serving = home.serve();
    serving.done(&["volume", "clone", "v0", "gone"]);
    serving.done(&["volume", "delete", "gone", "--yes"]);
    serving.done(&["snapshot", "create", "v0@s"]);
    let a = "iqn.2026-11.dev.ashlar:a";
    let cases: &[(&str, &[&str], &str)] = &[
        ("not_found", &["volume", "delete", "no"], "volume no"),
        ("busy", &["volume", "delete", "v0"], "LUN 0 of"),
        (
            "not_found",
            &["snapshot", "delete", "v0@no"],
            "snapshot v0@no",
        ),
        (
            "not_found",
            &["export", "delete", "iqn.2026-11.dev.ashlar:no"],
            "no target",
        ),
        ("not_found", &["export", "remove-lun", a, "no"], "volume no"),
        ("invalid", &["export", "remove-lun", a, "v0"], "no LUN left"),
        ("not_found", &["pool", "destroy", "no"], "pool no"),
        ("busy", &["pool", "destroy", "p0"], "pool p0 holds v0"),
        (
            "not_found",
            &["portal", "remove", "192.0.2.1:1"],
            "no portal",
        ),
        ("busy", &["portal", "remove", "127.0.0.1:0"], "the last one"),
        ("not_found", &["drive", "remove", "no"], "drive no"),
        ("busy", &["drive", "remove", "d0"], "only a failed drive"),
        (
            "not_found",
            &["trash", "empty", "no"],
            "volume no in the trash",
        ),
        (
            "not_found",
            &["trash", "empty", "v0@no"],
            "snapshot v0@no in the trash",
        ),
        (
            "invalid",
            &["settings", "set", "site.trash=no"],
            "site.trash: found",
        ),
    ];
    for (kind, args, part) in cases {
        let (found, said) = serving.refusal(args);
        assert_eq!(found, *kind, "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {part:?} is not in: {said}");
        assert!(!said.contains("--yes"), "{args:?}: {said}");
    }
    // What can be done is asked for, and a trial does nothing.
    serving.done(&["volume", "clone", "v0", "c"]);
    serving.done(&["export", "add-lun", a, "c"]);
    for args in [
        &["export", "remove-lun", a, "c"][..],
        &["snapshot", "delete", "v0@s"],
        &["export", "delete", a],
        &["pool", "destroy", "p1"],
        &["trash", "empty", "gone"],
        &["settings", "set", "site.trash=2h"],
    ] {
        assert_asks(&serving, args, &[]);
    }
    for args in [
        &["volume", "delete", "v0", "--force"][..],
        &["volume", "delete", "v0"],
    ] {
        let (code, said) = serving.refused(args);
        let way = "`ashlar export remove-lun iqn.2026-11.dev.ashlar:a v0` first";
        assert!(code == 6 && said.contains(way), "{said}");
    }
    serving.done(&["export", "remove-lun", a, "c", "--yes"]);
    assert_asks(&serving, &["volume", "delete", "v0", "--force"], &[]);
    serving.done(&["snapshot", "show", "v0@s"]);
    serving.done(&["export", "show", a]);
    serving.done(&["pool", "show", "p1"]);
    assert_eq!(serving.json(&["trash", "list"])[0]["name"], "gone");
    home.wait_log("DELETE /api/v1/check/pools/p1: 204");
}

#[test]
fn only_the_path_makes_a_trial_and_unknown_parameters_change_nothing() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let answer = request(&serving.api, "GET /api/v1/openapi.json", "", "");
    let (_, description) = answer.split_once("\r\n\r\n").unwrap();
    let description: Value = serde_json::from_str(description).unwrap();
    let mut changes = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            if method == "get" {
                continue;
            }
            changes += 1;
            let method = method.to_uppercase();
            let path = path
                .replace("{target}", "iqn.2026-11.dev.ashlar:a")
                .replace("pools/{name}", "pools/p0")
                .replace("{name}", "v0");
            let line = format!("{method} {path}?check=true");
            let answer = request(&serving.api, &line, "", "{}");
            assert!(answer.starts_with("HTTP/1.1 400 "), "{line}: {answer}");
            let part = "the query: found \\\"check\\\"; allowed: ";
            assert!(answer.contains(part), "{line}: {answer}");
        }
    }
    assert!(changes > 50, "{changes}");
    // What has no trial is no path.
    for line in [
        "DELETE /api/v1/check/exports/iqn.2026-11.dev.ashlar:a",
        "DELETE /api/v1/check/trash",
    ] {
        let answer = request(&serving.api, line, "", "");
        assert!(answer.starts_with("HTTP/1.1 404 "), "{line}: {answer}");
    }
    serving.json(&["export", "show", "iqn.2026-11.dev.ashlar:a"]);
    // What is known is taken.
    let line = "DELETE /api/v1/volumes/v0?force=true&at_once=true";
    let answer = request(&serving.api, line, "", "");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn a_copy_over_a_volume_asks() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["volume", "create", "w", "--pool", "p0", "--size", "8 MiB"]);
    let copy = ["volume", "copy", "w", "v0", "--overwrite"];
    let parts = [
        "data of volume v0, which are lost",
        "iqn.2026-11.dev.ashlar:a",
    ];
    assert_asks(&serving, &copy, &parts);
    assert_eq!(serving.json(&["job", "list"]), json!([]));
    serving.done(&with_yes(&copy));
    // Where nothing is there, nothing is lost.
    serving.done(&["volume", "copy", "w", "new", "--overwrite"]);
}

/// The exit code of a command at a terminal where somebody types this, and what the terminal shows.
fn at_a_terminal(serving: &Serving, command: &str, typed: &str) -> (Option<i32>, String) {
    let program = env!("CARGO_BIN_EXE_ashlar");
    let mut script = Command::new("timeout")
        .args(["60", "script", "-qec", &format!("{program} {command}")])
        .arg("/dev/null")
        .env("ASHLAR_API", &serving.api)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = script.stdin.take().unwrap();
    keys.write_all(typed.as_bytes()).unwrap();
    let output = script.wait_with_output().unwrap();
    drop(keys);
    let shown = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), shown)
}

#[test]
fn destroying_a_pool_asks_for_its_name() {
    let home = Home::new(&format!("{SITE}{SECOND_POOL}"));
    let serving = home.serve();
    for other in ["yes\n", "p0\n", "\n"] {
        let (code, shown) = at_a_terminal(&serving, "pool destroy p1", other);
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("Type p1: "), "{shown}");
        assert!(shown.contains("pool p1 is kept"), "{shown}");
        serving.done(&["pool", "show", "p1"]);
    }
    let (code, shown) = at_a_terminal(&serving, "pool destroy p1", "p1\n");
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(serving.refusal(&["pool", "show", "p1"]).0, "not_found");
}
