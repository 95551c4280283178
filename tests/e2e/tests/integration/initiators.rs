//! libiscsi's programs find, describe and size the LUNs.

use e2e::array::{Array, LUN_BYTES, TARGET};
use e2e::program::run;

#[test]
fn iscsi_ls_lists_the_target_and_its_luns() {
    let array = Array::start();
    let listed = run("iscsi-ls", &["--show-luns", &array.portal_url()]).ok();
    let portal = array.portal_url().replace("iscsi://", "");
    assert!(
        listed.contains(&format!("Target:{TARGET} Portal:{portal},1")),
        "{listed}"
    );
    let disks = listed
        .lines()
        .filter(|line| line.contains("Type:DIRECT_ACCESS"))
        .count();
    assert_eq!(disks, LUN_BYTES.len(), "{listed}");
}

#[test]
fn iscsi_inq_reads_the_standard_data_and_every_page_it_is_told_of() {
    let array = Array::start();
    let url = array.lun_url(0);
    let standard = run("iscsi-inq", &[&url]).ok();
    for wanted in [
        "Peripheral Device Type:DIRECT_ACCESS",
        "Vendor:ASHLAR",
        "CmdQue:1",
    ] {
        assert!(standard.contains(wanted), "{wanted} is not in:\n{standard}");
    }
    let pages = run("iscsi-inq", &["-e", "1", "-c", "0", &url]).ok();
    // Unit serial number, device identification, block limits, characteristics,
    // logical block provisioning (SPC-4 7.8, SBC-3 6.5).
    for page in [0x80, 0x83, 0xb0, 0xb1, 0xb2] {
        assert!(
            pages.contains(&format!("Page:{page:#04x}")),
            "{page:#x} is not in:\n{pages}"
        );
        let said = run("iscsi-inq", &["-e", "1", "-c", &page.to_string(), &url]).ok();
        assert!(!said.trim().is_empty(), "page {page:#x} is empty");
    }
}

#[test]
fn two_luns_have_two_identities() {
    let array = Array::start();
    let identity = |lun| run("iscsi-inq", &["-e", "1", "-c", "131", &array.lun_url(lun)]).ok();
    assert_eq!(identity(0), identity(0));
    assert_ne!(identity(0), identity(1));
}

#[test]
fn iscsi_readcapacity16_gives_the_exact_size() {
    let array = Array::start();
    for (lun, bytes) in LUN_BYTES.iter().enumerate() {
        let size = run("iscsi-readcapacity16", &["-s", &array.lun_url(lun)]).ok();
        assert_eq!(size.trim(), bytes.to_string(), "LUN {lun}");
    }
    let said = run("iscsi-readcapacity16", &[&array.lun_url(0)]).ok();
    assert!(said.contains("LOGICAL BLOCK LENGTH IN BYTES:512"), "{said}");
}

#[test]
fn an_absent_lun_or_target_is_refused_and_nobody_else_notices() {
    let array = Array::start();
    let absent_lun = run("iscsi-inq", &[&array.lun_url(9)]);
    assert!(!absent_lun.success && absent_lun.stderr.contains("LOGICAL_UNIT_NOT_SUPPORTED"));
    let url = format!("{}/{TARGET}-not/0", array.portal_url());
    let absent_target = run("iscsi-inq", &[&url]);
    assert!(!absent_target.success && absent_target.stderr.contains("Target not found"));
    run("iscsi-inq", &[&array.lun_url(0)]).ok();
}
