//! libiscsi's conformance suite (`iscsi-test-cu`), for the commands that there
//! are and for the iSCSI rules.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test of the real world"
)]

mod served;

use served::{Served, run};

/// Families of tests. The suite skips what a target says it does not have, so
/// those of other commands would pass without saying anything.
const FAMILIES: [&str; 14] = [
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

#[tokio::test]
async fn the_suite_of_libiscsi_passes() {
    let served = Served::start().await;
    for family in FAMILIES {
        let output = run("iscsi-test-cu", &["-d", "-t", family, &served.url(0)]).await;
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{family}: {said}");
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
        assert_eq!((ran, passed, failed), (total, total, 0), "{family}: {said}");
    }
    served.stop().await;
}
