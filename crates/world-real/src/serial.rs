//! Reads the serial number of a block device from sysfs.
//!
//! Kinds of devices keep it in different places: NVMe and MMC in `device/serial`, virtio in
//! `serial`, SCSI and SATA in the unit serial number page that the kernel has read
//! (`device/vpd_pg80`, SPC-4 clause 7.8.19). Devices without one may have a worldwide name, in
//! `wwid`.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The header of a page of vital product data.
const PAGE_HEADER_BYTES: usize = 4;

/// Longer ones are cut off: they are for people.
const SERIAL_BYTES_MAX: usize = 128;

/// The serial number of the block device of which this is the node; none of a file.
pub(super) fn of(node: &Metadata) -> Option<String> {
    if !node.file_type().is_block_device() {
        return None;
    }
    in_sysfs(&about_device(node))
}

/// What sysfs has of the block device of which this is the node.
pub fn about_device(node: &Metadata) -> PathBuf {
    let (major, minor) = (libc::major(node.rdev()), libc::minor(node.rdev()));
    PathBuf::from(format!("/sys/dev/block/{major}:{minor}"))
}

/// What the directory of a device says, or of the disk that a partition is in.
fn in_sysfs(device: &Path) -> Option<String> {
    let disk = match device.join("partition").exists() {
        true => device.join(".."),
        false => device.to_owned(),
    };
    let page = || unit_serial(&fs::read(disk.join("device/vpd_pg80")).ok()?);
    let line = |attribute: &str| printable(&fs::read(disk.join(attribute)).ok()?);
    line("device/serial")
        .or_else(|| line("serial"))
        .or_else(page)
        .or_else(|| line("device/wwid"))
        .or_else(|| line("wwid"))
}

/// The serial number in a unit serial number page.
fn unit_serial(page: &[u8]) -> Option<String> {
    let length = u16::from_be_bytes([*page.get(2)?, *page.get(3)?]);
    let text = page.get(PAGE_HEADER_BYTES..)?;
    printable(text.get(..usize::from(length)).unwrap_or(text))
}

/// The text without what pads it; none where nothing is left.
fn printable(bytes: &[u8]) -> Option<String> {
    let kept = bytes.iter().filter(|byte| (b' '..=b'~').contains(byte));
    let text: String = kept.map(|byte| char::from(*byte)).collect();
    let text = text.trim();
    let text = &text[..text.len().min(SERIAL_BYTES_MAX)];
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory as of a device in sysfs, with this in it.
    fn device(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        dir
    }

    #[test]
    fn each_kind_of_device_tells_its_serial_number() {
        let page = b"\0\x80\0\x08  ZX81  and what is behind the page";
        for (files, found) in [
            (&[("device/serial", &b"S4EV  \n"[..])][..], Some("S4EV")),
            (&[("serial", b"vol-1")], Some("vol-1")),
            (&[("device/vpd_pg80", page)], Some("ZX81")),
            (
                &[("device/vpd_pg80", b"\0\x80\0\x10cut"), ("wwid", b"w")],
                Some("cut"),
            ),
            (
                &[("serial", b"\n"), ("wwid", b"eui.0025\n")],
                Some("eui.0025"),
            ),
            (&[("device/vpd_pg80", b"\0\x80")], None),
            (&[("size", b"8")], None),
        ] {
            let dir = device(files);
            assert_eq!(in_sysfs(dir.path()).as_deref(), found, "{files:?}");
        }
    }

    #[test]
    fn a_partition_has_the_serial_number_of_its_disk() {
        let disk = device(&[("serial", b"vol-1"), ("vda1/partition", b"1")]);
        let found = in_sysfs(&disk.path().join("vda1"));
        assert_eq!(found.as_deref(), Some("vol-1"));
    }

    #[test]
    fn a_file_has_none() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(of(&file.path().metadata().unwrap()), None);
    }
}
