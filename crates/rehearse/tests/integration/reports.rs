//! The reports of a rehearsal: equal bytes again, data that reads back, and pages that are complete
//! and self-contained.

use crate::common::plan;
use crate::common::{profile, run};
use rehearse::findings::summary::Rehearsal;
use rehearse::report::schema::{AssumptionReport, Document, SCHEMA, SourceReport, VariantReport};
use rehearse::report::{compared, document, html, proposal, rehearsed, searched, sized};
use rehearse::search::load_factor::{self, Capped};
use rehearse::search::sizing::{Candidate, Sized, Tried, built};
use roxmltree::{Document as Page, Node, ParsingOptions};
use site::Level;
use std::sync::OnceLock;
use workload::report::page::VERSION;

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
    document_of(variants.iter().map(rehearsed).collect())
}

/// The same, once for all tests that only read it.
fn two() -> &'static Document {
    static TWO: OnceLock<Document> = OnceLock::new();
    TWO.get_or_init(of_two)
}

fn document_of(variants: Vec<VariantReport>) -> Document {
    let source = SourceReport {
        file: "tiny.toml".to_owned(),
        sha256: "ab".repeat(32),
        settings: vec!["run.measure=\"1 s\"".to_owned()],
    };
    document(&plan(&[]), Some(source), variants)
}

/// Reads a page; it has to be well-formed.
fn read(page: &str) -> Page<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Page::parse_with_options(page, options).unwrap()
}

fn with_class<'a>(node: Node<'a, 'a>, class: &str) -> Vec<Node<'a, 'a>> {
    let has = |node: &Node<'_, '_>| {
        let classes = node.attribute("class").unwrap_or("");
        classes.split(' ').any(|other| other == class)
    };
    node.descendants().filter(has).collect()
}

fn said(node: Node<'_, '_>) -> String {
    let texts = node.descendants().filter(Node::is_text);
    texts.filter_map(|node| node.text()).collect()
}

/// What a fact at the top of a page says.
fn fact(page: &Page<'_>, name: &str) -> String {
    let facts = with_class(page.root(), "facts");
    let named = |node: &Node<'_, '_>| node.has_tag_name("dt") && said(*node) == name;
    let name = facts[0].descendants().find(named).expect("a fact");
    said(name.next_sibling_element().unwrap())
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
fn a_page_and_a_text_name_what_was_assumed() {
    let mut document = two().clone();
    assert!(!html::html(&document).contains("Assumed"));
    assert!(
        !serde_json::to_string(&document)
            .unwrap()
            .contains("assumed")
    );
    document.assumed.push(AssumptionReport {
        key: "drive.model".to_owned(),
        value: "\"nvme-7680\", for <d0>".to_owned(),
    });
    let page = html::html(&document);
    read(&page);
    let escaped = "drive.model: &quot;nvme-7680&quot;, for &lt;d0&gt;";
    assert!(page.contains("Assumed") && page.contains(escaped), "{page}");
}

#[test]
fn a_page_is_well_formed_holds_all_and_runs_nothing() {
    let document = two();
    let page = html::html(document);
    read(&page);
    assert!(!page.contains("<script"), "text of the file is escaped");
    assert!(page.contains("Six drives &lt;script&gt;alert(&#39;&amp;&#39;)"));
    for outside in ["http:", "https:", "src=", "href=\"h", "url(", "@import"] {
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
        "vm_group.vm.profile=hetero10",
        "vm_group.vm.roles=[\"SQL01\"]",
    ]);
    let cap = (Capped::Mean, 20.0);
    let search = load_factor::find(&plan, (1, &profile), cap, |_, _| ()).unwrap();
    let found = search.found.as_ref().unwrap();
    assert!(found.response_ms <= 20.0 && search.tried.len() > 3);
    assert!(
        search
            .tried
            .iter()
            .any(|tried| tried.response_ms.is_none_or(|ms| ms > 20.0))
    );
    let of = |search| document_of(vec![searched("as it stands", cap, search)]);
    let report = of(&search).variants[0].search.clone().unwrap();
    assert_eq!(report.tried.len(), search.tried.len());
    assert_eq!(report.factor, Some(found.factor));
    let page = html::html(&of(&search));
    read(&page);
    assert!(page.contains("<b>found</b>") && page.contains("cap 20 ms"));
    let none = load_factor::Search {
        found: None,
        ..search.clone()
    };
    let page = html::html(&of(&none));
    read(&page);
    assert!(page.contains("No load that was tried meets the cap"));
    assert!(!page.contains("<b>found</b>"));
}

