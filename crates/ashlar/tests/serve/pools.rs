//! Pools made and destroyed by command, and what starts make of makings that were cut short.

use crate::array::{Home, SECOND_POOL, SITE, Serving, ashlar};
use crate::settings::{CREATE, pools};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// As with a data directory that was restored from a backup, while the drives are not mounted.
#[test]
fn a_pool_that_no_record_knows_is_not_made_again_at_a_start() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&CREATE);
    let uuid = serving.json(&["pool", "show", "new"])["uuid"].clone();
    assert!(serving.stop("TERM").success());
    let record = home.file("ashlar-data.json");
    let mut made = made_pools(&record);
    let recorded = made["content"]["pools"].as_object_mut().unwrap();
    assert!(recorded.remove("new").is_some());
    fs::write(&record, made.to_string()).unwrap();
    let files =
        ["n0.img", "n1.img"].map(|name| (home.file(name), home.file(&format!("{name}.away"))));
    for (path, away) in &files {
        fs::rename(path, away).unwrap();
    }
    // The others are served, and nothing is made where the drives were.
    let serving = home.serve();
    assert_eq!(pools(&serving), ["p0"]);
    let status: Value = serde_json::from_slice(&serving.run(&["status", "--json"]).stdout).unwrap();
    let closed = &status["closed_pools"][0];
    assert_eq!(closed["name"], "new", "{status}");
    assert!(
        closed["why"].to_string().contains("bring its drives back"),
        "{closed}"
    );
    for (path, away) in &files {
        assert!(!path.exists());
        fs::rename(away, path).unwrap();
    }
    let is_open = |status: &Value| status["closed_pools"] == json!([]);
    serving.wait(&["status"], is_open);
    assert!(serving.stop("TERM").success());
    let serving = home.serve();
    assert_eq!(serving.json(&["pool", "show", "new"])["uuid"], uuid);
}

#[test]
fn a_pool_that_cannot_be_made_leaves_nothing() {
    let home = Home::new(SITE);
    let serving = home.serve();
    fs::write(home.file("mine.img"), vec![7u8; 64 << 20]).unwrap();
    fs::write(home.file("short.img"), vec![0u8; 70_000_000]).unwrap();
    let (before, records) = (home.listing(), home.records());
    let with = |drives: &[&str]| {
        let fixed = ["pool", "create", "new", "--level", "10"];
        let size: &[&str] = match drives[0] {
            "short.img" => &[],
            _ => &["--size", "64 MiB"],
        };
        serving.refused(&[&fixed[..], size, drives].concat())
    };
    for (drives, why) in [
        (&["n0.img"][..], "an even number of drives"),
        (&["n0.img", "mine.img"][..], "mine.img"),
        // Two drives that are wrong in one way are one line.
        (
            &["short.img", "n1=short.img"][..],
            "error: short.img: found a size of 70000000 bytes; allowed: 64 MiB to 1 PiB, a multiple of \
             4096 bytes; the nearest: \"69996544 B\", \"70000640 B\"\n",
        ),
        (&["n0.img", "x=d1.img"][..], "d1.img is drive d1 of pool p0"),
        (&["n0.img", "d1=n1.img"][..], "there is a drive d1 already"),
        (&["n0.img", "n0=n1.img"][..], "drive.name: found \"n0\""),
        (
            &["n0.img", "/proc/n1.img"][..],
            "drive n1: /proc/n1.img: drives may be added from",
        ),
        (
            &["n0.img", "ashlar-n1.img"][..],
            "kept for Ashlar's own files",
        ),
    ] {
        let (code, said) = with(drives);
        assert!([2, 6].contains(&code), "{drives:?}: {code} {said}");
        assert!(said.contains(why), "{drives:?}: {said}");
        assert_eq!(home.listing(), before, "{drives:?}");
        assert_eq!(home.records()[1], records[1], "{drives:?}");
    }
    let (kind, said) = serving.refusal(&[
        "pool", "create", "p0", "--level", "simple", "--size", "64 MiB", "n.img",
    ]);
    assert_eq!(kind, "exists", "{said}");
    assert!(said.contains("pool p0"), "{said}");
    let (_, said) = serving.refused(&["pool", "create", "new", "--level", "simple", "n.img"]);
    assert!(said.contains("size_bytes is missing"), "{said}");
    let decimal = [
        "pool", "create", "new", "--level", "simple", "--size", "1 GB", "n.img",
    ];
    let (_, said) = serving.refused(&decimal);
    let nearest = "the nearest: \"999997440 B\", \"1000001536 B\"";
    assert!(said.contains(nearest), "{said}");
    assert_eq!(pools(&serving), ["p0"]);
    assert_eq!(home.listing(), before);
}

