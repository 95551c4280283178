//! Groups change under load: RAID 10 becomes RAID 6, a group is added, and the one that
//! the pool began with leaves. The server is killed in the middle of each; everything is
//! read back, and at the end `ashlar fsck` finds nothing.

use e2e::array::{Array, TARGET};
use e2e::ledger::Ledger;
use e2e::site_text::OnePool;
use e2e::writer::{fill, load_until_killed, verify};
use serde_json::{Value, json};
use std::fs;

const POOL: OnePool = OnePool {
    level: "10",
    drives: 4,
    spares: 0,
    drive_mib: 128,
    volume_mib: 96,
};

const SHOW: &[&str] = &["pool", "show", "p"];

/// A host under whose load `event` happens; the server is killed then, and started again.
fn load_and_kill(array: &mut Array, ledger: Ledger, event: impl FnOnce(&Array)) -> Ledger {
    let mut ledger = load_until_killed(array, ledger, event);
    array.start_again();
    verify(array.portal(), TARGET, &mut ledger, "after a kill");
    ledger
}

/// Waits until data is being moved, and some is there and some is not.
fn wait_half_moved(array: &Array) {
    array.wait_for(SHOW, |pool| {
        let task = &pool["tasks"][0];
        let bytes = |name: &str| task[name].as_u64().unwrap_or(0);
        let (done, all) = (bytes("done_bytes"), bytes("total_bytes"));
        task["kind"] == "move" && done * 8 > all && done < all
    });
}

fn left(group: &Value) -> u64 {
    group["zones_to_move"].as_u64().unwrap()
}

/// A conversion under load, killed in the middle; then every zone is of the new level.
fn convert(array: &mut Array, ledger: Ledger) -> Ledger {
    let mut ledger = load_and_kill(array, ledger, |array| {
        array
            .command(&["pool", "convert", "p", "--level", "6"])
            .ok();
        wait_half_moved(array);
    });
    let pool = array.json(SHOW);
    assert!(
        left(&pool["groups"][0]) > 0,
        "it was over too soon: {pool:#}"
    );
    assert_eq!(pool["groups"][0]["level"], "6");
    array.wait_for(SHOW, |pool| left(&pool["groups"][0]) == 0);
    verify(array.portal(), TARGET, &mut ledger, "converted");

    let back = array.command(&["pool", "convert", "p", "--level", "10"]);
    let why = "can't go from level 6 to 10 while it is used: it can go to no other";
    assert_eq!(back.code, Some(2), "{back:?}");
    assert!(back.stderr.contains(why), "{back:?}");
    // Two drives may go now, any two.
    array.wait_healthy();
    for drive in ["d0", "d1"] {
        array.command(&["drive", "fail", "--yes", drive]).ok();
    }
    verify(array.portal(), TARGET, &mut ledger, "without two drives");
    for drive in ["d0", "d1"] {
        array.command(&["drive", "replace", "--yes", drive]).ok();
    }
    array.wait_healthy();
    ledger
}

#[test]
fn groups_change_under_load_and_kills() {
    let mut array = Array::start_with(&POOL.text());
    let mut ledger = Ledger::new(0..POOL.volume_mib << 11);
    fill(array.portal(), TARGET, &mut ledger);
    let ledger = convert(&mut array, ledger);

    let ledger = load_and_kill(&mut array, ledger, |array| {
        let grow = [
            "pool", "grow", "p", "--level", "5", "n0.img", "n1.img", "n2.img",
        ];
        // The pool's group survives two lost drives.
        let refused = array.command(&grow);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("--force"), "{refused:?}");
        array.command(&[&grow[..], &["--force"]].concat()).ok();
    });
    let pool = array.json(SHOW);
    assert_eq!(pool["groups"][1]["drives"], json!(["n0", "n1", "n2"]));
    assert_eq!(pool["health"], "ok");

    let mut ledger = load_and_kill(&mut array, ledger, |array| {
        array.command(&["pool", "shrink", "p", "--group", "0"]).ok();
        wait_half_moved(array);
    });
    let pool = array.json(SHOW);
    assert_eq!(
        pool["groups"][0]["leaving"], true,
        "it was over too soon: {pool:#}"
    );
    let pool = array.wait_for(SHOW, |pool| pool["groups"].as_array().unwrap().len() == 1);
    assert_eq!(pool["drives"], json!(["n0", "n1", "n2"]));
    let left = array.events("group").pop().unwrap();
    assert_eq!(left, "group 0 has left the pool: its drives are free");
    verify(
        array.portal(),
        TARGET,
        &mut ledger,
        "on the new group alone",
    );

    // It does without them, now and at the next start.
    array.kill();
    for drive in 0..4 {
        fs::remove_file(array.file(&format!("d{drive}.img"))).unwrap();
    }
    array.start_again();
    let mut ledger = load_and_kill(&mut array, ledger, |_| ());
    array.wait_healthy();
    let scrubbed = array.scrub();
    assert!(
        scrubbed.ends_with(": 0 blocks repaired, 0 lost"),
        "{scrubbed}"
    );
    verify(array.portal(), TARGET, &mut ledger, "at the end");
    assert!(array.stop().success());
    let (code, said) = array.fsck();
    assert_eq!(
        (code, &said["outcome"]),
        (Some(0), &"clean".into()),
        "{said:#}"
    );
    assert_eq!(said["pools"][0]["findings"], json!([]), "{said:#}");
    assert_eq!(said["pools"][0]["counts"]["drives"], 3, "{said:#}");
}
