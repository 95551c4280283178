//! What the site file says of volumes and groups beside their size, over starts.

use crate::array::{Home, SECOND_POOL, SITE, Serving};
use serde_json::{Value, json};

const SIZE: &str = "size = \"8 MiB\"\n";

/// The site with this said of `v0`, and `more` after all.
fn site(of_v0: &str, more: &str) -> String {
    let w = "[[volume]]\nname = \"w\"\npool = \"p1\"\nsize = \"1 MiB\"\n";
    let text = SITE.replace(SIZE, &format!("{SIZE}{of_v0}"));
    format!("{text}{SECOND_POOL}{w}{more}")
}

const OF_V0: &str = r#"description = "system disk"
tags = { vm = "web01" }
detect_zeroes = true
limits = { iops = 5000, burst_iops = 9000, burst = "30 s", bandwidth = "100 MB", io_size = "8 KiB" }
snapshots = [{ every = "1h", keep = 24 }, { every = "2 h", keep = 3 }]
"#;
const GROUP: &str = r#"[[group]]
name = "erp"
volumes = ["v0", "w"]
snapshots = [{ every = "1 d", keep = 2 }]
"#;

/// Of each schedule its number, and how often it takes how many.
fn schedules(serving: &Serving, args: &[&str]) -> Vec<(u64, u64, u64)> {
    let all = serving.json(args);
    let all = all.as_array().unwrap().iter();
    let of = |one: &Value, key: &str| one[key].as_u64().unwrap();
    all.map(|one| (of(one, "number"), of(one, "every_s"), of(one, "keep")))
        .collect()
}

fn check(serving: &Serving, name: &str, tags: Value) {
    let v0 = serving.json(&["volume", "show", name]);
    assert_eq!(
        (&v0["description"], &v0["detect_zeroes"], &v0["tags"]),
        (&json!("system disk"), &json!(true), &tags)
    );
    let limits = &serving.json(&["qos", "show", name])["limits"];
    let wanted = json!({
        "iops": 5000, "burst_iops": 9000, "burst_s": 30, "bytes_per_s": 100_000_000, "io_bytes": 8192
    });
    assert_eq!(*limits, wanted);
    let own = schedules(serving, &["snapshot", "schedule", name]);
    assert_eq!(own, [(1, 3600, 24), (2, 7200, 3)]);
    let shown = serving.json(&["group", "show", "erp"]);
    assert_eq!(shown["volumes"], json!([name, "w"]));
    let group = schedules(serving, &["group", "schedule", "erp"]);
    assert_eq!(group, [(1, 86_400, 2)]);
}

#[test]
fn a_new_volume_has_all_that_the_site_says_of_it_and_a_second_start_changes_nothing() {
    let home = Home::new(&site(OF_V0, GROUP));
    let serving = home.serve();
    check(&serving, "v0", json!({"vm": "web01"}));
    // Of both at one instant, and two of `v0` alone.
    let all = serving.wait(&["snapshot", "list"], |all| {
        all.as_array().unwrap().len() == 4
    });
    let of_group: Vec<&Value> = all
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["name"].as_str().unwrap().contains("@grp1-"))
        .collect();
    assert_eq!(of_group.len(), 2, "{all}");
    assert_eq!(of_group[0]["at_unix_s"], of_group[1]["at_unix_s"]);
    let groups = serving.json(&["group", "list"]);
    assert_eq!(serving.stop("KILL").code(), None);

    let serving = home.serve();
    assert_eq!(serving.json(&["group", "list"]), groups);
    check(&serving, "v0", json!({"vm": "web01"}));
    assert!(!home.log().contains("site file"), "{}", home.log());
}

