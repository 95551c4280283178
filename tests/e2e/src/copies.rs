//! Third-party copies as hosts send them (SPC-4 clauses 6.4 and 6.28, SBC-3 clauses 5.7 and
//! 5.53): CDBs, parameter lists, and what is told of tokens.

use crate::initiator::{Answer, Initiator};
use std::io;

/// Bytes of a token.
pub const TOKEN_BYTES: usize = 512;
const POPULATE_TOKEN: u8 = 0x10;
const WRITE_USING_TOKEN: u8 = 0x11;
const LIST_ID: u32 = 1;

/// A run of blocks.
pub type Range = (u64, u32);

/// What is told of a command of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// COPY OPERATION STATUS.
    pub status: u8,
    /// TRANSFER COUNT, in blocks.
    pub blocks: u64,
    /// The token, if one was made.
    pub token: Vec<u8>,
}

/// The token that stands for zeroes.
pub fn zero_token() -> Vec<u8> {
    let mut token = vec![0xff, 0xff, 0, 1, 0, 0, 1, 0xf8];
    token.resize(TOKEN_BYTES, 0);
    token
}

/// The NAA designator that VPD page 83h shows for the LUN of `initiator`.
///
/// # Errors
/// When the connection ends, or there is none.
pub fn naa(initiator: &mut Initiator) -> io::Result<Vec<u8>> {
    let answer = initiator.execute(&[0x12, 1, 0x83, 1, 0, 0], 256, Vec::new())?;
    let missing = || io::Error::other(format!("no page 83h: {answer:?}"));
    match &answer {
        // The first designator: NAA, of the logical unit, binary.
        Answer::Good(page) if page.get(4..8) == Some(&[1, 3, 0, 16]) => Ok(page[8..24].to_vec()),
        _ => Err(missing()),
    }
}

/// CDB and parameter list of an EXTENDED COPY(LID1) from the first of two units to the
/// second, in segments (from, to, blocks).
pub fn extended_copy(units: [&[u8]; 2], segments: &[(u64, u64, u16)]) -> ([u8; 16], Vec<u8>) {
    let mut list = vec![LIST_ID as u8, 0, 0, 64, 0, 0, 0, 0];
    list.extend((segments.len() as u32 * 28).to_be_bytes());
    list.extend([0; 4]);
    for naa in units {
        list.extend([0xe4, 0, 0, 0, 1, 3, 0, 16]);
        list.extend(naa);
        list.extend([0, 0, 0, 0, 0, 0, 2, 0]);
    }
    for (from, to, blocks) in segments {
        list.extend([2, 0, 0, 24, 0, 0, 0, 1, 0, 0]);
        list.extend(blocks.to_be_bytes());
        list.extend(from.to_be_bytes());
        list.extend(to.to_be_bytes());
    }
    (with_list(0, &list), list)
}

/// CDB and parameter list of a POPULATE TOKEN.
pub fn populate(ranges: &[Range], inactivity_s: u32) -> ([u8; 16], Vec<u8>) {
    let mut list = vec![0; 14];
    list[4..8].copy_from_slice(&inactivity_s.to_be_bytes());
    descriptors(&mut list, ranges);
    (with_list(POPULATE_TOKEN, &list), list)
}

/// CDB and parameter list of a WRITE USING TOKEN.
pub fn write_using(token: &[u8], offset: u64, ranges: &[Range]) -> ([u8; 16], Vec<u8>) {
    let mut list = vec![0; 8];
    list.extend(offset.to_be_bytes());
    list.extend(token);
    list.extend([0; 6]);
    descriptors(&mut list, ranges);
    (with_list(WRITE_USING_TOKEN, &list), list)
}

/// What is told of the command of tokens before.
///
/// # Errors
/// When the connection ends, or nothing is told.
pub fn told(initiator: &mut Initiator) -> io::Result<Told> {
    const BYTES: usize = 1024;
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (0x84, 0x07);
    cdb[2..6].copy_from_slice(&LIST_ID.to_be_bytes());
    cdb[10..14].copy_from_slice(&(BYTES as u32).to_be_bytes());
    let answer = initiator.execute(&cdb, BYTES, Vec::new())?;
    let Answer::Good(data) = &answer else {
        return Err(io::Error::other(format!("nothing is told: {answer:?}")));
    };
    let number = |at: usize, len: usize| {
        let field = data[at..at + len].iter();
        field.fold(0, |number: u64, byte| number << 8 | u64::from(*byte))
    };
    let tokens = 32 + number(13, 1) as usize;
    let token = match number(tokens, 4) {
        0 => Vec::new(),
        _ => data[tokens + 6..tokens + 6 + TOKEN_BYTES].to_vec(),
    };
    Ok(Told {
        status: data[5] & 0x7f,
        blocks: number(16, 8),
        token,
    })
}

fn with_list(action: u8, list: &[u8]) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (0x83, action);
    if action != 0 {
        cdb[6..10].copy_from_slice(&LIST_ID.to_be_bytes());
    }
    cdb[10..14].copy_from_slice(&(list.len() as u32).to_be_bytes());
    cdb
}

fn descriptors(list: &mut Vec<u8>, ranges: &[Range]) {
    list.extend((ranges.len() as u16 * 16).to_be_bytes());
    for (lba, blocks) in ranges {
        list.extend(lba.to_be_bytes());
        list.extend(blocks.to_be_bytes());
        list.extend([0; 4]);
    }
    let len = list.len() as u16 - 2;
    list[..2].copy_from_slice(&len.to_be_bytes());
}
