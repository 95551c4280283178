//! A drive that has failed stays in sight when a spare stands in for it, until somebody does
//! something about it.

use crate::array::{Home, SITE, Serving, two_lanes_and_a_pool};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Command;

/// Serves, and has spare s0 stand in for d1, which fails by command.
fn with_a_stand_in(home: &Home) -> Serving {
    let serving = home.serve();
    serving.add_spare("s0", "s0.img");
    serving.done(&["drive", "fail", "--yes", "d1"]);
    let drives = json!(["d0", "s0"]);
    serving.wait(&["pool", "show", "p0"], |pool| pool["drives"] == drives);
    serving.wait_healthy();
    serving
}

fn text(serving: &Serving, args: &[&str]) -> String {
    String::from_utf8(serving.run(args).stdout).unwrap()
}

/// Its failed drives, by name.
fn failed(serving: &Serving) -> Value {
    serving.json(&["pool", "show", "p0"])["failed_drives"].clone()
}

/// d1 is told of everywhere, with its place and its reason. Gives that.
fn assert_d1_is_told(home: &Home, serving: &Serving) -> Value {
    let drive = serving.json(&["drive", "show", "d1"]);
    assert_eq!(drive["state"], "failed", "{drive}");
    assert_eq!((&drive["group"], &drive["place"]), (&json!(0), &json!(1)));
    assert_eq!(drive["path"], home.file("d1.img").to_str().unwrap());
    let failure = drive["failure"].clone();
    assert_eq!(failure["stands_in"], "s0", "{drive}");
    let why = failure["why"].as_str().unwrap();
    assert!(why.contains("by command"), "{drive}");
    assert_eq!(failed(serving), json!(["d1"]));
    let list = text(serving, &["drive", "list"]);
    let line = list.lines().find(|line| line.starts_with("d1")).unwrap();
    assert!(line.contains("was 0.1  failed"), "{list}");
    let status = serving.run(&["status"]);
    assert_eq!(status.status.code(), Some(7));
    let status = String::from_utf8(status.stdout).unwrap();
    for part in [
        "attention",
        "pool p0: drive d1 failed on 20",
        "; s0 stands in; no spare is left: `ashlar drive replace d1`, or `ashlar drive remove d1`",
    ] {
        assert!(status.contains(part), "{part:?} is not in: {status}");
    }
    let show = text(serving, &["drive", "show", "d1"]);
    assert!(show.contains("was group 0, place 1\n"), "{show}");
    failure
}

#[test]
fn a_failed_drive_is_told_of_until_it_is_removed() {
    let home = Home::new(SITE);
    let serving = with_a_stand_in(&home);
    let failure = assert_d1_is_told(&home, &serving);
    home.wait_log("'d1' was taken out");
    drop(serving);
    let serving = home.serve();
    assert_eq!(assert_d1_is_told(&home, &serving), failure);
    let (kind, said) = serving.refusal(&["drive", "fail", "d1"]);
    assert_eq!(kind, "busy", "{said}");
    assert!(
        said.contains("s0 stands in") && said.contains("`ashlar drive replace d1`"),
        "{said}"
    );
    for (args, kind, part) in [
        (&["drive", "remove", "d1"][..], "wrong", "--yes"),
        (&["drive", "remove", "s0", "--yes"], "busy", "only a failed"),
        (&["drive", "remove", "d7", "--yes"], "not_found", "drive d7"),
    ] {
        let (found, said) = serving.refusal(args);
        assert_eq!(
            (found.as_str(), said.contains(part)),
            (kind, true),
            "{said}"
        );
    }
    serving.done(&["drive", "remove", "d1", "--yes"]);
    assert_eq!(failed(&serving), json!([]));
    assert_eq!(serving.refused(&["drive", "show", "d1"]).0, 5);
    assert_eq!(serving.json(&["status"])["health"], "ok");
    assert!(serving.stop("TERM").success());
    let is_found = || home.has_logged("WARN", &["drive 'd1'", "not a member"]);
    assert!(is_found());
    let serving = home.serve();
    assert_eq!(serving.json(&["status"])["health"], "ok");
    assert!(serving.stop("TERM").success());
    assert!(!is_found(), "the next start does not look for it");
}