#[test]
fn a_page_says_of_which_file_seeds_and_version_it_is() {
    let document = two();
    let page = html::html(document);
    let page = read(&page);
    assert_eq!(fact(&page, "Ashlar"), VERSION);
    assert_eq!(fact(&page, "Site file"), "tiny.toml");
    assert_eq!(fact(&page, "SHA-256 of the file"), "ab".repeat(32));
    assert_eq!(fact(&page, "Changed by --set"), "run.measure=\"1 s\"");
    assert_eq!(fact(&page, "Seeds"), "1, 2");
    assert_eq!(document.version, VERSION);
    // Neither when nor where: equal plans give equal bytes.
    assert!(document.variants[0].seeds[0].load.origin.is_none());
    assert!(page.descendants().all(|node| !node.has_tag_name("time")));
}

#[test]
fn the_contents_lead_to_every_variant() {
    let document = two();
    let page = html::html(document);
    let page = read(&page);
    let contents = with_class(page.root(), "contents");
    let links = |node: Node<'_, '_>| -> Vec<(String, String)> {
        let links = node.descendants().filter(|node| node.has_tag_name("a"));
        let link = |node: Node<'_, '_>| {
            let to = node.attribute("href").unwrap().strip_prefix('#').unwrap();
            (to.to_owned(), said(node))
        };
        links.map(link).collect()
    };
    let listed = links(contents[0]);
    assert_eq!(listed.len(), 3, "side by side, and two variants");
    for (to, name) in &listed {
        let mut at = page
            .descendants()
            .filter(|node| node.attribute("id") == Some(to));
        let section = at.next().expect("a section of this id");
        let heading = section.descendants().find(|node| node.has_tag_name("h2"));
        assert_eq!(said(heading.unwrap()), *name);
        assert!(at.next().is_none(), "{to} twice");
    }
    let side_by_side = page
        .descendants()
        .find(|node| node.attribute("id") == Some("side-by-side"));
    assert_eq!(links(side_by_side.unwrap()), listed[1..], "the table, too");
    let one = html::html(&document_of(document.variants[..1].to_vec()));
    assert!(with_class(read(&one).root(), "contents").is_empty());
}

/// For pages whose figures do not matter.
const QUICK: [&str; 2] = ["run.warmup=\"100 ms\"", "run.measure=\"300 ms\""];

#[test]
fn a_drive_that_failed_is_marked_in_the_drawing() {
    let event = r#"event=[{ at = "200 ms", what = "drive-fails", drive = "sas-02" }]"#;
    let rehearsal = rehearsal("as it stands", &[QUICK[0], QUICK[1], event], 1);
    let page = html::html(&document_of(vec![rehearsed(&rehearsal)]));
    let page = read(&page);
    let site = with_class(page.root(), "site")[0];
    let failed: Vec<(String, String)> = with_class(site, "failed")
        .into_iter()
        .map(|shape| {
            let group = shape.parent().unwrap();
            let of = |tag: &str| group.children().find(|node| node.has_tag_name(tag));
            (said(of("title").unwrap()), said(of("text").unwrap()))
        })
        .collect();
    let [legend, drive] = failed.as_slice() else {
        panic!("the legend and one drive: {failed:?}");
    };
    assert!(legend.1.contains("failed"), "{legend:?}");
    let title = "drive sas-02, failed at 0.2 s: ";
    assert!(drive.0.starts_with(title), "{drive:?}");
    assert!(drive.1.starts_with('✕'), "not by colour alone: {drive:?}");
}

/// A search, and the cap that it is for.
fn search() -> &'static (load_factor::Search, (Capped, f64)) {
    static SEARCH: OnceLock<(load_factor::Search, (Capped, f64))> = OnceLock::new();
    SEARCH.get_or_init(|| {
        // No read of these drives takes less than a millisecond.
        let plan = plan(&[QUICK[0], QUICK[1], "run.limit=\"1 ms\""]);
        let cap = (Capped::Mean, 30.0);
        (
            load_factor::find(&plan, (1, &profile), cap, |_, _| ()).unwrap(),
            cap,
        )
    })
}

