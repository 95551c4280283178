//! Reports against nbdkit: they agree with the server.

#![allow(clippy::unwrap_used)] // helpers of tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real servers, real time

mod support;

use load::endpoint::TargetErrorKind;
use load::run::{self, RunError};
use std::net::TcpListener;
use std::time::Duration;
use support::{Watch, nbdkit, nbdkit_at, need, paced, plan, run_whole};
use workload::profile::Pacing;
use workload::report::{self, Verdict};
use workload::threads::Threads;

const SIZE: &str = "64M";

/// nbdkit in memory that takes `delay` over each read and write.
fn delayed(delay: &str) -> support::Server {
    need("nbdkit");
    let (read, write) = (format!("rdelay={delay}"), format!("wdelay={delay}"));
    nbdkit(&["--filter=delay", "memory", SIZE, &read, &write])
}

#[test]
fn a_mean_at_the_limit_fails_it() {
    let server = delayed("20ms");
    let plan = plan(
        paced("rand-4k-read", 40.0, 64),
        &[&server.url],
        Duration::from_secs(1),
    );
    let report = report::report(&plan, &run_whole(&plan).unwrap());
    assert_eq!(report.verdict, Verdict::LimitFailed);
    assert!(report::table(&report).contains("FAIL"));
}

/// The server stops for one second in the middle. With one operation under way
/// at a time, service time sees one slow operation; all those that were due
/// meanwhile waited, and only the response time knows.
#[test]
fn a_stall_of_a_second_is_not_omitted() {
    need("nbdkit");
    let read = "read=n=$(cat $tmpdir/n 2>/dev/null || echo 0); echo $((n+1)) >$tmpdir/n; \
                [ $n -ne 120 ] || sleep 1; dd if=/dev/zero bs=$3 count=1 2>/dev/null";
    let server = nbdkit(&[
        "eval",
        "get_size=echo 67108864",
        "thread_model=echo serialize_all_requests",
        &read.replace("read=", "pread="),
    ]);
    let rate = 40.0;
    let plan = plan(
        paced("rand-4k-read", rate, 1),
        &[&server.url],
        Duration::from_secs(6),
    );
    let outcome = run_whole(&plan).unwrap();
    let read = &outcome.vms[0].measured.read;
    let half = Duration::from_millis(500);
    // Those due in the first half second of the stall: 20, give or take Poisson's
    // luck (three standard deviations).
    let waited = read.response.count_above(half);
    assert!(
        waited >= 7,
        "{waited} of {} waited half a second",
        read.response.count()
    );
    assert!(
        read.service.count_above(half) <= 1,
        "service time hides the stall"
    );
    assert!(
        read.response.percentile_ms(97.0) > 500.0,
        "{}",
        read.response.percentile_ms(97.0)
    );
    assert!(
        read.service.percentile_ms(97.0) < 500.0,
        "{}",
        read.service.percentile_ms(97.0)
    );
    assert!(read.response.max_ms() >= 1000.0);
}

#[test]
fn a_rate_that_the_server_cannot_take_is_invalid() {
    let server = delayed("20ms");
    // One at a time and 20 ms each: 50 per second at best.
    let plan = plan(
        paced("rand-4k-read", 200.0, 1),
        &[&server.url],
        Duration::from_secs(1),
    );
    let report = report::report(&plan, &run_whole(&plan).unwrap());
    assert_eq!(report.verdict, Verdict::Invalid);
    let vm = &report.vms[0];
    assert!(
        vm.achieved_percent.unwrap() < 40.0,
        "{:?}",
        vm.achieved_percent
    );
    assert!(
        vm.read.response.p99_ms > 500.0,
        "the queue shows in the response time"
    );
    assert!(report::table(&report).contains("INVALID"));
}

#[test]
fn a_closed_loop_keeps_its_depth() {
    let server = delayed("5ms");
    let mut profile = paced("rand-4k-read", 1.0, 1);
    profile = profile.with_depth(8);
    assert_eq!(
        profile.vms[0].streams[0].pacing,
        Pacing::Closed { outstanding: 8 }
    );
    let plan = plan(profile, &[&server.url], Duration::from_secs(1));
    let report = report::report(&plan, &run_whole(&plan).unwrap());
    let vm = &report.vms[0];
    assert!(
        (7.5..=8.0).contains(&vm.queue_length),
        "{}",
        vm.queue_length
    );
    assert!(
        vm.reads_per_s > 800.0 && vm.reads_per_s <= 1600.0,
        "{}",
        vm.reads_per_s
    );
    assert_eq!((vm.offered_per_s, vm.valid), (None, true));
    assert_eq!(report.verdict, Verdict::Pass);
}

