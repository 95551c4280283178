//! Against files: filling, ten VMs on one target, reports.

#![allow(clippy::unwrap_used)] // helpers of tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real files, real time

mod support;

use base::Time;
use load::endpoint::TargetErrorKind;
use load::run::{Outcome, RunError, VmOutcome};
use std::fs::File;
use std::path::Path;
use std::time::Duration;
use support::{paced, plan, run_whole};
use workload::generator::Kind;
use workload::kpi::{Measured, Recorder, Window};
use workload::profile::{DiskProfile, Mix, Pacing, Profile, Stream};
use workload::report::{self, Report, SCHEMA, Verdict};
use workload::threads::Threads;

fn sparse(directory: &Path, name: &str, bytes: u64) -> String {
    let path = directory.join(name);
    File::create(&path).unwrap().set_len(bytes).unwrap();
    format!("file:{}", path.display())
}

/// Ten VMs at a twentieth of their rates on one file.
fn small_hetero(url: &str) -> Report {
    let profile = Profile::named("hetero10").unwrap().scaled(0.05);
    let plan = plan(profile, &[url], Duration::from_secs(2));
    report::report(&plan, &run_whole(&plan).unwrap())
}

#[test]
fn ten_vms_share_a_file_and_the_reports_are_whole() {
    let directory = tempfile::tempdir().unwrap();
    let report = small_hetero(&sparse(directory.path(), "disk", 1 << 30));
    assert_eq!(report.vms.len(), 10);
    let sum: f64 = report
        .vms
        .iter()
        .map(|vm| vm.reads_per_s + vm.writes_per_s)
        .sum();
    assert!((sum - report.total.reads_per_s - report.total.writes_per_s).abs() < 1e-6);
    let counts: u64 = report.vms.iter().map(|vm| vm.read.response.count).sum();
    assert_eq!(counts, report.total.read.response.count);
    assert!(
        report.vms.iter().all(|vm| vm.failed == 0),
        "{:?}",
        report.verdict
    );

    let table = report::table(&report);
    for name in ["NET01", "WEB02", "total", "p99.9", "Little"] {
        assert!(table.contains(name), "{name} in\n{table}");
    }

    let json = serde_json::to_string(&report).unwrap();
    let again: Report = serde_json::from_str(&json).unwrap();
    assert_eq!((again.schema.as_str(), again.vms.len()), (SCHEMA, 10));

    let page = report::html(&report);
    assert!(page.contains("MBX01"));
    // The VMs together have four charts, and each that was busy enough has charts of its own.
    assert!(page.matches("<svg").count() > 4 + 10);
    for external in [
        "http://", "https://", "src=", "href=", "@import", "url(", "<script",
    ] {
        assert!(!page.contains(external), "{external} in the report");
    }
    for (open, close) in [
        ("<table", "</table"),
        ("<tr", "</tr"),
        ("<figure", "</figure"),
        ("<svg", "</svg"),
    ] {
        assert_eq!(
            page.matches(open).count(),
            page.matches(close).count(),
            "{open}"
        );
    }
}

