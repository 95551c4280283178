//! The PDU codec (RFC 7143 clause 11): 48 header bytes to typed fields and back.
//!
//! Invariants:
//! - Parsing never fails on a field's value, only on an opcode that is not known:
//!   what a value means is for the state machines.
//! - Parsing keeps every field that the clause defines, so that what is encoded
//!   parses to the same again. Reserved bits are dropped.
//! - Lengths ([`ahs_bytes`], [`data_segment_bytes`]) are apart from the typed
//!   fields: they belong to framing.

pub mod additional;
mod fields;
pub mod request;
pub mod response;

pub use request::Request;
pub use response::Response;

/// Length of a basic header segment.
pub const BHS_BYTES: usize = 48;

/// Length of a header or data digest.
pub const DIGEST_BYTES: usize = 4;

/// The tag that stands for none (initiator and target task tags).
pub const NO_TAG: u32 = 0xffff_ffff;

/// A basic header segment.
pub type Bhs = [u8; BHS_BYTES];

/// Eight bytes of a LUN field (SAM-5 clause 4.7).
pub type Lun = [u8; 8];

/// The opcode without its flags.
pub fn opcode(bhs: &Bhs) -> u8 {
    bhs[0] & 0x3f
}

/// Length of the additional header segments, in bytes (a multiple of four).
pub fn ahs_bytes(bhs: &Bhs) -> usize {
    usize::from(bhs[4]) * 4
}

/// Length of the data segment, in bytes, without padding.
pub fn data_segment_bytes(bhs: &Bhs) -> usize {
    usize::from(bhs[5]) << 16 | usize::from(bhs[6]) << 8 | usize::from(bhs[7])
}

/// Sets the length of the data segment.
///
/// # Panics
/// When it does not fit the field of 24 bits: nothing here sends such segments.
pub fn set_data_segment_bytes(bhs: &mut Bhs, len: usize) {
    assert!(len < 1 << 24, "a data segment of {len} bytes");
    let bytes = (len as u32).to_be_bytes();
    bhs[5..8].copy_from_slice(&bytes[1..]);
}

/// Bytes that pad a segment of `len` bytes to whole words.
pub fn padding_bytes(len: usize) -> usize {
    len.next_multiple_of(4) - len
}

/// Why a PDU is rejected (RFC 7143 clause 11.17.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RejectReason {
    /// The data segment does not match its digest.
    DataDigestError = 0x02,
    /// SNACK is not offered at error recovery level 0.
    SnackReject = 0x03,
    /// The PDU breaks the protocol, or is not allowed at this point.
    ProtocolError = 0x04,
    /// The opcode is not known or not offered.
    CommandNotSupported = 0x05,
    /// Too many immediate commands.
    ImmediateCommandReject = 0x06,
    /// The initiator task tag is in use.
    TaskInProgress = 0x07,
    /// A field's value can't be right.
    InvalidPduField = 0x09,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_where_the_clause_puts_them() {
        let mut bhs = [0u8; BHS_BYTES];
        bhs[4] = 3;
        set_data_segment_bytes(&mut bhs, 0x01_02_03);
        assert_eq!(bhs[4..8], [3, 1, 2, 3]);
        assert_eq!(
            (ahs_bytes(&bhs), data_segment_bytes(&bhs)),
            (12, 0x01_02_03)
        );
    }

    #[test]
    #[should_panic(expected = "a data segment of 16777216 bytes")]
    fn a_length_that_does_not_fit_is_never_cut() {
        set_data_segment_bytes(&mut [0; BHS_BYTES], 1 << 24);
    }

    #[test]
    fn padding_reaches_the_next_word() {
        assert_eq!([0, 1, 2, 3, 4].map(padding_bytes), [0, 3, 2, 1, 0]);
    }
}