#[test]
fn a_drive_in_its_place_is_not_removed() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["drive", "fail", "--yes", "d1"]);
    let (kind, said) = serving.refusal(&["drive", "remove", "d1", "--yes"]);
    assert_eq!(kind, "busy", "{said}");
    assert!(said.contains("stands in"), "{said}");
    let failure = &serving.json(&["drive", "show", "d1"])["failure"];
    let why = failure["why"].as_str().unwrap();
    assert!(why.contains("by command"), "{why}");
    assert_eq!(failure["stands_in"], Value::Null);
    assert_eq!(serving.json(&["status"])["health"], "degraded");
}

#[test]
fn what_the_record_missed_is_found_by_comparing() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.add_spare("s0", "s0.img");
    let roster = home.file("ashlar-roster.json");
    let before = fs::read(&roster).unwrap();
    serving.done(&["drive", "fail", "--yes", "d1"]);
    let drives = json!(["d0", "s0"]);
    serving.wait(&["pool", "show", "p0"], |pool| pool["drives"] == drives);
    serving.wait_healthy();
    // A kill may lose the last event, which says why.
    let events = home.file("ashlar-events.jsonl");
    let is_kept = || {
        let kept = fs::read_to_string(&events);
        kept.is_ok_and(|kept| kept.contains("drive_failed"))
    };
    for _ in 0..600 {
        if is_kept() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(is_kept());
    drop(serving);
    // As of a kill before it was written.
    fs::write(&roster, before).unwrap();
    assert_d1_is_told(&home, &home.serve());
}

#[test]
fn replacing_says_which_drive_stands_where() {
    let home = Home::new(SITE);
    let serving = with_a_stand_in(&home);
    // What was there before, with its old label, is taken.
    let said = text(&serving, &["drive", "replace", "--yes", "d1"]);
    let path = home.file("d1.img");
    let wanted = format!(
        "the new d1 ({}) is a spare of pool p0; s0 stands in for the old d1 and is rebuilt\n",
        path.display()
    );
    assert_eq!(said, wanted);
    assert_eq!(failed(&serving), json!([]));
    assert_eq!(serving.json(&["status"])["health"], "ok");
    // The spare that was there goes first, unless the one that comes has the name.
    serving.done(&["drive", "fail", "--yes", "d0"]);
    let args = [
        "drive", "replace", "--yes", "d0", "--with", "x", "--file", "x.img",
    ];
    let said = text(&serving, &args);
    let wanted = "x.img) is a spare of pool p0; d1 stands in for d0 and is";
    assert!(said.contains(wanted), "{said}");
    serving.wait_healthy();
    assert_eq!(failed(&serving), json!([]), "somebody has replaced d0");
    let said = text(
        &serving,
        &["drive", "replace", "--yes", "d1", "--file", "new.img"],
    );
    let wanted = "new.img) takes the place of the old d1 and is";
    assert!(said.contains(wanted), "{said}");
    let told = "the new drive 'd1' stands in for the old 'd1' (place 0 of group 0)".to_owned();
    assert!(serving.events(false).contains(&told));
    serving.wait_healthy();
    let drives = json!(["d1", "s0"]);
    assert_eq!(serving.json(&["pool", "show", "p0"])["drives"], drives);
    assert_eq!(failed(&serving), json!([]));
    let args = [
        "drive", "replace", "--yes", "x", "--with", "y", "--file", "y.img",
    ];
    let said = text(&serving, &args);
    let wanted = "y.img) is a spare of pool p0 instead of x\n";
    assert!(said.ends_with(wanted), "{said}");
    assert_eq!(serving.json(&["status"])["health"], "ok");
}