/// The names that programs read. A name that goes away breaks them: that takes a
/// new number in SCHEMA.
#[test]
fn the_json_keeps_its_names() {
    let directory = tempfile::tempdir().unwrap();
    let json = serde_json::to_value(small_hetero(&sparse(directory.path(), "disk", 1 << 30)));
    let json = json.unwrap();
    let keys = |value: &serde_json::Value| -> Vec<String> {
        let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(json["schema"], "ashlar-load/1");
    assert_eq!(
        keys(&json),
        [
            "duration_s",
            "filled",
            "interrupted",
            "measured_s",
            "outages",
            "outages_allowed",
            "profile",
            "rate_scale",
            "schema",
            "seed",
            "total",
            "verdict",
            "vms",
            "warmup_s"
        ]
    );
    assert_eq!(
        keys(&json["vms"][0]),
        [
            "achieved_percent",
            "attentions",
            "disk_bytes",
            "failed",
            "failures",
            "intervals",
            "lateness",
            "limits",
            "lost",
            "lost_operations",
            "megabytes_per_s",
            "name",
            "offered_per_s",
            "queue_length",
            "queue_length_by_littles_law",
            "read",
            "reads_per_s",
            "role",
            "seconds",
            "streams",
            "targets",
            "transactions",
            "unfinished",
            "unit_attentions",
            "valid",
            "write",
            "writes_per_s"
        ]
    );
    assert_eq!(
        keys(&json["vms"][0]["streams"][0]),
        [
            "achieved_percent",
            "name",
            "offered_per_s",
            "queue_length",
            "random",
            "read",
            "reads_per_s",
            "transactions",
            "valid",
            "write",
            "writes_per_s"
        ]
    );
    assert_eq!(
        keys(&json["total"]["read"]),
        ["percentiles", "response", "service"]
    );
    assert_eq!(
        keys(&json["total"]["read"]["response"]),
        [
            "count", "max_ms", "mean_ms", "p50_ms", "p95_ms", "p999_ms", "p99_ms"
        ]
    );
}

/// A VM with random reads on its first disk and a log on its second, each at 100
/// operations per second, and beside them a closed loop of one on the first.
fn three_streams() -> Profile {
    let open = Pacing::Open { per_second: 100.0 };
    let closed = Pacing::Closed { outstanding: 1 };
    let mut profile = paced("rand-4k-read", 1.0, 1);
    profile.vms[0].disks = vec![DiskProfile::gigabytes(1); 2];
    profile.vms[0].streams = vec![
        Stream::alone(Mix::new(8192, 100, 100), open, &[1, 0]).named("database"),
        Stream::alone(Mix::new(4096, 0, 0), open, &[0, 1]).named("log"),
        Stream::alone(Mix::new(65536, 0, 100), closed, &[1, 0]).named("scan"),
    ];
    profile
}

/// A server of so many threads, with data and a log on a disk each.
fn server(threads: Threads) -> Profile {
    let mut profile = paced("rand-4k-read", 1.0, 1);
    let vm = &mut profile.vms[0];
    vm.disks = vec![DiskProfile::gigabytes(1); 2];
    let data = Stream::alone(Mix::new(8192, 100, 70), Pacing::Threads(threads), &[1, 0]);
    let log = Stream::alone(Mix::new(4096, 0, 0), Pacing::Commits { of: 0 }, &[0, 1]);
    vm.streams = vec![data.named("data"), log.named("log")];
    vm.settle();
    profile
}

#[test]
fn threads_think_work_and_wait_for_their_operations() {
    let directory = tempfile::tempdir().unwrap();
    let data = sparse(directory.path(), "data", 16 << 20);
    let log = sparse(directory.path(), "log", 16 << 20);
    let (think, work) = (Duration::from_millis(20), Duration::from_millis(5));
    let profile = server(Threads::connected(6, think, work, 3.0));
    let plan = plan(profile, &[&data, &log], Duration::from_secs(3));
    let outcome = run_whole(&plan).unwrap();
    let report = report::report(&plan, &outcome);
    let vm = &report.vms[0];
    assert_eq!((vm.failed, vm.valid), (0, true), "{:?}", vm.failures);
    let transactions = vm.transactions.unwrap();
    // N = X (R + Z), with R as the threads saw it.
    let threads = transactions.per_s * (transactions.response.mean_ms / 1e3 + 0.020);
    assert!((threads / 6.0 - 1.0).abs() < 0.15, "{threads} threads of 6");
    assert!(transactions.response.mean_ms >= 4.0, "{transactions:?}");
    let [of_data, of_log] = vm.streams.as_slice() else {
        panic!("two streams: {:?}", vm.streams)
    };
    // Those of the last transactions are cut off by the end.
    let per_s = of_data.reads_per_s + of_data.writes_per_s;
    assert!(
        (per_s / transactions.per_s / 3.0 - 1.0).abs() < 0.05,
        "{per_s}"
    );
    assert!((of_log.writes_per_s / transactions.per_s - 1.0).abs() < 0.03);
    assert!(vm.queue_length < 6.0, "{}", vm.queue_length);
    assert_eq!(of_log.transactions, None);
}

#[test]
fn the_streams_of_a_vm_run_side_by_side_and_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let data = sparse(directory.path(), "data", 16 << 20);
    let log = sparse(directory.path(), "log", 16 << 20);
    let plan = plan(three_streams(), &[&data, &log], Duration::from_secs(2));
    let report = report::report(&plan, &run_whole(&plan).unwrap());
    let vm = &report.vms[0];
    assert_eq!(vm.failed, 0, "{:?}", vm.failures);
    let [database, log, scan] = vm.streams.as_slice() else {
        panic!("three streams: {:?}", vm.streams)
    };
    for (stream, other) in [
        (&database.read, &database.write),
        (&log.write, &log.read),
        (&scan.read, &scan.write),
    ] {
        assert!(stream.response.count > 50 && other.response.count == 0);
    }
    assert_eq!(
        vm.read.response.count,
        database.read.response.count + scan.read.response.count
    );
    assert_eq!(vm.write.response.count, log.write.response.count);
    assert!(database.random && !log.random && !scan.random);
    // What the closed loop does is nothing that was due.
    let due = database.offered_per_s.unwrap() + log.offered_per_s.unwrap();
    assert_eq!((scan.offered_per_s, vm.offered_per_s), (None, Some(due)));
    assert!(vm.achieved_percent.unwrap() <= 105.0, "{vm:?}");
    let table = report::table(&report);
    assert!(table.contains("\n  database") && table.contains("\n  scan"));
    assert!(report::html(&report).contains(">database<"));
    let written = |name: &str| {
        let bytes = std::fs::read(directory.path().join(name)).unwrap();
        bytes.iter().any(|&byte| byte != 0)
    };
    assert!(written("log") && !written("data"));
}

