//! An array whose record is lost, and a site file that is not current: no volume is made empty
//! where drives hold one of its name.

use crate::array::{Home, SITE, Serving};
use serde_json::Value;
use std::fs;

const OTHER_POOL: &str = "[[drive]]\nname = \"n0\"\nfile = \"n0.img\"\nsize = \"64 MiB\"\n\
                          [[pool]]\nname = \"p9\"\nlevel = \"simple\"\ndrives = [\"n0\"]\n";

/// An array with pool p9, which the site file does not name, and volume v1 there; stopped.
fn array_with_another_pool() -> Home {
    let home = Home::new(SITE);
    let serving = home.serve();
    let create = [
        "pool", "create", "p9", "--level", "simple", "--size", "64 MiB",
    ];
    serving.done(&[&create[..], &["n0.img"]].concat());
    serving.done(&["volume", "create", "v1", "--pool", "p9", "--size", "8 MiB"]);
    assert!(serving.stop("TERM").success());
    home
}

fn volume(name: &str) -> String {
    format!("[[volume]]\nname = \"{name}\"\npool = \"p0\"\nsize = \"8 MiB\"\n")
}

/// Removes the array's records; of what drives hold nothing changes.
fn lose(home: &Home, records: &[&str]) {
    for name in records {
        fs::remove_file(home.file(name)).unwrap();
    }
}

const CONFIGURATION: &[&str] = &["ashlar-configuration.json"];
const ALL: &[&str] = &[
    "ashlar-configuration.json",
    "ashlar-data.json",
    "ashlar-roster.json",
];

/// How `site diff` says that a volume differs.
fn how(serving: &Serving, home: &Home, volume: &str) -> String {
    let output = serving.run(&["site", "diff", "--json", home.site().to_str().unwrap()]);
    let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let what = format!("volume {volume}");
    let one = found.iter().find(|one| one["what"] == what.as_str());
    let one = one.unwrap_or_else(|| panic!("{what} is not in {found:?}"));
    assert_eq!(one["action"], "keep", "{one}");
    one["how"].as_str().unwrap().to_owned()
}

/// Applies the site file, whatever comes of it, and gives the names of all volumes then.
fn volumes_once_applied(serving: &Serving, home: &Home) -> Vec<String> {
    let site = home.site();
    serving.run(&["site", "apply", "--yes", site.to_str().unwrap()]);
    let volumes = serving.json(&["volume", "list"]);
    let names = volumes.as_array().unwrap().iter();
    names
        .map(|volume| volume["name"].as_str().unwrap().to_owned())
        .collect()
}

fn names_pool(status: &Value) -> bool {
    let whys = status["why"].as_array().unwrap().iter();
    let mut whys = whys.map(|why| why.as_str().unwrap());
    whys.any(|why| why.starts_with("pool p9 ") && why.contains("site apply"))
}

#[test]
fn a_pool_that_the_site_file_does_not_name_is_told_and_taken_in() {
    for records in [CONFIGURATION, ALL] {
        let home = array_with_another_pool();
        lose(&home, records);
        home.set_site(&format!("{SITE}{}", volume("v1")));
        let serving = home.serve();
        let status = serving.json(&["status"]);
        assert_eq!(status["health"], "attention", "{status}");
        assert!(names_pool(&status), "{status}");
        let how = how(&serving, &home, "v1");
        for part in ["pool p9", "ashlar volume create"] {
            assert!(how.contains(part), "{how}");
        }
        assert_eq!(volumes_once_applied(&serving, &home), ["v0"]);
        drop(serving);
        // So it stays, once the array has a record again.
        let serving = home.serve();
        assert!(names_pool(&serving.json(&["status"])));
        assert_eq!(volumes_once_applied(&serving, &home), ["v0"]);
        home.set_site(&format!("{SITE}{OTHER_POOL}{}", volume("v1")));
        serving.apply(&home);
        serving.wait(&["pool", "list"], |pools| {
            pools.as_array().unwrap().len() == 2
        });
        assert_eq!(serving.json(&["volume", "show", "v1"])["pool"], "p9");
        serving.wait(&["status"], |status| status["health"] == "ok");
    }
}