/// A pool rebuilds one drive at a time. A new user was told that d1 takes its place, and asked for
/// it again.
#[test]
fn a_replacement_that_waits_for_a_rebuild_says_so() {
    let third = "[[drive]]\nname = \"d2\"\nfile = \"d2.img\"\nsize = \"64 MiB\"\n[[pool]]";
    let site = SITE
        .replace("[[pool]]", third)
        .replace("\"10\"", "\"10x3\"")
        .replace("8 MiB", "24 MiB");
    let home = Home::new(&site.replace("[\"d0\", \"d1\"]", "[\"d0\", \"d1\", \"d2\"]"));
    let serving = home.serve();
    serving.add_spare("s0", "s0.img");
    // The rebuild takes 24 s, or until the rate is higher.
    crate::restore::fill(&serving);
    serving.done(&["pool", "rates", "p0", "--rebuild", "1 MiB"]);
    serving.done(&["drive", "fail", "--yes", "d0"]);
    let is_rebuilt = |drive: &Value| drive["state"] == "rebuilding";
    serving.wait(&["drive", "show", "s0"], is_rebuilt);
    let replaced = serving.json(&["drive", "replace", "--yes", "d1"]);
    assert_eq!(replaced["waits_for"], "s0", "{replaced}");
    assert_eq!(replaced["drive"]["state"], "spare", "{replaced}");
    let status = serving.json(&["status"])["why"].to_string();
    assert!(status.contains("once drive s0 is rebuilt"), "{status}");
    assert!(!status.contains("ashlar drive replace d1"), "{status}");
    let (kind, said) = serving.refusal(&["drive", "fail", "--yes", "d2"]);
    assert_eq!(kind, "invalid", "no whole drive is left: {said}");

    serving.done(&["pool", "rates", "p0", "--rebuild", "unlimited", "--full"]);
    let drives = json!(["s0", "d1", "d2"]);
    serving.wait(&["pool", "show", "p0"], |pool| pool["drives"] == drives);
    serving.wait_healthy();
    let status = serving.json(&["status"])["why"].to_string();
    assert!(!status.contains("d1"), "{status}");
}

#[test]
fn a_spare_that_is_missing_is_told_of_and_replaced() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.add_spare("s0", "s0.img");
    assert!(serving.stop("TERM").success());
    let (file, away) = (home.file("s0.img"), home.file("away"));
    fs::rename(&file, &away).unwrap();
    let serving = home.serve();
    let is_failed = |drives: &Value| drives[2]["state"] == "failed";
    let drives = serving.wait(&["drive", "list"], is_failed);
    let why = drives[2]["failure"]["why"].as_str().unwrap();
    assert!(why.contains("missing"), "{why}");
    let list = text(&serving, &["drive", "list"]);
    assert!(list.contains("was spare  failed"), "{list}");
    let status = serving.json(&["status"])["why"][0].clone();
    let said = status.as_str().unwrap();
    assert!(said.contains("spare s0 failed on"), "{said}");
    fs::rename(&away, &file).unwrap();
    let is_back = |event: &Value| event["kind"] == "drive_back" && event["before_start"] == false;
    serving.wait(&["events"], |events| {
        events.as_array().unwrap().iter().any(is_back)
    });
    let told = serving.events_of("drive_back").join("\n");
    assert!(told.contains("spare 's0' is back"), "{told}");
    assert!(told.contains("`ashlar drive replace s0`"), "{told}");
    serving.done(&["drive", "replace", "--yes", "s0"]);
    assert_eq!(serving.json(&["drive", "show", "s0"])["state"], "spare");
    assert_eq!(serving.json(&["status"])["health"], "ok");
}

#[test]
fn a_name_of_a_failed_drive_is_not_given_to_another_pool() {
    let home = Home::new(&format!("{SITE}{}", crate::array::SECOND_POOL));
    let serving = with_a_stand_in(&home);
    let (kind, said) = serving.refusal(&[
        "drive",
        "add-spare",
        "d1",
        "--pool",
        "p1",
        "--file",
        "n.img",
    ]);
    assert_eq!(kind, "exists", "{said}");
    assert!(said.contains("pool p0 has failed"), "{said}");
    assert!(!home.file("n.img").exists());
    // In its own pool it comes back.
    serving.add_spare("d1", "d1.img");
    assert_eq!(serving.json(&["drive", "show", "d1"])["state"], "spare");
    assert_eq!(failed(&serving), json!([]));
}