/// What a stream measured that completed so many of the operations that were due.
fn completed(of_due: (u64, u64), window: Window) -> Measured {
    let mut recorder = Recorder::new(window, true);
    let at = Time(1);
    for number in 0..of_due.1 {
        recorder.offered(at);
        if number < of_due.0 {
            recorder.issued(at, Duration::ZERO);
            recorder.completed(Time(2), Kind::Read, 4096, at, at);
        }
    }
    recorder.finish(window.end).0
}

#[test]
fn a_stream_that_keeps_its_rate_hides_none_that_does_not() {
    let mut profile = three_streams();
    profile.vms[0].streams.truncate(2);
    let plan = plan(profile, &["file:/a", "file:/b"], Duration::from_secs(1));
    let window = Window {
        start: Time(0),
        end: Time(1_000_000_000),
    };
    let verdict = |of_log: (u64, u64)| {
        let streams = vec![completed((1000, 1000), window), completed(of_log, window)];
        let mut measured = streams[0].clone();
        measured.merge(&streams[1]);
        let outcome = Outcome {
            vms: vec![VmOutcome {
                measured,
                streams,
                lost: None,
                outages: Vec::new(),
                disk_bytes: vec![1 << 30; 2],
            }],
            window,
            interrupted: false,
        };
        let report = report::report(&plan, &outcome);
        (report.verdict, report::table(&report))
    };
    assert_eq!(verdict((20, 20)).0, Verdict::Pass);
    let (invalid, table) = verdict((5, 20));
    assert_eq!(invalid, Verdict::Invalid);
    assert!(
        table.contains("INVALID: VM01 (log) completed 25.0 %"),
        "{table}"
    );
}

#[test]
fn a_cap_on_random_io_is_held_against_random_streams_only() {
    let directory = tempfile::tempdir().unwrap();
    let url = sparse(directory.path(), "disk", 64 << 20);
    let mut profile = three_streams();
    profile.limits.random_mean = Some(Duration::ZERO);
    let mut plan = plan(profile, &[&url], Duration::from_secs(1));
    let outcome = run_whole(&plan).unwrap();
    let report = report::report(&plan, &outcome);
    let [limit] = report.total.limits.as_slice() else {
        panic!("one limit: {:?}", report.total.limits)
    };
    let database = &report.vms[0].streams[0].read.response;
    assert_eq!((limit.value_ms, limit.pass), (database.mean_ms, false));
    assert_ne!(report.verdict, Verdict::Pass);
    assert!(report::table(&report).contains("Mean random latency"));
    plan.profile.limits.random_mean = None;
    assert_eq!(report::report(&plan, &outcome).total.limits, []);
}

