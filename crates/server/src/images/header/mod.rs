//! Reads the header of an image file, and opens no other file that the header names.
//!
//! Programs that open an image open what it names, too: backing files, extents, and
//! whatever a name such as `json:` stands for. An image that a guest wrote, or a stranger
//! sent, may name any file of this machine. So headers are read here first, by code that
//! opens what is allowed and nothing else, and what is opened later is said file by file.
//!
//! Invariants:
//! - A format is never guessed against what the user said: a raw disk whose guest has
//!   written the header of a qcow2 image onto it stays a raw disk.
//! - Every file of an image is under an allowed directory.
//! - Nothing that a header claims makes us read or keep more than a bounded amount.

mod foreign;
mod qcow2;
pub(crate) mod vhdx;
mod vmdk;

pub(crate) use vhdx::{Block, Vhdx};

use crate::array::ArrayError;
use crate::jobs::{Directories, invalid};
use api::Format;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Files that lie upon each other, at most.
const DEPTH_MAX: usize = 32;

/// A file of an image, and the one below it, which has what it has not.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    /// Nobody said the format, and neither name nor content has one: it is taken as raw.
    pub(crate) is_unrecognised: bool,
    /// Size of the disk, as the header claims.
    pub(crate) size_bytes: u64,
    /// Files that it consists of beside its own.
    pub(crate) extents: Vec<PathBuf>,
    pub(crate) backing: Option<Box<Layer>>,
}

/// What one file says.
struct HeaderFields {
    size_bytes: u64,
    /// Other files.
    extents: Vec<Extent>,
    /// Name, as written, and format where that is said.
    backing: Option<(PathBuf, Format)>,
}

/// A file that an image consists of beside its own.
struct Extent {
    name: PathBuf,
    /// How long it is at least.
    len_bytes: u64,
    /// Whether it holds nothing but bytes of the disk; QEMU reads the headers of others.
    is_flat: bool,
}

impl Layer {
    /// All files, from the top down.
    pub(crate) fn files(&self) -> Vec<&Path> {
        let mut files = vec![self.path.as_path()];
        files.extend(self.extents.iter().map(PathBuf::as_path));
        if let Some(backing) = &self.backing {
            files.extend(backing.files());
        }
        files
    }
}

/// Looks at the image in `path`, of `format` if the user says so.
///
/// # Errors
/// It isn't an image of the format, it can't be told which one it is, or it names what is
/// not allowed.
pub(crate) fn inspect(
    allowed: &Directories,
    path: &Path,
    format: Option<Format>,
) -> Result<Layer, ArrayError> {
    let path = allowed.existing(path)?;
    layer(allowed, path, format, DEPTH_MAX)
}

fn layer(
    allowed: &Directories,
    path: PathBuf,
    format: Option<Format>,
    depth: usize,
) -> Result<Layer, ArrayError> {
    let shown = path.display().to_string();
    let failed = |why: String| invalid(format!("{shown}: {why}"));
    if depth == 0 {
        return Err(failed(format!(
            "more than {DEPTH_MAX} files lie upon each other"
        )));
    }
    let file = File::open(&path).map_err(|error| failed(error.to_string()))?;
    let known = match format {
        Some(format) => Some(format),
        None => tell(&path, &file).map_err(failed)?,
    };
    let format = known.unwrap_or(Format::Raw);
    let beside = |name: &Path| beside(allowed, &path, name);
    let said = match format {
        Format::Raw => raw(&file),
        Format::Qcow2 => qcow2::read(&file),
        Format::Vhdx => vhdx::read(&file),
        Format::Vmdk => vmdk::read(&file),
    };
    let said = said.map_err(|why| match why.is_empty() {
        true => failed(format!("it is no {format} image")),
        false => failed(why),
    })?;
    let extent = |extent: &Extent| {
        let (name, path) = (&extent.name, beside(&extent.name)?);
        let file = File::open(&path).map_err(|error| failed(error.to_string()))?;
        let found = file.metadata().map_err(|error| failed(error.to_string()))?;
        if found.len() < extent.len_bytes {
            return Err(failed(format!("its extent {name:?} was cut short")));
        }
        if !extent.is_flat {
            let checked = vmdk::check_extent(&file);
            checked.map_err(|why| failed(format!("its extent {name:?} {why}")))?;
        }
        Ok(path)
    };
    let extents = said.extents.iter().map(extent);
    let extents = extents.collect::<Result<Vec<_>, _>>()?;
    let backing = match said.backing {
        None => None,
        Some((name, format)) => {
            let below = beside(&name)?;
            Some(Box::new(layer(allowed, below, Some(format), depth - 1)?))
        }
    };
    Ok(Layer {
        path,
        format,
        is_unrecognised: known.is_none(),
        size_bytes: said.size_bytes,
        extents,
        backing,
    })
}

