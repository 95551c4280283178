//! The report as one self-contained HTML file: no script, no external resource.

use super::chart::{Axis, CLASSES, Chart, Scale, Series, escape};
use super::table::{millis, several, words};
use super::{KindReport, Report, SecondReport, StreamReport, Verdict, VmReport};
use std::fmt::Write;

/// The report as a page.
pub fn html(report: &Report) -> String {
    let title = format!("Ashlar load: {}", report.profile);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{}</title>\n<style>{STYLE}</style></head><body><main>\n",
        escape(&title)
    );
    page.push_str(&head(report, &title));
    page.push_str(&kpi_table(report));
    page.push_str("<div class=\"charts\">");
    page.push_str(&figure(
        "Operations per second, all VMs",
        &rate_chart(report),
    ));
    page.push_str(&figure(
        "Mean response time per second, all VMs",
        &latency_chart(report),
    ));
    for (kind, caption) in [(of_read as OfKind, "Reads"), (of_write as OfKind, "Writes")] {
        if let Some(chart) = distribution_chart(report, kind, caption) {
            let caption = format!("{caption}: distribution of the response time per VM");
            page.push_str(&figure(&caption, &chart));
        }
    }
    page.push_str("</div>\n");
    page.push_str(&details(report));
    page.push_str("</main></body></html>\n");
    page
}

type OfKind = fn(&VmReport) -> &KindReport;

fn of_read(vm: &VmReport) -> &KindReport {
    &vm.read
}

fn of_write(vm: &VmReport) -> &KindReport {
    &vm.write
}

fn head(report: &Report, title: &str) -> String {
    let good = report.verdict == Verdict::Pass;
    let total = &report.total;
    let tile = |value: String, label: &str| {
        format!("<div class=\"tile\"><b>{value}</b><span>{label}</span></div>")
    };
    let mut tiles = vec![
        tile(
            format!("{:.0}", total.reads_per_s + total.writes_per_s),
            "operations/s",
        ),
        tile(format!("{:.1}", total.megabytes_per_s), "MB/s"),
    ];
    for (kind, label) in [
        (&total.read, "mean read, ms"),
        (&total.write, "mean write, ms"),
    ] {
        if kind.response.count > 0 {
            tiles.push(tile(millis(kind.response.mean_ms), label));
        }
    }
    for limit in &total.limits {
        let (millis, below) = (millis(limit.value_ms), limit.limit_ms);
        let label = format!("{}, ms (&lt; {below})", limit.kpi);
        tiles.push(tile(millis, &label));
    }
    tiles.push(tile(
        format!("{:.1}", total.queue_length),
        "mean queue length",
    ));
    format!(
        "<h1>{}</h1>\n<p class=\"verdict {}\">{}</p>\n<div class=\"tiles\">{}</div>\n",
        escape(title),
        if good { "pass" } else { "fail" },
        escape(words(report.verdict)),
        tiles.concat()
    )
}

/// The KPIs of all VMs and of their total, as a table.
pub fn kpi_table(report: &Report) -> String {
    let mut rows = String::new();
    for vm in report.vms.iter().chain([&report.total]) {
        let kinds = [
            ("read", vm.reads_per_s, &vm.read, "mean read latency"),
            ("write", vm.writes_per_s, &vm.write, "mean write latency"),
        ];
        let shown: Vec<_> = kinds
            .into_iter()
            .filter(|kind| kind.2.response.count > 0)
            .collect();
        let span = shown.len().max(1);
        let class = if vm.name == report.total.name {
            " class=\"total\""
        } else {
            ""
        };
        put(
            &mut rows,
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
            put(
                &mut rows,
                format_args!("<td colspan=\"7\">nothing completed</td>{shared}<td></td></tr>"),
            );
        }
        for (index, (name, per_s, kind, kpi)) in shown.into_iter().enumerate() {
            if index > 0 {
                put(&mut rows, format_args!("<tr{class}>"));
            }
            let r = &kind.response;
            put(
                &mut rows,
                format_args!("<td class=\"op\">{name}</td><td>{per_s:.1}</td>"),
            );
            for value in [r.mean_ms, r.p50_ms, r.p95_ms, r.p99_ms, r.p999_ms] {
                put(&mut rows, format_args!("<td>{}</td>", millis(value)));
            }
            let shared = if index == 0 { shared.as_str() } else { "" };
            put(
                &mut rows,
                format_args!("{shared}<td>{}</td></tr>\n", limit(vm, kpi)),
            );
        }
        several(vm)
            .iter()
            .for_each(|stream| stream_rows(&mut rows, stream));
    }
    format!(
        "<div class=\"scroll\"><table><thead><tr><th>VM</th><th class=\"op\">op</th><th>IO/s</th>\
         <th>mean</th><th>p50</th><th>p95</th><th>p99</th><th>p99.9</th><th>MB/s</th>\
         <th>queue</th><th>achieved</th><th>limit</th></tr></thead><tbody>\n{rows}</tbody></table>\
         </div><p class=\"small\">Latencies in ms, from the intended start of each operation. \
         Queue: mean number of operations at the target. Achieved: completed of what was \
         due.</p>\n"
    )
}