#[test]
fn filling_writes_every_byte_and_not_zeroes() {
    let directory = tempfile::tempdir().unwrap();
    // Not a multiple of what is filled at once.
    let bytes = (5 << 20) + 12288;
    let url = sparse(directory.path(), "disk", bytes);
    let mut plan = plan(
        paced("rand-4k-read", 50.0, 4),
        &[&url],
        Duration::from_millis(200),
    );
    plan.fill = true;
    let outcome = run_whole(&plan).unwrap();
    assert_eq!(outcome.vms[0].disk_bytes, [bytes]);
    let written = std::fs::read(directory.path().join("disk")).unwrap();
    for (index, block) in written.chunks(4096).enumerate() {
        assert!(
            block.iter().any(|&byte| byte != 0),
            "block {index} is not written"
        );
    }
    let report = report::report(&plan, &outcome);
    assert!(report.filled && report.vms[0].failed == 0);
}

#[test]
fn files_that_cannot_be_used_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let whole = sparse(directory.path(), "whole", 1 << 20);
    let block = whole.replace("file:", "block:");
    let gone = format!("file:{}", directory.path().join("gone").display());
    let small = sparse(directory.path(), "small", 8192);
    for (url, kind) in [
        (gone.as_str(), TargetErrorKind::Absent),
        (block.as_str(), TargetErrorKind::Absent),
        (small.as_str(), TargetErrorKind::Capacity),
        (
            &format!("file:{}", directory.path().display()),
            TargetErrorKind::Absent,
        ),
    ] {
        let plan = plan(
            paced("rand-4k-write", 10.0, 1),
            &[url],
            Duration::from_secs(1),
        );
        match run_whole(&plan) {
            Err(RunError::Targets(errors)) => {
                assert_eq!(errors[0].kind, kind, "{}", errors[0]);
                if kind == TargetErrorKind::Capacity {
                    // Sizes are for people.
                    let said = errors[0].to_string();
                    assert!(said.contains("8 KiB") && !said.contains("8192"), "{said}");
                }
            }
            other => panic!("{url}: {other:?}"),
        }
    }
}

#[test]
fn a_target_that_fails_stops_the_others_before_they_start() {
    let directory = tempfile::tempdir().unwrap();
    let whole = sparse(directory.path(), "whole", 1 << 20);
    let gone = format!("file:{}", directory.path().join("gone").display());
    let profile = paced("rand-4k-write", 100.0, 4).repeated(2);
    let plan = plan(profile, &[&whole, &gone], Duration::from_secs(600));
    let refused = run_whole(&plan).unwrap_err().to_string();
    assert!(
        refused.contains("gone") && refused.contains("create it"),
        "{refused}"
    );
    let written = std::fs::read(directory.path().join("whole")).unwrap();
    assert!(written.iter().all(|&byte| byte == 0), "nothing was written");
}

#[test]
fn a_read_only_run_passes() {
    let directory = tempfile::tempdir().unwrap();
    let url = sparse(directory.path(), "disk", 64 << 20);
    let mut plan = plan(
        paced("rand-4k-read", 100.0, 16),
        &[&url],
        Duration::from_secs(1),
    );
    plan.warmup = Duration::from_millis(500);
    let report = report::report(&plan, &run_whole(&plan).unwrap());
    // Only the mechanism is asserted: how fast the file is, is the machine's.
    assert_ne!(report.verdict, Verdict::Errors);
    assert_eq!(report.vms[0].write.response.count, 0);
    assert!(report.vms[0].seconds.len() >= 2);
    assert_eq!((report.warmup_s, report.measured_s), (0.5, 1.0));
}