#[test]
fn a_pool_is_destroyed_when_it_is_empty_and_its_drives_are_free() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&CREATE);
    serving.done(&["volume", "create", "v9", "--pool", "new", "--size", "4 MiB"]);
    let (code, said) = serving.refused(&["pool", "destroy", "new"]);
    assert_eq!(code, 6, "before anybody is asked: {said}");
    let (_, said) = serving.refused(&["pool", "destroy", "new", "--yes"]);
    assert!(said.contains("pool new holds v9"), "{said}");
    serving.done(&["volume", "delete", "v9", "--yes"]);
    let (_, said) = serving.refused(&["pool", "destroy", "new"]);
    assert!(said.contains("v9 in its trash"), "{said}");
    serving.done(&["pool", "destroy", "new", "--yes"]);
    assert_eq!(pools(&serving), ["p0"]);
    for args in [
        &["pool", "destroy", "new", "--yes"][..],
        &["volume", "create", "v", "--pool", "new", "--size", "1 MiB"],
    ] {
        let (kind, said) = serving.refusal(args);
        assert_eq!(kind, "not_found", "{said}");
        assert!(said.contains("pool new"), "{said}");
    }
    // Names and files are free, at once and after a restart.
    let identity = |serving: &Serving| {
        serving.done(&CREATE);
        serving.done(&["volume", "create", "v9", "--pool", "new", "--size", "1 MiB"]);
        let pool = serving.json(&["pool", "show", "new"])["uuid"].clone();
        let volume = serving.json(&["volume", "show", "v9"])["uuid"].clone();
        serving.done(&["volume", "delete", "v9", "--yes", "--at-once"]);
        serving.done(&["pool", "destroy", "new", "--yes"]);
        (pool, volume)
    };
    // Hosts know a LUN by its identity: another one must not have it.
    let (first, second) = (identity(&serving), identity(&serving));
    assert!(
        first.0 != second.0 && first.1 != second.1,
        "{first:?} {second:?}"
    );
    assert!(serving.stop("TERM").success());
    let serving = home.serve();
    assert_eq!(pools(&serving), ["p0"]);
    serving.done(&[
        "drive",
        "add-spare",
        "s",
        "--pool",
        "p0",
        "--file",
        "n0.img",
    ]);
}

/// As after a crash between the record and the wiping of drives.
#[test]
fn a_destruction_that_was_cut_short_is_ended_by_the_next_start() {
    let home = Home::new(&format!("{SITE}{SECOND_POOL}"));
    let serving = home.serve();
    let uuid = serving.json(&["pool", "show", "p1"])["uuid"].clone();
    drop(serving);
    let record = home.file("ashlar-data.json");
    let mut made = made_pools(&record);
    made["content"]["pools"]["p1"] = json!({
        "state": "being_destroyed", "uuid": uuid, "drives": [home.file("e0.img")],
    });
    fs::write(&record, made.to_string()).unwrap();
    let serving = home.serve();
    assert_eq!(pools(&serving), ["p0"]);
    home.wait_log("destruction was cut");
    let start = fs::read(home.file("e0.img")).unwrap();
    assert!(start[..1 << 20].iter().all(|byte| *byte == 0));
    assert!(serving.stop("TERM").success());
    assert_eq!(pools(&home.serve()), ["p0"]);
}

#[test]
fn a_pool_from_elsewhere_is_never_made_anew() {
    let home = Home::new(SITE);
    assert!(home.serve().stop("TERM").success());
    let other = Home::new(SITE);
    fs::create_dir(other.data()).unwrap();
    for name in ["d0.img", "d1.img"] {
        fs::rename(home.file(name), other.file(name)).unwrap();
    }
    assert!(other.serve().stop("TERM").success());
    for name in ["d0.img", "d1.img"] {
        fs::rename(other.file(name), home.file(name)).unwrap();
    }
    let serving = other.serve();
    assert_eq!(serving.json(&["status"])["closed_pools"][0]["name"], "p0");
    assert!(!other.file("d0.img").exists());
}

#[test]
fn a_pool_that_a_job_is_at_work_on_is_not_destroyed() {
    let home = Home::new(&format!("{SITE}{SECOND_POOL}"));
    let serving = home.serve();
    let images = tempfile::tempdir().unwrap();
    let path = images.path().join("a.raw");
    fs::write(&path, vec![1u8; 4 << 20]).unwrap();
    let directories = format!("images.directories={}", images.path().display());
    serving.done(&["settings", "set", &directories]);
    let mut import = ashlar();
    import.args([
        "volume",
        "import",
        path.to_str().unwrap(),
        "--pool",
        "p1",
        "--name",
        "i",
    ]);
    import
        .args(["--rate", "64 KiB"])
        .env("ASHLAR_API", &serving.api);
    let mut import = import.stdout(std::process::Stdio::null()).spawn().unwrap();
    serving.wait(&["job", "list"], |jobs| jobs[0]["state"] == "running");
    let (kind, said) = serving.refusal(&["pool", "destroy", "p1", "--yes"]);
    assert_eq!(kind, "busy", "{said}");
    assert!(said.contains("job 1") && said.contains("pool p1"), "{said}");
    serving.done(&["job", "cancel", "1"]);
    let _ = import.wait();
    let ended = |jobs: &Value| jobs[0]["state"] == "cancelled";
    serving.wait(&["job", "list"], ended);
    serving.done(&["pool", "destroy", "p1", "--yes"]);
}

