//! Big-endian fields at fixed places of a header.

use super::{BHS_BYTES, Bhs, Lun};

pub(super) fn u16_at(bhs: &Bhs, at: usize) -> u16 {
    u16::from_be_bytes([bhs[at], bhs[at + 1]])
}

pub(super) fn u32_at(bhs: &Bhs, at: usize) -> u32 {
    u32::from_be_bytes([bhs[at], bhs[at + 1], bhs[at + 2], bhs[at + 3]])
}

pub(super) fn array_at<const N: usize>(bhs: &Bhs, at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&bhs[at..at + N]);
    bytes
}

pub(super) fn lun(bhs: &Bhs) -> Lun {
    array_at(bhs, 8)
}

/// A header under construction, all zero but for the opcode byte and the flags.
pub(super) struct Header(pub(super) Bhs);

impl Header {
    pub(super) fn new(opcode_byte: u8, flags: u8) -> Header {
        let mut bhs = [0; BHS_BYTES];
        bhs[0] = opcode_byte;
        bhs[1] = flags;
        Header(bhs)
    }

    pub(super) fn byte(mut self, at: usize, value: u8) -> Header {
        self.0[at] = value;
        self
    }

    pub(super) fn u16(self, at: usize, value: u16) -> Header {
        self.bytes(at, &value.to_be_bytes())
    }

    pub(super) fn u32(self, at: usize, value: u32) -> Header {
        self.bytes(at, &value.to_be_bytes())
    }

    pub(super) fn bytes(mut self, at: usize, value: &[u8]) -> Header {
        self.0[at..at + value.len()].copy_from_slice(value);
        self
    }
}

/// `mask` when `set`.
pub(super) fn flag(set: bool, mask: u8) -> u8 {
    if set { mask } else { 0 }
}
