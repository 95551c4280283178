//! A drive that has left its pool is free: for another pool, and for data that nobody may overwrite.

use crate::array::{Home, SITE, Serving};
use serde_json::json;
use std::fs::{self, File};
use std::io::Write;

/// Serves, with a pool `new` of two drives and a spare, n2, which the settings name.
fn serve_with_a_spare(home: &Home) -> Serving {
    let serving = home.serve();
    let create = ["pool", "create", "new", "--level", "10", "--size", "64 MiB"];
    serving.done(&[&create[..], &["n0.img", "n1.img", "--spare", "n2.img"]].concat());
    serving
}

/// Has somebody else use a file: its size stays.
fn use_otherwise(home: &Home, file: &str) {
    let mut file = File::options().write(true).open(home.file(file)).unwrap();
    file.write_all(&vec![0x5a; 8 << 20]).unwrap();
}

/// That the file is not taken, and that its data is there still.
fn assert_kept(home: &Home, serving: &Serving, pool: &str, drive: &str, file: &str) {
    let args = ["drive", "add-spare", drive, "--pool", pool, "--file", file];
    let (kind, said) = serving.refusal(&args);
    assert_eq!(kind, "exists", "{said}");
    assert!(
        said.contains(file) && said.contains("isn't empty"),
        "{said}"
    );
    let found = fs::read(home.file(file)).unwrap();
    assert!(found[..8 << 20].iter().all(|byte| *byte == 0x5a));
}

/// Waits until the settings do not name a drive.
fn wait_unnamed(home: &Home, drive: &str) {
    let quoted = format!("\"{drive}\"");
    for _ in 0..600 {
        let kept = fs::read_to_string(home.file("ashlar-configuration.json")).unwrap();
        if !kept.replace('\\', "").contains(&quoted) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("the settings name drive {drive} still");
}

#[test]
fn what_is_written_to_a_spare_that_was_let_go_is_kept() {
    let home = Home::new(SITE);
    let serving = serve_with_a_spare(&home);
    serving.done(&["drive", "fail", "--yes", "n2"]);
    use_otherwise(&home, "n2.img");
    assert_kept(&home, &serving, "new", "n2", "n2.img");
    wait_unnamed(&home, "n2");
    assert!(serving.stop("TERM").success());
    let serving = home.serve();
    assert_kept(&home, &serving, "new", "n2", "n2.img");
}

#[test]
fn what_is_written_to_a_drive_that_was_replaced_is_kept() {
    let home = Home::new(SITE);
    let serving = serve_with_a_spare(&home);
    serving.done(&[
        "drive", "replace", "--yes", "n1", "--with", "x", "--file", "x.img",
    ]);
    serving.wait_healthy();
    wait_unnamed(&home, "n1");
    use_otherwise(&home, "n1.img");
    assert_kept(&home, &serving, "new", "n1", "n1.img");
}

#[test]
fn another_pool_is_made_of_a_spare_that_was_let_go() {
    let home = Home::new(SITE);
    let serving = serve_with_a_spare(&home);
    serving.done(&["drive", "fail", "--yes", "n2"]);
    serving.done(&["pool", "create", "q", "--level", "simple", "n2.img"]);
    assert_eq!(serving.json(&["drive", "show", "n2"])["pool"], "q");
    drop(serving);
    let serving = home.serve();
    assert_eq!(serving.json(&["drive", "show", "n2"])["pool"], "q");
    assert_eq!(serving.json(&["status"])["health"], "ok");
    // It is q's now.
    let create = ["pool", "create", "r", "--level", "simple"];
    let (kind, said) = serving.refusal(&[&create[..], &["r0=n2.img"]].concat());
    assert_eq!(kind, "exists", "{said}");
    assert!(said.contains("n2 of pool q"), "{said}");
}

#[test]
fn the_settings_forget_the_drives_of_a_group_that_has_left() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["pool", "grow", "p0", "g0.img", "g1.img"]);
    // With these the settings name those.
    let create = [
        "pool", "create", "q", "--level", "simple", "--size", "64 MiB",
    ];
    serving.done(&[&create[..], &["q0.img"]].concat());
    serving.done(&["pool", "shrink", "p0", "--group", "1"]);
    serving.wait(&["drive", "list"], |drives| {
        drives.as_array().is_some_and(|drives| drives.len() == 3)
    });
    wait_unnamed(&home, "g0");
    use_otherwise(&home, "g0.img");
    assert_kept(&home, &serving, "p0", "g0", "g0.img");
    serving.done(&["pool", "create", "r", "--level", "simple", "g1.img"]);
}

#[test]
fn a_drive_comes_back_under_another_name() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.add_spare("s0", "s0.img");
    serving.done(&["drive", "fail", "--yes", "d1"]);
    serving.wait(&["pool", "show", "p0"], |pool| pool["drives"][1] == "s0");
    serving.wait_healthy();
    serving.add_spare("x", "d1.img");
    let path = home.file("d1.img");
    let path = path.to_str().unwrap();
    assert_eq!(serving.json(&["drive", "show", "x"])["path"], path);
    serving.done(&["drive", "remove", "d1", "--yes"]);
    assert!(serving.stop("TERM").success());
    let found = home.serve().json(&["drive", "show", "x"]);
    assert_eq!(
        (&found["state"], &found["path"]),
        (&json!("spare"), &json!(path))
    );
}

/// Nobody looks at the drives of a pool that is not open.
#[test]
fn the_settings_say_which_drives_a_closed_pool_has() {
    let home = Home::new(SITE);
    let serving = serve_with_a_spare(&home);
    assert!(serving.stop("TERM").success());
    for drive in ["n0", "n1", "n2"] {
        let file = home.file(&format!("{drive}.img"));
        fs::rename(&file, file.with_extension("away")).unwrap();
    }
    let serving = home.serve();
    let create = [
        "pool", "create", "q", "--level", "simple", "--size", "64 MiB",
    ];
    let (kind, said) = serving.refusal(&[&create[..], &["q0=n2.img"]].concat());
    assert_eq!(kind, "exists", "{said}");
    assert!(said.contains("n2 of pool new"), "{said}");
}
