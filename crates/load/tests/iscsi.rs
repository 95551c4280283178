//! Against Debian's tgtd, through libiscsi. tgtd needs root.

#![allow(clippy::unwrap_used)] // helpers of tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real servers, real time

mod support;

use load::endpoint::{TargetError, TargetErrorKind};
use load::run::{self, RunError};
use std::fs::File;
use std::time::Duration;
use support::{Tgtd, paced, plan, run_whole};
use workload::report::{self, Verdict};

const LUN_BYTES: u64 = 32 << 20;

fn tgtd() -> (Tgtd, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lun");
    File::create(&path).unwrap().set_len(LUN_BYTES).unwrap();
    (Tgtd::start(&path), directory)
}

#[test]
fn reads_and_writes_go_through_and_land_on_the_lun() {
    let (tgtd, directory) = tgtd();
    let mut plan = plan(
        paced("rand-8k-67", 200.0, 16),
        &[tgtd.url()],
        Duration::from_secs(2),
    );
    plan.fill = true;
    let outcome = run_whole(&plan).unwrap();
    assert_eq!(outcome.vms[0].disk_bytes, [LUN_BYTES]);
    let report = report::report(&plan, &outcome);
    let vm = &report.vms[0];
    assert_ne!(report.verdict, Verdict::Errors, "{:?}", vm.failures);
    assert!(vm.read.response.count > 150 && vm.write.response.count > 60);
    let written = std::fs::read(directory.path().join("lun")).unwrap();
    assert!(
        written
            .chunks(4096)
            .all(|block| block.iter().any(|&byte| byte != 0))
    );
}

#[test]
fn large_sequential_writes_use_more_than_immediate_data() {
    let (tgtd, _directory) = tgtd();
    let mut profile = paced("seq-write-64k", 1.0, 1).with_depth(4);
    profile.vms[0].streams[0].mix.sizes = vec![1 << 20];
    let plan = plan(profile, &[tgtd.url()], Duration::from_secs(1));
    let report = report::report(&plan, &run_whole(&plan).unwrap());
    assert_ne!(
        report.verdict,
        Verdict::Errors,
        "{:?}",
        report.vms[0].failures
    );
    assert!(report.vms[0].writes_per_s > 1.0);
}

fn refusal(url: &str, profile: &str) -> TargetError {
    let plan = plan(paced(profile, 10.0, 1), &[url], Duration::from_secs(1));
    match run_whole(&plan) {
        Err(RunError::Targets(mut errors)) => errors.remove(0),
        other => panic!("{url}: {other:?}"),
    }
}

#[test]
fn luns_that_cannot_be_used_are_told_apart() {
    let (tgtd, _directory) = tgtd();
    let absent = tgtd.url().replace("test/1", "test/9");
    let refused = refusal(&absent, "rand-4k-read");
    assert_eq!(refused.kind, TargetErrorKind::Absent, "{refused}");
    let unknown = tgtd.url().replace("load-test", "nobody");
    let refused = refusal(&unknown, "rand-4k-read");
    assert_eq!(refused.kind, TargetErrorKind::Refused, "{refused}");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let refused = refusal(&format!("iscsi://{nobody}/iqn.x/0"), "rand-4k-read");
    assert_eq!(refused.kind, TargetErrorKind::Unreachable, "{refused}");
    tgtd.admin(&[
        "--mode",
        "logicalunit",
        "--op",
        "update",
        "--tid",
        "1",
        "--lun",
        "1",
        "--params",
        "readonly=1",
    ]);
    let refused = refusal(tgtd.url(), "rand-4k-write");
    assert_eq!(refused.kind, TargetErrorKind::ReadOnly, "{refused}");
    let plan = plan(
        paced("rand-4k-read", 50.0, 4),
        &[tgtd.url()],
        Duration::from_millis(500),
    );
    let outcome = run_whole(&plan).expect("reading a read-only LUN is fine");
    assert_eq!(outcome.vms[0].measured.failed, 0);
}

#[test]
fn a_target_that_goes_away_is_lost_and_not_reconnected() {
    let (mut tgtd, _directory) = tgtd();
    let url = tgtd.url().to_string();
    let plan = plan(
        paced("rand-4k-read", 100.0, 8),
        &[&url],
        Duration::from_secs(600),
    );
    struct Kill<'a>(&'a mut Tgtd);
    impl run::Observer for Kill<'_> {
        fn observe(&mut self, progress: &run::Progress, pause: Duration) -> bool {
            std::thread::park_timeout(pause);
            if progress.completed > 20 {
                self.0.server().kill();
            }
            false
        }
    }
    let outcome = run::run(&plan, &mut Kill(&mut tgtd)).unwrap();
    let lost = outcome.vms[0].lost.as_ref().expect("the target is lost");
    assert_eq!(lost.kind, TargetErrorKind::Lost, "{lost}");
    assert!(report::report(&plan, &outcome).vms[0].read.response.count > 20);
}
