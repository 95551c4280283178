//! A data directory that is moved or copied: its own drives count, and no others are written.

use crate::array::{Home, SECOND_POOL, SITE, Serving, add_spare};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// An array with a spare, and a drive that stands in for another, all files of the data directory.
fn array_with_added_drives() -> Home {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&add_spare("s0", "s0.img"));
    serving.done(&[
        "drive", "replace", "d1", "--yes", "--with", "n1", "--file", "n1.img",
    ]);
    serving.wait_healthy();
    assert_eq!(serving.stop("TERM").code(), Some(0));
    home
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

fn contents(home: &Home) -> Vec<Vec<u8>> {
    let files = ["d0.img", "n1.img", "s0.img"].map(|name| home.file(name));
    files.map(|file| fs::read(file).unwrap()).into()
}

/// Where the drives of an array are.
fn places(serving: &Serving) -> Vec<String> {
    let drives = serving.json(&["drive", "list"]);
    let drives = drives.as_array().unwrap().iter();
    drives
        .map(|drive| drive["path"].as_str().unwrap().to_owned())
        .collect()
}

fn assert_own_drives(serving: &Serving, home: &Home) {
    let places = places(serving);
    let data = home.data();
    let is_own = |place: &String| Path::new(place).starts_with(&data);
    assert!(places.len() == 3 && places.iter().all(is_own), "{places:?}");
    assert_eq!(serving.json(&["status"])["health"], "ok");
}

#[test]
fn a_copy_of_a_data_directory_has_drives_of_its_own() {
    let home = array_with_added_drives();
    let before = contents(&home);
    let second = Home::new(SITE);
    copy(&home.data(), &second.data());
    let serving = second.serve();
    assert_own_drives(&serving, &second);
    serving.done(&["volume", "create", "w", "--pool", "p0", "--size", "4 MiB"]);
    serving.done(&["drive", "fail", "s0", "--yes"]);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    assert_eq!(contents(&home), before, "the original is written");
    let serving = home.serve();
    assert_own_drives(&serving, &home);
}

#[test]
fn a_data_directory_may_be_moved() {
    let home = array_with_added_drives();
    let second = Home::new(SITE);
    fs::rename(home.data(), second.data()).unwrap();
    let serving = second.serve();
    assert_own_drives(&serving, &second);
}

#[test]
fn absolute_paths_never_lead_into_the_data_directory_of_another_array() {
    let home = Home::new(SITE);
    drop(home.serve());
    let absolute = |name: &str| home.file(name).to_str().unwrap().to_owned();
    let site = SITE
        .replace("d0.img", &absolute("d0.img"))
        .replace("d1.img", &absolute("d1.img"));
    let second = Home::new(&site);
    let (code, said) = second.refused();
    let why = "is in the data directory of another array";
    assert_eq!((code, said.contains(why)), (1, true), "{said}");
    // Nor are they added by a command.
    second.set_site(&SITE.replace("/data/", "/"));
    let serving = second.serve();
    serving.done(&[
        "settings",
        "set",
        &format!("api.drive_directories={}", home.data().display()),
    ]);
    let (code, said) = serving.refused(&add_spare("s0", &absolute("free.img")));
    assert_eq!((code, said.contains(why)), (2, true), "{said}");
    assert!(!home.file("free.img").exists());
}

#[test]
fn a_drive_that_was_moved_stays_where_the_site_file_says() {
    let home = Home::new(SITE);
    let elsewhere = tempfile::tempdir().unwrap();
    let at = |name: &str| elsewhere.path().join(name).to_str().unwrap().to_owned();
    let serving = home.serve();
    let directory = elsewhere.path().display();
    serving.done(&[
        "settings",
        "set",
        &format!("api.drive_directories={directory}"),
    ]);
    serving.done(&[
        "drive",
        "replace",
        "d1",
        "--yes",
        "--with",
        "n1",
        "--file",
        &at("old.img"),
    ]);
    serving.wait_healthy();
    assert_eq!(serving.stop("TERM").code(), Some(0));
    fs::rename(at("old.img"), at("new.img")).unwrap();
    let serving = home.serve();
    let moved = SITE
        .replace("\"d1\"", "\"n1\"")
        .replace("d1.img", &at("new.img"));
    home.set_site(&moved);
    serving.apply(&home);
    let is_back = |pool: &Value| pool["missing_drives"][0]["is_back"] == true;
    serving.wait(&["pool", "show", "p0"], is_back);
    serving.done(&["drive", "replace", "n1"]);
    serving.wait_healthy();
    assert!(places(&serving).contains(&at("new.img")));
    // A change of another pool keeps it, and so does the next start.
    serving.done(&[
        "pool",
        "create",
        "p1",
        "e0=e0.img",
        "--level",
        "simple",
        "--size",
        "64 MiB",
    ]);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    let serving = home.serve();
    assert!(places(&serving).contains(&at("new.img")));
    let shown = String::from_utf8(serving.run(&["site", "show"]).stdout).unwrap();
    assert!(
        shown.contains("new.img") && !shown.contains("old.img"),
        "{shown}"
    );
}

#[test]
fn the_place_of_a_drive_of_a_pool_that_is_not_open_is_taken() {
    let home = Home::new(&format!("{SITE}{SECOND_POOL}"));
    drop(home.serve());
    fs::rename(home.file("e0.img"), home.file("away.img")).unwrap();
    let serving = home.serve();
    let (code, said) = serving.refused(&add_spare("s0", "e0.img"));
    let why = "e0.img is drive e0 of pool p1";
    assert_eq!((code, said.contains(why)), (6, true), "{said}");
    assert!(!home.file("e0.img").exists());
}

#[test]
fn a_making_that_was_cut_short_removes_no_drive_that_another_pool_has_by_now() {
    let home = Home::new(SITE);
    drop(home.serve());
    let record = home.file("ashlar-data.json");
    let text = fs::read_to_string(&record).unwrap();
    let mut made: Value = serde_json::from_str(&text).unwrap();
    fs::write(home.file("x.img"), "").unwrap();
    made["content"]["pools"]["x"] = serde_json::json!({
        "state": "being_made", "new_files": ["d1.img", "x.img"], "of_before": [],
    });
    fs::write(&record, made.to_string()).unwrap();
    let serving = home.serve();
    assert_eq!(serving.json(&["status"])["health"], "ok");
    assert!(home.file("d1.img").exists() && !home.file("x.img").exists());
    assert!(!fs::read_to_string(&record).unwrap().contains("being_made"));
}