#[test]
fn drives_of_a_group_that_left_are_not_failed() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["pool", "grow", "p0", "g0.img", "g1.img"]);
    serving.done(&["pool", "shrink", "p0", "--group", "1"]);
    let two = |drives: &Value| drives.as_array().unwrap().len() == 2;
    serving.wait(&["drive", "list"], two);
    assert_eq!(serving.json(&["status"])["health"], "ok");
}

/// Nothing is noted before the first start has made the pool.
#[test]
fn a_spare_of_the_site_file_keeps_the_failed_drive_in_sight() {
    let spare = "[[drive]]\nname = \"s0\"\nfile = \"s0.img\"\nsize = \"64 MiB\"\n[[pool]]";
    let named = "drives = [\"d0\", \"d1\"]";
    let site = SITE.replace("[[pool]]", spare);
    let home = Home::new(&site.replace(named, &format!("{named}\nspares = [\"s0\"]")));
    let serving = home.serve();
    serving.done(&["drive", "fail", "--yes", "d1"]);
    let drives = json!(["d0", "s0"]);
    serving.wait(&["pool", "show", "p0"], |pool| pool["drives"] == drives);
    let failed = json!(["d1"]);
    serving.wait(&["pool", "show", "p0"], |pool| {
        pool["failed_drives"] == failed
    });
}

#[test]
fn a_pool_of_commands_keeps_its_failed_drives_in_sight() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let create = ["pool", "create", "new", "--level", "10", "--size", "64 MiB"];
    serving.done(&[&create[..], &["n0.img", "n1.img", "--spare", "n2.img"]].concat());
    serving.done(&["drive", "fail", "--yes", "n1"]);
    let (drives, failed) = (json!(["n0", "n2"]), json!(["n1"]));
    serving.wait(&["pool", "show", "new"], |pool| pool["drives"] == drives);
    serving.wait(&["pool", "show", "new"], |pool| {
        pool["failed_drives"] == failed
    });
    assert_eq!(serving.json(&["drive", "show", "n1"])["state"], "failed");
    serving.done(&["pool", "destroy", "new", "--yes"]);
    let (code, _) = serving.refused(&["drive", "show", "n1"]);
    assert_eq!(code, 5);
    serving.done(&[&create[..], &["n0.img", "n1.img"]].concat());
}

#[test]
fn a_drive_is_removed_after_that_could_not_be_kept() {
    let home = Home::new(SITE);
    let serving = with_a_stand_in(&home);
    serving.wait(&["pool", "show", "p0"], |pool| {
        pool["failed_drives"] == json!(["d1"])
    });
    // Nothing can be written where a directory is.
    let beside = home.file("ashlar-roster.new");
    fs::create_dir(&beside).unwrap();
    let (_, said) = serving.refused(&["drive", "remove", "d1", "--yes"]);
    assert!(said.contains("can't write it"), "{said}");
    fs::remove_dir(&beside).unwrap();
    assert_eq!(failed(&serving), json!(["d1"]));
    serving.done(&["drive", "remove", "d1", "--yes"]);
    assert_eq!(failed(&serving), json!([]));
}

#[test]
fn drives_are_removed_together() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let mut last = "d1".to_owned();
    let mut gone = Vec::new();
    for number in 0..6 {
        let spare = format!("s{number}");
        serving.add_spare(&spare, &format!("{spare}.img"));
        serving.done(&["drive", "fail", "--yes", &last]);
        let drives = json!(["d0", spare]);
        serving.wait(&["pool", "show", "p0"], |pool| pool["drives"] == drives);
        serving.wait_healthy();
        gone.push(std::mem::replace(&mut last, spare));
    }
    let all = |failed: &Value| failed.as_array().unwrap().len() == gone.len();
    serving.wait(&["pool", "show", "p0"], |pool| all(&pool["failed_drives"]));
    std::thread::scope(|scope| {
        for drive in &gone {
            scope.spawn(|| serving.done(&["drive", "remove", drive, "--yes"]));
        }
    });
    let is_there = |name: &String| {
        let kept = fs::read_to_string(home.file("ashlar-roster.json")).unwrap();
        kept.contains(&format!("\"{name}\""))
    };
    assert!(!gone.iter().any(is_there));
}

