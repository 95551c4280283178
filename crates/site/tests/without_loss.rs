//! What a file says is neither lost nor guessed without a word, whether it is served or rehearsed.

use site::Provisioning;
use site::plan::{Plan, Setting};

/// A site of lots, to rehearse.
const LOTS: &str = r#"
[site]
name = "lots"
[[drives]]
name = "sas"
model = "sas-10k-600"
count = 6
[[pool]]
name = "p"
groups = [{ level = "5", drives = 5, from = "sas" }]
spares = [{ from = "sas", count = 1 }]
[[vm_group]]
name = "mix"
profile = "hetero10"
hosts = ["host"]
pools = ["p"]
"#;

/// An array that is served, with a VM.
const ARRAY: &str = r#"
[site]
name = "array"
[[portal]]
address = "127.0.0.1:3260"
[[drive]]
name = "d0"
file = "d0.img"
size = "2 GiB"
[[drive]]
name = "d1"
file = "d1.img"
size = "2 GiB"
[[pool]]
name = "p"
level = "10"
drives = ["d0", "d1"]
[[volume]]
name = "v"
pool = "p"
size = "100 MiB"
[[host]]
name = "esx"
initiators = ["iqn.2026-11.org.example:esx"]
[[export]]
target = "iqn.2026-11.dev.ashlar:web"
volumes = ["v"]
hosts = ["esx"]
[[vm]]
name = "WEB"
target = "iqn.2026-11.dev.ashlar:web"
profile = "hetero10"
role = "FS01"
"#;

fn to_rehearse(text: &str) -> Vec<String> {
    match site::plan::parse("t.toml", text, &[]) {
        Ok(_) => Vec::new(),
        Err(error) => error.to_string().lines().map(str::to_owned).collect(),
    }
}

fn to_serve(text: &str) -> Vec<String> {
    match site::parse("t.toml", text) {
        Ok(_) => Vec::new(),
        Err(error) => error.to_string().lines().map(str::to_owned).collect(),
    }
}

fn rehearsed(text: &str) -> Plan {
    let described = site::plan::parse("t.toml", text, &[]);
    described.unwrap_or_else(|error| panic!("{error}")).base
}

#[test]
fn a_list_of_no_pools_drives_or_vms_is_missing_in_a_rehearsal() {
    let text = "pool = []\ndrive = []\nvm_group = []\n[site]\nname = \"x\"\n";
    let told = to_rehearse(text);
    for key in ["pool", "drive", "vm_group"] {
        let missing = format!("{key} is missing");
        assert!(told.iter().any(|line| line.contains(&missing)), "{told:?}");
    }
    assert_eq!(told.len(), 3, "{told:?}");
    let told = to_rehearse("pool = 5\n[site]\nname = \"x\"\n");
    let of_pool = told.iter().filter(|line| line.contains(": pool"));
    assert_eq!(of_pool.count(), 1, "told once: {told:?}");
}

#[test]
fn an_empty_list_of_spares_is_none() {
    let with = "spares = [{ from = \"sas\", count = 1 }]";
    let text = LOTS.replace(with, "spares = []");
    assert_eq!(rehearsed(&text).pools[0].spares, []);
    let set = Setting::parse("pool.p.spares=[]").unwrap();
    let described = site::plan::parse("t.toml", LOTS, &[set]).unwrap();
    assert_eq!(described.base.pools[0].spares, []);
    let variant =
        format!("{LOTS}[[variant]]\nname = \"bare\"\nset = {{ \"pool.p.spares\" = [] }}\n");
    let described = site::plan::parse("t.toml", &variant, &[]).unwrap();
    assert_eq!(described.variants[0].plan.pools[0].spares, []);
    let served = ARRAY.replace("level = \"10\"", "level = \"10\"\nspares = []");
    assert_eq!(to_serve(&served), [""; 0]);
}

