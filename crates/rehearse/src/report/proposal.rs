//! The mixes of drives that were tried for a pool, the one proposed first.

use super::figure;
use crate::confidence::Estimate;
use crate::sizing::{Sized, ranked};
use std::fmt::Write;
use std::time::Duration;

/// For a terminal.
pub fn proposal(pool: &str, limit: Duration, sized: &[Sized]) -> String {
    let met = ranked(sized);
    let limit_ms = limit.as_secs_f64() * 1e3;
    let mut text = match met.first() {
        Some(best) => format!(
            "Pool {pool}: {} drives, {}, is the smallest mix that keeps every VM's rate and its \
             response times below {limit_ms} ms.\n",
            best.drives().unwrap_or(0),
            best.candidate.name()
        ),
        None => format!("Pool {pool}: no mix that was tried stays below {limit_ms} ms.\n"),
    };
    if !met.is_empty() {
        text.push_str("\nGood enough, spares included:\n");
    }
    for good in &met {
        let Some((_, outcome)) = &good.met else {
            continue;
        };
        let total = &outcome.load.total;
        let plain = |mean: f64| {
            figure(&Estimate {
                mean,
                half_width: None,
            })
        };
        let _ = writeln!(
            text,
            "  {:>4} drives  {:<32} {:>8} IO/s, reads {} ms, writes {} ms",
            good.drives().unwrap_or(0),
            good.candidate.name(),
            plain(total.reads_per_s + total.writes_per_s),
            plain(total.read.response.mean_ms),
            plain(total.write.response.mean_ms)
        );
    }
    let rejected: Vec<&Sized> = sized.iter().filter(|sized| sized.met.is_none()).collect();
    if !rejected.is_empty() {
        text.push_str("\nRejected:\n");
    }
    for bad in rejected {
        let _ = writeln!(text, "  {:<45} {}", bad.candidate.name(), bad.reason);
    }
    text
}
