//! Recognizes images of formats that cannot be imported.
//!
//! Without this check Ashlar would import such an image as a raw disk, without a word.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// As much of the beginning of a file as is looked at.
pub(super) const HEAD_BYTES: usize = 512;

/// As much of its end.
const TAIL_BYTES: usize = 512;

/// What files of some formats have, and where.
const MAGICS: [(usize, &[u8], &str); 15] = [
    (0, b"conectix", "a VHD image"),
    (0, b"COWD", "a VMDK extent without its descriptor"),
    (0, b"QED\0", "a QED image"),
    (0, b"WithoutFreeSpace", "a Parallels image"),
    (0, b"WithouFreSpacExt", "a Parallels image"),
    (0, b"LUKS\xba\xbe", "a LUKS container"),
    (0, b"Bochs Virtual HD Image", "a Bochs image"),
    (0, b"PK\x03\x04", "a ZIP archive"),
    (0, b"\x1f\x8b", "a gzip file"),
    (0, b"\xfd7zXZ\0", "an xz file"),
    (0, b"\x28\xb5\x2f\xfd", "a Zstandard file"),
    (0, b"BZh", "a bzip2 file"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (64, b"\x7f\x10\xda\xbe", "a VDI image"),
    (257, b"ustar", "a tar archive, as OVA files are"),
];

/// What files with some names are, whatever is in them.
const ENDINGS: [(&str, &str); 9] = [
    ("vhd", "a VHD image"),
    ("vdi", "a VDI image"),
    ("ova", "an OVA archive"),
    ("ovf", "an OVF description"),
    ("qed", "a QED image"),
    ("hdd", "a Parallels image"),
    ("hds", "a Parallels image"),
    ("luks", "a LUKS container"),
    ("dmg", "a DMG image"),
];

/// The end of a file.
///
/// # Errors
/// It can't be read.
pub(super) fn tail(file: &File) -> Result<Vec<u8>, String> {
    let said = |error: std::io::Error| error.to_string();
    let len = file.metadata().map_err(said)?.len();
    let mut tail = vec![0; TAIL_BYTES.min(usize::try_from(len).unwrap_or(TAIL_BYTES))];
    let at = len - tail.len() as u64;
    file.read_exact_at(&mut tail, at).map_err(said)?;
    Ok(tail)
}

/// What a file is by its beginning, its end and the ending of its name, if it is of a format
/// that is not imported.
pub(super) fn name_of(head: &[u8], tail: &[u8], ending: &str) -> Option<&'static str> {
    let has = |(at, magic, _): &&(usize, &[u8], &str)| {
        head.get(*at..).is_some_and(|rest| rest.starts_with(magic))
    };
    let by_content = MAGICS.iter().find(has).map(|(.., name)| *name);
    // A VHD of fixed size has all it says of itself at its end.
    let by_tail = tail.starts_with(b"conectix").then_some("a VHD image");
    let by_name = || ENDINGS.iter().find(|(known, _)| *known == ending);
    by_content
        .or(by_tail)
        .or_else(|| by_name().map(|(_, name)| *name))
}
