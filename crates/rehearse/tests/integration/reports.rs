//! What a rehearsal writes: the same bytes again, what it reads back, and pages that hold
//! nothing but what they should.

use crate::common::plan;
use rehearse::report::schema::{Document, SCHEMA};
use rehearse::report::{compared, document, html, rehearsed, searched};
use rehearse::run;
use rehearse::search::{self, Capped};
use rehearse::summary::Rehearsal;

fn rehearsal(name: &str, settings: &[&str], seeds: u64) -> Rehearsal {
    let plan = plan(settings);
    Rehearsal {
        name: name.to_owned(),
        outcomes: (1..=seeds).map(|seed| run(&plan, seed).unwrap()).collect(),
    }
}

const SHORT: &str = "run.measure=\"1 s\"";

fn of_two() -> Document {
    let down = r#"event=[{ at = "700 ms", what = "link-down", host = "esx", network = "san" }]"#;
    let variants = [
        rehearsal("as it stands", &[SHORT], 2),
        rehearsal("<script>alert(\"1\")</script>", &[SHORT, down], 2),
    ];
    document(&plan(&[]), variants.iter().map(rehearsed).collect())
}

#[test]
fn the_same_plan_and_seeds_give_the_same_bytes() {
    let bytes = || {
        let document = of_two();
        let json = serde_json::to_string_pretty(&document).unwrap();
        (json, html::html(&document))
    };
    let (json, page) = bytes();
    assert!((json.clone(), page) == bytes(), "other bytes");
    let back: Document = serde_json::from_str(&json).unwrap();
    assert_eq!(back.schema, SCHEMA);
    assert!(
        serde_json::to_string_pretty(&back).unwrap() == json,
        "not what was written"
    );
    let variant = &back.variants[0];
    assert_eq!(variant.seeds.len(), 2);
    let summary = variant.summary.unwrap();
    assert!(summary.iops.half_width_95.unwrap() > 0.0);
    let stages: f64 = variant.seeds[0]
        .stages
        .iter()
        .map(|stage| stage.share)
        .sum();
    assert!((stages - 1.0).abs() < 1e-9, "{stages}");
    assert_eq!(variant.seeds[0].trace_hash.len(), 16);
    assert!(back.variants[1].seeds[0].told[0].text.contains("goes down"));
}

#[test]
fn a_page_is_well_formed_holds_all_and_runs_nothing() {
    let document = of_two();
    let page = html::html(&document);
    well_formed(&page);
    assert!(!page.contains("<script"), "text of the file is escaped");
    assert!(page.contains("Six drives &lt;script&gt;alert(&#39;&amp;&#39;)"));
    for outside in ["http:", "https:", "src=", "href=", "url(", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let sentence = &document.variants[0].seeds[0].finding.sentence;
    for told in [
        sentence.as_str(),
        "Side by side",
        "class=\"whisker\"",
        "class=\"site\"",
        "vm-VM01",
        "<title>drive sas-04: ",
        "<title>spare drive sas-05: ",
        "Where the time of an operation goes",
        "a link of host esx into san goes down",
        "class=\"mark\"",
        "@media print",
    ] {
        assert!(page.contains(told), "{told}");
    }
}

#[test]
fn a_search_keeps_what_it_tried_and_says_when_nothing_meets_the_cap() {
    let plan = plan(&[
        SHORT,
        "block.vm.profile=hetero10",
        "block.vm.roles=[\"SQL01\"]",
    ]);
    let cap = (Capped::Mean, 20.0);
    let search = search::find(&plan, 1, cap, |_, _| ()).unwrap();
    let found = search.found.as_ref().unwrap();
    assert!(found.response_ms <= 20.0 && search.tried.len() > 3);
    assert!(
        search
            .tried
            .iter()
            .any(|tried| tried.response_ms.is_none_or(|ms| ms > 20.0))
    );
    let of = |search| document(&plan, vec![searched("as it stands", cap, search)]);
    let report = of(&search).variants[0].search.clone().unwrap();
    assert_eq!(report.tried.len(), search.tried.len());
    assert_eq!(report.factor, Some(found.factor));
    let page = html::html(&of(&search));
    well_formed(&page);
    assert!(page.contains("<b>found</b>") && page.contains("cap 20 ms"));
    let none = search::Search {
        found: None,
        ..search.clone()
    };
    let page = html::html(&of(&none));
    well_formed(&page);
    assert!(page.contains("No load that was tried meets the cap"));
    assert!(!page.contains("<b>found</b>"));
}

/// Every element is closed in the order that it was opened, and no `&` stands alone.
fn well_formed(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some((text, tag)) = rest.split_once('<') {
        let is_style = open.last() == Some(&"style");
        assert!(is_style || !text.contains('>'), "a bare > in {text:?}");
        for after in text.split('&').skip(1) {
            let entity = after.split_once(';').map(|(name, _)| name);
            assert!(
                matches!(entity, Some("lt" | "gt" | "amp" | "quot" | "#39")),
                "a bare & before {after:?}"
            );
        }
        let (tag, after) = tag.split_once('>').expect("a tag ends");
        rest = after;
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes of <{tag}>");
        if tag.starts_with('!') || tag.ends_with('/') {
            continue;
        }
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "closed at {:.60}", rest),
            None => open.push(tag.split([' ', '\n']).next().unwrap_or(tag)),
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

#[test]
fn variants_stand_side_by_side_as_a_table_and_as_bars() {
    let deep = rehearsal("as it stands", &[SHORT], 1);
    let lone = rehearsal("one under way", &[SHORT, "block.vm.outstanding=1"], 1);
    let iops = |rehearsal: &Rehearsal| rehearsal.summary().iops.mean;
    let share = iops(&lone) / iops(&deep);
    let said = compared(&[deep, lone]);
    let bars: Vec<usize> = said.lines().map(|line| line.matches('█').count()).collect();
    let bars: Vec<usize> = bars.into_iter().filter(|bar| *bar > 0).collect();
    assert_eq!(bars, [48, (share * 48.0).round() as usize], "{said}");
    let less = format!("{:+.1} %", (share - 1.0) * 100.0);
    assert!(said.contains(&less), "{less} in {said}");
}
