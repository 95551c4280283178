//! The array that the tests' hosts log in to.

use e2e::array::{Array, TARGET};
use e2e::guest::{Cable, Guest, Image};
use std::path::Path;

/// The iSCSI name of host `letter`.
pub fn host_name(letter: char) -> String {
    format!("iqn.2026-11.dev.ashlar:host-{letter}")
}

/// RAID 10 over four file drives; one target with these volumes (name and MiB), behind a
/// portal at each of these addresses.
pub fn text(addresses: &[String], volumes: &[(&str, u64)]) -> String {
    let mut text = "[site]\nname = \"linux\"\n[api]\nlisten = \"127.0.0.1:0\"\n".to_owned();
    for address in addresses {
        text += &format!("[[portal]]\naddress = \"{address}:3260\"\n");
    }
    for n in 0..4 {
        text += &format!("[[drive]]\nname = \"d{n}\"\nfile = \"d{n}.img\"\nsize = \"512 MiB\"\n");
    }
    text += "[[pool]]\nname = \"p\"\nlevel = \"10\"\ndrives = [\"d0\", \"d1\", \"d2\", \"d3\"]\n";
    let mut names = Vec::new();
    for (name, mib) in volumes {
        text += &format!(
            "[[volume]]\nname = \"{name}\"\npool = \"p\"\nsize = \"{mib} MiB\"\n\
             provisioning = \"thin\"\n"
        );
        names.push(*name);
    }
    text += &format!(
        "[[export]]\ntarget = \"{TARGET}\"\nvolumes = {names:?}\ninitiators = \"any\"\n\
         sanitize = true\n"
    );
    text
}

/// The array with these volumes, behind the cables.
pub fn array(cables: &[&Cable], volumes: &[(&str, u64)]) -> Array {
    let mut addresses: Vec<String> = cables.iter().map(|cable| cable.array()).collect();
    addresses.dedup();
    Array::start_with(&text(&addresses, volumes))
}

/// The image of hosts.
pub fn image() -> Image {
    Image::build_initiator(Path::new(env!("CARGO_BIN_EXE_disk-load")))
}

/// A host that has logged in by all portals that the first one names, and has these disks.
pub fn logged_in(image: &Image, letter: char, cables: &[&Cable], disks: usize) -> Guest {
    let mut host = Guest::boot_initiator(image, &host_name(letter), cables);
    log_in(&mut host, cables, disks);
    host
}

/// Logs in by all these cables, which the first one's portal names.
pub fn log_in(host: &mut Guest, cables: &[&Cable], disks: usize) {
    let said = host.tell(&format!("log_in {} {disks}", cables[0].array()));
    for cable in cables {
        let found = format!("{}:3260,1 {TARGET}", cable.array());
        assert!(said.contains(&found), "{found} is missing in {said}");
    }
}
