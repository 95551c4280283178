//! What is missing is made, what is there stays, and a crash changes nothing.

use crate::array::{Home, SITE};
use std::fs;

#[test]
fn a_second_start_changes_nothing() {
    let home = Home::new(SITE);
    let first = home.serve();
    let volumes = first.json(&["volume", "list"]);
    let pools = first.json(&["pool", "show", "p0"]);
    assert_eq!(first.stop("TERM").code(), Some(0));
    let (listing, records) = (home.listing(), home.records());

    let second = home.serve();
    assert_eq!(second.json(&["volume", "list"]), volumes);
    assert_eq!(second.json(&["pool", "show", "p0"])["uuid"], pools["uuid"]);
    assert_eq!(
        second.stop("INT").code(),
        Some(0),
        "SIGINT closes cleanly too"
    );
    assert_eq!((home.listing(), home.records()), (listing, records));
}

#[test]
fn a_site_grows_and_what_it_forgets_is_kept() {
    let home = Home::new(SITE);
    let first = home.serve();
    let uuid = first.json(&["volume", "show", "v0"])["uuid"].clone();
    drop(first);

    let more =
        "[[volume]]\nname = \"v1\"\npool = \"p0\"\nsize = \"4 MiB\"\nprovisioning = \"thick\"\n";
    home.set_site(&(SITE.replace("8 MiB", "16 MiB") + more));
    let grown = home.serve();
    let site = home.site();
    let apply = ["site", "apply", "--yes", site.to_str().unwrap()];
    home.wait_log("differ in 2 things");
    grown.done(&apply);
    grown.done(&apply);
    // What only the array has is nothing to change.
    grown.done(&["volume", "create", "own", "--pool", "p0", "--size", "1 MiB"]);
    let applied = grown.run(&apply);
    let said = String::from_utf8(applied.stdout).unwrap();
    assert!(
        said.ends_with("\nnothing to change; what is to be kept stays\n"),
        "{said}"
    );
    grown.done(&["volume", "delete", "own", "--yes", "--at-once"]);
    let v0 = grown.json(&["volume", "show", "v0"]);
    assert_eq!(
        (&v0["uuid"], &v0["size_bytes"]),
        (&uuid, &(16 << 20).into())
    );
    let v1 = grown.json(&["volume", "show", "v1"]);
    assert_eq!(
        (&v1["provisioning"], &v1["promised_bytes"]),
        (&"thick".into(), &(4 << 20).into())
    );
    drop(grown);

    home.set_site(&SITE.replace("8 MiB", "16 MiB"));
    let without = home.serve();
    assert_eq!(without.json(&["volume", "show", "v1"])["uuid"], v1["uuid"]);
}

#[test]
fn a_volume_that_grew_while_it_served_keeps_its_size() {
    let home = Home::new(SITE);
    let served = home.serve();
    let grown = served.run(&["volume", "resize", "v0", "--size", "16 MiB"]);
    assert!(grown.status.success(), "{grown:?}");
    drop(served);
    assert_eq!(
        home.serve().json(&["volume", "show", "v0"])["size_bytes"],
        16 << 20,
        "the site file says less"
    );
}

#[test]
fn what_the_api_made_survives_a_kill() {
    let home = Home::new(SITE);
    let first = home.serve();
    first.done(&[
        "volume", "create", "made", "--pool", "p0", "--size", "4 MiB",
    ]);
    first.done(&["volume", "resize", "made", "--size", "6 MiB"]);
    let initiator = "iqn.1993-08.org.debian:01:x";
    let create = [
        "export",
        "create",
        "iqn.2026-11.dev.ashlar:made",
        "--volume",
        "made",
    ];
    first.done(&[&create[..], &["--initiator", initiator]].concat());
    let (volumes, exports) = (
        first.json(&["volume", "list"]),
        first.json(&["export", "list"]),
    );
    assert_eq!(first.stop("KILL").code(), None, "killed, not ended");

    let second = home.serve();
    assert_eq!(second.json(&["volume", "list"]), volumes);
    assert_eq!(second.json(&["export", "list"]), exports);
    let export = second.json(&["export", "show", "iqn.2026-11.dev.ashlar:made"]);
    assert_eq!(export["initiators"][0], initiator);
    second.done(&["export", "delete", "--yes", "iqn.2026-11.dev.ashlar:made"]);
    second.done(&["volume", "delete", "--yes", "made"]);
    drop(second);

    let third = home.serve();
    assert_eq!(
        third
            .refused(&["export", "show", "iqn.2026-11.dev.ashlar:made"])
            .0,
        5
    );
    assert_eq!(third.refused(&["volume", "show", "made"]).0, 5);
}

#[test]
fn an_export_that_was_deleted_stays_so() {
    let home = Home::new(SITE);
    let first = home.serve();
    first.done(&["export", "delete", "--yes", "iqn.2026-11.dev.ashlar:a"]);
    assert_eq!(first.json(&["export", "list"]).as_array().unwrap().len(), 0);
    assert_eq!(first.stop("KILL").code(), None);
    let second = home.serve();
    let exports = |serving: &crate::array::Serving| serving.json(&["export", "list"]);
    assert_eq!(exports(&second), serde_json::json!([]));
    let site = home.site();
    second.done(&["site", "apply", "--yes", site.to_str().unwrap()]);
    assert_eq!(exports(&second).as_array().unwrap().len(), 1);
}

#[test]
fn a_making_that_was_cut_short_is_begun_again() {
    let home = Home::new(SITE);
    fs::create_dir(home.data()).unwrap();
    // As left by a power cut: one file made in part, with something in it.
    fs::write(home.file("d0.img"), "half a label").unwrap();
    let (d0, d1) = (home.file("d0.img"), home.file("d1.img"));
    let record = format!(
        r#"{{"format": 1, "content": {{"pools": {{"p0": {{"state": "being_made", "new_files": [{d0:?}, {d1:?}]}}}}}}}}"#
    );
    fs::write(home.file("ashlar-data.json"), record).unwrap();
    let serving = home.serve();
    assert_eq!(serving.json(&["status"])["health"], "ok");
    assert!(
        home.records()[0]
            .as_ref()
            .unwrap()
            .contains("\"state\": \"made\"")
    );
}
