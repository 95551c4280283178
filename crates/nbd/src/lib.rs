//! The client's side of the Network Block Device protocol: bytes in, bytes out.
//!
//! The protocol is `doc/proto.md` of <https://github.com/NetworkBlockDevice/nbd>; names in quotes are
//! its headings. Sockets belong to the callers: the load generator has many requests under way and
//! never blocks, and images are copied one request at a time on tokio.
//!
//! - [`handshake`]: from a fresh connection to the transmission phase.
//! - [`request`], [`Header`], [`Chunk`]: the transmission phase.
//!
//! Invariant: nothing that a server says panics, or has the client keep more than
//! [`ANSWER_BYTES_MAX`] of it beside data that was asked for.

pub mod handshake;

pub use handshake::{Export, Handshake, Refusal, RefusalKind, Wanted};

/// Request type: the answer has data of the export.
pub const READ: u16 = 0;
/// Request type: data for the export follows the request.
pub const WRITE: u16 = 1;
/// Request type: the client goes, and there is no answer.
pub const DISCONNECT: u16 = 2;
/// Request type: all that was written is on stable media at the answer.
pub const FLUSH: u16 = 3;
/// Request type: the answer tells of extents.
pub const BLOCK_STATUS: u16 = 7;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_MAGIC: u32 = 0x6744_6698;
const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Length of a request without its data.
pub const REQUEST_BYTES: usize = 28;
/// Length of what all headers of answers begin with.
pub const MAGIC_BYTES: usize = 4;
/// Length of a whole header of a simple answer.
pub const SIMPLE_BYTES: usize = 16;

/// "Structured reply flags".
const LAST: u16 = 1 << 0;
/// "Structured reply types".
const DATA: u16 = 1;
const HOLE: u16 = 2;
const STATUS: u16 = 5;
const ERRORS: u16 = 1 << 15;

/// Of `base:allocation`: reads as zeroes.
const ZERO: u32 = 1 << 1;

/// An answer of extents, or an error with its text, is not longer.
pub const ANSWER_BYTES_MAX: u32 = 1 << 20;

/// "Request message": asks for `len` bytes from `at` on. The data of a write follows it.
pub fn request(kind: u16, cookie: u64, at: u64, len: u32) -> [u8; REQUEST_BYTES] {
    let mut request = [0; REQUEST_BYTES];
    request[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
    // After two bytes of flags, none of which is set.
    request[6..8].copy_from_slice(&kind.to_be_bytes());
    request[8..16].copy_from_slice(&cookie.to_be_bytes());
    request[16..24].copy_from_slice(&at.to_be_bytes());
    request[24..].copy_from_slice(&len.to_be_bytes());
    request
}

/// The header of an answer or of a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// "Simple reply message": all of the answer, but the data of a read.
    Simple {
        /// 0 for none.
        error: u32,
        /// Of the request.
        cookie: u64,
    },
    /// "Structured reply chunk message": its payload follows.
    Chunk {
        /// Of the request.
        cookie: u64,
        /// What it holds.
        chunk: Chunk,
    },
}

/// A part of a structured answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Nothing of this answer comes after it.
    pub is_last: bool,
    /// What its payload is.
    pub kind: ChunkKind,
    /// Length of the payload.
    pub len: u32,
}

/// What the payload of a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    /// A place (8 bytes), and data for it.
    Data,
    /// A place (8 bytes), and how many zeroes are there (4 bytes).
    Hole,
    /// Extents; see [`extents`].
    Extents,
    /// An error; see [`error`].
    Error,
    /// Nothing that counts.
    Other,
}

impl Header {
    /// How many bytes come after the first [`MAGIC_BYTES`]; none when they begin no header.
    pub fn rest_bytes(magic: [u8; MAGIC_BYTES]) -> Option<usize> {
        match u32::from_be_bytes(magic) {
            SIMPLE_MAGIC => Some(SIMPLE_BYTES - MAGIC_BYTES),
            CHUNK_MAGIC => Some(16),
            _ => None,
        }
    }

    /// The header that begins so; none when it is none, or not whole.
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let (magic, mut rest) = bytes.split_first_chunk()?;
        match u32::from_be_bytes(*magic) {
            SIMPLE_MAGIC => Some(Header::Simple {
                error: u32_of(&mut rest)?,
                cookie: u64_of(&mut rest)?,
            }),
            CHUNK_MAGIC => {
                let (flags, kind) = (u16_of(&mut rest)?, u16_of(&mut rest)?);
                let (cookie, len) = (u64_of(&mut rest)?, u32_of(&mut rest)?);
                let kind = match kind {
                    DATA => ChunkKind::Data,
                    HOLE => ChunkKind::Hole,
                    STATUS => ChunkKind::Extents,
                    error if error & ERRORS != 0 => ChunkKind::Error,
                    _ => ChunkKind::Other,
                };
                let is_last = flags & LAST != 0;
                let chunk = Chunk { is_last, kind, len };
                Some(Header::Chunk { cookie, chunk })
            }
            _ => None,
        }
    }
}

