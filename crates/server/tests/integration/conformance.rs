//! libiscsi's conformance suite (`iscsi-test-cu`): all of it, on a thin LUN and a thick one,
//! by two paths, data loss and SANITIZE allowed. docs/reference/conformance.md tells it to people.

use crate::served::initiator::Initiator;
use crate::served::{Served, TARGET, VOLUME_BYTES, run};
use engine::{Provisioning, VolumeSpec};
use server::shard::UnitTraits;
use std::collections::BTreeMap;

/// A LUN whose physical blocks have 4 KiB, as they have unless said otherwise.
const LONG_BLOCKS: u16 = 0;
const THIN: u16 = 1;
const THICK: u16 = 2;

/// What the suite takes for granted: physical blocks as long as logical ones, SANITIZE, mode
/// pages that change, and target resets.
const TRAITS: UnitTraits = UnitTraits {
    physical_block_bytes: Some(512),
    may_sanitize: true,
    may_affect_others: true,
};

/// Tests that the suite has.
const TESTS: u32 = 230;

/// What the suite skips on any LUN, and how often it says so: it counts that as passed.
const SKIPPED: [(&str, u32); 6] = [
    ("Logical unit is not removable", 8),
    ("Media is not removable", 1),
    ("Logical unit is not write-protected", 1),
    ("SANITIZE OVERWRITE is not implemented", 4),
    ("SANITIZE CRYPTO_ERASE is not implemented", 3),
    ("does not support 0-blocks", 2),
];

/// What it skips on a thin LUN besides.
const SKIPPED_THIN: [(&str, u32); 1] = [("LBPPB < 2", 5)];

/// What it skips on a thick one.
const SKIPPED_THICK: [(&str, u32); 4] = [
    ("Logical unit is fully provisioned", 13),
    ("UNMAP is not implemented", 1),
    ("SANITIZE BLOCK_ERASE is not implemented", 3),
    ("SANITIZE EXIT FAILURE MODE is not implemented", 1),
];

/// Families for a connection that another shard carries, and for long physical blocks: those
/// of data, of settings and of iSCSI.
const FAMILIES: [&str; 8] = [
    "SCSI.CompareAndWrite",
    "SCSI.ExtendedCopy",
    "SCSI.Prout*",
    "SCSI.Read1*",
    "SCSI.Unmap",
    "SCSI.Write*",
    "SCSI.ModeSense6",
    "iSCSI.*",
];

#[tokio::test]
async fn all_of_the_suite_passes_on_a_thin_lun() {
    all_pass(THIN, &SKIPPED_THIN).await;
}

#[tokio::test]
async fn all_of_the_suite_passes_on_a_thick_lun() {
    all_pass(THICK, &SKIPPED_THICK).await;
}

#[tokio::test]
async fn the_suite_passes_over_connections_that_another_shard_carries() {
    let served = Served::beside_another().await;
    // Keeps the place at home.
    let (name, at) = ("iqn.2026-11.test:first", served.address());
    let first = Initiator::login(at, name, 1, TARGET).await;
    for family in FAMILIES {
        let (total, _) = passes(&served, &["-t", family], LONG_BLOCKS).await;
        assert!(total > 0, "{family}: the suite has no such tests");
    }
    drop(first);
    served.stop().await;
}

async fn all_pass(lun: u16, skipped: &[(&str, u32)]) {
    let served = Served::start().await;
    // All LUNs of a target have to allow that it is reset.
    served.allow_affecting_others().await;
    let made = served.shard.handle().call(move |state| async move {
        let provisioning = match lun {
            THICK => Provisioning::Thick,
            _ => Provisioning::Thin,
        };
        let pool = state.pool("p").expect("it is there");
        let volume = pool.create_volume(VolumeSpec {
            name: "other".to_owned(),
            size_bytes: VOLUME_BYTES,
            provisioning,
        });
        let volume = volume.await.expect("it has room");
        let exported = state.export_with(TARGET, lun, volume, TRAITS);
        exported.expect("a free LUN");
    });
    made.await.expect("the shard runs");
    let (total, said) = passes(&served, &["-S", "-t", "ALL"], lun).await;
    assert_eq!(total, TESTS);
    let mut counts = BTreeMap::new();
    for line in said.lines().filter(|line| line.contains("[SKIPPED]")) {
        let mut known = SKIPPED.iter().chain(skipped);
        let reason = known.find(|(reason, _)| line.contains(reason));
        let (reason, _) = reason.unwrap_or_else(|| panic!("skipped, nobody knows why: {line}"));
        *counts.entry(*reason).or_insert(0) += 1;
    }
    let expected: BTreeMap<_, _> = SKIPPED.iter().chain(skipped).copied().collect();
    assert_eq!(counts, expected);
    served.stop().await;
}

/// Runs a part of the suite by two paths; all of its tests have to pass. How many there are,
/// and what was said.
async fn passes(served: &Served, which: &[&str], lun: u16) -> (u32, String) {
    let url = served.url(lun);
    let arguments = [&["-d"], which, &[&url, &url]].concat();
    let output = run("iscsi-test-cu", &arguments).await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{which:?}, LUN {lun}: {said}");
    let tests = said
        .lines()
        .find(|line| line.trim_start().starts_with("tests "));
    let counts: Vec<u32> = tests
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [total, ran, passed, failed, ..] = counts[..] else {
        panic!("{which:?}: no summary in {said}")
    };
    let expected = (total, total, 0);
    assert_eq!(
        (ran, passed, failed),
        expected,
        "{which:?}, LUN {lun}: {said}"
    );
    (total, said)
}
