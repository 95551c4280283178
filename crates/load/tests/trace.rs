//! Traces: the meaning of their lines, the lines that are refused, and their replay.

#![allow(clippy::unwrap_used)] // helpers of tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real files, real time

mod support;

use load::endpoint::TargetErrorKind;
use load::run::RunError;
use load::trace_file;
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use support::run_whole;
use workload::generator::{Kind, Operation};
use workload::plan::{self, Plan};
use workload::report;
use workload::trace::{BeyondEnd, Format, Replay, Trace, TraceError, TraceFile};
use workload::url::TargetUrl;

/// A directory with a trace in it.
struct Sample {
    directory: tempfile::TempDir,
    path: PathBuf,
}

fn sample(text: &str) -> Sample {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    std::fs::write(&path, text).unwrap();
    Sample { directory, path }
}

fn file(path: &Path) -> TraceFile {
    TraceFile {
        path: path.to_owned(),
        open: trace_file::open,
    }
}

impl Sample {
    fn survey(&self) -> Result<Trace, TraceError> {
        Trace::survey(file(&self.path), None, BeyondEnd::Refuse)
    }

    /// All operations, on disks of these capacities.
    fn operations(&self, trace: Trace, capacities_bytes: &[u64]) -> Vec<Operation> {
        let mut replay = Replay::new(&Arc::new(trace), capacities_bytes).unwrap();
        std::iter::from_fn(|| replay.draw().unwrap()).collect()
    }
}

/// A line as MSR Cambridge has them, so many milliseconds after some instant of 2007.
fn msr(ms: u64, host: &str, disk: u32, kind: &str, offset: u64, bytes: u64) -> String {
    let ticks = 128_166_372_000_000_000 + ms * 10_000;
    format!("{ticks},{host},{disk},{kind},{offset},{bytes},1331\n")
}

/// An operation as a line of `(milliseconds, disk, kind, offset, bytes)`.
fn told(operations: &[Operation]) -> Vec<(u64, usize, Kind, u64, u32)> {
    let told = |op: &Operation| {
        let ms = op.at.as_nanos() / 1_000_000;
        (ms, op.disk, op.kind, op.offset_bytes, op.bytes)
    };
    operations.iter().map(told).collect()
}

#[test]
fn msr_lines_are_operations_in_order_of_time() {
    let header = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";
    let text = [
        header.to_owned(),
        msr(5, "web", 10, "Write", 1 << 30, 1024),
        msr(0, "web", 2, "Read", 512, 512),
        msr(905, "src1", 0, "read", 8192, 65536),
        // Three quarters of a second late, and two at the same instant.
        msr(155, "web", 2, "WRITE", 4096, 4096),
        msr(155, "web", 2, "Read", 8192, 4096),
    ]
    .concat();
    let sample = sample(&text);
    let trace = sample.survey().unwrap();
    assert_eq!(trace.format, Format::Msr);
    let survey = &trace.survey;
    let disks: Vec<(&str, u64)> = survey
        .disks
        .iter()
        .map(|disk| (disk.name.as_str(), disk.end_bytes))
        .collect();
    let ends = [8192 + 65536, 12288, (1 << 30) + 1024];
    assert_eq!(
        disks,
        [("src1,0", ends[0]), ("web,2", ends[1]), ("web,10", ends[2])]
    );
    assert_eq!((survey.operations, survey.reads, survey.random), (5, 3, 4));
    assert_eq!(survey.duration, Duration::from_millis(905));
    assert_eq!(survey.bytes_max, 65536);
    let expected = [
        (0, 1, Kind::Read, 512, 512),
        (5, 2, Kind::Write, 1 << 30, 1024),
        (155, 1, Kind::Write, 4096, 4096),
        (155, 1, Kind::Read, 8192, 4096),
        (905, 0, Kind::Read, 8192, 65536),
    ];
    assert_eq!(told(&sample.operations(trace.clone(), &ends)), expected);

    let mut fast = trace;
    fast.speed = 5.0;
    assert_eq!(fast.duration(), Duration::from_millis(181));
    let times = sample
        .operations(fast, &ends)
        .into_iter()
        .map(|op| op.at.as_nanos());
    assert!(times.eq([0, 1_000_000, 31_000_000, 31_000_000, 181_000_000]));
}

