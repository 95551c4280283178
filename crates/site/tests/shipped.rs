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
    assert_eq!(demo.pools[0].groups[0].level, Level::Raid10 { copies: 2 });
    let file = |size_bytes| move |d: &site::Drive| matches!(d.source, DriveSource::File { size_bytes: s, .. } if s == size_bytes);
    assert!(demo.drives.iter().all(file(2 << 30)));
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
    assert_eq!(site.pools[0].groups[0].level, Level::Raid10 { copies: 2 });
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

/// Plans that ship, with how many variants each has.
const PLANS: [(&str, usize); 7] = [
    ("fas3160.toml", 29),
    ("fs7500-network.toml", 18),
    ("fs7500.toml", 10),
    ("hyperv-r2-lab.toml", 18),
    ("nvme-today.toml", 8),
    ("ps6110xv.toml", 16),
    ("vnx5700.toml", 7),
];

fn sites() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sites")
}

#[test]
fn every_shipped_plan_is_read_with_all_its_variants() {
    for (name, variants) in PLANS {
        let described =
            site::plan::load(&sites().join(name), &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(described.variants.len(), variants, "{name}");
        assert_eq!(format!("{}.toml", described.base.name), name);
        for variant in &described.variants {
            assert_ne!(variant.plan, described.base, "{name}: {}", variant.name);
            assert!(variant.line > 1, "{name}: {}", variant.name);
        }
    }
}

#[test]
fn every_shipped_file_is_a_site_or_a_plan_that_a_test_knows() {
    let mut plans = Vec::new();
    for entry in std::fs::read_dir(sites()).unwrap() {
        let entry = entry.unwrap();
        let text = std::fs::read_to_string(entry.path()).unwrap();
        if site::plan::purposes(&text).modelled {
            plans.push(entry.file_name().into_string().unwrap());
        } else {
            site::load(&entry.path()).unwrap_or_else(|error| panic!("{error}"));
        }
    }
    plans.sort();
    assert_eq!(plans, PLANS.map(|(name, _)| name));
}

#[test]
fn published_drives_and_groups_are_as_published() {
    let plan = |name: &str| site::plan::load(&sites().join(name), &[]).unwrap();
    let groups = |plan: &site::plan::Plan, pool: &str| -> Vec<(Level, u16, u16)> {
        let pool = plan.pools.iter().find(|other| other.name == pool).unwrap();
        let groups = pool.groups.iter();
        groups.map(|g| (g.level, g.drives, g.count)).collect()
    };
    let vnx = plan("vnx5700.toml").base;
    for pool in ["pool1", "pool2"] {
        assert_eq!(groups(&vnx, pool), [(Level::Raid5, 5, 4); 2], "8 of 4+1");
    }
    let fas = plan("fas3160.toml").base;
    assert_eq!(groups(&fas, "aggr1"), [(Level::Raid6, 16, 4)]);
    let ps = plan("ps6110xv.toml");
    assert_eq!(groups(&ps.base, "array1"), [(Level::Raid6, 23, 1)]);
    let of = |variant: &str| {
        let found = ps.variants.iter().find(|other| other.name == variant);
        groups(&found.unwrap().plan, "array1")
    };
    assert_eq!(of("RAID 10"), [(Level::Raid10 { copies: 2 }, 22, 1)]);
    assert_eq!(of("RAID 50"), [(Level::Raid50, 22, 1)]);
    // Every array of the NAS has 22 active drives and two spares, over two controllers.
    let nas = plan("fs7500.toml").base;
    for lot in &nas.lots {
        let groups = nas.pools.iter().flat_map(|pool| &pool.groups);
        let active = groups.filter(|g| g.from == lot.name);
        let active: u16 = active.map(|g| g.drives * g.count).sum();
        let spares = nas.pools.iter().flat_map(|pool| &pool.spares);
        let spares = spares.filter(|s| s.from == lot.name);
        let spares: u16 = spares.map(|s| s.count).sum();
        assert_eq!((lot.count, active, spares), (24, 22, 2), "{}", lot.name);
    }
}
