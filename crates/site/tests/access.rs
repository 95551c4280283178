//! Hosts, groups of hosts, CHAP, portals and limits in a site file: what is read, and what
//! each mistake is answered with. No message has a secret in it.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use site::{CHAP_NAME_RULE, ChapAlgorithm, Initiators, SECRET_RULE, Site, parse};
use std::time::Duration;

/// A right file. Its lines are counted below.
const GOOD: &str = r#"[site]
name = "test"
[chap]
algorithms = ["SHA-256", "MD5"]
discovery = { name = "all", secret = "secret of discovery" }
[limits]
sessions = 10
sessions_per_initiator = 2
logins = 8
logins_per_address = 4
login_time = "20 s"
silence = "10 s"
logout_time = "2 s"
[[portal]]
address = "127.0.0.1:3260"
[[portal]]
address = "[::1]:3260"
group = 2
[[drive]]
name = "d0"
file = "d0.img"
size = "64 MiB"
[[pool]]
name = "pool0"
level = "simple"
drives = ["d0"]
[[volume]]
name = "v0"
pool = "pool0"
size = "16 MiB"
[[volume]]
name = "v1"
pool = "pool0"
size = "16 MiB"
[[host]]
name = "esx1"
initiators = ["iqn.1998-01.com.vmware:esx1", "naa.52004567ba64678d"]
chap = { name = "esx1", secret = "secret of esx1", mutual_name = "lab", mutual_secret = "0x000102030405060708090a0b" }
[[host]]
name = "esx2"
initiators = ["iqn.1998-01.com.vmware:esx2"]
[[host_group]]
name = "cluster"
hosts = ["esx1", "esx2"]
[[export]]
target = "iqn.2026-11.dev.ashlar:a"
volumes = ["v0"]
host_groups = ["cluster"]
chap = { name = "a", secret = "secret of target a" }
portals = ["[::1]:3260"]
physical_block = "512 B"
[[export]]
target = "iqn.2026-11.dev.ashlar:b"
volumes = ["v1"]
hosts = ["esx2"]
initiators = ["iqn.1993-08.org.debian:01:abc"]
"#;

fn good() -> Site {
    parse("t.toml", GOOD).unwrap()
}

/// What is said when `from` is `to`.
fn said(from: &str, to: &str) -> Vec<String> {
    assert_eq!(GOOD.matches(from).count(), 1, "{from:?} is there once");
    let text = GOOD.replace(from, to);
    let error = parse("t.toml", &text).unwrap_err().to_string();
    for secret in ["of esx1", "of target", "of discovery", "0x0001"] {
        assert!(!error.contains(secret), "{error}");
    }
    error.lines().map(str::to_owned).collect()
}

fn one(from: &str, to: &str, expected: &str) {
    assert_eq!(said(from, to), [format!("t.toml:{expected}")], "{to:?}");
}

#[test]
fn all_of_it_is_read() {
    let site = good();
    assert!(site.has_secrets());
    let algorithms = [ChapAlgorithm::Sha256, ChapAlgorithm::Md5];
    assert_eq!(site.chap.algorithms, algorithms);
    let discovery = site.chap.discovery.unwrap();
    assert_eq!(discovery.initiator.secret.bytes(), b"secret of discovery");
    assert_eq!((site.portals[0].group, site.portals[1].group), (1, 2));
    let limits = site.limits;
    assert_eq!((limits.sessions, limits.sessions_per_initiator), (10, 2));
    assert_eq!((limits.logins, limits.logins_per_address), (8, 4));
    assert_eq!(limits.login_time, Duration::from_secs(20));
    assert_eq!(limits.silence, Duration::from_secs(10));
    assert_eq!(limits.logout_time, Duration::from_secs(2));
    let account = site.hosts[0].chap.as_ref().unwrap();
    assert_eq!(account.initiator.name, "esx1");
    let mutual = account.mutual.as_ref().unwrap();
    assert_eq!(
        (mutual.name.as_str(), mutual.secret.bytes()[11]),
        ("lab", 11)
    );
    assert_eq!(site.host_groups[0].hosts, ["esx1", "esx2"]);
    let [first, second] = &site.exports[..] else {
        panic!("{:?}", site.exports)
    };
    assert_eq!(
        first.initiators,
        Initiators::Named(Vec::new()),
        "hosts only"
    );
    assert_eq!(first.portals, ["[::1]:3260".parse().unwrap()]);
    assert_eq!((second.hosts.len(), second.chap.is_none()), (1, true));
    let blocks = [first, second].map(|export| export.physical_block_bytes);
    assert_eq!(blocks, [Some(512), None]);
}

