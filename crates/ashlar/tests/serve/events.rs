//! What happened is known after a restart, whatever became of the record of it.

use crate::array::{Home, SITE, Serving};
use std::fs;
use std::io::Write;

const FAILED: &str = "drive 'd1' was taken out of use by command (place 1 of group 0)";
const RECORD: &str = "ashlar-events.jsonl";

/// A home where a drive was failed before, and the server closed.
fn home_with_failure() -> Home {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["drive", "fail", "--yes", "d1"]);
    assert!(serving.events(false).contains(&FAILED.to_owned()));
    assert!(serving.events(true).is_empty());
    assert_eq!(serving.stop("TERM").code(), Some(0));
    home
}

fn times_failed(serving: &Serving) -> usize {
    let earlier = serving.events(true);
    earlier.iter().filter(|text| *text == FAILED).count()
}

#[test]
fn a_failure_is_told_after_restarts_once() {
    let home = home_with_failure();
    for _ in 0..2 {
        let serving = home.serve();
        assert_eq!(times_failed(&serving), 1);
        assert!(!serving.events(false).contains(&FAILED.to_owned()));
        let shown = serving.run(&["pool", "show", "p0"]);
        assert!(String::from_utf8(shown.stdout).unwrap().contains(FAILED));
        assert_eq!(serving.stop("TERM").code(), Some(0));
    }
}

#[test]
fn a_torn_record_is_no_reason_not_to_start() {
    let home = home_with_failure();
    let mut record = fs::File::options()
        .append(true)
        .open(home.file(RECORD))
        .unwrap();
    record.write_all(b"{\"pool\":\"p0\",\"seq").unwrap();
    let serving = home.serve();
    assert_eq!(times_failed(&serving), 1);
    let warning = "ashlar-events.jsonl: left out 1 lines that can't be understood";
    assert!(home.log().contains(warning), "{}", home.log());
    serving.done(&["drive", "replace", "--yes", "d1"]);
    let since = serving.events(false);
    assert!(!since.is_empty());
    assert_eq!(serving.stop("TERM").code(), Some(0));

    let serving = home.serve();
    let earlier = serving.events(true);
    assert_eq!(times_failed(&serving), 1);
    assert!(
        since.iter().all(|text| earlier.contains(text)),
        "{earlier:?}"
    );
    assert!(!home.log().contains(RECORD), "{}", home.log());
}

#[test]
fn a_record_that_can_not_be_read_or_written_keeps_nobody_from_serving() {
    let home = home_with_failure();
    fs::remove_file(home.file(RECORD)).unwrap();
    fs::create_dir(home.file(RECORD)).unwrap();
    let serving = home.serve();
    let is_told = home.has_logged("WARN", &[RECORD, "can't read"]);
    assert!(is_told, "{}", home.log());
    serving.done(&["drive", "replace", "--yes", "d1"]);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    assert!(home.log().contains("can't write it"), "{}", home.log());
}

/// Its name says nothing of which events of it are on record.
#[test]
fn events_of_a_pool_that_is_made_again_are_on_record() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let create = ["pool", "create", "new", "--level", "10", "--size", "64 MiB"];
    let fail = |drive: &str, spare: &str| {
        serving.done(&["drive", "fail", "--yes", drive]);
        serving.wait(&["pool", "show", "new"], |pool| pool["drives"][1] == spare);
        serving.wait_healthy();
    };
    serving.done(&[&create[..], &["n0.img", "n1.img", "--spare", "n2.img"]].concat());
    fail("n1", "n2");
    home.wait_log("'n1' was taken out");
    serving.done(&["pool", "destroy", "new", "--yes"]);
    serving.done(&[&create[..], &["m0.img", "m1.img", "--spare", "m2.img"]].concat());
    fail("m1", "m2");
    let since = serving.events(false);
    let of_m1 = |text: &&String| text.contains("'m1'");
    assert!(since.iter().filter(of_m1).count() >= 2, "{since:?}");
    home.wait_log("'m1' was taken out");
    assert_eq!(serving.stop("TERM").code(), Some(0));
    let earlier = home.serve().events(true);
    for text in since.iter().filter(of_m1) {
        assert!(earlier.contains(text), "{text}: {earlier:?}");
    }
}

#[test]
fn the_last_events_of_a_pool_outlive_its_destruction() {
    let home = Home::new(SITE);
    let serving = home.serve();
    for round in 0..3 {
        let (pool, file) = (format!("x{round}"), format!("x{round}.img"));
        let create = [
            "pool", "create", &pool, "--level", "simple", "--size", "64 MiB", &file,
        ];
        serving.done(&create);
        serving.done(&["pool", "scrub", &pool]);
        serving.done(&["pool", "destroy", &pool, "--yes"]);
    }
    assert_eq!(serving.stop("KILL").code(), None);
    let events = home.serve().events(true);
    for round in 0..3 {
        let text = format!("scrub of pool 'x{round}' begins");
        assert!(events.contains(&text), "{text} is not in: {events:?}");
    }
}
