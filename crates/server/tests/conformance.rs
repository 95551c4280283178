//! libiscsi's conformance suite (`iscsi-test-cu`), for the commands that there
//! are and for the iSCSI rules. What all of it says is in docs/CONFORMANCE.md.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test of the real world"
)]

mod served;

use engine::{Provisioning, VolumeSpec};
use served::initiator::Initiator;
use served::{Served, TARGET, VOLUME_BYTES, run};

const THIN: u16 = 0;
const THICK: u16 = 1;

/// Families of tests. The suite skips what a target says it does not have, so
/// those of other commands would pass without saying anything.
const FAMILIES: [&str; 16] = [
    "SCSI.ExtendedCopy",
    "SCSI.ReceiveCopyResults",
    "SCSI.Inquiry",
    "SCSI.Mandatory",
    "SCSI.ModeSense6",
    "SCSI.PreventAllow",
    "SCSI.Read6",
    "SCSI.Read10",
    "SCSI.Read12",
    "SCSI.Read16",
    "SCSI.ReadCapacity*",
    "SCSI.ReportSupportedOpcodes",
    "SCSI.StartStopUnit",
    "SCSI.Verify*",
    "SCSI.Write1*",
    "iSCSI.*",
];

/// Those of thin provisioning and of copies: of a thin LUN nothing may be skipped. One test is left
/// out: `GetLBAStatus.UnmapSingle` asks for the status of one block and wants to be
/// told of another where physical blocks are longer than logical ones, against SBC-3.
const OF_SPACE: [&str; 9] = [
    "SCSI.ExtendedCopy",
    "SCSI.ReceiveCopyResults",
    "SCSI.Inquiry",
    "SCSI.ReadCapacity16",
    "SCSI.Unmap",
    "SCSI.WriteSame10",
    "SCSI.WriteSame16",
    "SCSI.GetLBAStatus.Simple",
    "SCSI.GetLBAStatus.BeyondEol",
];

/// Skipped all the same: reservations are not there yet (the suite looks for them
/// whatever it tests), and WRITE SAME of no blocks is refused, as WSNZ says.
const MAY_BE_SKIPPED: [&str; 2] = ["PERSISTENT RESERVE IN", "does not support 0-blocks"];

#[tokio::test]
async fn the_suite_of_libiscsi_passes() {
    let served = Served::start().await;
    all_pass(&served).await;
    served.stop().await;
}

#[tokio::test]
async fn the_suite_passes_over_connections_that_another_shard_carries() {
    let served = Served::beside_another().await;
    // Keeps the place at home.
    let (name, at) = ("iqn.2026-11.test:first", served.address());
    let first = Initiator::login(at, name, 1, TARGET).await;
    all_pass(&served).await;
    drop(first);
    served.stop().await;
}

async fn all_pass(served: &Served) {
    for family in FAMILIES {
        passes(served, family, THIN).await;
    }
}

#[tokio::test]
async fn thin_and_thick_luns_pass_what_the_suite_has_of_space() {
    let served = Served::start().await;
    let made = served.shard.handle().call(|state| async move {
        let pool = state.pool("p").expect("it is there");
        let volume = pool.create_volume(VolumeSpec {
            name: "thick".to_owned(),
            size_bytes: VOLUME_BYTES,
            provisioning: Provisioning::Thick,
        });
        let volume = volume.await.expect("it has room");
        state.export(TARGET, THICK, volume).expect("a free LUN");
    });
    made.await.expect("the shard runs");
    for family in OF_SPACE {
        let said = passes(&served, family, THIN).await;
        let skipped = said.lines().find(|line| {
            line.contains("[SKIPPED]") && !MAY_BE_SKIPPED.iter().any(|why| line.contains(why))
        });
        assert_eq!(skipped, None, "{family} of the thin LUN");
        let said = passes(&served, family, THICK).await;
        if family == "SCSI.Unmap" {
            // So the check above sees what is skipped.
            assert!(said.contains("[SKIPPED] Logical unit is fully provisioned"));
        }
    }
    served.stop().await;
}

/// Runs a family; all of its tests have to pass. Gives what was said.
async fn passes(served: &Served, family: &str, lun: u16) -> String {
    let output = run("iscsi-test-cu", &["-d", "-t", family, &served.url(lun)]).await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{family}, LUN {lun}: {said}");
    let tests = said
        .lines()
        .find(|line| line.trim_start().starts_with("tests "));
    let counts: Vec<u32> = tests
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [total, ran, passed, failed, ..] = counts[..] else {
        panic!("{family}: no summary in {said}")
    };
    assert!(total > 0, "{family}: the suite has no such tests");
    let expected = (total, total, 0);
    assert_eq!(
        (ran, passed, failed),
        expected,
        "{family}, LUN {lun}: {said}"
    );
    said
}
