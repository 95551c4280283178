//! The KPI table for a terminal.

use super::{KindReport, OutageReport, Report, StreamReport, Verdict, VmReport};
use std::fmt::Write;

const HEADERS: [&str; 10] = [
    "VM", "op", "IO/s", "MB/s", "mean", "p50", "p95", "p99", "p99.9", "limit",
];

/// The KPIs as a table: two lines per VM, per stream of a VM that has several, and
/// for all, then what to know about the run.
pub fn table(report: &Report) -> String {
    let mut rows = vec![HEADERS.map(String::from)];
    for vm in report.vms.iter().chain([&report.total]) {
        rows.extend(lines_of(vm));
        rows.extend(several(vm).iter().flat_map(lines_of_stream));
    }
    let mut text = String::new();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..HEADERS.len())
        .map(|column| width(column).unwrap_or(0))
        .collect();
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            // Names to the left, figures to the right.
            let cell = if column < 2 || column == HEADERS.len() - 1 {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            };
            line.push_str(&cell);
            line.push_str("  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push('\n');
    for line in report
        .vms
        .iter()
        .chain([&report.total])
        .filter_map(transactions)
    {
        text.push_str(&line);
    }
    text.push_str(&notes(report));
    text
}

fn lines_of(vm: &VmReport) -> Vec<[String; HEADERS.len()]> {
    let kinds = [
        ("read", &vm.read, vm.reads_per_s, "mean read latency"),
        ("write", &vm.write, vm.writes_per_s, "mean write latency"),
    ];
    let mut lines = Vec::new();
    for (kind, latency, per_s, kpi) in kinds {
        if latency.response.count == 0 && per_s == 0.0 {
            continue;
        }
        let first = lines.is_empty();
        let limit = vm.limits.iter().find(|limit| limit.kpi == kpi);
        let limit = limit.map_or(String::new(), |limit| {
            let word = if limit.pass { "pass" } else { "FAIL" };
            format!("{word} (< {} ms)", limit.limit_ms)
        });
        let name = if first {
            vm.name.clone()
        } else {
            String::new()
        };
        let bandwidth = if first {
            format!("{:.1}", vm.megabytes_per_s)
        } else {
            String::new()
        };
        lines.push(line(name, kind, per_s, bandwidth, latency, limit));
    }
    if lines.is_empty() {
        let mut idle = [const { String::new() }; HEADERS.len()];
        idle[0] = vm.name.clone();
        idle[1] = "nothing completed".into();
        lines.push(idle);
    }
    lines
}

/// The streams of a VM, if they say more than the VM does.
pub(super) fn several(vm: &VmReport) -> &[StreamReport] {
    match vm.streams.as_slice() {
        [_] => &[],
        streams => streams,
    }
}

fn lines_of_stream(stream: &StreamReport) -> Vec<[String; HEADERS.len()]> {
    let kinds = [
        ("read", &stream.read, stream.reads_per_s),
        ("write", &stream.write, stream.writes_per_s),
    ];
    let mut lines = Vec::new();
    for (kind, latency, per_s) in kinds {
        if latency.response.count == 0 && per_s == 0.0 {
            continue;
        }
        let name = match lines.is_empty() {
            true => format!("  {}", stream.name),
            false => String::new(),
        };
        let nothing = String::new;
        lines.push(line(name, kind, per_s, nothing(), latency, nothing()));
    }
    lines
}

fn line(
    name: String,
    kind: &str,
    per_s: f64,
    bandwidth: String,
    latency: &KindReport,
    limit: String,
) -> [String; HEADERS.len()] {
    let response = &latency.response;
    [
        name,
        kind.into(),
        format!("{per_s:.1}"),
        bandwidth,
        millis(response.mean_ms),
        millis(response.p50_ms),
        millis(response.p95_ms),
        millis(response.p99_ms),
        millis(response.p999_ms),
        limit,
    ]
}

