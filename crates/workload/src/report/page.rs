//! The frame of a page: one self-contained HTML file without a script or a resource from
//! elsewhere. Both reports, of a load and of a rehearsal, are such pages.
//!
//! Pages are well-formed XML, too, so that tests can read them.

use super::chart::Chart;
use std::fmt::Write;

/// Ashlar's version, for reports.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

const STYLE: &str = include_str!("style.css");

/// A page, with style rules beyond those that every page has.
pub fn page(title: &str, more_style: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>{}</title>\n<style>{STYLE}{more_style}</style></head><body><main>\n{body}\
         </main></body></html>\n",
        escape(title)
    )
}

/// Names and values, such as a run's settings. Values are HTML.
pub fn facts(facts: &[(&str, String)]) -> String {
    let fact = |(name, value): &(&str, String)| {
        format!("<div><dt>{}</dt><dd>{value}</dd></div>", escape(name))
    };
    let all: String = facts.iter().map(fact).collect();
    format!("<dl class=\"facts\">{all}</dl>\n")
}

/// Whether it is good, in words that say why.
pub fn verdict(is_good: bool, words: &str) -> String {
    let (class, sign) = if is_good {
        ("pass", '✓')
    } else {
        ("fail", '✗')
    };
    format!(
        "<p class=\"verdict {class}\"><span class=\"sign\">{sign}</span> {}</p>\n",
        escape(words)
    )
}

/// Figures that matter most, each with what it is. Figures are HTML.
pub fn tiles(tiles: &[(String, String)]) -> String {
    let tile = |(figure, label): &(String, String)| {
        format!(
            "<div class=\"tile\"><b>{figure}</b><span>{}</span></div>",
            escape(label)
        )
    };
    let all: String = tiles.iter().map(tile).collect();
    format!("<div class=\"tiles\">{all}</div>\n")
}

/// Links to sections of the page, by their ids.
pub fn contents(sections: &[(String, String)]) -> String {
    let item = |(id, title): &(String, String)| {
        format!("<li><a href=\"#{id}\">{}</a></li>", escape(title))
    };
    let items: String = sections.iter().map(item).collect();
    format!(
        "<nav class=\"contents\" aria-label=\"Contents\"><h2>Contents</h2><ol>{items}</ol></nav>\n"
    )
}

/// A table that scrolls by itself where the page is narrow. Head and rows are HTML.
pub fn table(name: &str, head: &str, rows: &str) -> String {
    format!(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table><thead>{head}\
         </thead><tbody>\n{rows}</tbody></table></div>\n",
        escape(name)
    )
}

/// A chart with its caption and legend.
pub fn figure(caption: &str, chart: &Chart) -> String {
    format!(
        "<figure><figcaption>{}</figcaption>{}{}</figure>\n",
        escape(caption),
        chart.legend(),
        chart.svg()
    )
}

/// Charts that stand side by side where there is room.
pub fn charts(figures: &str) -> String {
    format!("<div class=\"charts\">{figures}</div>\n")
}

/// Small charts of the same axes and lines, each under its name, with one legend.
pub fn multiples(note: &str, charts: &[(String, Chart)]) -> String {
    let legend = charts
        .first()
        .map_or(String::new(), |(_, chart)| chart.legend());
    let small = |(name, chart): &(String, Chart)| {
        format!(
            "<figure class=\"small-chart\"><figcaption>{}</figcaption>{}</figure>\n",
            escape(name),
            chart.svg()
        )
    };
    let all: String = charts.iter().map(small).collect();
    format!(
        "<p class=\"small\">{}</p>{legend}<div class=\"multiples\">{all}</div>\n",
        escape(note)
    )
}

/// Appends to a text.
pub fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(what);
}

/// `text` with what HTML reserves replaced.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
