//! The result of a run as data, as a table, as JSON and as one HTML file.

pub mod chart;
mod html;
mod outage;
mod over_time;
pub mod page;
mod schema;
mod table;

pub use html::{LimitColumn, html, kpi_table, over_time, vm_charts};
pub use schema::{
    IntervalLatencyReport, IntervalReport, KindReport, LatencyReport, LimitReport, MachineReport,
    OriginReport, OutageReport, PercentilePoint, Report, SCHEMA, SecondReport, StreamReport,
    TransactionReport, Verdict, VmOutageReport, VmReport,
};
pub use table::table;

use crate::kpi::{Latency, Measured, OfKind, Window};
use crate::outcome::{Outcome, VmOutcome};
use crate::plan::Plan;
use crate::profile::{Limits, VmProfile};
use std::fmt::Display;
use std::time::Duration;

/// An open loop that completes less than this share of what was due in the
/// window did not put the intended load on: its KPIs are those of another load,
/// and the step is invalid.
pub const ACHIEVED_MIN: f64 = 0.95;

/// So many operations may be missing without making a step invalid: at the end
/// of any window some are under way, and in a short run they are many per cent.
pub const MISSING_MAX: u64 = 2;

/// Percentiles that the distribution is told at.
const CURVE_PERCENT: &[f64] = &[
    0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 85.0, 90.0, 92.5, 95.0, 97.5, 99.0, 99.5,
    99.9, 99.95, 99.99, 100.0,
];

/// Holds what was measured against what was asked for. Where it comes from is not told yet.
pub fn report<E: Display>(plan: &Plan, outcome: &Outcome<E>) -> Report {
    let (window, limits) = (outcome.window, plan.profile.limits);
    let each = (0..outcome.vms.len()).map(|index| of_vm(plan, outcome, index));
    let vms: Vec<VmReport> = each.collect();
    let mut all = Measured::default();
    for of_vm in &outcome.vms {
        all.merge(&of_vm.measured);
    }
    let mut total = of_measured("total", &all, window, &limits);
    // Read and write limits are the VMs'; a total that passes would hide one that
    // does not. That of random I/O is the total's.
    total.limits = random_limit(plan, outcome).into_iter().collect();
    let of_vms = |vm: &VmReport| Some(vm.transactions?.under_way);
    if let Some(transactions) = &mut total.transactions {
        transactions.under_way = vms.iter().filter_map(of_vms).sum();
    }
    total.valid = vms.iter().all(|vm| vm.valid);
    total.lost = vms.iter().any(|vm| vm.lost);
    let names = plan.profile.vms.iter().map(|vm| vm.name.as_str());
    let of_vms = names.zip(outcome.vms.iter().map(|vm| vm.outages.as_slice()));
    let outages = outage::outages(of_vms, window);
    let has_errors = has_errors(plan.allow_outages, &vms, &outages);
    let verdict = verdict(has_errors, outcome.interrupted, &vms, &total);
    Report {
        schema: SCHEMA.into(),
        origin: None,
        profile: plan.profile.name.clone(),
        verdict,
        interrupted: outcome.interrupted,
        seed: plan.seed,
        rate_scale: plan.rate_scale,
        warmup_s: plan.warmup.as_secs_f64(),
        duration_s: plan.duration.as_secs_f64(),
        measured_s: window.seconds(),
        filled: plan.fill,
        outages_allowed: plan.allow_outages,
        outages,
        vms,
        total,
    }
}

/// What one VM has done.
fn of_vm<E: Display>(plan: &Plan, outcome: &Outcome<E>, index: usize) -> VmReport {
    let (window, limits) = (outcome.window, plan.profile.limits);
    let of_vm = &outcome.vms[index];
    let profile = &plan.profile.vms[index];
    let mut report = of_measured(&profile.name, &of_vm.measured, window, &limits);
    report.role = profile.role.clone();
    report.targets = plan.vms[index]
        .disks
        .iter()
        .map(|place| place.url.to_string())
        .collect();
    report.targets.dedup();
    report.disk_bytes = of_vm.disk_bytes.clone();
    report.streams = of_streams(profile, of_vm, window);
    let of_networks = |stream: &StreamReport| Some(stream.transactions?.under_way);
    if let Some(transactions) = &mut report.transactions {
        transactions.under_way = report.streams.iter().filter_map(of_networks).sum();
    }
    // One stream that keeps its rate must not hide one that does not.
    report.valid = report.streams.iter().all(|stream| stream.valid);
    report
        .failures
        .extend(of_vm.lost.as_ref().map(|lost| lost.to_string()));
    report.lost = of_vm.lost.is_some();
    report
}