/// What `blkparse` prints of two writes, a read, a flush, a discard and a SCSI command.
fn blkparse_text() -> String {
    let mut text = "Input file sdb.blktrace.0 added\n".to_owned();
    let mut sequence = 0;
    let mut line = |time: &str, action: &str, what: &str| {
        sequence += 1;
        let head = format!("  8,16   3 {sequence:8} {time:>15}   697");
        writeln!(text, "{head}  {action:>2} {what}").unwrap();
    };
    line("0.000000000", "Q", " WS 223490 + 8 [kjournald]");
    line("0.000001829", "G", " WS 223490 + 8 [kjournald]");
    line("0.000003359", "P", "  N [kjournald]");
    line("0.000006944", "I", " WS 223490 + 8 (    3585) [kjournald]");
    line("0.000010000", "m", "  N cfq697 insert_request");
    line("0.000072434", "D", " WS 223490 + 8 (   65490) [kjournald]");
    line("0.000200000", "Q", "FWS [jbd2/sdb-8]");
    line("0.000300000", "Q", "  D 4096 + 2048 [fstrim]");
    line("0.000400000", "Q", "  R 36 (12 00 00 00 24 ..) [udevd]");
    line("0.000500000", "Q", "FWFS 223498 + 1 [jbd2/sdb-8]");
    line("0.000600000", "C", " WS 223490 + 8 (  527566) [0]");
    line("1.250000000", "Q", " RA 64 + 4 [cat]");
    text.push_str("CPU3 (8,16):\n Reads Queued:           1,        2KiB\n\n");
    text.push_str("Total (8,16):\n Reads Queued:           1,        2KiB\n");
    text
}

#[test]
fn blkparse_lines_count_when_requests_are_queued() {
    let sample = sample(&blkparse_text());
    let trace = sample.survey().unwrap();
    assert_eq!(trace.format, Format::Blkparse);
    assert_eq!(trace.survey.disks[0].name, "8,16");
    let operations = sample.operations(trace, &[1 << 30]);
    let expected = [
        (0, 0, Kind::Write, 223_490 * 512, 4096),
        (0, 0, Kind::Write, 223_498 * 512, 512),
        (1250, 0, Kind::Read, 64 * 512, 2048),
    ];
    assert_eq!(told(&operations), expected);
    assert_eq!(operations[1].at.as_nanos(), 500_000);
}

#[test]
fn what_is_wrong_is_told_with_file_line_and_what_was_found() {
    let good = msr(5000, "h", 0, "Read", 0, 512);
    let late = msr(3999, "h", 0, "Read", 0, 512);
    let long = "x".repeat(5000);
    let event = |rest: &str| format!("8,0 1 1 0.000000000 697 Q {rest}\n");
    for (text, line, what) in [
        (format!("{good}1,h,0,Read,0\n"), Some(2), "5 fields"),
        (
            format!("{good}{good}x,h,0,Read,0,512,1\n"),
            Some(3),
            "time \"x\"",
        ),
        ("1,h,first,Read,0,512,1\n".into(), Some(1), "disk \"first\""),
        ("1,h,0,Erase,0,512,1\n".into(), Some(1), "\"Erase\""),
        ("1,h,0,Read,-1,512,1\n".into(), Some(1), "offset \"-1\""),
        ("1,h,0,Read,100,512,1\n".into(), Some(1), "multiple of 512"),
        ("1,h,0,Read,512,0,1\n".into(), Some(1), "0 bytes"),
        (
            "1,h,0,Read,9223372036854775296,512,1\n".into(),
            Some(1),
            "on no disk",
        ),
        (format!("{good}{late}"), Some(2), "1.001 s earlier"),
        (String::new(), None, "no operation"),
        ("\n\n".into(), None, "no operation"),
        (long, Some(1), "4096 bytes"),
        ("sda 1 1 0.0 697 Q R 0 + 8 [a]\n".into(), Some(1), "\"sda\""),
        (
            "8,0 1 1 0.5 697 Q R 0 + 8 [a]\n".into(),
            Some(1),
            "nine digits",
        ),
        ("8,0 1 1\n".into(), Some(1), "no time"),
        (event("R x + 8 [a]"), Some(1), "place \"x\""),
        (event("R 8 + y [a]"), Some(1), "size \"y\""),
        (event("N [a]"), None, "no operation"),
    ] {
        let sample = sample(&text);
        let refused = sample.survey().unwrap_err();
        assert_eq!(refused.line, line, "{refused}");
        assert!(refused.what.contains(what), "{what}: {refused}");
        let place = match line {
            Some(line) => format!("{}:{line}: ", sample.path.display()),
            None => format!("{}: ", sample.path.display()),
        };
        assert!(refused.to_string().starts_with(&place), "{refused}");
    }
    let gone = Trace::survey(file(Path::new("/nonexistent/t")), None, BeyondEnd::Wrap).unwrap_err();
    assert!(
        gone.to_string()
            .starts_with("/nonexistent/t: cannot be read"),
        "{gone}"
    );
    let bytes = sample("");
    std::fs::write(&bytes.path, [0xff, 0xfe, b'\n']).unwrap();
    assert!(bytes.survey().unwrap_err().what.contains("not text"));
}

