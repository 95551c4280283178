//! A pool is found by its drives' labels; it comes up without those that it can do
//! without, and says so; what isn't right is refused by name, and no drive is ever made
//! anew in the place of a lost one.

use crate::array::{Home, SITE, add_spare, make_private};
use std::fs;

/// Refused, with exit code 1, and all of this said.
fn assert_refused(home: &Home, parts: &[&str]) {
    let before = home.listing();
    let (code, said) = home.refused();
    assert_eq!(code, 1, "{said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
    assert_eq!(home.listing(), before, "nothing is made or removed");
}

#[test]
fn names_and_order_do_not_matter() {
    let home = Home::new(SITE);
    let first = home.serve();
    let uuid = first.json(&["volume", "show", "v0"])["uuid"].clone();
    drop(first);
    fs::rename(home.file("d0.img"), home.file("left.img")).unwrap();
    fs::rename(home.file("d1.img"), home.file("right.img")).unwrap();
    let site = SITE
        .replace("d0.img", "right.img")
        .replace("d1.img", "left.img");
    let site = site
        .replace("\"d0\"", "\"one\"")
        .replace("\"d1\"", "\"two\"");
    home.set_site(&site.replace("[\"one\", \"two\"]", "[\"two\", \"one\"]"));
    let serving = home.serve();
    let status = serving.json(&["status"]);
    assert_eq!(
        status["closed_pools"][0]["name"], "p0",
        "nobody has said where it is"
    );
    serving.apply(&home);
    serving.wait(&["pool", "list"], |pools| pools[0]["name"] == "p0");
    assert_eq!(serving.json(&["volume", "show", "v0"])["uuid"], uuid);
    assert_eq!(
        serving.json(&["drive", "show", "two"])["place"],
        0,
        "left.img is still the first"
    );
}

/// Serves with one of the two drives; says why in its log and in an event.
fn assert_degraded(home: &Home, log: &str, event: &str) {
    let before = home.listing();
    let serving = home.serve();
    assert_eq!(serving.json(&["status"])["health"], "degraded");
    let status = serving.run(&["status"]);
    assert_eq!(status.status.code(), Some(7));
    let text = String::from_utf8(status.stdout).unwrap();
    assert!(text.contains("`ashlar drive replace d1`"), "{text}");
    assert_eq!(serving.json(&["drive", "show", "d0"])["state"], "healthy");
    assert_eq!(serving.json(&["drive", "show", "d1"])["state"], "failed");
    let events = serving.json(&["events"]);
    let texts: Vec<&str> = events
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["kind"] == "drive_missing" && event["before_start"] == false)
        .filter_map(|event| event["text"].as_str())
        .collect();
    assert!(texts.iter().any(|text| text.contains(event)), "{texts:?}");
    drop(serving);
    let said = home.log();
    assert!(said.contains(log), "{log:?} is not in: {said}");
    // But the record that there is a configuration.
    let mut after = home.listing();
    after.retain(|(name, _)| name != "ashlar-data.json" || before.iter().any(|b| b.0 == *name));
    assert_eq!(after, before, "nothing is made or removed");
}

#[test]
fn a_missing_drive_is_named_and_not_made_anew() {
    let home = Home::new(SITE);
    drop(home.serve());
    fs::rename(home.file("d1.img"), home.file("away")).unwrap();
    let log = "d1.img is not there";
    assert_degraded(&home, log, "drive 'd1'");
    // Without the record, the other drive's label tells as much.
    fs::remove_file(home.file("ashlar-data.json")).unwrap();
    assert_degraded(&home, log, "drive 'd1'");
    // It was away while the pool was in use: it stays out of use until it is rebuilt.
    fs::rename(home.file("away"), home.file("d1.img")).unwrap();
    let serving = home.serve();
    assert_eq!(serving.json(&["drive", "show", "d1"])["state"], "failed");
    serving.done(&["drive", "replace", "--yes", "d1"]);
    serving.wait_healthy();
    drop(serving);
    assert_eq!(home.serve().json(&["status"])["health"], "ok");
}

#[test]
fn a_wiped_drive_is_named_and_replaced_in_its_place() {
    let home = Home::new(SITE);
    drop(home.serve());
    fs::remove_file(home.file("d1.img")).unwrap();
    let file = fs::File::create(home.file("d1.img")).unwrap();
    file.set_len(64 << 20).unwrap();
    let log = "d1.img has no label";
    assert_degraded(&home, log, "drive 'd1'");
    let serving = home.serve();
    serving.done(&["drive", "replace", "--yes", "d1"]);
    serving.wait_healthy();
}

