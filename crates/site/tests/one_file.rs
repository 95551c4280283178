//! One file is served and rehearsed: what each needs, what each ignores, and what is assumed.

use site::plan::{Assumption, Plan, Purposes, purposes};
use site::{DriveSource, Provisioning, Site};

/// Hardware and load of a site, with portal and drives, as it is served.
const BOTH: &str = r#"
[site]
name = "both"
about = "A shop"
[run]
measure = "2 s"
[[portal]]
address = "127.0.0.1:3260"
[[controller]]
name = "a"
model = "ashlar"
ports = [{ network = "lan", count = 2 }]
[[bus]]
name = "shelf"
kind = "sas-6g-x4"
[[bus]]
name = "board"
kind = "pcie"
[[network]]
name = "lan"
kind = "ethernet"
speed = "25 Gb/s"
[[drive]]
name = "d0"
file = "d0.img"
size = "2 GiB"
model = "sas-10k-600"
bus = "shelf"
[[drive]]
name = "d1"
file = "d1.img"
size = "3 GiB"
model = "sas-10k-600"
bus = "shelf"
[[drive]]
name = "s"
file = "s.img"
size = "2 GiB"
[[pool]]
name = "data"
level = "10"
drives = ["d0", "d1"]
spares = ["s"]
controller = "a"
log = "16 MiB"
[[volume]]
name = "v0"
pool = "data"
size = "100 MiB"
[[volume]]
name = "v1"
pool = "data"
size = "200 MiB"
provisioning = "thick"
[[host]]
name = "esx"
initiators = ["iqn.2026-11.org.example:esx"]
cores = 16
memory = "64 GiB"
[[host]]
name = "spare"
cores = 8
[[export]]
target = "iqn.2026-11.dev.ashlar:web"
volumes = ["v0", "v1"]
hosts = ["esx"]
[[vm]]
name = "WEB"
target = "iqn.2026-11.dev.ashlar:web"
profile = "hetero10"
role = "FS01"
rate_scale = 0.5
[[event]]
at = "1 s"
what = "drive-fails"
drive = "d1"
"#;

