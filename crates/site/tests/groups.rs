//! What the file says of volumes beside their size, and consistency groups: right ones, and
//! every way to be wrong, each with the exact message.
#![allow(clippy::unwrap_used, reason = "tests")]

use site::{SPAN_RULE, Schedule, TAG_RULE, parse};
use std::time::Duration;

/// A right file. Line numbers in the cases below count from its first line.
const GOOD: &str = r#"[site]
name = "test"
[[portal]]
address = "127.0.0.1:3260"
[[drive]]
name = "d0"
file = "d0.img"
size = "64 MiB"
[[pool]]
name = "p0"
level = "simple"
drives = ["d0"]
[[volume]]
name = "a"
pool = "p0"
size = "1 MiB"
description = "system disk"
tags = { vm = "web01", "x/y" = "ä b" }
detect_zeroes = true
snapshots = [{ every = "1h", keep = 24 }, { every = "1 d", keep = 7 }]
[[volume]]
name = "b"
pool = "p0"
size = "1 MiB"
[[volume]]
name = "c"
pool = "p0"
size = "1 MiB"
detect_zeroes = false
[[group]]
name = "db"
volumes = ["b", "c"]
[[group.snapshots]]
every = "15 min"
keep = 4
[[group]]
name = "web"
volumes = [
  "a",
]
"#;

const NAME: &str = "1 to 64 letters, digits, '-', '_' or '.', the first a letter or digit";
const LIST: &str = "a list of schedules, each such as { every = \"1h\", keep = 24 }";

/// What parsing `text` says, one line each.
fn messages(text: &str) -> Vec<String> {
    match parse("t.toml", text) {
        Ok(_) => Vec::new(),
        Err(error) => error.to_string().lines().map(str::to_owned).collect(),
    }
}

#[test]
fn a_right_file_is_taken_whole() {
    let site = parse("t.toml", GOOD).unwrap();
    let schedule = |minutes: u64, keep| Schedule {
        every: Duration::from_secs(minutes * 60),
        keep,
    };
    let [a, b, c] = &site.volumes[..] else {
        panic!("{:?}", site.volumes);
    };
    assert_eq!(a.description.as_deref(), Some("system disk"));
    let tags: Vec<_> = a
        .tags
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(tags, [("vm", "web01"), ("x/y", "ä b")]);
    assert_eq!(a.schedules, [schedule(60, 24), schedule(1440, 7)]);
    let zeroes = [a, b, c].map(|volume| volume.detect_zeroes);
    assert_eq!(zeroes, [Some(true), None, Some(false)]);
    assert_eq!((&b.description, b.tags.len()), (&None, 0));
    assert!(b.schedules.is_empty());
    let [db, web] = &site.groups[..] else {
        panic!("{:?}", site.groups);
    };
    assert_eq!(
        (db.name.as_str(), &db.volumes[..]),
        ("db", &["b".to_owned(), "c".to_owned()][..])
    );
    assert_eq!(
        (&db.schedules[..], &web.schedules[..]),
        (&[schedule(15, 4)][..], &[][..])
    );
    let without = &GOOD[..GOOD.find("[[group]]").unwrap()];
    assert!(parse("t.toml", without).unwrap().groups.is_empty());
}

/// Each replaces something that is there exactly once, and gives one message.
#[test]
fn every_mistake_is_named_with_its_line() {
    let nine = format!(
        "snapshots = [{}]",
        "{ every = \"1h\", keep = 24 }, ".repeat(9)
    );
    let own = "snapshots = [{ every = \"1h\", keep = 24 }, { every = \"1 d\", keep = 7 }]";
    let long = "x".repeat(241);
    let tag = |found: &str| format!("t.toml:18: volume.tags: found {found}; allowed: {TAG_RULE}");
    let keep = "a whole number from 1 to 1000";
    let key = "vm = \"web01\"";
    let tags = "{ vm = \"web01\", \"x/y\" = \"ä b\" }";
    let (db, web) = ("[\"b\", \"c\"]", "  \"a\",\n");
    let cases: &[(&str, String, String)] = &[
        (
            "\"system disk\"",
            "\"two\\nlines\"".to_owned(),
            "t.toml:17: volume.description: found \"two\\nlines\"; allowed: up to 240 bytes on one line".to_owned(),
        ),
        (
            "\"system disk\"",
            format!("{long:?}"),
            format!("t.toml:17: volume.description: found {long:?}; allowed: up to 240 bytes on one line"),
        ),
        (key, "_group = \"db\"".to_owned(), tag("_group = \"db\"")),
        (key, "vm = 1".to_owned(), tag("vm = the number 1")),
        (key, "vm = \"\"".to_owned(), tag("vm = \"\"")),
        (
            tags,
            "[\"vm\"]".to_owned(),
            format!("t.toml:18: volume.tags: found a list; allowed: a table, such as {{ vm = \"web01\" }}: {TAG_RULE}"),
        ),
        (
            "detect_zeroes = true",
            "detect_zeroes = \"on\"".to_owned(),
            "t.toml:19: volume.detect_zeroes: found \"on\"; allowed: true or false".to_owned(),
        ),
        (
            own,
            "snapshots = \"1h\"".to_owned(),
            format!("t.toml:20: volume.snapshots: found \"1h\"; allowed: {LIST}"),
        ),
        (
            own,
            "snapshots = [\"1h\"]".to_owned(),
            format!("t.toml:20: volume.snapshots: found \"1h\"; allowed: {LIST}"),
        ),
        (own, nine, "t.toml:20: volume.snapshots: found 9 schedules; allowed: 8 at most".to_owned()),
        (
            "keep = 7",
            "keep = 1001".to_owned(),
            format!("t.toml:20: volume.snapshots.keep: found the number 1001; allowed: {keep}"),
        ),
        (
            "keep = 4",
            "keep = 0".to_owned(),
            format!("t.toml:35: group.snapshots.keep: found the number 0; allowed: {keep}"),
        ),
        (
            "keep = 4\n",
            String::new(),
            format!("t.toml:33: group.snapshots.keep is missing: give {keep}"),
        ),
        (
            "\"15 min\"",
            "\"0 s\"".to_owned(),
            format!("t.toml:34: group.snapshots.every: found \"0 s\"; allowed: {SPAN_RULE}"),
        ),
        (
            "keep = 4",
            "keep = 4\nfor = 3".to_owned(),
            "t.toml:36: group.snapshots.for: found a key that isn't known; allowed: every, keep".to_owned(),
        ),
        (
            "name = \"db\"",
            "name = \"my db\"".to_owned(),
            format!("t.toml:31: group.name: found \"my db\"; allowed: {NAME}"),
        ),
        (
            "name = \"web\"",
            "name = \"db\"".to_owned(),
            "t.toml:37: group.name: found \"db\", as on line 31; allowed: one that no other group has".to_owned(),
        ),
        (
            db,
            "[]".to_owned(),
            format!("t.toml:32: group.volumes: found an empty list; allowed: a list, not empty, of: a volume's name, {NAME}"),
        ),
        (
            db,
            "[\"b\", \"b\"]".to_owned(),
            "t.toml:32: group.volumes: found \"b\" for the second time; allowed: each once".to_owned(),
        ),
        (
            web,
            "  \"z\",\n".to_owned(),
            "t.toml:39: group.volumes: found \"z\", which no volume has; allowed: the name of a volume (such as a, b, c)".to_owned(),
        ),
        (
            web,
            "  \"c\",\n".to_owned(),
            "t.toml:39: group.volumes: found \"c\", which group \"db\" has already; allowed: a volume of no other group".to_owned(),
        ),
    ];
    for (from, to, expected) in cases {
        assert_eq!(GOOD.matches(from).count(), 1, "{from:?} is there once");
        let text = GOOD.replace(from, to);
        assert_eq!(messages(&text), [expected.as_str()], "{from:?} -> {to:?}");
    }
}