#[test]
fn what_is_beyond_the_end_wraps_only_when_it_may() {
    let sample = sample(&(msr(0, "h", 0, "Read", 0, 4096) + &msr(1, "h", 0, "Write", 70144, 4096)));
    let mut trace = sample.survey().unwrap();
    let small = 65536;
    let mut replay = Replay::new(&Arc::new(trace.clone()), &[small]).unwrap();
    assert!(replay.draw().unwrap().is_some());
    let refused = replay.draw().unwrap_err();
    assert_eq!(refused.line, Some(2));
    assert!(
        refused.what.contains("70144") && refused.what.contains("h,0"),
        "{refused}"
    );
    trace.beyond_end = BeyondEnd::Wrap;
    let wrapped = sample.operations(trace.clone(), &[small]);
    assert_eq!(wrapped[1].offset_bytes, 70144 - small);
    // What would reach beyond the end after that lies at the end.
    let wrapped = sample.operations(trace, &[72192]);
    assert_eq!(wrapped[1].offset_bytes, 72192 - 4096);
}

#[test]
fn what_is_too_large_for_one_operation_is_cut() {
    const MIB: u64 = 1 << 20;
    let text = msr(0, "h", 0, "Write", 512, 2 * MIB + 1024) + &msr(7, "h", 0, "Read", 0, MIB);
    let sample = sample(&text);
    let trace = sample.survey().unwrap();
    let survey = &trace.survey;
    assert_eq!(
        (survey.operations, survey.reads, survey.bytes_max),
        (4, 1, 1 << 20)
    );
    let operations = told(&sample.operations(trace.clone(), &[4 * MIB]));
    let pieces = [
        (0, 0, Kind::Write, 512, (MIB - 512) as u32),
        (0, 0, Kind::Write, MIB, MIB as u32),
        (0, 0, Kind::Write, 2 * MIB, 1536),
        (7, 0, Kind::Read, 0, MIB as u32),
    ];
    assert_eq!(operations, pieces);
    assert_eq!(trace.profile().check(), Ok(()));
}

/// A plan of all of a trace on files of so many bytes each.
fn plan(trace: Trace, directory: &Path, files: &[u64]) -> Plan {
    let url = |(index, &bytes): (usize, &u64)| -> TargetUrl {
        let path = directory.join(format!("disk{index}"));
        File::create(&path).unwrap().set_len(bytes).unwrap();
        format!("file:{}", path.display()).parse().unwrap()
    };
    let urls: Vec<TargetUrl> = files.iter().enumerate().map(url).collect();
    let duration = trace.duration() + Duration::from_millis(1);
    let profile = trace.profile();
    Plan {
        vms: plan::places(&profile, &urls).unwrap(),
        profile,
        warmup: Duration::ZERO,
        duration,
        seed: 1,
        fill: false,
        rate_scale: 1.0,
        reconnect_for: Duration::ZERO,
        allow_outages: false,
    }
}

