//! A site that is written is the site that is read.

use site::{Site, edited, parse, settings, text};
use std::collections::BTreeMap;
use std::path::Path;

/// Every key of a site file, each with another value than without it. The writer takes tables
/// apart field by field, so a key that it does not know fails its build.
const ALL_KEYS: &str = r#"
[site]
name = "all"
shards = 3
trash = 0
[api]
listen = "unix:/run/x/api.sock"
drive_directories = ["/dev/disk/by-id", "/srv/a \"b\""]
[images]
directories = ["/srv/images"]
[chap]
algorithms = ["SHA-256", "MD5"]
[limits]
sessions = 10
sessions_per_initiator = 4
logins = 9
logins_per_address = 3
login_time = "5 s"
silence = "2 min"
logout_time = "1 s"
data_time = "7 s"
memory = "1 GiB"
[[portal]]
address = "127.0.0.1:3260"
[[portal]]
address = "[::1]:3261"
group = 2
[[drive]]
name = "d0"
file = "d0.img"
size = "1 GiB"
[[drive]]
name = "d1"
file = "/srv/d1.img"
size = "1073745920 B"
[[drive]]
name = "d2"
device = "/dev/sdb"
[[drive]]
name = "d3"
device = "/dev/sdc"
[[drive]]
name = "s"
device = "/dev/sdd"
[[drive]]
name = "e"
device = "/dev/sde"
[[drive]]
name = "f0"
device = "/dev/f0"
[[drive]]
name = "f1"
device = "/dev/f1"
[[drive]]
name = "f2"
device = "/dev/f2"
[[drive]]
name = "f3"
device = "/dev/f3"
[[pool]]
name = "p"
level = "10"
drives = ["d0", "d1"]
spares = ["s"]
stripe_unit = "32 KiB"
page = "1 MiB"
cache = "none"
log = "8 MiB"
lanes = 2
rebuild_rate = "unlimited"
scrub_rate = "5 MiB"
rebuild_hours = 72
scrub_days = "off"
warn_at = 70
alarm_at = 90
background = "full"
[[pool.group]]
level = "10"
drives = ["d2", "d3"]
[[pool]]
name = "q"
level = "simple"
drives = ["e"]
cache = "3 MiB"
[[pool.group]]
level = "5"
stripe_width = 3
distributed_spares = 1
drives = ["f0", "f1", "f2", "f3"]
[[volume]]
name = "v"
pool = "p"
size = "5 GiB"
provisioning = "thin"
description = "says \"so\" – ö"
tags = { "a/b" = "1", vm = "x y" }
detect_zeroes = true
limits = { iops = 500, burst_iops = 2000, bandwidth = "100 MB", burst_bandwidth = "100000001 B", burst = "60 s", io_size = "8 KiB" }
snapshots = [{ every = "1h", keep = 3 }, { every = "1 d", keep = 7 }]
[[volume]]
name = "w"
pool = "q"
size = "512 B"
provisioning = "thin"
limits = { }
[[group]]
name = "g"
volumes = ["v", "w"]
snapshots = [{ every = "30 min", keep = 2 }]
[[host]]
name = "h"
initiators = ["iqn.2026-11.test:a"]
[[host_group]]
name = "hg"
hosts = ["h"]
[[export]]
target = "iqn.2026-11.test:t"
volumes = ["v"]
luns = [7]
initiators = ["iqn.2026-11.test:b"]
hosts = ["h"]
host_groups = ["hg"]
portals = ["127.0.0.1:3260"]
physical_block = "512 B"
sanitize = true
affect_others = true
[[export]]
target = "iqn.2026-11.test:u"
volumes = ["w"]
initiators = "any"
[[vm]]
name = "m"
target = "iqn.2026-11.test:t"
profile = "hetero10"
role = "NET01"
rate_scale = 2
"#;

fn read(text: &str) -> Site {
    parse("t.toml", text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn a_site_with_every_key_comes_back() {
    let site = read(ALL_KEYS);
    assert_eq!(read(&text(&site)), site);
}

#[test]
fn shipped_sites_come_back() {
    for name in ["demo.toml", "conformance.toml"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sites");
        let site = site::load(&path.join(name)).unwrap();
        assert_eq!(read(&text(&site)), site, "{name}");
    }
}

#[test]
fn settings_need_no_pool() {
    let mut site = read(ALL_KEYS).settings();
    assert!(site.volumes.is_empty() && site.exports.is_empty() && site.hosts.is_empty());
    assert_eq!(read(&text(&site)), site);
    site.pools.clear();
    site.drives.clear();
    assert_eq!(read(&text(&site)), site);
}

/// Without its secret, an export would admit more than it did.
#[test]
fn a_site_with_secrets_is_written_so_that_it_has_to_be_completed() {
    let chap = "chap = { name = \"n\", secret = \"twelve-bytes\", mutual_name = \"m\", \
                mutual_secret = \"other-twelve-bytes\" }\ninitiators = \"any\"";
    let with = ALL_KEYS.replace("initiators = \"any\"", chap);
    let written = text(&read(&with));
    assert!(!written.contains("twelve-bytes"), "{written}");
    let error = parse("t.toml", &written).unwrap_err().to_string();
    assert!(error.contains("secret: found"), "{error}");
    assert!(error.contains("the secret itself in its place"), "{error}");
    let completed = written
        .replacen("secret = \"not shown\"", "secret = \"twelve-bytes\"", 1)
        .replacen(
            "secret = \"not shown\"",
            "secret = \"other-twelve-bytes\"",
            1,
        );
    assert_eq!(read(&completed), read(&with));
}

/// One change, of a key in a table.
fn change(
    table: &str,
    key: &str,
    value: Option<&str>,
) -> BTreeMap<String, BTreeMap<String, Option<toml::Value>>> {
    let parse = |text: &str| {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    let value = value.map(parse);
    let keys = BTreeMap::from([(key.to_owned(), value)]);
    BTreeMap::from([(table.to_owned(), keys)])
}

#[test]
fn settings_are_edited_by_the_rules_of_the_file() {
    let site = read(ALL_KEYS);
    let sessions = &settings(&site)["limits"]["sessions"];
    assert_eq!(sessions.as_integer(), Some(10));
    let more = edited(&site, &change("limits", "sessions", Some("20"))).unwrap();
    assert_eq!(more.limits.sessions, 20);
    assert_eq!(more.pools, site.pools);
    let usual = edited(&site, &change("site", "trash", None)).unwrap();
    assert_eq!(usual.trash.as_secs(), 24 * 3600);
    let other = edited(&usual, &change("images", "directories", Some("[\"/a\"]"))).unwrap();
    assert_eq!(other.images.directories, [Path::new("/a")]);
    let none = edited(&other, &change("images", "directories", None)).unwrap();
    assert!(none.images.directories.is_empty());
    for (table, key, value, wrong) in [
        (
            "limits",
            "sessions",
            "0",
            "limits.sessions: found the number 0",
        ),
        ("limits", "session", "3", "limits.session: found"),
        (
            "images",
            "directories",
            "[\"a\"]",
            "images.directories: found \"a\"",
        ),
        (
            "pool",
            "name",
            "3",
            "pool: found a table that holds no settings",
        ),
    ] {
        let error = edited(&site, &change(table, key, Some(value))).unwrap_err();
        assert!(error.to_string().contains(wrong), "{error}");
    }
}
