//! The guest's kernel and its first (and only) root file system.

use super::cpio::Archive;
use crate::program;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What QEMU boots. The initramfs file lives as long as this.
#[derive(Debug)]
pub struct Image {
    /// The distribution's kernel.
    pub kernel: PathBuf,
    /// Path of the archive.
    pub initramfs: PathBuf,
    _home: tempfile::TempDir,
}

impl Image {
    /// Builds it from the kernel package that `make setup` unpacked and from the
    /// host's static busybox, e2fsprogs and xfsprogs.
    ///
    /// # Panics
    /// When one of them is missing; the message names `make setup`.
    pub fn build() -> Self {
        Image::with(archive)
    }

    /// The kernel, and an archive made from what was unpacked beside it.
    pub(super) fn with(archive: impl FnOnce(&Path) -> Vec<u8>) -> Self {
        let kernel_home = target_directory().join("guest-kernel");
        let kernel = kernel_home.join("kernel");
        assert!(
            kernel.is_file(),
            "no kernel for the guest at {}; run: make setup",
            kernel.display()
        );
        let home = tempfile::tempdir().expect("a temporary directory");
        let initramfs = home.path().join("initramfs");
        std::fs::write(&initramfs, archive(&kernel_home)).expect("write the initramfs");
        Image {
            kernel,
            initramfs,
            _home: home,
        }
    }
}

/// The directory that Cargo builds into: two levels above this test's executable
/// (`target/<profile>/deps/<test>`).
pub(crate) fn target_directory() -> PathBuf {
    let executable = std::env::current_exe().expect("the path of this test");
    executable
        .ancestors()
        .nth(3)
        .expect("a test runs inside target/<profile>/deps")
        .to_owned()
}

pub(super) fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()))
}

fn archive(kernel_home: &Path) -> Vec<u8> {
    let mut archive = Archive::default();
    for directory in [
        "bin", "sbin", "dev", "proc", "sys", "mnt", "peek", "etc", "modules",
    ] {
        archive.directory(directory);
    }
    archive.character_device("dev/console", 5, 1);
    archive.program("init", include_bytes!("init.sh"));
    archive.program("slots.sh", include_bytes!("slots.sh"));
    archive.program("bin/busybox", &read(&program::find("busybox")));
    // An empty mtab keeps e2fsprogs from complaining about a missing one.
    archive.program("etc/mtab", b"");

    let list = read(&kernel_home.join("modules.list"));
    archive.program("modules.list", &list);
    for name in String::from_utf8_lossy(&list).lines() {
        archive.program(
            &format!("modules/{name}"),
            &read(&kernel_home.join("modules").join(name)),
        );
    }

    let mut libraries = BTreeSet::new();
    for name in ["mkfs.ext4", "e2fsck", "mkfs.xfs", "xfs_repair"] {
        let path = program::find(name);
        archive.program(&format!("sbin/{name}"), &read(&path));
        libraries.extend(libraries_of(&path));
    }
    add_libraries(&mut archive, &libraries);
    archive.finish()
}

/// Paths of the shared libraries that a program is loaded with, as ldd(1) says.
pub(super) fn libraries_of(path: &Path) -> Vec<String> {
    let said = program::run("ldd", &[path]).ok();
    let paths: Vec<String> = said
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
        .map(|word| word.trim_end_matches(':').to_owned())
        .collect();
    assert!(
        !paths.is_empty(),
        "ldd names no libraries for {}: {said}",
        path.display()
    );
    paths
}

/// Adds each library under the path that the loader looks for it.
fn add_libraries(archive: &mut Archive, libraries: &BTreeSet<String>) {
    let mut directories = BTreeSet::new();
    for library in libraries {
        for parent in Path::new(library).ancestors().skip(1) {
            let parent = parent.to_string_lossy().trim_start_matches('/').to_owned();
            if !parent.is_empty() {
                directories.insert(parent);
            }
        }
    }
    // In order, a directory comes before what is in it.
    for directory in &directories {
        archive.directory(directory);
    }
    for library in libraries {
        archive.program(library.trim_start_matches('/'), &read(Path::new(library)));
    }
}