#[test]
fn a_roster_that_cannot_be_read_is_set_aside() {
    let home = Home::new(SITE);
    assert!(home.serve().stop("TERM").success());
    let roster = home.file("ashlar-roster.json");
    fs::write(&roster, "{\"format\": 1, \"cont").unwrap();
    let serving = home.serve();
    home.wait_log("ashlar-roster.json: can't understand it");
    let aside = home.file("ashlar-roster.json.unreadable");
    assert_eq!(fs::read_to_string(aside).unwrap(), "{\"format\": 1, \"cont");
    assert_eq!(serving.json(&["drive", "show", "d1"])["state"], "healthy");
}

/// Has qemu-io do this at the volume; whether it succeeds.
fn io(serving: &Serving, command: &str) -> bool {
    let url = format!("iscsi://{}/iqn.2026-11.dev.ashlar:a/0", serving.portal);
    let output = Command::new("qemu-io")
        .args(["-f", "raw", "-t", "none", "-c", command, &url])
        .output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success() && !said.contains("failed")
}

/// Brings d1 back, which has the newest data, and reads that once the target is served.
fn bring_back_d1(home: &Home, serving: &Serving) {
    fs::rename(home.file("away.img"), home.file("d1.img")).unwrap();
    let is_open = |status: &Value| status["closed_pools"] == json!([]);
    serving.wait(&["status"], is_open);
    let target = ["export", "show", "iqn.2026-11.dev.ashlar:a"];
    serving.wait(&target, |export| export["withheld"].is_null());
    assert!(io(serving, "read -P 0x56 0 4M"));
}

#[test]
fn a_drive_that_was_taken_out_serves_no_old_data_when_the_other_is_away() {
    let home = Home::new(SITE);
    let serving = home.serve();
    assert!(io(&serving, "write -P 0x55 0 4M"));
    serving.done(&["drive", "fail", "--yes", "d0"]);
    assert!(io(&serving, "write -P 0x56 0 4M"));
    assert_eq!(serving.stop("TERM").code(), Some(0));
    fs::rename(home.file("d1.img"), home.file("away.img")).unwrap();
    let serving = home.serve();
    let closed = serving.json(&["status"])["closed_pools"].to_string();
    for part in ["d1.img is not there", "d0", "may lack the last writes"] {
        assert!(closed.contains(part), "{part}: {closed}");
    }
    bring_back_d1(&home, &serving);
    serving.done(&["drive", "replace", "d0"]);
    serving.wait_healthy();
    assert!(io(&serving, "read -P 0x56 0 4M"));
}

/// A drive that failed by a fault can't be told by its own label that it is out of use, and the
/// label of the one that knows is away.
#[test]
fn a_drive_that_failed_serves_no_old_data_when_the_other_is_away() {
    for site in [SITE.to_owned(), two_lanes_and_a_pool()] {
        let home = Home::new(&site);
        let serving = home.serve();
        assert!(io(&serving, "write -P 0x55 0 4M"));
        let path = home.file("d0.img");
        let kept = home.file("kept.img");
        let file = fs::File::options().write(true).open(&path).unwrap();
        let size = file.metadata().unwrap().len();
        fs::copy(&path, &kept).unwrap();
        file.set_len(size / 2).unwrap();
        serving.wait(&["drive", "show", "d0"], |drive| drive["state"] == "failed");
        assert!(io(&serving, "write -P 0x56 0 4M"));
        serving.wait(&["status"], |_| {
            let roster = fs::read_to_string(home.file("ashlar-roster.json")).unwrap();
            roster.contains("since_unix_s")
        });
        assert_eq!(serving.stop("KILL").code(), None);
        // It is whole again, as it was; the other is away.
        fs::rename(&kept, &path).unwrap();
        fs::rename(home.file("d1.img"), home.file("away.img")).unwrap();
        let serving = home.serve();
        let closed = serving.json(&["status"])["closed_pools"].to_string();
        assert!(closed.contains("drive d0 is out of use since"), "{closed}");
        bring_back_d1(&home, &serving);
    }
}