fn served(text: &str) -> Site {
    site::parse("t.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn rehearsed(text: &str) -> Plan {
    let described = site::plan::parse("t.toml", text, &[]);
    described.unwrap_or_else(|error| panic!("{error}")).base
}

fn refusals(error: &site::SiteError) -> Vec<String> {
    error.to_string().lines().map(str::to_owned).collect()
}

fn keys(plan: &Plan) -> Vec<&str> {
    plan.assumed.iter().map(|one| one.key.as_str()).collect()
}

#[test]
fn a_file_with_both_is_served_without_what_is_only_modelled() {
    let site = served(BOTH);
    assert_eq!(site.drives.len(), 3);
    let hosts: Vec<&str> = site.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(hosts, ["esx"], "a host without initiators logs in nowhere");
    // What is written is served alike.
    assert_eq!(served(&site::text(&site)), site);
    let both = Purposes {
        served: true,
        modelled: true,
        loaded: true,
    };
    assert_eq!(purposes(BOTH), both);
}

#[test]
fn and_rehearsed_with_its_own_drives_volumes_and_hosts() {
    let plan = rehearsed(BOTH);
    assert_eq!(plan.about.as_deref(), Some("A shop"));
    let [group, spares] = plan.lots.as_slice() else {
        panic!(
            "a lot for the group, and one for the spares: {:?}",
            plan.lots
        )
    };
    assert_eq!(plan.drive_names(), ["d0", "d1", "s"]);
    assert_eq!(
        (group.model.as_str(), group.bus.as_str()),
        ("sas-10k-600", "shelf")
    );
    assert_eq!(group.drive_bytes, Some(2 << 30), "the smallest counts");
    assert_eq!(
        (spares.model.as_str(), spares.bus.as_str()),
        ("nvme-7680", "shelf")
    );
    let pool = &plan.pools[0];
    assert_eq!(pool.controller, "a");
    assert_eq!(pool.log_bytes, Some(16 << 20));
    assert_eq!((pool.groups[0].drives, pool.spares[0].count), (2, 1));
    let group = &plan.vm_groups[0];
    assert_eq!((group.name.as_str(), group.scale), ("WEB", 0.5));
    assert_eq!(group.roles, ["FS01"]);
    assert_eq!(group.hosts, ["esx"], "those that may log in");
    assert_eq!(group.disk_pools, ["data", "data"]);
    assert_eq!(group.disk_bytes, [100 << 20, 200 << 20]);
    let kinds = [Provisioning::Thin, Provisioning::Thick];
    assert_eq!([0, 1].map(|disk| group.provisioning_of(disk)), kinds);
    assert_eq!((plan.hosts[0].cores, plan.hosts[1].cores), (16, 8));
    let assumed = |key: &str, value: &str| Assumption {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    assert_eq!(
        plan.assumed,
        [
            assumed("drive.model", "\"nvme-7680\", for s"),
            assumed("drive.bus", "\"shelf\", for s"),
            assumed("host.clock_ghz", "2.4, for esx, spare"),
            assumed("host.memory", "\"512 GiB\", for spare"),
            assumed("host.ports", "one in network \"lan\", for esx, spare"),
            assumed("vm.filled", "100, for WEB"),
        ]
    );
}

#[test]
fn the_demo_that_is_served_is_rehearsed_on_assumed_hardware() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sites/demo.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let (site, plan) = (served(&text), rehearsed(&text));
    assert_eq!(
        keys(&plan),
        [
            "network",
            "controller",
            "bus",
            "drive.model",
            "host",
            "vm.filled"
        ]
    );
    let drives: Vec<String> = site.drives.iter().map(|drive| drive.name.clone()).collect();
    assert_eq!(plan.drive_names(), drives);
    for (group, vm) in plan.vm_groups.iter().zip(&site.vms) {
        assert_eq!((&group.name, &group.profile), (&vm.name, &vm.profile));
        let export = site.export(&vm.target).unwrap();
        assert_eq!(group.disk_bytes.len(), export.volumes.len(), "{}", vm.name);
    }
    assert_eq!(plan.vm_groups.len(), 10);
    let described = site::plan::Setting::parse("drive.d0.model=sas-10k-600").unwrap();
    let error = site::plan::parse("t.toml", &text, &[described]).unwrap_err();
    assert!(
        error.to_string().contains("drives of several models"),
        "{error}"
    );
}

/// A rehearsal site, with the drives' files and a portal in the place of a lot, is served.
#[test]
fn a_rehearsed_site_is_served_once_its_drives_are_named() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sites/ps6110xv.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let lot =
        "[[drives]]\nname = \"sas\"\nmodel = \"sas-15k-600\"\ncount = 24\nbus = \"backplane\"\n";
    let groups = "groups = [{ level = \"6\", drives = 23, from = \"sas\" }]\nspares = [{ from = \"sas\", count = 1 }]\n";
    assert!(text.contains(lot) && text.contains(groups));
    let names: Vec<String> = (0..24).map(|number| format!("sas-{number:02}")).collect();
    let drive = |name: &String| {
        format!(
            "[[drive]]\nname = \"{name}\"\nfile = \"{name}.img\"\nsize = \"600 GB\"\n\
             model = \"sas-15k-600\"\nbus = \"backplane\"\n"
        )
    };
    let drives: String = names.iter().map(drive).collect();
    let portal = "[[portal]]\naddress = \"127.0.0.1:3260\"\n";
    let (of_group, spare) = names.split_at(23);
    let named = format!("level = \"6\"\ndrives = {of_group:?}\nspares = {spare:?}\n");
    // Variants are of lots.
    let text = text.split("# RAID 10 and RAID 50 keep").next().unwrap();
    let both = text
        .replace(lot, &(portal.to_owned() + &drives))
        .replace(groups, &named);
    let site = served(&both);
    assert_eq!(
        (site.pools[0].groups[0].drives.len(), site.hosts.len()),
        (23, 0)
    );
    let (with_names, with_lot) = (rehearsed(&both), rehearsed(text));
    assert_eq!(with_names.drive_names(), with_lot.drive_names());
    assert_eq!(with_names.assumed, []);
    assert_eq!(with_names.vm_groups.len(), with_lot.vm_groups.len());
    let of_file = |drive: &site::Drive| matches!(drive.source, DriveSource::File { .. });
    assert!(site.drives.len() == 24 && site.drives.iter().all(of_file));
    // And as it was, what it lacks for being served is named.
    let error = site::parse("t.toml", text).unwrap_err();
    let lines = refusals(&error);
    let said = |what: &str| lines.iter().any(|line| line.contains(what));
    assert!(
        said("portal is missing") && said("drive is missing"),
        "{lines:?}"
    );
    assert!(
        said("pool.level is missing") && said("pool.drives is missing"),
        "{lines:?}"
    );
    assert_eq!(lines.len(), 4, "{lines:?}");
}