/// Whether something failed, or was away, that was not allowed to.
fn has_errors(allow_outages: bool, vms: &[VmReport], outages: &[OutageReport]) -> bool {
    let failed = |vm: &VmReport| match allow_outages {
        true => vm.failed - vm.lost_operations,
        false => vm.failed,
    };
    vms.iter().any(|vm| failed(vm) > 0 || vm.lost)
        || outages
            .iter()
            .any(|outage| !allow_outages || outage.until_s.is_none())
}

fn verdict(has_errors: bool, interrupted: bool, vms: &[VmReport], total: &VmReport) -> Verdict {
    if has_errors {
        Verdict::Errors
    } else if interrupted {
        Verdict::Incomplete
    } else if vms.iter().any(|vm| !vm.valid) {
        Verdict::Invalid
    } else if vms
        .iter()
        .chain([total])
        .any(|vm| vm.limits.iter().any(|limit| !limit.pass))
    {
        Verdict::LimitFailed
    } else {
        Verdict::Pass
    }
}

/// The mean over all random I/O of all VMs, where the profile limits it.
fn random_limit<E>(plan: &Plan, outcome: &Outcome<E>) -> Option<LimitReport> {
    let limit = plan.profile.limits.random_mean?;
    let mut random = Latency::default();
    for (vm, of_vm) in plan.profile.vms.iter().zip(&outcome.vms) {
        let streams = vm.streams.iter().zip(&of_vm.streams);
        for (_, measured) in streams.filter(|(stream, _)| stream.is_random()) {
            random.merge(&measured.read.response);
            random.merge(&measured.write.response);
        }
    }
    of_limit("mean random latency", &random, limit)
}

fn of_streams<E>(profile: &VmProfile, of_vm: &VmOutcome<E>, window: Window) -> Vec<StreamReport> {
    let of_stream = profile.streams.iter().zip(&of_vm.streams).enumerate();
    let of_stream = of_stream.map(|(index, (stream, measured))| {
        let rates = Rates::of(measured, window);
        StreamReport {
            name: stream.name.clone(),
            random: stream.is_random(),
            reads_per_s: rates.per_s(measured.read.completed),
            writes_per_s: rates.per_s(measured.write.completed),
            read: of_kind(&measured.read),
            write: of_kind(&measured.write),
            queue_length: queue_length(measured, window),
            transactions: of_transactions(measured, window).map(|transactions| {
                let commits = profile.commits_of(index);
                let commits = commits.and_then(|commits| of_vm.streams.get(commits));
                let parts = [Some(measured), commits].into_iter().flatten();
                TransactionReport {
                    under_way: parts.map(|part| queue_length(part, window)).sum(),
                    ..transactions
                }
            }),
            offered_per_s: measured.offered.map(|offered| rates.per_s(offered)),
            achieved_percent: rates.achieved.map(|achieved| achieved * 100.0),
            valid: rates.valid,
        }
    });
    of_stream.collect()
}

/// What completed against what was due and how long it took.
struct Rates {
    seconds: f64,
    /// Completed of due; `None` for closed loops.
    achieved: Option<f64>,
    /// Whether that is enough.
    valid: bool,
}

impl Rates {
    fn of(measured: &Measured, window: Window) -> Rates {
        let completed = measured.offered_completed;
        let achieved = |offered: u64| {
            if offered == 0 {
                1.0
            } else {
                completed as f64 / offered as f64
            }
        };
        let enough =
            |offered: u64| achieved(offered) >= ACHIEVED_MIN || completed + MISSING_MAX >= offered;
        Rates {
            seconds: window.seconds(),
            achieved: measured.offered.map(achieved),
            valid: measured.offered.is_none_or(enough),
        }
    }

