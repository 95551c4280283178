//! The site files that ship are right, and the contracts in them hold.

use site::{DriveSource, Initiators, Level, Provisioning, Site};
use std::path::Path;

fn shipped(name: &str) -> Site {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../sites")
        .join(name);
    site::load(&path).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_demo_is_the_ten_vm_mix() {
    let demo = shipped("demo.toml");
    assert_eq!(
        (demo.drives.len(), demo.vms.len(), demo.exports.len()),
        (8, 10, 10)
    );
    assert_eq!(demo.pools[0].groups[0].level, Level::Raid10);
    let file = |size_bytes| move |d: &site::Drive| matches!(d.source, DriveSource::File { size_bytes: s, .. } if s == size_bytes);
    assert!(demo.drives.iter().all(file(4 << 30)));
    let sum: u64 = demo.volumes.iter().map(|volume| volume.size_bytes).sum();
    assert_eq!(
        sum >> 20,
        50 + 50 + 1460 + 780 + 1100 + 1540 + 4 * 50,
        "one MiB for every GB of the mix"
    );
    assert_eq!(demo.volumes.len(), 10 + 4 + 5 + 3 + 1);
    for vm in &demo.vms {
        assert_eq!(vm.profile, "hetero10");
        assert!(demo.export(&vm.target).is_some(), "{}", vm.name);
    }
}

#[test]
fn the_conformance_site_keeps_its_contract() {
    let site = shipped("conformance.toml");
    assert_eq!(site.portals.len(), 1);
    assert_eq!(site.portals[0].address.to_string(), "127.0.0.1:3260");
    assert_eq!(site.drives.len(), 4);
    assert_eq!(site.pools[0].groups[0].level, Level::Raid10);
    let export = site
        .export("iqn.2026-11.dev.ashlar:conformance")
        .expect("the target");
    assert_eq!(export.initiators, Initiators::Any);
    let luns: Vec<(u64, Provisioning)> = export
        .volumes
        .iter()
        .filter_map(|name| site.volumes.iter().find(|volume| volume.name == *name))
        .map(|volume| (volume.size_bytes, volume.provisioning))
        .collect();
    assert_eq!(
        luns,
        [
            (1 << 30, Provisioning::Thin),
            (1 << 30, Provisioning::Thick)
        ]
    );
}
