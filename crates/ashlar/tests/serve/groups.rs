//! Groups of a pool that is served: another level, one more, one fewer; what is refused
//! leaves nothing behind, and what is done is there after a restart.

use crate::array::{Home, SECOND_POOL, SITE, Serving, add_spare};
use serde_json::{Value, json};
use std::fs;

const FOUR: &str = r#"[[drive]]
name = "d2"
file = "d2.img"
size = "64 MiB"
[[drive]]
name = "d3"
file = "d3.img"
size = "64 MiB"
"#;

/// RAID 10 over four drives.
fn four() -> String {
    let site = SITE.replace("[\"d0\", \"d1\"]", "[\"d0\", \"d1\", \"d2\", \"d3\"]");
    site + FOUR
}

fn pool(serving: &Serving) -> Value {
    serving.json(&["pool", "show", "p0"])
}

/// Waits until the pool is as `is_wanted` says.
fn wait(serving: &Serving, is_wanted: impl Fn(&Value) -> bool) -> Value {
    serving.wait(&["pool", "show", "p0"], is_wanted)
}

/// Where the array is not what the site file says.
fn differences(home: &Home, serving: &Serving) -> String {
    let diff = serving.run(&["site", "diff", home.site().to_str().unwrap()]);
    String::from_utf8(diff.stdout).unwrap()
}

fn record(home: &Home) -> String {
    fs::read_to_string(home.file("ashlar-drives.json")).unwrap_or_default()
}

#[test]
fn a_group_gets_another_level_and_the_site_file_may_say_the_old_one() {
    let home = Home::new(&four());
    let serving = home.serve();
    serving.done(&["pool", "convert", "p0", "--level", "6"]);
    let named = "write level = \"6\" there";
    let diff = serving.run(&["site", "diff", home.site().to_str().unwrap()]);
    let text = String::from_utf8(diff.stdout).unwrap();
    assert!(text.contains(named), "{text}");
    let again = serving.run(&["pool", "convert", "p0", "--level", "6", "--group", "0"]);
    assert!(again.status.success(), "it is so already");
    let (kind, said) = serving.refusal(&["pool", "convert", "p0", "--level", "10"]);
    assert_eq!(kind, "invalid", "{said}");
    assert!(said.contains("from level 6 to 10"), "{said}");
    assert_eq!(serving.stop("TERM").code(), Some(0));

    let serving = home.serve();
    let shown = pool(&serving);
    assert_eq!(
        (&shown["level"], &shown["health"]),
        (&json!("6"), &json!("ok"))
    );
    home.set_site(&four().replace("level = \"10\"", "level = \"6\""));
    let diff = serving.run(&["site", "diff", home.site().to_str().unwrap()]);
    assert!(diff.status.success() && !String::from_utf8_lossy(&diff.stdout).contains("level"));
    let shown = serving.json(&["site", "show"])["text"].to_string();
    assert!(shown.contains("level = \\\"6\\\""), "{shown}");
}

