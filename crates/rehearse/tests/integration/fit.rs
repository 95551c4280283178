//! The parts of a plan that do not fit its workloads, with the exact message.

use rehearse::plan::demand::Demand;
use rehearse::plan::fit::{fit, fit_all};
use rehearse::plan::profiles::shipped;
use rehearse::report;

const GOOD: &str = r#"[site]
name = "test"
[[controller]]
name = "a"
model = "ashlar"
ports = [{ network = "san" }]
[[bus]]
name = "shelf"
kind = "sas-6g-x4"
[[drives]]
name = "sas"
model = "sas-10k-600"
count = 24
bus = "shelf"
[[pool]]
name = "data"
controller = "a"
groups = [{ level = "10", drives = 24, from = "sas" }]
[[network]]
name = "san"
kind = "ethernet"
speed = "10 Gb/s"
[[host]]
name = "esx"
cores = 16
clock_ghz = 2.4
memory = "192 GiB"
ports = [{ network = "san" }]
[[vm_group]]
name = "mix"
profile = "hetero10"
hosts = ["esx"]
pools = ["data"]
count = 1
"#;

fn messages(edits: &[(&str, &str)]) -> Vec<String> {
    let mut text = GOOD.to_owned();
    for (from, to) in edits {
        assert_eq!(text.matches(from).count(), 1, "{from:?}");
        text = text.replace(from, to);
    }
    let described = site::plan::parse("t.toml", &text, &[]);
    let plan = described.unwrap_or_else(|error| panic!("{error}")).base;
    fit(&plan, &shipped)
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn says(edits: &[(&str, &str)], expected: &str) {
    let said = messages(edits);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with(expected), "{:?}", said[0]);
}

#[test]
fn the_good_plan_fits() {
    assert_eq!(messages(&[]), [""; 0]);
}

#[test]
fn names_of_models_and_workloads_lead_somewhere() {
    says(
        &[("model = \"sas-10k-600\"", "model = \"sas-20k\"")],
        "10: drives.model: found drive model \"sas-20k\" is not known; allowed: sas-15k-600, sas-15k-300,",
    );
    says(
        &[("kind = \"sas-6g-x4\"", "kind = \"scsi\"")],
        "7: bus.kind: found bus \"scsi\" is not known; allowed: sas-6g-x4",
    );
    says(
        &[("profile = \"hetero10\"", "profile = \"hetero11\"")],
        "29: vm_group.profile: found \"hetero11\", which no profile has; allowed: one of hetero10",
    );
    says(
        &[("count = 1\n", "roles = [\"NET01\", \"NET09\"]\n")],
        "29: vm_group.roles: found \"NET09\", which no VM of hetero10 has; allowed: one of NET01, EXCH01",
    );
}

#[test]
fn disks_have_a_pool_each() {
    let pools = [(
        "pools = [\"data\"]",
        "disk_pools = [\"data\", \"data\"]\nroles = [\"FS01\"]",
    )];
    assert_eq!(messages(&pools), [""; 0]);
    let pools = [(
        "pools = [\"data\"]",
        "disk_pools = [\"data\"]\nroles = [\"FS01\"]",
    )];
    says(
        &pools,
        "29: vm_group.disk_pools: found a list of 1 for the 2 disks of FS01; allowed: a pool for each disk",
    );
}

#[test]
fn names_of_vm_groups_leave_room_for_those_of_volumes_and_snapshots() {
    let named = |bytes: usize| {
        let name = format!("name = \"{}\"\nprofile", "n".repeat(bytes));
        messages(&[("name = \"mix\"\nprofile", name.as_str())])
    };
    assert_eq!(named(47), [""; 0]);
    let said = named(48);
    let name = "n".repeat(48);
    let expected = format!(
        "29: vm_group.name: found a name of 48 bytes, with which a snapshot would be called \
         \"{name}1-LYNC01-1@event0\"; allowed: 47 bytes at most"
    );
    assert_eq!(said, [expected]);
}

#[test]
fn pools_have_room_for_what_is_written() {
    // 12 × 600 GB; the mix has 5.18 TB.
    says(
        &[("count = 1\n", "count = 2\n")],
        "15: pool.groups: found 9.42 TiB of disks in 6.54 TiB; allowed: disks that the pool has room for",
    );
    let thin = [(
        "count = 1\n",
        "count = 2\nprovisioning = \"thin\"\nfilled = 60\n",
    )];
    assert_eq!(messages(&thin), [""; 0]);
}

#[test]
fn no_vm_is_larger_than_its_host() {
    says(
        &[("memory = \"192 GiB\"", "memory = \"40 GiB\"")],
        "29: vm_group.memory: found VM DSS01 with 48 GiB on host \"esx\" with 40 GiB; allowed: no VM larger than its host",
    );
    says(
        &[("count = 1\n", "memory = \"193 GiB\"\n")],
        "29: vm_group.memory: found VM WEB02 with 193 GiB on host \"esx\" with 192 GiB",
    );
}

