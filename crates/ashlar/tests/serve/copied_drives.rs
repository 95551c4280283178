//! A drive is copied to another while hosts write, and leaves: the other one holds each byte.

use crate::array::{Home, Serving, ashlar, two_lanes_and_a_pool};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

fn load(serving: &Serving) -> Command {
    let url = format!("iscsi://{}/iqn.2026-11.dev.ashlar:a/0", serving.portal);
    let mut load = ashlar();
    load.args(["load", "rand-4k-write", "--target", &url])
        .args(["--iodepth", "4", "--warmup", "0s", "--duration", "10s"])
        .args(["--limit-write-ms", "60000", "--json", "-"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    load
}

fn content(serving: &Serving, to: &Path) -> Vec<u8> {
    let path = to.to_str().unwrap();
    serving.done(&["volume", "export", "v0", path, "--format", "raw"]);
    fs::read(to).unwrap()
}

#[test]
fn a_drive_that_is_copied_under_load_leaves_each_byte() {
    let images = tempfile::tempdir().unwrap();
    let text = format!("[images]\ndirectories = [{:?}]\n", images.path());
    let home = Home::new(&(text + &two_lanes_and_a_pool()));
    let serving = home.serve();
    let mut writing = load(&serving).spawn().unwrap();
    serving.wait(&["volume", "show", "v0"], |volume| {
        volume["mapped_bytes"].as_u64().unwrap() > 4 << 20
    });
    let args = [
        "drive", "replace", "--yes", "d0", "--with", "d2", "--file", "d2.img",
    ];
    assert_eq!(serving.json(&args)["is_copied"], true);
    let has_place = |pool: &Value| pool["drives"] == json!(["d2", "d1"]);
    serving.wait(&["pool", "show", "p0"], has_place);
    let is_over = writing.try_wait().unwrap();
    assert!(is_over.is_none(), "the load has ended before: {is_over:?}");
    let output = writing.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    serving.wait_healthy();
    // A scrub compares both copies.
    serving.done(&["pool", "scrub", "p0"]);
    let scrubbed = serving.wait(&["pool", "show", "p0"], |pool| pool["scrubs"] == 1);
    let found = &scrubbed["last_scrub"];
    let bad = (&found["mended_blocks"], &found["lost_blocks"]);
    assert_eq!(bad, (&json!(0), &json!(0)), "{found}");
    let of_both = content(&serving, &images.path().join("a.raw"));
    assert_eq!(serving.stop("TERM").code(), Some(0));
    fs::remove_file(home.file("d1.img")).unwrap();
    let serving = home.serve();
    assert_eq!(serving.json(&["status"])["health"], "degraded");
    let of_new = content(&serving, &images.path().join("b.raw"));
    assert!(of_both == of_new, "they differ");
    let zeroes = of_new.chunks(4096).filter(|block| *block == [0; 4096]);
    assert!(
        zeroes.count() < of_new.len() / 4096 / 2,
        "little was written"
    );
}
