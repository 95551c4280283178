//! Every way a site file can be wrong, each with the exact message.
//!
//! Each case changes one place of a right file; what comes out is compared whole,
//! so a case also shows that one mistake gives one message.

use site::{Background, Level, RateLimit, SPAN_RULE, SiteErrorKind, TimeLimit, parse};
use std::time::Duration;

/// A right file. Line numbers in the cases below count from its first line.
const GOOD: &str = r#"[site]
name = "test"
shards = 2
[api]
listen = "127.0.0.1:0"
[[portal]]
address = "127.0.0.1:3260"
[[drive]]
name = "d0"
file = "d0.img"
size = "64 MiB"
[[drive]]
name = "d1"
file = "d1.img"
size = "64 MiB"
[[drive]]
name = "d2"
device = "/dev/sdx"
[[pool]]
name = "pool0"
level = "10"
drives = ["d0", "d1"]
stripe_unit = "64 KiB"
page = "256 KiB"
[[pool]]
name = "pool1"
level = "simple"
drives = ["d2"]
[[volume]]
name = "v0"
pool = "pool0"
size = "16 MiB"
provisioning = "thick"
[[volume]]
name = "v1"
pool = "pool0"
size = "1 TiB"
[[volume]]
name = "v2"
pool = "pool1"
size = "1 MiB"
[[export]]
target = "iqn.2026-11.dev.ashlar:a"
volumes = ["v0", "v1"]
initiators = "any"
[[export]]
target = "iqn.2026-11.dev.ashlar:b"
volumes = ["v2"]
initiators = ["iqn.1993-08.org.debian:01:abc"]
[[vm]]
name = "A"
target = "iqn.2026-11.dev.ashlar:a"
profile = "hetero10"
role = "NET01"
rate_scale = 0.5
"#;

const NAME: &str = "1 to 64 letters, digits, '-', '_' or '.', the first a letter or digit";
const LEVEL: &str = "\"10\" (mirrored pairs, striped), \"10x3\" (three copies, striped), \"5\" (one parity), \"50\" (RAID 5 sets, striped), \"6\" (two parities) or \"simple\" (one drive, no protection)";
const SIZE: &str = "a number above zero and a unit (KiB, MiB, GiB, TiB, PiB, or K, M, G, T, P for short; decimal kB, MB, GB, TB, PB; or B), such as \"4 GiB\"";
const IQN: &str = "an iSCSI qualified name in lower case, iqn.YYYY-MM.reversed.domain[:name], such as \"iqn.2026-11.dev.ashlar:vm1\", at most 223 bytes";
const DIRECTORY: &str = "an absolute path without \"..\", such as \"/srv/images\"";
const LOOPBACK: &str = "\"unix:\" and an absolute path of at most 107 bytes, such as \"unix:/run/ashlar/api.sock\", or a loopback address and port, such as \"127.0.0.1:7480\" (the API has no users yet, so it is not offered to the network)";
const PORTAL: &str = "an address of this machine and a port, such as \"127.0.0.1:3260\" or \"[::1]:3260\" (not 0.0.0.0: discovery has to name an address)";
const FILE: &str = "a file's path, relative to the data directory or absolute, without \"..\"; names that start with \"ashlar\" are kept for Ashlar's own files";

/// What parsing `text` says, one line each.
fn messages(text: &str) -> Vec<String> {
    match parse("t.toml", text) {
        Ok(_) => Vec::new(),
        Err(error) => {
            assert_eq!(error.kind, SiteErrorKind::Invalid);
            error.to_string().lines().map(str::to_owned).collect()
        }
    }
}

/// Replaces `from`, which is there exactly once, by `to` and compares.
fn case(from: &str, to: &str, expected: &[String]) {
    assert_eq!(GOOD.matches(from).count(), 1, "{from:?} is there once");
    let text = GOOD.replace(from, to);
    assert_eq!(messages(&text), expected, "{from:?} -> {to:?}");
}

