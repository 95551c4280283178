//! Little-endian fields in byte order, for labels, journal and checkpoints.
//!
//! Reading never panics: what comes off a drive may be anything.

use base::Uuid;

/// Appends fields to a byte string.
#[derive(Debug, Default)]
pub struct Writer {
    /// What has been written.
    pub bytes: Vec<u8>,
}

impl Writer {
    /// One that takes so many bytes without moving them.
    pub fn with_room(bytes: usize) -> Self {
        Writer {
            bytes: Vec::with_capacity(bytes),
        }
    }

    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Many of them, one after the other.
    pub fn u32s(&mut self, values: &[u32]) {
        let from = self.bytes.len();
        self.bytes.resize(from + 4 * values.len(), 0);
        let places = self.bytes[from..].as_chunks_mut::<4>().0;
        for (place, value) in places.iter_mut().zip(values) {
            *place = value.to_le_bytes();
        }
    }

    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub fn uuid(&mut self, value: Uuid) {
        self.bytes.extend_from_slice(value.as_bytes());
    }

    /// A string in a field of `width` bytes, padded with zeroes.
    ///
    /// # Panics
    /// When it is longer: names are checked when they come in.
    pub fn name(&mut self, value: &str, width: usize) {
        assert!(
            value.len() <= width,
            "name '{value}' is longer than {width} bytes"
        );
        self.bytes.extend_from_slice(value.as_bytes());
        self.bytes.resize(self.bytes.len() + width - value.len(), 0);
    }

    /// Zeroes up to `offset` from the start.
    pub fn pad_to(&mut self, offset: usize) {
        assert!(
            self.bytes.len() <= offset,
            "{} bytes written before {offset}",
            self.bytes.len()
        );
        self.bytes.resize(offset, 0);
    }
}

/// Takes fields off a byte string. `None` once it is too short or wrong.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte, which stays there.
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn uuid(&mut self) -> Option<Uuid> {
        self.array().map(Uuid::from_bytes)
    }

    /// A string from a field of `width` bytes, up to its first zero.
    pub fn name(&mut self, width: usize) -> Option<String> {
        let field = self.take(width)?;
        let used = field.iter().position(|&b| b == 0).unwrap_or(width);
        String::from_utf8(field[..used].to_vec()).ok()
    }
}
