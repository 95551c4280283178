//! Copies of volumes and volumes that shrink, by command.

use crate::array::{Home, SECOND_POOL, SITE, Serving};
use serde_json::json;
use std::fs;
use std::path::Path;

const MIB: usize = 1 << 20;

fn home() -> (Home, tempfile::TempDir) {
    let images = tempfile::tempdir().unwrap();
    let text = format!(
        "[images]\ndirectories = [{:?}]\n{SITE}{SECOND_POOL}",
        images.path()
    );
    (Home::new(&text), images)
}

/// A volume of three MiB, and what is in it.
fn imported(serving: &Serving, images: &Path) -> Vec<u8> {
    let mut bytes = vec![0; 3 * MIB];
    for (at, byte) in bytes[MIB..2 * MIB].iter_mut().enumerate() {
        *byte = (at % 251) as u8;
    }
    let file = images.join("a.raw");
    fs::write(&file, &bytes).unwrap();
    let file = file.to_str().unwrap();
    serving.json(&["volume", "import", file, "--pool", "p0", "--name", "a"]);
    bytes
}

fn content(serving: &Serving, images: &Path, volume: &str) -> Vec<u8> {
    let file = images.join(format!("{volume}-out.raw"));
    let _ = fs::remove_file(&file);
    let name = file.to_str().unwrap();
    serving.json(&["volume", "export", volume, name, "--format", "raw"]);
    fs::read(file).unwrap()
}

#[test]
fn a_copy_is_what_the_source_was_in_this_pool_and_in_another() {
    let (home, images) = home();
    let images = images.path();
    let serving = home.serve();
    let bytes = imported(&serving, images);
    let mapped = |pool: &str| serving.json(&["pool", "show", pool])["mapped_bytes"].clone();
    let before = mapped("p0");
    let job = serving.json(&["volume", "copy", "a", "b"]);
    assert_eq!(
        (&job["kind"], &job["state"], &job["source"], &job["volume"]),
        (&json!("copy"), &json!("done"), &json!("a"), &json!("b"))
    );
    assert_eq!(job["done_bytes"], 3 * MIB);
    assert_eq!(mapped("p0"), before, "it takes no space");
    assert!(content(&serving, images, "b") == bytes);

    let job = serving.json(&["volume", "copy", "a", "c", "--pool", "p1"]);
    assert_eq!(job["state"], "done");
    assert_eq!(mapped("p1"), MIB, "holes stay holes");
    assert!(content(&serving, images, "c") == bytes);

    // A range, to where other data are, in another pool and within a volume.
    let over = "--overwrite";
    let range = [
        "--from", "1 MiB", "--to", "4 KiB", "--length", "512 KiB", over, "--yes",
    ];
    let mut expected = bytes.clone();
    expected.copy_within(MIB..MIB + 512 * 1024, 4096);
    for (source, target) in [("a", "c"), ("b", "b")] {
        serving.json(&[&["volume", "copy", source, target][..], &range].concat());
        assert!(content(&serving, images, target) == expected, "{target}");
    }
    // Zeroes over data.
    let zeroes = [
        "--from", "2 MiB", "--to", "1 MiB", "--length", "1 MiB", over, "--yes",
    ];
    for (source, target) in [("a", "c"), ("a", "b")] {
        serving.json(&[&["volume", "copy", source, target][..], &zeroes].concat());
        let expected = [&expected[..MIB], &vec![0; 2 * MIB][..]].concat();
        assert!(content(&serving, images, target) == expected, "{target}");
    }
    let thick = serving.json(&["volume", "copy", "a", "t", "--thick"]);
    assert_eq!(thick["state"], "done");
    let space = serving.json(&["volume", "space", "t"]);
    assert_eq!(
        (&space["exclusive_bytes"], &space["promised_bytes"]),
        (&json!(MIB), &json!(2 * MIB))
    );
    assert_eq!(space["reclaimable_bytes"], 3 * MIB);
    assert!(content(&serving, images, "a") == bytes);
}

#[test]
fn copies_that_can_not_be_are_refused_and_make_nothing() {
    let (home, images) = home();
    let serving = home.serve();
    imported(&serving, images.path());
    serving.done(&["snapshot", "create", "a@s"]);
    let before = serving.json(&["volume", "list"]);
    let cases: [(i32, &[&str], &str); 13] = [
        (5, &["none", "b"], "none"),
        (5, &["a", "b", "--pool", "none"], "none"),
        (2, &["a", "b c"], "b c"),
        (2, &["a", "a@s"], "snapshot"),
        (2, &["a", "b", "--from", "3 MiB"], "a has 3 MiB"),
        (2, &["a", "b", "--length", "4 MiB"], "a has 3 MiB"),
        (2, &["v0", "a"], "grow it first"),
        (2, &["a", "v0", "--to", "6 MiB"], "grow it first"),
        (6, &["a", "v0"], "overwrite 3 MiB of it from 0"),
        (
            6,
            &["a", "a", "--to", "1 MiB", "--length", "4 KiB"],
            "--overwrite",
        ),
        (2, &["a", "v0", "--pool", "p1"], "p0"),
        (2, &["a", "b", "--from", "x"], "x"),
        (2, &["a", "b", "--rate", "0 B"], "rate"),
    ];
    for (code, args, text) in cases {
        let (found, said) = serving.refused(&[&["volume", "copy"][..], args].concat());
        assert_eq!(
            (found, said.contains(text)),
            (code, true),
            "{args:?}: {said}"
        );
    }
    // Made, and too large: taken back.
    let (code, said) = serving.refused(&["volume", "copy", "a", "b", "--to", "1 GiB", "--thick"]);
    assert_eq!(code, 1, "{said}");
    assert_eq!(serving.json(&["volume", "list"]), before);
}

#[test]
fn a_volume_shrinks_by_force_only() {
    let (home, images) = home();
    let images = images.path();
    let serving = home.serve();
    let bytes = imported(&serving, images);
    let shrink = ["volume", "resize", "a", "--size", "1537 KiB"];
    let (code, said) = serving.refused(&shrink);
    assert_eq!(code, 2, "{said}");
    let mapped = format!("{} KiB are mapped", 2048 - 1537);
    assert!(
        said.contains(&mapped) && said.contains("--force-shrink"),
        "{said}"
    );
    serving.done(&["snapshot", "create", "a@s"]);
    let force = [&shrink[..], &["--force-shrink", "--yes"]].concat();
    assert_eq!(serving.json(&force)["size_bytes"], 1537 * 1024);
    let (code, said) = serving.refused(&[
        "volume",
        "resize",
        "a@s",
        "--size",
        "1 MiB",
        "--force-shrink",
        "--yes",
    ]);
    assert_eq!(code, 2, "{said}");
    drop(serving);
    let serving = home.serve();
    serving.done(&["volume", "resize", "a", "--size", "3 MiB"]);
    let mut expected = bytes.clone();
    expected[1537 * 1024..].fill(0);
    assert!(content(&serving, images, "a") == expected);
    assert!(content(&serving, images, "a@s") == bytes);
}
