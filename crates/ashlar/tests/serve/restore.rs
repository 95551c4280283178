//! Restoring, also after a SANITIZE, and snapshots of several volumes at one instant, by command.

use crate::array::{Home, SECOND_POOL, SITE, Serving, two_lanes_and_a_pool};
use crate::moves;
use serde_json::{Value, json};

fn names(list: &Value) -> Vec<&str> {
    let all = list.as_array().unwrap().iter();
    all.map(|one| one["name"].as_str().unwrap()).collect()
}

fn mapped(serving: &Serving, name: &str) -> u64 {
    let kind = if name.contains('@') {
        "snapshot"
    } else {
        "volume"
    };
    serving.json(&[kind, "show", name])["mapped_bytes"]
        .as_u64()
        .unwrap()
}

/// Writes all of `v0`, which is LUN 0 of the site's target.
pub fn fill(serving: &Serving) {
    let url = format!("iscsi://{}/iqn.2026-11.dev.ashlar:a/0", serving.portal);
    serving.done(&[
        "load",
        "rand-4k-read",
        "--target",
        &url,
        "--fill",
        "--duration",
        "1s",
        "--warmup",
        "0s",
    ]);
}

#[test]
fn a_volume_becomes_what_it_was_and_back_again() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let whole = 8 << 20;
    serving.done(&["snapshot", "create", "v0@empty"]);
    fill(&serving);
    assert_eq!(
        (mapped(&serving, "v0"), mapped(&serving, "v0@empty")),
        (whole, 0)
    );

    let before = serving.json(&["snapshot", "list"]);
    let (kind, why) = serving.refusal(&["snapshot", "restore", "v0@empty"]);
    assert_eq!(kind, "busy", "{why}");
    assert!(why.contains("LUN 0 of iqn.2026-11.dev.ashlar:a"), "{why}");
    // A target keeps one LUN: the last one goes with it.
    let way = "`ashlar export delete iqn.2026-11.dev.ashlar:a`";
    assert!(why.contains(way), "{why}");
    assert_eq!(
        serving.json(&["snapshot", "list"]),
        before,
        "nothing has changed"
    );
    assert_eq!(mapped(&serving, "v0"), whole);

    serving.done(&["snapshot", "restore", "v0@empty", "--force", "--yes"]);
    assert_eq!(
        (mapped(&serving, "v0"), mapped(&serving, "v0@before-empty")),
        (0, whole)
    );
    let (kind, why) = serving.refusal(&["snapshot", "restore", "v0@empty", "--force", "--yes"]);
    assert_eq!(kind, "exists", "{why}");
    assert!(
        why.contains("snapshot v0@before-empty") && why.contains("--keep NAME"),
        "{why}"
    );
    let again = [
        "snapshot",
        "restore",
        "v0@before-empty",
        "--discard",
        "--yes",
        "--force",
    ];
    serving.done(&again);
    assert_eq!(mapped(&serving, "v0"), whole);
    assert_eq!(
        names(&serving.json(&["snapshot", "list"])),
        ["v0@before-empty", "v0@empty"]
    );
    assert_eq!(serving.stop("KILL").code(), None);
    let serving = home.serve();
    assert_eq!(
        (mapped(&serving, "v0"), mapped(&serving, "v0@empty")),
        (whole, 0)
    );
}

#[test]
fn what_can_not_be_restored_is_refused() {
    let home = Home::new(&format!("{SITE}{SECOND_POOL}"));
    let serving = home.serve();
    let create = |name: &str, pool: &str, more: &[&str]| {
        let made = ["volume", "create", name, "--pool", pool, "--size", "1 MiB"];
        serving.done(&[&made[..], more].concat());
    };
    create("a", "p0", &[]);
    create("b", "p1", &[]);
    create("small", "p0", &[]);
    serving.done(&["snapshot", "create", "a@s"]);
    serving.done(&["snapshot", "create", "v0@s"]);
    let cases: &[(&str, &[&str], &str)] = &[
        ("wrong", &["a"], "snapshot: found \"a\""),
        ("not_found", &["a@no"], "snapshot a@no"),
        ("invalid", &["a@s", "--to", "b"], "where b is"),
        ("invalid", &["v0@s", "--to", "small"], "grow it first"),
        ("not_found", &["a@s", "--to", "no"], "volume no"),
        ("exists", &["a@s", "--keep", "s"], "--keep NAME"),
        (
            "invalid",
            &["a@s", "--keep", "of/two"],
            "name: found \"of/two\"",
        ),
    ];
    let before = serving.json(&["snapshot", "list"]);
    for (kind, args, expected) in cases {
        let (found, why) = serving.refusal(&[&["snapshot", "restore"], *args].concat());
        assert_eq!(found, *kind, "{args:?}: {why}");
        assert!(why.contains(expected), "{args:?}: {why}");
    }
    assert_eq!(serving.json(&["snapshot", "list"]), before);
}