#[test]
fn a_drive_of_garbage_is_named() {
    let home = Home::new(SITE);
    drop(home.serve());
    fs::write(home.file("d1.img"), vec![0xa5; 64 << 20]).unwrap();
    assert_degraded(&home, "d1.img has no label", "drive 'd1'");
}

#[test]
fn a_truncated_drive_is_too_small() {
    let home = Home::new(SITE);
    drop(home.serve());
    fs::File::options()
        .write(true)
        .open(home.file("d1.img"))
        .unwrap()
        .set_len(32 << 20)
        .unwrap();
    let log = "d1.img: too small";
    assert_degraded(&home, log, "it was cut short");
}

#[test]
fn an_emptied_drive_is_named() {
    let home = Home::new(SITE);
    drop(home.serve());
    fs::write(home.file("d1.img"), b"").unwrap();
    let log = "d1.img: can't be a drive";
    assert_degraded(&home, log, "drive 'd1'");
}

#[test]
fn a_drive_that_is_too_large_is_used_and_named() {
    let home = Home::new(SITE);
    drop(home.serve());
    let file = fs::File::options().write(true).open(home.file("d1.img"));
    file.unwrap().set_len(128 << 20).unwrap();
    assert_eq!(home.serve().json(&["status"])["health"], "ok");
    let is_named = home.has_logged("WARN", &["d1.img", "128 MiB"]);
    assert!(is_named, "{}", home.log());
}

#[test]
fn a_drive_of_another_array_is_named_and_never_used() {
    let (home, other) = (Home::new(SITE), Home::new(SITE));
    drop(home.serve());
    drop(other.serve());
    fs::copy(other.file("d1.img"), home.file("d1.img")).unwrap();
    let before = fs::read(home.file("d1.img")).unwrap();
    let log = "of another pool called p0";
    assert_degraded(&home, log, "drive 'd1'");
    // Where no record tells which of the two is the right one, it is none of them.
    fs::remove_file(home.file("ashlar-data.json")).unwrap();
    let serving = home.serve();
    let closed = &serving.json(&["status"])["closed_pools"][0];
    assert_eq!(closed["name"], "p0", "{closed}");
    assert!(
        closed.to_string().contains("belongs to pool 'p0'"),
        "{closed}"
    );
    drop(serving);
    assert!(fs::read(home.file("d1.img")).unwrap() == before);
}

#[test]
fn a_stale_copy_of_a_drive_is_named() {
    let home = Home::new(SITE);
    drop(home.serve());
    fs::copy(home.file("d1.img"), home.file("old")).unwrap();
    let later = home.serve();
    later.done(&[
        "volume", "create", "later", "--pool", "p0", "--size", "1 MiB",
    ]);
    drop(later);
    fs::copy(home.file("old"), home.file("d1.img")).unwrap();
    let serving = home.serve();
    let events = serving.events_of("drive_missing");
    let is_named = |text: &String| text.contains("'d1'") && text.contains("old state");
    assert!(events.iter().any(is_named), "{events:?}");
    let later = serving.json(&["volume", "show", "later"]);
    assert_eq!(later["size_bytes"], 1 << 20, "nothing of it is believed");
    assert_eq!(serving.json(&["status"])["health"], "degraded");
}

#[test]
fn a_spare_stands_in_and_a_drive_is_replaced_by_another() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.add_spare("s0", "s0.img");
    assert_eq!(serving.json(&["drive", "show", "s0"])["state"], "spare");
    serving.done(&["drive", "fail", "--yes", "d1"]);
    serving.wait_healthy();
    let drives = serving.json(&["pool", "show", "p0"])["drives"].clone();
    assert_eq!(drives, serde_json::json!(["d0", "s0"]));
    let args = [
        "drive", "replace", "--yes", "d0", "--with", "d2", "--file", "d2.img",
    ];
    let said = serving.json(&args);
    assert_eq!(said["is_copied"], true, "{said}");
    let drives = serde_json::json!(["d2", "s0"]);
    serving.wait(&["pool", "show", "p0"], |pool| pool["drives"] == drives);
    serving.wait_healthy();
    let (kind, said) = serving.refusal(&["drive", "fail", "--yes", "nobody"]);
    assert_eq!(kind, "not_found", "{said}");
    assert!(said.contains("nobody"), "{said}");
    drop(serving);
    // Both are on record, and what they replaced is not missed.
    let serving = home.serve();
    serving.done(&["drive", "remove", "d1", "--yes"]);
    assert_eq!(serving.json(&["status"])["health"], "ok");
    serving.done(&["drive", "fail", "--yes", "s0"]);
    let (kind, said) = serving.refusal(&["drive", "fail", "--yes", "d2"]);
    assert_eq!(kind, "invalid", "{said}");
    assert!(said.contains("without drive 'd2'"), "{said}");
}

