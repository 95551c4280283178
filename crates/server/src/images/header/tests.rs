//! Tests of headers that make false claims.

use super::*;
use api::Format;
use std::fs;

const MIB: usize = 1 << 20;

struct Home {
    dir: tempfile::TempDir,
    allowed: Directories,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let allowed = Directories::new(vec![dir.path().to_owned()]);
        Home { dir, allowed }
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.dir.path().join(name), bytes).unwrap();
    }

    fn inspect(&self, name: &str, format: Option<Format>) -> Result<Layer, String> {
        let path = self.dir.path().join(name);
        inspect(&self.allowed, &path, format).map_err(|error| error.context)
    }

    #[track_caller]
    fn refused(&self, name: &str, why: &str) {
        let said = self.inspect(name, None).map(|_| ()).unwrap_err();
        assert!(said.contains(why), "{name}: {said}");
    }
}

/// The header of a qcow2 image of 1 MiB.
fn qcow2(backing: Option<(&str, &str)>) -> Vec<u8> {
    let mut head = vec![0; 4096];
    head[..8].copy_from_slice(b"QFI\xfb\0\0\0\x03");
    head[23] = 16;
    head[24..32].copy_from_slice(&(MIB as u64).to_be_bytes());
    head[103] = 104;
    if let Some((name, format)) = backing {
        head[8..16].copy_from_slice(&1024u64.to_be_bytes());
        head[16..20].copy_from_slice(&(name.len() as u32).to_be_bytes());
        head[1024..1024 + name.len()].copy_from_slice(name.as_bytes());
        head[104..108].copy_from_slice(&0xe279_2acau32.to_be_bytes());
        head[108..112].copy_from_slice(&(format.len() as u32).to_be_bytes());
        head[112..112 + format.len()].copy_from_slice(format.as_bytes());
        if format.is_empty() {
            head[104..108].fill(0);
        }
    }
    head
}

#[test]
fn a_chain_is_followed_file_by_file() {
    let home = Home::new();
    home.put("base.raw", &[7; 512]);
    home.put("mid", &qcow2(Some(("base.raw", "raw"))));
    home.put("top.qcow2", &qcow2(Some(("./mid", "qcow2"))));
    let top = home.inspect("top.qcow2", None).unwrap();
    let names: Vec<_> = top
        .files()
        .iter()
        .map(|path| path.file_name().unwrap())
        .collect();
    assert_eq!(names, ["top.qcow2", "mid", "base.raw"]);
    assert_eq!(top.size_bytes, MIB as u64);
}

#[test]
fn what_an_image_may_not_lie_upon() {
    let home = Home::new();
    home.put("base", &[0; 512]);
    for (name, format, why) in [
        ("/etc/passwd", "raw", "images may be under"),
        ("../../etc/passwd", "raw", "images may be under"),
        ("none", "raw", "No such file"),
        ("json:{}", "raw", "plain names"),
        ("nbd://host/x", "raw", "plain names"),
        ("base", "vmdk", "supported are raw and qcow2"),
        ("base", "", "does not say of which format"),
        ("top.qcow2", "qcow2", "lie upon each other"),
        ("base", "qcow2", "no qcow2 image"),
    ] {
        home.put("top.qcow2", &qcow2(Some((name, format))));
        home.refused("top.qcow2", why);
    }
}

#[test]
fn a_link_does_not_lead_out() {
    let home = Home::new();
    std::os::unix::fs::symlink("/etc/passwd", home.dir.path().join("base")).unwrap();
    home.put("top.qcow2", &qcow2(Some(("base", "raw"))));
    home.refused("top.qcow2", "images may be under");
}

#[test]
fn features_that_open_or_hide_more_are_refused() {
    let home = Home::new();
    for (at, value, why) in [
        (79, 4, "its data is in another file"),
        (79, 2, "marked as corrupt"),
        (35, 1, "encrypted"),
        (7, 9, "version 9"),
        (19, 1, ""),
    ] {
        let mut head = qcow2(None);
        head[at] = value;
        home.put("top.qcow2", &head);
        if !why.is_empty() {
            home.refused("top.qcow2", why);
        }
    }
    for len in [0, 3, 4, 50, 103] {
        home.put("top.qcow2", &qcow2(None)[..len]);
        assert!(
            home.inspect("top.qcow2", Some(Format::Qcow2)).is_err(),
            "{len}"
        );
    }
}

#[test]
fn a_format_is_never_guessed_against_the_name() {
    let home = Home::new();
    let head = qcow2(Some(("/etc/passwd", "raw")));
    for name in ["guest.raw", "guest.img", "guest", "guest.vhdx"] {
        home.put(name, &head);
        home.refused(name, "--format");
    }
    // Said to be raw, it is a disk like any other.
    let raw = home.inspect("guest.raw", Some(Format::Raw)).unwrap();
    assert_eq!((raw.format, raw.size_bytes), (Format::Raw, 4096));
    assert!(!raw.is_unrecognised);
    home.put("plain.qcow2", &[0; 4096]);
    home.refused("plain.qcow2", "--format");
    home.put("plain", &[0; 4096]);
    let plain = home.inspect("plain", None).unwrap();
    assert_eq!((plain.format, plain.is_unrecognised), (Format::Raw, true));
    home.put("plain.raw", &[0; 4096]);
    assert!(!home.inspect("plain.raw", None).unwrap().is_unrecognised);
}

fn vmdk(extents: &str) -> String {
    format!(
        "# Disk DescriptorFile\nversion=1\nCID=1\nparentCID=ffffffff\ncreateType=\"x\"\n\n\
         {extents}\n\nddb.adapterType = \"ide\"\n"
    )
}

