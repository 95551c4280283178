//! Commands of copies and their parameter lists, as initiators build them. The fuzz target of
//! copies includes this file, too.

/// An EXTENDED COPY of segments (source, destination, blocks, from, to) between what the
/// designators name, with list identifier 1.
pub fn xcopy(naas: &[impl AsRef<[u8]>], segments: &[(u16, u16, u16, u64, u64)]) -> Vec<u8> {
    let mut list = vec![1, 0];
    list.extend((naas.len() as u16 * 32).to_be_bytes());
    list.extend([0; 4]);
    list.extend((segments.len() as u32 * 28).to_be_bytes());
    list.extend([0; 4]);
    for naa in naas {
        list.extend([0xe4, 0, 0, 0, 1, 3, 0, 16]);
        list.extend(naa.as_ref());
        list.extend([0, 0, 0, 0, 0, 0, 2, 0]);
    }
    for (source, destination, blocks, from, to) in segments {
        list.extend([2, 0, 0, 24]);
        list.extend(source.to_be_bytes());
        list.extend(destination.to_be_bytes());
        list.extend([0, 0]);
        list.extend(blocks.to_be_bytes());
        list.extend(from.to_be_bytes());
        list.extend(to.to_be_bytes());
    }
    list
}

fn ranges(list: &mut Vec<u8>, ranges: &[(u64, u32)]) {
    list.extend((ranges.len() as u16 * 16).to_be_bytes());
    for (lba, blocks) in ranges {
        list.extend(lba.to_be_bytes());
        list.extend(blocks.to_be_bytes());
        list.extend([0; 4]);
    }
    let len = list.len() as u16 - 2;
    list[..2].copy_from_slice(&len.to_be_bytes());
}

pub fn populate(of: &[(u64, u32)]) -> Vec<u8> {
    let mut list = vec![0; 14];
    ranges(&mut list, of);
    list
}

pub fn write_using(token: &[u8], offset: u64, deletes: bool, to: &[(u64, u32)]) -> Vec<u8> {
    let mut list = vec![0, 0, u8::from(deletes) << 1, 0, 0, 0, 0, 0];
    list.extend(offset.to_be_bytes());
    list.extend(token);
    list.extend([0; 6]);
    ranges(&mut list, to);
    list
}

/// The CDB of a command that takes a list.
pub fn with_list(action: u8, list_id: u32, list: &[u8]) -> Vec<u8> {
    let mut cdb = vec![0x83, action, 0, 0, 0, 0];
    cdb.extend(match action {
        0 => [0; 4],
        _ => list_id.to_be_bytes(),
    });
    cdb.extend((list.len() as u32).to_be_bytes());
    cdb
}

/// The CDB of a command that asks for what came of another.
pub fn receive(action: u8, list_id: u32, allocation: u32) -> Vec<u8> {
    let id = match action {
        7 => list_id.to_be_bytes(),
        _ => [list_id as u8, 0, 0, 0],
    };
    let mut cdb = vec![0x84, action];
    cdb.extend(id);
    cdb.extend([0; 4]);
    cdb.extend(allocation.to_be_bytes());
    cdb
}