/// The label that knows which drive failed is lost in one lane only.
#[test]
fn a_lane_whose_newest_label_is_lost_serves_no_old_data() {
    let home = Home::new(&two_lanes_and_a_pool());
    let serving = home.serve();
    assert!(io(&serving, "write -P 0x55 0 4M"));
    let path = home.file("d0.img");
    let kept = home.file("kept.img");
    fs::copy(&path, &kept).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    serving.wait(&["drive", "show", "d0"], |drive| drive["state"] == "failed");
    assert!(io(&serving, "write -P 0x56 0 4M"));
    serving.wait(&["status"], |_| {
        let roster = fs::read_to_string(home.file("ashlar-roster.json")).unwrap();
        roster.contains("since_unix_s")
    });
    assert_eq!(serving.stop("KILL").code(), None);
    fs::rename(&kept, &path).unwrap();
    // The volume is in the first lane.
    let mut newest = fs::File::options();
    let newest = newest.read(true).write(true).open(home.file("d1.img"));
    let newest = newest.unwrap();
    let mut labels = vec![0; 64 << 10];
    newest.read_exact_at(&mut labels, 0).unwrap();
    newest.write_all_at(&vec![0; labels.len()], 0).unwrap();
    let serving = home.serve();
    let closed = serving.json(&["status"])["closed_pools"].to_string();
    for part in ["lane 0", "d0", "d1", "ashlar-roster.json"] {
        assert!(closed.contains(part), "{part}: {closed}");
    }
    // Once it can be read again, the pool opens by itself, with the newest data.
    newest.write_all_at(&labels, 0).unwrap();
    let is_open = |status: &Value| status["closed_pools"] == json!([]);
    serving.wait(&["status"], is_open);
    let target = ["export", "show", "iqn.2026-11.dev.ashlar:a"];
    serving.wait(&target, |export| export["withheld"].is_null());
    assert!(io(&serving, "read -P 0x56 0 4M"));
}

/// As two lanes say that lose different drives: their labels tell which of them is right.
#[test]
fn a_pool_whose_drives_are_all_there_opens_whatever_the_roster_says() {
    let home = Home::new(SITE);
    let serving = home.serve();
    assert!(serving.stop("TERM").success());
    let record = home.file("ashlar-roster.json");
    let mut roster: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    let drives = roster["content"].as_array_mut().unwrap();
    assert_eq!(drives.len(), 2);
    for drive in drives {
        drive["failure"] = json!({ "why": "is out of use", "since_unix_s": 1 });
    }
    fs::write(&record, roster.to_string()).unwrap();
    let serving = home.serve();
    assert_eq!(serving.json(&["status"])["closed_pools"], json!([]));
    serving.wait_healthy();
}

#[test]
fn a_drive_whose_file_was_moved_away_is_told_of_with_its_path() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let path = home.file("d1.img");
    fs::rename(&path, home.file("away.img")).unwrap();
    let drive = serving.wait(&["drive", "show", "d1"], |drive| {
        drive["state"] == "suspect"
    });
    let trouble = drive["trouble"].as_str().unwrap();
    assert!(trouble.contains(path.to_str().unwrap()), "{trouble}");
    let status = serving.run(&["status", "--json"]);
    assert_eq!(status.status.code(), Some(7));
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["health"], "attention");
    let why = status["why"][0].as_str().unwrap();
    assert!(why.contains(trouble), "{why}");
    assert!(why.ends_with("`ashlar drive replace d1`"), "{why}");
    let shown = text(&serving, &["drive", "show", "d1"]);
    assert!(shown.contains(trouble), "{shown}");
}
