//! The trash: what is deleted comes back, until its time is over.

use crate::array::{Home, SITE};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

const OTHER: &str = "iqn.2026-11.dev.ashlar:other";

fn site(trash: &str) -> String {
    SITE.replacen(
        "name = \"test\"",
        &format!("name = \"test\"\ntrash = {trash}"),
        1,
    )
}

fn names(list: &Value) -> Vec<&str> {
    let all = list.as_array().unwrap().iter();
    all.map(|one| one["name"].as_str().unwrap()).collect()
}

fn create(serving: &crate::array::Serving, name: &str) -> String {
    let made = [
        "volume", "create", name, "--pool", "p0", "--size", "1 MiB", "--thick",
    ];
    serving.json(&made)["uuid"].as_str().unwrap().to_owned()
}

/// A script that was meant to ask destroys nothing.
#[test]
fn nothing_is_deleted_unasked_where_nobody_can_be_asked() {
    let home = Home::new(&site("\"1 h\""));
    let serving = home.serve();
    // There is nothing to be asked of.
    let empty = serving.run(&["trash", "empty"]);
    assert!(empty.status.success(), "{empty:?}");
    assert_eq!(empty.stdout, b"the trash is empty\n");
    create(&serving, "a");
    create(&serving, "b");
    serving.done(&["volume", "delete", "--yes", "b"]);
    serving.done(&["snapshot", "create", "a@s"]);
    serving.done(&["export", "create", "--any", OTHER, "--volume", "a"]);
    for (args, what) in [
        (&["volume", "delete", "a", "--force"][..], "volume a"),
        (&["snapshot", "delete", "a@s"], "snapshot a@s"),
        (&["export", "delete", OTHER], "target iqn."),
        (&["trash", "empty"], "everything in the trash"),
    ] {
        let (code, said) = serving.refused(args);
        assert!(code == 2 && said.contains(what), "{said}");
        assert!(said.contains("is kept") && said.contains("--yes"), "{said}");
    }
    assert_eq!(serving.json(&["volume", "show", "a"])["name"], "a");
    assert_eq!(serving.json(&["export", "show", OTHER])["target"], OTHER);
    serving.done(&["snapshot", "show", "a@s"]);
}

#[test]
fn a_deleted_volume_comes_back_from_the_trash_after_a_restart_too() {
    let home = Home::new(&site("\"1 h\""));
    let serving = home.serve();
    let uuid = create(&serving, "a");
    serving.done(&["volume", "tag", "a", "vm=x"]);
    let deleted = serving.json(&["volume", "delete", "--yes", "a"]);
    assert_eq!(deleted["uuid"], uuid);
    let trash = serving.json(&["trash", "list"]);
    assert_eq!(trash[0]["until_unix_s"], deleted["until_unix_s"]);
    let kept =
        trash[0]["until_unix_s"].as_u64().unwrap() - trash[0]["since_unix_s"].as_u64().unwrap();
    // Promised, and not mapped.
    assert_eq!((kept, &trash[0]["mapped_bytes"]), (3600, &json!(0)));
    assert_eq!(names(&serving.json(&["volume", "list"])), ["v0"]);
    let exported = [
        "export",
        "create",
        "--any",
        "iqn.2026-11.dev.ashlar:b",
        "--volume",
        "a",
    ];
    assert_eq!(serving.refused(&exported).0, 5);
    // Its name is free.
    let second = create(&serving, "a");
    assert_ne!(second, uuid);
    assert_eq!(serving.stop("KILL").code(), None);

    let serving = home.serve();
    assert_eq!(names(&serving.json(&["trash", "list"])), ["a"]);
    assert_eq!(serving.refused(&["trash", "restore", "a"]).0, 6);
    assert_eq!(
        serving
            .refused(&["trash", "restore", "a", "--name", "b c"])
            .0,
        2
    );
    let back = serving.json(&["trash", "restore", &uuid, "--name", "b"]);
    assert_eq!(
        (&back["uuid"], &back["tags"]["vm"]),
        (&json!(uuid), &json!("x"))
    );
    assert_eq!(names(&serving.json(&["volume", "list"])), ["a", "b", "v0"]);
    assert_eq!(serving.refused(&["trash", "restore", &uuid]).0, 5);
    assert_eq!(serving.refused(&["trash", "empty", "--yes", "b"]).0, 5);

    serving.done(&["volume", "delete", "--yes", "a"]);
    serving.done(&["volume", "delete", "--yes", "b"]);
    serving.done(&["trash", "empty", "--yes", &uuid]);
    assert_eq!(names(&serving.json(&["trash", "list"])), ["a"]);
    serving.done(&["trash", "empty", "--yes"]);
    assert_eq!(serving.json(&["trash", "list"]), json!([]));
    assert_eq!(serving.json(&["pool", "show", "p0"])["mapped_bytes"], 0);
}

