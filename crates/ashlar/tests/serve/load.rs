//! `ashlar load` against an array that goes away and comes back, and on LUNs that hold data.

use crate::array::{Home, SITE, ashlar};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use workload::report::{Report, Verdict};

/// The site at a port that a second server can have, too.
fn home() -> Home {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let portal = format!("[[portal]]\naddress = \"{}\"", free.local_addr().unwrap());
    Home::new(&SITE.replace("[[portal]]\naddress = \"127.0.0.1:0\"", &portal))
}

fn report(output: &Output) -> Report {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn a_load_outlives_a_killed_server_and_tells_the_outage() {
    let home = home();
    let serving = home.serve();
    let url = format!("iscsi://{}/iqn.2026-11.dev.ashlar:a/0", serving.portal);
    let load = ashlar()
        .args(["load", "rand-4k-write", "--target", &url])
        .args(["--iodepth", "4", "--warmup", "0s", "--duration", "20s"])
        .args(["--limit-write-ms", "60000", "--allow-outages"])
        .args(["--json", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    serving.wait(&["volume", "show", "v0"], |volume| {
        volume["mapped_bytes"].as_u64().unwrap() > 0
    });
    // By SIGKILL.
    drop(serving);
    let _serving = home.serve();
    let output = load.wait_with_output().unwrap();
    let report = report(&output);
    let [outage] = report.outages.as_slice() else {
        panic!("one outage: {:?}", report.outages);
    };
    assert!(outage.until_s > Some(outage.from_s), "{outage:?}");
    assert_eq!(outage.vms.len(), 1, "{outage:?}");
    let vm = &report.vms[0];
    assert_eq!(
        (vm.failed, vm.lost_operations),
        (outage.operations_lost, outage.operations_lost)
    );
    assert!((1..=4).contains(&vm.failed), "{outage:?}");
    assert!(!vm.lost, "{:?}", vm.failures);
    // What was due while the server was away waited for it.
    assert!(vm.write.response.max_ms > outage.seconds * 500.0);
    assert_eq!(report.verdict, Verdict::Pass);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_lun_that_holds_something_is_overwritten_only_when_that_is_said() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let url = format!("iscsi://{}/iqn.2026-11.dev.ashlar:a/0", serving.portal);
    let load = |profile: &str, more: &[&str]| {
        let mut command = ashlar();
        command.args(["load", profile, "--target", &url, "--warmup", "0s"]);
        command.args(["--duration", "1s", "--limit-write-ms", "60000"]);
        command.args(["--limit-read-ms", "60000", "--iodepth", "1"]);
        let output = command.args(more).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), said)
    };
    // Nothing is there yet; then what a load has written.
    assert_eq!(load("rand-4k-write", &[]).0, 0);
    assert_eq!(load("rand-4k-write", &["--seed", "7"]).0, 0);
    // A file system, as far as its first sectors say.
    let wrote = Command::new("qemu-io")
        .args(["-f", "raw", "-c", "write -P 0x58 0 4096", &url])
        .output()
        .unwrap();
    assert!(wrote.status.success(), "{wrote:?}");
    let (code, said) = load("rand-4k-write", &[]);
    assert_eq!(code, 2, "{said}");
    for told in [&url, "(8 MiB) holds data at byte 0", "--yes"] {
        assert!(said.contains(told), "{said}");
    }
    assert_eq!(load("rand-4k-read", &[]).0, 0);
    assert_eq!(load("rand-4k-read", &["--fill"]).0, 2);
    assert_eq!(load("rand-4k-read", &["--fill", "--yes"]).0, 0);
    assert_eq!(load("rand-4k-write", &[]).0, 0, "all of it is a load's now");
}

#[test]
fn a_warning_of_the_pool_is_no_error_of_a_load() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["pool", "thresholds", "p0", "--warn", "5"]);
    let url = format!("iscsi://{}/iqn.2026-11.dev.ashlar:a/0", serving.portal);
    let mut load = ashlar();
    load.args(["load", "rand-4k-write", "--target", &url, "--yes"]);
    load.args(["--iodepth", "4", "--warmup", "0s", "--duration", "4s"]);
    load.args(["--limit-write-ms", "60000"]);
    let output = load.args(["--json", "-"]).output().unwrap();
    let report = report(&output);
    let vm = &report.vms[0];
    assert_eq!((vm.failed, &vm.failures), (0, &Vec::new()));
    assert_eq!(vm.unit_attentions, 1, "{:?}", vm.attentions);
    assert!(vm.attentions[0].contains("0x3807"), "{:?}", vm.attentions);
    assert_eq!(report.verdict, Verdict::Pass);
}

#[test]
fn credentials_are_no_hindrance_where_the_target_asks_for_none() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let place = format!("{}/iqn.2026-11.dev.ashlar:a/0", serving.portal);
    let load = |url: String| {
        let mut command = ashlar();
        command.args(["load", "rand-4k-read", "--target", &url]);
        command.args(["--warmup", "0s", "--duration", "1s", "--iodepth", "1"]);
        command.args(["--limit-read-ms", "60000", "--json", "-"]);
        command.output().unwrap()
    };
    let output = load(format!("iscsi://user%password@{place}"));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let vm = &report(&output).vms[0];
    assert_eq!((vm.failed, &vm.failures), (0, &Vec::new()));
    assert!(!String::from_utf8_lossy(&output.stdout).contains("password"));
}