#[test]
fn io_errors_are_counted_and_told() {
    need("nbdkit");
    let server = nbdkit(&[
        "--filter=error",
        "memory",
        SIZE,
        "error-pread=EIO",
        "error-pread-rate=1",
    ]);
    let plan = plan(
        paced("rand-4k-read", 100.0, 8),
        &[&server.url],
        Duration::from_secs(1),
    );
    let report = report::report(&plan, &run_whole(&plan).unwrap());
    assert_eq!(report.verdict, Verdict::Errors);
    let vm = &report.vms[0];
    assert!(vm.failed > 50 && vm.failures.len() == 3);
    let told = &vm.failures[0];
    assert!(told.contains("read of 4096 bytes"), "{told}");
    assert!(
        told.contains("Input/output error") && told.contains(&server.url),
        "{told}"
    );
}

#[test]
fn a_server_that_goes_away_ends_the_run_with_what_was_measured() {
    let mut server = delayed("1ms");
    let plan = plan(
        paced("rand-4k-read", 100.0, 8),
        &[&server.url.clone()],
        Duration::from_secs(600),
    );
    struct Kill<'a>(&'a mut support::Server);
    impl run::Observer for Kill<'_> {
        fn observe(&mut self, progress: &run::Progress, pause: Duration) -> bool {
            std::thread::park_timeout(pause);
            if progress.completed > 20 {
                self.0.kill();
            }
            false
        }
    }
    let outcome = run::run(&plan, &mut Kill(&mut server)).unwrap();
    let lost = outcome.vms[0].lost.as_ref().expect("the target is lost");
    assert_eq!(lost.kind, TargetErrorKind::Lost);
    let report = report::report(&plan, &outcome);
    assert_eq!(report.verdict, Verdict::Errors);
    assert!(report.vms[0].read.response.count > 20);
    assert!(report.measured_s < 60.0);
    // Closed, or reset when it left something unread.
    assert!(report::table(&report).contains(&lost.detail));
}

/// A server that always has something under way when it is killed.
const SLOW: &[&str] = &["--filter=delay", "memory", SIZE, "rdelay=5ms"];

/// Kills its server, and starts it again; stops the run when operations complete again.
struct Restart {
    listener: TcpListener,
    server: support::Server,
    killed: bool,
    is_back: bool,
    /// Completed when the server was started again.
    completed: u64,
}

impl Restart {
    fn new() -> Restart {
        need("nbdkit");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = nbdkit_at(listener.try_clone().unwrap(), SLOW);
        Restart {
            listener,
            server,
            killed: false,
            is_back: false,
            completed: 0,
        }
    }
}

impl run::Observer for Restart {
    fn observe(&mut self, progress: &run::Progress, pause: Duration) -> bool {
        std::thread::park_timeout(pause);
        if !self.killed && progress.completed > 20 {
            self.server.kill();
            self.killed = true;
        } else if self.killed && !self.is_back && progress.away == 1 {
            let listener = self.listener.try_clone().unwrap();
            self.server = nbdkit_at(listener, SLOW);
            self.is_back = true;
            self.completed = progress.completed;
        }
        self.is_back && progress.away == 0 && progress.completed > self.completed + 20
    }
}

#[test]
fn a_server_that_comes_back_is_used_again_and_the_outage_is_told() {
    let mut restart = Restart::new();
    let url = restart.server.url.clone();
    let mut plan = plan(
        // A closed loop: something is always under way.
        paced("rand-4k-read", 1.0, 1).with_depth(4),
        &[&url],
        Duration::from_secs(600),
    );
    plan.reconnect_for = Duration::from_secs(300);
    let outcome = run::run(&plan, &mut restart).unwrap();
    let vm = &outcome.vms[0];
    assert!(vm.lost.is_none(), "{:?}", vm.lost);
    let told = report::report(&plan, &outcome);
    assert_eq!(told.verdict, Verdict::Errors);
    let [outage] = told.outages.as_slice() else {
        panic!("one outage: {:?}", told.outages);
    };
    assert_eq!(outage.vms[0].targets, [url]);
    assert!(
        outage.seconds > 0.0 && outage.until_s.is_some(),
        "{outage:?}"
    );
    let lost = told.vms[0].lost_operations;
    assert_eq!(
        (lost, told.vms[0].failed),
        (outage.operations_lost, outage.operations_lost)
    );
    assert!((1..=4).contains(&lost), "{lost}");
    let table = report::table(&told);
    assert!(table.contains("OUTAGE: from "), "{table}");
    // What waited was sent again, and what was lost was not: the slots are all there.
    assert!(told.vms[0].read.response.max_ms > outage.seconds * 500.0);
    plan.allow_outages = true;
    assert_eq!(report::report(&plan, &outcome).verdict, Verdict::Incomplete);
}

