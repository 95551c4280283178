//! Other users of the machine: they read none of an array's files, and lock none.

use crate::array::{Home, SITE, Serving, add_spare, said};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Nobody's user and group.
const NOBODY: &str = "65534";

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The data directory and all that is in it.
fn files(home: &Home) -> Vec<PathBuf> {
    let mut found = vec![home.data()];
    let mut looked = 0;
    while looked < found.len() {
        if found[looked].is_dir() {
            let entries = fs::read_dir(&found[looked]).unwrap();
            found.extend(entries.map(|entry| entry.unwrap().path()));
        }
        looked += 1;
    }
    found
}

/// What another user is allowed, among these commands.
fn allowed(commands: &[(&str, &[&str])], path: &Path) -> Vec<String> {
    let mut allowed = Vec::new();
    for (program, args) in commands {
        let ran = Command::new("setpriv")
            .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
            .arg(program)
            .args(*args)
            .arg(path)
            .output()
            .unwrap();
        if ran.status.success() {
            allowed.push(format!("{program} {}", path.display()));
        }
    }
    allowed
}

#[test]
fn another_user_reads_and_locks_nothing() {
    let home = Home::new(SITE);
    // The way there is open, as it is under /srv or /var/lib.
    set_mode(home.site().parent().unwrap(), 0o755);
    let serving = home.serve();
    serving.done(&[
        "host",
        "create",
        "esx1",
        "--initiator",
        "iqn.2026-11.test:a",
    ]);
    let open = |path: &PathBuf| fs::metadata(path).unwrap().mode() & 0o077 != 0;
    let files_of_array = files(&home);
    assert!(files_of_array.len() > 4, "{files_of_array:?}");
    let of_others: Vec<_> = files_of_array.iter().filter(|path| open(path)).collect();
    assert!(of_others.is_empty(), "{of_others:?}");
    // Only root can be somebody else for a while.
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        let reads: &[(&str, &[&str])] = &[("head", &["-c1"]), ("ls", &[])];
        let locks: &[(&str, &[&str])] = &[("sh", &["-c", "flock -n -s \"$0\" true"])];
        for path in &files_of_array {
            assert_eq!(allowed(reads, path), Vec::<String>::new());
            assert_eq!(allowed(locks, path), Vec::<String>::new());
        }
        let other = home.site().with_file_name("theirs");
        fs::write(&other, "x").unwrap();
        assert_eq!(allowed(&reads[..1], &other).len(), 1, "it can read at all");
    }
}

#[test]
fn files_that_others_could_open_are_tightened_and_told() {
    let home = Home::new(SITE);
    assert!(home.serve().stop("TERM").success());
    let (drive, record) = (home.file("d0.img"), home.file("ashlar-data.json"));
    set_mode(&home.data(), 0o755);
    for file in [&drive, &record] {
        set_mode(file, 0o644);
    }
    let _serving = home.serve();
    for path in [&home.data(), &drive, &record] {
        let told = format!("{}: others than its owner could open it", path.display());
        // Drives are tightened beside the opening.
        for _ in 0..500 {
            if home.log().contains(&told) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(home.log().contains(&told), "{}", home.log());
        let mode = fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
}

/// Says this to the API as nobody; `reads` the answer, or closes at once.
fn said_by_nobody(serving: &Serving, request: &str, reads: bool) -> String {
    let (host, port) = serving.api_address();
    let then = if reads { "head -c 12 <&3" } else { "true" };
    let script = format!("exec 3<>/dev/tcp/{host}/{port}; printf \"$1\" >&3; {then}");
    let output = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .args(["bash", "-c", &script, "bash", request])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn another_user_asks_and_changes_nothing() {
    // Only root can be somebody else for a while.
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return;
    }
    let home = Home::new(SITE);
    let serving = home.serve();
    let head = "HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n";
    let get = format!("GET /api/v1/status {head}\\r\\n");
    assert_eq!(said_by_nobody(&serving, &get, true), "HTTP/1.1 403");
    // One who does not wait for the answer is nobody, and not root.
    let fail = format!("POST /api/v1/drives/d1/fail {head}Content-Length: 0\\r\\n\\r\\n");
    for _ in 0..20 {
        said_by_nobody(&serving, &fail, false);
    }
    assert_eq!(said_by_nobody(&serving, &fail, true), "HTTP/1.1 403");
    assert_eq!(serving.json(&["drive", "show", "d1"])["state"], "healthy");
    home.wait_log(&format!("user {NOBODY} at 127.0.0.1:"));
    home.wait_log("may not use the API");
}

#[test]
fn the_api_is_a_socket_that_its_group_may_use_and_nobody_else() {
    let home = Home::new(SITE);
    let run = tempfile::tempdir().unwrap();
    set_mode(run.path(), 0o755);
    let socket = run.path().join("ashlar/api.sock");
    let api = format!("unix:{}", socket.display());
    let serving = home.serve_at(&api);
    assert_eq!(serving.api, api);
    assert_eq!(serving.json(&["pool", "list"])[0]["name"], "p0");
    assert_eq!(fs::metadata(&socket).unwrap().mode() & 0o777, 0o660);
    let other = Home::new(SITE);
    let (code, said) = said(other.command_at(&api).output().unwrap());
    assert_eq!(code, 1);
    assert!(
        said.contains("another ashlar serve listens there"),
        "{said}"
    );
    // Only root can be somebody else for a while.
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        let ask = |group: &str| {
            let ids = ["--reuid", NOBODY, "--regid", group, "--clear-groups"];
            let mut command = Command::new("setpriv");
            command.args(ids).args(["curl", "-s", "-o", "/dev/null"]);
            command.args(["-w", "%{http_code}", "--unix-socket"]);
            command.arg(&socket).arg("http://localhost/api/v1/status");
            let output = command.output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(ask(NOBODY), "000", "the kernel refuses to connect");
        assert_eq!(ask("0"), "200", "a member of the socket's group");
        // Every change says who.
        serving.done(&["host", "create", "h", "--initiator", "iqn.2026-11.test:a"]);
        home.wait_log("user 0 at the API's socket: POST /api/v1/hosts");
    }
    assert!(serving.stop("TERM").success());
    assert!(!socket.exists());
}

#[test]
fn a_killed_servers_socket_is_taken_by_the_next() {
    let home = Home::new(SITE);
    let run = tempfile::tempdir().unwrap();
    let socket = run.path().join("api.sock");
    let api = format!("unix:{}", socket.display());
    drop(home.serve_at(&api));
    assert!(socket.exists());
    let serving = home.serve_at(&api);
    assert_eq!(serving.json(&["pool", "list"])[0]["name"], "p0");
}

#[test]
fn drives_come_from_directories_that_the_site_allows() {
    let home = Home::new(SITE);
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("s.img");
    let link = home.file("link");
    let serving = home.serve();
    std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
    for path in [&file, &link.join("s.img")] {
        let (code, said) = said(serving.run(&add_spare("s", path.to_str().unwrap())));
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("api.drive_directories="), "{said}");
        assert!(!file.exists());
    }
    let allowed = format!("api.drive_directories={}", elsewhere.path().display());
    serving.done(&["settings", "set", &allowed]);
    serving.done(&add_spare("s", file.to_str().unwrap()));
    assert_eq!(serving.json(&["drive", "show", "s"])["state"], "spare");
}
