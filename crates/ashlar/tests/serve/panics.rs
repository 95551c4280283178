//! What a failed assertion does to a serving array.
#![cfg(debug_assertions)]

use crate::array::{Home, SITE, Serving};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

const PATTERN: &str = "write -q -P 0x5a 0 1M";
const SAME: &str = "read -q -P 0x5a 0 1M";

/// Runs a command of qemu-io at the volume; whether it succeeds.
fn io(serving: &Serving, command: &str) -> bool {
    let image = format!(
        "driver=iscsi,transport=tcp,portal={},target=iqn.2026-11.dev.ashlar:a,lun=0",
        serving.portal
    );
    let mut program = Command::new("qemu-io");
    program
        .args(["--image-opts", "-t", "none", "-c", command])
        .arg(image);
    let output = program.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success() && !said.contains("failed")
}

fn serve(home: &Home, place: &str) -> Serving {
    let mut command = home.command();
    command.env("ASHLAR_TEST_PANIC", place);
    Serving::start(command, &home.log_file())
}

#[test]
fn a_failed_assertion_of_a_shard_ends_the_process_and_the_next_start_has_all_data() {
    let home = Home::new(SITE);
    let serving = serve(&home, "shard");
    assert!(io(&serving, PATTERN));
    let ended = serving.stop("USR1");
    assert_eq!(ended.signal(), Some(6), "{ended:?}");
    let log = home.log();
    assert!(log.contains("test has asked"), "{log}");
    assert!(log.contains("the process ends"), "{log}");
    let serving = home.serve();
    assert!(io(&serving, SAME));
    serving.done(&["pool", "show", "p0"]);
}

#[test]
fn a_failed_assertion_that_somebody_hears_of_ends_nothing() {
    let home = Home::new(SITE);
    let serving = serve(&home, "request");
    let process = serving.process().to_string();
    let sent = Command::new("kill").args(["-s", "USR1", &process]).status();
    assert!(sent.unwrap().success());
    while !home.log().contains("change ended early") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(io(&serving, PATTERN));
    assert!(io(&serving, SAME));
    assert_eq!(serving.stop("TERM").code(), Some(0));
}