#[test]
fn a_group_comes_and_goes_with_its_drives() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let capacity = |pool: &Value| pool["capacity_bytes"].as_u64().unwrap();
    let before = capacity(&pool(&serving));
    let absolute = home.file("elsewhere.img").display().to_string();
    let named = format!("far={absolute}");
    serving.done(&[
        "pool", "grow", "p0", "--level", "5", "n0.img", "n1.img", &named,
    ]);
    let grown = pool(&serving);
    assert!(capacity(&grown) > before, "{grown:#}");
    let group = &grown["groups"][1];
    assert_eq!(group["drives"], json!(["n0", "n1", "far"]));
    assert_eq!((&group["index"], &group["level"]), (&json!(1), &json!("5")));
    assert!(differences(&home, &serving).contains("group 1 of n0, n1, far"));
    serving.stop("KILL");

    // All on record, and in use.
    let serving = home.serve();
    assert_eq!(pool(&serving)["health"], "ok");
    assert_eq!(
        pool(&serving)["groups"][1]["drives"],
        json!(["n0", "n1", "far"])
    );
    // The group that the site file describes leaves; the site file goes on describing it.
    serving.done(&["pool", "shrink", "p0", "--group", "0"]);
    let shown = wait(&serving, |pool| {
        pool["groups"].as_array().unwrap().len() == 1
    });
    assert_eq!(shown["drives"], json!(["n0", "n1", "far"]));
    let named = "lists drive d0";
    let said = differences(&home, &serving);
    assert!(said.contains(named), "{said}");
    drop(serving);
    let serving = home.serve();
    assert_eq!(pool(&serving)["health"], "ok");
    assert!(!home.log().contains("comes up without"), "{}", home.log());
    assert_eq!(serving.json(&["volume", "show", "v0"])["pool"], "p0");

    // Its drives are free for a new group, and the others leave in turn.
    serving.done(&["pool", "grow", "p0", "--level", "10", "d0.img", "d1.img"]);
    serving.done(&["pool", "shrink", "p0", "--group", "1"]);
    wait(&serving, |pool| pool["drives"] == json!(["d0", "d1"]));
    for _ in 0..600 {
        if !record(&home).contains("n0") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let record = record(&home);
    let is_there = |name: &&str| record.contains(name);
    assert!(!["n0", "n1", "far"].iter().any(is_there), "{record}");
    drop(serving);
    let serving = home.serve();
    assert!(!differences(&home, &serving).contains("pool p0"));
}

