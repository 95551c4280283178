//! What is missing at a start keeps down itself only, is named, and joins when it is there.

use crate::array::{Home, SECOND, SECOND_POOL, SECOND_VOLUME, SITE, Serving};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const FIRST: &str = "iqn.2026-11.dev.ashlar:a";

/// Two pools, each with a volume behind a target, made and stopped.
fn two_pools() -> Home {
    let home = Home::new(&format!("{SITE}{SECOND_POOL}{SECOND_VOLUME}"));
    drop(home.serve());
    home
}

/// What an initiator says of LUN 0 of a target.
fn inquiry(serving: &Serving, target: &str) -> (bool, String) {
    let url = format!("iscsi://{}/{target}/0", serving.portal);
    let output = Command::new("iscsi-inq").arg(url).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), said)
}

fn closed(serving: &Serving) -> Vec<Value> {
    let status = serving.json(&["status"]);
    status["closed_pools"].as_array().unwrap().clone()
}

/// Waits until all pools are open.
fn wait_open(serving: &Serving) {
    let is_open = |status: &Value| status["closed_pools"].as_array().unwrap().is_empty();
    serving.wait(&["status"], is_open);
}

/// What pool p0 is without, and why.
fn missing(serving: &Serving) -> String {
    let pool = serving.json(&["pool", "show", "p0"]);
    pool["missing_drives"].to_string()
}

