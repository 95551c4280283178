//! The contents of targets, on every kind of target.

#![allow(clippy::unwrap_used)] // helpers of tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real servers, real time

mod support;

use load::contents::{ForeignTarget, held};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;
use support::{Tgtd, nbdkit, need, paced, plan, run_whole};
use workload::plan::Plan;

const BYTES: u64 = 8 << 20;

fn writing(url: &str) -> Plan {
    let profile = paced("rand-4k-write", 100.0, 4);
    plan(profile, &[url], Duration::from_millis(300))
}

/// What a target holds by itself.
fn held_by(url: &str) -> Option<String> {
    let mut held = held(&writing(url));
    assert!(held.len() <= 1, "{held:?}");
    held.pop().map(|held| held.what)
}

fn empty(directory: &Path) -> (File, String) {
    let path = directory.join("disk");
    let file = File::options()
        .create_new(true)
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    file.set_len(BYTES).unwrap();
    (file, path.display().to_string())
}

#[test]
fn an_empty_target_and_one_that_a_load_has_written_hold_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = empty(directory.path());
    let url = format!("file:{path}");
    assert_eq!(held_by(&url), None);
    let mut filled = writing(&url);
    (filled.fill, filled.seed) = (true, 99);
    run_whole(&filled).unwrap();
    let written = fs::read(&path).unwrap();
    assert!(
        written
            .chunks(4096)
            .all(|block| block.iter().any(|&b| b != 0))
    );
    assert_eq!(held_by(&url), None);
}

#[test]
fn what_somebody_else_wrote_is_told_wherever_it_is_looked_for() {
    let directory = tempfile::tempdir().unwrap();
    let (file, path) = empty(directory.path());
    let url = format!("file:{path}");
    // The very end: a GPT keeps a copy of its table there.
    file.write_all_at(b"EFI PART", BYTES - 512).unwrap();
    let last_block = BYTES - 4096;
    assert_eq!(held_by(&url), Some(format!("data at byte {last_block}")));
    file.write_all_at(b"EFI PART", 512).unwrap();
    assert_eq!(held_by(&url).unwrap(), "a GPT partition table");
    let all = held(&writing(&url));
    assert_eq!(
        all,
        [ForeignTarget {
            target: url.clone(),
            capacity_bytes: BYTES,
            what: "a GPT partition table".into(),
        }]
    );
    // Who only reads overwrites nothing, unless the disks are filled first.
    let profile = paced("rand-4k-read", 100.0, 4);
    let mut reading = plan(profile, &[&url], Duration::from_secs(1));
    assert_eq!(held(&reading), []);
    reading.fill = true;
    assert_eq!(held(&reading), all);
}

#[test]
fn a_lun_and_an_export_are_looked_at_as_files_are() {
    let directory = tempfile::tempdir().unwrap();
    let (file, path) = empty(directory.path());
    let tgtd = Tgtd::start(Path::new(&path));
    assert_eq!(held_by(tgtd.url()), None);
    file.write_all_at(b"XFSB", 0).unwrap();
    assert_eq!(held_by(tgtd.url()).unwrap(), "an XFS file system");
    need("nbdkit");
    let exported = nbdkit(&["file", &path]);
    assert_eq!(held_by(&exported.url).unwrap(), "an XFS file system");
    file.write_all_at(&[0; 4], 0).unwrap();
    assert_eq!(held_by(&exported.url), None);
}

#[test]
fn what_cannot_be_read_is_held() {
    need("nbdkit");
    let broken = nbdkit(&[
        "--filter=error",
        "memory",
        "8M",
        "error-pread=EIO",
        "error-pread-rate=100%",
    ]);
    let what = held_by(&broken.url).unwrap();
    assert!(what.contains("read at byte 0"), "{what}");
}

#[test]
fn a_target_that_cannot_be_opened_is_left_to_the_run() {
    assert_eq!(held_by("file:/nonexistent/disk"), None);
}