#[test]
fn drives_that_left_one_pool_serve_another() {
    let home = Home::new(&(four() + SECOND_POOL));
    let serving = home.serve();
    serving.done(&[
        "pool", "grow", "p1", "--level", "5", "n0.img", "n1.img", "n2.img",
    ]);
    serving.done(&[
        "pool", "grow", "p0", "--level", "5", "m0.img", "m1.img", "m2.img",
    ]);
    serving.done(&["pool", "shrink", "p0", "--group", "0"]);
    wait(&serving, |pool| {
        pool["groups"].as_array().unwrap().len() == 1
    });
    let args = ["pool", "grow", "p1", "--level", "simple", "moved=d3.img"];
    serving.done(&args);
    drop(serving);
    // The settings forget a drive that has left a little later.
    let kept = fs::read_to_string(home.file("ashlar-configuration.json")).unwrap();
    let is_forgotten = !kept.contains(r#"\"d3\""#);
    let serving = home.serve();
    let groups = serving.json(&["pool", "show", "p1"])["groups"].clone();
    assert_eq!(groups[2]["drives"], json!(["moved"]), "{groups:#}");
    let parts = ["drive d3 for pool p0", "to pool p1"];
    assert_eq!(
        home.has_logged("WARN", &parts),
        !is_forgotten,
        "{}",
        home.log()
    );
}

#[test]
fn what_is_refused_leaves_nothing_behind() {
    let with_dev = SITE.replacen(
        "[[portal]]",
        "drive_directories = [\"/dev\"]\n[[portal]]",
        1,
    );
    let home = Home::new(&(with_dev + SECOND_POOL));
    let serving = home.serve();
    let mut other = vec![0u8; 64 << 20];
    other[1080] = 0x53;
    fs::write(home.file("other.img"), &other).unwrap();
    let before = home.listing();
    let grow =
        |rest: &[&'static str]| -> Vec<&'static str> { [&["pool", "grow", "p0"], rest].concat() };
    let cases: &[(&str, Vec<&str>, &str)] = &[
        (
            "not_found",
            vec!["pool", "grow", "no", "a.img", "b.img"],
            "pool no",
        ),
        (
            "invalid",
            grow(&["--level", "5", "a.img", "b.img"]),
            "found 2 drives for a new group; allowed: 3 to 32",
        ),
        ("invalid", grow(&["a.img"]), "allowed: an even number"),
        (
            "invalid",
            grow(&["--level", "7", "a.img", "b.img"]),
            "level: found \"7\"; allowed: \"simple\", \"10\", \"10x3\", \"5\", \"50\", \"6\"",
        ),
        (
            "invalid",
            grow(&["--level", "simple", "a.img"]),
            "survives 0 lost",
        ),
        ("exists", grow(&["a.img", "d0.img"]), "drive d0"),
        ("exists", grow(&["a.img", "e0.img"]), "drive e0"),
        ("busy", grow(&["a.img", "x=d0.img"]), "d0.img: in use: "),
        (
            "exists",
            grow(&["a.img", "x=e0.img"]),
            "drive e0 of pool p1",
        ),
        (
            "invalid",
            grow(&["a.img", "a=b.img"]),
            "the name \"a\" twice",
        ),
        (
            "invalid",
            grow(&["a.img", "b=a.img"]),
            "drives: found a.img twice",
        ),
        (
            "invalid",
            grow(&["a.img", "b=../b.img"]),
            "file: found \"../b.img\"; allowed: ",
        ),
        (
            "invalid",
            grow(&["a.img", "=b.img"]),
            "name: found \"\"; allowed: ",
        ),
        (
            "invalid",
            grow(&["a.img", "b c.img"]),
            "name: found \"b c\"; allowed: ",
        ),
        ("exists", grow(&["a.img", "other.img"]), "isn't empty"),
        (
            "invalid",
            grow(&["a.img", "no/b.img"]),
            "no/b.img: not found",
        ),
        (
            "invalid",
            grow(&["a.img", "/dev/ashlar-no-such-device"]),
            "drive ashlar-no-such-device: /dev/ashlar-no-such-device: not found",
        ),
        (
            "invalid",
            grow(&["--size", "1 MiB", "a.img", "b.img"]),
            "drive 'a' has 1 MiB",
        ),
        (
            "wrong",
            grow(&["--size", "big", "a.img", "b.img"]),
            "a number above",
        ),
        (
            "invalid",
            vec!["pool", "convert", "p0", "--level", "5"],
            "from level 10 to 5",
        ),
        (
            "invalid",
            vec!["pool", "convert", "p0", "--level", "6"],
            "level 6 takes 4",
        ),
        (
            "not_found",
            vec!["pool", "convert", "p0", "--level", "6", "--group", "3"],
            "group 3",
        ),
        (
            "not_found",
            vec!["pool", "shrink", "p0", "--group", "1"],
            "group 1",
        ),
        (
            "invalid",
            vec!["pool", "shrink", "p0", "--group", "0"],
            "no other group",
        ),
        (
            "exists",
            add_spare("x", "other.img").to_vec(),
            "isn't empty",
        ),
        (
            "invalid",
            add_spare("x", "/proc/y.img").to_vec(),
            "drive x: /proc/y.img: drives may be added from",
        ),
        (
            "invalid",
            add_spare("x", "none/y.img").to_vec(),
            "drive x: ",
        ),
        (
            "invalid",
            vec![
                "drive",
                "add-spare",
                "x",
                "--pool",
                "p0",
                "--device",
                "/dev/ashlar-none",
            ],
            "drive x: /dev/ashlar-none: not found",
        ),
    ];
    for (kind, args, part) in cases {
        let (found, said) = serving.refusal(args);
        assert!(said.contains(part), "{args:?}: {part:?} is not in: {said}");
        assert_eq!(found, *kind, "{args:?}: {said}");
        let mut after = home.listing();
        after.retain(|(name, _)| name != "ashlar-drives.json");
        assert_eq!(after, before, "{args:?}");
        assert!(
            !record(&home).contains("\"name\""),
            "{args:?}: {}",
            record(&home)
        );
    }
    assert_eq!(pool(&serving)["groups"].as_array().unwrap().len(), 1);

    // Which group is meant has to be said where there are several.
    serving.done(&["pool", "grow", "p0", "a.img", "b.img"]);
    let (kind, said) = serving.refusal(&["pool", "convert", "p0", "--level", "6"]);
    assert_eq!(kind, "wrong", "{said}");
    assert!(said.contains("of a, b; "), "{said}");
    // What the others have no room for stays.
    let size = "60 MiB";
    serving.done(&[
        "volume", "create", "big", "--pool", "p0", "--size", size, "--thick",
    ]);
    let (code, said) = serving.refused(&["pool", "shrink", "p0", "--group", "1"]);
    let part = "delete volumes or add a group first";
    assert_eq!((code, said.contains(part)), (1, true), "{said}");
}

#[test]
fn a_group_that_makes_the_pool_weaker_needs_force() {
    let raid_6 = four().replace("level = \"10\"", "level = \"6\"");
    let home = Home::new(&raid_6);
    let serving = home.serve();
    let files = ["n0.img", "n1.img", "n2.img"];
    let grow = [&["pool", "grow", "p0", "--level", "5"][..], &files].concat();
    let (kind, said) = serving.refusal(&grow);
    assert_eq!(kind, "invalid", "{said}");
    for part in ["pool p0", "level 5", "--force"] {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
    assert_eq!(pool(&serving)["groups"].as_array().unwrap().len(), 1);
    let is_made = |file: &&str| home.file(file).exists();
    assert!(!files.iter().any(is_made), "it leaves nothing behind");
    serving.done(&[&grow[..], &["--force"]].concat());
    let groups = pool(&serving)["groups"].clone();
    assert_eq!(
        (&groups[0]["level"], &groups[1]["level"]),
        (&json!("6"), &json!("5"))
    );
    // One as strong as the others needs nothing.
    let home = Home::new(&raid_6);
    let serving = home.serve();
    serving.done(&[
        "pool", "grow", "p0", "--level", "6", "n0.img", "n1.img", "n2.img", "n3.img",
    ]);
}

/// A new user lost the trash to a group that left: the pool was full then, and emptied it unasked.
#[test]
fn a_group_whose_leaving_fills_the_pool_stays_unless_forced() {
    for lanes in [1, 2] {
        let level = format!("level = \"10\"\nlanes = {lanes}");
        let site = SITE.replace("level = \"10\"", &level);
        let home = Home::new(&site.replace("64 MiB", "160 MiB"));
        let serving = home.serve();
        let capacity = pool(&serving)["capacity_bytes"].as_u64().unwrap();
        serving.done(&["pool", "grow", "p0", "n0.img", "n1.img"]);
        // 97.5 % of what remains: it fits, above the alarm threshold of 95 %. Each lane has some.
        for name in ["a", "b"] {
            let size = format!("{} KiB", capacity * 39 / 80 / 262_144 * 256);
            let create = ["volume", "create", name, "--pool", "p0", "--thick"];
            serving.done(&[&create[..], &["--size", &size]].concat());
        }
        serving.done(&["volume", "delete", "a", "--yes"]);
        let shrink = ["pool", "shrink", "p0", "--group", "1"];
        let (kind, said) = serving.refusal(&shrink);
        assert_eq!(kind, "full", "{said}");
        for part in [
            "pool p0",
            "95 %",
            "group 1",
            "ashlar trash empty",
            "ashlar pool grow p0",
            "--force",
        ] {
            assert!(said.contains(part), "{part:?} is not in: {said}");
        }
        let groups = pool(&serving)["groups"].clone();
        assert_eq!(groups[1]["leaving"], false, "{groups:#}");
        assert_eq!(serving.json(&["trash", "list"])[0]["name"], "a");

        serving.done(&[&shrink[..], &["--force"]].concat());
        let group = pool(&serving)["groups"][1].clone();
        assert!(group.is_null() || group["leaving"] == true, "{group}");
    }
}
