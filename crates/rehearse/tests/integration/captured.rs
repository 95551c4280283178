//! Loads that a file describes itself, and what a capture measured beside what is predicted.

use crate::common::{TINY, profile, run};
use rehearse::findings::summary::Rehearsal;
use rehearse::plan::fit;
use rehearse::report::schema::BesideReport;
use rehearse::report::{beside, document, html, measured, rehearsed};
use site::plan::{Plan, parse};

/// A load of its own for the VM group of the site, and for a second one.
const OWN: &str = r#"
[[vm_group]]
name = "other"
profile = "mine"
hosts = ["esx"]
pools = ["data"]

[[profile]]
name = "mine"
disk = "4 GiB"
streams = [
  { name = "reads", rate = 80, random = 90, hot = 70, active = 50, sizes = ["4 KiB"] },
  { name = "writes", rate = 40, reads = 0, sizes = ["8 KiB"] },
]

[[measured]]
vm_group = "vm"
reads_per_s = 100
read_mean_ms = 0.000001

[[measured]]
vm_group = "other"
reads_per_s = 100
writes_per_s = 50
write_mean_ms = 4
write_p95_ms = 8
write_p99_ms = 9
"#;

fn plan(text: &str) -> Plan {
    match parse("own.toml", text, &[]) {
        Ok(described) => described.base,
        Err(error) => panic!("{error}"),
    }
}

fn all(plan: &Plan, seeds: u64) -> (Rehearsal, Vec<BesideReport>) {
    let rehearsal = Rehearsal {
        name: "as it stands".to_owned(),
        outcomes: (1..=seeds).map(|seed| run(plan, seed).unwrap()).collect(),
    };
    let beside = beside(plan, &rehearsal);
    (rehearsal, beside)
}

#[test]
fn what_was_measured_stands_beside_what_is_predicted() {
    let plan = plan(&format!("{TINY}{OWN}"));
    assert_eq!(fit::fit(&plan, &profile), []);
    let (rehearsal, beside) = all(&plan, 2);
    let [shipped, own] = beside.as_slice() else {
        panic!("{beside:?}")
    };
    // A profile of Ashlar has VMs of other names.
    assert_eq!(shipped.reads_per_s.predicted, None);
    assert_eq!(shipped.reads_per_s.difference_percent, None);
    assert_eq!(shipped.reads_per_s.measured, Some(100.0));
    let (reads, writes) = (own.reads_per_s, own.writes_per_s);
    let near = |found: Option<f64>, meant: f64| {
        let off = found.unwrap() / meant - 1.0;
        assert!(off.abs() < 0.25, "{found:?} instead of {meant}");
    };
    near(reads.predicted, 80.0);
    near(writes.predicted, 40.0);
    let expected = (reads.predicted.unwrap() / 100.0 - 1.0) * 100.0;
    assert!((reads.difference_percent.unwrap() - expected).abs() < 1e-9);
    // Nothing was measured of it.
    assert_eq!(own.read_mean_ms.measured, Some(0.0));
    assert_eq!(own.read_mean_ms.difference_percent, None);
    assert!(own.write_p95_ms.predicted.unwrap() > 0.0);

    let text = measured(&beside);
    for row in [
        "Measured beside predicted",
        "vm ",
        "other ",
        "write p95, ms",
        "–",
    ] {
        assert!(text.contains(row), "{row}: {text}");
    }
    let mut variant = rehearsed(&rehearsal);
    variant.beside = beside;
    let page = html::html(&document(&plan, None, vec![variant]));
    assert!(page.contains("<h3>Measured beside predicted</h3>"));
    assert_eq!(page.matches("write p95, ms").count(), 2);
}

#[test]
fn a_file_without_measurements_has_no_such_table() {
    let plan = plan(TINY);
    let (_, beside) = all(&plan, 1);
    assert_eq!((measured(&beside).as_str(), beside.len()), ("", 0));
}

#[test]
fn a_load_of_the_file_goes_before_one_of_that_name() {
    let text = format!("{TINY}{OWN}").replace("\"mine\"", "\"rand-8k-67\"");
    let plan = plan(&text.replace("outstanding = 8\n", ""));
    let (_, beside) = all(&plan, 1);
    assert!(
        beside.iter().all(|one| one.reads_per_s.predicted.is_some()),
        "{beside:?}"
    );
}

#[test]
fn a_disk_too_small_for_its_load_is_told_where_the_load_is() {
    let text = format!("{TINY}{OWN}").replace("disk = \"4 GiB\"", "disk = \"64 KiB\"");
    let line = text.lines().position(|line| line == "[[profile]]").unwrap() + 1;
    let found = fit::fit(&plan(&text), &profile);
    let [one] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((one.line, one.key.as_str()), (line, "profile"));
    assert!(one.found.contains("too small"), "{one:?}");
}
