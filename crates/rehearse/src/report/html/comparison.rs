//! Variants side by side, and the loads that a search has tried.

use super::{estimated, percent, short};
use crate::report::plain;
use crate::report::schema::{EstimateReport, SearchReport, SummaryReport, VariantReport};
use load::report::chart::{Axis, Chart, Series, escape};

/// Bars with error bars, and the figures as a table.
pub fn comparison(variants: &[VariantReport]) -> String {
    let mut html = String::from("<h2>Side by side</h2>\n<div class=\"charts\">");
    html.push_str(&bars("Operations per second", variants, |summary| {
        Some(summary.iops)
    }));
    html.push_str(&bars(
        "Mean response time of random I/O, ms",
        variants,
        |summary| summary.random_ms,
    ));
    html.push_str("</div>\n");
    html.push_str(&table(variants));
    html
}

/// A bar for each variant, with the 95 % interval.
fn bars(
    caption: &str,
    variants: &[VariantReport],
    of: fn(&SummaryReport) -> Option<EstimateReport>,
) -> String {
    const LEFT: f64 = 190.0;
    const WIDTH: f64 = 540.0;
    const FIGURE: f64 = 110.0;
    const LINE: f64 = 30.0;
    let figures: Vec<Option<EstimateReport>> = variants
        .iter()
        .map(|variant| variant.summary.as_ref().and_then(of))
        .collect();
    let end = |figure: &EstimateReport| figure.mean + figure.half_width_95.unwrap_or(0.0);
    let most = figures.iter().flatten().map(end).fold(0.0, f64::max);
    let scale = |value: f64| match most > 0.0 {
        true => value.clamp(0.0, most) / most * (WIDTH - LEFT - FIGURE),
        false => 0.0,
    };
    let mut svg = String::new();
    for (place, (variant, figure)) in variants.iter().zip(&figures).enumerate() {
        let y = place as f64 * LINE;
        let name = escape(&variant.name);
        svg.push_str(&format!(
            "<g><title>{name}</title><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text></g>",
            LEFT - 8.0,
            y + 19.0,
            escape(&short(&variant.name, 23))
        ));
        let Some(figure) = figure else {
            svg.push_str(&format!(
                "<text x=\"{LEFT}\" y=\"{:.1}\">overloaded</text>",
                y + 19.0
            ));
            continue;
        };
        svg.push_str(&format!(
            "<rect class=\"bar\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"20\"/>",
            y + 4.0,
            scale(figure.mean)
        ));
        if let Some(half) = figure.half_width_95 {
            let (from, until) = (
                LEFT + scale(figure.mean - half),
                LEFT + scale(figure.mean + half),
            );
            let (top, middle, bottom) = (y + 8.0, y + 14.0, y + 20.0);
            svg.push_str(&format!(
                "<path class=\"whisker\" d=\"M{from:.1} {top}V{bottom}M{from:.1} {middle}H{until:.1}\
                 M{until:.1} {top}V{bottom}\"/>"
            ));
        }
        svg.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT + scale(end(figure)) + 8.0,
            y + 19.0,
            estimated(figure)
        ));
    }
    format!(
        "<figure><figcaption>{caption}</figcaption><svg class=\"bars\" viewBox=\"0 0 {WIDTH} {:.0}\" \
         role=\"img\" aria-label=\"{caption}, by variant, as in the table\">{svg}</svg></figure>\n",
        variants.len() as f64 * LINE + 4.0
    )
}

fn table(variants: &[VariantReport]) -> String {
    let mut rows = String::new();
    let mut first_iops = None;
    for variant in variants {
        rows.push_str(&format!("<tr><th>{}</th>", escape(&variant.name)));
        let (Some(summary), Some(seed)) = (&variant.summary, variant.seeds.first()) else {
            rows.push_str("<td colspan=\"7\">no load that was tried meets the cap</td></tr>\n");
            continue;
        };
        let first = *first_iops.get_or_insert(summary.iops.mean);
        let against = match first > 0.0 {
            true => format!("{:+.1} %", (summary.iops.mean / first - 1.0) * 100.0),
            false => "–".to_owned(),
        };
        for figure in [
            estimated(&summary.iops),
            estimated(&summary.megabytes_per_s),
            estimated(&summary.read_ms),
            estimated(&summary.write_ms),
            summary
                .random_ms
                .as_ref()
                .map_or("overloaded".to_owned(), estimated),
            against,
        ] {
            rows.push_str(&format!("<td>{figure}</td>"));
        }
        let busiest = seed.finding.bottleneck.as_ref();
        let busiest = busiest.map_or(String::new(), |share| {
            let busy = percent(share.utilisation);
            format!("{} {} ({busy})", share.part.as_str(), share.name)
        });
        rows.push_str(&format!(
            "<td class=\"op wide\">{}</td></tr>\n",
            escape(&busiest)
        ));
    }
    format!(
        "<div class=\"scroll\"><table><thead><tr><th>variant</th><th>IO/s</th><th>MB/s</th>\
         <th>read, ms</th><th>write, ms</th><th>random, ms</th><th>IO/s to the first</th>\
         <th class=\"op wide\">bottleneck</th></tr></thead><tbody>\n{rows}</tbody></table></div>\n\
         <p class=\"small\">± is the half of the 95 % interval of the mean over all seeds; with one \
         seed there is none.</p>\n"
    )
}

/// What a search has tried: response time over operations per second.
pub fn curve(search: &SearchReport) -> String {
    let what = match search.capped.as_str() {
        "p95" => "95th percentile of the response time",
        _ => "mean response time",
    };
    let mut tried = search.tried.clone();
    tried.sort_by(|a, b| a.iops.total_cmp(&b.iops));
    let points: Vec<(f64, Option<f64>)> = tried
        .iter()
        .filter(|tried| tried.response_ms.is_some())
        .map(|tried| (tried.iops, tried.response_ms))
        .collect();
    let largest = |of: fn(&(f64, Option<f64>)) -> f64| points.iter().map(of).fold(0.0, f64::max);
    let most_ms = largest(|point| point.1.unwrap_or(0.0)).max(search.cap_ms);
    let chart = Chart {
        title: format!("{what} over operations per second, as in the table"),
        x: Axis::linear("operations per second", largest(|point| point.0)),
        y: Axis::linear("response time, ms", most_ms),
        series: vec![Series {
            name: what.to_owned(),
            class: 0,
            points,
        }],
        shaded: None,
        limit: Some((search.cap_ms, format!("cap {} ms", search.cap_ms))),
        marks: Vec::new(),
    };
    let rows: String = tried
        .iter()
        .map(|tried| {
            let found = match Some(tried.factor) == search.factor {
                true => "<td class=\"op\"><b>found</b></td>",
                false => "<td></td>",
            };
            format!(
                "<tr><th>× {:.3}</th><td>{}</td><td>{}</td>{found}</tr>\n",
                tried.factor,
                plain(tried.iops),
                tried.response_ms.map_or("overloaded".to_owned(), plain)
            )
        })
        .collect();
    format!(
        "<h3>The load that meets {} ms</h3>\n<div class=\"charts\">{}</div>\n<div class=\"scroll\">\
         <table><thead><tr><th>load</th><th>IO/s</th><th>response, ms</th><th></th></tr></thead>\
         <tbody>\n{rows}</tbody></table></div>\n",
        search.cap_ms,
        load::report::figure("Loads tried", &chart)
    )
}
