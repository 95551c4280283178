//! Initiators that nobody here wrote: libiscsi's programs and QEMU's tools.

use crate::served::{Served, TARGET, VOLUME_BYTES, succeed};

#[tokio::test]
async fn libiscsi_lists_inquires_and_measures() {
    let served = Served::start().await;
    let listed = succeed("iscsi-ls", &["-s", &served.portal_url()]).await;
    assert!(
        listed.contains(&format!("Target:{TARGET} Portal:{},1", served.address())),
        "{listed}"
    );
    assert!(listed.contains("Lun:0"), "{listed}");
    let inquired = succeed("iscsi-inq", &[&served.url(0)]).await;
    for line in [
        "Vendor:ASHLAR",
        "Product:VIRTUAL DISK",
        "Peripheral Qualifier:CONNECTED",
    ] {
        assert!(inquired.contains(line), "{inquired}");
    }
    let named = succeed("iscsi-inq", &["-e", "1", "-c", "131", &served.url(0)]).await;
    assert!(named.contains("NAA"), "{named}");
    let measured = succeed("iscsi-readcapacity16", &[&served.url(0)]).await;
    assert!(measured.contains(&format!("{VOLUME_BYTES}")), "{measured}");
    served.stop().await;
}

#[tokio::test]
async fn qemu_writes_and_reads_back_at_odd_places() {
    let served = Served::start().await;
    let url = served.url(0);
    let io = ["-f", "raw", "-c"];
    for (write, read) in [
        ("write -P 0x5a 0 1M", "read -P 0x5a 0 1M"),
        ("write -P 0x3c 1536 512", "read -P 0x3c 1536 512"),
        (
            "write -P 0x77 786432 3145728",
            "read -P 0x77 786432 3145728",
        ),
        ("write -P 0x11 67108352 512", "read -P 0x11 67108352 512"),
    ] {
        succeed("qemu-io", &[&io[..], &[write, &url]].concat()).await;
        let said = succeed("qemu-io", &[&io[..], &[read, &url]].concat()).await;
        assert!(!said.contains("failed"), "{said}");
    }
    let untouched = succeed(
        "qemu-io",
        &[&io[..], &["read -P 0 33554432 1M", &url]].concat(),
    )
    .await;
    assert!(!untouched.contains("failed"), "{untouched}");
    served.stop().await;
}