/// The file that an image calls `name`.
fn beside(allowed: &Directories, image: &Path, name: &Path) -> Result<PathBuf, ArrayError> {
    let failed = |why: &str| {
        let (image, name) = (image.display(), name.display());
        Err(invalid(format!(
            "{image}: it lies upon the file {name:?}: {why}"
        )))
    };
    let text = name.to_string_lossy();
    // What stands for something other than a file has a colon before any slash.
    if text
        .split('/')
        .next()
        .is_some_and(|first| first.contains(':'))
    {
        return failed("allowed are plain names of files");
    }
    let directory = image.parent().unwrap_or(Path::new("/"));
    let mut path = PathBuf::new();
    for part in directory.join(name).components() {
        match part {
            std::path::Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
    }
    match allowed.existing(&path) {
        Ok(path) => Ok(path),
        Err(error) => failed(&error.context),
    }
}

fn raw(file: &File) -> Result<HeaderFields, String> {
    let found = file.metadata().map_err(|error| error.to_string())?;
    Ok(HeaderFields {
        size_bytes: found.len(),
        extents: Vec::new(),
        backing: None,
    })
}

/// The format of an image when nobody says: its name and its content have to agree. None where
/// neither has one.
fn tell(path: &Path, file: &File) -> Result<Option<Format>, String> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let ending = ending.unwrap_or_default().to_ascii_lowercase();
    let named = match ending.as_str() {
        "raw" | "img" | "iso" => Some(Format::Raw),
        "qcow2" => Some(Format::Qcow2),
        "vhdx" | "avhdx" => Some(Format::Vhdx),
        "vmdk" => Some(Format::Vmdk),
        _ => None,
    };
    let mut head = [0; foreign::HEAD_BYTES];
    let got = file
        .read_at(&mut head, 0)
        .map_err(|error| error.to_string())?;
    if let Some(other) = foreign::name_of(&head[..got], &foreign::tail(file)?, &ending) {
        return Err(format!(
            "it looks like {other}, which can't be imported; make a qcow2 image of it (qemu-img \
             convert), or say --format raw if its bytes are those of the disk"
        ));
    }
    let looks = match &head[..got] {
        head if head.starts_with(b"QFI\xfb") => Format::Qcow2,
        head if head.starts_with(b"vhdxfile") => Format::Vhdx,
        head if head.starts_with(b"KDMV") || head.starts_with(b"# Disk DescriptorFile") => {
            Format::Vmdk
        }
        _ => Format::Raw,
    };
    match named {
        Some(named) if named == looks => Ok(Some(named)),
        None if looks == Format::Raw => Ok(None),
        Some(named) => Err(format!(
            "by its name it is {named}, by its content {looks}; say which with --format"
        )),
        None => Err(format!(
            "by its content it is {looks}, but a raw disk may hold that, too; say which with \
             --format"
        )),
    }
}

/// `N` bytes of a header.
fn bytes<const N: usize>(file: &File, at: u64) -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    let read = file.read_exact_at(&mut bytes, at);
    read.map_err(|error| format!("its header can't be read at byte {at}: {error}"))?;
    Ok(bytes)
}

/// As [`bytes`], so many as are asked for; no more than a few MiB.
fn some_bytes(file: &File, at: u64, len: usize) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; len];
    let read = file.read_exact_at(&mut bytes, at);
    read.map_err(|error| format!("its header can't be read at byte {at}: {error}"))?;
    Ok(bytes)
}

/// A number at a place of a header that has it for sure.
macro_rules! number {
    ($type:ty, $order:ident, $from:expr, $at:expr) => {{
        let mut field = [0; size_of::<$type>()];
        field.copy_from_slice(&$from[$at..$at + size_of::<$type>()]);
        <$type>::$order(field)
    }};
}
use number;

#[cfg(test)]
mod tests;
