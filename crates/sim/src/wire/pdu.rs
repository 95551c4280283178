//! PDUs as an initiator writes and reads them (RFC 7143 clause 11), with digests.
//!
//! Written apart from the array's codec, so that one checks the other.

use base::checksum::crc32c_of;

/// A basic header segment.
const HEADER_BYTES: usize = 48;
const DIGEST_BYTES: usize = 4;

/// Of what is not a task, and of transfers that nobody asked for.
pub(crate) const NO_TAG: u32 = u32::MAX;

/// Opcodes of requests; with the bit that has them not wait for their turn.
pub(crate) mod request {
    pub(crate) const NOP: u8 = 0x40;
    pub(crate) const COMMAND: u8 = 0x01;
    pub(crate) const MANAGE: u8 = 0x42;
    pub(crate) const LOGIN: u8 = 0x43;
    pub(crate) const DATA_OUT: u8 = 0x05;
    pub(crate) const LOGOUT: u8 = 0x46;
}

/// Opcodes of responses.
pub(crate) mod response {
    pub(crate) const NOP: u8 = 0x20;
    pub(crate) const COMMAND: u8 = 0x21;
    pub(crate) const MANAGED: u8 = 0x22;
    pub(crate) const LOGIN: u8 = 0x23;
    pub(crate) const DATA_IN: u8 = 0x25;
    pub(crate) const LOGOUT: u8 = 0x26;
    pub(crate) const READY: u8 = 0x31;
    pub(crate) const EVENT: u8 = 0x32;
    pub(crate) const REJECT: u8 = 0x3f;
}

/// Whether headers and data have digests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Digests {
    pub(crate) header: bool,
    pub(crate) data: bool,
}

/// A PDU without additional header segments.
#[derive(Clone, Debug)]
pub(crate) struct Pdu {
    pub(crate) header: [u8; HEADER_BYTES],
    pub(crate) data: Vec<u8>,
}

impl Pdu {
    /// A request with this opcode and these flags.
    pub(crate) fn new(opcode: u8, flags: u8) -> Pdu {
        let mut header = [0; HEADER_BYTES];
        (header[0], header[1]) = (opcode, flags);
        Pdu {
            header,
            data: Vec::new(),
        }
    }

    /// Puts `value` at this byte of the header.
    pub(crate) fn with(mut self, at: usize, value: u32) -> Pdu {
        self.header[at..at + 4].copy_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn with_lun(mut self, lun: u16) -> Pdu {
        self.header[8..10].copy_from_slice(&lun.to_be_bytes());
        self
    }

    pub(crate) fn with_data(mut self, data: Vec<u8>) -> Pdu {
        self.data = data;
        self
    }

    pub(crate) fn opcode(&self) -> u8 {
        self.header[0] & 0x3f
    }

    /// The number at this byte of the header.
    pub(crate) fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes([0, 1, 2, 3].map(|byte| self.header[at + byte]))
    }

    /// The initiator task tag.
    pub(crate) fn tag(&self) -> u32 {
        self.word(16)
    }

    pub(crate) fn bytes(mut self, digests: Digests) -> Vec<u8> {
        let length = (self.data.len() as u32).to_be_bytes();
        self.header[5..8].copy_from_slice(&length[1..]);
        let mut bytes = self.header.to_vec();
        if digests.header {
            bytes.extend(crc32c_of([&self.header[..]]).to_le_bytes());
        }
        if self.data.is_empty() {
            return bytes;
        }
        self.data.resize(self.data.len().next_multiple_of(4), 0);
        bytes.extend(&self.data);
        if digests.data {
            bytes.extend(crc32c_of([&self.data[..]]).to_le_bytes());
        }
        bytes
    }
}

/// A digest does not match.
#[derive(Debug)]
pub(crate) struct Garbled;

/// Takes PDUs out of a stream of bytes.
#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) bytes: Vec<u8>,
    pub(crate) digests: Digests,
}

impl Reader {
    /// The next PDU, if it has come.
    ///
    /// # Errors
    /// Its digest does not match.
    pub(crate) fn next(&mut self) -> Result<Option<Pdu>, Garbled> {
        let digest = |there: bool| if there { DIGEST_BYTES } else { 0 };
        let head = HEADER_BYTES + digest(self.digests.header);
        let Some((header, _)) = self.bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let header = *header;
        if self.bytes.len() < head {
            return Ok(None);
        }
        if self.digests.header {
            check(&header, &self.bytes[HEADER_BYTES..head])?;
        }
        let len = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
        let padded = len.next_multiple_of(4);
        let tail = if len == 0 {
            0
        } else {
            digest(self.digests.data)
        };
        if self.bytes.len() < head + padded + tail {
            return Ok(None);
        }
        let segment = &self.bytes[head..head + padded];
        if tail > 0 {
            check(segment, &self.bytes[head + padded..][..tail])?;
        }
        let data = segment[..len].to_vec();
        self.bytes.drain(..head + padded + tail);
        Ok(Some(Pdu { header, data }))
    }
}

fn check(covered: &[u8], digest: &[u8]) -> Result<(), Garbled> {
    match crc32c_of([covered]).to_le_bytes() == *digest {
        true => Ok(()),
        false => Err(Garbled),
    }
}