#[test]
fn a_pool_that_can_not_be_opened_keeps_no_other_down_and_opens_when_it_can() {
    let home = two_pools();
    let serving = home.serve();
    let target = "iqn.2026-11.dev.ashlar:c";
    serving.done(&["volume", "create", "w", "--pool", "p0", "--size", "4 MiB"]);
    serving.done(&["export", "create", "--any", target, "--volume", "w"]);
    let uuid = serving.json(&["volume", "show", "v0"])["uuid"].clone();
    drop(serving);
    for drive in ["d0", "d1"] {
        let (file, away) = (format!("{drive}.img"), format!("{drive}.away"));
        fs::rename(home.file(&file), home.file(&away)).unwrap();
    }
    let serving = home.serve();
    let found = closed(&serving);
    assert_eq!((found.len(), &found[0]["name"]), (1, &"p0".into()));
    let why = found[0]["why"].to_string();
    for part in [
        "drive d0: ",
        "drive d1: ",
        "Ashlar does not create it again",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert_eq!(serving.json(&["status"])["health"], "stopped");
    let list = String::from_utf8(serving.run(&["pool", "list"]).stdout).unwrap();
    let line = "not open  pool p0, tried again by itself:";
    assert!(list.contains(line) && list.contains("p1"), "{list}");
    for args in [
        &["pool", "show", "p0"][..],
        &["volume", "create", "x", "--pool", "p0", "--size", "1 MiB"],
    ] {
        let (kind, said) = serving.refusal(args);
        assert_eq!(kind, "unavailable", "{said}");
        assert!(said.contains("pool p0"), "{said}");
    }
    // The other one is served; the targets of this one are there, and not operational.
    assert!(inquiry(&serving, SECOND).0);
    for target in [FIRST, target] {
        let (_, said) = inquiry(&serving, target);
        assert!(said.contains("unavailable"), "{said}");
        let export = serving.json(&["export", "show", target]);
        let why = export["withheld"].to_string();
        assert!(why.contains("not open: p0"), "{why}");
    }
    serving.done(&["volume", "create", "y", "--pool", "p1", "--size", "1 MiB"]);
    serving.done(&[
        "export",
        "create",
        "--any",
        "iqn.2026-11.dev.ashlar:d",
        "--volume",
        "y",
    ]);
    let kept = home.records()[1].clone().unwrap();
    assert!(kept.contains(target), "what is withheld is kept: {kept}");

    for drive in ["d0", "d1"] {
        let (file, away) = (format!("{drive}.img"), format!("{drive}.away"));
        fs::rename(home.file(&away), home.file(&file)).unwrap();
    }
    wait_open(&serving);
    let opened = |export: &Value| export["withheld"].is_null();
    for target in [FIRST, target] {
        serving.wait(&["export", "show", target], opened);
        assert!(inquiry(&serving, target).0);
    }
    assert_eq!(serving.json(&["volume", "show", "v0"])["uuid"], uuid);
    assert_eq!(serving.json(&["status"])["health"], "ok");
    assert_eq!(serving.stop("TERM").code(), Some(0));
    let serving = home.serve();
    assert_eq!(serving.json(&["status"])["exports"], 4);
}

#[test]
fn an_array_without_any_pool_comes_up_and_says_so() {
    let home = Home::new(SITE);
    drop(home.serve());
    let (d0, away) = (home.file("d0.img"), home.file("away"));
    fs::rename(&d0, &away).unwrap();
    fs::remove_file(home.file("d1.img")).unwrap();
    let serving = home.serve();
    let closed_pools = closed(&serving);
    assert_eq!(closed_pools.len(), 1);
    assert_eq!(closed_pools[0]["name"], "p0");
    assert!(home.has_logged("ERROR", &["pool p0"]), "{}", home.log());
    assert_eq!(serving.json(&["volume", "list"]), serde_json::json!([]));
    // One of the two suffices.
    fs::rename(&away, &d0).unwrap();
    wait_open(&serving);
    assert!(missing(&serving).contains("d1.img is not there"));
    assert_eq!(serving.stop("TERM").code(), Some(0));
}

#[test]
fn volumes_are_not_made_anew_while_the_pool_that_may_have_them_is_not_open() {
    let home = two_pools();
    let serving = home.serve();
    serving.done(&["volume", "move", "v1", "--pool", "p0"]);
    let moved = |volume: &Value| volume["pool"] == "p0";
    let uuid = serving.wait(&["volume", "show", "v1"], moved)["uuid"].clone();
    drop(serving);
    let (d0, d1) = (home.file("d0.img"), home.file("d1.img"));
    fs::rename(&d0, home.file("d0.away")).unwrap();
    fs::rename(&d1, home.file("d1.away")).unwrap();
    let serving = home.serve();
    let volumes = serving.json(&["volume", "list"]);
    assert_eq!(
        volumes,
        serde_json::json!([]),
        "its pool is open, and it is not there"
    );
    fs::rename(home.file("d0.away"), &d0).unwrap();
    fs::rename(home.file("d1.away"), &d1).unwrap();
    wait_open(&serving);
    assert_eq!(serving.json(&["volume", "show", "v1"])["uuid"], uuid);
}

/// Something else in the place of a drive, and what is said of it.
type Wrong = (&'static str, fn(&Path), &'static str);

const WRONG: &[Wrong] = &[
    (
        "a symbolic link to itself",
        |path| symlink(path, path).unwrap(),
        "Too many levels of symbolic links",
    ),
    (
        "a directory",
        |path| fs::create_dir(path).unwrap(),
        "neither a file nor a block device",
    ),
    (
        "a FIFO",
        |path| made(Command::new("mkfifo").arg(path)),
        "neither a file nor a block device",
    ),
    (
        "a character device",
        |path| symlink("/dev/full", path).unwrap(),
        "neither a file nor a block device",
    ),
    (
        "a label of another version",
        |path| {
            fs::copy(path.with_file_name("away"), path).unwrap();
            let file = fs::File::options().read(true).write(true).open(path);
            let file = file.unwrap();
            other_version(&file);
        },
        "format version 99",
    ),
];

fn made(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

/// Makes all labels of a drive those of a format to come.
fn other_version(file: &fs::File) {
    use std::os::unix::fs::FileExt;
    for at in engine::label::SLOT_OFFSETS {
        let mut slot = vec![0u8; engine::label::SLOT_BYTES];
        file.read_exact_at(&mut slot, at).unwrap();
        slot[12..16].copy_from_slice(&99u32.to_le_bytes());
        slot[8..12].fill(0);
        let crc = crc32c(&slot);
        slot[8..12].copy_from_slice(&crc.to_le_bytes());
        file.write_all_at(&slot, at).unwrap();
    }
}

fn crc32c(bytes: &[u8]) -> u32 {
    let byte = |crc: u32, byte: &u8| {
        let bit = |crc: u32, _| (crc >> 1) ^ (0x82f6_3b78 * (crc & 1));
        (0..8).fold(crc ^ u32::from(*byte), bit)
    };
    !bytes.iter().fold(!0, byte)
}

#[test]
fn whatever_is_in_the_place_of_a_drive_is_a_missing_drive() {
    let home = two_pools();
    let path = home.file("d1.img");
    fs::rename(&path, home.file("away")).unwrap();
    for (what, put, said) in WRONG {
        put(&path);
        let serving = home.serve();
        assert_eq!(closed(&serving), [] as [Value; 0], "{what}");
        assert_eq!(serving.json(&["status"])["health"], "degraded", "{what}");
        let why = missing(&serving);
        assert!(why.contains(said), "{what}: {why}");
        let told = serving.events_of("drive_missing");
        assert!(
            told.iter()
                .any(|text| text.contains("'d1'") && text.contains(said)),
            "{what}: {told:?}"
        );
        let log = home.log();
        let is_logged = home.has_logged("WARN", &["pool p0", "drive d1: ", said]);
        assert!(is_logged, "{what}: {log}");
        assert!(
            inquiry(&serving, FIRST).0 && inquiry(&serving, SECOND).0,
            "{what}"
        );
        drop(serving);
        let is_dir = fs::symlink_metadata(&path).unwrap().is_dir();
        if is_dir {
            fs::remove_dir(&path)
        } else {
            fs::remove_file(&path)
        }
        .unwrap();
    }
}

#[test]
fn a_dead_device_node_is_a_missing_drive() {
    let home = two_pools();
    let path = home.file("d1.img");
    fs::rename(&path, home.file("away")).unwrap();
    // Of a driver that nobody has: ENXIO, as of a device that was pulled.
    let node = Command::new("mknod")
        .arg(&path)
        .args(["b", "240", "77"])
        .status();
    if !node.unwrap().success() {
        // Only root makes nodes.
        return;
    }
    let serving = home.serve();
    let why = missing(&serving);
    let (dead, forbidden) = ("No such device or address", "permission denied");
    assert!(why.contains(dead) || why.contains(forbidden), "{why}");
    assert!(inquiry(&serving, FIRST).0);
}

#[test]
fn a_drive_that_is_held_is_done_without_and_named_when_it_is_free() {
    let home = Home::new(SITE);
    drop(home.serve());
    let file = fs::File::open(home.file("d0.img")).unwrap();
    file.lock().unwrap();
    let serving = home.serve();
    let why = missing(&serving);
    assert!(why.contains("d0.img: in use"), "{why}");
    drop(file);
    let is_back = |pool: &Value| pool["missing_drives"][0]["is_back"] == true;
    serving.wait(&["pool", "show", "p0"], is_back);
    let told = serving.events(false).join("\n");
    let advice = "with what it held before: `ashlar drive replace d0` takes it in";
    assert!(told.contains(advice), "{told}");
    serving.done(&["drive", "replace", "--yes", "d0"]);
    serving.wait_healthy();
    assert_eq!(missing(&serving), "[]");
}

#[test]
fn drives_swapped_between_pools_are_named() {
    let home = two_pools();
    fs::rename(home.file("d1.img"), home.file("x")).unwrap();
    fs::rename(home.file("e0.img"), home.file("d1.img")).unwrap();
    fs::rename(home.file("x"), home.file("e0.img")).unwrap();
    let serving = home.serve();
    let why = missing(&serving);
    assert!(
        why.contains("d1.img") && why.contains("of pool p1"),
        "{why}"
    );
    let found = closed(&serving);
    let part = "e0.img is a drive of pool p0; put it under that pool";
    assert!(found[0]["why"].to_string().contains(part), "{found:?}");
    assert!(inquiry(&serving, FIRST).0, "p0 has its other drive");
}

#[test]
fn a_file_that_is_cut_off_while_it_is_used_goes_out_of_use() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let file = fs::File::options().write(true).open(home.file("d1.img"));
    file.unwrap().set_len(1 << 20).unwrap();
    let is_failed = |drive: &Value| drive["state"] == "failed";
    serving.wait(&["drive", "show", "d1"], is_failed);
    let told = serving.events_of("drive_failed").join("\n");
    assert!(told.contains("'d1'") && told.contains("cut off"), "{told}");
    fs::remove_file(home.file("d1.img")).unwrap();
    serving.done(&["drive", "replace", "--yes", "d1"]);
    serving.wait_healthy();
}

/// An API target of a volume of pool p0.
const KEPT: &str = "iqn.2026-11.dev.ashlar:c";

fn put_away(home: &Home, drives: &[&str]) {
    for drive in drives {
        let (file, away) = (format!("{drive}.img"), format!("{drive}.away"));
        fs::rename(home.file(&file), home.file(&away)).unwrap();
    }
}

fn bring_back(home: &Home, drives: &[&str]) {
    for drive in drives {
        let (file, away) = (format!("{drive}.img"), format!("{drive}.away"));
        fs::rename(home.file(&away), home.file(&file)).unwrap();
    }
}

/// Two pools; volume w of p0 is behind a target of the API. Gives its UUID.
fn two_pools_and_a_kept_target() -> (Home, Value) {
    let home = two_pools();
    let serving = home.serve();
    serving.done(&["volume", "create", "w", "--pool", "p0", "--size", "4 MiB"]);
    serving.done(&["export", "create", "--any", KEPT, "--volume", "w"]);
    let uuid = serving.json(&["volume", "show", "w"])["uuid"].clone();
    assert_eq!(serving.stop("TERM").code(), Some(0));
    (home, uuid)
}

#[test]
fn names_that_a_pool_may_have_that_is_not_open_are_not_given_away() {
    let (home, uuid) = two_pools_and_a_kept_target();
    put_away(&home, &["d0", "d1"]);
    let serving = home.serve();
    let create =
        |name: &str| serving.run(&["volume", "create", name, "--pool", "p1", "--size", "1 MiB"]);
    assert!(create("y").status.success());
    serving.done(&["snapshot", "create", "y@s"]);
    for (name, why) in [
        ("w", "target iqn.2026-11.dev.ashlar:c shows a volume w"),
        ("v0", "target iqn.2026-11.dev.ashlar:a shows a volume v0"),
    ] {
        let output = create(name);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{said}");
        assert!(said.contains("p0"), "{said}");
        let (_, said) = serving.refused(&["volume", "rename", "y", name]);
        assert!(said.contains(why), "{said}");
        let (_, said) = serving.refused(&["volume", "clone", "y", name]);
        assert!(said.contains(why), "{said}");
    }
    bring_back(&home, &["d0", "d1"]);
    wait_open(&serving);
    let opened = |export: &Value| export["withheld"].is_null();
    serving.wait(&["export", "show", KEPT], opened);
    assert_eq!(serving.json(&["volume", "show", "w"])["uuid"], uuid);
    serving.done(&["volume", "rename", "y", "z"]);
}

#[test]
fn a_target_never_shows_another_volume_of_the_same_name() {
    let (home, uuid) = two_pools_and_a_kept_target();
    // Another volume w comes to be in p1, as a server of before may have let it.
    let exports = home.file("ashlar-configuration.json");
    fs::rename(&exports, home.file("exports.away")).unwrap();
    let alone = SITE.split("[[drive]]").next().unwrap();
    home.set_site(&format!("{alone}{SECOND_POOL}{SECOND_VOLUME}"));
    let serving = home.serve();
    serving.done(&["volume", "create", "w", "--pool", "p1", "--size", "4 MiB"]);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    fs::rename(home.file("exports.away"), &exports).unwrap();
    home.set_site(&format!("{SITE}{SECOND_POOL}{SECOND_VOLUME}"));
    put_away(&home, &["d0", "d1"]);
    let serving = home.serve();
    let withheld = |serving: &Serving| {
        let (_, said) = inquiry(serving, KEPT);
        assert!(said.contains("unavailable"), "{said}");
        serving.json(&["export", "show", KEPT])["withheld"].to_string()
    };
    let why = withheld(&serving);
    assert!(why.contains("in pool p1"), "{why}");
    // The record keeps what the target is of.
    serving.done(&["volume", "create", "y", "--pool", "p1", "--size", "1 MiB"]);
    let other = "iqn.2026-11.dev.ashlar:d";
    serving.done(&["export", "create", "--any", other, "--volume", "y"]);
    let kept = home.records()[1].clone().unwrap();
    assert!(kept.contains(uuid.as_str().unwrap()), "{kept}");
    // With its drives p0 is not open either, and is left alone until the name is free.
    bring_back(&home, &["d0", "d1"]);
    let is_named = |status: &Value| status["closed_pools"].to_string().contains("volume w: ");
    serving.wait(&["status"], is_named);
    let written = || {
        fs::metadata(home.file("d0.img"))
            .unwrap()
            .modified()
            .unwrap()
    };
    // Nothing tells that the server has looked for closed pools again, which it does every 2 s. That
    // it leaves this one alone shows only while some looks go by: the first ends what is under way.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let before = written();
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert_eq!(written(), before, "it is opened again and again");
    withheld(&serving);
    assert!(inquiry(&serving, SECOND).0);
    serving.done(&["volume", "rename", "w", "x"]);
    wait_open(&serving);
    let opened = |export: &Value| export["withheld"].is_null();
    serving.wait(&["export", "show", KEPT], opened);
    assert_eq!(serving.json(&["volume", "show", "w"])["uuid"], uuid);
    assert!(inquiry(&serving, KEPT).0);
}

#[test]
fn a_target_that_is_withheld_is_served_as_soon_as_its_volume_is_back() {
    let (home, uuid) = two_pools_and_a_kept_target();
    let exports = home.file("ashlar-configuration.json");
    fs::rename(&exports, home.file("exports.away")).unwrap();
    let serving = home.serve();
    serving.done(&["volume", "delete", "w", "--yes"]);
    serving.done(&["volume", "create", "w", "--pool", "p0", "--size", "4 MiB"]);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    fs::rename(home.file("exports.away"), &exports).unwrap();
    let serving = home.serve();
    assert_eq!(closed(&serving), [] as [Value; 0]);
    let why = serving.json(&["export", "show", KEPT])["withheld"].to_string();
    assert!(why.contains("in pool p0"), "{why}");
    assert!(inquiry(&serving, KEPT).1.contains("unavailable"));
    // It is not what the target is of, and nobody's.
    serving.done(&["volume", "delete", "w", "--yes", "--at-once"]);
    serving.done(&["trash", "restore", "w"]);
    let served = |export: &Value| export["withheld"].is_null();
    serving.wait(&["export", "show", KEPT], served);
    assert_eq!(serving.json(&["volume", "show", "w"])["uuid"], uuid);
    assert!(inquiry(&serving, KEPT).0);
}

#[test]
fn no_part_of_a_group_is_taken_for_all_of_it_while_a_pool_is_not_open() {
    let home = two_pools();
    let serving = home.serve();
    serving.done(&["group", "create", "erp", "v0", "v1"]);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    put_away(&home, &["d0", "d1"]);
    let serving = home.serve();
    for command in [
        &["group", "snapshot", "erp", "part"][..],
        &["group", "delete", "erp"],
    ] {
        let (_, text) = serving.refused(command);
        assert!(text.contains("not open: p0"), "{command:?}: {text}");
    }
    bring_back(&home, &["d0", "d1"]);
    wait_open(&serving);
    serving.done(&["group", "snapshot", "erp", "all"]);
    for snapshot in ["v0@all", "v1@all"] {
        serving.done(&["volume", "show", snapshot]);
    }
    let (_, text) = serving.refused(&["volume", "show", "v1@part"]);
    assert!(text.contains("v1@part"), "{text}");
}
