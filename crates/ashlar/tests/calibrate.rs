//! `ashlar calibrate`, as users run it: it measures, its model is rehearsed, it leaves nothing behind, and
//! it overwrites nothing unasked.

// Tests of the real world: processes, files.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A pool of the measured drives, and of one that is not.
const SITE: &str = r#"
[site]
name = "measured"
[run]
warmup = "100 ms"
measure = "1 s"
[[drive]]
name = "d0"
file = "d0.img"
size = "64 MiB"
[[drive]]
name = "d1"
file = "d1.img"
size = "64 MiB"
[[pool]]
name = "p0"
level = "10"
drives = ["d0", "d1"]
[[profile]]
name = "own"
disk = "8 MiB"
streams = [{ name = "io", rate = 100, reads = 70, sizes = ["4 KiB"] }]
[[host]]
name = "h"
cores = 4
[[vm_group]]
name = "load"
profile = "own"
hosts = ["h"]
pools = ["p0"]
"#;

fn ashlar(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ashlar"));
    command.args(args).stdin(Stdio::null());
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Measures as briefly as possible.
fn calibrate(path: &Path, more: &[&str]) -> Output {
    let path = path.display().to_string();
    let brief = ["calibrate", &path, "--each", "10ms", "--size", "64 MiB"];
    ashlar(&[&brief, more].concat())
}

fn is_empty(directory: &TempDir) -> bool {
    fs::read_dir(directory.path()).unwrap().next().is_none()
}

#[test]
fn the_disk_below_a_directory_is_measured_and_rehearsed() {
    let (disk, work) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let [model, site] = ["disk.toml", "site.toml"].map(|name| work.path().join(name));
    let (model_path, site_path) = (model.display().to_string(), site.display().to_string());
    let output = calibrate(disk.path(), &["--name", "here", "-o", &model_path]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(is_empty(&disk), "a file was left behind");
    let text = fs::read_to_string(&model).unwrap();
    assert!(
        ["name = \"here\"", "shared = true", "durable_write_share = "]
            .iter()
            .all(|key| text.contains(key)),
        "{text}"
    );

    fs::write(&site, SITE).unwrap();
    let output = ashlar(&[
        "rehearse",
        &site_path,
        "--once",
        "--drive-model",
        &model_path,
    ]);
    let told = said(&output);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("here"), "the drives have the model: {told}");
    // The table in the site file does the same.
    let drives = SITE.replace("size = \"64 MiB\"", "size = \"64 MiB\"\nmodel = \"here\"");
    fs::write(&site, drives + &text).unwrap();
    let output = ashlar(&["rehearse", &site_path, "--once"]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn nothing_is_left_behind_by_a_kill() {
    let disk = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ashlar"));
    command
        .arg("calibrate")
        .arg(disk.path())
        .args(["--size", "64 MiB"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // The file has no name any more, and is open.
    let files = format!("/proc/{}/fd", child.id());
    let is_measuring = || {
        let files = fs::read_dir(&files).into_iter().flatten().flatten();
        let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        let name = disk.path().join("ashlar-calibrate-");
        let is_there = |target: &str| {
            target.starts_with(&*name.to_string_lossy()) && target.ends_with("(deleted)")
        };
        targets.any(|target| is_there(&target.to_string_lossy()))
    };
    let began = Instant::now();
    while !is_measuring() {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "it does not measure"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_empty(&disk), "a file was left behind");
}

/// Pools take drives whose first MiB is blank, and so does this; it stays blank.
#[test]
fn only_a_blank_file_is_overwritten_if_somebody_agrees() {
    const BLANK: usize = 1 << 20;
    let disk = TempDir::new().unwrap();
    let file = disk.path().join("data");
    let mut content = vec![0x5a; 66 << 20];
    fs::write(&file, &content).unwrap();
    let output = calibrate(&file, &["--yes"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let told = said(&output);
    assert!(told.contains("first MiB is not blank"), "{told}");
    assert!(fs::read(&file).unwrap() == content, "it was overwritten");

    content[..BLANK].fill(0);
    fs::write(&file, &content).unwrap();
    let output = calibrate(&file, &[]);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("66 MiB, which will be lost"), "{told}");
    assert!(fs::read(&file).unwrap() == content, "overwritten unasked");

    let output = calibrate(&file, &["--yes"]);
    assert!(output.status.success(), "{}", said(&output));
    let after = fs::read(&file).unwrap();
    assert!(after[BLANK..] != content[BLANK..], "nothing was written");
    assert!(after[..BLANK] == content[..BLANK], "its head is not blank");
}

#[test]
fn bad_input_is_told() {
    let disk = TempDir::new().unwrap();
    let small = disk.path().join("small");
    fs::write(&small, vec![0; 1 << 20]).unwrap();
    let missing = disk.path().join("missing");
    for (path, more, what) in [
        (
            missing.as_path(),
            &[][..],
            "name a directory, a block device or a file",
        ),
        (
            small.as_path(),
            &["--yes"],
            "it has 1 MiB; 65 MiB are needed",
        ),
        (
            disk.path(),
            &["--size", "1 MiB"],
            "not whole MiB, 64 MiB or more",
        ),
        (
            disk.path(),
            &["--size", "many"],
            "is not a number above zero and a unit",
        ),
        (
            disk.path(),
            &["--each", "1h"],
            "not a time from 10ms to 60s",
        ),
        (disk.path(), &["--name", "a b"], "is no name"),
    ] {
        let path = path.display().to_string();
        let output = ashlar(&[&["calibrate", &path], more].concat());
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(what), "{what}: {}", said(&output));
    }
}
