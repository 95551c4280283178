//! The KPIs of all VMs as a table.

use crate::report::page::{escape, put, table};
use crate::report::table::{self as text, millis, several};
use crate::report::{KindReport, Report, StreamReport, VmReport};

/// What the column of limits is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitColumn {
    /// Limits decide whether a run passes.
    Judged,
    /// The run has another goal; limits are there for comparison.
    Compared,
}

/// The KPIs of all VMs and of their total, as a table.
pub fn kpi_table(report: &Report, limits: LimitColumn) -> String {
    let mut rows = String::new();
    for vm in &report.vms {
        vm_rows(&mut rows, vm, "", limits);
        let streams = several(vm).iter();
        streams.for_each(|stream| stream_rows(&mut rows, stream));
    }
    vm_rows(&mut rows, &report.total, " class=\"total\"", limits);
    let limit = match limits {
        LimitColumn::Judged => "limit of the mean, ms",
        LimitColumn::Compared => "VM’s limit of the mean, ms",
    };
    let head = format!(
        "<tr><th rowspan=\"2\">VM</th><th rowspan=\"2\" class=\"op\">op</th><th rowspan=\"2\">IO/s</th>\
         <th colspan=\"5\" class=\"group\">response time, ms</th><th rowspan=\"2\">MB/s</th>\
         <th rowspan=\"2\">queue</th><th rowspan=\"2\">achieved, %</th>\
         <th rowspan=\"2\">{limit}</th></tr>\n\
         <tr><th>mean</th><th>p50</th><th>p95</th><th>p99</th><th>p99.9</th></tr>"
    );
    table("KPIs of all VMs", &head, &rows)
        + "<p class=\"small\">Response times count from the intended start of each operation. \
           Queue: mean number of operations at the target. Achieved: completed of what was due; \
           a closed loop has nothing due.</p>\n"
        + &transactions(report)
}

/// What closed networks did, VM by VM; nothing where there are none.
fn transactions(report: &Report) -> String {
    let all = report.vms.iter().chain([&report.total]);
    let lines = all.filter_map(text::transactions);
    lines
        .map(|line| format!("<p>{}</p>\n", escape(line.trim_end())))
        .collect()
}

/// The lines of a VM, reads and writes.
fn vm_rows(rows: &mut String, vm: &VmReport, class: &str, limits: LimitColumn) {
    let kinds = [
        ("read", vm.reads_per_s, &vm.read, "mean read latency"),
        ("write", vm.writes_per_s, &vm.write, "mean write latency"),
    ];
    let shown: Vec<_> = kinds
        .into_iter()
        .filter(|kind| kind.2.response.count > 0)
        .collect();
    let span = shown.len().max(1);
    put(
        rows,
        format_args!(
            "<tr{class}><th rowspan=\"{span}\">{}</th>",
            escape(&vm.name)
        ),
    );
    let shared = format!(
        "<td rowspan=\"{span}\">{:.1}</td><td rowspan=\"{span}\">{:.2}</td>\
         <td rowspan=\"{span}\">{}</td>",
        vm.megabytes_per_s,
        vm.queue_length,
        achieved(vm.achieved_percent, vm.valid)
    );
    if shown.is_empty() {
        let nothing = "<td class=\"op\" colspan=\"7\">nothing completed</td>";
        put(rows, format_args!("{nothing}{shared}<td></td></tr>"));
    }
    for (index, (name, per_s, kind, kpi)) in shown.into_iter().enumerate() {
        if index > 0 {
            put(rows, format_args!("<tr{class}>"));
        }
        put(
            rows,
            format_args!("<td class=\"op\">{name}</td><td>{per_s:.1}</td>"),
        );
        latencies(rows, kind);
        let shared = if index == 0 { shared.as_str() } else { "" };
        put(
            rows,
            format_args!("{shared}<td>{}</td></tr>\n", limit(vm, kpi, limits)),
        );
    }
}

/// The lines of one of several streams of a VM.
fn stream_rows(rows: &mut String, stream: &StreamReport) {
    let kinds = [
        ("read", stream.reads_per_s, &stream.read),
        ("write", stream.writes_per_s, &stream.write),
    ];
    for (name, per_s, kind) in kinds {
        if kind.response.count == 0 {
            continue;
        }
        put(
            rows,
            format_args!(
                "<tr><th class=\"stream\">{}</th><td class=\"op\">{name}</td><td>{per_s:.1}</td>",
                escape(&stream.name)
            ),
        );
        latencies(rows, kind);
        let achieved = achieved(stream.achieved_percent, stream.valid);
        put(
            rows,
            format_args!("<td></td><td></td><td>{achieved}</td><td></td></tr>\n"),
        );
    }
}

fn latencies(rows: &mut String, kind: &KindReport) {
    let of = &kind.response;
    for value in [of.mean_ms, of.p50_ms, of.p95_ms, of.p99_ms, of.p999_ms] {
        put(rows, format_args!("<td>{}</td>", millis(value)));
    }
}

fn achieved(percent: Option<f64>, valid: bool) -> String {
    match percent {
        None => "closed loop".into(),
        Some(percent) if valid => format!("{percent:.1}"),
        Some(percent) => format!("<span class=\"bad\">{percent:.1} invalid</span>"),
    }
}

fn limit(vm: &VmReport, kpi: &str, limits: LimitColumn) -> String {
    let Some(limit) = vm.limits.iter().find(|limit| limit.kpi == kpi) else {
        return String::new();
    };
    let (class, word) = match (limits, limit.pass) {
        (LimitColumn::Judged, true) => ("good", "pass"),
        (LimitColumn::Judged, false) => ("bad", "FAIL"),
        (LimitColumn::Compared, true) => ("below", "below"),
        (LimitColumn::Compared, false) => ("above", "above"),
    };
    let limit_ms = limit.limit_ms;
    match limits {
        LimitColumn::Judged => format!("<span class=\"{class}\">{word}</span> &lt; {limit_ms}"),
        LimitColumn::Compared => format!("<span class=\"{class}\">{word}</span> {limit_ms}"),
    }
}