#[test]
fn an_exported_volume_goes_by_force_only() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let (kind, said) = serving.refusal(&["volume", "delete", "--yes", "v0"]);
    assert_eq!(kind, "busy", "{said}");
    assert!(said.contains("LUN 0 of target"), "{said}");
    serving.done(&["volume", "create", "w", "--pool", "p0", "--size", "1 MiB"]);
    serving.done(&["volume", "create", "x", "--pool", "p0", "--size", "1 MiB"]);
    let target = "iqn.2026-11.dev.ashlar:b";
    serving.done(&[
        "export", "create", "--any", target, "--volume", "w", "--volume", "x",
    ]);
    let (code, said) = serving.refused(&["volume", "delete", "--yes", "w", "--force"]);
    assert_eq!(code, 6, "{said}");
    assert!(said.contains("and others"), "{said}");
    serving.done(&["volume", "delete", "--yes", "v0", "--force"]);
    assert_eq!(names(&serving.json(&["volume", "list"])), ["w", "x"]);
    let exports = serving.json(&["export", "list"]);
    assert_eq!(exports.as_array().unwrap().len(), 1);
    assert_eq!(names(&serving.json(&["trash", "list"])), ["v0"]);
}

#[test]
fn the_trash_lets_go_when_the_time_is_over() {
    let home = Home::new(&site("\"1 s\""));
    let serving = home.serve();
    create(&serving, "a");
    serving.done(&["snapshot", "create", "a@s"]);
    serving.done(&["snapshot", "delete", "--yes", "a@s"]);
    serving.done(&["volume", "delete", "--yes", "a"]);
    serving.wait(&["trash", "list"], |trash| trash == &json!([]));
    serving.wait(&["pool", "show", "p0"], |pool| pool["mapped_bytes"] == 0);
    let events = serving.events_of("trash");
    for what in ["volume 'a'", "snapshot 'a@s'"] {
        let is_told = |event: &&String| event.contains(what) && event.contains("its time");
        assert_eq!(events.iter().filter(is_told).count(), 1, "{events:?}");
    }
}

#[test]
fn without_a_trash_volumes_are_gone_at_once() {
    let home = Home::new(&site("0"));
    let serving = home.serve();
    create(&serving, "a");
    let deleted = serving.json(&["volume", "delete", "--yes", "a"]);
    assert_eq!(deleted["until_unix_s"], json!(null));
    assert_eq!(serving.json(&["trash", "list"]), json!([]));
    assert_eq!(serving.json(&["pool", "show", "p0"])["mapped_bytes"], 0);
}

#[test]
fn a_pool_without_room_takes_it_from_the_trash_the_oldest_first() {
    let home = Home::new(&site("\"30 d\""));
    let serving = home.serve();
    let pool = serving.json(&["pool", "show", "p0"]);
    let capacity = pool["capacity_bytes"].as_u64().unwrap();
    let old = create(&serving, "old");
    let young = create(&serving, "young");
    serving.done(&["volume", "delete", "--yes", "old"]);
    // The trash counts seconds: the other one goes there in a later second.
    let trash = serving.json(&["trash", "list"]);
    let since = trash[0]["since_unix_s"].as_u64().unwrap();
    serving.wait(&["trash", "list"], |_| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap().as_secs() > since
    });
    serving.done(&["volume", "delete", "--yes", "young"]);
    // All but two pages.
    let size = format!("{} KiB", (capacity - (2 << 20) - (512 << 10)) >> 10);
    let fill = [
        "volume", "create", "full", "--pool", "p0", "--size", &size, "--thick",
    ];
    serving.done(&fill);
    let trash = serving.wait(&["trash", "list"], |trash| trash[0]["uuid"] != old);
    if let Some(left) = trash.as_array().unwrap().first() {
        assert_eq!(left["uuid"], young);
    }
    let events = serving.events_of("trash");
    let is_told = |text: &String| text.contains("'old'") && text.contains("no room");
    assert!(events.iter().any(is_told), "{events:?}");
}

#[test]
fn a_snapshot_comes_back_from_the_trash() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["snapshot", "create", "v0@a"]);
    let deleted = serving.json(&["snapshot", "delete", "v0@a", "--yes"]);
    assert!(deleted["until_unix_s"].is_u64(), "{deleted:#}");
    assert_eq!(serving.json(&["snapshot", "list"]), json!([]));
    assert_eq!(serving.json(&["trash", "list"])[0]["name"], "v0@a");
    // Its name is free meanwhile.
    serving.done(&["snapshot", "create", "v0@a"]);
    let (_, said) = serving.refused(&["trash", "restore", "v0@a"]);
    assert!(said.contains("v0@a already"), "{said}");
    drop(serving);
    let serving = home.serve();
    serving.done(&["trash", "restore", "v0@a", "--name", "b"]);
    let names = serving.json(&["snapshot", "list"]);
    let names: Vec<&Value> = names
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, ["v0@a", "v0@b"]);
    let gone = serving.json(&["snapshot", "delete", "v0@b", "--yes", "--at-once"]);
    assert_eq!(gone["until_unix_s"], Value::Null);
    assert_eq!(serving.json(&["trash", "list"]), json!([]));
}