/// The pool was opened by this process, and not made by it.
#[test]
fn a_pool_that_a_start_has_opened_is_destroyed_as_well() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&CREATE);
    drop(serving);
    let serving = home.serve();
    serving.done(&["pool", "destroy", "new", "--yes"]);
    let start = fs::read(home.file("n0.img")).unwrap();
    assert!(
        start[..1 << 20].iter().all(|byte| *byte == 0),
        "{}",
        home.log()
    );
    serving.done(&CREATE);
    drop(serving);
    assert_eq!(pools(&home.serve()), ["new", "p0"]);
}

/// An array that has made pool `new` and has stopped, and where its record of pools is.
fn stopped_with_new_pool() -> (Home, PathBuf) {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&CREATE);
    drop(serving);
    let record = home.file("ashlar-data.json");
    (home, record)
}

/// The record of pools.
fn made_pools(record: &Path) -> Value {
    serde_json::from_slice(&fs::read(record).unwrap()).unwrap()
}

/// As of a kill while a refused creation looks at drives that hold a pool of the same name.
#[test]
fn a_making_that_was_cut_short_takes_no_pool_that_lies_on_the_drives() {
    let (home, record) = stopped_with_new_pool();
    let mut made = made_pools(&record);
    let uuid = made["content"]["pools"]["new"]["uuid"].clone();
    made["content"]["pools"]["new"] = json!({ "state": "being_made", "new_files": [] });
    fs::write(&record, made.to_string()).unwrap();
    let serving = home.serve();
    assert_eq!(pools(&serving), ["p0"]);
    home.wait_log("making was cut");
    let (kind, said) = serving.refusal(&CREATE);
    assert_eq!(kind, "exists", "{said}");
    assert!(said.contains("pool called new"), "{said}");
    drop(serving);
    // Drives that were empty when it began are so again.
    let drives = ["n0.img", "n1.img"].map(|name| home.file(name));
    made["content"]["pools"]["new"]["of_before"] = json!(drives);
    made["content"]["pools"]["new"]["uuid"] = uuid;
    fs::write(&record, made.to_string()).unwrap();
    let serving = home.serve();
    assert_eq!(pools(&serving), ["p0"]);
    serving.done(&CREATE);
}

/// An earlier version left a pool that it used on record as being made, without its identity. No label
/// of such a pool is wiped, and one that holds volumes is served.
#[test]
fn a_pool_in_use_that_is_on_record_as_being_made_is_kept() {
    let (home, record) = stopped_with_new_pool();
    let read = || made_pools(&record);
    let as_before = || {
        let mut made = read();
        let drives = ["n0.img", "n1.img"];
        made["content"]["pools"]["new"] =
            json!({ "state": "being_made", "new_files": drives, "of_before": [] });
        fs::write(&record, made.to_string()).unwrap();
    };
    let made = read();
    as_before();
    let serving = home.serve();
    home.wait_log("pool new: an earlier version of Ashlar");
    assert_eq!(pools(&serving), ["p0"]);
    drop(serving);
    assert_eq!(read()["content"]["pools"]["new"]["state"], "being_made");
    fs::write(&record, made.to_string()).unwrap();
    let serving = home.serve();
    serving.done(&["volume", "create", "v", "--pool", "new", "--size", "1 MiB"]);
    drop(serving);
    as_before();
    let serving = home.serve();
    assert_eq!(pools(&serving), ["new", "p0"]);
    let uuid = &made["content"]["pools"]["new"]["uuid"];
    assert_eq!(&read()["content"]["pools"]["new"]["uuid"], uuid);
}

/// A making whose drives could not be emptied again stays on record until they are.
#[test]
fn a_making_that_cannot_be_taken_back_yet_is_taken_back_later() {
    let (home, record) = stopped_with_new_pool();
    let read = || made_pools(&record);
    let mut made = read();
    let drives = ["n0.img", "n1.img"];
    let uuid = made["content"]["pools"]["new"]["uuid"].clone();
    made["content"]["pools"]["new"] =
        json!({ "state": "being_made", "new_files": [], "of_before": drives, "uuid": uuid });
    fs::write(&record, made.to_string()).unwrap();
    let held = fs::File::open(home.file("n0.img")).unwrap();
    held.lock().unwrap();
    let serving = home.serve();
    assert_eq!(pools(&serving), ["p0"]);
    let mark = || read()["content"]["pools"]["new"].clone();
    assert_eq!(mark()["of_before"], json!(["n0.img"]));
    let (kind, said) = serving.refusal(&CREATE);
    assert_eq!(kind, "busy", "{said}");
    assert!(said.contains("n0.img"), "{said}");
    assert_eq!(mark()["of_before"], json!(["n0.img"]));
    drop(held);
    serving.done(&CREATE);
    assert_eq!(mark()["state"], "made");
}
