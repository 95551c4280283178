//! Reads VHDX images, also differencing disks (Microsoft's [MS-VHDX]).
//!
//! QEMU reads no differencing disks, and does not say where a dynamic disk has no data.
//!
//! Nothing is written. A disk whose log holds changes that were not put in place is
//! refused, since it is not what it seems.

use super::{HeaderFields, bytes, number, some_bytes};
use api::Format;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;
const HEADERS: [u64; 2] = [64 << 10, 128 << 10];
const REGIONS: [u64; 2] = [192 << 10, 256 << 10];
const REGION_BYTES: usize = 64 << 10;
const METADATA_TABLE_BYTES: usize = 64 << 10;

/// Sizes that clause 2.6.2.1 allows for blocks.
const BLOCK_BYTES: [u64; 2] = [MIB, 256 * MIB];
/// Clause 2.6.2.2.
const DISK_BYTES_MAX: u64 = 64 << 40;
/// A parent locator and all that it says.
const LOCATOR_MAX: usize = 64 << 10;

/// As they lie on the disk: the first three fields are little-endian.
const BAT: [u8; 16] = guid(0x2dc2_7766, 0xf623, 0x4200, 0x9d64_115e_9bfd_4a08);
const METADATA: [u8; 16] = guid(0x8b7c_a206, 0x4790, 0x4b9a, 0xb8fe_575f_050f_886e);
const FILE_PARAMETERS: [u8; 16] = guid(0xcaa1_6737, 0xfa36, 0x4d43, 0xb3b6_33f0_aa44_e76b);
const DISK_SIZE: [u8; 16] = guid(0x2fa5_4224, 0xcd1b, 0x4876, 0xb211_5dbe_d83b_f4b8);
const SECTOR_SIZE: [u8; 16] = guid(0x8141_bf1d, 0xa96f, 0x4709, 0xba47_f233_a8fa_ab5f);
const PARENT_LOCATOR: [u8; 16] = guid(0xa8d3_5f2d, 0xb30b, 0x454d, 0xabf7_d3d8_4834_ab0c);

const fn guid(a: u32, b: u16, c: u16, d: u64) -> [u8; 16] {
    let (a, b, c, d) = (
        a.to_le_bytes(),
        b.to_le_bytes(),
        c.to_le_bytes(),
        d.to_be_bytes(),
    );
    [
        a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], d[0], d[1], d[2], d[3], d[4], d[5], d[6],
        d[7],
    ]
}

/// An open VHDX, and what it lies upon.
#[derive(Debug)]
pub(crate) struct Vhdx {
    file: File,
    size_bytes: u64,
    block_bytes: u64,
    sector_bytes: u64,
    bat: Region,
    /// Told apart by it: another one whenever what guests see has changed.
    written: [u8; 16],
    parent: Option<Parent>,
}

#[derive(Debug)]
struct Parent {
    name: PathBuf,
    /// What [`Vhdx::written`] of the parent was.
    linkage: Option<String>,
}

/// Where a region is, and how long.
type Region = (u64, u64);

/// Where bytes of a disk are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// They are zeroes.
    Zeroes,
    /// Here in the file.
    Here(u64),
    /// Whatever the disk below has.
    Below,
}

pub(super) fn read(file: &File) -> Result<HeaderFields, String> {
    let file = file.try_clone().map_err(|error| error.to_string())?;
    let disk = Vhdx::open(file)?;
    let backing = disk.parent.map(|parent| (parent.name, Format::Vhdx));
    Ok(HeaderFields {
        size_bytes: disk.size_bytes,
        extents: Vec::new(),
        backing,
    })
}

impl Vhdx {
    /// Opens the disk in `file`.
    ///
    /// # Errors
    /// It is none, or not a whole one.
    pub(crate) fn open(file: File) -> Result<Self, String> {
        if bytes(&file, 0) != Ok(*b"vhdxfile") {
            return Err(String::new());
        }
        let written = header(&file)?;
        let [bat, metadata] = regions(&file)?;
        let items = Items::read(&file, metadata)?;
        let parameters: [u8; 8] = items.get(&file, &FILE_PARAMETERS)?;
        let block_bytes = u64::from(number!(u32, from_le_bytes, parameters, 0));
        let flags = number!(u32, from_le_bytes, parameters, 4);
        let size_bytes = u64::from_le_bytes(items.get(&file, &DISK_SIZE)?);
        let sector_bytes = u64::from(u32::from_le_bytes(items.get(&file, &SECTOR_SIZE)?));
        if !block_bytes.is_power_of_two()
            || !(BLOCK_BYTES[0]..=BLOCK_BYTES[1]).contains(&block_bytes)
            || ![512, 4096].contains(&sector_bytes)
        {
            return Err("its parameters are damaged".to_owned());
        }
        if size_bytes > DISK_BYTES_MAX || !size_bytes.is_multiple_of(sector_bytes) {
            return Err(format!(
                "it claims a size of {size_bytes} bytes, which no VHDX has"
            ));
        }
        let parent = match flags & 2 {
            0 => None,
            _ => Some(locator(&file, &items)?),
        };
        let disk = Vhdx {
            file,
            size_bytes,
            block_bytes,
            sector_bytes,
            bat,
            written,
            parent,
        };
        let blocks = size_bytes.div_ceil(block_bytes);
        if blocks > 0 && (disk.entry_of(blocks - 1) + 1) * 8 > bat.1 {
            return Err("its table of blocks is too short for its size".to_owned());
        }
        Ok(disk)
    }