    fn per_s(&self, count: u64) -> f64 {
        if self.seconds > 0.0 {
            count as f64 / self.seconds
        } else {
            0.0
        }
    }
}

/// Operations under way in the mean.
fn queue_length(measured: &Measured, window: Window) -> f64 {
    match window.seconds() {
        seconds if seconds > 0.0 => measured.outstanding_ns as f64 / (seconds * 1e9),
        _ => 0.0,
    }
}

/// Transactions, where there were any. What is under way for them is known of streams apart.
fn of_transactions(measured: &Measured, window: Window) -> Option<TransactionReport> {
    let any = measured.transactions > 0 || measured.transaction.count() > 0;
    any.then(|| TransactionReport {
        per_s: Rates::of(measured, window).per_s(measured.transactions),
        response: of_latency(&measured.transaction),
        under_way: 0.0,
    })
}

fn of_measured(name: &str, measured: &Measured, window: Window, limits: &Limits) -> VmReport {
    let rates = Rates::of(measured, window);
    let per_s = |count: u64| rates.per_s(count);
    let service_s = [&measured.read, &measured.write]
        .map(|kind| kind.service.mean_ms() / 1e3 * per_s(kind.completed));
    VmReport {
        name: name.into(),
        role: String::new(),
        targets: Vec::new(),
        disk_bytes: Vec::new(),
        reads_per_s: per_s(measured.read.completed),
        writes_per_s: per_s(measured.write.completed),
        megabytes_per_s: per_s(measured.read.bytes + measured.write.bytes) / 1e6,
        read: of_kind(&measured.read),
        write: of_kind(&measured.write),
        queue_length: queue_length(measured, window),
        queue_length_by_littles_law: service_s.iter().sum(),
        transactions: of_transactions(measured, window),
        offered_per_s: measured.offered.map(per_s),
        achieved_percent: rates.achieved.map(|achieved| achieved * 100.0),
        valid: rates.valid,
        unfinished: measured.unfinished,
        failed: measured.failed,
        lost_operations: measured.lost,
        lost: false,
        failures: measured.failures.clone(),
        unit_attentions: measured.attentions,
        attentions: measured.told.clone(),
        lateness: of_latency(&measured.lateness),
        limits: of_limits(measured, limits),
        seconds: over_time::seconds(measured),
        intervals: over_time::intervals(measured),
        streams: Vec::new(),
    }
}

fn of_kind(kind: &OfKind) -> KindReport {
    let point = |&percent: &f64| PercentilePoint {
        percent,
        response_ms: kind.response.percentile_ms(percent),
    };
    let curve = if kind.response.count() == 0 {
        &[]
    } else {
        CURVE_PERCENT
    };
    KindReport {
        response: of_latency(&kind.response),
        service: of_latency(&kind.service),
        percentiles: curve.iter().map(point).collect(),
    }
}

fn of_latency(latency: &Latency) -> LatencyReport {
    LatencyReport {
        count: latency.count(),
        mean_ms: latency.mean_ms(),
        p50_ms: latency.percentile_ms(50.0),
        p95_ms: latency.percentile_ms(95.0),
        p99_ms: latency.percentile_ms(99.0),
        p999_ms: latency.percentile_ms(99.9),
        max_ms: latency.max_ms(),
    }
}

fn of_limits(measured: &Measured, limits: &Limits) -> Vec<LimitReport> {
    let read = of_limit(
        "mean read latency",
        &measured.read.response,
        limits.read_mean,
    );
    let write = of_limit(
        "mean write latency",
        &measured.write.response,
        limits.write_mean,
    );
    [read, write].into_iter().flatten().collect()
}

fn of_limit(kpi: &str, latency: &Latency, limit: Duration) -> Option<LimitReport> {
    let (value_ms, limit_ms) = (latency.mean_ms(), limit.as_secs_f64() * 1e3);
    (latency.count() > 0).then(|| LimitReport {
        kpi: kpi.into(),
        value_ms,
        limit_ms,
        pass: value_ms < limit_ms,
    })
}