#[test]
fn a_drive_that_has_just_failed_comes_back_at_once() {
    let home = Home::new(SITE);
    let serving = home.serve();
    // Nobody stands in: the old handle is still open.
    serving.done(&["drive", "fail", "--yes", "d1"]);
    let text = serving.run(&["pool", "show", "p0"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("failed    d1\n"), "{text}");
    let event = " UTC  drive 'd1' was taken out";
    assert!(text.contains(event), "{text}");
    serving.add_spare("d1", "d1.img");
    serving.wait_healthy();
    // Somebody does: it is closed in a moment.
    serving.add_spare("s0", "s0.img");
    let table = serving.run(&["drive", "list"]);
    let table = String::from_utf8(table.stdout).unwrap();
    let line = table.lines().find(|line| line.starts_with("s0")).unwrap();
    assert!(line.contains("  spare  spare  "), "{table}");
    assert!(!table.contains("65535"), "{table}");
    for _ in 0..3 {
        serving.done(&["drive", "fail", "--yes", "d1"]);
        serving.add_spare("d1", "d1.img");
        serving.wait_healthy();
        serving.done(&["drive", "fail", "--yes", "s0"]);
        serving.add_spare("s0", "s0.img");
        serving.wait_healthy();
    }
    let drives = serving.json(&["pool", "show", "p0"])["drives"].clone();
    assert_eq!(drives, serde_json::json!(["d0", "d1"]));
    // One that is in use is none to add, under whatever name.
    for (name, kind) in [("d0", "exists"), ("x", "busy")] {
        let (found, said) = serving.refusal(&add_spare(name, "d0.img"));
        assert_eq!(found, kind, "{said}");
        assert!(said.contains("drive d0"), "{said}");
    }
}

#[test]
fn a_spare_that_nobody_needs_is_let_go() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.add_spare("s0", "s0.img");
    // Another in its place, by itself and by another.
    let spares = || serving.json(&["pool", "show", "p0"])["spares"].clone();
    serving.done(&["drive", "replace", "--yes", "s0"]);
    assert_eq!(spares(), serde_json::json!(["s0"]));
    let args = [
        "drive", "replace", "--yes", "s0", "--with", "s1", "--file", "s1.img",
    ];
    serving.done(&args);
    assert_eq!(spares(), serde_json::json!(["s1"]));
    let args = [
        "drive", "replace", "--yes", "s1", "--with", "s0", "--file", "s0.img",
    ];
    serving.done(&args);
    assert_eq!(spares(), serde_json::json!(["s0"]));
    serving.done(&["drive", "fail", "--yes", "s0"]);
    assert_eq!(
        serving.json(&["drive", "list"]).as_array().unwrap().len(),
        2
    );
    let events = serving.events_of("drive_failed");
    let is_told = |text: &String| text.contains("'s0'") && text.contains("by command");
    assert!(events.iter().any(is_told), "{events:?}");
    // Its file is free, for any name.
    serving.add_spare("x", "s0.img");
    serving.done(&["drive", "fail", "--yes", "x"]);
    serving.stop("KILL");
    let serving = home.serve();
    assert!(serving.events(false).is_empty(), "nothing is missed");
    let record = fs::read_to_string(home.file("ashlar-drives.json")).unwrap();
    assert!(!record.contains("s0.img"), "{record}");
}

#[test]
fn drives_come_back_to_their_own_places() {
    let site = SITE.replace("[\"d0\", \"d1\"]", "[\"d0\", \"d1\", \"d2\", \"d3\"]");
    let more = |n| format!("[[drive]]\nname = \"d{n}\"\nfile = \"d{n}.img\"\nsize = \"64 MiB\"\n");
    let site = site.replace("level = \"10\"", "level = \"6\"") + &more(2) + &more(3);
    let home = Home::new(&site);
    let serving = home.serve();
    serving.done(&["drive", "fail", "--yes", "d0"]);
    serving.done(&["drive", "replace", "--yes", "d1"]);
    let drives = || serving.json(&["pool", "show", "p0"])["drives"].clone();
    assert_eq!(drives(), serde_json::json!(["d0", "d1", "d2", "d3"]));
    assert_eq!(serving.json(&["drive", "show", "d0"])["state"], "failed");
    serving.done(&["drive", "replace", "--yes", "d0"]);
    serving.wait_healthy();
    assert_eq!(drives(), serde_json::json!(["d0", "d1", "d2", "d3"]));
}

