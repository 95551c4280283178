//! A directory of image files that an array may read and make.

use crate::array::Array;
use crate::pattern;
use crate::program;
use crate::site_text::OnePool;
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest that a process may take to be gone; only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The directory; goes when dropped.
#[derive(Debug)]
pub struct ImageFiles {
    dir: tempfile::TempDir,
}

impl Default for ImageFiles {
    fn default() -> Self {
        Self::new()
    }
}

impl ImageFiles {
    /// An empty one.
    pub fn new() -> Self {
        ImageFiles {
            dir: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    /// Brings up an array with a mirrored pool `p` of drives of this size and a volume `v` of
    /// 8 MiB, which may use this directory.
    pub fn serve(&self, drive_mib: u64) -> Array {
        let pool = OnePool {
            level: "10",
            drives: 2,
            spares: 0,
            drive_mib,
            volume_mib: 8,
        };
        let images = format!("[images]\ndirectories = [{:?}]\n", self.dir.path());
        Array::start_with(&(pool.text() + &images))
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// A file of it, as arguments have it.
    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// What is in it.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).expect("the directory");
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Makes a raw image of `size` bytes with a pattern at these runs, holes elsewhere.
    pub fn raw(&self, name: &str, size: u64, runs: &[(u64, usize)]) {
        let file = File::create(self.path(name)).expect("make an image");
        file.set_len(size).expect("size an image");
        for (seed, (at, len)) in runs.iter().enumerate() {
            let bytes = pattern::bytes(seed as u64 + 1, *len);
            file.write_all_at(&bytes, *at).expect("fill an image");
        }
    }

    /// Makes an image of another format with `qemu-img`; `options` begin with the format.
    pub fn convert(&self, from: &str, options: &[&str], to: &str) {
        let arguments = [&["convert", "-f", "raw", "-O"], options].concat();
        let (from, to) = (self.path(from), self.path(to));
        program::run("qemu-img", &[arguments, vec![&from, &to]].concat()).ok();
    }

    /// Whether two images hold the same disk, by `qemu-img`.
    #[track_caller]
    pub fn compare(&self, one: (&str, &str), other: (&str, &str)) {
        let (first, second) = (self.path(one.0), self.path(other.0));
        let arguments = ["compare", "-f", one.1, "-F", other.1, &first, &second];
        program::run("qemu-img", &arguments).ok();
    }

    /// The SHA-256 of a file, by `sha256sum`.
    pub fn sha256(&self, name: &str) -> String {
        let said = program::run("sha256sum", &[self.path(name)]).ok();
        said.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    }

    /// Bytes that a file takes of its file system.
    pub fn taken_bytes(&self, name: &str) -> u64 {
        let found = fs::metadata(self.path(name)).expect("the file is there");
        found.blocks() * 512
    }

    /// Waits until no process has to do with this directory or that of the array's sockets.
    #[track_caller]
    pub fn wait_no_process(&self, array: &Array) {
        let deadline = Instant::now() + PATIENCE;
        let ours = [self.dir.path().to_owned(), array.file("ashlar-images")];
        loop {
            let found = processes(&ours);
            if found.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "still there: {found:#?}");
        }
    }
}

/// The command lines of QEMU's programs that name one of these.
fn processes(names: &[PathBuf]) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = entries.filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    let named = |line: &String| {
        let mut names = names.iter();
        line.starts_with("qemu-") && names.any(|name| line.contains(&*name.to_string_lossy()))
    };
    lines.filter(named).collect()
}

/// The volumes of an array, by name.
pub fn volumes(array: &Array) -> Vec<String> {
    let listed = array.json(&["volume", "list"]);
    let all = listed.as_array().into_iter().flatten();
    all.filter_map(|volume| volume["name"].as_str().map(str::to_owned))
        .collect()
}

/// The number of a job, as arguments have it.
pub fn number(job: &Value) -> String {
    job["id"].to_string()
}

/// Waits until a job has ended, and gives what came of it.
#[track_caller]
pub fn wait_ended(array: &Array, id: &str) -> Value {
    let is_ended = |job: &Value| {
        let state = job["state"].as_str().unwrap_or_default();
        ["done", "failed", "cancelled"].contains(&state)
    };
    array.wait_for(&["job", "show", id], is_ended)
}
