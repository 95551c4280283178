//! The charts of a report: over the time of the run, and VM by VM.

use crate::report::chart::{Axis, Chart, Scale, Series, Size};
use crate::report::page::{charts, escape, figure, multiples};
use crate::report::{IntervalLatencyReport, IntervalReport, KindReport, Report, VmReport};

/// So many VMs have a small chart each; of more, those with the longest response times.
const VMS_SHOWN: usize = 24;

type Lines<'a> = [(
    &'a str,
    &'static str,
    &'a dyn Fn(&IntervalReport) -> Option<f64>,
)];

/// Operations per second, means and percentiles of the response time, all over time, with
/// `marks` at seconds of the run.
pub fn over_time(report: &Report, marks: &[(f64, String)]) -> String {
    let named = [
        ("Operations per second", Some(rate_chart(report))),
        ("Mean response time", Some(mean_chart(report))),
        (
            "Reads: percentiles of the response time",
            percentile_chart(
                report,
                "reads",
                |interval| interval.read,
                ["read p50", "read p95", "read p99"],
            ),
        ),
        (
            "Writes: percentiles of the response time",
            percentile_chart(
                report,
                "writes",
                |interval| interval.write,
                ["write p50", "write p95", "write p99"],
            ),
        ),
    ];
    let mut figures = String::new();
    for (caption, chart) in named {
        let Some(mut chart) = chart else { continue };
        chart.marks = marks.to_vec();
        figures.push_str(&figure(caption, &chart));
    }
    charts(&figures)
}

/// The intervals of a run that are whole: in the last one only stragglers of the drain
/// complete. A run that is shorter than one interval has that one.
fn whole<'a>(report: &Report, vm: &'a VmReport) -> &'a [IntervalReport] {
    let until_s = report.warmup_s + report.measured_s;
    let is_whole = |of: &&IntervalReport| of.start_s + of.length_s <= until_s + 1e-9;
    let count = vm.intervals.iter().take_while(is_whole).count();
    &vm.intervals[..count.max(1).min(vm.intervals.len())]
}

/// How much of an interval the run covers, in seconds.
fn covered_s(report: &Report, of: &IntervalReport) -> f64 {
    let until_s = report.warmup_s + report.measured_s;
    of.length_s.min(until_s - of.start_s).max(1e-3)
}

/// Time from the start of the run: its axis, and what a second is on it.
fn time(report: &Report) -> (Axis, f64) {
    let until_s = report.warmup_s + report.measured_s;
    let (unit, per_unit_s) = match until_s {
        s if s <= 600.0 => ("seconds", 1.0),
        s if s <= 36_000.0 => ("minutes", 60.0),
        _ => ("hours", 3600.0),
    };
    let label = format!("{unit} since the start");
    (Axis::until(&label, until_s / per_unit_s), per_unit_s)
}

fn chart_over_time(
    report: &Report,
    (title, size): (&str, Size),
    y: impl Fn(&[Series]) -> Axis,
    lines: &Lines<'_>,
    vm: &VmReport,
) -> Chart {
    let (x, per_unit_s) = time(report);
    let series = lines.iter().map(|(name, class, value)| Series {
        name: (*name).to_owned(),
        class,
        // An interval's value stands in its middle.
        points: whole(report, vm)
            .iter()
            .map(|of| {
                let middle_s = of.start_s + covered_s(report, of) / 2.0;
                (middle_s / per_unit_s, value(of))
            })
            .collect(),
        dotted: false,
    });
    let series: Vec<Series> = series.collect();
    let mut chart = Chart::new(title, size, (x, y(&series)));
    chart.series = series;
    let warmup = report.warmup_s / per_unit_s;
    chart.shaded = (warmup > 0.0).then_some((0.0, warmup, "warm-up"));
    chart
}

/// Operations per second over time.
fn rate_chart(report: &Report) -> Chart {
    let rate = |of: Option<IntervalLatencyReport>, interval: &IntervalReport| {
        Some(of.map_or(0.0, |of| of.count as f64) / covered_s(report, interval))
    };
    let lines: &Lines<'_> = &[
        ("reads", "read", &|of| rate(of.read, of)),
        ("writes", "write", &|of| rate(of.write, of)),
    ];
    let title = ("operations per second over time", Size::Full);
    let y = |series: &[Series]| Axis::linear("operations per second", ends(series).1);
    chart_over_time(report, title, y, lines, &report.total)
}