#[test]
fn a_search_is_judged_by_its_goal_and_not_by_the_limits_of_vms() {
    let (search, cap) = search();
    let found = search.found.as_ref().unwrap();
    let plain = rehearsed(&Rehearsal {
        name: "as it stands".to_owned(),
        outcomes: vec![found.outcome.clone()],
    });
    let plain = html::html(&document_of(vec![plain]));
    assert!(plain.contains(">FAIL<"), "a limit of a VM fails");
    let page = html::html(&document_of(vec![searched("as it stands", *cap, search)]));
    let page = read(&page);
    let verdicts = with_class(page.root(), "verdict");
    assert_eq!(verdicts.len(), 1);
    assert_eq!(verdicts[0].attribute("class"), Some("verdict pass"));
    assert!(said(verdicts[0]).contains("meets 30 ms"));
    let failures = with_class(page.root(), "bad").len();
    assert_eq!((failures, said(page.root()).contains("FAIL")), (0, false));
    let compared = with_class(page.root(), "above").len();
    assert!(compared > 0, "limits are still compared");
    let none = load_factor::Search {
        found: None,
        ..search.clone()
    };
    let page = html::html(&document_of(vec![searched("as it stands", *cap, &none)]));
    let page = read(&page);
    let verdict = with_class(page.root(), "verdict")[0].attribute("class");
    assert_eq!(verdict, Some("verdict fail"));
    assert!(with_class(page.root(), "spot").is_empty());
}

#[test]
fn the_load_that_was_found_is_marked_on_the_curve() {
    let (search, cap) = search();
    let page = html::html(&document_of(vec![searched("as it stands", *cap, search)]));
    let page = read(&page);
    let spots = with_class(page.root(), "spot");
    assert_eq!(spots.len(), 1);
    let chart = spots[0].parent().unwrap();
    let place = |node: Node<'_, '_>| {
        let of = |key: &str| node.attribute(key).unwrap().to_owned();
        (of("cx"), of("cy"))
    };
    let dots: Vec<_> = with_class(chart, "dot").into_iter().map(place).collect();
    let met = |tried: &&load_factor::Tried| tried.response_ms.is_some();
    assert_eq!(dots.len(), search.tried.iter().filter(met).count());
    let ring = spots[0]
        .descendants()
        .find(|node| node.has_tag_name("circle"));
    let ring = place(ring.unwrap());
    // It is the dot furthest to the right of those that are not above the line of the cap.
    let number = |text: &str| text.parse::<f64>().unwrap();
    let cap = with_class(chart, "limit")[0].attribute("y1").unwrap();
    let meets = dots.iter().filter(|(_, y)| number(y) >= number(cap));
    let best = meets.max_by(|a, b| number(&a.0).total_cmp(&number(&b.0)));
    assert_eq!(best, Some(&ring));
    let rows = with_class(page.root(), "found");
    assert_eq!(rows.len(), 1);
    assert!(said(rows[0]).ends_with("found"));
}

#[test]
fn variants_stand_side_by_side_as_a_table_and_as_bars() {
    let mut deep = rehearsal("as it stands", &[SHORT], 1);
    let mut lone = rehearsal("one under way", &[SHORT, "vm_group.vm.outstanding=1"], 1);
    deep.outcomes[0].settling.is_settled = true;
    lone.outcomes[0].settling.is_settled = false;
    let iops = |rehearsal: &Rehearsal| rehearsal.summary().iops.mean;
    let share = iops(&lone) / iops(&deep);
    let said = compared(&[deep, lone]);
    assert!(said.contains("may not last: one under way.\n"), "{said}");
    let bars: Vec<usize> = said.lines().map(|line| line.matches('█').count()).collect();
    let bars: Vec<usize> = bars.into_iter().filter(|bar| *bar > 0).collect();
    assert_eq!(bars, [48, (share * 48.0).round() as usize], "{said}");
    let less = format!("{:+.1} %", (share - 1.0) * 100.0);
    assert!(said.contains(&less), "{less} in {said}");
}

/// A pool sized: two mixes are good, one holds no volumes, one is too slow, one not sized.
fn of_mixes() -> Document {
    let plan = plan(&[QUICK[0], QUICK[1], "run.limit=\"5 ms\""]);
    let candidate = |model: &str| Candidate {
        model: model.to_owned(),
        level: Level::Raid5,
        group_drives: 5,
    };
    let measured = |model: &str, groups| {
        let candidate = candidate(model);
        let outcome = run(&built(&plan, "data", &candidate, groups), 1).unwrap();
        let tried = Tried {
            groups,
            met: true,
            measured_s: outcome.load.measured_s,
        };
        Sized {
            met: Some((groups, outcome)),
            tried: vec![tried],
            ..Sized::rejected(&candidate, String::new())
        }
    };
    // 120 drives take long in a test.
    let slow = Sized {
        tried: vec![Tried {
            groups: 24,
            met: false,
            measured_s: 0.3,
        }],
        ..Sized::rejected(&candidate("nl-sas-1000"), "too slow".to_owned())
    };
    let larger = Sized {
        larger: Some(21),
        ..Sized::rejected(&candidate("sas-15k-600"), "takes at least 21".to_owned())
    };
    let mixes = [
        Sized::rejected(&candidate("slc-100"), "too small, <b>".to_owned()),
        slow,
        larger,
        measured("slc-200", 2),
        measured("nvme-7680", 1),
    ];
    sized(&plan, None, "data", &mixes)
}