#[test]
fn several_are_taken_at_one_instant_wherever_they_are() {
    let home = Home::new(&two_lanes_and_a_pool());
    let serving = home.serve();
    for (name, pool) in [("a", "p0"), ("b", "p0"), ("c", "p1")] {
        serving.done(&["volume", "create", name, "--pool", pool, "--size", "1 MiB"]);
    }
    let taken = serving.json(&["snapshot", "create", "a@n", "b@n", "c@n", "v0@n"]);
    let mut found = names(&taken);
    found.sort_unstable();
    assert_eq!(found, ["a@n", "b@n", "c@n", "v0@n"]);
    let at: Vec<&Value> = taken
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["at_unix_s"])
        .collect();
    assert!(at.iter().all(|one| *one == at[0]), "{at:?}");
    // One that can't be taken: none is.
    for (code, args) in [(6, ["a@m", "c@n"]), (5, ["a@m", "no@m"]), (2, ["a@m", "b"])] {
        let (found, why) = serving.refused(&[&["snapshot", "create"][..], &args].concat());
        assert_eq!(found, code, "{why}");
    }
    assert_eq!(
        serving
            .json(&["snapshot", "list"])
            .as_array()
            .unwrap()
            .len(),
        4
    );
    assert_eq!(
        serving.json(&["snapshot", "show", "c@n"])["volume"],
        json!("c")
    );
}

/// Snapshots follow their volume's name: not onto a name that one in another pool has.
#[test]
fn a_name_is_taken_when_a_snapshot_would_get_one_that_is() {
    let home = Home::new(&format!("{SITE}{SECOND_POOL}"));
    let serving = home.serve();
    for (name, pool) in [("a", "p0"), ("b", "p1"), ("c", "p1")] {
        serving.done(&["volume", "create", name, "--pool", pool, "--size", "1 MiB"]);
    }
    serving.done(&["snapshot", "create", "a@n", "b@n"]);
    serving.done(&["volume", "delete", "b", "--yes", "--at-once"]);
    let (kind, why) = serving.refusal(&["volume", "rename", "a", "b"]);
    assert_eq!(kind, "exists", "{why}");
    assert!(
        why.contains("snapshot b@n") && why.contains("pool p1"),
        "{why}"
    );
    serving.done(&["volume", "delete", "a", "--yes"]);
    let (kind, why) = serving.refusal(&["trash", "restore", "a", "--name", "b"]);
    assert_eq!(kind, "exists", "{why}");
    serving.done(&["trash", "restore", "a"]);
    // Without snapshots the name is free.
    serving.done(&["volume", "rename", "c", "b"]);
    assert_eq!(names(&serving.json(&["snapshot", "list"])), ["a@n", "b@n"]);
}

/// What the memo of `v0` is while nothing serves it; `new` takes its place.
fn memo(home: &Home, new: Option<Vec<u8>>) -> Vec<u8> {
    let files = ["d0.img", "d1.img"];
    let visit = |world| async move {
        let pool = moves::open(&world, home, &files).await;
        let volume = pool.volume("v0").unwrap();
        if let Some(new) = new {
            volume.keep_memo(new).await.unwrap();
        }
        let memo = volume.memo();
        pool.close().await.unwrap();
        memo
    };
    world_real::run(visit).unwrap()
}

