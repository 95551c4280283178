//! `docs/reference/plans.md` tells every key that a plan may have.

use std::collections::BTreeSet;

/// Each table of a plan with a key that none has; what is read then says which there are.
const PLAN: &str = r#"
[site]
x = 1
[run]
x = 1
[[controller]]
x = 1
ports = [{ x = 1 }]
[[bus]]
x = 1
[[drives]]
x = 1
[[pool]]
x = 1
groups = [{ x = 1 }]
spares = [{ x = 1 }]
[[network]]
x = 1
uplink = { x = 1 }
[[host]]
x = 1
ports = [{ x = 1 }]
[[vm_group]]
x = 1
"#;

const EVENTS: [&str; 14] = [
    "drive-fails",
    "host-fails",
    "controller-fails",
    "link-down",
    "link-up",
    "snapshot",
    "restore",
    "clone",
    "move-storage",
    "boot-storm",
    "drain",
    "live-migration",
    "limit-iops",
    "add-cpu",
];

/// Keys of all tables, by the messages that name them.
fn keys() -> BTreeSet<String> {
    let mut text = format!("x = 1\n{PLAN}");
    for what in EVENTS {
        text += &format!("[[event]]\nx = 1\nwhat = \"{what}\"\n");
    }
    let Err(error) = site::plan::parse("t.toml", &text, &[]) else {
        panic!("nothing is called x")
    };
    let unknown = error
        .diagnostics
        .iter()
        .filter(|one| one.found == "a key that isn't known");
    let keys: Vec<&str> = unknown.flat_map(|one| one.allowed.split(", ")).collect();
    keys.into_iter().map(str::to_owned).collect()
}

#[test]
fn the_documentation_has_every_key() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/plans.md");
    let text = std::fs::read_to_string(path).unwrap();
    let keys = keys();
    assert!(keys.len() > 60, "{keys:?}");
    let told = |key: &&String| {
        let forms = [
            format!("`{key}`"),
            format!("[{key}]"),
            format!(" {key},"),
            format!(" {key} }}"),
        ];
        forms.iter().any(|form| text.contains(form))
    };
    let missing: Vec<&String> = keys.iter().filter(|key| !told(key)).collect();
    assert_eq!(missing, [""; 0]);
    for what in EVENTS {
        assert!(text.contains(&format!("`{what}`")), "{what}");
    }
}
