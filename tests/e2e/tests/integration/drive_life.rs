//! A spare takes over by itself under load, and its rebuild goes on after a kill; a
//! pool is all there in its drive files, wherever they are.

use e2e::array::{Array, TARGET};
use e2e::ledger::Ledger;
use e2e::site_text::OnePool;
use e2e::writer::{fill, load_until_killed, verify};
use std::fs;

const POOL: OnePool = OnePool {
    level: "5",
    drives: 4,
    spares: 1,
    drive_mib: 128,
    volume_mib: 192,
};

#[test]
fn a_spare_takes_over_by_itself_and_its_rebuild_survives_a_kill() {
    let mut array = Array::start_with(&POOL.text());
    let mut ledger = Ledger::new(0..POOL.volume_mib << 11);
    fill(array.portal(), TARGET, &mut ledger);

    // A drive is lost while nobody looks; nobody does anything about it.
    array.kill();
    fs::remove_file(array.file("d1.img")).unwrap();
    array.start_again();
    let mut ledger = load_until_killed(&mut array, ledger, |array| {
        // Killed when some is done and some is not.
        array.wait_for(&["pool", "show", "p"], |pool| {
            let task = &pool["tasks"][0];
            let done = |name: &str| task[name].as_u64().unwrap_or(0);
            assert_ne!(pool["health"], "ok", "the rebuild was over too soon");
            task["kind"] == "rebuild" && done("done_bytes") * 8 > done("total_bytes")
        });
        let taken = array.events("spare_taken");
        let named = "drive 's0' stands in for 'd1' (place 1 of group 0)";
        assert_eq!(taken, [named]);
        array.wait_recorded(named);
        assert_eq!(array.json(&["drive", "show", "s0"])["state"], "rebuilding");
    });

    array.start_again();
    verify(
        array.portal(),
        TARGET,
        &mut ledger,
        "in the middle of the rebuild",
    );
    array.wait_healthy();
    let taken = array.earlier_events("spare_taken");
    assert_eq!(
        taken,
        ["drive 's0' stands in for 'd1' (place 1 of group 0)"],
        "once, after a kill"
    );
    let rebuild = array.events("rebuild");
    let goes_on = rebuild
        .iter()
        .any(|text| text.starts_with("rebuild of drive 's0' continues, "));
    assert!(goes_on, "{rebuild:?}");
    assert!(
        !goes_on || !rebuild.iter().any(|text| text.contains("begins")),
        "{rebuild:?}"
    );
    let pool = array.json(&["pool", "show", "p"]);
    assert_eq!(pool["drives"], serde_json::json!(["d0", "s0", "d2", "d3"]));
    let scrubbed = array.scrub();
    assert!(
        scrubbed.ends_with(": 0 blocks repaired, 0 lost"),
        "{scrubbed}"
    );
    verify(array.portal(), TARGET, &mut ledger, "rebuilt");

    // The spare is as good as the others: one of these can go now.
    let ledger = &mut load_until_killed(&mut array, ledger, |array| {
        array.command(&["drive", "fail", "--yes", "d0"]).ok();
    });
    array.start_again();
    verify(array.portal(), TARGET, ledger, "without another drive");
    array.command(&["drive", "replace", "--yes", "d0"]).ok();
    array.wait_healthy();
    let scrubbed = array.scrub();
    assert!(
        scrubbed.ends_with(": 0 blocks repaired, 0 lost"),
        "{scrubbed}"
    );
    assert!(array.stop().success());
    let (code, said) = array.fsck();
    assert_eq!(code, Some(0), "{said:#}");
}

#[test]
fn a_pool_comes_up_elsewhere_from_its_drive_files_alone() {
    let pool = OnePool {
        level: "6",
        drives: 5,
        spares: 0,
        drive_mib: 64,
        volume_mib: 24,
    };
    let mut array = Array::start_with(&pool.text());
    let ledger = Ledger::new(0..pool.volume_mib << 11);
    // Not closed cleanly: the logs move with it.
    let mut ledger = load_until_killed(&mut array, ledger, |_| ());

    // Other names, in another order, in another directory, without any record.
    let drives: Vec<(String, String)> = ["c", "a", "e", "b", "d"]
        .iter()
        .map(|name| (format!("disk-{name}"), format!("{name}.disk")))
        .collect();
    let names: Vec<String> = drives.iter().map(|(name, _)| name.clone()).collect();
    let move_in = |data: &std::path::Path| {
        for (number, (_, file)) in drives.iter().enumerate() {
            fs::copy(array.file(&format!("d{number}.img")), data.join(file)).unwrap();
        }
    };
    let mut sorted = names.clone();
    sorted.sort();
    let elsewhere = Array::start_over(&pool.text_with(&drives, &sorted, &[]), move_in);
    drop(array);
    assert_eq!(elsewhere.json(&["export", "list"]), serde_json::json!([]));
    elsewhere.apply_site();
    verify(elsewhere.portal(), TARGET, &mut ledger, "elsewhere");
    let pool = elsewhere.json(&["pool", "show", "p"]);
    assert_eq!(pool["health"], "ok");
    // Each is still in its place, under its new name.
    assert_eq!(pool["drives"], serde_json::json!(names));
    let volumes = elsewhere.json(&["volume", "list"]);
    assert_eq!(volumes.as_array().map(Vec::len), Some(1), "{volumes:#}");
}
