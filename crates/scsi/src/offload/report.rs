//! The reports on copies to initiators: parameter data of RECEIVE COPY STATUS(LID1), RECEIVE COPY
//! OPERATING PARAMETERS, RECEIVE COPY FAILURE DETAILS(LID1) (SPC-4 clauses 6.22 to 6.25) and
//! RECEIVE ROD TOKEN INFORMATION (clause 6.28).

use super::desk::{Copied, Transferred};
use super::fields::put;
use super::xcopy_list::{BLOCK_TO_BLOCK, DESCRIPTORS_BYTES_MAX, IDENTIFICATION};
use super::{COPIES_MAX, CSCDS_MAX, SEGMENT_BLOCKS_MAX, SEGMENTS_MAX};
use crate::sense::status;
use base::SECTOR_BYTES;

/// Longest segment, in bytes.
pub(super) const SEGMENT_BYTES_MAX: u32 = SEGMENT_BLOCKS_MAX * SECTOR_BYTES as u32;
/// Granularity of segments: a block, as an exponent of two.
pub(super) const SEGMENT_GRANULARITY: u8 = SECTOR_BYTES.trailing_zeros() as u8;

/// COPY MANAGER STATUS and COPY OPERATION STATUS.
const IN_PROGRESS: u8 = 0x00;
const WITHOUT_ERRORS: u8 = 0x01;
const WITH_ERRORS: u8 = 0x02;
const WITH_RESIDUAL_DATA: u8 = 0x04;
const IN_FOREGROUND: u8 = 0x11;

/// Puts AVAILABLE DATA, which counts what follows it, in front.
fn counted(mut data: Vec<u8>) -> Vec<u8> {
    let available = data.len().saturating_sub(4) as u32;
    put(&mut data, 0, &available.to_be_bytes());
    data
}

/// Of a copy that runs.
pub(super) fn copy_in_progress() -> Vec<u8> {
    let mut data = vec![0; 12];
    data[4] = IN_PROGRESS;
    counted(data)
}

/// Of a copy that has ended.
pub(super) fn copy_status(copied: &Copied) -> Vec<u8> {
    let mut data = vec![0; 12];
    data[4] = match copied.status {
        status::GOOD => WITHOUT_ERRORS,
        _ => WITH_ERRORS,
    };
    put(&mut data, 5, &copied.segments.to_be_bytes());
    // TRANSFER COUNT UNITS: bytes, or powers of 1024 of them where they are too many.
    let (mut units, mut count) = (0, copied.bytes);
    while count > u64::from(u32::MAX) {
        (units, count) = (units + 1, count / 1024);
    }
    data[7] = units;
    put(&mut data, 8, &(count as u32).to_be_bytes());
    counted(data)
}

/// What the copies can be.
pub(super) fn operating_parameters() -> Vec<u8> {
    let mut data = vec![0; 44];
    // SNLID: list identifiers may be left out.
    data[4] = 0x01;
    put(&mut data, 8, &(CSCDS_MAX as u16).to_be_bytes());
    put(&mut data, 10, &(SEGMENTS_MAX as u16).to_be_bytes());
    put(&mut data, 12, &(DESCRIPTORS_BYTES_MAX as u32).to_be_bytes());
    put(&mut data, 16, &SEGMENT_BYTES_MAX.to_be_bytes());
    // No inline data, no held data, no streams.
    put(&mut data, 34, &(COPIES_MAX as u16).to_be_bytes());
    data[36] = COPIES_MAX as u8;
    data[37] = SEGMENT_GRANULARITY;
    data[43] = 2;
    data.extend([BLOCK_TO_BLOCK, IDENTIFICATION]);
    counted(data)
}

/// Of the segment that a copy failed at; nothing when none did.
pub(super) fn failed_segment(copied: &Copied) -> Vec<u8> {
    if copied.sense.is_empty() {
        return vec![0; 4];
    }
    let mut data = vec![0; 60];
    data[56] = copied.status;
    put(&mut data, 58, &(copied.sense.len() as u16).to_be_bytes());
    data.extend(&copied.sense);
    counted(data)
}

/// Bytes before the sense data.
const TOKEN_HEAD_BYTES: usize = 32;
/// TRANSFER COUNT UNITS: blocks.
const BLOCKS: u8 = 0xf1;

/// Of a command of tokens that runs.
pub(super) fn token_in_progress() -> Vec<u8> {
    let mut data = vec![0; TOKEN_HEAD_BYTES + 4];
    data[5] = IN_FOREGROUND;
    // Nobody can say when.
    put(&mut data, 8, &[0xff; 4]);
    data[15] = BLOCKS;
    counted(data)
}

