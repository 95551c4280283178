//! Damage to drive files, as disks and people do it.

use crate::{pattern, program};
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Garbage is written in pieces of this many bytes.
const PIECE_BYTES: u64 = 1 << 20;

/// Overwrites a run of a file with garbage; how long the file is stays.
///
/// # Panics
/// When the file can't be written.
pub fn garbage(path: &Path, run: Range<u64>, seed: u64) {
    let file = File::options()
        .write(true)
        .open(path)
        .expect("a drive file");
    for at in run.clone().step_by(PIECE_BYTES as usize) {
        let len = (run.end - at).min(PIECE_BYTES) as usize;
        let bytes = pattern::bytes(seed ^ at, len);
        file.write_all_at(&bytes, at)
            .unwrap_or_else(|error| panic!("garbage at {at} of {}: {error}", path.display()));
    }
    file.sync_all().expect("garbage is durable");
}

/// Overwrites a run of a file that a running array has open: whole MiB.
///
/// Past the page cache, as the array does: where both meet, the kernel reports I/O
/// errors to either. A file system that can't do that has no such trouble.
///
/// # Panics
/// When the file can't be written.
pub fn garbage_while_open(path: &Path, run: Range<u64>, seed: u64) {
    let len = (run.end - run.start) as usize;
    let source = tempfile::NamedTempFile::new().expect("a temporary file");
    pattern::file(source.path(), seed, len);
    let arguments = [
        format!("if={}", source.path().display()),
        format!("of={}", path.display()),
        format!("bs={PIECE_BYTES}"),
        format!("seek={}", run.start / PIECE_BYTES),
        "conv=notrunc".to_owned(),
        "oflag=direct".to_owned(),
    ];
    if !program::run("dd", &arguments).success {
        program::run("dd", &arguments[..arguments.len() - 1]).ok();
    }
}

/// Overwrites all of a file with garbage.
///
/// # Panics
/// When the file can't be written.
pub fn all_garbage(path: &Path, seed: u64) {
    garbage(path, 0..len_bytes(path), seed);
}

/// Cuts a file off.
///
/// # Panics
/// When it can't be.
pub fn cut(path: &Path, len_bytes: u64) {
    let file = File::options()
        .write(true)
        .open(path)
        .expect("a drive file");
    file.set_len(len_bytes).expect("it is cut");
}

/// How long a file is.
///
/// # Panics
/// When it isn't there.
pub fn len_bytes(path: &Path) -> u64 {
    fs::metadata(path).expect("a drive file").len()
}
