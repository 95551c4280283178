//! The report for a terminal.

use super::{figure, grouped};
use crate::findings::bottleneck::{Finding, finding};
use crate::findings::summary::Rehearsal;
use crate::parts::disk::Stage;
use crate::plan::catalog;
use crate::run::settled::Settling;
use crate::run::share::{Part, Share};
use crate::search::load_factor::{Capped, Search};
use site::plan::{Assumption, Plan};
use std::fmt::Write;

/// Hardware that the file of `plan` does not say, with the keys that would say it; nothing where
/// there is none.
pub fn assumed(plan: &Plan) -> String {
    let assumed = catalog::assumed(plan);
    if assumed.is_empty() {
        return String::new();
    }
    let mut text = "\nAssumed, because the file does not say it\n".to_owned();
    for Assumption { key, value } in assumed {
        line(&mut text, format_args!("  {key}: {value}"));
    }
    text
}

/// A site: KPIs of the first seed, where the time goes, how busy everything is, what
/// happened, the bottleneck, and the figures over all seeds.
pub fn one(rehearsal: &Rehearsal) -> String {
    let first = &rehearsal.outcomes[0];
    let mut text = workload::report::table(&first.load);
    text.push_str("\nWhere the time of an operation goes\n");
    let count = first.stages.count.max(1) as f64;
    let all: u128 = first.stages.ns.iter().sum();
    for stage in Stage::ALL {
        let ns = first.stages.ns[stage as usize];
        let percent = ns as f64 * 100.0 / all.max(1) as f64;
        let ms = ns as f64 / 1e6 / count;
        line(
            &mut text,
            format_args!("  {:<12} {ms:>9.3} ms {percent:>6.1} %", stage.as_str()),
        );
    }
    text.push_str("\nHow busy everything is\n");
    busy(&mut text, &first.shares);
    if !first.told.is_empty() {
        text.push_str("\nWhat happened\n");
        for told in &first.told {
            line(
                &mut text,
                format_args!("  {:>8.1} s  {}", told.at.as_secs_f64(), told.text),
            );
        }
    }
    let summary = rehearsal.summary();
    conclusion(&mut text, &summary.finding, &first.settling);
    if rehearsal.outcomes.len() > 1 {
        let seeds = rehearsal.outcomes.len();
        line(
            &mut text,
            format_args!(
                "\nOver {seeds} seeds (mean and 95 % interval): {} IO/s, reads {} ms, writes {} ms",
                figure(&summary.iops),
                figure(&summary.read_ms),
                figure(&summary.write_ms)
            ),
        );
    }
    text
}

/// What holds the site back, and whether the run has settled.
fn conclusion(text: &mut String, finding: &Finding, settling: &Settling) {
    line(text, format_args!("\n{}", finding.sentence));
    for sentence in settling.sentences() {
        line(text, format_args!("{sentence}"));
    }
    if !finding.next_sentence.is_empty() {
        line(text, format_args!("{}", finding.next_sentence));
    }
    if let Some(headroom) = finding.headroom {
        let more = (headroom - 1.0) * 100.0;
        line(
            text,
            format_args!(
                "Until it is busy all of the time the load can grow by {more:.0} %; for a load that keeps to a response time see --find-load."
            ),
        );
    }
}

pub(super) fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{arguments}");
}

/// The busiest of every kind, and all that do more than a little.
fn busy(text: &mut String, shares: &[Share]) {
    const LITTLE: f64 = 0.10;
    for part in Part::ALL {
        let mut of_part: Vec<&Share> = shares.iter().filter(|share| share.part == part).collect();
        of_part.sort_by(|a, b| b.utilisation.total_cmp(&a.utilisation));
        let shown = match part {
            Part::Drives | Part::Controller => of_part.len(),
            Part::Drive => 1,
            _ => 4,
        };
        for (place, share) in of_part.iter().take(shown).enumerate() {
            let busy = share.utilisation * 100.0;
            if place > 0 && part != Part::Drives && share.utilisation < LITTLE {
                continue;
            }
            let mut said = format!(
                "  {:<21} {:<36} {busy:>5.1} %",
                share.part.as_str(),
                share.name
            );
            if share.service_ms > 0.0 {
                let _ = write!(
                    said,
                    "  {:>9.0}/s  {:>8.3} ms at work  {:>8.3} ms waiting",
                    share.per_s, share.service_ms, share.waiting_ms
                );
            }
            if let Some(stroke) = share.stroke.filter(|_| part == Part::Drives) {
                let _ = write!(said, "  stroke {:.0} %", stroke * 100.0);
            }
            line(text, format_args!("{}", said.trim_end()));
        }
    }
}

