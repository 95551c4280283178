//! `docs/reference/plans.md` tells every event with its keys. The other keys are in
//! `docs/reference/site-file.md`, which is generated.

use std::collections::BTreeSet;

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

/// Keys of all events, by the messages that name them.
fn keys() -> BTreeSet<String> {
    let mut text = String::new();
    for what in EVENTS {
        text += &format!("[[event]]\nx = 1\nwhat = \"{what}\"\n");
    }
    let Err(error) = site::plan::parse("t.toml", &text, &[]) else {
        panic!("nothing is called x")
    };
    let unknown = error.diagnostics.iter().filter(|one| one.key == "event.x");
    let keys: Vec<&str> = unknown.flat_map(|one| one.allowed.split(", ")).collect();
    keys.into_iter().map(str::to_owned).collect()
}

#[test]
fn the_documentation_has_every_key_of_events() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/plans.md");
    let text = std::fs::read_to_string(path).unwrap();
    let keys = keys();
    assert!(keys.len() > 20, "{keys:?}");
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