/// Three digits are what a measurement carries.
pub(super) fn millis(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

fn notes(report: &Report) -> String {
    let mut text = String::new();
    let total = &report.total;
    let mut say = |line: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
    };
    say(format!(
        "{}: {:.0} s measured after {:.0} s of warm-up, seed {}, rates × {}. Latencies in ms from \
         the intended start.",
        report.profile, report.measured_s, report.warmup_s, report.seed, report.rate_scale
    ));
    say(format!(
        "Queue length {:.2} (by Little's law {:.2}). Issued late by {} ms at p99 (generator).",
        total.queue_length,
        total.queue_length_by_littles_law,
        millis(total.lateness.p99_ms)
    ));
    for limit in &total.limits {
        say(format!(
            "{} of all VMs: {} ms, {} (< {} ms).",
            capitalised(&limit.kpi),
            millis(limit.value_ms),
            if limit.pass { "pass" } else { "FAIL" },
            limit.limit_ms
        ));
    }
    for (vm, stream) in report
        .vms
        .iter()
        .flat_map(|vm| vm.streams.iter().map(move |stream| (vm, stream)))
        .filter(|(_, stream)| !stream.valid)
    {
        let of_several = match several(vm) {
            [] => String::new(),
            _ => format!(" ({})", stream.name),
        };
        say(format!(
            "INVALID: {}{of_several} completed {:.1} % of the {:.1} operations/s that were due; \
             its KPIs are those of another load.",
            vm.name,
            stream.achieved_percent.unwrap_or(0.0),
            stream.offered_per_s.unwrap_or(0.0)
        ));
    }
    for vm in report.vms.iter().filter(|vm| vm.failed > 0 || vm.lost) {
        let with_session = match vm.lost_operations {
            0 => String::new(),
            lost => format!(", {lost} of them with their session"),
        };
        say(format!(
            "ERRORS: {}: {} failed{with_session}.",
            vm.name,
            base::size::counted(vm.failed, "operation")
        ));
        for failure in &vm.failures {
            say(format!("  {failure}"));
        }
    }
    for vm in report.vms.iter().filter(|vm| vm.unit_attentions > 0) {
        say(format!(
            "Notice: {}: unit attentions: {}. Operations that met one were sent again, and did not fail.",
            vm.name, vm.unit_attentions
        ));
        for told in &vm.attentions {
            say(format!("  {told}"));
        }
    }
    report.outages.iter().map(outage).for_each(&mut say);
    say(format!("Result: {}", words(report.verdict)));
    text
}

/// What the closed networks of a VM do, and what is under way for that.
pub(super) fn transactions(vm: &VmReport) -> Option<String> {
    let of_vm = vm.transactions?;
    Some(format!(
        "{}: {:.1} transactions/s, {} ms each; {:.1} operations under way.\n",
        vm.name,
        of_vm.per_s,
        millis(of_vm.response.mean_ms),
        of_vm.under_way,
    ))
}

/// An outage in a line.
pub(super) fn outage(outage: &OutageReport) -> String {
    let until = match outage.until_s {
        Some(until_s) => format!("to {until_s:.2} s ({:.2} s)", outage.seconds),
        None => "to the end of the run, and not back by then".into(),
    };
    let of_vm = outage.vms.iter().map(|vm| match vm.until_s {
        Some(until_s) => {
            let away_s = until_s - vm.from_s;
            format!("{} {} in {away_s:.2} s", vm.name, vm.operations_lost)
        }
        None => format!("{} {}, not back", vm.name, vm.operations_lost),
    });
    format!(
        "OUTAGE: from {:.2} s {until}: {} operations under way were lost ({}); {}",
        outage.from_s,
        outage.operations_lost,
        of_vm.collect::<Vec<_>>().join(", "),
        outage.why
    )
}

/// The name of a KPI at the start of a sentence.
pub(super) fn capitalised(kpi: &str) -> String {
    let mut letters = kpi.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The verdict in words.
pub(super) fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Errors => "failed: there were I/O errors or outages",
        Verdict::Incomplete => "incomplete: stopped before its end",
        Verdict::Invalid => "invalid: the target could not take the intended load",
        Verdict::LimitFailed => "a limit failed",
        Verdict::Pass => "pass: every VM within its limits",
    }
}