macro_rules! cases {
    ($($name:ident: $from:expr => $to:expr, [$($expected:expr),* $(,)?];)*) => {
        $(#[test]
        fn $name() {
            case($from, $to, &[$($expected.to_string()),*]);
        })*
    };
}

#[test]
fn directories_of_images_are_optional() {
    assert!(parse("t.toml", GOOD).unwrap().images.directories.is_empty());
    let text = format!("{GOOD}[images]\ndirectories = [\"/srv/a\", \"/srv/b\"]\n");
    let images = parse("t.toml", &text).unwrap().images;
    assert_eq!(
        images.directories,
        ["/srv/a", "/srv/b"].map(std::path::PathBuf::from)
    );
}

#[test]
fn a_right_file_is_taken_whole() {
    let site = parse("t.toml", GOOD).unwrap();
    assert_eq!(site.shards, Some(2));
    assert_eq!(site.trash, Duration::from_secs(86_400));
    for (text, seconds) in [("0", 0), ("\"90 s\"", 90)] {
        let other = GOOD.replacen("shards = 2", &format!("trash = {text}"), 1);
        let other = parse("t.toml", &other).unwrap();
        assert_eq!(other.trash, Duration::from_secs(seconds));
    }
    assert_eq!(site.portals[0].group, 1);
    assert_eq!(site.volumes[1].size_bytes, 1 << 40);
    assert_eq!(site.volumes[1].provisioning, site::Provisioning::Thin);
    assert_eq!(site.pools[1].page_bytes, 256 << 10);
    assert_eq!(site.vms[0].rate_scale, 0.5);
    assert_eq!(site.exports[0].initiators, site::Initiators::Any);
    assert_eq!(
        site.exports[1].initiators,
        site::Initiators::Named(vec!["iqn.1993-08.org.debian:01:abc".to_owned()])
    );
}

