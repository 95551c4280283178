//! The result of a run as data, as a table, as JSON and as one HTML file.

mod chart;
mod html;
mod schema;
mod table;

pub use html::html;
pub use schema::{
    KindReport, LatencyReport, LimitReport, PercentilePoint, Report, SCHEMA, SecondReport, Verdict,
    VmReport,
};
pub use table::table;

use crate::kpi::{Latency, Measured, OfKind, SecondOf, Window};
use crate::plan::Plan;
use crate::profile::Limits;
use crate::run::{Outcome, VmOutcome};
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

/// Holds what was measured against what was asked for.
pub fn report(plan: &Plan, outcome: &Outcome) -> Report {
    let (window, limits) = (outcome.window, plan.profile.limits);
    let vm = |(index, of_vm): (usize, &VmOutcome)| {
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
        report
            .failures
            .extend(of_vm.lost.as_ref().map(|lost| lost.to_string()));
        report.lost = of_vm.lost.is_some();
        report
    };
    let vms: Vec<VmReport> = outcome.vms.iter().enumerate().map(vm).collect();
    let mut all = Measured::default();
    for of_vm in &outcome.vms {
        all.merge(&of_vm.measured);
    }
    let mut total = of_measured("total", &all, window, &limits);
    // Limits are the VMs'; a total that passes would hide one that does not.
    total.limits.clear();
    total.valid = vms.iter().all(|vm| vm.valid);
    total.lost = vms.iter().any(|vm| vm.lost);
    let verdict = verdict(outcome.interrupted, &vms);
    Report {
        schema: SCHEMA.into(),
        profile: plan.profile.name.clone(),
        verdict,
        interrupted: outcome.interrupted,
        seed: plan.seed,
        rate_scale: plan.rate_scale,
        warmup_s: plan.warmup.as_secs_f64(),
        duration_s: plan.duration.as_secs_f64(),
        measured_s: window.seconds(),
        filled: plan.fill,
        vms,
        total,
    }
}

fn verdict(interrupted: bool, vms: &[VmReport]) -> Verdict {
    if vms.iter().any(|vm| vm.failed > 0 || vm.lost) {
        Verdict::Errors
    } else if interrupted {
        Verdict::Incomplete
    } else if vms.iter().any(|vm| !vm.valid) {
        Verdict::Invalid
    } else if vms
        .iter()
        .any(|vm| vm.limits.iter().any(|limit| !limit.pass))
    {
        Verdict::LimitFailed
    } else {
        Verdict::Pass
    }
}

fn of_measured(name: &str, measured: &Measured, window: Window, limits: &Limits) -> VmReport {
    let seconds = window.seconds();
    let per_s = |count: u64| {
        if seconds > 0.0 {
            count as f64 / seconds
        } else {
            0.0
        }
    };
    let completed = measured.completed();
    let achieved = |offered: u64| {
        if offered == 0 {
            1.0
        } else {
            completed as f64 / offered as f64
        }
    };
    let enough =
        |offered: u64| achieved(offered) >= ACHIEVED_MIN || completed + MISSING_MAX >= offered;
    let queue_length = if seconds > 0.0 {
        measured.outstanding_ns as f64 / (seconds * 1e9)
    } else {
        0.0
    };
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
        queue_length,
        queue_length_by_littles_law: service_s.iter().sum(),
        offered_per_s: measured.offered.map(per_s),
        achieved_percent: measured.offered.map(|offered| achieved(offered) * 100.0),
        valid: measured.offered.is_none_or(enough),
        unfinished: measured.unfinished,
        failed: measured.failed,
        lost: false,
        failures: measured.failures.clone(),
        lateness: of_latency(&measured.lateness),
        limits: of_limits(measured, limits),
        seconds: of_seconds(measured),
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
    let of = |kpi: &str, latency: &Latency, limit: Duration| {
        (latency.count() > 0).then(|| {
            let (value_ms, limit_ms) = (latency.mean_ms(), limit.as_secs_f64() * 1e3);
            LimitReport {
                kpi: kpi.into(),
                value_ms,
                limit_ms,
                pass: value_ms < limit_ms,
            }
        })
    };
    let read = of(
        "mean read latency",
        &measured.read.response,
        limits.read_mean,
    );
    let write = of(
        "mean write latency",
        &measured.write.response,
        limits.write_mean,
    );
    [read, write].into_iter().flatten().collect()
}

fn of_seconds(measured: &Measured) -> Vec<SecondReport> {
    let (reads, writes) = (&measured.read.seconds, &measured.write.seconds);
    let at = |seconds: &[SecondOf], index: usize| seconds.get(index).copied().unwrap_or_default();
    let second = |index: usize| {
        let (read, write) = (at(reads, index), at(writes, index));
        SecondReport {
            second: index as u64,
            reads: read.count,
            writes: write.count,
            read_mean_ms: read.mean_ms(),
            write_mean_ms: write.mean_ms(),
            max_ms: read.response_max_ns.max(write.response_max_ns) as f64 / 1e6,
        }
    };
    (0..reads.len().max(writes.len())).map(second).collect()
}
