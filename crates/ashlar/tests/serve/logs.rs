//! What becomes of an array whose log goes nowhere: it serves.

use crate::array::{Home, SITE, Serving};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Logs in, and asks LUN 0 what it is.
fn answers(serving: &Serving) -> bool {
    let url = format!("iscsi://{}/iqn.2026-11.dev.ashlar:a/0", serving.portal);
    let output = Command::new("iscsi-inq").arg(url).output().unwrap();
    output.status.success()
}

/// Serves with its log at `log`, logs in and changes things, and ends.
fn serves_all_the_same(home: &Home, log: &Path) {
    let mut command = home.command();
    command.env("RUST_LOG", "trace");
    let serving = Serving::start(command, log);
    works(&serving);
    assert_eq!(serving.stop("TERM").code(), Some(0));
}

fn works(serving: &Serving) {
    for turn in 0..20 {
        assert!(answers(serving));
        let name = format!("n{turn}");
        serving.done(&["volume", "create", &name, "--pool", "p0", "--size", "1 MiB"]);
        serving.done(&["volume", "delete", "--yes", &name, "--at-once"]);
    }
}

#[test]
fn a_log_on_a_full_file_system_ends_nothing() {
    let home = Home::new(SITE);
    for _ in 0..2 {
        serves_all_the_same(&home, Path::new("/dev/full"));
    }
}

fn fifo(home: &Home) -> (PathBuf, File) {
    fs::create_dir_all(home.data()).unwrap();
    let path = home.log_file();
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    let mut options = File::options();
    // So that opening it waits for nobody.
    let reader = options.read(true).custom_flags(libc::O_NONBLOCK);
    let reader = reader.open(&path).unwrap();
    (path, reader)
}

#[test]
fn a_log_whose_reader_is_gone_ends_nothing() {
    let home = Home::new(SITE);
    let (path, reader) = fifo(&home);
    let mut command = home.command();
    command.env("RUST_LOG", "trace");
    let serving = Serving::start(command, &path);
    drop(reader);
    works(&serving);
    assert_eq!(serving.stop("TERM").code(), Some(0));
}

#[test]
fn a_log_that_nobody_reads_holds_up_nothing_and_says_later_what_is_lost() {
    let home = Home::new(SITE);
    let (path, mut reader) = fifo(&home);
    let mut command = home.command();
    command.env("RUST_LOG", "trace");
    let serving = Serving::start(command, &path);
    works(&serving);
    // More than a pipe and the queue take.
    for _ in 0..900 {
        assert!(answers(&serving));
    }
    let mut said = Vec::new();
    for _ in 0..200 {
        // Until there is nothing for now.
        let _ = reader.read_to_end(&mut said);
        if String::from_utf8_lossy(&said).contains(" log are lost") {
            break;
        }
        assert!(answers(&serving));
        std::thread::sleep(Duration::from_millis(50));
    }
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.contains(" log are lost"));
    assert_eq!(serving.stop("TERM").code(), Some(0));
}

#[test]
fn a_start_that_is_refused_says_so_by_its_code_where_nobody_hears() {
    let home = Home::new("[site]\n");
    let status = home
        .command()
        .stderr(File::create("/dev/full").unwrap())
        .status();
    assert_eq!(status.unwrap().code(), Some(2));
}

#[test]
fn the_log_says_who_changed_what_and_what_happened() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["host", "create", "h", "--initiator", "iqn.2026-11.test:h"]);
    let target = "iqn.2026-11.dev.ashlar:a";
    serving.done(&["export", "change", target, "--host", "h"]);
    serving.refused(&["volume", "delete", "--yes", "none"]);
    serving.json(&["volume", "list"]);
    serving.done(&["drive", "fail", "--yes", "d1"]);
    serving.done(&["drive", "replace", "--yes", "d1"]);
    let is_whole = |pool: &serde_json::Value| pool["health"] == "ok";
    serving.wait(&["pool", "show", "p0"], is_whole);
    // Events come into the log a moment later.
    home.wait_log("rebuil");
    let me = fs::metadata("/proc/self").unwrap();
    let user = format!(
        "user {} at 127.0.0.1:",
        std::os::unix::fs::MetadataExt::uid(&me)
    );
    assert_eq!(serving.stop("KILL").code(), None);
    let log = home.log();
    for (level, who, what) in [
        (
            "INFO",
            user.as_str(),
            "POST /api/v1/hosts {\"initiators\":[\"iqn.2026-11.test:h\"],\"name\":\"h\"}: 201",
        ),
        (
            "INFO",
            &user,
            "PATCH /api/v1/exports/iqn.2026-11.dev.ashlar:a {\"hosts\":[\"h\"]",
        ),
        ("WARN", &user, "DELETE /api/v1/volumes/none: refused, 404"),
        (
            "WARN",
            "pool p0: ",
            "drive 'd1' was taken out of use by command",
        ),
        ("INFO", "pool p0: ", "rebuil"),
    ] {
        let is_it = |line: &&str| line.contains(level) && line.contains(who) && line.contains(what);
        assert!(
            log.lines().any(|line| is_it(&line)),
            "{level} {what}\n{log}"
        );
    }
    assert!(!log.contains("GET"), "{log}");
    let serving = home.serve();
    let line = "pool p0 is open: it was not closed before, and is recovered from its log";
    home.wait_log(line);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    drop(home.serve());
    assert!(!home.log().contains("not closed before"), "{}", home.log());
}
