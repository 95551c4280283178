//! What the machine limits: open files.

use crate::array::{Home, SITE, Serving, said, two_lanes_and_a_pool};
use crate::commands::request;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

/// `ashlar serve` on this home, after the shell has done this.
fn under(home: &Home, limit: &str) -> Command {
    let serve = home.command();
    let mut command = Command::new("sh");
    let script = format!("{limit}; exec \"$0\" \"$@\"");
    command.args(["-c", &script]).stdin(Stdio::null());
    command.arg(serve.get_program()).args(serve.get_args());
    command
}

/// The soft limit of open files of a process.
fn soft_limit(process: u32) -> u64 {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let mut words = line.unwrap().split_whitespace();
    words.nth(3).unwrap().parse().unwrap()
}

#[test]
fn the_soft_limit_of_open_files_is_raised() {
    let home = Home::new(SITE);
    let log = home.data().with_extension("log");
    let serving = Serving::start(under(&home, "ulimit -n 4000; ulimit -Sn 100"), &log);
    assert_eq!(soft_limit(serving.process()), 4000);
    let said = fs::read_to_string(&log).unwrap();
    assert!(!said.contains("files open"), "{said}");
}

#[test]
fn a_low_limit_of_open_files_costs_sessions_and_never_drives() {
    let home = Home::new(SITE);
    let log = home.data().with_extension("log");
    let serving = Serving::start(under(&home, "ulimit -n 400"), &log);
    assert_eq!(serving.json(&["status"])["health"], "ok");
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains("of 1024 sessions"), "{text}");
    assert!(text.contains("400 files open"), "{text}");
    drop(serving);
    let output = under(&home, "ulimit -n 140").output().unwrap();
    let (code, text) = said(output);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("few open files"), "{text}");
}

#[test]
fn rates_have_a_maximum_whatever_the_pool_is() {
    let home = Home::new(&two_lanes_and_a_pool());
    let serving = home.serve();
    let put = |body: &str| {
        let line = "PUT /api/v1/pools/p0/rates";
        request(&serving.api, line, "", body)
    };
    for rate in [u64::MAX, u64::MAX - 1, (1 << 50) + 1] {
        for key in ["rebuild_bytes_per_s", "scrub_bytes_per_s"] {
            let answer = put(&format!("{{\"{key}\": {rate}}}"));
            assert!(answer.starts_with("HTTP/1.1 400"), "{rate}: {answer}");
            assert!(answer.contains("1 PiB"), "{answer}");
        }
    }
    let answer = put(&format!("{{\"rebuild_bytes_per_s\": {}}}", 1u64 << 50));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let pool = serving.json(&["pool", "show", "p0"]);
    assert_eq!(pool["rates"]["rebuild_bytes_per_s"], 1u64 << 50);
    assert_eq!(serving.stop("TERM").code(), Some(0));
}

/// Each request of a login has a third of the time of all.
#[test]
fn half_a_login_request_is_waited_for_less_long_than_a_login() {
    let home = Home::new(&format!("[limits]\nlogin_time = \"2 s\"\n{SITE}"));
    let serving = home.serve();
    let mut stream = TcpStream::connect(&serving.portal).unwrap();
    // A header has 48 bytes.
    stream.write_all(&[0x43]).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.is_empty(), "{answer:?}");
    home.wait_log("no whole request came");
    assert!(!home.log().contains("it took too long"), "{}", home.log());
}
