//! Loads that a file describes itself, and what a capture says: what is read of them, and what is
//! wrong with them, with line and key.

use site::Diagnostic;
use site::plan::{self, Plan};

const SITE: &str = r#"site = { name = "s" }
[[drive]]
name = "d"
file = "d.img"
size = "1 GiB"
[[pool]]
name = "p"
level = "simple"
drives = ["d"]
[[host]]
name = "h"
cores = 4
[[vm_group]]
name = "g"
profile = "own"
hosts = ["h"]
pools = ["p"]
"#;

const PROFILE: &str = r#"[[profile]]
name = "own"
disk = "1 GiB"
streams = [
  { name = "reads", rate = 12.5, random = 80, hot = 70, active = 40, sizes = ["4 KiB", "64 KiB"], shares = [3, 1] },
  { name = "writes", rate = 3, reads = 0, sizes = ["8 KiB"], outstanding = 2 },
]
"#;

const CAPTURE: &str = r#"[capture]
version = 1
content = "sha256:00000000000000000000000000000000000000000000000000000000000000aF"
ashlar = "0.1.0"
taken_unix_s = 1700000000
duration = "60 s"
[[measured]]
vm_group = "g"
reads_per_s = 12.4
read_mean_ms = 0.5
read_p50_ms = 0.4
read_p95_ms = 0.9
read_p99_ms = 1
"#;

fn plan(text: &str) -> Plan {
    match plan::parse("t.toml", text, &[]) {
        Ok(described) => described.base,
        Err(error) => panic!("{error}"),
    }
}

/// What is wrong with the whole file when this is replaced.
fn wrong(from: &str, to: &str) -> Vec<Diagnostic> {
    let text = format!("{SITE}{PROFILE}{CAPTURE}");
    assert!(text.contains(from), "{from}");
    match plan::parse("t.toml", &text.replacen(from, to, 1), &[]) {
        Ok(_) => Vec::new(),
        Err(error) => error.diagnostics,
    }
}

#[test]
fn a_load_and_a_measurement_are_read_as_they_stand() {
    let plan = plan(&format!("{SITE}{PROFILE}{CAPTURE}"));
    let [own] = plan.profiles.as_slice() else {
        panic!("{:?}", plan.profiles)
    };
    assert_eq!((own.name.as_str(), own.disk_bytes), ("own", 1 << 30));
    let [reads, writes] = own.streams.as_slice() else {
        panic!("{own:?}")
    };
    assert_eq!(reads.sizes, [(4096, 3), (65536, 1)]);
    assert_eq!((reads.per_second, reads.random_percent), (12.5, 80));
    assert_eq!((reads.hot_percent, reads.active_percent), (70, 40));
    assert_eq!((reads.read_percent, reads.outstanding), (100, 64));
    assert_eq!((writes.read_percent, writes.outstanding), (0, 2));
    assert_eq!((writes.hot_percent, writes.active_percent), (50, 100));
    let [measured] = plan.measured.as_slice() else {
        panic!("{:?}", plan.measured)
    };
    assert_eq!((measured.reads.per_s, measured.reads.p95_ms), (12.4, 0.9));
    assert_eq!(measured.writes, plan::MeasuredFlow::default());
    assert_eq!(
        plan.capture.map(|capture| capture.duration.as_secs()),
        Some(60)
    );
}

#[test]
fn what_no_load_can_be_is_told_with_its_line() {
    let one = |number| format!("{{ name = \"s{number}\", rate = 1, sizes = [\"4 KiB\"] }},\n");
    let many: String = (0..64).map(one).collect();
    for (from, to, line, key) in [
        ("rate = 12.5", "rate = 0", 22, "profile.streams.rate"),
        ("rate = 12.5", "rate = 1e-300", 22, "profile.streams.rate"),
        ("rate = 12.5", "rate = 2e6", 22, "profile.streams.rate"),
        (
            "[\"8 KiB\"]",
            &format!("[{}]", "\"8 KiB\", ".repeat(65)),
            23,
            "profile.streams.sizes",
        ),
        (
            "shares = [3, 1]",
            "shares = [4294967295, 4294967295]",
            22,
            "profile.streams.shares",
        ),
        (
            "streams = [\n",
            &format!("streams = [\n{many}"),
            21,
            "profile.streams",
        ),
        ("hot = 70", "hot = 49", 22, "profile.streams.hot"),
        ("active = 40", "active = 0", 22, "profile.streams.active"),
        (
            "shares = [3, 1]",
            "shares = [3]",
            22,
            "profile.streams.shares",
        ),
        (
            "shares = [3, 1]",
            "shares = [999, 2]",
            22,
            "profile.streams.shares",
        ),
        ("\"8 KiB\"", "\"5 KiB\"", 23, "profile.streams.sizes"),
        ("[\"8 KiB\"]", "[]", 23, "profile.streams.sizes"),
        ("\"writes\"", "\"reads\"", 18, "profile.streams"),
        ("outstanding = 2", "depth = 2", 23, "profile.streams.depth"),
    ] {
        let found = wrong(from, to);
        let told = found.iter().any(|one| one.line == line && one.key == key);
        assert!(told, "{to}: {found:?}");
    }
}

#[test]
fn what_no_capture_can_be_is_told_with_its_line() {
    for (from, to, line, key) in [
        ("version = 1", "version = 2", 26, "capture.version"),
        ("sha256:00", "md5:00", 27, "capture.content"),
        ("\"60 s\"", "\"0 s\"", 30, "capture.duration"),
        (
            "read_mean_ms = 0.5",
            "read_mean_ms = -1",
            34,
            "measured.read_mean_ms",
        ),
        (
            "read_p99_ms = 1",
            "read_p99_ms = 0.8",
            37,
            "measured.read_p99_ms",
        ),
        (
            "reads_per_s = 12.4",
            "reads_per_s = nan",
            33,
            "measured.reads_per_s",
        ),
        (
            "vm_group = \"g\"",
            "vm_group = \"x\"",
            31,
            "measured.vm_group",
        ),
        ("duration = \"60 s\"\n", "", 25, "capture.duration"),
        (
            &CAPTURE[CAPTURE.find("[[measured").unwrap_or(0)..],
            "",
            25,
            "measured",
        ),
        (
            "read_p99_ms = 1\n",
            "[[measured]]\nvm_group = \"g\"\n",
            37,
            "measured.vm_group",
        ),
    ] {
        let found = wrong(from, to);
        let told = found.iter().any(|one| one.line == line && one.key == key);
        assert!(told, "{to}: {found:?}");
    }
}

#[test]
fn who_serves_ignores_loads_and_captures() {
    let served = format!(
        "portal = []\n{}{PROFILE}{CAPTURE}",
        SITE.replace("cores = 4", "initiators = [\"iqn.2026-11.org.example:h\"]")
    );
    assert!(site::parse("t.toml", &served).is_ok());
}
