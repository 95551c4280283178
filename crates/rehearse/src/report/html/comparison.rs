//! Variants side by side.

use super::{estimated, percent, short, variant_id};
use crate::report::schema::{EstimateReport, SummaryReport, VariantReport};
use workload::report::chart::LETTER;
use workload::report::page::{self, charts, escape};

/// The id of the section, and its title.
pub const ID: &str = "side-by-side";
/// Its title, for the heading and the table of contents.
pub const TITLE: &str = "Side by side";

/// Bars with error bars, and the figures as a table.
pub fn comparison(variants: &[VariantReport]) -> String {
    let iops = bars("Operations per second", variants, |summary| {
        Some(summary.iops)
    });
    let random = bars(
        "Mean response time of random I/O, ms",
        variants,
        |summary| summary.random_ms,
    );
    format!(
        "<section id=\"{ID}\">\n<h2>{TITLE}</h2>\n{}{}</section>\n",
        charts(&(iops + &random)),
        table(variants)
    )
}

/// A bar for each variant under its name, with the 95 % interval and the figure.
fn bars(
    caption: &str,
    variants: &[VariantReport],
    of: fn(&SummaryReport) -> Option<EstimateReport>,
) -> String {
    const WIDTH: f64 = 540.0;
    const FIGURE: f64 = 170.0;
    const LINE: f64 = 50.0;
    let figures: Vec<Option<EstimateReport>> = variants
        .iter()
        .map(|variant| variant.summary.as_ref().and_then(of))
        .collect();
    let end = |figure: &EstimateReport| figure.mean + figure.half_width_95.unwrap_or(0.0);
    let most = figures.iter().flatten().map(end).fold(0.0, f64::max);
    let scale = |value: f64| match most > 0.0 {
        true => value.clamp(0.0, most) / most * (WIDTH - FIGURE),
        false => 0.0,
    };
    let mut svg = String::new();
    for (place, (variant, figure)) in variants.iter().zip(&figures).enumerate() {
        let y = place as f64 * LINE;
        svg.push_str(&format!(
            "<g><title>{}</title><text x=\"0\" y=\"{:.1}\">{}</text></g>",
            escape(&variant.name),
            y + 17.0,
            escape(&short(&variant.name, (WIDTH / LETTER) as usize))
        ));
        let Some(figure) = figure else {
            svg.push_str(&format!(
                "<text class=\"figure\" x=\"0\" y=\"{:.1}\">overloaded</text>",
                y + 38.0
            ));
            continue;
        };
        svg.push_str(&bar(y + 22.0, figure, &scale));
        svg.push_str(&format!(
            "<text class=\"figure\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            scale(end(figure)) + 8.0,
            y + 38.0,
            estimated(figure)
        ));
    }
    format!(
        "<figure><figcaption>{caption}</figcaption><svg class=\"chart bars\" \
         viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"{caption}, by variant, as in the \
         table\">{svg}</svg></figure>\n",
        variants.len() as f64 * LINE + 4.0
    )
}

fn bar(top: f64, figure: &EstimateReport, scale: &impl Fn(f64) -> f64) -> String {
    let mut svg = format!(
        "<rect class=\"bar\" x=\"0\" y=\"{top:.1}\" width=\"{:.1}\" height=\"20\"/>",
        scale(figure.mean)
    );
    if let Some(half) = figure.half_width_95 {
        let (from, until) = (scale(figure.mean - half), scale(figure.mean + half));
        let (high, middle, low) = (top + 4.0, top + 10.0, top + 16.0);
        svg.push_str(&format!(
            "<path class=\"whisker\" d=\"M{from:.1} {high}V{low}M{from:.1} {middle}H{until:.1}\
             M{until:.1} {high}V{low}\"/>"
        ));
    }
    svg
}

fn table(variants: &[VariantReport]) -> String {
    let mut rows = String::new();
    let mut first_iops = None;
    for (place, variant) in variants.iter().enumerate() {
        rows.push_str(&format!(
            "<tr><th><a href=\"#{}\">{}</a></th>",
            variant_id(place),
            escape(&variant.name)
        ));
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
    let head = "<tr><th>variant</th><th>IO/s</th><th>MB/s</th><th>read, ms</th><th>write, ms</th>\
                <th>random, ms</th><th>IO/s to the first</th><th class=\"op wide\">bottleneck</th></tr>";
    page::table("Variants side by side", head, &rows)
        + "<p class=\"small\">± is the half of the 95 % interval of the mean over all seeds; with one \
           seed there is none.</p>\n"
}