#[test]
fn snapshots_by_schedule_have_room_for_their_names() {
    let rule =
        "of which there are snapshots by schedule; allowed: a name of up to 40 bytes for these";
    let (fits, long) = ("x".repeat(40), "x".repeat(41));
    let called =
        |volume: &str, name: &str| GOOD.replace(&format!("\"{volume}\""), &format!("{name:?}"));
    assert!(messages(&called("a", &fits)).is_empty() && messages(&called("b", &fits)).is_empty());
    let own = format!("t.toml:14: volume.name: found {long:?}, {rule}");
    assert_eq!(messages(&called("a", &long)), [own]);
    let group = format!("t.toml:32: group.volumes: found {long:?}, {rule}");
    assert_eq!(messages(&called("b", &long)), [group]);
    // In a group without schedules any name will do.
    let without = GOOD.replace("[[group.snapshots]]\nevery = \"15 min\"\nkeep = 4\n", "");
    let name = format!("{long:?}");
    assert!(messages(&without.replace("\"b\"", &name)).is_empty());
}

/// What is said of the first volume with these limits, without its file and line.
fn said_of_limits(limits: &str) -> Vec<String> {
    let zeroes = "detect_zeroes = true";
    let text = GOOD.replacen(zeroes, &format!("{zeroes}\nlimits = {limits}"), 1);
    let line = "t.toml:20: volume.limits";
    let stripped = messages(&text).into_iter();
    stripped
        .map(|said| said.strip_prefix(line).unwrap_or(&said).to_owned())
        .collect()
}

#[test]
fn limits_are_read_and_what_is_wrong_of_them_is_named() {
    for right in [
        "{ }",
        "{ iops = 1 }",
        "{ iops = 500, burst_iops = 501, burst = \"1 h\", io_size = \"8 KiB\" }",
        "{ bandwidth = \"128 KiB\" }",
    ] {
        assert!(said_of_limits(right).is_empty(), "{right}");
    }
    let iops = "a whole number from 1 to 100000000";
    for (wrong, said) in [
        (
            "3",
            ": found the number 3; allowed: a table, such as { iops = 500 }".to_owned(),
        ),
        (
            "{ iops = 0, burst_iops = 14, burst = \"9 s\" }",
            format!(".iops: found the number 0; allowed: {iops}"),
        ),
        (
            "{ bandwidth = \"1 KiB\" }",
            ".bandwidth: found \"1 KiB\"; allowed: a size from 128 KiB to 100 GB, such as \"100 MB\""
                .to_owned(),
        ),
        (
            "{ iops = 9, burst_iops = 9, burst = \"9 s\" }",
            ".burst_iops: found the number 9; allowed: more than `iops`, which has to be there".to_owned(),
        ),
        (
            "{ iops = 9, burst_iops = 14 }",
            ".burst is missing: give 1 to 3600 seconds".to_owned(),
        ),
        (
            "{ burst_iops = 14 }",
            ".burst_iops: found the number 14; allowed: more than `iops`, which has to be there".to_owned(),
        ),
        (
            "{ io_size = \"8 KiB\" }",
            ".io_size: found \"8 KiB\"; allowed: only together with iops".to_owned(),
        ),
        (
            "{ iops = 15, io_size = \"8 KiB\" }",
            ".io_size: found \"8 KiB\"; allowed: 131072 or more bytes in all I/Os of a second".to_owned(),
        ),
    ] {
        assert_eq!(said_of_limits(wrong), [said], "{wrong}");
    }
}
