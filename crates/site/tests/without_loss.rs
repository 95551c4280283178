//! What a file says is neither lost nor guessed without a word, whether it is served or rehearsed.

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
