//! VHDX files of 4 blocks of 1 MiB, made for tests by the words of [MS-VHDX].

use super::{
    BAT, DISK_SIZE, FILE_PARAMETERS, HEADERS, METADATA, MIB, PARENT_LOCATOR, REGIONS, SECTOR_SIZE,
};

/// What a block of a made disk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing is said of it.
    Absent,
    /// Zeroes, said so.
    Zero,
    /// This byte all over.
    Full(u8),
    /// This byte in every second run of four sectors, from the first on.
    Part(u8),
}

/// A disk with these blocks, told apart by `written`, upon another one if there is `parent`:
/// its name, and what tells it apart.
pub(crate) fn disk(written: u8, blocks: [Content; 4], parent: Option<(&str, u8)>) -> Vec<u8> {
    let mut file = vec![0; 3 << 20];
    put(&mut file, 0, b"vhdxfile");
    let mut head = vec![0; 4096];
    put(&mut head, 0, b"head");
    put(&mut head, 8, &7u64.to_le_bytes());
    put(&mut head, 32, &[written; 16]);
    put(&mut head, 66, &1u16.to_le_bytes());
    let sum = base::checksum::crc32c(&head);
    put(&mut head, 4, &sum.to_le_bytes());
    put(&mut file, HEADERS[1] as usize, &head);
    let regions = REGIONS[0] as usize;
    put(&mut file, regions, b"regi");
    put(&mut file, regions + 8, &2u32.to_le_bytes());
    for (at, guid, place) in [(16, BAT, MIB), (48, METADATA, 2 * MIB)] {
        put(&mut file, regions + at, &guid);
        put(&mut file, regions + at + 16, &place.to_le_bytes());
        put(&mut file, regions + at + 24, &(MIB as u32).to_le_bytes());
    }
    metadata(&mut file, parent);
    for (index, content) in blocks.into_iter().enumerate() {
        let place = file.len() as u64;
        let state = match content {
            Content::Absent => 0,
            Content::Zero => 2,
            Content::Full(byte) => {
                file.resize(file.len() + (1 << 20), byte);
                place | 6
            }
            Content::Part(byte) => {
                file.resize(file.len() + (1 << 20), byte);
                place | 7
            }
        };
        put(&mut file, (1 << 20) + index * 8, &state.to_le_bytes());
    }
    // The one block of bitmaps, after the 4,096 blocks that it is for.
    let bitmap = file.len() as u64;
    put(&mut file, (1 << 20) + 4096 * 8, &(bitmap | 6).to_le_bytes());
    file.resize(file.len() + (1 << 20), 0x0f);
    file
}

fn metadata(file: &mut [u8], parent: Option<(&str, u8)>) {
    let table = 2 << 20;
    put(file, table, b"metadata");
    let mut items: Vec<([u8; 16], Vec<u8>)> = Vec::new();
    let flags: u32 = if parent.is_some() { 2 } else { 0 };
    let parameters = [(MIB as u32).to_le_bytes(), flags.to_le_bytes()];
    items.push((FILE_PARAMETERS, parameters.concat()));
    items.push((DISK_SIZE, (4 * MIB).to_le_bytes().to_vec()));
    items.push((SECTOR_SIZE, 512u32.to_le_bytes().to_vec()));
    if let Some((name, written)) = parent {
        items.push((PARENT_LOCATOR, locator(name, written)));
    }
    put(file, table + 10, &(items.len() as u16).to_le_bytes());
    let mut at = 64 << 10;
    for (index, (guid, item)) in items.into_iter().enumerate() {
        let entry = table + 32 + index * 32;
        put(file, entry, &guid);
        put(file, entry + 16, &(at as u32).to_le_bytes());
        put(file, entry + 20, &(item.len() as u32).to_le_bytes());
        put(file, table + at, &item);
        at += item.len();
    }
}

fn locator(name: &str, written: u8) -> Vec<u8> {
    let hex = |count: usize| format!("{written:02x}").repeat(count);
    let linkage = format!("{{{}-{}-{}-{}-{}}}", hex(4), hex(2), hex(2), hex(2), hex(6));
    let pairs = [
        ("parent_linkage", linkage.as_str()),
        ("relative_path", name),
    ];
    let mut head = vec![0; 20];
    put(&mut head, 18, &(pairs.len() as u16).to_le_bytes());
    let mut strings: Vec<u8> = Vec::new();
    let first = head.len() + pairs.len() * 12;
    for (key, value) in pairs {
        let mut entry = [0; 12];
        for (text, at, len) in [(key, 0, 8), (value, 4, 10)] {
            let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            put(
                &mut entry,
                at,
                &((first + strings.len()) as u32).to_le_bytes(),
            );
            put(&mut entry, len, &(units.len() as u16).to_le_bytes());
            strings.extend(units);
        }
        head.extend(entry);
    }
    head.extend(strings);
    head
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}
