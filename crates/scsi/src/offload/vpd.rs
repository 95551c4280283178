//! Page 8Fh: the third-party copies that are supported (SPC-4 clause 7.8.17, SBC-3 clause 6.6.6).

use super::fields::put;
use super::ranges::POINT_IN_TIME;
use super::report::{SEGMENT_BYTES_MAX, SEGMENT_GRANULARITY};
use super::xcopy::THIS_UNIT;
use super::xcopy_list::{BLOCK_TO_BLOCK, DESCRIPTORS_BYTES_MAX, IDENTIFICATION};
use super::{
    COPIES_MAX, CSCDS_MAX, INACTIVITY_S, INACTIVITY_S_MAX, RANGES_MAX, SEGMENTS_MAX,
    TOKEN_BLOCKS_MAX, TOKEN_BLOCKS_OPTIMAL,
};
use crate::cdb::COMMANDS;
use base::SECTOR_BYTES;

/// ROD type of the token of zeroes.
const ZERO: u32 = 0xffff_0001;

/// The page without its header. Block device ROD token limits stand first, where Windows
/// looks for them.
pub(crate) fn third_party_copy() -> Vec<u8> {
    let mut page = Vec::new();
    descriptor(&mut page, 0x0000, token_limits());
    descriptor(&mut page, 0x0001, supported_commands());
    descriptor(&mut page, 0x0004, parameter_data());
    descriptor(&mut page, 0x0008, vec![2, BLOCK_TO_BLOCK, IDENTIFICATION]);
    let [high, low] = THIS_UNIT.to_be_bytes();
    descriptor(&mut page, 0x000c, vec![0, 2, high, low]);
    descriptor(&mut page, 0x0106, token_features());
    descriptor(&mut page, 0x0108, supported_types());
    descriptor(&mut page, 0x8001, general_copies());
    page
}

/// Descriptors are whole words.
fn descriptor(page: &mut Vec<u8>, kind: u16, mut body: Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
    page.extend(kind.to_be_bytes());
    page.extend((body.len() as u16).to_be_bytes());
    page.extend(body);
}

/// In blocks.
fn token_limits() -> Vec<u8> {
    let mut body = vec![0; 32];
    put(&mut body, 6, &(RANGES_MAX as u16).to_be_bytes());
    put(&mut body, 8, &INACTIVITY_S_MAX.to_be_bytes());
    put(&mut body, 12, &INACTIVITY_S.to_be_bytes());
    put(&mut body, 16, &TOKEN_BLOCKS_MAX.to_be_bytes());
    put(&mut body, 24, &TOKEN_BLOCKS_OPTIMAL.to_be_bytes());
    body
}

/// Operation codes with their service actions, as REPORT SUPPORTED OPERATION CODES has them.
fn supported_commands() -> Vec<u8> {
    let mut list = Vec::new();
    for opcode in [0x83, 0x84] {
        let of = COMMANDS.iter().filter(|command| command.opcode == opcode);
        let actions: Vec<u8> = of
            .map(|command| command.action.unwrap_or(0) as u8)
            .collect();
        list.extend([opcode, actions.len() as u8]);
        list.extend(actions);
    }
    [vec![list.len() as u8], list].concat()
}

fn parameter_data() -> Vec<u8> {
    let mut body = vec![0; 28];
    put(&mut body, 4, &(CSCDS_MAX as u16).to_be_bytes());
    put(&mut body, 6, &(SEGMENTS_MAX as u16).to_be_bytes());
    put(&mut body, 8, &(DESCRIPTORS_BYTES_MAX as u32).to_be_bytes());
    body
}

