//! Against files: filling, ten VMs on one target, reports.

#![allow(clippy::unwrap_used)] // helpers of tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real files, real time

mod support;

use load::profile::Profile;
use load::report::{self, Report, SCHEMA, Verdict};
use load::run::RunError;
use load::target::TargetErrorKind;
use std::fs::File;
use std::path::Path;
use std::time::Duration;
use support::{paced, plan, run_whole};

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
    assert!(page.matches("<svg").count() == 4 && page.contains("MBX01"));
    for external in [
        "http://", "https://", "src=", "href=", "@import", "url(", "<script",
    ] {
        assert!(!page.contains(external), "{external} in the report");
    }
    for (open, close) in [
        ("<table", "</table"),
        ("<tr", "</tr"),
        ("<figure", "</figure"),
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
            "disk_bytes",
            "failed",
            "failures",
            "lateness",
            "limits",
            "lost",
            "megabytes_per_s",
            "name",
            "offered_per_s",
            "queue_length",
            "queue_length_by_littles_law",
            "read",
            "reads_per_s",
            "role",
            "seconds",
            "targets",
            "unfinished",
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
            Err(RunError::Targets(errors)) => assert_eq!(errors[0].kind, kind, "{}", errors[0]),
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