/// The lines of one of several streams of a VM.
fn stream_rows(rows: &mut String, stream: &StreamReport) {
    let kinds = [
        ("read", stream.reads_per_s, &stream.read),
        ("write", stream.writes_per_s, &stream.write),
    ];
    for (name, per_s, kind) in kinds {
        let r = &kind.response;
        if r.count == 0 {
            continue;
        }
        put(
            rows,
            format_args!(
                "<tr><th class=\"small\">{}</th><td class=\"op\">{name}</td><td>{per_s:.1}</td>",
                escape(&stream.name)
            ),
        );
        for value in [r.mean_ms, r.p50_ms, r.p95_ms, r.p99_ms, r.p999_ms] {
            put(rows, format_args!("<td>{}</td>", millis(value)));
        }
        let achieved = achieved(stream.achieved_percent, stream.valid);
        put(
            rows,
            format_args!("<td></td><td></td><td>{achieved}</td><td></td></tr>\n"),
        );
    }
}

fn achieved(percent: Option<f64>, valid: bool) -> String {
    match percent {
        None => "closed loop".into(),
        Some(percent) if valid => format!("{percent:.1} %"),
        Some(percent) => format!("<span class=\"bad\">{percent:.1} % invalid</span>"),
    }
}

fn limit(vm: &VmReport, kpi: &str) -> String {
    let Some(limit) = vm.limits.iter().find(|limit| limit.kpi == kpi) else {
        return String::new();
    };
    let (class, word) = if limit.pass {
        ("good", "pass")
    } else {
        ("bad", "FAIL")
    };
    format!(
        "<span class=\"{class}\">{word}</span> &lt; {} ms",
        limit.limit_ms
    )
}

/// A chart with its caption and legend.
pub fn figure(caption: &str, chart: &Chart) -> String {
    format!(
        "<figure><figcaption>{}</figcaption>{}{}</figure>\n",
        escape(caption),
        chart.legend(),
        chart.svg()
    )
}

/// The seconds of the run that are whole: in the last one only stragglers of the
/// drain complete.
fn whole_seconds(report: &Report) -> &[SecondReport] {
    let until = (report.warmup_s + report.measured_s).floor() as usize;
    let seconds = &report.total.seconds;
    &seconds[..until.min(seconds.len())]
}

fn over_time(report: &Report, y: Axis, series: Vec<Series>, title: &str) -> Chart {
    let x = Axis::until(
        "seconds since the start",
        report.warmup_s + report.measured_s,
    );
    let shaded = (report.warmup_s > 0.0).then_some((0.0, report.warmup_s, "warm-up"));
    Chart {
        title: title.into(),
        x,
        y,
        series,
        shaded,
        limit: None,
        marks: Vec::new(),
    }
}

fn series(name: &str, class: usize, seconds: &[SecondReport], value: Value) -> Series {
    // A second's value stands in its middle.
    let point = |second: &SecondReport| (second.second as f64 + 0.5, value(second));
    Series {
        name: name.into(),
        class,
        points: seconds.iter().map(point).collect(),
    }
}

type Value = fn(&SecondReport) -> Option<f64>;

/// Operations per second over time.
pub fn rate_chart(report: &Report) -> Chart {
    let seconds = whole_seconds(report);
    let lines = vec![
        series("reads", 0, seconds, |second| Some(second.reads as f64)),
        series("writes", 1, seconds, |second| Some(second.writes as f64)),
    ];
    let y = Axis::linear("operations per second", largest(&lines));
    over_time(report, y, lines, "operations per second over time")
}

/// Mean response times over time.
pub fn latency_chart(report: &Report) -> Chart {
    let seconds = whole_seconds(report);
    let lines = vec![
        series("read", 0, seconds, |second| second.read_mean_ms),
        series("write", 1, seconds, |second| second.write_mean_ms),
    ];
    let limit_ms = report
        .vms
        .iter()
        .flat_map(|vm| &vm.limits)
        .map(|limit| limit.limit_ms);
    let limit_ms = limit_ms.reduce(f64::min);
    let max = largest(&lines);
    let y = Axis::linear("response time, ms", max);
    let limit = limit_ms.filter(|&limit| limit <= y.range.1);
    let mut chart = over_time(report, y, lines, "mean response time over time");
    chart.limit = limit.map(|limit| (limit, format!("limit {limit} ms")));
    chart
}

