//! The plans that ship fit their workloads, in every variant, and no check calls one wrong.

use rehearse::advice::{Severity, advise, advise_all};
use rehearse::plan::fit::fit_all;
use rehearse::plan::profiles::shipped;
use site::plan::{Described, Plan};
use std::path::Path;

const PLANS: [&str; 7] = [
    "fas3160",
    "fs7500-network",
    "fs7500",
    "hyperv-r2-lab",
    "nvme-today",
    "ps6110xv",
    "vnx5700",
];

fn described(name: &str) -> Described {
    let sites = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sites");
    let described = site::plan::load(&sites.join(format!("{name}.toml")), &[]);
    described.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn shipped_plans_fit_with_all_their_variants() {
    for name in PLANS {
        let said: Vec<String> = fit_all(&described(name), &shipped)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(said, [""; 0], "{name}");
    }
}

/// Names of checks that find something of that severity, each once.
fn found(plan: &Plan, severity: Severity) -> Vec<&'static str> {
    let findings = advise(plan, &shipped);
    let ours = findings
        .iter()
        .filter(|finding| finding.check.severity == severity);
    let mut names: Vec<&str> = ours.map(|finding| finding.check.name).collect();
    names.dedup();
    names
}

#[test]
fn checks_say_of_shipped_plans_what_is_known_of_them() {
    for name in PLANS {
        assert_eq!(
            found(&described(name).base, Severity::Error),
            [""; 0],
            "{name}"
        );
    }
    assert_eq!(
        found(&described("nvme-today").base, Severity::Warning),
        [""; 0]
    );
    let finds = |name: &str, check: &str| {
        let findings = advise_all(&described(name), &shipped);
        let ours = findings
            .into_iter()
            .filter(|finding| finding.check.name == check);
        ours.map(|finding| finding.variants.len())
            .collect::<Vec<_>>()
    };
    // Published: a block meets the cap of 20 ms at two thirds of its plan.
    assert_eq!(finds("fs7500", "over-66-percent")[..2], [0, 0]);
    // As it stands by port; the variants that use one address of several.
    assert_eq!(finds("fs7500-network", "one-link-policy")[0], 0);
    assert_eq!(finds("fs7500-network", "hash-of-one-address"), [2]);
    // One active 10 GbE port.
    assert_eq!(finds("ps6110xv", "single-port-controller"), [0, 0, 3, 3]);
    // Frames of 1500 bytes: twelve of the variants with Ethernet.
    assert_eq!(finds("fas3160", "small-frames"), [12]);
    assert_eq!(finds("vnx5700", "emulated-adapter"), [0, 1]);
    // No arm moves on flash.
    assert_eq!(finds("nvme-today", "log-not-mirrored"), [0; 0]);
    // Published on RAID 1/0.
    assert_eq!(finds("vnx5700", "tempdb-not-mirrored"), [0; 0]);
}
