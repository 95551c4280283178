//! The search for the load that meets a cap: its result, and the loads that were tried.
//!
//! The goal of a search is the site's; limits of the file are each VM's. A page says both, and
//! judges by the goal only.

use crate::report::schema::{SearchReport, TriedReport};
use crate::report::{grouped, plain};
use workload::report::Report;
use workload::report::chart::{Axis, Chart, Series, Size, Spot};
use workload::report::page::{charts, figure, table, verdict};

fn capped(search: &SearchReport) -> &'static str {
    match search.capped.as_str() {
        "p95" => "95th percentile of the response time",
        _ => "mean response time",
    }
}

/// The load that was found.
fn found(search: &SearchReport) -> Option<&TriedReport> {
    let factor = search.factor?;
    search.tried.iter().find(|tried| tried.factor == factor)
}

/// Whether the goal is met, and by which load.
pub fn reached(search: &SearchReport) -> String {
    let (what, cap_ms) = (capped(search), search.cap_ms);
    let goal = format!(
        "<p class=\"small goal\">Goal of the search: the largest load at which the {what} of all \
         random I/O of the site, reads and writes together, is at most {cap_ms} ms.</p>\n"
    );
    let met = found(search).map(|found| {
        format!(
            "{:.2} times the load meets {cap_ms} ms: {} IO/s at {} ms",
            found.factor,
            grouped(found.iops.round() as u64),
            found.response_ms.map_or("–".to_owned(), plain)
        )
    });
    match met {
        Some(met) => verdict(true, &met) + &goal,
        None => verdict(false, "No load that was tried meets the cap.") + &goal,
    }
}

/// How the limits of VMs relate to the goal.
pub fn limits(search: &SearchReport, load: &Report) -> String {
    let limits = || load.vms.iter().flat_map(|vm| &vm.limits);
    let (above, all) = (
        limits().filter(|limit| !limit.pass).count(),
        limits().count(),
    );
    format!(
        "<p class=\"small\">The goal of the search, {} ms, is the site’s. The limits in the last \
         column are each VM’s, by the file’s <code>limit</code> of <code>[run]</code>; the search \
         does not look at them. {above} of {all} are exceeded at this load.</p>\n",
        search.cap_ms
    )
}

/// What a search has tried: response time over operations per second, and as a table.
pub fn curve(search: &SearchReport) -> String {
    let mut tried = search.tried.clone();
    tried.sort_by(|a, b| a.factor.total_cmp(&b.factor));
    let rows: String = tried.iter().map(|tried| row(search, tried)).collect();
    let head =
        "<tr><th>load</th><th>IO/s</th><th>response time, ms</th><th class=\"op\"></th></tr>";
    format!(
        "<h3>The load that meets {} ms</h3>\n{}{}",
        search.cap_ms,
        charts(&figure("Loads tried", &chart(search, &tried))),
        table("Loads tried", head, &rows)
    )
}

fn row(search: &SearchReport, tried: &TriedReport) -> String {
    let (class, word) = match Some(tried.factor) == search.factor {
        true => (" class=\"found\"", "<b>found</b>"),
        false => ("", ""),
    };
    format!(
        "<tr{class}><th>× {:.3}</th><td>{}</td><td>{}</td><td class=\"op\">{word}</td></tr>\n",
        tried.factor,
        plain(tried.iops),
        tried.response_ms.map_or("overloaded".to_owned(), plain)
    )
}

fn chart(search: &SearchReport, tried: &[TriedReport]) -> Chart {
    let what = capped(search);
    let points: Vec<(f64, Option<f64>)> = tried
        .iter()
        .filter(|tried| tried.response_ms.is_some())
        .map(|tried| (tried.iops, tried.response_ms))
        .collect();
    let most_iops = tried.iter().map(|tried| tried.iops).fold(0.0, f64::max);
    let slowest_ms = points.iter().filter_map(|point| point.1);
    let slowest_ms = slowest_ms.fold(search.cap_ms, f64::max);
    let axes = (
        Axis::linear("operations per second", most_iops),
        Axis::linear("response time, ms", slowest_ms * 1.05),
    );
    let title = format!("{what} over operations per second, as in the table");
    let mut chart = Chart::new(&title, Size::Full, axes);
    chart.series = vec![Series {
        name: what.to_owned(),
        class: "read",
        points,
        dotted: true,
    }];
    chart.limit = Some((search.cap_ms, format!("cap {} ms", search.cap_ms)));
    let overloaded = tried.iter().filter(|tried| tried.response_ms.is_none());
    chart.spots = overloaded
        .map(|tried| Spot {
            at: (tried.iops, None),
            text: format!("× {:.3}: overloaded", tried.factor),
        })
        .collect();
    if let Some(found) = found(search) {
        let iops = grouped(found.iops.round() as u64);
        chart.spots.push(Spot {
            at: (found.iops, found.response_ms),
            text: format!("found: {iops} IO/s"),
        });
    }
    chart
}