#[test]
fn memory_and_the_time_for_data() {
    let text = GOOD.replace(
        "sessions = 10",
        "sessions = 10\nmemory = \"4 GiB\"\nchecksum_memory = \"64 MiB\"\ndata_time = \"2 m\"",
    );
    let limits = parse("t.toml", &text).unwrap().limits;
    assert_eq!(limits.memory_bytes, Some(4 << 30));
    assert_eq!(limits.checksum_memory_bytes, Some(64 << 20));
    assert_eq!(limits.data_time, Duration::from_secs(120));
    let usual = site::Limits::default();
    assert_eq!(usual.memory_bytes, None, "a quarter of what there is");
    assert_eq!(usual.checksum_memory_bytes, None, "an eighth of it");
    assert_eq!(usual.data_time, Duration::from_secs(30));
}

#[test]
fn without_any_of_it_everything_is_as_usual() {
    let from = GOOD.find("[chap]").unwrap();
    let to = GOOD.find("[[portal]]").unwrap();
    let text = format!("{}{}", &GOOD[..from], &GOOD[to..]);
    let site = parse("t.toml", &text).unwrap();
    assert_eq!(site.chap.algorithms, ChapAlgorithm::ALL);
    assert!(site.chap.discovery.is_none());
    assert_eq!(site.limits, site::Limits::default());
    assert!(site.has_secrets(), "those of hosts");
}

#[test]
fn wrong_accounts() {
    let long = format!("secret = \"{}\"", "s".repeat(256));
    let secret = "secret = \"secret of esx1\"";
    let rule = |key: &str, found: &str| {
        format!("38: host.chap.{key}: found {found}; allowed: {SECRET_RULE}")
    };
    one(
        secret,
        "secret = \"short\"",
        &rule("secret", "text of 5 bytes"),
    );
    one(secret, "secret = 123456789012", &rule("secret", "no text"));
    one(secret, &long, &rule("secret", "text of 256 bytes"));
    one(
        secret,
        "secret = \"0xsecret of esx1\"",
        &rule("secret", "text of 16 bytes"),
    );
    let missing = format!("38: host.chap.secret is missing: give {SECRET_RULE}");
    one(&format!("{secret}, "), "", &missing);
    let name = |key: &str, found: &str| {
        format!("38: host.chap.{key}: found {found}; allowed: {CHAP_NAME_RULE}")
    };
    one(
        "name = \"esx1\", secret",
        "name = \"\", secret",
        &name("name", "\"\""),
    );
    one(
        "name = \"esx1\", secret",
        "secret",
        &format!("38: host.chap.name is missing: give {CHAP_NAME_RULE}"),
    );
    one(
        "mutual_name = \"lab\", ",
        "",
        &format!("38: host.chap.mutual_name is missing: give {CHAP_NAME_RULE}"),
    );
    let mutual = ", mutual_secret = \"0x000102030405060708090a0b\"";
    one(
        mutual,
        "",
        &format!("38: host.chap.mutual_secret is missing: give {SECRET_RULE}"),
    );
    let known = "name, secret, mutual_name, mutual_secret";
    let expected = format!("38: host.chap.users: found a key that isn't known; allowed: {known}");
    one(mutual, &format!("{mutual}, users = 1"), &expected);
}

#[test]
fn a_secret_proves_one_end_only() {
    let mutual = "\"0x000102030405060708090a0b\"";
    let same = "38: host.chap.mutual_secret: found the same as secret; allowed: another secret: \
                who knows it could answer its own challenges";
    one(mutual, "\"secret of esx1\"", same);
    let elsewhere = "38: host.chap.mutual_secret: found a secret that proves an initiator \
                     elsewhere; allowed: one that proves the target only";
    one(mutual, "\"secret of target a\"", elsewhere);
    one(mutual, "\"secret of discovery\"", elsewhere);
    let expected = elsewhere.replace("38: host.chap", "5: chap.discovery");
    let discovery = "secret = \"secret of discovery\"";
    let both = format!("{discovery}, mutual_name = \"x\", mutual_secret = \"secret of esx1\"");
    one(discovery, &both, &expected);
}