/// Threads that never think have one operation under way each, all of the time: what waits for the
/// server counts.
#[test]
fn threads_whose_operations_were_lost_all_go_on() {
    let mut restart = Restart::new();
    let url = restart.server.url.clone();
    let mut profile = paced("rand-4k-read", 1.0, 1);
    let threads = Threads::connected(4, Duration::ZERO, Duration::ZERO, 3.0);
    profile.vms[0].streams[0].set_threads(threads);
    let mut plan = plan(profile, &[&url], Duration::from_secs(60));
    plan.reconnect_for = Duration::from_secs(50);
    let outcome = run::run(&plan, &mut restart).unwrap();
    let told = report::report(&plan, &outcome);
    let vm = &told.vms[0];
    assert!((1..=4).contains(&vm.lost_operations), "{vm:?}");
    assert!((3.8..4.01).contains(&vm.queue_length), "{vm:?}");
}

#[test]
fn a_server_that_does_not_come_back_in_time_ends_the_run() {
    need("nbdkit");
    let mut server = nbdkit(&["memory", SIZE]);
    let mut plan = plan(
        paced("rand-4k-read", 100.0, 8),
        &[&server.url.clone()],
        Duration::from_secs(600),
    );
    plan.reconnect_for = Duration::from_millis(300);
    plan.allow_outages = true;
    struct Kill<'a>(&'a mut support::Server);
    impl run::Observer for Kill<'_> {
        fn observe(&mut self, progress: &run::Progress, pause: Duration) -> bool {
            std::thread::park_timeout(pause);
            if progress.completed > 20 {
                self.0.kill();
            }
            false
        }
    }
    let outcome = run::run(&plan, &mut Kill(&mut server)).unwrap();
    let lost = outcome.vms[0].lost.as_ref().expect("the target is lost");
    assert!(lost.detail.contains("not back"), "{lost}");
    let told = report::report(&plan, &outcome);
    assert_eq!(told.verdict, Verdict::Errors);
    assert_eq!(told.outages.len(), 1);
    assert_eq!(told.outages[0].until_s, None);
}

#[test]
fn a_stopped_run_is_incomplete() {
    let server = delayed("1ms");
    let plan = plan(
        paced("rand-4k-read", 100.0, 8),
        &[&server.url],
        Duration::from_secs(600),
    );
    let outcome = run::run(&plan, &mut Watch { stop_at: 30 }).unwrap();
    let report = report::report(&plan, &outcome);
    assert!(report.interrupted && report.measured_s < 60.0);
    assert_eq!(report.verdict, Verdict::Incomplete);
    assert!(report.vms[0].reads_per_s > 0.0);
}

fn refusal(url: &str, profile: &str) -> load::endpoint::TargetError {
    let plan = plan(paced(profile, 10.0, 1), &[url], Duration::from_secs(1));
    match run_whole(&plan) {
        Err(RunError::Targets(mut errors)) => errors.remove(0),
        other => panic!("{url}: {other:?}"),
    }
}

#[test]
fn targets_that_cannot_be_used_are_told_apart() {
    need("nbdkit");
    let read_only = nbdkit(&["-r", "memory", SIZE]);
    assert_eq!(
        refusal(&read_only.url, "rand-4k-write").kind,
        TargetErrorKind::ReadOnly
    );
    let small = nbdkit(&["memory", "1M"]);
    let refused = refusal(&small.url, "seq-read-256k");
    assert_eq!(refused.kind, TargetErrorKind::Capacity);
    assert!(refused.detail.contains("4 MiB"), "{refused}");
    let exports = nbdkit(&[
        "--filter=exportname",
        "memory",
        SIZE,
        "exportname-strict=true",
        "exportname=a",
    ]);
    let refused = refusal(&format!("{}b", exports.url), "rand-4k-read");
    assert_eq!(refused.kind, TargetErrorKind::Absent, "{refused}");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let refused = refusal(&format!("nbd://{nobody}/"), "rand-4k-read");
    assert_eq!(refused.kind, TargetErrorKind::Unreachable);
    let refused = refusal("nbd+unix:///?socket=/nonexistent/socket", "rand-4k-read");
    assert_eq!(refused.kind, TargetErrorKind::Unreachable);
}