cases! {
    syntax: "shards = 2\n" => "shards = = 2\n",
        ["t.toml:3: syntax: found extra `=`, expected nothing; allowed: TOML 1.1 (toml.io)",
         "t.toml:3: syntax: found unexpected key or value, expected newline, `#`; allowed: TOML 1.1 (toml.io)"];
    key_given_twice: "shards = 2\n" => "shards = 2\nshards = 3\n",
        ["t.toml:4: syntax: found duplicate key; allowed: TOML 1.1 (toml.io)"];
    unknown_key: "shards = 2\n" => "shard = 2\n",
        ["t.toml:3: site.shard: found a key that isn't known; allowed: name, about, shards, trash"];
    unknown_table: "[api]\n" => "[[disk]]\nname = \"x\"\n[api]\n",
        ["t.toml:4: disk: found a key that isn't known; allowed: site, api, images, chap, limits, portal, drive, pool, volume, group, host, host_group, export, vm, run, controller, bus, drives, drive_model, network, vm_group, event, profile, capture, measured, variant, vary"];
    missing_key: "[site]\nname = \"test\"\n" => "[site]\n",
        [format!("t.toml:1: site.name is missing: give {NAME}")];
    wrong_type: "name = \"test\"" => "name = 7",
        [format!("t.toml:2: site.name: found the number 7; allowed: {NAME}")];
    name_alphabet: "name = \"test\"" => "name = \"my site\"",
        [format!("t.toml:2: site.name: found \"my site\"; allowed: {NAME}")];
    shards_zero: "shards = 2" => "shards = 0",
        ["t.toml:3: site.shards: found the number 0; allowed: a whole number from 1 to 64"];
    shards_negative: "shards = 2" => "shards = -1",
        ["t.toml:3: site.shards: found the number -1; allowed: a whole number from 1 to 64"];
    trash_no_span: "shards = 2\n" => "shards = 2\ntrash = \"soon\"\n",
        [format!("t.toml:4: site.trash: found \"soon\"; allowed: 0 (no trash), or {SPAN_RULE}")];
    trash_without_unit: "shards = 2\n" => "shards = 2\ntrash = 24\n",
        [format!("t.toml:4: site.trash: found the number 24; allowed: 0 (no trash), or {SPAN_RULE}")];
    api_not_loopback: "listen = \"127.0.0.1:0\"" => "listen = \"0.0.0.0:7480\"",
        [format!("t.toml:5: api.listen: found \"0.0.0.0:7480\"; allowed: {LOOPBACK}")];
    api_no_port: "listen = \"127.0.0.1:0\"" => "listen = \"127.0.0.1\"",
        [format!("t.toml:5: api.listen: found \"127.0.0.1\"; allowed: {LOOPBACK}")];
    api_where_a_portal_is: "listen = \"127.0.0.1:0\"" => "listen = \"127.0.0.1:3260\"",
        ["t.toml:7: portal.address: found \"127.0.0.1:3260\", where the API listens; allowed: an address other than api.listen"];
    images_relative: "[[portal]]\naddress" => "[images]\ndirectories = [\"a\"]\n[[portal]]\naddress",
        [format!("t.toml:7: images.directories: found \"a\"; allowed: {DIRECTORY}")];
    images_climb: "[[portal]]\naddress" => "[images]\ndirectories = [\"/a/../b\"]\n[[portal]]\naddress",
        [format!("t.toml:7: images.directories: found \"/a/../b\"; allowed: {DIRECTORY}")];
    images_nowhere: "[[portal]]\naddress" => "[images]\n[[portal]]\naddress",
        [format!("t.toml:6: images.directories is missing: give a list of: {DIRECTORY}")];
    portal_unspecified: "address = \"127.0.0.1:3260\"" => "address = \"0.0.0.0:3260\"",
        [format!("t.toml:7: portal.address: found \"0.0.0.0:3260\"; allowed: {PORTAL}")];
    portal_twice: "[[drive]]\nname = \"d0\"" => "[[portal]]\naddress = \"127.0.0.1:3260\"\n[[drive]]\nname = \"d0\"",
        ["t.toml:9: portal.address: found \"127.0.0.1:3260\", as on line 7; allowed: one that no other portal has"];
    portal_tag: "address = \"127.0.0.1:3260\"" => "address = \"127.0.0.1:3260\"\ngroup = 65536",
        ["t.toml:8: portal.group: found the number 65536; allowed: the tag of a portal group, a whole number from 1 to 65535"];
    no_portal: "[[portal]]\naddress = \"127.0.0.1:3260\"\n" => "",
        ["t.toml:1: portal is missing: give one or more tables [[portal]]"];
    portal_as_table: "[[portal]]\naddress" => "[portal]\naddress",
        ["t.toml:6: portal: found a table; allowed: tables [[portal]]"];
    drive_name_twice: "name = \"d1\"" => "name = \"d0\"",
        ["t.toml:13: drive.name: found \"d0\", as on line 9; allowed: one that no other drive has",
         "t.toml:22: pool.drives: found \"d1\", which no drive has; allowed: the name of a drive (such as d0, d2)"];
    drive_file_twice: "file = \"d1.img\"" => "file = \"./d0.img\"",
        ["t.toml:14: drive.file: found \"d0.img\", as on line 10; allowed: a place that no other drive has"];
    drive_file_climbs: "file = \"d1.img\"" => "file = \"../d1.img\"",
        [format!("t.toml:14: drive.file: found \"../d1.img\"; allowed: {FILE}")];
    drive_file_reserved: "file = \"d1.img\"" => "file = \"ashlar-data.json\"",
        [format!("t.toml:14: drive.file: found \"ashlar-data.json\"; allowed: {FILE}")];
    drive_file_empty: "file = \"d1.img\"" => "file = \"\"",
        [format!("t.toml:14: drive.file: found \"\"; allowed: {FILE}")];
    drive_neither: "file = \"d1.img\"\nsize = \"64 MiB\"\n" => "",
        ["t.toml:12: drive: found neither file nor device; allowed: one of the two"];
    drive_both: "device = \"/dev/sdx\"" => "device = \"/dev/sdx\"\nfile = \"d2.img\"",
        ["t.toml:18: drive.device: found a device beside a file; allowed: one of the two"];
    device_relative: "device = \"/dev/sdx\"" => "device = \"sdx\"",
        ["t.toml:18: drive.device: found \"sdx\"; allowed: an absolute path, such as \"/dev/sdb\""];
    device_with_size: "device = \"/dev/sdx\"" => "device = \"/dev/sdx\"\nsize = \"1 GiB\"",
        ["t.toml:19: drive.size: found a size beside a device; allowed: no size: a device has its own"];
    drive_without_size: "file = \"d1.img\"\nsize = \"64 MiB\"" => "file = \"d1.img\"",
        [format!("t.toml:12: drive.size is missing: give {SIZE}; 64 MiB to 1 PiB, a multiple of 4096 bytes")];
    drive_too_small: "file = \"d1.img\"\nsize = \"64 MiB\"" => "file = \"d1.img\"\nsize = \"63 MiB\"",
        [format!("t.toml:15: drive.size: found \"63 MiB\"; allowed: {SIZE}; 64 MiB to 1 PiB, a multiple of 4096 bytes")];
    drive_off_grain: "file = \"d1.img\"\nsize = \"64 MiB\"" => "file = \"d1.img\"\nsize = \"100000001 B\"",
        [format!("t.toml:15: drive.size: found \"100000001 B\"; allowed: {SIZE}; 64 MiB to 1 PiB, a multiple of 4096 bytes; the nearest: \"99999744 B\", \"100003840 B\"")];
    drive_unused: "drives = [\"d2\"]" => "drives = [\"d3\"]",
        ["t.toml:17: drive.name: found \"d2\", which no pool lists; allowed: a drive that a pool lists in drives or spares",
         "t.toml:28: pool.drives: found \"d3\", which no drive has; allowed: the name of a drive (such as d0, d1, d2)"];
    drive_in_two_pools: "drives = [\"d2\"]" => "drives = [\"d1\"]",
        ["t.toml:17: drive.name: found \"d2\", which no pool lists; allowed: a drive that a pool lists in drives or spares",
         "t.toml:28: pool.drives: found \"d1\", which pool \"pool0\" uses already; allowed: a drive of no other pool"];
    drive_twice_in_a_pool: "drives = [\"d0\", \"d1\"]" => "drives = [\"d0\",\n\"d1\",\n\"d1\"]",
        ["t.toml:24: pool.drives: found \"d1\" for the second time; allowed: each once"];
    pool_level_unknown: "level = \"10\"" => "level = \"7\"",
        [format!("t.toml:21: pool.level: found \"7\"; allowed: {LEVEL}")];
    pool_level_as_number: "level = \"10\"" => "level = 10",
        [format!("t.toml:21: pool.level: found the number 10; allowed: {LEVEL}")];
    pool_of_too_few_for_parity: "level = \"10\"" => "level = \"6\"",
        ["t.toml:22: pool.drives: found 2 drives; allowed: 4 to 32 drives for level \"6\""];
    pool_no_sets_of_three: "level = \"10\"" => "level = \"50\"",
        ["t.toml:22: pool.drives: found 2 drives; allowed: 6 to 32 drives that make equal sets of 3 or more for level \"50\" (6, 8, 9, 10, 12, …)"];
    spare_of_its_own_group: "stripe_unit = \"64 KiB\"" => "spares = [\"d1\"]",
        ["t.toml:23: pool.spares: found \"d1\", which this pool lists already; allowed: each drive once"];
    spare_that_is_not_there: "stripe_unit = \"64 KiB\"" => "spares = [\"d7\"]",
        ["t.toml:23: pool.spares: found \"d7\", which no drive has; allowed: the name of a drive (such as d0, d1, d2)"];
    group_of_one: "page = \"256 KiB\"\n" => "[[pool.group]]\ndrives = [\"d7\"]\n",
        ["t.toml:25: pool.group.drives: found \"d7\", which no drive has; allowed: the name of a drive (such as d0, d1, d2)",
         "t.toml:25: pool.group.drives: found 1 drive; allowed: an even number of drives, 2 to 32, for level \"10\""];
    group_with_a_name: "page = \"256 KiB\"\n" => "[[pool.group]]\nname = \"g\"\ndrives = [\"d0\", \"d1\"]\n",
        ["t.toml:25: pool.group.name: found a key that isn't known; allowed: level, role, stripe_width, distributed_spares, drives",
         "t.toml:26: pool.group.drives: found \"d0\", which this pool lists already; allowed: each drive once",
         "t.toml:26: pool.group.drives: found \"d1\", which this pool lists already; allowed: each drive once"];
    cache_as_number: "page = \"256 KiB\"" => "cache = 5",
        [format!("t.toml:24: pool.cache: found the number 5; allowed: \"none\", or {SIZE}, up to \"1 TiB\"")];
    rebuild_hours_none: "page = \"256 KiB\"" => "rebuild_hours = 0",
        ["t.toml:24: pool.rebuild_hours: found the number 0; allowed: \"off\", or a whole number from 1 to 8760, in hours"];
    scrub_days_a_word: "page = \"256 KiB\"" => "scrub_days = \"never\"",
        ["t.toml:24: pool.scrub_days: found \"never\"; allowed: \"off\", or a whole number from 1 to 365, in days"];
    rebuild_rate_too_small: "page = \"256 KiB\"" => "rebuild_rate = \"4 KiB\"",
        [format!("t.toml:24: pool.rebuild_rate: found \"4 KiB\"; allowed: \"unlimited\", or bytes a second: {SIZE}, from \"1 MiB\" to \"1 PiB\"")];
    scrub_rate_as_number: "page = \"256 KiB\"" => "scrub_rate = 7",
        [format!("t.toml:24: pool.scrub_rate: found the number 7; allowed: \"unlimited\", or bytes a second: {SIZE}, from \"1 MiB\" to \"1 PiB\"")];
    background_unknown: "page = \"256 KiB\"" => "background = \"slow\"",
        ["t.toml:24: pool.background: found \"slow\"; allowed: \"yield\" or \"full\""];
    log_too_small: "page = \"256 KiB\"" => "log = \"4 KiB\"",
        ["t.toml:24: pool.log: found \"4 KiB\"; allowed: a size from \"1 MiB\" to \"16 GiB\", a multiple of 4096 bytes"];
    pool_odd: "drives = [\"d0\", \"d1\"]" => "drives = [\"d0\"]",
        ["t.toml:13: drive.name: found \"d1\", which no pool lists; allowed: a drive that a pool lists in drives or spares",
         "t.toml:22: pool.drives: found 1 drive; allowed: an even number of drives, 2 to 32, for level \"10\""];
    pool_simple_of_two: "level = \"10\"" => "level = \"simple\"",
        ["t.toml:22: pool.drives: found 2 drives; allowed: exactly 1 drive for level \"simple\""];
    pool_no_drives: "drives = [\"d2\"]" => "drives = []",
        [format!("t.toml:28: pool.drives: found an empty list; allowed: a list, not empty, of: a drive's name, {NAME}")];
    pool_name_twice: "name = \"pool1\"\nlevel" => "name = \"pool0\"\nlevel",
        ["t.toml:26: pool.name: found \"pool0\", as on line 20; allowed: one that no other pool has",
         "t.toml:40: volume.pool: found \"pool1\", which no pool has; allowed: the name of a pool (such as pool0)"];
    stripe_unit_no_power: "stripe_unit = \"64 KiB\"" => "stripe_unit = \"48 KiB\"",
        ["t.toml:23: pool.stripe_unit: found \"48 KiB\"; allowed: a power of two from \"4 KiB\" to \"1 MiB\""];
    page_too_large: "page = \"256 KiB\"" => "page = \"32 MiB\"",
        ["t.toml:24: pool.page: found \"32 MiB\"; allowed: a power of two from \"4 KiB\" to \"16 MiB\""];
    page_below_stripe_unit: "page = \"256 KiB\"" => "page = \"32 KiB\"",
        ["t.toml:24: pool.page: found a page of 32 KiB, smaller than a stripe unit of 64 KiB; allowed: a page of one or more stripe units"];
    volume_name_twice: "name = \"v1\"" => "name = \"v0\"",
        ["t.toml:35: volume.name: found \"v0\", as on line 30; allowed: one that no other volume has",
         "t.toml:44: export.volumes: found \"v1\", which no volume has; allowed: the name of a volume (such as v0, v2)"];
    volume_of_no_pool: "pool = \"pool1\"" => "pool = \"pool9\"",
        ["t.toml:40: volume.pool: found \"pool9\", which no pool has; allowed: the name of a pool (such as pool0, pool1)"];
    volume_size_zero: "size = \"1 TiB\"" => "size = \"0 GiB\"",
        [format!("t.toml:37: volume.size: found \"0 GiB\"; allowed: {SIZE}; 512 B to 1 PiB, a multiple of 512 bytes")];
    volume_size_negative: "size = \"1 TiB\"" => "size = \"-1 GiB\"",
        [format!("t.toml:37: volume.size: found \"-1 GiB\"; allowed: {SIZE}; 512 B to 1 PiB, a multiple of 512 bytes")];
    volume_size_nan: "size = \"1 TiB\"" => "size = nan",
        [format!("t.toml:37: volume.size: found the number nan; allowed: {SIZE}; 512 B to 1 PiB, a multiple of 512 bytes")];
    volume_size_off_grain: "size = \"1 TiB\"" => "size = \"1 kB\"",
        [format!("t.toml:37: volume.size: found \"1 kB\"; allowed: {SIZE}; 512 B to 1 PiB, a multiple of 512 bytes; the nearest: \"512 B\", \"1024 B\"")];
    volume_size_without_unit: "size = \"1 TiB\"" => "size = 1048576",
        [format!("t.toml:37: volume.size: found the number 1048576; allowed: {SIZE}; 512 B to 1 PiB, a multiple of 512 bytes")];
    volume_provisioning: "provisioning = \"thick\"" => "provisioning = \"lazy\"",
        ["t.toml:33: volume.provisioning: found \"lazy\"; allowed: \"thin\" or \"thick\""];
    thick_beyond_the_drives: "size = \"16 MiB\"" => "size = \"65 MiB\"",
        ["t.toml:32: volume.size: found thick volumes of 65 MiB in pool \"pool0\"; allowed: at most 32.50 MiB, what the pool holds beside copies, parity and metadata"];
    thick_beyond_the_pool: "size = \"16 MiB\"" => "size = \"33 MiB\"",
        ["t.toml:32: volume.size: found thick volumes of 33 MiB in pool \"pool0\"; allowed: at most 32.50 MiB, what the pool holds beside copies, parity and metadata"];
    export_target_name: "volumes = [\"v2\"]\n" => "volumes = [\"v2\"]\ninitiators = \"any\"\n[[export]]\ntarget = \"Iqn.x\"\nvolumes = [\"v2\"]\n",
        [format!("t.toml:51: export.target: found \"Iqn.x\"; allowed: {IQN}"),
         "t.toml:52: export.volumes: found \"v2\", which target \"iqn.2026-11.dev.ashlar:b\" exports already; allowed: a volume of no other export"];
    export_of_no_volume: "volumes = [\"v2\"]" => "volumes = [\"v9\"]",
        ["t.toml:48: export.volumes: found \"v9\", which no volume has; allowed: the name of a volume (such as v0, v1, v2)"];
    export_luns_too_few: "volumes = [\"v0\", \"v1\"]" => "volumes = [\"v0\", \"v1\"]\nluns = [3]",
        ["t.toml:45: export.luns: found 1 LUN; allowed: one for each volume: 2 LUNs"];
    export_luns_twice: "volumes = [\"v0\", \"v1\"]" => "volumes = [\"v0\", \"v1\"]\nluns = [3, 3]",
        ["t.toml:45: export.luns: found 3 for the second time; allowed: each once"];
    export_luns_beyond: "volumes = [\"v0\", \"v1\"]" => "volumes = [\"v0\", \"v1\"]\nluns = [0,\n256]",
        ["t.toml:46: export.luns: found the number 256; allowed: a LUN, a whole number from 0 to 255"];
    export_luns_none: "volumes = [\"v0\", \"v1\"]" => "volumes = [\"v0\", \"v1\"]\nluns = []",
        ["t.toml:45: export.luns: found an empty list; allowed: a list, not empty, of: a LUN, a whole number from 0 to 255"];
    export_target_twice: "target = \"iqn.2026-11.dev.ashlar:b\"" => "target = \"iqn.2026-11.dev.ashlar:a\"",
        ["t.toml:47: export.target: found \"iqn.2026-11.dev.ashlar:a\", as on line 43; allowed: one that no other export has"];
    export_of_nobody: "initiators = [\"iqn.1993-08.org.debian:01:abc\"]\n" => "",
        ["t.toml:46: export.initiators is missing: give who may log in: a list of iSCSI names, or \"any\"; or hosts or host_groups"];
    export_initiator_name: "[\"iqn.1993-08.org.debian:01:abc\"]" => "[\"debian\"]",
        ["t.toml:49: export.initiators: found \"debian\"; allowed: an iSCSI name (iqn., eui. or naa., in lower case); or \"any\" instead of the list"];
    export_initiators_word: "[\"iqn.1993-08.org.debian:01:abc\"]" => "\"all\"",
        ["t.toml:49: export.initiators: found \"all\"; allowed: a list, not empty, of: an iSCSI name (iqn., eui. or naa., in lower case); or \"any\" instead of the list"];
    vm_of_no_export: "name = \"A\"\ntarget = \"iqn.2026-11.dev.ashlar:a\"" => "name = \"A\"\ntarget = \"iqn.2026-11.dev.ashlar:c\"",
        ["t.toml:52: vm.target: found \"iqn.2026-11.dev.ashlar:c\", which no export has; allowed: the name of a target (such as iqn.2026-11.dev.ashlar:a, iqn.2026-11.dev.ashlar:b)"];
    vm_twice: "rate_scale = 0.5\n" => "[[vm]]\nname = \"A\"\ntarget = \"iqn.2026-11.dev.ashlar:a\"\nprofile = \"p\"\nrole = \"r\"\n",
        ["t.toml:56: vm.name: found \"A\", as on line 51; allowed: one that no other vm has",
         "t.toml:57: vm.target: found \"iqn.2026-11.dev.ashlar:a\", as on line 52; allowed: one that no other vm has"];
    vm_rate_nan: "rate_scale = 0.5" => "rate_scale = nan",
        ["t.toml:55: vm.rate_scale: found the number nan; allowed: a number above zero, at most 1000"];
    vm_rate_negative: "rate_scale = 0.5" => "rate_scale = -1",
        ["t.toml:55: vm.rate_scale: found the number -1; allowed: a number above zero, at most 1000"];
    vm_without_profile: "profile = \"hetero10\"\n" => "",
        [format!("t.toml:50: vm.profile is missing: give a name, {NAME}")];
}