#[test]
fn what_the_site_says_is_applied_to_what_is_there_and_what_it_does_not_say_stays() {
    let home = Home::new(&site("", ""));
    let serving = home.serve();
    serving.done(&["volume", "describe", "v0", "old"]);
    serving.done(&["volume", "tag", "v0", "owner=ann", "vm=web09"]);
    serving.done(&[
        "snapshot", "schedule", "v0", "--every", "60 min", "--keep", "24",
    ]);
    serving.done(&["group", "create", "mine", "v0"]);
    // Which it does not take along into another group.
    serving.done(&["group", "schedule", "mine", "--every", "3h", "--keep", "1"]);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    home.set_site(&site(OF_V0, GROUP));
    let serving = home.serve();
    serving.apply(&home);
    let tags = json!({"owner": "ann", "vm": "web01"});
    check(&serving, "v0", tags.clone());
    assert_eq!(serving.refused(&["group", "show", "mine"]).0, 5);
    let parts = ["group erp", "volume v0", "from group mine"];
    assert!(home.has_logged("INFO", &parts), "{}", home.log());

    // What people take away comes back when the file is applied, also under another name.
    serving.done(&["group", "remove", "erp", "v0"]);
    serving.done(&["volume", "tag", "v0", "--remove", "vm"]);
    serving.done(&["volume", "rename", "v0", "web"]);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    let serving = home.serve();
    let shown = serving.json(&["group", "show", "erp"]);
    assert_eq!(shown["volumes"], json!(["w"]), "a start applies nothing");
    serving.apply(&home);
    let shown = serving.json(&["group", "show", "erp"]);
    assert_eq!(shown["volumes"], json!(["w", "web"]));
    assert_eq!(serving.json(&["volume", "show", "web"])["tags"], tags);
    assert_eq!(serving.stop("TERM").code(), Some(0));

    // A file that says no more takes nothing away.
    home.set_site(&site("", "").replace("\"v0\"", "\"web\""));
    let serving = home.serve();
    serving.apply(&home);
    assert_eq!(serving.json(&["group", "show", "erp"]), shown);
    let own = schedules(&serving, &["snapshot", "schedule", "web"]);
    assert_eq!(own, [(1, 3600, 24), (2, 7200, 3)]);
    assert_eq!(
        serving.json(&["volume", "show", "web"])["detect_zeroes"],
        true
    );
}

#[test]
fn what_can_not_be_said_is_told() {
    let home = Home::new(&site("", ""));
    let serving = home.serve();
    let tags: Vec<String> = (0..32).map(|number| format!("k{number}=v")).collect();
    let tags = tags.iter().map(String::as_str);
    let tag: Vec<&str> = ["volume", "tag", "v0"].into_iter().chain(tags).collect();
    serving.done(&tag);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    home.set_site(&site(OF_V0, GROUP));
    let serving = home.serve();
    let path = home.site();
    let (code, said) = serving.refused(&["site", "apply", "--yes", path.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert_eq!(serving.json(&["group", "list"]), json!([]));
    let v0 = serving.json(&["volume", "show", "v0"]);
    assert_eq!(
        (&v0["description"], &v0["detect_zeroes"]),
        (&json!(""), &json!(true))
    );
    let log = home.log();
    for (what, part) in [
        ("volume v0", "description and tags"),
        ("volume v0", "a schedule"),
        ("group erp", "its volumes"),
    ] {
        let line = format!("{what}, {part}: it can't be as the site file says: ");
        assert!(log.contains(&line), "{line}\n{log}");
        let of = said.lines().find(|line| line.contains(what));
        assert!(of.unwrap().contains(&format!("{part}: ")), "{said}");
    }
}

#[test]
fn a_group_with_a_volume_in_a_pool_that_is_not_open_gets_the_others() {
    let home = Home::new(&site("", ""));
    assert!(home.serve().stop("TERM").success());
    std::fs::rename(home.file("e0.img"), home.file("away.img")).unwrap();
    let serving = home.serve();
    home.set_site(&site("description = \"system disk\"\n", GROUP));
    let path = home.site();
    let path = path.to_str().unwrap();
    let told = serving.run(&["site", "diff", path]);
    assert_eq!(told.status.code(), Some(3));
    let told = String::from_utf8(told.stdout).unwrap();
    for line in [
        "keep    group erp  w may be in a pool that is not open: p1; apply the file again",
        "change  group erp  volumes; schedules",
        "keep    volume w   may be in a pool that is not open: p1",
    ] {
        assert!(told.contains(line), "{line:?} is not in: {told}");
    }
    serving.apply(&home);
    assert_eq!(
        serving.json(&["group", "show", "erp"])["volumes"],
        json!(["v0"])
    );
    let description = &serving.json(&["volume", "show", "v0"])["description"];
    assert_eq!(description, "system disk");
    assert!(serving.stop("TERM").success());
    std::fs::rename(home.file("away.img"), home.file("e0.img")).unwrap();
    let serving = home.serve();
    serving.apply(&home);
    let group = serving.json(&["group", "show", "erp"]);
    assert_eq!(group["volumes"], json!(["v0", "w"]));
    let group = schedules(&serving, &["group", "schedule", "erp"]);
    assert_eq!(group, [(1, 86_400, 2)]);
}
