//! The parts that print docs/internals/predictions.md: lines, the figures that they read from runs,
//! volumes at rest.

#[path = "../../examples/predictions/at_rest.rs"]
mod at_rest;
#[allow(dead_code, reason = "the page reads more")]
#[path = "../../examples/predictions/row.rs"]
mod row;
#[allow(dead_code, reason = "the page reads more")]
#[path = "../../examples/predictions/run.rs"]
mod run;

use row::{Section, asked, given, without_figure};
use run::{Outcomes, Run};
use site::Provisioning;

const LAB: Run = Run::of("hyperv-r2-lab", "", (1, 1));

#[test]
fn a_line_has_what_is_published_what_is_rehearsed_and_the_error() {
    let section = Section {
        title: "X. Site",
        runs: &[],
        rows: vec![
            given("a", "s", 2.0, |_| Some(3.0), "why"),
            given("b", "", 0.0, |_| Some(0.0), ""),
            given("c", "", 0.0, |_| Some(1.0), ""),
            asked("d", "IO/s", |_| Some(123.4), ""),
            without_figure("e", "GB", 283.0, "why not"),
            asked("f", "ms", |o| o.read_ms(LAB), ""),
        ],
    };
    let text = section.text(&Outcomes::of_all(Vec::new()));
    let lines: Vec<&str> = text.lines().skip(5).collect();
    assert_eq!(
        lines,
        [
            "| a | 2 s | 3.00 s | +50 % | why |",
            "| b | 0 | 0.00 | none |  |",
            "| c | 0 | 1.00 |  |  |",
            "| d | to predict | 123 IO/s |  |  |",
            "| e | 283 GB | – |  | why not |",
            "| f | to predict | – |  |  |",
        ]
    );
}

#[test]
fn a_run_is_asked_what_happened_and_what_links_and_drives_did() {
    let moves = Run::of("hyperv-r2-lab", "8 GiB over 10 GbE with RDMA", (80, 30)).with(&[
        ("vm_group.disks.outstanding", "1"),
        ("vm_group.disks.think", "100 ms"),
        ("controller.ctl1.cache", "none"),
    ]);
    let outcomes = Outcomes::of_all(vec![moves]);
    assert_eq!(outcomes.failures().count(), 0);
    let drain = "drain of host node1";
    // 8 GiB in 1.2 GB/s, and two times 1.5 s around it.
    let took = outcomes.took_s(moves, drain).unwrap();
    assert!((10.2..10.8).contains(&took), "{took}");
    let used = outcomes
        .links_used(moves, "node1 migration", drain)
        .unwrap();
    let busy = (took - 3.06) / took;
    assert!((used - busy).abs() < 0.03, "{used} against {busy}");
    assert_eq!(outcomes.took_s(moves, "drain of host node2"), None);
    // Reads, which one drive answers.
    let back_end = outcomes.back_end(moves, "spindles").unwrap();
    assert!((0.98..1.02).contains(&back_end), "{back_end}");
}

#[test]
fn a_thin_volume_holds_what_was_written_and_is_cleared_at_once() {
    let held = at_rest::held_gb(LAB, 10, &[3, 2]);
    assert_eq!(held, Some(5.0));
    for provisioning in [Provisioning::Thick, Provisioning::Thin] {
        let took = at_rest::cleared_s(LAB, 2, provisioning).unwrap();
        // It is durable, so something was written; the zeros were not, which are 10 s of work.
        assert!(took > 0.0 && took < 1.0, "{took} of {provisioning:?}");
    }
    // More than the pool has.
    assert_eq!(at_rest::cleared_s(LAB, 1 << 20, Provisioning::Thick), None);
}

#[test]
fn a_setting_or_a_variant_that_a_site_does_not_have_gives_no_figure() {
    let wrong = [
        LAB.with(&[("vm_group.nobody.scale", "2")]),
        Run::of("hyperv-r2-lab", "nothing like it", (1, 1)),
    ];
    let outcomes = Outcomes::of_all(wrong.to_vec());
    assert_eq!(outcomes.failures().count(), 2);
    assert_eq!(outcomes.iops(wrong[0]), None);
}