#[test]
fn a_served_file_without_a_load_says_which_key_names_one() {
    let (before, after) = BOTH.split_once("[[vm]]\n").unwrap();
    let (_, events) = after.split_once("[[event]]").unwrap();
    let text = format!("{before}[[event]]{events}");
    served(&text);
    let error = site::plan::parse("t.toml", &text, &[]).unwrap_err();
    let lines = refusals(&error);
    assert!(
        lines[0].starts_with("t.toml:1: vm_group is missing: give the load"),
        "{lines:?}"
    );
    assert_eq!(lines.len(), 1);
}

#[test]
fn vm_groups_are_the_load_where_there_are_both() {
    let text = format!(
        "{BOTH}[[vm_group]]\nname = \"mix\"\nprofile = \"hetero10\"\nhosts = [\"esx\"]\npools = [\"data\"]\n"
    );
    let plan = rehearsed(&text);
    assert_eq!(plan.vm_groups.len(), 1);
    let said = plan.assumed.iter().find(|one| one.key == "vm").unwrap();
    assert_eq!(said.value, "left out beside [[vm_group]]: WEB");
    served(&text);
}

#[test]
fn a_pool_names_its_drives_or_takes_them_from_lots() {
    let text = BOTH.replace(
        "log = \"16 MiB\"",
        "groups = [{ level = \"5\", drives = 3, from = \"x\" }]",
    );
    for error in [
        site::parse("t.toml", &text).unwrap_err(),
        site::plan::parse("t.toml", &text, &[]).unwrap_err(),
    ] {
        let lines = refusals(&error);
        for found in ["pool.level: found level", "pool.drives: found drives"] {
            let found = format!("{found} beside groups");
            assert!(lines.iter().any(|line| line.contains(&found)), "{lines:?}");
        }
    }
}

#[test]
fn a_host_that_an_export_admits_has_initiators() {
    let text = BOTH.replace("hosts = [\"esx\"]", "hosts = [\"esx\", \"spare\"]");
    let error = site::parse("t.toml", &text).unwrap_err();
    let lines = refusals(&error);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("host.initiators is missing"), "{lines:?}");
}

#[test]
fn a_mistake_in_hardware_is_one_for_who_serves_too() {
    let text = BOTH.replace("speed = \"25 Gb/s\"", "speed = \"25\"");
    let error = site::parse("t.toml", &text).unwrap_err();
    assert!(
        error.to_string().contains("network.speed: found \"25\""),
        "{error}"
    );
}

#[test]
fn spares_out_of_a_lot_are_not_served() {
    let lot = "[[drives]]\nname = \"lot\"\nmodel = \"sas-10k-600\"\ncount = 2\nbus = \"shelf\"\n";
    let text = BOTH.replace(
        "spares = [\"s\"]",
        "spares = [{ from = \"lot\", count = 2 }]",
    );
    let (before, after) = text.split_once("[[drive]]\nname = \"s\"").unwrap();
    let (_, after) = after.split_once("[[pool]]").unwrap();
    let text = format!("{before}{lot}[[pool]]{after}");
    let plan = rehearsed(&text);
    assert_eq!(plan.drive_names(), ["lot-00", "lot-01", "d0", "d1"]);
    let lines = refusals(&site::parse("t.toml", &text).unwrap_err());
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("pool.spares: found spares out of a lot"),
        "{lines:?}"
    );
}

proptest::proptest! {
    #[test]
    fn never_panics_on_a_damaged_file(at in 0..BOTH.len(), len in 0usize..40, junk in ".{0,12}") {
        let mut text = BOTH.to_owned();
        let end = (at + len).min(text.len());
        text.replace_range(at..end, &junk);
        let _ = site::parse("t.toml", &text);
        let _ = site::plan::parse("t.toml", &text, &[]);
        let _ = purposes(&text);
    }
}
