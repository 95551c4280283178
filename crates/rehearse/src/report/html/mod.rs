//! A rehearsal as one self-contained HTML file, in the frame that the report of a load has, too.
//!
//! What is told by colour is told by a figure, a sign or a word beside it, too. All text of the
//! site file is escaped. Nothing says when or where it was made: equal files, settings and
//! seeds give equal bytes.

mod beside;
mod comparison;
mod drawing;
mod goal;
mod parts;
mod sizing;

use super::schema::{
    AssumptionReport, Document, EstimateReport, SeedReport, Settling, VariantReport,
};
use super::{figure, plain};
use crate::run::confidence::Estimate;
use workload::report::page::{contents, escape, facts, page, tiles};
use workload::report::{LimitColumn, kpi_table, over_time, vm_charts};

/// The document as a page.
pub fn html(document: &Document) -> String {
    let title = format!("Ashlar rehearsal: {}", document.site);
    let mut body = format!("<h1>{}</h1>\n", escape(&title));
    if let Some(about) = &document.about {
        body.push_str(&format!("<p class=\"small\">{}</p>\n", escape(about)));
    }
    body.push_str(&origin(document));
    if let Some(sizing) = &document.sizing {
        body.push_str(&sizing::section(sizing));
    }
    let is_one_of_several = document.variants.len() > 1;
    if is_one_of_several {
        body.push_str(&listed(&document.variants));
        body.push_str(&comparison::comparison(&document.variants));
    }
    for (place, variant) in document.variants.iter().enumerate() {
        let id = is_one_of_several.then(|| variant_id(place));
        body.push_str(&section(variant, id));
    }
    body.push_str(
        "<p class=\"small\">Figures of models in virtual time, not of a machine; \
         docs/internals/models.md says what the models are and how far to trust them.</p>\n",
    );
    let style = format!("{OWN_STYLE}{}", drawing::colours());
    page(&title, &style, &body)
}

/// What was rehearsed, by which program.
fn origin(document: &Document) -> String {
    let mut told = vec![("Ashlar", escape(&document.version))];
    if let Some(source) = &document.source {
        told.push(("Site file", escape(&source.file)));
        if !source.settings.is_empty() {
            let settings: Vec<String> = source.settings.iter().map(|set| escape(set)).collect();
            told.push(("Changed by --set", settings.join("<br/>")));
        }
        told.push((
            "SHA-256 of the file",
            format!("<code>{}</code>", escape(&source.sha256)),
        ));
    }
    let seeds = document.variants.iter().map(|variant| {
        let seeds = variant.seeds.iter();
        seeds.map(|seed| seed.seed.to_string()).collect::<Vec<_>>()
    });
    if let Some(seeds) = seeds.max_by_key(Vec::len).filter(|seeds| !seeds.is_empty()) {
        let name = if seeds.len() == 1 { "Seed" } else { "Seeds" };
        told.push((name, seeds.join(", ")));
    }
    if !document.assumed.is_empty() {
        let one = |one: &AssumptionReport| format!("{}: {}", escape(&one.key), escape(&one.value));
        let assumed: Vec<String> = document.assumed.iter().map(one).collect();
        told.push(("Assumed", assumed.join("<br/>")));
    }
    facts(&told)
}

/// The id of a variant's section.
fn variant_id(place: usize) -> String {
    format!("variant-{}", place + 1)
}

/// The contents of a page with several variants.
fn listed(variants: &[VariantReport]) -> String {
    let named = variants.iter().enumerate();
    let named = named.map(|(place, variant)| (variant_id(place), variant.name.clone()));
    let first = (comparison::ID.to_owned(), comparison::TITLE.to_owned());
    let all: Vec<(String, String)> = std::iter::once(first).chain(named).collect();
    contents(&all)
}

/// A site or a variant, under its name where it has an id.
fn section(variant: &VariantReport, id: Option<String>) -> String {
    let mut html = match id {
        None => "<section>\n".to_owned(),
        Some(id) => format!(
            "<section id=\"{id}\" class=\"variant\">\n<h2>{}</h2>\n",
            escape(&variant.name)
        ),
    };
    if let Some(search) = &variant.search {
        html.push_str(&goal::reached(search));
    }
    html.push_str(&head(variant));
    html.push_str(&beside::section(&variant.beside));
    if let Some(search) = &variant.search {
        html.push_str(&goal::curve(search));
    }
    if let Some(seed) = variant.seeds.first() {
        if let Some(layout) = &variant.layout {
            html.push_str(&drawing::drawing(layout, &seed.shares, &seed.failed));
        }
        html.push_str("<h3>VMs</h3>\n");
        html.push_str(&match &variant.search {
            None => kpi_table(&seed.load, LimitColumn::Judged),
            Some(search) => {
                kpi_table(&seed.load, LimitColumn::Compared) + &goal::limits(search, &seed.load)
            }
        });
        html.push_str(&of_seed(seed));
        html.push_str(&run(variant, seed));
    }
    html.push_str("</section>\n");
    html
}

fn head(variant: &VariantReport) -> String {
    let (Some(summary), Some(seed)) = (&variant.summary, variant.seeds.first()) else {
        return String::new();
    };
    let mut told = vec![
        (estimated(&summary.iops), "operations/s".to_owned()),
        (estimated(&summary.megabytes_per_s), "MB/s".to_owned()),
    ];
    if summary.reads_per_s.mean > 0.0 {
        told.push((estimated(&summary.read_ms), "mean read, ms".to_owned()));
    }
    if summary.writes_per_s.mean > 0.0 {
        told.push((estimated(&summary.write_ms), "mean write, ms".to_owned()));
    }
    let finding = &seed.finding;
    if let Some(busiest) = &finding.bottleneck {
        let label = format!("busy: {} {}", busiest.part.as_str(), busiest.name);
        told.push((percent(busiest.utilisation), label));
    }
    let more = finding.headroom.map_or(String::new(), |headroom| {
        format!(
            " Until it is busy all of the time the load can grow by {:.0} %.",
            (headroom - 1.0) * 100.0
        )
    });
    let settling = seed.settling.iter();
    let settling: String = settling
        .flat_map(Settling::sentences)
        .map(|sentence| format!("<p>{}</p>\n", escape(&sentence)))
        .collect();
    format!(
        "<p class=\"finding\">{}</p>\n{settling}<p>{}{more}</p>\n{}",
        escape(&finding.sentence),
        escape(&finding.next_sentence),
        tiles(&told)
    )
}

/// Where the time goes, what happened when, and how busy everything is.
fn of_seed(seed: &SeedReport) -> String {
    let mut html = "<h3>Where the time of an operation goes</h3>\n".to_owned();
    html.push_str(&parts::stages(&seed.stages));
    html.push_str("<h3>Over time, all VMs</h3>\n");
    let marks = seed.told.iter().map(|told| (told.at_s, told.text.clone()));
    html.push_str(&over_time(&seed.load, &marks.collect::<Vec<_>>()));
    html.push_str(&parts::told(&seed.told));
    html.push_str(&vm_charts(&seed.load, "h3"));
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