#[test]
fn a_secret_in_the_place_of_its_account_is_not_told() {
    let secret = "abcdefghijklmnop";
    for (before, key) in [
        ("name = \"esx\"", "host.chap"),
        ("hosts = [\"esx\"]", "export.chap"),
    ] {
        let text = ARRAY.replace(before, &format!("{before}\nchap = \"{secret}\""));
        for told in [to_serve(&text), to_rehearse(&text)] {
            let told = told.join("\n");
            assert!(
                told.contains(&format!("{key}: found text of 16 bytes")),
                "{told}"
            );
            assert!(!told.contains(secret), "{told}");
        }
    }
    for chap in [
        format!("chap = \"{secret}\"\n"),
        format!("chap.discovery = \"{secret}\"\n"),
    ] {
        let told = to_serve(&(chap + ARRAY)).join("\n");
        assert!(told.contains("found text of 16 bytes"), "{told}");
        assert!(!told.contains(secret), "{told}");
    }
}

#[test]
fn a_group_beside_groups_of_lots_has_a_level_of_its_own() {
    let drive = "[[drive]]\nname = \"d0\"\nfile = \"d0.img\"\nsize = \"2 GiB\"\n";
    let group = "[[pool.group]]\ndrives = [\"d0\"]\n";
    let text = LOTS.replace("[[pool]]", &format!("{drive}[[pool]]"));
    let text = text.replace("[[vm_group]]", &format!("{group}[[vm_group]]"));
    let told = to_rehearse(&text);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("pool.group.level is missing"), "{told:?}");
    let levelled = text.replace(group, &format!("{group}level = \"simple\"\n"));
    assert_eq!(rehearsed(&levelled).pools[0].groups.len(), 2);
    // And its drives are counted.
    let told = to_rehearse(&text.replace(group, &format!("{group}level = \"6\"\n")));
    assert!(
        told[0].contains("pool.group.drives: found 1 drive"),
        "{told:?}"
    );
}

#[test]
fn a_host_with_an_account_has_initiators() {
    let chap = "chap = { name = \"esx\", secret = \"abcdefghijklmnop\" }";
    let host = format!("[[host]]\nname = \"lab\"\ncores = 4\n{chap}\n");
    let told = to_serve(&format!("{ARRAY}{host}"));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("host.initiators is missing"), "{told:?}");
}

#[test]
fn a_rehearsal_asks_for_no_secrets() {
    let chap = "chap = { name = \"esx\", secret = \"not shown\", mutual_name = \"a\", \
                mutual_secret = \"not shown\" }";
    let text = ARRAY.replace("name = \"esx\"", &format!("name = \"esx\"\n{chap}"));
    assert_eq!(to_rehearse(&text), [""; 0]);
    let told = to_serve(&text);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("host.chap.secret: found \"not shown\""),
        "{told:?}"
    );
    // Another mistake in an account is still one.
    let short = text.replace(
        "secret = \"not shown\", mutual_name",
        "secret = \"short\", mutual_name",
    );
    assert_eq!(to_rehearse(&short).len(), 1);
}

#[test]
fn a_drive_that_no_pool_lists_is_told_beside_a_pool_of_lots() {
    let drive = "[[drive]]\nname = \"d0\"\nfile = \"d0.img\"\nsize = \"2 GiB\"\n";
    let told = to_rehearse(&LOTS.replace("[[pool]]", &format!("{drive}[[pool]]")));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("9: drive.name: found \"d0\", which no pool lists"),
        "{told:?}"
    );
}

#[test]
fn a_drive_is_not_called_like_one_of_a_lot() {
    let text = |name: &str| {
        let drive = format!("[[drive]]\nname = \"{name}\"\nfile = \"d.img\"\nsize = \"2 GiB\"\n");
        let group = format!("[[pool.group]]\nlevel = \"simple\"\ndrives = [\"{name}\"]\n");
        LOTS.replace("[[pool]]", &format!("{drive}[[pool]]"))
            .replace("[[vm_group]]", &format!("{group}[[vm_group]]"))
    };
    let told = to_rehearse(&text("sas-05"));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("9: drive.name: found \"sas-05\", as a drive of lot \"sas\""),
        "{told:?}"
    );
    for free in ["sas-06", "sas-5", "sas"] {
        assert_eq!(to_rehearse(&text(free)), [""; 0], "{free}");
    }
}

