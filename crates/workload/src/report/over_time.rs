//! Figures second by second, and interval by interval.

use super::schema::{IntervalLatencyReport, IntervalReport, SecondReport};
use crate::kpi::{IntervalOf, Measured, SecondOf};

/// The seconds of a run.
pub fn seconds(measured: &Measured) -> Vec<SecondReport> {
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

/// The intervals of a run.
pub fn intervals(measured: &Measured) -> Vec<IntervalReport> {
    let length_s = measured.interval.map_or(0.0, |length| length.as_secs_f64());
    let (reads, writes) = (&measured.read.intervals, &measured.write.intervals);
    let interval = |index: usize| IntervalReport {
        start_s: index as f64 * length_s,
        length_s,
        read: reads.get(index).and_then(latency),
        write: writes.get(index).and_then(latency),
    };
    (0..reads.len().max(writes.len())).map(interval).collect()
}

fn latency(of: &IntervalOf) -> Option<IntervalLatencyReport> {
    (of.count() > 0).then(|| IntervalLatencyReport {
        count: of.count(),
        mean_ms: of.mean_ms(),
        p50_ms: of.percentile_ms(50.0),
        p95_ms: of.percentile_ms(95.0),
        p99_ms: of.percentile_ms(99.0),
        max_ms: of.max_ms(),
    })
}