/// Of a command of tokens that has ended.
pub(super) fn token_information(transferred: &Transferred) -> Vec<u8> {
    let mut data = vec![0; TOKEN_HEAD_BYTES];
    data[4] = transferred.action;
    data[5] = match transferred.status {
        status::GOOD if transferred.blocks < transferred.asked_blocks => WITH_RESIDUAL_DATA,
        status::GOOD => WITHOUT_ERRORS,
        _ => WITH_ERRORS,
    };
    // OPERATION COUNTER.
    data[7] = 1;
    // ESTIMATED STATUS UPDATE DELAY of what has ended.
    put(&mut data, 8, &0xffff_fffeu32.to_be_bytes());
    data[12] = transferred.status;
    data[13] = transferred.sense.len() as u8;
    data[14] = transferred.sense.len() as u8;
    data[15] = BLOCKS;
    put(&mut data, 16, &transferred.blocks.to_be_bytes());
    data.extend(&transferred.sense);
    let tokens = transferred
        .token
        .as_ref()
        .map_or(0, |token| 2 + token.len());
    data.extend((tokens as u32).to_be_bytes());
    if let Some(token) = &transferred.token {
        // ID FOR CREATING ROD CSCD DESCRIPTOR is of other commands.
        data.extend([0, 0]);
        data.extend(token.iter());
    }
    counted(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offload::TOKEN_BYTES;

    #[test]
    fn copy_status_byte_by_byte() {
        let copied = Copied {
            segments: 0x0102,
            bytes: 0x0304_0506,
            ..Copied::default()
        };
        let expected = [0, 0, 0, 8, 1, 1, 2, 0, 3, 4, 5, 6];
        assert_eq!(copy_status(&copied), expected);
        let large = Copied {
            bytes: 5 << 32,
            status: 2,
            ..copied
        };
        let expected = [0, 0, 0, 8, 2, 1, 2, 1, 0x01, 0x40, 0, 0];
        assert_eq!(copy_status(&large), expected, "in KiB");
        assert_eq!(copy_in_progress(), [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn operating_parameters_byte_by_byte() {
        let mut expected = vec![0, 0, 0, 42, 1, 0, 0, 0, 0, 16, 0, 64, 0, 0, 9, 0];
        expected.extend([0x01, 0xff, 0xfe, 0]);
        expected.resize(34, 0);
        expected.extend([0, 32, 32, 9, 0, 0, 0, 0, 0, 2, 0x02, 0xe4]);
        assert_eq!(operating_parameters(), expected);
    }

    #[test]
    fn details_of_a_failure_byte_by_byte() {
        let mut copied = Copied {
            status: 2,
            sense: vec![0x70, 0, 10],
            ..Copied::default()
        };
        let data = failed_segment(&copied);
        let mut expected = vec![0, 0, 0, 59];
        expected.resize(56, 0);
        expected.extend([2, 0, 0, 3, 0x70, 0, 10]);
        assert_eq!(data, expected);
        copied.sense.clear();
        assert_eq!(failed_segment(&copied), [0; 4]);
    }

    #[test]
    fn token_information_byte_by_byte() {
        let mut transferred = Transferred {
            action: 0x10,
            blocks: 0x0102_0304,
            asked_blocks: 0x0102_0304,
            status: 0,
            sense: Vec::new(),
            token: Some(Box::new([0xab; TOKEN_BYTES])),
        };
        let mut expected = vec![0, 0, 2, 0x22, 0x10, 1, 0, 1, 0xff, 0xff, 0xff, 0xfe];
        expected.extend([0, 0, 0, 0xf1, 0, 0, 0, 0, 1, 2, 3, 4]);
        expected.resize(32, 0);
        expected.extend([0, 0, 2, 2, 0, 0]);
        expected.extend([0xab; TOKEN_BYTES]);
        assert_eq!(token_information(&transferred), expected);
        transferred.token = None;
        transferred.asked_blocks += 1;
        let data = token_information(&transferred);
        assert_eq!((data.len(), data[3], data[5]), (36, 32, 4), "less than all");
        transferred.status = 2;
        transferred.sense = vec![0x70, 0, 7];
        let data = token_information(&transferred);
        assert_eq!(
            data[..15],
            [0, 0, 0, 35, 0x10, 2, 0, 1, 255, 255, 255, 254, 2, 3, 3]
        );
        assert_eq!(data[32..], [0x70, 0, 7, 0, 0, 0, 0]);
        let running = token_in_progress();
        assert_eq!((running.len(), running[3], running[5]), (36, 32, 0x11));
    }
}