#[test]
fn a_scrub_runs_and_tells() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["pool", "scrub", "p0"]);
    let show = ["pool", "show", "p0"];
    let last = serving.wait(&show, |pool| pool["scrubs"] == 1)["last_scrub"].clone();
    assert_eq!(
        (&last["mended_blocks"], &last["lost_blocks"]),
        (&0.into(), &0.into())
    );
    let events = serving.events_of("scrub");
    assert_eq!(events.len(), 2, "it begins and ends: {events:?}");
    let text = String::from_utf8(serving.run(&show).stdout).unwrap();
    let of_scrubs = text.lines().find(|line| line.starts_with("scrub "));
    let of_scrubs = of_scrubs.unwrap();
    assert!(of_scrubs.contains("the last ended "), "{text}");
    assert!(of_scrubs.ends_with(": nothing was wrong"), "{text}");
    assert!(text.lines().count() <= 14, "{text}");
    let all = serving.run(&["pool", "show", "p0", "--verbose"]);
    let all = String::from_utf8(all.stdout).unwrap();
    for line in text.lines().filter(|line| !line.starts_with("scrub ")) {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            all.lines().any(|other| words(other) == words(line)),
            "{line}: {all}"
        );
    }
    assert!(
        all.contains("\ndrive writes") && all.contains("\nuuid"),
        "{all}"
    );
    assert!(!text.contains("uuid"), "{text}");
}

#[test]
fn the_background_has_limits_from_the_site_and_by_command() {
    let limits = "rebuild_rate = \"200 MiB\"\nscrub_rate = \"unlimited\"\nrebuild_hours = 72\n";
    let site = SITE.replace("level = \"10\"\n", &format!("level = \"10\"\n{limits}"));
    let home = Home::new(&site);
    let serving = home.serve();
    let rates = || serving.json(&["pool", "show", "p0"])["rates"].clone();
    assert_eq!(
        rates(),
        serde_json::json!({
            "rebuild_bytes_per_s": 200 << 20, "scrub_bytes_per_s": null, "background": "yield",
            "rebuild_hours": 72, "scrub_days": 30
        })
    );
    serving.done(&["pool", "rates", "p0", "--rebuild", "unlimited", "--full"]);
    serving.done(&["pool", "rates", "p0", "--scrub", "5 MiB"]);
    serving.done(&[
        "pool",
        "rates",
        "p0",
        "--rebuild-hours",
        "off",
        "--scrub-days",
        "7",
    ]);
    assert_eq!(
        rates(),
        serde_json::json!({
            "rebuild_bytes_per_s": null, "scrub_bytes_per_s": 5 << 20, "background": "full",
            "rebuild_hours": null, "scrub_days": 7
        })
    );
    let (code, said) = serving.refused(&["pool", "rates", "p0", "--scrub", "fast"]);
    assert_eq!(code, 2);
    assert!(said.contains("\"unlimited\", 0, or a number"), "{said}");
}

#[test]
fn a_file_with_something_in_it_is_not_taken() {
    let home = Home::new(SITE);
    fs::create_dir(home.data()).unwrap();
    let mut content = vec![0u8; 64 << 20];
    content[1080] = 0x53;
    fs::write(home.file("d0.img"), &content).unwrap();
    assert_refused(
        &home,
        &["drive d0: ", "d0.img has no label and isn't empty"],
    );
    assert!(
        fs::read(home.file("d0.img")).unwrap() == content,
        "it is as it was"
    );
}

#[test]
fn an_empty_file_of_the_right_size_is_taken() {
    let home = Home::new(SITE);
    fs::create_dir(home.data()).unwrap();
    fs::File::create(home.file("d0.img"))
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    assert_eq!(home.serve().json(&["status"])["health"], "ok");
}

#[test]
fn a_device_that_is_not_there_is_named() {
    let device = "device = \"/dev/ashlar-no-such-device\"\n";
    let home = Home::new(&SITE.replace("file = \"d1.img\"\nsize = \"64 MiB\"\n", device));
    let (code, said) = home.refused();
    assert_eq!(code, 1);
    assert!(
        said.contains("drive d1: /dev/ashlar-no-such-device: not found"),
        "{said}"
    );
    assert_eq!(home.listing(), [], "and no other drive is made");
}