#[test]
fn a_bus_is_told_where_its_drive_names_it() {
    let text = ARRAY.replace("d1.img\"", "d1.img\"\nbus = \"nobus\"");
    let told = to_rehearse(&text);
    let line = text
        .lines()
        .position(|line| line.starts_with("bus ="))
        .unwrap()
        + 1;
    let at = format!("t.toml:{line}: drive.bus: found \"nobus\"");
    assert!(told[0].starts_with(&at), "{told:?}");
}

#[test]
fn buses_are_assumed_of_lots_and_of_drives_apart() {
    let buses =
        "[[bus]]\nname = \"b1\"\nkind = \"pcie\"\n[[bus]]\nname = \"b2\"\nkind = \"pcie\"\n";
    let assumed = |text: &str| {
        let plan = rehearsed(&text.replace("[[pool]]", &format!("{buses}[[pool]]")));
        let all = plan.assumed.iter().filter(|one| one.key.ends_with(".bus"));
        all.map(|one| format!("{}: {}", one.key, one.value))
            .collect::<Vec<_>>()
    };
    assert_eq!(assumed(LOTS), ["drives.bus: \"b1\", for sas"]);
    assert_eq!(assumed(ARRAY), ["drive.bus: \"b1\", for d0, d1"]);
}

#[test]
fn a_vm_runs_on_hosts_that_may_log_in() {
    let more = "[[host]]\nname = \"kvm\"\ninitiators = [\"iqn.2026-11.org.example:kvm\"]\n";
    let text = |who: &str| ARRAY.replace("hosts = [\"esx\"]", who) + more;
    let hosts = |who: &str| rehearsed(&text(who)).vm_groups[0].hosts.clone();
    assert_eq!(hosts("hosts = [\"esx\"]"), ["esx"]);
    let kvm = "initiators = [\"iqn.2026-11.org.example:kvm\"]";
    assert_eq!(hosts(kvm), ["kvm"], "its initiator");
    assert_eq!(hosts(&format!("{kvm}\nhosts = [\"esx\"]")), ["esx", "kvm"]);
    assert_eq!(hosts("initiators = \"any\""), ["esx", "kvm"]);
    let assumed = |who: &str| {
        let plan = rehearsed(&text(who));
        plan.assumed
            .iter()
            .any(|one| one.key == "host.initiators" && one.value.contains("WEB"))
    };
    let nobody = "initiators = [\"iqn.2026-11.org.example:nobody\"]";
    assert_eq!(hosts(nobody), ["esx", "kvm"]);
    assert!(assumed(nobody) && !assumed(kvm) && !assumed("initiators = \"any\""));
}

#[test]
fn each_disk_of_a_vm_takes_space_as_its_volume() {
    let volume = "[[volume]]\nname = \"w\"\npool = \"p\"\nsize = \"1 TiB\"\n";
    let text = ARRAY
        .replace(
            "[[host]]",
            &format!("provisioning = \"thick\"\n{volume}[[host]]"),
        )
        .replace("volumes = [\"v\"]", "volumes = [\"v\", \"w\"]");
    let plan = rehearsed(&text);
    let group = &plan.vm_groups[0];
    let each = [group.provisioning_of(0), group.provisioning_of(1)];
    assert_eq!(each, [Provisioning::Thick, Provisioning::Thin]);
    assert!(
        plan.assumed.iter().any(|one| one.key == "vm.filled"),
        "of the thin disk"
    );
}

#[test]
fn a_host_without_ports_has_one_where_the_controller_has_storage() {
    let network = |name: &str, carries: &str| {
        format!(
            "[[network]]\nname = \"{name}\"\nkind = \"ethernet\"\nspeed = \"10 Gb/s\"\ncarries = \"{carries}\"\n"
        )
    };
    let controller = "[[controller]]\nname = \"a\"\nmodel = \"ashlar\"\nports = [{ network = \"lan\" }, { network = \"san\" }]\n";
    let text = format!(
        "{ARRAY}{}{}{controller}",
        network("lan", "lan"),
        network("san", "storage")
    );
    assert_eq!(rehearsed(&text).hosts[0].ports[0].network, "san");
}
