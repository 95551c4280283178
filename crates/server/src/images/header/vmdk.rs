//! Reads headers and descriptors of VMDK images (VMware's "Virtual Disk Format 5.0").

use super::{Extent, HeaderFields, bytes, number, some_bytes};
use api::Format;
use std::fs::File;
use std::path::PathBuf;

const SECTOR: u64 = 512;

/// Far above any descriptor.
const DESCRIPTOR_MAX: u64 = 1 << 20;

const NO_PARENT: &str = "ffffffff";

/// How extents of that kind begin (QEMU's `block/vmdk.c`).
const SESPARSE: [u8; 4] = 0xcafe_babe_u32.to_le_bytes();

pub(super) fn read(file: &File) -> Result<HeaderFields, String> {
    let head: [u8; 4] = bytes(file, 0).map_err(|_| String::new())?;
    match &head {
        b"KDMV" => sparse(file),
        b"# Di" => {
            let len = file.metadata().map_err(|error| error.to_string())?.len();
            if len > DESCRIPTOR_MAX {
                return Err("its descriptor is too long".to_owned());
            }
            let text = some_bytes(file, 0, len as usize)?;
            let descriptor = Descriptor::of(&text);
            let extents = descriptor.extents()?;
            if extents.is_empty() {
                return Err("its descriptor names no extents".to_owned());
            }
            let mut lens = extents.iter().map(|extent| extent.sectors);
            let sectors = lens.try_fold(0u64, |sum, len| sum.checked_add(len));
            let size_bytes = size(sectors.unwrap_or(u64::MAX))?;
            let extents = extents.into_iter().map(|part| {
                let flat_end = part.flat_at.map(|at| at.saturating_add(part.sectors));
                Ok(Extent {
                    name: part.name,
                    len_bytes: flat_end.map_or(Ok(0), size)?,
                    is_flat: flat_end.is_some(),
                })
            });
            Ok(HeaderFields {
                size_bytes,
                extents: extents.collect::<Result<_, String>>()?,
                backing: descriptor.parent()?,
            })
        }
        _ => Err(String::new()),
    }
}

/// A disk in one file, with its descriptor inside.
fn sparse(file: &File) -> Result<HeaderFields, String> {
    let head: [u8; 64] = bytes(file, 0)?;
    let u64_at = |at: usize| number!(u64, from_le_bytes, head, at);
    let (capacity, at, len) = (u64_at(12), u64_at(28), u64_at(36));
    if capacity == 0 {
        // Its descriptor would count instead, with files that that one names.
        return Err("its header says that it is empty".to_owned());
    }
    let descriptor = match (at, len) {
        (0, _) | (_, 0) => Vec::new(),
        _ if len > DESCRIPTOR_MAX / SECTOR || at > u64::MAX / SECTOR => {
            return Err("its descriptor is damaged".to_owned());
        }
        _ => some_bytes(file, at * SECTOR, (len * SECTOR) as usize)?,
    };
    Ok(HeaderFields {
        size_bytes: size(capacity)?,
        extents: Vec::new(),
        backing: Descriptor::of(&descriptor).parent()?,
    })
}

/// Whether QEMU takes an extent for what it is, and opens no other file for it.
///
/// QEMU looks at the header of an extent that is not flat. One that says that it is empty has a
/// descriptor of its own, and QEMU opens the files that this one names, whatever they are.
///
/// # Errors
/// What it is.
pub(super) fn check_extent(file: &File) -> Result<(), String> {
    let head: [u8; 20] = bytes(file, 0).map_err(|_| "has no header".to_owned())?;
    let capacity = number!(u64, from_le_bytes, head, 12);
    match &head[..4] {
        b"KDMV" if capacity == 0 => Err("says that it is empty".to_owned()),
        b"KDMV" | b"COWD" => Ok(()),
        magic if magic == SESPARSE => Ok(()),
        _ => Err("has no header of a sparse extent".to_owned()),
    }
}

fn size(sectors: u64) -> Result<u64, String> {
    let too_large = || format!("it claims a size of {sectors} sectors, which no disk has");
    sectors.checked_mul(SECTOR).ok_or_else(too_large)
}

/// A part of a disk, in a file of its own.
struct Part {
    sectors: u64,
    name: PathBuf,
    /// Where it begins, in sectors, when it has nothing but the bytes of the disk.
    flat_at: Option<u64>,
}

struct Descriptor {
    text: String,
}

impl Descriptor {
    fn of(bytes: &[u8]) -> Self {
        let end = bytes.iter().position(|byte| *byte == 0);
        let bytes = &bytes[..end.unwrap_or(bytes.len())];
        Descriptor {
            text: String::from_utf8_lossy(bytes).into_owned(),
        }
    }

    fn value(&self, key: &str) -> Option<&str> {
        let mut lines = self.text.lines();
        lines.find_map(|line| {
            let (name, value) = line.split_once('=')?;
            let is_key = name.trim().eq_ignore_ascii_case(key);
            is_key.then(|| value.trim().trim_matches('"'))
        })
    }

    fn parent(&self) -> Result<Option<(PathBuf, Format)>, String> {
        match self.value("parentCID") {
            None => Ok(None),
            Some(NO_PARENT) => Ok(None),
            Some(_) => match self.value("parentFileNameHint") {
                Some(name) if !name.is_empty() => Ok(Some((name.into(), Format::Vmdk))),
                _ => Err("it has a parent and does not say which".to_owned()),
            },
        }
    }

    /// The parts. Whatever is quoted and no value of a key is
    /// taken for one, so that nothing is missed that another reader would open.
    fn extents(&self) -> Result<Vec<Part>, String> {
        let mut extents = Vec::new();
        for line in self.text.lines() {
            let Some((before, rest)) = line.split_once('"') else {
                continue;
            };
            if before.trim_end().ends_with('=') {
                continue;
            }
            let words: Vec<&str> = before.split_whitespace().collect();
            let ["RW" | "RDONLY", sectors, kind] = words[..] else {
                return Err(format!(
                    "its descriptor has a line that is not known: {line:?}"
                ));
            };
            if !["FLAT", "SPARSE", "VMFS", "VMFSSPARSE", "SESPARSE"].contains(&kind) {
                return Err(format!("extents of kind {kind:?} are not supported"));
            }
            let (name, after) = rest.split_once('"').unwrap_or_default();
            if name.is_empty() || name.contains('/') {
                return Err(format!("its extent {name:?} has to be a file beside it"));
            }
            let is_flat = ["FLAT", "VMFS"].contains(&kind);
            extents.push(Part {
                sectors: count(sectors)?,
                name: name.into(),
                flat_at: match after.split_whitespace().next().filter(|_| is_flat) {
                    Some(at) => Some(count(at)?),
                    None => is_flat.then_some(0),
                },
            });
        }
        Ok(extents)
    }
}

fn count(text: &str) -> Result<u64, String> {
    let damaged = |_| format!("its descriptor is damaged: {text:?} is no number of sectors");
    text.parse().map_err(damaged)
}
