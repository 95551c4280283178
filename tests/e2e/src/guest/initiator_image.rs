//! The root file system of a guest that is an iSCSI initiator: Linux' own, with the
//! programs that administrators use, out of the distribution's packages.

use super::cpio::Archive;
use super::initramfs::{Image, libraries_of, read};
use crate::program;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Programs beside busybox, all of which `make setup` installs.
const PROGRAMS: [&str; 15] = [
    "iscsid",
    "iscsiadm",
    "multipathd",
    "multipath",
    "mpathpersist",
    "kpartx",
    "dmsetup",
    "udevadm",
    "mkfs.ext4",
    "e2fsck",
    "resize2fs",
    "mkfs.xfs",
    "xfs_repair",
    "xfs_growfs",
    "fstrim",
];

/// What udev goes by, of all its rules: disks, and maps of them. Not `60-block.rules`,
/// which has a disk read again whenever somebody has written to it: what a unit has to
/// say once would be said to that reader.
const RULES: [&str; 8] = [
    "50-udev-default.rules",
    "55-dm.rules",
    "56-dm-mpath.rules",
    "56-dm-parts.rules",
    "60-multipath.rules",
    "60-persistent-storage.rules",
    "60-persistent-storage-dm.rules",
    "95-dm-notify.rules",
];

/// Groups that the rules name.
const GROUPS: [&str; 13] = [
    "root", "tty", "dialout", "kmem", "disk", "lp", "cdrom", "tape", "audio", "video", "input",
    "sgx", "kvm",
];

impl Image {
    /// Builds the one for [`Guest::boot_initiator`](super::Guest::boot_initiator);
    /// `load` is the program that writes to its disks.
    ///
    /// # Panics
    /// When anything is missing; the message names `make setup`.
    pub fn build_initiator(load: &Path) -> Self {
        Image::with(|kernel_home| root(kernel_home, load).archive())
    }
}

/// Files by path, without the leading slash.
#[derive(Default)]
struct Root {
    files: BTreeMap<String, Vec<u8>>,
    libraries: BTreeSet<String>,
}

fn root(kernel_home: &Path, load: &Path) -> Root {
    let mut root = Root::default();
    root.put("init", include_bytes!("initiator.sh"));
    root.put("bin/busybox", &read(&program::find("busybox")));
    for name in PROGRAMS {
        root.add_program(&format!("sbin/{name}"), &program::find(name));
    }
    root.add_program("sbin/disk-load", load);
    for path in sg3_utils() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        root.add_program(&format!("sbin/{name}"), &path);
    }
    root.add_udev();
    for plugin in entries(Path::new("/lib/multipath")) {
        // They are loaded with what multipathd is loaded with.
        root.put(&plugin.to_string_lossy()[1..], &read(&plugin));
    }
    root.add_settings();
    let list = read(&kernel_home.join("initiator.list"));
    for name in String::from_utf8_lossy(&list).lines() {
        let module = read(&kernel_home.join("modules").join(name));
        root.put(&format!("modules/{name}"), &module);
    }
    root.put("modules.list", &list);
    root
}

impl Root {
    fn put(&mut self, path: &str, content: &[u8]) {
        self.files.insert(path.to_owned(), content.to_owned());
    }

    /// A program or plugin, and what it is loaded with.
    fn add_program(&mut self, path: &str, from: &Path) {
        self.put(path, &read(from));
        self.libraries.extend(libraries_of(from));
    }

    /// One program is client and daemon; rules start a third.
    fn add_udev(&mut self) {
        let daemon = Path::new("/lib/systemd/systemd-udevd");
        self.add_program("sbin/systemd-udevd", daemon);
        self.add_program("lib/udev/scsi_id", Path::new("/lib/udev/scsi_id"));
        for name in RULES {
            let path = format!("lib/udev/rules.d/{name}");
            let rules = read(&Path::new("/").join(&path));
            self.put(&path, &rules);
        }
    }

    fn add_settings(&mut self) {
        self.put("etc/iscsi/iscsid.conf", include_bytes!("iscsid.conf"));
        self.put("etc/multipath.conf", include_bytes!("multipath.conf"));
        self.put("etc/passwd", b"root:x:0:0:root:/:/bin/sh\n");
        let mut groups = String::new();
        for (number, name) in GROUPS.iter().enumerate() {
            groups += &format!("{name}:x:{number}:\n");
        }
        self.put("etc/group", groups.as_bytes());
        // An empty mtab keeps e2fsprogs from complaining about a missing one.
        self.put("etc/mtab", b"");
    }

    fn archive(mut self) -> Vec<u8> {
        for library in std::mem::take(&mut self.libraries) {
            let content = read(Path::new(&library));
            self.put(library.trim_start_matches('/'), &content);
        }
        let mut archive = Archive::default();
        let empty = ["dev", "proc", "sys", "run", "tmp", "mnt", "etc/multipath"];
        let mut directories: BTreeSet<String> = empty.map(str::to_owned).into();
        for path in self.files.keys().map(Path::new).chain(empty.map(Path::new)) {
            let parents = path.ancestors().skip(1);
            directories.extend(parents.map(|parent| parent.to_string_lossy().into_owned()));
        }
        directories.remove("");
        // In order, a directory comes before what is in it.
        for directory in &directories {
            archive.directory(directory);
        }
        archive.character_device("dev/console", 5, 1);
        for (path, content) in &self.files {
            archive.program(path, content);
        }
        archive.finish()
    }
}

/// The programs of the package that are no scripts.
fn sg3_utils() -> Vec<PathBuf> {
    let directory = program::find("sg_vpd");
    let directory = directory.parent().expect("it is in a directory");
    let mut programs = entries(directory);
    programs.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("sg_")
    });
    programs
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("read {}: {error}; run: make setup", directory.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry can be read").path())
        .collect();
    paths.sort();
    paths
}
