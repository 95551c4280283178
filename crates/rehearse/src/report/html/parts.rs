//! The page's tables of stages, of busy parts and of events.

use super::{milliseconds, percent};
use crate::report::plain;
use crate::report::schema::{ShareReport, StageReport, ToldReport};
use workload::report::page::{escape, table};

/// The stages of an operation as one bar, and as a table.
pub fn stages(stages: &[StageReport]) -> String {
    const WIDTH: f64 = 1000.0;
    let (mut bar, mut rows, mut x) = (String::new(), String::new(), 0.0);
    for (number, stage) in stages.iter().enumerate() {
        let (name, share) = (stage.stage.as_str(), percent(stage.share));
        let width = stage.share * WIDTH;
        bar.push_str(&format!(
            "<g class=\"s{number}\"><title>{name}: {share}</title><rect class=\"part\" \
             x=\"{x:.1}\" y=\"0\" width=\"{width:.1}\" height=\"30\"/></g>"
        ));
        rows.push_str(&format!(
            "<tr><th><span class=\"key s{number}\">{name}</span></th><td>{}</td><td>{:.1}</td></tr>\n",
            milliseconds(Some(stage.mean_ms)),
            stage.share * 100.0
        ));
        x += width;
    }
    // Without text, so it may be stretched.
    format!(
        "<svg class=\"stack\" viewBox=\"0 0 {WIDTH} 30\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"Shares of an operation's time, as in the table\">{bar}</svg>\n{}",
        table(
            "Where the time goes",
            "<tr><th>where, from left to right</th><th>mean, ms</th><th>share, %</th></tr>",
            &rows
        )
    )
}

/// How busy every part was.
pub fn shares(shares: &[ShareReport]) -> String {
    let row = |share: &ShareReport| {
        format!(
            "<tr><th>{}</th><td class=\"op wide\">{}</td><td>{:.1}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td></tr>\n",
            share.part.as_str(),
            escape(&share.name),
            share.utilisation * 100.0,
            share.per_s.map_or("–".to_owned(), plain),
            milliseconds(share.service_ms),
            milliseconds(share.waiting_ms),
            share
                .stroke
                .map_or("–".to_owned(), |part| plain(part * 100.0))
        )
    };
    let rows: String = shares.iter().map(row).collect();
    let head = "<tr><th>part</th><th class=\"op wide\">which</th><th>busy, %</th><th>jobs/s</th>\
                <th>at work, ms</th><th>waiting, ms</th><th>stroke, %</th></tr>";
    table("How busy everything is", head, &rows)
}

/// What happened, by the numbers that the charts have.
pub fn told(told: &[ToldReport]) -> String {
    if told.is_empty() {
        return String::new();
    }
    let row = |(index, told): (usize, &ToldReport)| {
        format!(
            "<tr><th>{}</th><td>{:.1}</td><td class=\"text\">{}</td></tr>\n",
            index + 1,
            told.at_s,
            escape(&told.text)
        )
    };
    let rows: String = told.iter().enumerate().map(row).collect();
    let head = "<tr><th>mark</th><th>at,\u{a0}s</th><th class=\"text\">what</th></tr>";
    format!(
        "<h3>What happened</h3>\n{}",
        table("What happened", head, &rows)
    )
}