/// 40 operations on each of two disks within 0.8 s, all of odd numbers of sectors: writes
/// to disk 3, reads of disk 12.
fn two_disks() -> String {
    let lines = (0..40).map(|turn| {
        let place = turn * 5 * 512;
        msr(turn * 20, "h", 12, "Read", place, 1536) + &msr(turn * 20, "h", 3, "Write", place, 512)
    });
    lines.collect()
}

#[test]
fn each_disk_of_a_trace_is_replayed_on_its_target() {
    let sample = sample(&two_disks());
    let (trace, directory) = (sample.survey().unwrap(), sample.directory.path());
    let plan = plan(trace, directory, &[1 << 20, 1 << 20]);
    let outcome = run_whole(&plan).unwrap();
    let report = report::report(&plan, &outcome);
    let vm = &report.vms[0];
    assert_eq!((vm.failed, vm.lost), (0, false), "{:?}", vm.failures);
    assert_eq!((vm.read.response.count, vm.write.response.count), (40, 40));
    let bytes = outcome.vms[0].measured.write.bytes;
    assert!(bytes <= 40 * 512, "{bytes} of the trace's own count");
    // A file takes blocks of 4 KiB: the sectors are widened to them.
    let written = std::fs::read(directory.join("disk0")).unwrap();
    let last = (39 * 5 * 512) / 4096;
    for (index, block) in written.chunks(4096).enumerate() {
        for half in block.chunks(2048) {
            let is_written = half.iter().any(|&byte| byte != 0);
            assert_eq!(is_written, index <= last, "block {index}");
        }
    }
    let read = std::fs::read(directory.join("disk1")).unwrap();
    assert!(read.iter().all(|&byte| byte == 0), "reads write nothing");
}

#[test]
fn disks_of_a_trace_share_a_target_and_small_ones_are_refused_beforehand() {
    let sample = sample(&two_disks());
    let (trace, directory) = (sample.survey().unwrap(), sample.directory.path());
    let shared = plan(trace.clone(), directory, &[1 << 20]);
    let report = report::report(&shared, &run_whole(&shared).unwrap());
    assert_eq!(report.vms[0].failed, 0, "{:?}", report.vms[0].failures);
    assert_eq!(report.vms[0].read.response.count, 40);

    let small = plan(trace.clone(), directory, &[1 << 20, 96 << 10]);
    match run_whole(&small) {
        Err(RunError::Targets(errors)) => {
            assert_eq!(errors[0].kind, TargetErrorKind::Capacity, "{}", errors[0]);
        }
        other => panic!("{other:?}"),
    }
    let wrapping = Trace {
        beyond_end: BeyondEnd::Wrap,
        ..trace
    };
    let wrapped = plan(wrapping, directory, &[1 << 20, 96 << 10]);
    let report = report::report(&wrapped, &run_whole(&wrapped).unwrap());
    assert_eq!(report.vms[0].failed, 0, "{:?}", report.vms[0].failures);
}

#[test]
fn a_trace_that_changes_under_a_run_is_a_loss_and_no_panic() {
    let sample = sample(&two_disks());
    let trace = sample.survey().unwrap();
    let mut plan = plan(trace, sample.directory.path(), &[1 << 20, 1 << 20]);
    plan.duration = Duration::from_secs(2);
    let mut text = two_disks();
    text.push_str("nonsense\n");
    std::fs::write(&sample.path, text).unwrap();
    let outcome = run_whole(&plan).unwrap();
    let lost = outcome.vms[0].lost.as_ref().expect("the trace is lost");
    assert_eq!(lost.kind, TargetErrorKind::Trace);
    assert!(lost.to_string().contains("trace:81: "), "{lost}");
    std::fs::remove_file(&sample.path).unwrap();
    let outcome = run_whole(&plan).unwrap();
    let report = report::report(&plan, &outcome);
    assert!(report.vms[0].lost && report.vms[0].failures[0].contains("cannot be read"));
}
