//! The page of a report, read as a document: its sections and figures are there.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a panic with its reason is how a test fails

use base::Time;
use roxmltree::{Document, Node, ParsingOptions};
use std::convert::Infallible;
use std::time::Duration;
use workload::generator::Kind;
use workload::kpi::{Measured, Recorder, Window};
use workload::outcome::{Outcome, VmOutcome};
use workload::plan::{Plan, VmPlaces};
use workload::profile::Profile;
use workload::report::{self, MachineReport, OriginReport, Report, page};

const MS: u64 = 1_000_000;

fn window() -> Window {
    Window {
        start: Time(2_000 * MS),
        end: Time(8_000 * MS),
    }
}

/// A VM that reads and writes 50 times a second; of ten reads one takes `slowest_ms`, and the
/// others as many milliseconds as they are numbered by.
fn measured(slowest_ms: u64) -> Measured {
    let mut recorder = Recorder::new(window(), true);
    let mut operations: Vec<(u64, u64, Kind)> = (0..400)
        .flat_map(|number| {
            let (at, turn) = (number * 20 * MS, number % 10 + 1);
            let read_ms = if turn == 10 { slowest_ms } else { turn };
            [(at, read_ms, Kind::Read), (at, 1, Kind::Write)]
        })
        .collect();
    operations.sort_by_key(|(at, took_ms, _)| at + took_ms * MS);
    for &(at, ..) in &operations {
        recorder.offered(Time(at));
        recorder.issued(Time(at), Duration::ZERO);
    }
    for (at, took_ms, kind) in operations {
        recorder.completed(Time(at + took_ms * MS), kind, 4096, Time(at), Time(at));
    }
    recorder.finish(Time(9_000 * MS)).0
}

/// The report of VMs, each with its slowest read.
fn report_of(slowest_ms: &[u64]) -> Report {
    let profile = Profile::named("rand-8k-67").unwrap();
    let profile = profile.repeated(slowest_ms.len());
    let vm = |slowest_ms: &u64| -> VmOutcome<Infallible> {
        let measured = measured(*slowest_ms);
        VmOutcome {
            streams: vec![measured.clone()],
            measured,
            lost: None,
            outages: Vec::new(),
            disk_bytes: vec![1 << 30],
        }
    };
    let plan = Plan {
        vms: slowest_ms
            .iter()
            .map(|_| VmPlaces { disks: Vec::new() })
            .collect(),
        profile,
        warmup: window().start.since(Time(0)),
        duration: window().end - window().start,
        seed: 7,
        fill: false,
        rate_scale: 1.0,
        reconnect_for: std::time::Duration::ZERO,
        allow_outages: false,
    };
    let outcome = Outcome {
        vms: slowest_ms.iter().map(vm).collect(),
        window: window(),
        interrupted: false,
    };
    let mut report = report::report(&plan, &outcome);
    report.origin = Some(OriginReport {
        started_utc: "2026-11-25T02:00:30Z".into(),
        version: page::VERSION.into(),
        machine: MachineReport {
            host_name: "lab<1>".into(),
            processor: "Some CPU".into(),
            processors_usable: 2,
            processors: 4,
            memory_bytes: 16 << 30,
            kernel: "Linux 6.1".into(),
        },
    });
    report
}

/// Reads a page; it has to be well-formed.
fn read(page: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(page, options).unwrap()
}

fn with_class<'a>(node: Node<'a, 'a>, class: &str) -> Vec<Node<'a, 'a>> {
    let has = |node: &Node<'_, '_>| {
        let classes = node.attribute("class").unwrap_or("");
        class
            .split(' ')
            .all(|class| classes.split(' ').any(|other| other == class))
    };
    node.descendants().filter(has).collect()
}

fn said(node: Node<'_, '_>) -> String {
    let texts = node.descendants().filter(Node::is_text);
    texts.filter_map(|node| node.text()).collect()
}

/// The chart whose title contains `title`.
fn chart<'a>(page: &'a Document<'a>, title: &str) -> Node<'a, 'a> {
    let charts = with_class(page.root(), "chart");
    let mut found = charts.into_iter().filter(|chart| {
        let label = chart.attribute("aria-label").unwrap_or("");
        label.contains(title)
    });
    found.next().unwrap_or_else(|| panic!("no chart {title:?}"))
}

/// Heights of the points of the line that has `class`; smaller ones are further up.
fn heights(chart: Node<'_, '_>, class: &str) -> Vec<f64> {
    let lines = with_class(chart, class);
    let path = with_class(lines[0], "line")[0].attribute("d").unwrap();
    let points = path.split(['M', 'L']).skip(1);
    points
        .map(|point| point.split(' ').nth(1).unwrap().parse().unwrap())
        .collect()
}