/// Variants side by side, the first of which the others are compared to.
pub fn compared(rehearsals: &[Rehearsal]) -> String {
    let head = [
        "variant",
        "IO/s",
        "MB/s",
        "read ms",
        "write ms",
        "random ms",
        "IO/s to the first",
        "bottleneck",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    let mut first_iops = None;
    for rehearsal in rehearsals {
        let summary = rehearsal.summary();
        let first = *first_iops.get_or_insert(summary.iops.mean);
        let against = summary.iops.mean / first - 1.0;
        let busiest = summary
            .finding
            .first
            .as_ref()
            .map_or(String::new(), |share| {
                format!(
                    "{} {} ({:.0} %)",
                    share.part.as_str(),
                    share.name,
                    share.utilisation * 100.0
                )
            });
        rows.push([
            rehearsal.name.clone(),
            figure(&summary.iops),
            figure(&summary.megabytes_per_s),
            figure(&summary.read_ms),
            figure(&summary.write_ms),
            summary
                .random_ms
                .as_ref()
                .map_or("overloaded".to_owned(), figure),
            format!("{:+.1} %", against * 100.0),
            busiest,
        ]);
    }
    aligned(&rows) + &unsettled(rehearsals) + &chart(rehearsals)
}

/// The variants whose figures may not last, if there are such.
fn unsettled(rehearsals: &[Rehearsal]) -> String {
    let is_settled = |rehearsal: &&Rehearsal| {
        let mut outcomes = rehearsal.outcomes.iter();
        outcomes.all(|outcome| outcome.settling.is_settled)
    };
    let names: Vec<&str> = rehearsals
        .iter()
        .filter(|rehearsal| !is_settled(rehearsal))
        .map(|rehearsal| rehearsal.name.as_str())
        .collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(
            "Not settled, so these figures may not last: {}.\n",
            names.join(", ")
        ),
    }
}

/// Operations per second of the variants as bars.
fn chart(rehearsals: &[Rehearsal]) -> String {
    const WIDTH: f64 = 48.0;
    let bars: Vec<(&str, f64)> = rehearsals
        .iter()
        .map(|rehearsal| (rehearsal.name.as_str(), rehearsal.summary().iops.mean))
        .collect();
    let most = bars.iter().map(|(_, iops)| *iops).fold(0.0, f64::max);
    let width = bars.iter().map(|(name, _)| name.chars().count()).max();
    let width = width.unwrap_or(0);
    let mut text = "\nIO/s\n".to_owned();
    for (name, iops) in bars {
        let length = match most > 0.0 {
            true => (iops / most * WIDTH).round() as usize,
            false => 0,
        };
        let shown = grouped(iops.round() as u64);
        line(
            &mut text,
            format_args!("{name:<width$}  {} {shown}", "█".repeat(length)),
        );
    }
    text
}

/// The load of a site or variant that meets a cap.
pub fn found(name: &str, (capped, cap_ms): (Capped, f64), search: &Search) -> String {
    let what = match capped {
        Capped::Mean => "mean",
        Capped::Percentile95 => "95th percentile",
    };
    let Some(found) = &search.found else {
        return format!(
            "{name}: even a thousandth of the load has a {what} response time above {cap_ms} ms\n"
        );
    };
    let total = &found.outcome.load.total;
    let iops = total.reads_per_s + total.writes_per_s;
    let mut text = format!(
        "{name}: {:.2} times the load meets {cap_ms} ms: {} IO/s at a {what} response time of \
         {:.1} ms\n",
        found.factor,
        grouped(iops.round() as u64),
        found.response_ms
    );
    for tried in &search.tried {
        let factor = tried.factor;
        match tried.response_ms {
            Some(response_ms) => line(
                &mut text,
                format_args!("  × {factor:<8.3} {response_ms:>10.2} ms"),
            ),
            None => line(&mut text, format_args!("  × {factor:<8.3} overloaded")),
        }
    }
    line(
        &mut text,
        format_args!("  {}", finding(&found.outcome).sentence),
    );
    text
}

/// Rows as a table: words to the left, figures to the right.
fn aligned(rows: &[[String; 8]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let mut text = String::new();
    for row in rows {
        let mut said = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = width(column).unwrap_or(0);
            match column == 0 || column == 7 {
                true => said.push_str(&format!("{cell:<width$}  ")),
                false => said.push_str(&format!("{cell:>width$}  ")),
            }
        }
        line(&mut text, format_args!("{}", said.trim_end()));
    }
    text
}