/// Mean response times over time, with the tightest limit of a VM.
fn mean_chart(report: &Report) -> Chart {
    let mean = |of: Option<IntervalLatencyReport>| of.map(|of| of.mean_ms);
    let lines: &Lines<'_> = &[
        ("reads", "read", &|of| mean(of.read)),
        ("writes", "write", &|of| mean(of.write)),
    ];
    let title = ("mean response time over time", Size::Full);
    let y = |series: &[Series]| Axis::linear("response time, ms", ends(series).1);
    let mut chart = chart_over_time(report, title, y, lines, &report.total);
    let limits = report.vms.iter().flat_map(|vm| &vm.limits);
    let limit_ms = limits.map(|limit| limit.limit_ms).reduce(f64::min);
    let limit_ms = limit_ms.filter(|&limit_ms| limit_ms <= chart.y.range.1);
    chart.limit = limit_ms.map(|limit_ms| (limit_ms, format!("limit {limit_ms} ms")));
    chart
}

/// Percentiles of the response time over time; none where nothing completed.
fn percentile_chart(
    report: &Report,
    what: &str,
    of: fn(&IntervalReport) -> Option<IntervalLatencyReport>,
    classes: [&'static str; 3],
) -> Option<Chart> {
    let lines: &Lines<'_> = &[
        ("p50", classes[0], &|interval| {
            of(interval).map(|of| of.p50_ms)
        }),
        ("p95", classes[1], &|interval| {
            of(interval).map(|of| of.p95_ms)
        }),
        ("p99", classes[2], &|interval| {
            of(interval).map(|of| of.p99_ms)
        }),
    ];
    let title = format!("percentiles of the response time of {what} over time");
    let title = (title.as_str(), Size::Full);
    let chart = chart_over_time(report, title, log_ms, lines, &report.total);
    has_points(&chart.series).then_some(chart)
}

/// An axis by powers of ten that holds all of these lines.
fn log_ms(series: &[Series]) -> Axis {
    let (low, high) = ends(series);
    Axis::log("response time, ms", low, high)
}

fn has_points(series: &[Series]) -> bool {
    let mut points = series.iter().flat_map(|line| &line.points);
    points.any(|point| point.1.is_some())
}

/// The smallest and the largest value of these lines; 1 and 0 without.
fn ends(series: &[Series]) -> (f64, f64) {
    let values = || {
        let points = series.iter().flat_map(|line| &line.points);
        points.filter_map(|point| point.1)
    };
    let low = values().reduce(f64::min).unwrap_or(1.0);
    (low, values().fold(0.0, f64::max))
}

/// A small chart for each VM, all with the same axes: response times by percentile, and over
/// time. `heading` is the element of headings.
pub fn vm_charts(report: &Report, heading: &str) -> String {
    let vms = shown(report);
    let told = match report.vms.len() - vms.len() {
        0 => String::new(),
        _ => format!(
            " These are the {} of {} VMs with the longest response times (p95).",
            vms.len(),
            report.vms.len()
        ),
    };
    let mut html = String::new();
    let distributions = with_one_axis(vms.iter().map(|vm| (vm.name.clone(), distribution(vm))));
    if let [(_, only)] = distributions.as_slice() {
        let mut only = only.clone();
        only.size = Size::Full;
        let caption = "Response time (ms) by percentile";
        return charts(&figure(caption, &only));
    }
    if !distributions.is_empty() {
        html.push_str(&format!(
            "<{heading}>Response time by percentile, VM by VM</{heading}>\n"
        ));
        let note = format!(
            "Percentile across, response time in ms upwards; all VMs have the same axes.{told}"
        );
        html.push_str(&multiples(&note, &distributions));
    }
    let over_time = vms
        .iter()
        .map(|vm| (vm.name.clone(), p95_over_time(report, vm)));
    let over_time = with_one_axis(over_time);
    if vms.len() > 1 && !over_time.is_empty() {
        html.push_str(&format!(
            "<{heading}>Response time over time, VM by VM</{heading}>\n"
        ));
        let (axis, _) = time(report);
        let note = format!(
            "95th percentile of each interval in ms; {} across; all VMs have the same axes.{told}",
            escape(&axis.label)
        );
        html.push_str(&multiples(&note, &over_time));
    }
    html
}