#[test]
fn a_sized_pool_is_written_with_every_mix_and_the_same_bytes_again() {
    let document = of_mixes();
    let json = serde_json::to_value(&document).unwrap();
    let keys = |value: &serde_json::Value| -> Vec<String> {
        let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    let sizing = &json["sizing"];
    // Names are never changed or removed: docs/REHEARSAL.md.
    assert_eq!(keys(sizing), ["candidates", "limit_ms", "pool", "window_s"]);
    let names = "drives drives_at_least group_drives groups iops level measured_s model name read_ms rejected tried write_ms";
    let names: Vec<&str> = names.split(' ').collect();
    let mixes = sizing["candidates"].as_array().unwrap();
    assert_eq!(mixes.len(), 5);
    for mix in mixes {
        assert_eq!(keys(mix), names);
    }
    assert_eq!(mixes[0]["name"], "RAID 5 groups of 5 × nvme-7680");
    assert_eq!(
        (&mixes[0]["level"], &mixes[0]["groups"], &mixes[0]["drives"]),
        (&"5".into(), &1.into(), &6.into())
    );
    let tried = serde_json::json!([{ "groups": 1, "met": true, "measured_s": 0.3 }]);
    assert_eq!(mixes[0]["tried"], tried);
    assert!(mixes[0]["rejected"].is_null());
    assert_eq!(mixes[2]["rejected"], "takes at least 21");
    assert_eq!(mixes[2]["drives_at_least"], 21);
    assert_eq!(mixes[3]["rejected"], "too small, <b>");
    assert_eq!(mixes[3]["tried"], serde_json::json!([]));
    assert!(mixes[3]["drives_at_least"].is_null());
    assert_eq!(mixes[4]["rejected"], "too slow");
    assert_eq!(mixes[4]["tried"][0]["met"], false);
    let variants = document.variants.iter().map(|variant| &variant.name);
    assert_eq!(
        variants.collect::<Vec<_>>(),
        [
            "6 × nvme-7680: 1 RAID 5 group of 5, 1 spare",
            "11 × slc-200: 2 RAID 5 groups of 5, 1 spare"
        ]
    );
    let back: Document = serde_json::from_value(json).unwrap();
    assert_eq!(back, document);
    assert_eq!(of_mixes(), document, "the same plan and seed");
}

#[test]
fn the_page_of_a_sized_pool_has_a_table_of_mixes() {
    let document = of_mixes();
    let page = html::html(&document);
    let page = read(&page);
    let table = page
        .descendants()
        .find(|node| node.attribute("aria-label") == Some("Mixes of drives"))
        .unwrap();
    let rows: Vec<String> = table
        .descendants()
        .filter(|node| node.has_tag_name("tr"))
        .map(said)
        .collect();
    assert_eq!(rows.len(), 6, "the head and five mixes");
    let mix = "nvme-7680: 1 RAID 5 group of 5, 1 spare6";
    assert!(rows[1].starts_with(mix), "{rows:?}");
    let mix = "sas-15k-600: RAID 5 groups of 5–";
    assert!(rows[3].starts_with(mix), "{rows:?}");
    assert!(rows[3].ends_with("takes at least 21"), "{rows:?}");
    assert!(rows[4].ends_with("too small, <b>"), "{rows:?}");
    let verdict = with_class(page.root(), "verdict")[0];
    assert_eq!(verdict.attribute("class"), Some("verdict pass"));
    let best = "below 5 ms is 6 × nvme-7680: 1 RAID 5 group of 5, 1 spare.";
    assert!(said(verdict).ends_with(best), "{}", said(verdict));
    // For a terminal, the same.
    let text = proposal(document.sizing.as_ref().unwrap());
    assert!(text.contains("too small, <b>"), "{text}");
    let good = "    11 × slc-200         2 RAID 5 groups of 5, 1 spare ";
    assert!(text.contains(good), "{text}");
    let larger = "finds out:\n    21 or more × sas-15k-600     RAID 5 groups of 5\n\nRejected:\n";
    assert!(text.contains(larger), "{text}");
    assert!(!text.contains("--whole"), "all was measured: {text}");
}