#[test]
fn a_page_is_well_formed_and_takes_nothing_from_elsewhere() {
    let page = report::html(&report_of(&[20, 20]));
    read(&page);
    for outside in [
        "http:", "https:", "src=", "href=\"h", "url(", "@import", "<script",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_page_says_when_where_and_by_which_version_it_was_measured() {
    let page = report::html(&report_of(&[20]));
    let page = read(&page);
    let facts = with_class(page.root(), "facts");
    let fact = |name: &str| {
        let named = |node: &Node<'_, '_>| node.has_tag_name("dt") && said(*node) == name;
        let name = facts[0].descendants().find(named).expect("a fact");
        said(name.next_sibling_element().unwrap())
    };
    assert_eq!(fact("Started"), "2026-11-25 02:00:30 UTC");
    assert_eq!(fact("Ashlar"), page::VERSION);
    assert_eq!(
        fact("Load from"),
        "lab<1> · 2 of 4 × Some CPU · 16.0 GiB RAM · Linux 6.1"
    );
    let time = page.descendants().find(|node| node.has_tag_name("time"));
    let time = time.unwrap().attribute("datetime");
    assert_eq!(time, Some("2026-11-25T02:00:30Z"));
}

#[test]
fn percentiles_of_reads_and_of_writes_are_drawn_over_time() {
    let report = report_of(&[20, 200]);
    let first = report.total.intervals[3].read.unwrap();
    assert!((first.p50_ms - 5.0).abs() < 0.2, "{first:?}");
    assert!((first.p99_ms - 200.0).abs() < 4.0, "{first:?}");
    let page = report::html(&report);
    let page = read(&page);
    for (what, class) in [("reads", "read"), ("writes", "write")] {
        let chart = chart(
            &page,
            &format!("percentiles of the response time of {what}"),
        );
        let of = |percentile: &str| heights(chart, &format!("{class} {percentile}"));
        let (p50, p95, p99) = (of("p50"), of("p95"), of("p99"));
        // One point for each whole interval of the run, warm-up included.
        assert_eq!((p50.len(), p95.len(), p99.len()), (8, 8, 8), "{what}");
        let is_ordered = |place: usize| p50[place] >= p95[place] && p95[place] >= p99[place];
        assert!((0..8).all(is_ordered), "{what}");
        assert_eq!(what == "reads", p50[4] > p99[4], "{what}");
        let legend = with_class(chart.parent().unwrap(), "legend");
        assert_eq!(said(legend[0]), "p50 p95 p99 warm-up");
    }
}

#[test]
fn vms_have_small_charts_of_their_own_with_axes_that_they_share() {
    let report = report_of(&[12, 20, 900]);
    let page = report::html(&report);
    let page = read(&page);
    let blocks = with_class(page.root(), "multiples");
    assert_eq!(blocks.len(), 2, "distributions, and over time");
    for block in blocks {
        let names: Vec<String> = block
            .descendants()
            .filter(|node| node.has_tag_name("figcaption"))
            .map(said)
            .collect();
        let vms: Vec<&str> = report.vms.iter().map(|vm| vm.name.as_str()).collect();
        assert_eq!(names, vms);
        let charts = with_class(block, "chart");
        let ticks = |chart: &Node<'_, '_>| -> Vec<String> {
            let texts = with_class(*chart, "tick-text");
            texts.into_iter().map(said).collect()
        };
        assert!(ticks(&charts[0]).len() >= 4);
        for chart in &charts {
            assert_eq!(ticks(chart), ticks(&charts[0]), "other axes");
            assert_eq!(with_class(*chart, "line").len(), 2, "reads and writes");
        }
        let highest = |place: usize| {
            let heights = heights(charts[place], "read");
            heights.into_iter().fold(f64::INFINITY, f64::min)
        };
        assert!(highest(2) < highest(1), "the slow VM reaches higher");
    }
}

#[test]
fn of_many_vms_the_slowest_have_charts() {
    let mut slowest_ms = vec![20; 40];
    slowest_ms[33] = 700;
    let page = report::html(&report_of(&slowest_ms));
    let page = read(&page);
    let block = with_class(page.root(), "multiples")[0];
    let names: Vec<String> = block
        .descendants()
        .filter(|node| node.has_tag_name("figcaption"))
        .map(said)
        .collect();
    assert_eq!(names.len(), 24);
    assert!(names.contains(&"VM34".to_owned()), "{names:?}");
    let notes = with_class(page.root(), "small").into_iter().map(said);
    assert!(notes.into_iter().any(|note| note.contains("24 of 40 VMs")));
}

#[test]
fn units_stand_in_the_headings_and_wide_tables_scroll_by_themselves() {
    let page = report::html(&report_of(&[20, 20]));
    let page = read(&page);
    let tables = || page.descendants().filter(|node| node.has_tag_name("table"));
    assert_eq!(tables().count(), 2);
    for table in tables() {
        let around = table.parent().unwrap();
        assert_eq!(around.attribute("class"), Some("scroll"));
        assert!(
            around
                .attribute("aria-label")
                .is_some_and(|name| !name.is_empty())
        );
    }
    let kpis = tables().next().unwrap();
    let heads = kpis.descendants().filter(|node| node.has_tag_name("th"));
    let heads: Vec<String> = heads.map(said).collect();
    for head in ["response time, ms", "MB/s", "achieved, %"] {
        assert!(heads.iter().any(|text| text == head), "{head} in {heads:?}");
    }
    let cells = kpis.descendants().filter(|node| node.has_tag_name("td"));
    assert!(cells.map(said).all(|cell| !cell.contains('%')));
}

#[test]
fn a_report_from_before_there_were_origins_and_intervals_is_still_read() {
    let report = report_of(&[20]);
    let mut json = serde_json::to_value(&report).unwrap();
    let back: Report = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(back.origin, report.origin);
    json.as_object_mut().unwrap().remove("origin");
    for vm in [&["vms", "0"][..], &["total"]] {
        let at = format!("/{}", vm.join("/"));
        let vm = json.pointer_mut(&at).unwrap().as_object_mut().unwrap();
        vm.remove("intervals");
    }
    let old: Report = serde_json::from_value(json).unwrap();
    assert!(old.origin.is_none() && old.total.intervals.is_empty());
    read(&report::html(&old));
}