/// A pool of a group of small drives and one of large drives.
#[test]
fn a_replacement_has_to_be_as_large_as_its_group_needs() {
    for lanes in [1, 2] {
        let home = Home::new(&with_lanes(lanes));
        let serving = home.serve();
        let grow = [
            "pool", "grow", "p0", "e0.img", "e1.img", "--size", "320 MiB",
        ];
        serving.done(&grow);
        let replace = |old: &str, new: &str, more: &[&str]| {
            let file = format!("{new}.img");
            let args = [
                "drive", "replace", old, "--with", new, "--file", &file, "--yes",
            ];
            serving.run(&[&args[..], more].concat())
        };
        // Made as large as the one that goes.
        assert!(replace("d1", "n1", &[]).status.success());
        serving.wait_healthy();
        let size = |name: &str| serving.json(&["drive", "show", name])["capacity_bytes"].clone();
        assert_eq!(size("n1"), 160 << 20);
        // Too small for its group, and what that needs is said.
        let small = replace("e1", "m1", &["--size", "160 MiB"]);
        assert_eq!(small.status.code(), Some(2));
        let said = String::from_utf8(small.stderr).unwrap();
        let why = "drive 'm1' has 160 MiB, and a drive of group 1 of pool 'p0' needs ";
        assert!(said.contains(why), "{said}");
        assert!(!home.file("m1.img").exists());
        // In the same place, where the old one goes first.
        serving.done(&["drive", "replace", "d0", "--yes"]);
        serving.wait_healthy();
        assert_eq!(size("d0"), 160 << 20);
        // A spare stands in anywhere.
        let add = ["drive", "add-spare", "s", "--pool", "p0", "--file", "s.img"];
        let (kind, said) = serving.refusal(&[&add[..], &["--size", "160 MiB"]].concat());
        assert_eq!(kind, "invalid", "{said}");
        assert!(said.contains("a spare of pool"), "{said}");
        drop(serving);
        assert_eq!(home.serve().json(&["status"])["health"], "ok");
    }
}

#[test]
fn a_refused_replacement_in_the_same_place_costs_no_redundancy() {
    for lanes in [1, 2] {
        let home = Home::new(&with_lanes(lanes));
        let serving = home.serve();
        let path = home.file("d1.img");
        let (new, kept) = (home.file("new.img"), home.file("kept.img"));
        fs::File::create(&new).unwrap().set_len(96 << 20).unwrap();
        make_private(&new);
        fs::rename(&path, &kept).unwrap();
        fs::rename(&new, &path).unwrap();
        let (kind, said) = serving.refusal(&["drive", "replace", "d1", "--yes"]);
        assert_eq!(kind, "invalid", "{said}");
        assert!(said.contains("'d1'") && said.contains("96 MiB"), "{said}");
        // The old one serves on.
        assert_ne!(serving.json(&["drive", "show", "d1"])["state"], "failed");
        let failed = serving.events_of("drive_failed");
        assert!(failed.is_empty(), "{failed:?}");
        // One that fits is taken in the same way.
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(160 << 20).unwrap();
        serving.done(&["drive", "replace", "d1", "--yes"]);
        serving.wait_healthy();
    }
}

/// The site with so many lanes, and drives that are large enough for them.
fn with_lanes(lanes: u16) -> String {
    let level = format!("level = \"10\"\nlanes = {lanes}");
    SITE.replace("level = \"10\"", &level)
        .replace("64 MiB", "160 MiB")
}

#[test]
fn a_file_that_another_program_has_open_replaces_nothing_and_costs_no_redundancy() {
    for lanes in [1, 2] {
        let home = Home::new(&with_lanes(lanes));
        let serving = home.serve();
        let (path, kept) = (home.file("d1.img"), home.file("kept.img"));
        fs::rename(&path, &kept).unwrap();
        let taken = fs::File::create(&path).unwrap();
        taken.set_len(160 << 20).unwrap();
        make_private(&path);
        taken.lock().unwrap();
        let (_, said) = serving.refusal(&["drive", "replace", "d1", "--yes"]);
        assert!(said.contains("in use"), "{said}");
        assert_ne!(serving.json(&["drive", "show", "d1"])["state"], "failed");
        let failed = serving.events_of("drive_failed");
        assert!(failed.is_empty(), "{failed:?}");
    }
}

#[test]
fn a_spare_that_is_replaced_by_itself_stays() {
    let home = Home::new(&with_lanes(2));
    let serving = home.serve();
    serving.done(&[
        "drive",
        "add-spare",
        "s0",
        "--pool",
        "p0",
        "--file",
        "s0.img",
    ]);
    let (_, said) = serving.refusal(&["drive", "replace", "s0", "--yes"]);
    assert!(said.contains("spare s0 is in that place already"), "{said}");
    assert_eq!(serving.json(&["drive", "show", "s0"])["name"], "s0");
}
