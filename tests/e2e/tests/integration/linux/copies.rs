//! sg3-utils have the array copy for them.

use super::site;
use e2e::guest::{Cable, in_own_network};

#[test]
fn extended_copy_moves_the_bytes_inside_the_array() {
    in_own_network(
        "linux::copies::extended_copy_moves_the_bytes_inside_the_array",
        || {
            let cable = Cable::lay(1, 2);
            let _array = site::array(&[&cable], &[("v", 64), ("w", 64)]);
            let mut host = site::logged_in(&site::image(), 'a', &[&cable], 2);
            host.order("dd if=/dev/urandom of=/data bs=64k count=64 2>/dev/null");
            host.tell("dd if=/data of=$(disk 0) bs=64k oflag=direct 2>/dev/null");
            let limits = host.tell("sg_copy_results -p $(disk 0)");
            println!("{limits}");
            println!("{}", host.tell("sg_vpd -p tpc $(disk 0)"));
            assert!(host.tell("sg_inq $(disk 0)").contains("3PC=1"));
            // To another LUN, with both as the one that copies; and within one.
            let copies = [
                (
                    "--on_src",
                    "if=$(disk 0) of=$(disk 1) bs=512 count=8192 seek=1024",
                ),
                (
                    "--on_dst",
                    "if=$(disk 0) of=$(disk 1) bs=512 count=8192 seek=16384",
                ),
                (
                    "--on_src",
                    "if=$(disk 0) of=$(disk 0) bs=512 count=8192 seek=32768",
                ),
            ];
            for (place, copy) in copies {
                let said = host.tell(&format!("sg_xcopy {place} {copy}"));
                println!("{said}");
            }
            for (disk, block) in [(1, 1024), (1, 16384), (0, 32768)] {
                host.tell(&format!(
                "dd if=$(disk {disk}) bs=64k skip={} count=64 iflag=direct 2>/dev/null | cmp - /data",
                block / 128
            ));
            }
        },
    );
}
