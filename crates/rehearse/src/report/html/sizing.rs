//! The mixes of drives that were tried for a pool, as a table.

use super::super::proposal::{layout_of, verdict, window_note};
use super::super::schema::{CandidateReport, EstimateReport, SizingReport};
use super::{estimated, plain};
use workload::report::page;
use workload::report::page::escape;

/// All of them, the smallest good one first, then those that are larger, then those that were
/// rejected, with the reason.
pub(super) fn section(sizing: &SizingReport) -> String {
    let (is_good, words) = verdict(sizing);
    let rows: String = sizing.candidates.iter().map(row).collect();
    let head = "<tr><th>mix</th><th>drives</th><th>IO/s</th><th>reads, ms</th><th>writes, ms</th>\
                <th>measured, s</th><th class=\"text\">not sized or rejected because</th></tr>";
    let note = window_note(sizing).map_or(String::new(), |note| {
        format!("<p class=\"small\">{}</p>\n", escape(&note))
    });
    format!(
        "<h2>Mixes of drives</h2>\n{}{}{note}",
        page::verdict(is_good, &words),
        page::table("Mixes of drives", head, &rows)
    )
}

fn row(candidate: &CandidateReport) -> String {
    let known = |report: &Option<EstimateReport>| report.as_ref().map_or("–".into(), estimated);
    let number = |figure: Option<f64>| figure.map_or("–".into(), plain);
    let layout = match candidate.groups {
        Some(_) => layout_of(candidate),
        None => format!(
            "RAID {} groups of {}",
            candidate.level, candidate.group_drives
        ),
    };
    let mix = format!("{}: {layout}", candidate.model);
    format!(
        "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
         <td class=\"text\">{}</td></tr>\n",
        escape(&mix),
        candidate
            .drives
            .map_or("–".into(), |drives| drives.to_string()),
        number(candidate.iops),
        known(&candidate.read_ms),
        known(&candidate.write_ms),
        number(candidate.measured_s),
        escape(candidate.rejected.as_deref().unwrap_or_default())
    )
}