#[test]
fn groups_spares_cache_and_log_are_read() {
    let text = GOOD.replace(
        "page = \"256 KiB\"\n",
        "page = \"256 KiB\"\nspares = [\"s0\"]\ncache = \"none\"\nlog = \"8 MiB\"\n\
         rebuild_rate = \"200 MiB\"\nscrub_rate = \"unlimited\"\nbackground = \"full\"\n\
         rebuild_hours = 12\nscrub_days = \"off\"\n\
         [[pool.group]]\nlevel = \"5\"\ndrives = [\"e0\", \"e1\", \"e2\"]\n\
         [[drive]]\nname = \"s0\"\ndevice = \"/dev/s0\"\n\
         [[drive]]\nname = \"e0\"\ndevice = \"/dev/e0\"\n\
         [[drive]]\nname = \"e1\"\ndevice = \"/dev/e1\"\n\
         [[drive]]\nname = \"e2\"\ndevice = \"/dev/e2\"\n",
    );
    let site = parse("t.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let pool = &site.pools[0];
    let groups: Vec<(Level, usize)> = pool
        .groups
        .iter()
        .map(|group| (group.level, group.drives.len()))
        .collect();
    assert_eq!(
        groups,
        [(Level::Raid10 { copies: 2 }, 2), (Level::Raid5, 3)]
    );
    assert_eq!(pool.spares, ["s0"]);
    assert_eq!((pool.cache_bytes, pool.log_bytes), (0, Some(8 << 20)));
    assert_eq!(pool.drives().count(), 6);
    assert_eq!(
        (pool.rebuild_rate, pool.scrub_rate, pool.background),
        (
            Some(RateLimit::BytesPerS(200 << 20)),
            Some(RateLimit::Unlimited),
            Background::Full
        )
    );
    assert_eq!(
        (pool.rebuild_hours, pool.scrub_days),
        (Some(TimeLimit::Of(12)), Some(TimeLimit::Off))
    );
    let plain = &site.pools[1];
    assert_eq!(plain.cache_bytes, 64 << 20);
    assert_eq!(
        (plain.rebuild_rate, plain.scrub_rate, plain.background),
        (None, None, Background::Yield)
    );
}

#[test]
fn all_mistakes_come_at_once_in_the_order_of_lines() {
    let text = GOOD
        .replace("shards = 2", "shards = 0")
        .replace("\"1 TiB\"", "\"much\"");
    let text = text.replace("role = \"NET01\"", "rule = \"NET01\"");
    let lines: Vec<String> = messages(&text)
        .iter()
        .map(|m| m.split(": found").next().unwrap())
        .map(|m| m.split(" is missing").next().unwrap().to_owned())
        .collect();
    assert_eq!(
        lines,
        [
            "t.toml:3: site.shards",
            "t.toml:37: volume.size",
            "t.toml:50: vm.role",
            "t.toml:54: vm.rule"
        ]
    );
}

#[test]
fn too_many_luns_are_refused() {
    let mut text = GOOD.to_owned();
    for index in 0..257 {
        text += &format!("[[volume]]\nname = \"w{index}\"\npool = \"pool0\"\nsize = \"1 MiB\"\n");
    }
    let names: Vec<String> = (0..257).map(|index| format!("\"w{index}\"")).collect();
    text += &format!(
        "[[export]]\ntarget = \"iqn.2026-11.dev.ashlar:w\"\nvolumes = [{}]\ninitiators = \"any\"\n",
        names.join(", ")
    );
    let messages = messages(&text);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(
        messages[0].contains("export.volumes: found 257 volumes; allowed: 1 to 256"),
        "{messages:?}"
    );
}

#[test]
fn an_empty_file_says_what_a_site_needs() {
    assert_eq!(
        messages(""),
        [
            "t.toml:1: site is missing: give a table [site] with a name",
            "t.toml:1: portal is missing: give one or more tables [[portal]]",
            "t.toml:1: drive is missing: give one or more tables [[drive]]",
            "t.toml:1: pool is missing: give one or more tables [[pool]]",
        ]
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = site::load(std::path::Path::new("no/such/site.toml")).unwrap_err();
    assert_eq!(error.kind, SiteErrorKind::Unreadable);
    let message = error.to_string();
    assert!(
        message.starts_with("no/such/site.toml: ") && message.contains("No such file"),
        "{message}"
    );
}

proptest::proptest! {
    #[test]
    fn never_panics_on_a_damaged_file(at in 0..GOOD.len(), len in 0usize..40, junk in ".{0,12}") {
        let mut text = GOOD.to_owned();
        let end = (at + len).min(text.len());
        text.replace_range(at..end, &junk);
        let _ = parse("t.toml", &text);
    }
}
