//! Reads headers of qcow2 images (QEMU's `docs/interop/qcow2.txt`).

use super::{HeaderFields, bytes, number, some_bytes};
use api::Format;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Bits of "incompatible features".
const CORRUPT: u64 = 1 << 1;
const EXTERNAL_DATA: u64 = 1 << 2;

/// Header extensions.
const BACKING_FORMAT: u32 = 0xe279_2aca;
const END: u32 = 0;

/// What a name may have, in bytes, and what is looked through for extensions.
const NAME_MAX: u32 = 1023;
const EXTENSIONS_MAX: u64 = 64 << 10;

pub(super) fn read(file: &File) -> Result<HeaderFields, String> {
    let head: [u8; 104] = match bytes(file, 0) {
        Ok(head) if number!(u32, from_be_bytes, head, 0) == 0x5146_49fb => head,
        _ => return Err(String::new()),
    };
    let u32_at = |at: usize| number!(u32, from_be_bytes, head, at);
    let u64_at = |at: usize| number!(u64, from_be_bytes, head, at);
    let version = u32_at(4);
    let (features, extensions) = match version {
        2 => (0, 72),
        3 => (u64_at(72), u64::from(u32_at(100))),
        _ => {
            return Err(format!(
                "it is qcow2 of version {version}; known are 2 and 3"
            ));
        }
    };
    if features & EXTERNAL_DATA != 0 {
        return Err("its data is in another file, which is not supported".to_owned());
    }
    if features & CORRUPT != 0 {
        return Err("it is marked as corrupt; see `qemu-img check`".to_owned());
    }
    if u32_at(32) != 0 {
        return Err("it is encrypted; decrypt it first".to_owned());
    }
    let (name_at, name_len) = (u64_at(8), u32_at(16));
    let backing = match (name_at, name_len) {
        (0, _) => None,
        (_, 0 | NAME_MAX..) => return Err("the name of its backing file is damaged".to_owned()),
        (at, len) => {
            let name = some_bytes(file, at, len as usize)?;
            let name = PathBuf::from(OsStr::from_bytes(&name));
            let Some(format) = backing_format(file, extensions)? else {
                return Err(format!(
                    "it lies upon {name:?} and does not say of which format that is; see \
                     `qemu-img rebase -u -F`"
                ));
            };
            Some((name, format))
        }
    };
    Ok(HeaderFields {
        size_bytes: u64_at(24),
        extents: Vec::new(),
        backing,
    })
}

fn backing_format(file: &File, mut at: u64) -> Result<Option<Format>, String> {
    while at < EXTENSIONS_MAX {
        let head: [u8; 8] = bytes(file, at)?;
        let kind = number!(u32, from_be_bytes, head, 0);
        let len = number!(u32, from_be_bytes, head, 4);
        if kind == END {
            return Ok(None);
        }
        if kind == BACKING_FORMAT {
            if len > 16 {
                return Err("the format of its backing file is damaged".to_owned());
            }
            return match some_bytes(file, at + 8, len as usize)?.as_slice() {
                b"raw" => Ok(Some(Format::Raw)),
                b"qcow2" => Ok(Some(Format::Qcow2)),
                other => {
                    let other = String::from_utf8_lossy(other);
                    Err(format!(
                        "its backing file is {other:?}; supported are raw and qcow2"
                    ))
                }
            };
        }
        at += 8 + u64::from(len).next_multiple_of(8);
    }
    Err("its header extensions don't end".to_owned())
}