#[test]
fn wrong_names_and_lists() {
    one(
        "hosts = [\"esx1\", \"esx2\"]",
        "hosts = [\"esx1\", \"esx3\"]",
        "44: host_group.hosts: found \"esx3\", which no host has; allowed: the name of a host \
         (such as esx1, esx2)",
    );
    one(
        "host_groups = [\"cluster\"]",
        "host_groups = [\"none\"]",
        "48: export.host_groups: found \"none\", which no host_group has; allowed: the name of a \
         host_group (such as cluster)",
    );
    one(
        "hosts = [\"esx2\"]",
        "hosts = [\"cluster\"]",
        "55: export.hosts: found \"cluster\", which no host has; allowed: the name of a host \
         (such as esx1, esx2)",
    );
    one(
        "[\"iqn.1998-01.com.vmware:esx2\"]",
        "[\"naa.52004567ba64678d\"]",
        "41: host.initiators: found \"naa.52004567ba64678d\", which host \"esx1\" has already; \
         allowed: an initiator of no other host",
    );
    one(
        "[[host_group]]\n",
        "[[host]]\nname = \"esx1\"\ninitiators = [\"iqn.1998-01.com.vmware:3\"]\n[[host_group]]\n",
        "43: host.name: found \"esx1\", as on line 36; allowed: one that no other host has",
    );
    one(
        "portals = [\"[::1]:3260\"]",
        "portals = [\"[::1]:3261\"]",
        "50: export.portals: found \"[::1]:3261\", which no portal has; allowed: the address of a \
         portal (such as 127.0.0.1:3260, [::1]:3260)",
    );
    one(
        "portals = [\"[::1]:3260\"]",
        "portals = [\"everywhere\"]",
        "50: export.portals: found \"everywhere\"; allowed: the address of a portal, such as \
         \"127.0.0.1:3260\"",
    );
    for (wrong, found) in [("256 B", "256 B"), ("8 KiB", "8 KiB"), ("1000 B", "1000 B")] {
        one(
            "physical_block = \"512 B\"",
            &format!("physical_block = \"{wrong}\""),
            &format!(
                "51: export.physical_block: found \"{found}\"; allowed: a power of two from \"512 B\" to \"4 KiB\""
            ),
        );
    }
    one(
        "algorithms = [\"SHA-256\", \"MD5\"]",
        "algorithms = [\"SHA-256\", \"MD4\"]",
        "4: chap.algorithms: found \"MD4\"; allowed: \"SHA3-256\", \"SHA-256\", \"SHA-1\" or \"MD5\"",
    );
    one(
        "initiators = [\"iqn.1998-01.com.vmware:esx2\"]",
        "initiators = []",
        "41: host.initiators: found an empty list; allowed: a list, not empty, of: an iSCSI name \
         (iqn., eui. or naa.), in lower case",
    );
}

#[test]
fn wrong_limits_and_portal_groups() {
    one(
        "sessions = 10",
        "sessions = 0",
        "7: limits.sessions: found the number 0; allowed: a whole number from 1 to 16384",
    );
    one(
        "sessions_per_initiator = 2",
        "sessions_per_initiator = 11",
        "8: limits.sessions_per_initiator: found the number 11; allowed: a whole number from 1 to \
         10",
    );
    one(
        "logins_per_address = 4",
        "logins_per_address = 9",
        "10: limits.logins_per_address: found the number 9; allowed: a whole number from 1 to 8",
    );
    one(
        "silence = \"10 s\"",
        "silence = \"2 h\"",
        "12: limits.silence: found \"2 h\"; allowed: a time from \"1 s\" to \"1 h\"",
    );
    let memory = |found: &str| {
        format!(
            "12: limits.memory: found {found}; allowed: {}; from \"128 MiB\" to \"1 PiB\"",
            site::SIZE_RULE
        )
    };
    let after = |said: &str| format!("silence = \"10 s\"\n{said}");
    for (said, found) in [
        ("memory = \"127 MiB\"", "\"127 MiB\""),
        ("memory = \"2 PiB\"", "\"2 PiB\""),
        ("memory = \"a quarter\"", "\"a quarter\""),
        ("memory = 4096", "the number 4096"),
    ] {
        one(
            "silence = \"10 s\"",
            &format!("{said}\nsilence = \"10 s\""),
            &memory(found),
        );
    }
    one(
        "silence = \"10 s\"",
        &after("data_time = \"0 s\""),
        "13: limits.data_time: found \"0 s\"; allowed: a time from \"1 s\" to \"1 h\"",
    );
    one(
        "group = 2",
        "group = 0",
        "18: portal.group: found the number 0; allowed: the tag of a portal group, a whole number \
         from 1 to 65535",
    );
}
