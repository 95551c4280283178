//! A rehearsal as one self-contained HTML file: no script, no external resource.
//!
//! What is told by colour is told by a figure beside it, too. All text of the site file is
//! escaped.

mod comparison;
mod drawing;
mod parts;

use super::schema::{Document, EstimateReport, SeedReport, VariantReport};
use super::{figure, plain};
use crate::confidence::Estimate;
use load::report::chart::escape;
use load::report::{STYLE, kpi_table, latency_chart, rate_chart};

/// The document as a page.
pub fn html(document: &Document) -> String {
    let title = format!("Ashlar rehearsal: {}", document.site);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>{title}</title>\n<style>{STYLE}{OWN_STYLE}{colours}</style></head><body><main>\n\
         <h1>{title}</h1>\n",
        title = escape(&title),
        colours = drawing::colours(),
    );
    if let Some(about) = &document.about {
        page.push_str(&format!("<p class=\"small\">{}</p>\n", escape(about)));
    }
    if document.variants.len() > 1 {
        page.push_str(&comparison::comparison(&document.variants));
    }
    for variant in &document.variants {
        page.push_str(&section(variant, document.variants.len() > 1));
    }
    page.push_str(
        "<p class=\"small\">Figures of models in virtual time, not of a machine; \
         docs/MODELS.md says what the models are and how far to trust them.</p>\n\
         </main></body></html>\n",
    );
    page
}

/// A site or a variant.
fn section(variant: &VariantReport, is_one_of_several: bool) -> String {
    let mut html = String::from("<section>\n");
    if is_one_of_several {
        html.push_str(&format!("<h2>{}</h2>\n", escape(&variant.name)));
    }
    html.push_str(&head(variant));
    if let Some(search) = &variant.search {
        html.push_str(&comparison::curve(search));
    }
    if let Some(seed) = variant.seeds.first() {
        if let Some(layout) = &variant.layout {
            html.push_str(&drawing::drawing(layout, &seed.shares));
        }
        html.push_str(&of_seed(seed));
        html.push_str(&run(variant, seed));
    }
    html.push_str("</section>\n");
    html
}

fn head(variant: &VariantReport) -> String {
    let (Some(summary), Some(seed)) = (&variant.summary, variant.seeds.first()) else {
        return "<p class=\"verdict fail\">No load that was tried meets the cap.</p>\n".to_owned();
    };
    let mut tiles = vec![
        tile(&estimated(&summary.iops), "operations/s"),
        tile(&estimated(&summary.megabytes_per_s), "MB/s"),
    ];
    if summary.reads_per_s.mean > 0.0 {
        tiles.push(tile(&estimated(&summary.read_ms), "mean read, ms"));
    }
    if summary.writes_per_s.mean > 0.0 {
        tiles.push(tile(&estimated(&summary.write_ms), "mean write, ms"));
    }
    let busiest = seed.finding.bottleneck.as_ref();
    if let Some(busiest) = busiest {
        let label = format!("{} {}", busiest.part.as_str(), busiest.name);
        tiles.push(tile(&percent(busiest.utilisation), &label));
    }
    let finding = &seed.finding;
    let more = finding.headroom.map_or(String::new(), |headroom| {
        format!(
            " Until it is busy all of the time the load can grow by {:.0} %.",
            (headroom - 1.0) * 100.0
        )
    });
    format!(
        "<p class=\"verdict\">{}</p>\n<p>{}{more}</p>\n<div class=\"tiles\">{}</div>\n",
        escape(&finding.sentence),
        escape(&finding.next_sentence),
        tiles.concat()
    )
}

fn tile(figure: &str, label: &str) -> String {
    format!(
        "<div class=\"tile\"><b>{figure}</b><span>{}</span></div>",
        escape(label)
    )
}

/// KPIs, where the time goes, how busy everything is, and what happened when.
fn of_seed(seed: &SeedReport) -> String {
    let mut html = String::from("<h3>VMs</h3>\n");
    html.push_str(&kpi_table(&seed.load));
    html.push_str("<h3>Where the time of an operation goes</h3>\n");
    html.push_str(&parts::stages(&seed.stages));
    html.push_str("<div class=\"charts\">");
    let marks = || {
        let of = |told: &super::schema::ToldReport| (told.at_s, told.text.clone());
        seed.told.iter().map(of).collect()
    };
    let (mut rates, mut latencies) = (rate_chart(&seed.load), latency_chart(&seed.load));
    rates.marks = marks();
    latencies.marks = marks();
    html.push_str(&load::report::figure("Operations per second", &rates));
    html.push_str(&load::report::figure(
        "Mean response time per second",
        &latencies,
    ));
    html.push_str("</div>\n");
    html.push_str(&parts::told(&seed.told));
    html.push_str("<h3>How busy everything is</h3>\n");
    html.push_str(&parts::shares(&seed.shares));
    html
}

fn run(variant: &VariantReport, first: &SeedReport) -> String {
    let hashes: Vec<String> = variant
        .seeds
        .iter()
        .map(|seed| format!("{} ({})", seed.seed, seed.trace_hash))
        .collect();
    format!(
        "<p class=\"small\">{} s measured after {} s of warm-up, in virtual time. Tables, drawing \
         and charts are of seed {}; figures with ± are the mean over all seeds and the half of \
         its 95 % interval. Seeds, with the hash over all that happened: {}.</p>\n",
        first.load.measured_s,
        first.load.warmup_s,
        first.seed,
        hashes.join(", ")
    )
}

/// A figure with its interval.
fn estimated(report: &EstimateReport) -> String {
    figure(&Estimate {
        mean: report.mean,
        half_width: report.half_width_95,
    })
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn milliseconds(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), plain)
}

/// `text` in at most `letters`, cut in its middle: names differ at their ends.
fn short(text: &str, letters: usize) -> String {
    let all = text.chars().count();
    if all <= letters {
        return text.to_owned();
    }
    let kept = letters.saturating_sub(1);
    let head: String = text.chars().take(kept.div_ceil(2)).collect();
    let tail: String = text.chars().skip(all - kept / 2).collect();
    format!("{head}…{tail}")
}

const OWN_STYLE: &str = include_str!("style.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_at_letters_not_at_bytes() {
        assert_eq!(short("müller", 6), "müller");
        assert_eq!(short("müllers", 6), "mül…rs");
        assert_eq!(short("müllers", 1), "…");
    }
}
