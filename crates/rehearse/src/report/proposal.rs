//! The mixes of drives that were tried for a pool, the one proposed first.

use super::document::{document, estimated, rehearsed};
use super::schema::{
    CandidateReport, Document, EstimateReport, GroupsTried, SizingReport, SourceReport,
    VariantReport,
};
use super::{figure, plain};
use crate::findings::summary::Rehearsal;
use crate::run::Outcome;
use crate::run::confidence::Estimate;
use crate::search::brief;
use crate::search::sizing::{Sized, layout, ranked};
use site::plan::Plan;
use std::fmt::Write;

/// The mixes for `pool` of `plan`, which comes from `source`, as data: the good ones are variants, too, the smallest
/// first.
pub fn sized(plan: &Plan, source: Option<SourceReport>, pool: &str, sized: &[Sized]) -> Document {
    let good = ranked(sized);
    let mut larger: Vec<&Sized> = sized.iter().filter(|one| one.larger.is_some()).collect();
    larger.sort_by_key(|one| one.larger);
    let is_bad = |one: &&Sized| one.met.is_none() && one.larger.is_none();
    let bad = sized.iter().filter(is_bad);
    let candidates = good.iter().copied().chain(larger).chain(bad);
    let sizing = SizingReport {
        pool: pool.to_owned(),
        limit_ms: plan.run.limit.as_secs_f64() * 1e3,
        window_s: plan.run.measure.as_secs_f64(),
        candidates: candidates.map(candidate).collect(),
    };
    let variants = good.iter().filter_map(|good| variant(good)).collect();
    Document {
        sizing: Some(sizing),
        ..document(plan, source, variants)
    }
}

fn variant(good: &Sized) -> Option<VariantReport> {
    let (groups, outcome) = good.met.as_ref()?;
    Some(rehearsed(&Rehearsal {
        name: good.candidate.mix(*groups),
        outcomes: vec![outcome.clone()],
    }))
}

fn candidate(sized: &Sized) -> CandidateReport {
    let outcome = sized.met.as_ref().map(|(_, outcome)| outcome);
    let total = outcome.map(|outcome| &outcome.load.total);
    let response = |is_read| outcome.map(|outcome| response(outcome, is_read));
    let tried = sized.tried.iter().map(|tried| GroupsTried {
        groups: tried.groups,
        met: tried.met,
        measured_s: tried.measured_s,
    });
    CandidateReport {
        name: sized.candidate.name(),
        model: sized.candidate.model.clone(),
        level: sized.candidate.level.as_str().to_owned(),
        group_drives: sized.candidate.group_drives,
        groups: sized.met.as_ref().map(|(groups, _)| *groups),
        drives: sized.drives(),
        iops: total.map(|total| total.reads_per_s + total.writes_per_s),
        read_ms: response(true),
        write_ms: response(false),
        measured_s: outcome.map(|outcome| outcome.load.measured_s),
        rejected: outcome.is_none().then(|| sized.reason.clone()),
        drives_at_least: sized.larger,
        tried: tried.collect(),
    }
}

/// A mean with the interval over the seconds of its window.
fn response(outcome: &Outcome, is_read: bool) -> EstimateReport {
    let total = &outcome.load.total;
    let of_kind = match is_read {
        true => &total.read,
        false => &total.write,
    };
    let interval = brief::interval(&outcome.load, total, is_read);
    estimated(&Estimate {
        mean: of_kind.response.mean_ms,
        half_width: interval.and_then(|interval| interval.half_width),
    })
}

/// The proposal as text for a terminal.
pub fn proposal(sizing: &SizingReport) -> String {
    let (good, others): (Vec<_>, Vec<_>) = sizing
        .candidates
        .iter()
        .partition(|candidate| candidate.rejected.is_none());
    let (larger, bad): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|candidate| candidate.drives_at_least.is_some());
    let mut text = format!("{}\n", verdict(sizing).1);
    if !good.is_empty() {
        text.push_str("\nGood enough:\n");
    }
    good.iter().for_each(|good| text.push_str(&good_line(good)));
    if !larger.is_empty() {
        text.push_str(
            "\nNot sized, as they need more drives than the smallest mix. Fewer than these are too few; \
             whether these are\nenough is not known, and --every finds out:\n",
        );
    }
    for larger in larger {
        let (drives, model) = (larger.drives_at_least.unwrap_or(0), &larger.model);
        let shape = format!("RAID {} groups of {}", larger.level, larger.group_drives);
        let _ = writeln!(text, "  {drives:>4} or more × {model:<14}  {shape}");
    }
    if !bad.is_empty() {
        text.push_str("\nRejected:\n");
    }
    for bad in bad {
        let reason = bad.rejected.as_deref().unwrap_or_default();
        let _ = writeln!(text, "  {:<36} {reason}", bad.name);
    }
    if let Some(note) = window_note(sizing) {
        let _ = writeln!(text, "\n{note}");
    }
    text
}

/// Whether there is a good mix, and which is proposed.
pub(super) fn verdict(sizing: &SizingReport) -> (bool, String) {
    let (pool, limit_ms) = (&sizing.pool, sizing.limit_ms);
    let first = sizing.candidates.first();
    match first.filter(|first| first.rejected.is_none()) {
        Some(best) => {
            let words = format!(
                "Pool {pool}: the smallest mix that keeps every VM's rate and its response times \
                 below {limit_ms} ms is {} × {}: {}.",
                best.drives.unwrap_or(0),
                best.model,
                layout_of(best)
            );
            (true, words)
        }
        None => {
            let words = format!("Pool {pool}: no mix that was tried stays below {limit_ms} ms.");
            (false, words)
        }
    }
}

/// The groups and spares of a good mix.
pub(super) fn layout_of(good: &CandidateReport) -> String {
    let (groups, drives) = (good.groups.unwrap_or(0), good.drives.unwrap_or(0));
    layout(&good.level, groups, good.group_drives, drives)
}

fn good_line(good: &CandidateReport) -> String {
    let known = |report: Option<EstimateReport>| {
        report.map_or_else(String::new, |report| {
            figure(&Estimate {
                mean: report.mean,
                half_width: report.half_width_95,
            })
        })
    };
    format!(
        "  {:>4} × {:<14}  {:<32} {:>8} IO/s, reads {} ms, writes {} ms, over {:.0} s\n",
        good.drives.unwrap_or(0),
        good.model,
        layout_of(good),
        plain(good.iops.unwrap_or(0.0)),
        known(good.read_ms),
        known(good.write_ms),
        good.measured_s.unwrap_or(0.0)
    )
}

/// What to know of windows that were not measured to their end.
pub(super) fn window_note(sizing: &SizingReport) -> Option<String> {
    let tried = sizing.candidates.iter().flat_map(|one| &one.tried);
    let mut measured = tried.map(|tried| tried.measured_s);
    measured.any(|seconds| seconds + 1e-3 < sizing.window_s).then(|| {
        format!(
            "The window of the file is {:.0} s. Only the proposed mix is measured over all of it; others end \
             once they are clearly good or clearly bad.\n± is half of a 95 % interval over the measured \
             seconds. --whole measures every size over all of it.",
            sizing.window_s
        )
    })
}