/// "Error values" are those of Linux: says one in words.
pub fn error_text(error: u32) -> String {
    match i32::try_from(error) {
        Ok(code) => std::io::Error::from_raw_os_error(code).to_string(),
        Err(_) => format!("error {error}"),
    }
}

/// The payload of an error: what it is, and what the server says of it.
pub fn error(payload: &[u8]) -> String {
    let number = payload.first_chunk().map_or(0, |n| u32::from_be_bytes(*n));
    let said = payload.get(6..).map(String::from_utf8_lossy);
    let said: String = said
        .unwrap_or_default()
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    match said.is_empty() {
        true => error_text(number),
        false => format!("{}: {said}", error_text(number)),
    }
}

/// The payload of extents in `base:allocation`: length of each, and whether it has data.
pub fn extents(payload: &[u8]) -> impl Iterator<Item = (u32, bool)> {
    // The context comes first.
    let (pairs, _) = payload.get(4..).unwrap_or_default().as_chunks::<8>();
    pairs.iter().map(|pair| {
        let [a, b, c, d, e, f, g, h] = *pair;
        let (len, flags) = ([a, b, c, d], [e, f, g, h]);
        let is_data = u32::from_be_bytes(flags) & ZERO == 0;
        (u32::from_be_bytes(len), is_data)
    })
}

fn u16_of(bytes: &mut &[u8]) -> Option<u16> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u16::from_be_bytes(*first))
}

fn u32_of(bytes: &mut &[u8]) -> Option<u32> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_be_bytes(*first))
}

fn u64_of(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_be_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_fields_in_order() {
        let bytes = request(WRITE, 0x0102, 4096, 512);
        assert_eq!(bytes[..4], REQUEST_MAGIC.to_be_bytes());
        assert_eq!(bytes[4..8], [0, 0, 0, 1], "no flags, then the type");
        assert_eq!(bytes[8..16], 0x0102u64.to_be_bytes());
        assert_eq!(bytes[16..24], 4096u64.to_be_bytes());
        assert_eq!(bytes[24..], 512u32.to_be_bytes());
    }

    #[test]
    fn headers_are_read_when_they_are_whole() {
        let mut simple = SIMPLE_MAGIC.to_be_bytes().to_vec();
        simple.extend([0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 7]);
        let (error, cookie) = (28, 7);
        assert_eq!(
            Header::parse(&simple),
            Some(Header::Simple { error, cookie })
        );
        let mut chunk = CHUNK_MAGIC.to_be_bytes().to_vec();
        chunk.extend([0, 1, 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9]);
        let Some(Header::Chunk {
            cookie: 7,
            chunk: found,
        }) = Header::parse(&chunk)
        else {
            panic!("it is a chunk");
        };
        let (is_last, kind) = (true, ChunkKind::Error);
        assert_eq!(
            found,
            Chunk {
                is_last,
                kind,
                len: 9
            }
        );
        for whole in [simple, chunk] {
            let magic = *whole.first_chunk().unwrap();
            assert_eq!(Header::rest_bytes(magic), Some(whole.len() - MAGIC_BYTES));
            for short in 0..whole.len() {
                assert_eq!(Header::parse(&whole[..short]), None, "{short} bytes");
            }
        }
        assert_eq!(Header::rest_bytes(*b"HTTP"), None);
        assert_eq!(Header::parse(&[0; 32]), None);
    }

    #[test]
    fn payloads_tell_errors_and_extents() {
        let mut payload = 28u32.to_be_bytes().to_vec();
        payload.extend([0, 4]);
        payload.extend(b"fu\nll");
        assert!(error(&payload).ends_with(": full"), "{}", error(&payload));
        assert_eq!(error(&[]), error_text(0));
        let mut payload = vec![0, 0, 0, 1];
        payload.extend([0, 0, 2, 0, 0, 0, 0, 0]);
        payload.extend([0, 0, 4, 0, 0, 0, 0, 3, 9, 9]);
        let found: Vec<_> = extents(&payload).collect();
        assert_eq!(found, [(512, true), (1024, false)]);
        assert_eq!(extents(&[1]).count(), 0);
    }
}