/// The VMs that have charts, in their order.
fn shown(report: &Report) -> Vec<&VmReport> {
    let p95_ms = |vm: &VmReport| vm.read.response.p95_ms.max(vm.write.response.p95_ms);
    let mut all: Vec<(usize, &VmReport)> = report.vms.iter().enumerate().collect();
    all.sort_by(|a, b| p95_ms(b.1).total_cmp(&p95_ms(a.1)));
    all.truncate(VMS_SHOWN);
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, vm)| vm).collect()
}

/// Charts that have points, with axes that hold all of them.
fn with_one_axis(charts: impl Iterator<Item = (String, Chart)>) -> Vec<(String, Chart)> {
    let mut all: Vec<(String, Chart)> = charts
        .filter(|(_, chart)| has_points(&chart.series))
        .collect();
    let every: Vec<Series> = all
        .iter()
        .flat_map(|(_, chart)| chart.series.clone())
        .collect();
    let y = log_ms(&every).unlabelled();
    let widest = all.iter().map(|(_, chart)| chart.x.clone());
    let widest = widest.max_by(|a, b| a.range.1.total_cmp(&b.range.1));
    for (_, chart) in &mut all {
        chart.y = y.clone();
        chart.x = widest
            .clone()
            .unwrap_or_else(|| chart.x.clone())
            .unlabelled();
    }
    all
}

fn p95_over_time(report: &Report, vm: &VmReport) -> Chart {
    let p95 = |of: Option<IntervalLatencyReport>| of.map(|of| of.p95_ms);
    let lines: &Lines<'_> = &[
        ("reads", "read", &|of| p95(of.read)),
        ("writes", "write", &|of| p95(of.write)),
    ];
    let title = format!(
        "{}: 95th percentile of the response time over time",
        vm.name
    );
    chart_over_time(report, (&title, Size::Small), log_ms, lines, vm)
}

/// Percentiles as "nines": 90, 99, 99.9 % are equally far apart.
fn nines(percent: f64) -> f64 {
    1.0 / (1.0 - percent.min(99.999) / 100.0)
}

/// Where an axis of percentiles has labels.
const PERCENTILES: [(f64, &str); 6] = [
    (50.0, "50"),
    (90.0, "90"),
    (99.0, "99"),
    (99.9, "99.9"),
    (99.99, "99.99"),
    (99.999, "99.999"),
];

fn distribution(vm: &VmReport) -> Chart {
    let line = |name: &str, class: &'static str, kind: &KindReport| Series {
        name: name.to_owned(),
        class,
        points: kind
            .percentiles
            .iter()
            // A percentile that less than one operation lies above is the maximum.
            .filter(|point| nines(point.percent) <= (kind.response.count as f64).max(2.0))
            .map(|point| (nines(point.percent), Some(point.response_ms)))
            .collect(),
        dotted: false,
    };
    let series = vec![
        line("reads", "read", &vm.read),
        line("writes", "write", &vm.write),
    ];
    let points = series.iter().flat_map(|line| &line.points);
    let furthest = points.map(|point| point.0).fold(10.0, f64::max);
    let ticks = PERCENTILES.map(|(percent, text)| (nines(percent), text.to_owned()));
    let last = ticks.iter().map(|tick| tick.0);
    let last = last
        .clone()
        .find(|&tick| tick >= furthest * 0.999)
        .unwrap_or(1e5);
    let x = Axis {
        label: String::new(),
        ticks: ticks
            .into_iter()
            .filter(|tick| tick.0 <= last * 1.001)
            .collect(),
        range: (1.0, last),
        scale: Scale::Log,
    };
    let title = format!("{}: response time by percentile", vm.name);
    let mut chart = Chart::new(&title, Size::Small, (x, log_ms(&series)));
    chart.series = series;
    chart
}