#[test]
fn a_start_that_finds_a_pool_of_the_array_beside_the_files_makes_no_volume() {
    let home = array_with_another_pool();
    lose(&home, ALL);
    // As if the file named a pool that the array no longer has.
    fs::remove_file(home.file("d0.img")).unwrap();
    fs::remove_file(home.file("d1.img")).unwrap();
    home.set_site(&format!("{SITE}{}", volume("v1")));
    let serving = home.serve();
    assert!(names_pool(&serving.json(&["status"])));
    assert_eq!(serving.json(&["volume", "list"]), serde_json::json!([]));
    assert_eq!(serving.json(&["export", "list"]), serde_json::json!([]));
    assert!(home.log().contains("nobody can log in"), "{}", home.log());
}

#[test]
fn what_is_in_the_trash_or_has_snapshots_or_another_name_is_not_made_empty() {
    let home = Home::new(&format!("{SITE}{}{}", volume("t"), volume("s")));
    drop(home.serve());
    // Without the file the array does not know what that describes.
    let mut command = crate::array::ashlar();
    command.arg("serve").arg("--data").arg(home.data());
    let serving = Serving::start(command, &home.log_file());
    serving.done(&["volume", "delete", "t", "--yes"]);
    let in_trash = serving.json(&["trash", "list"])[0]["uuid"].clone();
    // Of two volumes that had a name, the later one is in the trash: its hosts get no other's data.
    let create = ["volume", "create", "x", "--pool", "p0", "--size", "8 MiB"];
    serving.done(&create);
    serving.done(&["volume", "rename", "x", "y"]);
    serving.done(&create);
    serving.done(&["volume", "delete", "x", "--yes"]);
    serving.done(&["snapshot", "create", "s@a"]);
    serving.done(&["volume", "delete", "s", "--yes", "--at-once"]);
    serving.done(&["volume", "create", "r", "--pool", "p0", "--size", "8 MiB"]);
    serving.done(&["volume", "rename", "r", "q"]);
    assert!(serving.stop("TERM").success());
    lose(&home, CONFIGURATION);
    let volumes = ["t", "s", "r", "x"].map(volume).concat();
    home.set_site(&format!("{SITE}{volumes}"));
    let serving = home.serve();
    let restore = format!("`ashlar trash restore {}`", in_trash.as_str().unwrap());
    for (volume, parts) in [
        ("t", ["pool p0", &restore]),
        ("s", ["pool p0", "`ashlar volume clone s@a s`"]),
        ("r", ["is called q", "site file"]),
        (
            "x",
            ["`ashlar trash restore ", "write y into the site file"],
        ),
    ] {
        let how = how(&serving, &home, volume);
        assert!(parts.iter().all(|part| how.contains(part)), "{how}");
    }
    assert_eq!(volumes_once_applied(&serving, &home), ["q", "v0", "y"]);
    // What the messages say is how they come back.
    serving.done(&["trash", "restore", in_trash.as_str().unwrap()]);
    serving.done(&["volume", "clone", "s@a", "s"]);
    serving.done(&["volume", "show", "t"]);
    assert_eq!(
        serving.json(&["export", "show", "iqn.2026-11.dev.ashlar:a"])["luns"][0]["volume"],
        "v0"
    );
}

#[test]
fn a_first_start_that_was_cut_short_does_not_keep_another_file_from_starting() {
    let home = Home::new(SITE);
    drop(home.serve());
    // As a start leaves it that has made its pool, and ended before anything was configured.
    lose(&home, &["ashlar-configuration.json", "ashlar-roster.json"]);
    let data = home.file("ashlar-data.json");
    let made = fs::read_to_string(&data).unwrap();
    let unfinished = made.replace("\"is_configured\": true", "\"is_configured\": false");
    assert_ne!(made, unfinished);
    fs::write(&data, unfinished).unwrap();
    let other = SITE.replace("d0", "e0").replace("d1", "e1");
    home.set_site(&other.replace("\"p0\"", "\"p1\""));
    let serving = home.serve();
    assert_eq!(serving.json(&["volume", "list"])[0]["pool"], "p1");
    let exports = serving.json(&["export", "list"]);
    assert_eq!(exports.as_array().unwrap().len(), 1, "{exports}");
    assert!(serving.stop("TERM").success());
    // Nor does it matter later.
    let serving = home.serve();
    serving.wait_healthy();
    let more = other.replace("\"p0\"", "\"p1\"") + &volume("v1").replace("p0", "p1");
    home.set_site(&more);
    assert_eq!(volumes_once_applied(&serving, &home), ["v0", "v1"]);
}