/// A SANITIZE of `v0` has failed, then one is under way.
#[test]
fn a_restored_volume_is_not_erased_by_a_sanitize_from_before() {
    let images = tempfile::tempdir().unwrap();
    let allowed = images.path();
    let home = Home::new(&format!("[images]\ndirectories = [{allowed:?}]\n{SITE}"));
    let image = allowed.join("half.img");
    let serving = home.serve();
    fill(&serving);
    serving.done(&["snapshot", "create", "v0@full"]);
    assert!(serving.stop("TERM").success());
    memo(&home, Some(vec![2, 3]));

    let serving = home.serve();
    let discard = ["snapshot", "restore", "v0@full", "--discard", "--yes"];
    let (kind, why) = serving.refusal(&[&discard[..], &["--force"]].concat());
    assert_eq!(kind, "busy", "{why}");
    assert!(why.contains("from its export"), "{why}");
    serving.done(&["export", "delete", "iqn.2026-11.dev.ashlar:a", "--yes"]);
    let sound = [
        "volume", "create", "sound", "--pool", "p0", "--size", "1 MiB",
    ];
    serving.done(&sound);
    assert!(serving.stop("TERM").success());
    memo(&home, Some(vec![2, 1]));

    let serving = home.serve();
    let cases: &[&[&str]] = &[
        &["snapshot", "create", "v0@half"],
        &["snapshot", "restore", "v0@full"],
        &["volume", "clone", "v0", "half"],
        &["volume", "copy", "v0", "half"],
        &["volume", "copy", "sound", "v0", "--overwrite", "--yes"],
        &["volume", "export", "v0", image.to_str().unwrap()],
    ];
    for case in cases {
        let (kind, why) = serving.refusal(case);
        assert_eq!(kind, "busy", "{case:?}: {why}");
        assert!(why.contains("SANITIZE of volume v0"), "{why}");
    }
    serving.done(&discard);
    assert_eq!(mapped(&serving, "v0"), 8 << 20);
    serving.done(&["snapshot", "create", "v0@sound"]);
    assert!(serving.stop("TERM").success());
    assert!(memo(&home, None).is_empty(), "nothing erases it");
}

#[test]
fn a_snapshot_in_a_pool_with_little_room_is_warned_of() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let said = |args: &[&str]| serving.warnings(args);
    fill(&serving);
    assert_eq!(said(&["snapshot", "create", "v0@roomy"]), "");
    let pool = serving.json(&["pool", "show", "p0"]);
    let rest = pool["free_bytes"].as_u64().unwrap() - (4 << 20);
    let (rest, args) = (
        format!("{rest} B"),
        ["volume", "create", "thick", "--thick"],
    );
    serving.done(&[&args[..], &["--pool", "p0", "--size", &rest]].concat());
    for args in [
        &["snapshot", "create", "v0@tight"][..],
        &["volume", "clone", "v0", "copy"],
    ] {
        let warning = said(args);
        let parts = ["pool p0 has 4 MiB free", "need 8 MiB", "writes fail"];
        let is_told = parts.iter().all(|part| warning.contains(part));
        assert!(is_told, "{args:?}: {warning}");
        assert_eq!(warning.lines().count(), 1, "{warning}");
    }
}

#[test]
fn a_snapshot_that_frees_nothing_says_so_when_it_is_deleted() {
    let home = Home::new(SITE);
    let serving = home.serve();
    fill(&serving);
    let delete = |snapshot: &str| {
        let output = serving.run(&["snapshot", "delete", "--yes", "--at-once", snapshot]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    serving.done(&["snapshot", "create", "v0@shared"]);
    let (code, said) = serving.refused(&["snapshot", "delete", "v0@shared"]);
    let nothing = "the deletion of v0@shared frees nothing: volumes, clones or other snapshots \
                   share all of its 8 MiB\n";
    assert_eq!(code, 2, "{said}");
    assert!(said.starts_with(nothing), "{said}");
    assert!(delete("v0@shared").ends_with(nothing));
    // What hosts have overwritten since is the snapshot's own.
    serving.done(&["snapshot", "create", "v0@own"]);
    fill(&serving);
    assert_eq!(delete("v0@own"), "snapshot v0@own is deleted\n");
}
