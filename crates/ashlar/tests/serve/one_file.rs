//! One site file is served and rehearsed: hardware and load in it are nothing to who serves.

use crate::array::{Home, SITE, ashlar};

/// What is modelled of the site, and its load.
const MODELLED: &str = r#"[run]
warmup = "100 ms"
measure = "500 ms"
[[controller]]
name = "node"
model = "ashlar"
ports = [{ network = "lan", count = 2 }]
[[network]]
name = "lan"
kind = "ethernet"
speed = "25 Gb/s"
[[host]]
name = "kvm"
initiators = ["iqn.2026-11.org.example:kvm"]
cores = 16
[[host]]
name = "modelled"
cores = 16
[[vm]]
name = "WEB"
target = "iqn.2026-11.dev.ashlar:a"
profile = "hetero10"
role = "WEB01"
[[event]]
at = "200 ms"
what = "drive-fails"
drive = "d1"
"#;

#[test]
fn a_file_with_hardware_is_served_compared_applied_and_rehearsed() {
    let home = Home::new(&format!("{SITE}{MODELLED}"));
    let serving = home.serve();
    let hosts = serving.json(&["host", "list"]);
    let names: Vec<&str> = hosts
        .as_array()
        .unwrap()
        .iter()
        .map(|host| host["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["kvm"], "{hosts}");
    let file = home.site().display().to_string();
    serving.done(&["site", "diff", &file]);
    serving.apply(&home);
    let shown = serving.run(&["site", "show"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("[[host]]") && !shown.contains("cores"),
        "{shown}"
    );
    let rehearsed = ashlar().args(["rehearse", &file]).output().unwrap();
    let said = String::from_utf8(rehearsed.stdout).unwrap();
    assert!(
        rehearsed.status.success(),
        "{}",
        String::from_utf8_lossy(&rehearsed.stderr)
    );
    assert!(
        said.contains("drive.model: \"nvme-7680\", for d0, d1\n"),
        "{said}"
    );
    let failed = said.split("What happened").nth(1).unwrap_or_default();
    assert!(failed.contains("d1"), "{said}");
}

#[test]
fn a_file_to_rehearse_is_not_served_and_says_what_is_missing() {
    let home = Home::new(MODELLED);
    let (code, said) = home.refused();
    assert_eq!(code, 2, "{said}");
    for missing in ["portal is missing", "drive is missing", "pool is missing"] {
        assert!(said.contains(missing), "{said}");
    }
}