#[test]
fn extents_are_plain_files_beside() {
    let home = Home::new();
    home.put("flat", &[0; 8192]);
    home.put(
        "disk.vmdk",
        vmdk("RW 8 FLAT \"flat\" 0\nRW 8 FLAT \"flat\" 8").as_bytes(),
    );
    let disk = home.inspect("disk.vmdk", None).unwrap();
    assert_eq!((disk.size_bytes, disk.extents.len()), (8192, 2));
    for (extents, why) in [
        ("RW 8 FLAT \"/etc/passwd\" 0", "beside"),
        ("RW 8 FLAT \"../x\" 0", "beside"),
        ("RW 8 FLAT \"none\" 0", "No such file"),
        ("RW 8 FLAT \"json:{}\" 0", "plain names"),
        ("RW 8 FLAT \"flat\" 9", "cut short"),
        ("RW 17 FLAT \"flat\"", "cut short"),
        ("RW 8 VMFSRDM \"flat\"", "not supported"),
        ("RW\n8\nFLAT\n\"/etc/passwd\"", "not known"),
        ("x y z \"/etc/passwd\"", "not known"),
        ("RW x FLAT \"flat\" 0", "no number"),
        ("", "names no extents"),
        (
            "RW 18446744073709551615 SPARSE \"flat\"",
            "which no disk has",
        ),
    ] {
        home.put("disk.vmdk", vmdk(extents).as_bytes());
        home.refused("disk.vmdk", why);
    }
    let parent = vmdk("RW 8 FLAT \"flat\" 0").replace("ffffffff", "12345678");
    home.put("disk.vmdk", parent.as_bytes());
    home.refused("disk.vmdk", "does not say which");
    let named = format!("{parent}parentFileNameHint=\"/etc/passwd\"\n");
    home.put("disk.vmdk", named.as_bytes());
    home.refused("disk.vmdk", "images may be under");
}

/// A descriptor that names an extent, whose own descriptor names any file: QEMU would open that.
#[test]
fn a_sparse_extent_with_a_descriptor_of_its_own_is_refused() {
    let home = Home::new();
    let mut head = vec![0; 1024];
    head[..4].copy_from_slice(b"KDMV");
    head[28..36].copy_from_slice(&1u64.to_le_bytes());
    head[36..44].copy_from_slice(&1u64.to_le_bytes());
    let inner = "# Disk DescriptorFile\nRW 8 FLAT \"/etc/passwd\" 0\n";
    head[512..512 + inner.len()].copy_from_slice(inner.as_bytes());
    for kind in ["SPARSE", "VMFSSPARSE", "SESPARSE"] {
        home.put("inner.vmdk", &head);
        let outer = vmdk(&format!("RW 8 {kind} \"inner.vmdk\""));
        home.put("disk.vmdk", outer.as_bytes());
        home.refused(
            "disk.vmdk",
            "its extent \"inner.vmdk\" says that it is empty",
        );
        // As a text of its own, too.
        home.put("inner.vmdk", vmdk("RW 8 FLAT \"/etc/passwd\" 0").as_bytes());
        home.refused("disk.vmdk", "no header of a sparse extent");
    }
    head[12..20].copy_from_slice(&8u64.to_le_bytes());
    home.put("inner.vmdk", &head);
    let outer = vmdk("RW 8 SPARSE \"inner.vmdk\"");
    home.put("disk.vmdk", outer.as_bytes());
    let disk = home.inspect("disk.vmdk", None).unwrap();
    assert_eq!((disk.size_bytes, disk.extents.len()), (4096, 1));
}

#[test]
fn other_formats_are_not_taken_for_raw_disks() {
    let home = Home::new();
    let at = |at: usize, magic: &[u8]| {
        let mut bytes = vec![0; 4096];
        bytes[at..at + magic.len()].copy_from_slice(magic);
        bytes
    };
    for (name, bytes, what) in [
        ("disk", at(64, b"\x7f\x10\xda\xbe"), "a VDI image"),
        ("disk.img", at(0, b"QED\0"), "a QED image"),
        ("disk.raw", at(0, b"WithouFreSpacExt"), "a Parallels image"),
        ("disk", at(0, b"LUKS\xba\xbe"), "a LUKS container"),
        ("disk.img", at(257, b"ustar"), "a tar archive"),
        ("disk.img", at(0, b"\x1f\x8b\x08"), "a gzip file"),
        ("disk.img", at(0, b"conectix"), "a VHD image"),
        ("disk.img", at(4096 - 512, b"conectix"), "a VHD image"),
        ("disk.ova", at(0, b""), "an OVA archive"),
        ("disk.vhd", at(0, b""), "a VHD image"),
    ] {
        home.put(name, &bytes);
        home.refused(name, &format!("it looks like {what}"));
        let raw = home.inspect(name, Some(Format::Raw)).unwrap();
        assert_eq!(raw.size_bytes, 4096, "when it is said");
    }
    home.put("short", b"x");
    assert_eq!(home.inspect("short", None).unwrap().size_bytes, 1);
}

#[test]
fn an_empty_sparse_vmdk_is_refused() {
    let home = Home::new();
    let mut head = vec![0; 512];
    head[..4].copy_from_slice(b"KDMV");
    home.put("disk.vmdk", &head);
    home.refused("disk.vmdk", "says that it is empty");
    head[12..20].copy_from_slice(&(1u64 << 60).to_le_bytes());
    home.put("disk.vmdk", &head);
    home.refused("disk.vmdk", "which no disk has");
}
