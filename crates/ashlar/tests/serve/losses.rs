//! Lost blocks: the health tells of them over restarts, until a scrub finds none.

use crate::array::{Home, SECOND, SECOND_POOL, SECOND_VOLUME, SITE, Serving};
use crate::fsck::{damage, write_to};
use serde_json::Value;

/// What the health of the pool with lost blocks says.
fn reasons(serving: &Serving) -> Vec<String> {
    let pool = serving.json(&["pool", "show", "p1"]);
    let why = pool["why"].as_array().unwrap().iter();
    why.map(|why| why.as_str().unwrap().to_owned()).collect()
}

/// Scrubs until one has ended; how many blocks it found lost.
fn scrub(serving: &Serving) -> u64 {
    serving.done(&["pool", "scrub", "p1"]);
    let ended = |pool: &Value| pool["last_scrub"].is_object();
    let pool = serving.wait(&["pool", "show", "p1"], ended);
    pool["last_scrub"]["lost_blocks"].as_u64().unwrap()
}

fn assert_told(serving: &Serving) {
    let told = |status: &Value| status["health"] == "attention";
    let status = serving.wait(&["status"], told);
    assert!(status["why"].to_string().contains("found lost"), "{status}");
    let why = reasons(serving);
    assert!(
        why[0].contains("were found lost") && why[0].contains("event"),
        "{why:?}"
    );
}

#[test]
fn lost_blocks_are_told_of_over_restarts_until_a_scrub_finds_none() {
    let home = Home::new(&format!("{SITE}{SECOND_POOL}{SECOND_VOLUME}"));
    let serving = home.serve();
    write_to(&serving, SECOND);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    damage(&home, "e0.img");

    let serving = home.serve();
    assert_eq!(reasons(&serving), Vec::<String>::new());
    assert_eq!(scrub(&serving), 1);
    assert_told(&serving);
    assert_eq!(serving.stop("TERM").code(), Some(0));

    // Nobody has read the block since, nor found out anew that it is lost.
    let serving = home.serve();
    assert_told(&serving);
    assert_eq!(serving.json(&["pool", "show", "p1"])["lost_bytes"], 0);
    // A scrub does not make it whole.
    assert_eq!(scrub(&serving), 1);
    assert_told(&serving);
    serving.stop("KILL");

    let serving = home.serve();
    assert_told(&serving);
    // With its volume, the block is of the past.
    serving.done(&["volume", "delete", "v1", "--force", "--at-once", "--yes"]);
    assert_told(&serving);
    assert_eq!(scrub(&serving), 0);
    serving.wait(&["pool", "show", "p1"], |pool| {
        pool["why"] == Value::Array(Vec::new())
    });
    assert_eq!(serving.stop("TERM").code(), Some(0));
    assert_eq!(reasons(&home.serve()), Vec::<String>::new());
}