    /// Whether `below` is the disk that this one was made upon, as it was then.
    pub(crate) fn check_parent(&self, below: &Vhdx) -> Result<(), String> {
        let linkage = self
            .parent
            .as_ref()
            .and_then(|parent| parent.linkage.as_deref());
        match linkage {
            Some(linkage) if !linkage.eq_ignore_ascii_case(&guid_text(&below.written)) => {
                Err("the disk that it lies upon has changed since".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Size of the disk.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Blocks that one block of bitmaps is for (clause 2.5).
    fn chunk(&self) -> u64 {
        (self.sector_bytes << 23) / self.block_bytes
    }

    /// The place of a block in the table, where each chunk has an entry more.
    fn entry_of(&self, block: u64) -> u64 {
        block + block / self.chunk()
    }

    fn entry(&self, index: u64) -> Result<u64, String> {
        let at = self.bat.0 + index * 8;
        if (index + 1) * 8 > self.bat.1 {
            return Err("its table of blocks is too short".to_owned());
        }
        Ok(u64::from_le_bytes(bytes(&self.file, at)?))
    }

    /// Where the bytes from `at` on are, and how many are alike.
    ///
    /// # Errors
    /// Its tables are damaged.
    pub(crate) fn locate(&self, at: u64) -> Result<(Block, u64), String> {
        let block = at / self.block_bytes;
        let inside = at % self.block_bytes;
        let left = (self.block_bytes - inside).min(self.size_bytes - at);
        let entry = self.entry(self.entry_of(block))?;
        let place = place(entry);
        let below = match self.parent {
            Some(_) => Block::Below,
            None => Block::Zeroes,
        };
        match entry & 7 {
            0 => Ok((below, left)),
            1..=3 => Ok((Block::Zeroes, left)),
            6 if place > 0 => Ok((Block::Here(place + inside), left)),
            7 if place > 0 && self.parent.is_some() => self.locate_in_part(at, place, left),
            state => Err(format!(
                "its table of blocks is damaged: state {state} of block {block}"
            )),
        }
    }

    /// As [`Vhdx::locate`], in a block at `place` that has some sectors only.
    fn locate_in_part(
        &self,
        at: u64,
        place_in_part: u64,
        left: u64,
    ) -> Result<(Block, u64), String> {
        let (block, inside) = (at / self.block_bytes, at % self.block_bytes);
        let here_at = place_in_part + inside;
        let chunk = block / self.chunk();
        let entry = self.entry(chunk * (self.chunk() + 1) + self.chunk())?;
        let bitmap = place(entry);
        if entry & 7 != 6 || bitmap == 0 {
            return Err(format!("its bitmap of chunk {chunk} is missing"));
        }
        let first = (at - chunk * self.chunk() * self.block_bytes) / self.sector_bytes;
        let sectors = left / self.sector_bytes;
        let bits = some_bytes(
            &self.file,
            bitmap + first / 8,
            ((first % 8 + sectors).div_ceil(8)) as usize,
        )?;
        let is_here = |sector: u64| {
            let bit = first % 8 + sector;
            bits.get((bit / 8) as usize)
                .is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
        };
        let here = is_here(0);
        let alike = (1..sectors)
            .find(|sector| is_here(*sector) != here)
            .unwrap_or(sectors);
        let len = alike * self.sector_bytes;
        match here {
            true => Ok((Block::Here(here_at), len)),
            false => Ok((Block::Below, len)),
        }
    }

    /// Reads what is [`Block::Here`].
    ///
    /// # Errors
    /// Of the file, which may end too early.
    pub(crate) fn read(&self, at: u64, into: &mut [u8]) -> Result<(), String> {
        let read = self.file.read_exact_at(into, at);
        read.map_err(|error| format!("can't be read at byte {at}: {error}"))
    }
}

/// Where an entry of the table says that something is; nowhere, which is 0, when no file
/// reaches so far.
fn place(entry: u64) -> u64 {
    let place = entry >> 20 << 20;
    if place < 1 << 62 { place } else { 0 }
}

/// The newer header: what tells whether the disk has changed.
fn header(file: &File) -> Result<[u8; 16], String> {
    let mut newest: Option<(u64, [u8; 80])> = None;
    for at in HEADERS {
        let block = some_bytes(file, at, 4096)?;
        let sum = number!(u32, from_le_bytes, block, 4);
        let mut unsummed = block.clone();
        unsummed[4..8].fill(0);
        if !block.starts_with(b"head") || base::checksum::crc32c(&unsummed) != sum {
            continue;
        }
        let sequence = number!(u64, from_le_bytes, block, 8);
        if newest.is_none_or(|(known, _)| sequence > known) {
            let mut head = [0; 80];
            head.copy_from_slice(&block[..80]);
            newest = Some((sequence, head));
        }
    }
    let (_, head) = newest.ok_or("none of its headers is whole")?;
    if head[48..64] != [0; 16] {
        return Err(
            "it was not closed cleanly, and its log has changes that are not in place: \
                    have Hyper-V or `qemu-img check -r all` repair it first"
                .to_owned(),
        );
    }
    let mut written = [0; 16];
    written.copy_from_slice(&head[32..48]);
    Ok(written)
}

/// Where the table of blocks and the metadata are, and how long.
fn regions(file: &File) -> Result<[Region; 2], String> {
    for at in REGIONS {
        let table = some_bytes(file, at, REGION_BYTES)?;
        if !table.starts_with(b"regi") {
            continue;
        }
        let count = (number!(u32, from_le_bytes, table, 8) as usize).min(2047);
        let find = |wanted: &[u8; 16]| {
            let entries = table[16..].chunks_exact(32).take(count);
            let mut found = entries.filter(|entry| entry.starts_with(wanted));
            found.next().map(|entry| {
                let at = number!(u64, from_le_bytes, entry, 16);
                let len = u64::from(number!(u32, from_le_bytes, entry, 24));
                (at, len)
            })
        };
        let is_near = |(at, len): &Region| at.checked_add(*len).is_some_and(|end| end < 1 << 62);
        let (bat, metadata) = (find(&BAT).filter(is_near), find(&METADATA).filter(is_near));
        if let (Some(bat), Some(metadata)) = (bat, metadata) {
            return Ok([bat, metadata]);
        }
    }
    Err("its table of regions is damaged".to_owned())
}

struct Items {
    table: Vec<u8>,
    region: Region,
}

impl Items {
    fn read(file: &File, region: Region) -> Result<Self, String> {
        let table = some_bytes(file, region.0, METADATA_TABLE_BYTES)?;
        match table.starts_with(b"metadata") {
            true => Ok(Items { table, region }),
            false => Err("its metadata is damaged".to_owned()),
        }
    }

    /// Where an item is, and how long.
    fn find(&self, wanted: &[u8; 16]) -> Option<(u64, usize)> {
        let count = usize::from(number!(u16, from_le_bytes, self.table, 10)).min(2047);
        let mut entries = self.table[32..].chunks_exact(32).take(count);
        let entry = entries.find(|entry| entry.starts_with(wanted))?;
        let at = u64::from(number!(u32, from_le_bytes, entry, 16));
        let len = number!(u32, from_le_bytes, entry, 20) as usize;
        let is_inside = at + len as u64 <= self.region.1;
        is_inside.then_some((self.region.0 + at, len))
    }

    fn get<const N: usize>(&self, file: &File, wanted: &[u8; 16]) -> Result<[u8; N], String> {
        match self.find(wanted) {
            Some((at, len)) if len >= N => bytes(file, at),
            _ => Err("its metadata is damaged".to_owned()),
        }
    }
}

/// What the disk lies upon (clause 2.6.2.6).
fn locator(file: &File, items: &Items) -> Result<Parent, String> {
    let damaged = || "what it says of its parent is damaged".to_owned();
    let (at, len) = items.find(&PARENT_LOCATOR).ok_or_else(damaged)?;
    if !(20..=LOCATOR_MAX).contains(&len) {
        return Err(damaged());
    }
    let text = some_bytes(file, at, len)?;
    let count = usize::from(number!(u16, from_le_bytes, text, 18));
    let (mut name, mut linkage) = (None, None);
    for entry in text[20..].chunks_exact(12).take(count) {
        let string = |at: usize, len: usize| {
            let at = number!(u32, from_le_bytes, entry, at) as usize;
            let len = usize::from(number!(u16, from_le_bytes, entry, len));
            let bytes = text.get(at..at.saturating_add(len))?;
            let units = bytes
                .chunks_exact(2)
                .map(|two| u16::from_le_bytes([two[0], two[1]]));
            String::from_utf16(&units.collect::<Vec<_>>()).ok()
        };
        let key = string(0, 8).ok_or_else(damaged)?;
        let value = string(4, 10).ok_or_else(damaged)?;
        match key.as_str() {
            "relative_path" => name = Some(value),
            "parent_linkage" => linkage = Some(value),
            _ => {}
        }
    }
    let name = name.ok_or("it does not say where its parent is from here")?;
    let name = name.replace('\\', "/");
    let name = name.strip_prefix("./").unwrap_or(&name);
    Ok(Parent {
        name: Path::new(name).to_owned(),
        linkage,
    })
}

/// As a locator has it.
fn guid_text(guid: &[u8; 16]) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let turned = |bytes: &[u8]| hex(&bytes.iter().rev().copied().collect::<Vec<_>>());
    format!(
        "{{{}-{}-{}-{}-{}}}",
        turned(&guid[..4]),
        turned(&guid[4..6]),
        turned(&guid[6..8]),
        hex(&guid[8..10]),
        hex(&guid[10..])
    )
}

#[cfg(test)]
pub(crate) mod made;
