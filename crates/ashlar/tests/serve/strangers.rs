//! Other users of the machine: they read none of an array's files, lock none, and hold none of its
//! connections.

use crate::array::{Home, SITE, Serving, add_spare, said};
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

/// Only root can be somebody else for a while.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A directory to which the way is open, as it is under /srv or /var/lib.
pub fn open_directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    set_mode(dir.path(), 0o755);
    dir
}

/// Runs this as somebody else, of this group.
fn as_nobody(group: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", group, "--clear-groups"]);
    command
}

/// What the API says at its socket to somebody else, of this group: the body, and the status.
pub fn said_to(group: &str, socket: &Path, path: &str, options: &[&str]) -> String {
    let mut command = as_nobody(group);
    command.args(["curl", "-s", "-w", "%{http_code}", "--unix-socket"]);
    command.arg(socket).args(options);
    command.arg(format!("http://localhost/api/v1/{path}"));
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// Tries all that one can do with a path that is not one's own, and says what succeeds.
const TRY: &str = r#"
use Fcntl qw(:flock :DEFAULT); use IO::Socket::UNIX;
for (@ARGV) {
    print "read $_\n" if sysopen(my $r, $_, O_RDONLY);
    print "write $_\n" if sysopen(my $w, $_, O_WRONLY);
    print "lock $_\n" if $r && flock($r, LOCK_SH | LOCK_NB);
    print "list $_\n" if opendir(my $d, $_);
    print "make $_\n" if -d $_ && mkdir("$_/theirs");
    print "connect $_\n" if -S $_ && IO::Socket::UNIX->new(Peer => $_);
    print "remove $_\n" if unlink($_);
}"#;

/// What somebody else is allowed with these paths.
fn allowed(paths: &[PathBuf]) -> Vec<String> {
    let tried = as_nobody(NOBODY)
        .args(["perl", "-e", TRY])
        .args(paths)
        .output();
    let tried = tried.unwrap();
    assert!(
        tried.status.success(),
        "{}",
        String::from_utf8_lossy(&tried.stderr)
    );
    let said = String::from_utf8(tried.stdout).unwrap();
    said.lines().map(str::to_owned).collect()
}

#[test]
fn another_user_reads_locks_and_reaches_nothing() {
    let (images, run) = (open_directory(), open_directory());
    let home = Home::new(&format!(
        "[images]\ndirectories = [{:?}]\n{SITE}",
        images.path()
    ));
    set_mode(home.site().parent().unwrap(), 0o755);
    let socket = run.path().join("ashlar/api.sock");
    let serving = home.serve_at(&format!("unix:{}", socket.display()));
    serving.done(&[
        "host",
        "create",
        "esx1",
        "--initiator",
        "iqn.2026-11.test:a",
    ]);
    serving.add_spare("s0", "s0.img");
    serving.done(&["drive", "fail", "--yes", "d1"]);
    let image = images.path().join("v0.raw");
    let to = image.to_str().unwrap();
    serving.done(&["volume", "export", "v0", to, "--format", "raw"]);
    let is_open = |path: &PathBuf| fs::metadata(path).unwrap().mode() & 0o077 != 0;
    let mut paths = files(&home);
    assert!(paths.len() > 7, "{paths:?}");
    paths.extend([image, home.site(), socket.with_extension("sock.lock")]);
    let of_others: Vec<_> = paths.iter().filter(|path| is_open(path)).collect();
    assert!(of_others.is_empty(), "{of_others:?}");
    if !is_root() {
        return;
    }
    let process = PathBuf::from(format!("/proc/{}", serving.process()));
    let inside = ["mem", "environ", "maps", "fd", "io", "root", "cwd"];
    paths.extend(inside.iter().map(|name| process.join(name)));
    paths.push(socket.clone());
    assert_eq!(allowed(&paths), Vec::<String>::new());
    // Everybody may look for the socket.
    let directory = socket.parent().unwrap().to_owned();
    let looked = ["read", "lock", "list"].map(|what| format!("{what} {}", directory.display()));
    assert_eq!(allowed(&[directory]), looked);
    let other = home.site().with_file_name("theirs");
    fs::write(&other, "x").unwrap();
    set_mode(&other, 0o666);
    let can = ["read", "write", "lock"].map(|what| format!("{what} {}", other.display()));
    assert_eq!(allowed(&[other]), can, "it can at all");
}

#[test]
fn the_memory_of_the_server_is_root_s_and_no_core_is_dumped() {
    if !is_root() {
        return;
    }
    let home = Home::new(SITE);
    // As nobody: everything has to be theirs.
    let data = home.data();
    fs::create_dir(&data).unwrap();
    for path in [
        &data,
        &home.site(),
        &home.site().parent().unwrap().to_owned(),
    ] {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    }
    let mut command = as_nobody(NOBODY);
    // The program may lie where only root can look.
    let program = home.site().with_file_name("ashlar");
    fs::copy(env!("CARGO_BIN_EXE_ashlar"), &program).unwrap();
    set_mode(&program, 0o755);
    command
        .arg(&program)
        .args(["serve", "--site"])
        .arg(home.site());
    command.arg("--data").arg(&data);
    let serving = Serving::start(command, &home.log_file());
    let process = PathBuf::from(format!("/proc/{}", serving.process()));
    let inside = ["mem", "environ", "maps", "fd"].map(|name| process.join(name));
    assert_eq!(
        allowed(&inside),
        Vec::<String>::new(),
        "its own user can't either"
    );
    // Its user is known to it still.
    let ask = as_nobody(NOBODY)
        .arg(&program)
        .args(["--api", &serving.api, "pool", "list"])
        .output()
        .unwrap();
    assert!(
        ask.status.success(),
        "{}",
        String::from_utf8_lossy(&ask.stderr)
    );
    drop(serving);
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

/// Opens 200 connections and says nothing, until its input ends.
const HOLD: &str = r#"
use IO::Socket::INET; use IO::Socket::UNIX;
my @held;
for (1..200) {
    push @held, $ARGV[0] eq "unix"
        ? IO::Socket::UNIX->new(Peer => $ARGV[1])
        : IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => $ARGV[1]);
}
$| = 1;
print "held\n";
<STDIN>;"#;

/// Sockets that the server has open.
fn sockets(serving: &Serving) -> usize {
    let files = fs::read_dir(format!("/proc/{}/fd", serving.process())).unwrap();
    let targets = files.filter_map(|file| fs::read_link(file.unwrap().path()).ok());
    // Threads have one for signals several times.
    let targets: BTreeSet<PathBuf> = targets.collect();
    targets
        .iter()
        .filter(|target| target.to_string_lossy().starts_with("socket:"))
        .count()
}

/// Somebody holds as many connections as they get; root is answered, and what is idle ends.
fn held(home: &Home, serving: &Serving, (group, place): (&str, [&str; 2]), seats: usize) {
    let before = sockets(serving);
    let mut holder = as_nobody(group)
        .args(["perl", "-e", HOLD])
        .args(place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let said = holder.stdout.take().unwrap();
    BufReader::new(said).read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    for _ in 0..30 {
        assert_eq!(serving.json(&["pool", "list"])[0]["name"], "p0");
    }
    home.wait_log("has all connections");
    let held = sockets(serving) - before;
    assert!((1..=seats + 1).contains(&held), "{held} are held");
    // Those that say nothing are closed.
    for _ in 0..600 {
        if sockets(serving) <= before {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let after = sockets(serving);
    assert!(
        after <= before,
        "{after} sockets, and {before} before; {held} held"
    );
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
}

#[test]
fn idle_connections_of_others_hold_up_nobody() {
    if !is_root() {
        return;
    }
    let home = Home::new(SITE);
    let serving = home.serve();
    let (host, port) = serving.api_address();
    held(&home, &serving, (NOBODY, [host, port]), 8);
    drop(serving);
    let run = open_directory();
    let socket = run.path().join("ashlar/api.sock");
    let serving = home.serve_at(&format!("unix:{}", socket.display()));
    let place = ["unix", socket.to_str().unwrap()];
    held(&home, &serving, ("0", place), 8);
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let (host, port) = serving.api_address();
    let mut stream = std::net::TcpStream::connect(format!("{host}:{port}")).unwrap();
    let head = "POST /api/v1/hosts HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("within 10 s"), "{answer}");
}

/// Says this to the API as nobody; `reads` the answer, or closes at once.
fn said_by_nobody(serving: &Serving, request: &str, reads: bool) -> String {
    let (host, port) = serving.api_address();
    let then = if reads { "head -c 12 <&3" } else { "true" };
    let script = format!("exec 3<>/dev/tcp/{host}/{port}; printf \"$1\" >&3; {then}");
    let output = as_nobody(NOBODY)
        .args(["bash", "-c", &script, "bash", request])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn another_user_asks_and_changes_nothing() {
    if !is_root() {
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
    home.wait_log("may not use");
}

#[test]
fn the_api_is_a_socket_that_its_group_may_use_and_nobody_else() {
    let home = Home::new(SITE);
    let run = open_directory();
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
        said.contains(&api) && said.contains("ashlar serve listens"),
        "{said}"
    );
    if is_root() {
        let ask = |group: &str| said_to(group, &socket, "status", &["-o", "/dev/null"]);
        assert_eq!(ask(NOBODY), "000", "the kernel refuses to connect");
        assert_eq!(ask("0"), "200", "a member of the socket's group");
        // Every change says who.
        serving.done(&["host", "create", "h", "--initiator", "iqn.2026-11.test:a"]);
        home.wait_log("socket: POST /api/v1/hosts");
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
    // Whether a file is there is not said, either.
    let create = ["pool", "create", "x", "--level", "simple"];
    let (_, said) = serving.refused(&[&create[..], &[file.to_str().unwrap()]].concat());
    assert!(said.contains("api.drive_directories="), "{said}");
    let allowed = format!("api.drive_directories={}", elsewhere.path().display());
    serving.done(&["settings", "set", &allowed]);
    serving.done(&add_spare("s", file.to_str().unwrap()));
    assert_eq!(serving.json(&["drive", "show", "s"])["state"], "spare");
}

#[test]
fn a_stop_waits_for_no_request_that_has_not_come() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let (host, port) = serving.api_address();
    let connect = |said: &str| {
        let mut stream = std::net::TcpStream::connect(format!("{host}:{port}")).unwrap();
        stream.write_all(said.as_bytes()).unwrap();
        stream
    };
    let half_head = connect("GET /api/v1/status HTTP/1.1\r\nHost: local");
    // Its handler waits for the rest: the server has said that it may come.
    let mut half_body = connect(
        "POST /api/v1/hosts HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n",
    );
    let mut told = [0; 12];
    half_body.read_exact(&mut told).unwrap();
    assert_eq!(&told, b"HTTP/1.1 100");
    half_body.write_all(b"{").unwrap();
    let mut idle = connect("GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n");
    idle.read_exact(&mut told).unwrap();
    assert_eq!(&told, b"HTTP/1.1 200");
    // It ends before they do, and not since its patience ended.
    assert_eq!(serving.stop("TERM").code(), Some(0));
    let log = home.log();
    assert!(!log.contains("dropped without an answer"), "{log}");
    drop((half_head, half_body, idle));
}

#[test]
fn an_api_at_tcp_is_warned_of_and_one_at_a_socket_is_not() {
    let home = Home::new(SITE);
    drop(home.serve_at("127.0.0.1:0"));
    let parts = ["the API listens on TCP", "Unix socket"];
    assert!(home.has_logged("WARN", &parts), "{}", home.log());
    let run = tempfile::tempdir().unwrap();
    let api = format!("unix:{}", run.path().join("api.sock").display());
    drop(home.serve_at(&api));
    assert!(!home.has_logged("WARN", &parts[..1]), "{}", home.log());
}
