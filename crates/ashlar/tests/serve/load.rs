//! `ashlar load` against an array that goes away and comes back.

use crate::array::{Home, SITE, ashlar};
use load::report::{Report, Verdict};
use std::net::TcpListener;
use std::process::{Output, Stdio};

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