/// Tokens of other copy managers are not taken.
fn token_features() -> Vec<u8> {
    const BLOCK_DEVICE_BYTES: u16 = 48;
    let bytes = |blocks: u64| (blocks * SECTOR_BYTES as u64).to_be_bytes();
    let mut body = vec![0; 44];
    // Lifetimes, then the longest time of inactivity.
    put(&mut body, 16, &INACTIVITY_S_MAX.to_be_bytes());
    put(&mut body, 20, &INACTIVITY_S_MAX.to_be_bytes());
    put(&mut body, 42, &BLOCK_DEVICE_BYTES.to_be_bytes());
    let mut block = vec![0; usize::from(BLOCK_DEVICE_BYTES)];
    put(&mut block, 2, &(BLOCK_DEVICE_BYTES - 4).to_be_bytes());
    put(&mut block, 8, &bytes(TOKEN_BLOCKS_MAX));
    for at in [16, 24, 32] {
        put(&mut block, at, &bytes(TOKEN_BLOCKS_OPTIMAL));
    }
    [body, block].concat()
}

fn supported_types() -> Vec<u8> {
    const TOKEN_IN: u8 = 0x02;
    const TOKEN_OUT: u8 = 0x01;
    let kinds = [(POINT_IN_TIME, TOKEN_IN | TOKEN_OUT), (ZERO, TOKEN_IN)];
    let mut body = vec![0; 4];
    put(&mut body, 2, &(64 * kinds.len() as u16).to_be_bytes());
    for (kind, flags) in kinds {
        let mut descriptor = vec![0; 64];
        put(&mut descriptor, 0, &kind.to_be_bytes());
        descriptor[4] = flags;
        body.extend(descriptor);
    }
    body
}

fn general_copies() -> Vec<u8> {
    let mut body = vec![0; 32];
    put(&mut body, 0, &(COPIES_MAX as u32).to_be_bytes());
    put(&mut body, 4, &(COPIES_MAX as u32).to_be_bytes());
    put(&mut body, 8, &SEGMENT_BYTES_MAX.to_be_bytes());
    body[12] = SEGMENT_GRANULARITY;
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_byte_by_byte() {
        let mut expected = vec![0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 64];
        expected.extend([0, 0, 1, 44, 0, 0, 0, 30]);
        expected.extend([0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0]);
        expected.extend([0, 1, 0, 16, 12]);
        expected.extend([
            0x83, 4, 0x00, 0x10, 0x11, 0x1c, 0x84, 4, 0, 3, 4, 7, 0, 0, 0,
        ]);
        expected.extend([0, 4, 0, 28, 0, 0, 0, 0, 0, 16, 0, 64, 0, 0, 9, 0]);
        expected.extend([0; 16]);
        expected.extend([0, 8, 0, 4, 2, 0x02, 0xe4, 0]);
        expected.extend([0, 0x0c, 0, 4, 0, 2, 0xff, 0xff]);
        expected.extend([1, 6, 0, 92]);
        expected.extend([0; 16]);
        expected.extend([0, 0, 1, 44, 0, 0, 1, 44]);
        expected.extend([0; 18]);
        expected.extend([0, 48, 0, 0, 0, 44, 0, 0, 0, 0]);
        expected.extend([0, 0, 0, 0, 0x10, 0, 0, 0]);
        expected.extend([0, 0, 0, 0, 4, 0, 0, 0].repeat(3));
        expected.extend([0; 8]);
        expected.extend([1, 8, 0, 132, 0, 0, 0, 128]);
        expected.extend([0, 0x80, 0, 0, 3]);
        expected.extend([0; 59]);
        expected.extend([0xff, 0xff, 0, 1, 2]);
        expected.extend([0; 59]);
        expected.extend([0x80, 1, 0, 32, 0, 0, 0, 32, 0, 0, 0, 32, 1, 255, 254, 0, 9]);
        expected.extend([0; 19]);
        assert_eq!(third_party_copy(), expected);
    }

    #[test]
    fn windows_finds_its_limits_first_and_as_long_as_it_wants_them() {
        let page = third_party_copy();
        assert_eq!(page[..4], [0, 0, 0, 0x20]);
        assert!(page.len() >= 0x24);
    }
}