#[test]
fn a_variant_that_does_not_fit_is_named() {
    let text = format!(
        "{GOOD}[[variant]]\nname = \"twice\"\nset = {{ \"vm_group.mix.count\" = 2 }}\n\
         [[variant]]\nname = \"once\"\nset = {{ \"run.seeds\" = 2 }}\n"
    );
    let described = site::plan::parse("t.toml", &text, &[]);
    let described = described.unwrap_or_else(|error| panic!("{error}"));
    let said: Vec<String> = fit_all(&described, &shipped)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(said.len(), 1, "{said:?}");
    let expected = "35: variant \"twice\": pool.groups: found 9.42 TiB of disks in 6.54 TiB";
    assert!(said[0].starts_with(expected), "{said:?}");
}

/// An array that is served, with a VM.
const SERVED: &str = r#"[site]
name = "served"
[[portal]]
address = "127.0.0.1:3260"
[[drive]]
name = "d0"
file = "d0.img"
size = "64 MiB"
[[pool]]
name = "p"
level = "simple"
drives = ["d0"]
[[volume]]
name = "v"
pool = "p"
size = "16 MiB"
[[export]]
target = "iqn.2026-11.dev.ashlar:a"
volumes = ["v"]
initiators = "any"
[[vm]]
name = "A"
target = "iqn.2026-11.dev.ashlar:a"
profile = "hetero10"
role = "WEB01"
"#;

#[test]
fn what_does_not_fit_of_a_served_file_is_told_with_its_own_keys() {
    let said = |from: &str, to: &str| -> Vec<String> {
        assert!(SERVED.contains(from), "{from}");
        let text = SERVED.replace(from, to);
        site::parse("t.toml", &text).unwrap_or_else(|error| panic!("{error}"));
        let described = site::plan::parse("t.toml", &text, &[]);
        let plan = described.unwrap_or_else(|error| panic!("{error}")).base;
        let found = fit(&plan, &shipped);
        found.iter().map(ToString::to_string).collect()
    };
    assert_eq!(said("WEB01", "WEB01"), [""; 0]);
    for (from, to, expected) in [
        ("WEB01", "WEB99", "21: vm.role: found \"WEB99\""),
        ("hetero10", "hetero11", "21: vm.profile: found \"hetero11\""),
        (
            "\"WEB01\"",
            "\"FS01\"",
            "21: vm.target: found a target of 1 volume for the 2 disks of FS01; allowed: a volume for each disk",
        ),
        (
            "\"16 MiB\"",
            "\"1 TiB\"",
            "9: pool.drives: found 1023.99 GiB of disks in 64 MiB; allowed: disks that the pool has room for",
        ),
    ] {
        let said = said(from, to);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with(expected), "{said:?}");
    }
    // Thin disks that are filled less have room.
    let thin = "role = \"WEB01\"\nfilled = 0\n";
    let text = SERVED
        .replace("role = \"WEB01\"\n", thin)
        .replace("16 MiB", "1 TiB");
    let plan = site::plan::parse("t.toml", &text, &[]).unwrap().base;
    assert_eq!(fit(&plan, &shipped), []);
    assert!(plan.assumed.iter().all(|one| one.key != "vm.filled"));
}

#[test]
fn the_model_of_a_drive_is_told_where_the_drive_names_it() {
    let text = SERVED.replace("\"d0.img\"", "\"d0.img\"\nmodel = \"bogus\"");
    let plan = site::plan::parse("t.toml", &text, &[]).unwrap().base;
    let said = fit(&plan, &shipped);
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!((said[0].line, said[0].key.as_str()), (8, "drive.model"));
}

/// The array has the disks in its pool, and so has the rehearsal.
#[test]
fn a_thick_disk_beside_a_thin_one_takes_its_own_room_only() {
    let more =
        "provisioning = \"thick\"\n[[volume]]\nname = \"w\"\npool = \"p\"\nsize = \"1 TiB\"\n";
    let text = SERVED
        .replace("[[export]]", &format!("{more}[[export]]"))
        .replace("[\"v\"]", "[\"v\", \"w\"]")
        .replace("\"WEB01\"", "\"FS01\"\nfilled = 0");
    site::parse("t.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let plan = site::plan::parse("t.toml", &text, &[]).unwrap().base;
    assert_eq!(fit(&plan, &shipped), []);
    let demand = Demand::of(&plan, &shipped);
    let taken: Vec<u64> = demand.vms[0]
        .disks
        .iter()
        .map(|disk| disk.taken_bytes)
        .collect();
    assert_eq!(taken, [16 << 20, 0]);
}

#[test]
fn a_file_that_is_larger_than_its_model_is_told() {
    let text = SERVED.replace("\"64 MiB\"", "\"20 TiB\"\nmodel = \"sas-10k-600\"");
    let of = |text: &str| site::plan::parse("t.toml", text, &[]).unwrap().base;
    let told = report::assumed(&of(&text));
    let line = told
        .lines()
        .find(|line| line.contains("drive.size"))
        .unwrap();
    assert!(
        line.contains("20 TiB") && line.ends_with("for d0"),
        "{line}"
    );
    assert!(!report::assumed(&of(SERVED)).contains("drive.size"));
}