fn largest(lines: &[Series]) -> f64 {
    let values = lines
        .iter()
        .flat_map(|line| &line.points)
        .filter_map(|point| point.1);
    values.fold(0.0, f64::max)
}

/// Percentiles as "nines": 90, 99, 99.9 % are equally far apart.
fn distribution_chart(report: &Report, kind: OfKind, caption: &str) -> Option<Chart> {
    let nines = |percent: f64| 1.0 / (1.0 - percent.min(99.999) / 100.0);
    let mut lines = Vec::new();
    for (index, vm) in report.vms.iter().enumerate() {
        let points = &kind(vm).percentiles;
        let count = kind(vm).response.count as f64;
        // A percentile that less than one operation lies above is the maximum.
        let told = points
            .iter()
            .filter(|point| nines(point.percent) <= count.max(2.0));
        let points: Vec<_> = told
            .map(|point| (nines(point.percent), Some(point.response_ms)))
            .collect();
        if !points.is_empty() {
            lines.push(Series {
                name: vm.name.clone(),
                class: index % CLASSES,
                points,
            });
        }
    }
    let values = || {
        lines
            .iter()
            .flat_map(|line| &line.points)
            .filter_map(|point| point.1)
    };
    let (low, high) = (
        values().fold(f64::MAX, f64::min),
        values().fold(0.0, f64::max),
    );
    let furthest = lines
        .iter()
        .flat_map(|line| &line.points)
        .map(|point| point.0);
    let last = furthest.fold(10.0, f64::max);
    if lines.is_empty() {
        return None;
    }
    let all = [
        (1.0, "0"),
        (2.0, "50"),
        (10.0, "90"),
        (20.0, "95"),
        (100.0, "99"),
        (1e3, "99.9"),
        (1e4, "99.99"),
        (1e5, "99.999"),
    ];
    let last = all
        .iter()
        .map(|tick| tick.0)
        .find(|&tick| tick >= last * 0.999)
        .unwrap_or(1e5);
    let ticks = all
        .iter()
        .filter(|tick| tick.0 <= last)
        .map(|&(v, text)| (v, text.to_string()));
    let x = Axis {
        label: "percentile".into(),
        ticks: ticks.collect(),
        range: (1.0, last),
        scale: Scale::Log,
    };
    let y = Axis::log("response time, ms", low, high);
    let title = format!("{caption}: response time by percentile, per VM");
    Some(Chart {
        title,
        x,
        y,
        series: lines,
        shaded: None,
        limit: None,
        marks: Vec::new(),
    })
}

fn details(report: &Report) -> String {
    let mut rows = String::new();
    for vm in &report.vms {
        let disks: Vec<String> = vm
            .disk_bytes
            .iter()
            .map(|&bytes| mebibytes(bytes))
            .collect();
        let failures: Vec<String> = vm.failures.iter().map(|failure| escape(failure)).collect();
        put(
            &mut rows,
            format_args!(
                "<tr><th>{}</th><td class=\"text\">{}</td><td class=\"text\">{}</td><td>{}</td>\
             <td>{}</td><td>{:.2}</td><td>{}</td><td class=\"text\">{}</td></tr>\n",
                escape(&vm.name),
                escape(&vm.role),
                vm.targets
                    .iter()
                    .map(|url| escape(url))
                    .collect::<Vec<_>>()
                    .join("<br>"),
                disks.join(" + "),
                vm.offered_per_s
                    .map_or("–".into(), |rate| format!("{rate:.1}")),
                vm.queue_length_by_littles_law,
                millis(vm.lateness.p99_ms),
                if vm.failed == 0 && !vm.lost {
                    "none".to_string()
                } else {
                    format!("{} failed<br>{}", vm.failed, failures.join("<br>"))
                }
            ),
        );
    }
    format!(
        "<h2>Run</h2><p>Profile {}, {} s measured after {} s of warm-up, seed {}, rates × {}, \
         disks {} before. {}</p>\n<div class=\"scroll\"><table><thead><tr><th>VM</th>\
         <th class=\"text\">role</th><th class=\"text\">targets</th><th>disks, MiB</th>\
         <th>due/s</th><th>queue (Little)</th><th>issued late, p99 ms</th>\
         <th class=\"text\">errors</th></tr></thead><tbody>\n{rows}</tbody></table></div>\n",
        escape(&report.profile),
        report.measured_s,
        report.warmup_s,
        report.seed,
        report.rate_scale,
        if report.filled {
            "written once"
        } else {
            "not written"
        },
        if report.interrupted {
            "<b>Stopped before its end.</b>"
        } else {
            ""
        }
    )
}

fn mebibytes(bytes: u64) -> String {
    format!("{}", bytes >> 20)
}

fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(what);
}

/// The style of the page, for pages that show more.
pub const STYLE: &str = include_str!("style.css");
