//! A pool that waits for drives which it can't do without holds up itself only.

use crate::array::{Home, SECOND, SECOND_POOL, SECOND_VOLUME, SITE, Serving};
use crate::strangers::is_root;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

// Mounting is a system call.
#[allow(unsafe_code)]
#[path = "../../../world-real/src/ring/tests/fuse.rs"]
mod fuse;

/// The drives of p0, on file systems that can hang.
struct Hanging {
    home: Home,
    servers: Vec<fuse::Server>,
}

fn hanging(more: &str) -> Option<Hanging> {
    let home = Home::new(&format!("{SITE}{SECOND_POOL}{SECOND_VOLUME}{more}"));
    fs::create_dir_all(home.data()).unwrap();
    // Only root mounts, and not everywhere.
    if !is_root() || !fs::exists("/dev/fuse").unwrap() {
        return None;
    }
    let mount = |drive: &str| {
        let at = home.file(&format!("{drive}.mount"));
        fs::create_dir(&at).unwrap();
        let server = fuse::Server::mount(&at, 64 << 20);
        symlink(at.join(fuse::FILE), home.file(&format!("{drive}.img"))).unwrap();
        server
    };
    let servers = vec![mount("d0"), mount("d1")];
    Some(Hanging { home, servers })
}

fn inquiry(serving: &Serving, target: &str) -> bool {
    let url = format!("iscsi://{}/{target}/0", serving.portal);
    let output = Command::new("iscsi-inq").arg(url).output().unwrap();
    output.status.success()
}

/// Whether the log comes to say so.
fn says(home: &Home, what: &str, within: Duration) -> bool {
    let began = Instant::now();
    while !home.log().contains(what) && began.elapsed() < within {
        std::thread::sleep(Duration::from_millis(100));
    }
    home.log().contains(what)
}

#[test]
fn a_drive_that_is_not_ready_at_the_start_is_waited_for() {
    let Some(Hanging { home, servers }) = hanging("") else {
        return;
    };
    drop(home.serve());
    servers[0].hang();
    let serving = std::thread::scope(|scope| {
        scope.spawn(|| {
            let waits = says(&home, "it may spin up", Duration::from_secs(60));
            servers[0].go_on();
            assert!(waits, "{}", home.log());
        });
        home.serve()
    });
    assert!(home.log().contains("drive d0: it is ready after"));
    assert_eq!(serving.json(&["status"])["health"], "ok");
    let pool = serving.json(&["pool", "show", "p0"]);
    assert_eq!(pool["missing_drives"].to_string(), "[]");
    assert_eq!(serving.stop("TERM").code(), Some(0));
}

#[test]
fn a_pool_that_hangs_holds_up_no_other_and_not_the_end() {
    let Some(Hanging { home, servers }) = hanging("") else {
        return;
    };
    drop(home.serve());
    let (e0, away) = (home.file("e0.img"), home.file("e0.away"));
    fs::rename(&e0, &away).unwrap();
    let serving = home.serve();
    servers.iter().for_each(fuse::Server::hang);
    let create = ["volume", "create", "x", "--pool", "p0", "--size", "1 MiB"];
    let mut waiting = crate::array::ashlar();
    waiting.args(create).env("ASHLAR_API", &serving.api);
    let waiting = waiting.stdout(Stdio::null()).stderr(Stdio::null());
    let mut waiting = waiting.spawn().unwrap();
    fs::rename(&away, &e0).unwrap();
    let others_continue = "a change waits for pool p0: others continue meanwhile";
    assert!(says(&home, others_continue, Duration::from_secs(60)));
    let is_served = |export: &Value| export["withheld"].is_null();
    serving.wait(&["export", "show", SECOND], is_served);
    assert!(inquiry(&serving, SECOND));
    serving.done(&["volume", "create", "y", "--pool", "p1", "--size", "1 MiB"]);
    // What is being made is not made twice.
    let (_, why) = serving.refused(&["volume", "create", "x", "--pool", "p1", "--size", "1 MiB"]);
    assert!(why.contains("volume x"), "{why}");
    let (_, why) = serving.refused(&["volume", "create", "z", "--pool", "p0", "--size", "1 MiB"]);
    assert!(why.contains("pool p0"), "{why}");
    let process = serving.process().to_string();
    let sent = Command::new("kill").args(["-s", "TERM", &process]).status();
    assert!(sent.unwrap().success());
    // The kernel keeps a process that waits for a drive until that answers.
    let ends = says(&home, "error: not closed cleanly", Duration::from_secs(85));
    servers.iter().for_each(fuse::Server::go_on);
    let log = home.log();
    assert!(ends && !log.contains("pool p1: "), "{log}");
    assert_eq!(serving.stop("TERM").code(), Some(1));
    let _ = waiting.wait();
    let serving = home.serve();
    assert_eq!(serving.json(&["status"])["health"], "ok");
    serving.done(&["volume", "show", "y"]);
    assert_eq!(serving.stop("TERM").code(), Some(0));
}
