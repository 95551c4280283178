//! A ROD token of 512 bytes (SPC-4 clause 5.17.6.5, SBC-3 clause 4.28.4): its bytes, which
//! initiators pass around, and the check that it is ours.
//!
//! Invariants:
//! - All of a token is under a keyed MAC. The key is drawn at every start, so nobody can
//!   make one, change one, or use one of before the start.
//! - A token says nothing that its maker did not know.

use super::fields::{number, put};
use super::ranges::POINT_IN_TIME;
use super::xcopy_list::{CSCD_BYTES, IDENTIFICATION};
use crate::sense::{Key, Sense};
use base::SECTOR_BYTES;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of a token.
pub const TOKEN_BYTES: usize = 512;
/// Bytes of the key of the MAC.
pub(super) const KEY_BYTES: usize = 32;

/// ROD type of the token that everybody knows: its data are zeroes.
const ZERO: u32 = 0xffff_0001;
/// ROD TOKEN LENGTH: what follows it.
const LENGTH: u16 = TOKEN_BYTES as u16 - 8;
/// Where the vendor's part begins: which start of the server it is of, and the MAC.
const START: usize = TOKEN_BYTES - MAC_BYTES - START_BYTES;
const START_BYTES: usize = 8;
const MAC_BYTES: usize = 32;

/// Why a token is of no use (SPC-4 table D.1, additional sense code 23h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TokenError {
    /// UNSUPPORTED TOKEN TYPE.
    UnsupportedType = 0x01,
    /// TOKEN UNKNOWN.
    Unknown = 0x04,
    /// TOKEN CORRUPT.
    Corrupt = 0x05,
    /// TOKEN REVOKED.
    Revoked = 0x06,
    /// TOKEN EXPIRED.
    Expired = 0x07,
    /// TOKEN DELETED.
    Deleted = 0x09,
    /// INVALID TOKEN LENGTH.
    InvalidLength = 0x0a,
}

impl TokenError {
    /// ILLEGAL REQUEST, INVALID TOKEN OPERATION.
    pub(super) fn sense(self) -> Sense {
        Sense {
            key: Key::IllegalRequest,
            code: (0x23, self as u8),
            ..Sense::NONE
        }
    }
}

/// What a token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Zeroes, as many as are asked for.
    Zeroes,
    /// What is kept under this number.
    Kept(u64),
}

/// What a new token says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenFields<'a> {
    pub(super) number: u64,
    /// NAA designator of the logical unit.
    pub(super) naa: &'a [u8; 16],
    pub(super) target: &'a str,
    pub(super) bytes: u64,
}

/// What tokens are made and known with, from one start of the server to the next.
pub(super) struct Seal {
    key: [u8; KEY_BYTES],
    start: [u8; START_BYTES],
}

impl Seal {
    /// Of 40 bytes that nobody can guess.
    pub(super) fn new(secret: &[u8; KEY_BYTES + START_BYTES]) -> Self {
        let (mut key, mut start) = ([0; KEY_BYTES], [0; START_BYTES]);
        put(&mut key, 0, secret);
        put(&mut start, 0, &secret[KEY_BYTES..]);
        Seal { key, start }
    }

    fn mac(&self, token: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.key).ok()?;
        mac.update(token);
        Some(mac)
    }

    /// A new token.
    pub(super) fn token(&self, said: TokenFields<'_>) -> Box<[u8; TOKEN_BYTES]> {
        let mut token = Box::new([0; TOKEN_BYTES]);
        let bytes = token.as_mut_slice();
        put(bytes, 0, &POINT_IN_TIME.to_be_bytes());
        put(bytes, 6, &LENGTH.to_be_bytes());
        put(bytes, 8, &said.number.to_be_bytes());
        put(bytes, 16, &creator(said.naa));
        put(bytes, 48, &u128::from(said.bytes).to_be_bytes());
        // Device type specific data: as READ CAPACITY(16) from its block length on.
        put(bytes, 96, &(SECTOR_BYTES as u32).to_be_bytes());
        put(bytes, 128, &target_device(said.target));
        put(bytes, START, &self.start);
        if let Some(mac) = self.mac(&bytes[..START + START_BYTES]) {
            put(bytes, START + START_BYTES, &mac.finalize().into_bytes());
        }
        token
    }

    /// What a token that came stands for.
    ///
    /// # Errors
    /// Any but `Revoked`, `Expired` and `Deleted`.
    pub(super) fn open(&self, token: &[u8]) -> Result<Meaning, TokenError> {
        if token.len() != TOKEN_BYTES || number(token, 6, 2) != u64::from(LENGTH) {
            return Err(TokenError::InvalidLength);
        }
        match number(token, 0, 4) as u32 {
            ZERO => return Ok(Meaning::Zeroes),
            POINT_IN_TIME => {}
            _ => return Err(TokenError::UnsupportedType),
        }
        let (sealed, mac) = token.split_at(START + START_BYTES);
        if sealed[START..] != self.start {
            // Of another server, or of before the start of this one.
            return Err(TokenError::Unknown);
        }
        let known = self.mac(sealed).ok_or(TokenError::Corrupt)?;
        // In constant time.
        known.verify_slice(mac).map_err(|_| TokenError::Corrupt)?;
        Ok(Meaning::Kept(number(token, 8, 8)))
    }
}

/// CREATOR LOGICAL UNIT DESCRIPTOR: an identification descriptor (SPC-4 clause 6.4.5.3).
fn creator(naa: &[u8; 16]) -> [u8; CSCD_BYTES] {
    let mut creator = [0; CSCD_BYTES];
    put(&mut creator, 0, &[IDENTIFICATION, 0, 0, 0, 1, 3, 0, 16]);
    put(&mut creator, 8, naa);
    put(&mut creator, 28, &(SECTOR_BYTES as u32).to_be_bytes());
    creator
}

/// TARGET DEVICE DESCRIPTOR: a SCSI name string of the device (SPC-4 clause 7.8.6.11).
fn target_device(name: &str) -> Vec<u8> {
    const ISCSI_UTF8: u8 = 0x53;
    const PIV_DEVICE_NAME: u8 = 0x80 | 0x20 | 0x08;
    let mut value = name.as_bytes().to_vec();
    value.resize((value.len() + 1).next_multiple_of(4), 0);
    // Names are at most 223 bytes; what is longer is left out.
    value.truncate(224);
    let mut descriptor = vec![ISCSI_UTF8, PIV_DEVICE_NAME, 0, value.len() as u8];
    descriptor.extend(value);
    descriptor
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(tag: u8) -> Seal {
        Seal::new(&[tag; KEY_BYTES + START_BYTES])
    }

    fn said() -> TokenFields<'static> {
        TokenFields {
            number: 0x0102_0304_0506_0708,
            naa: &[0x6a; 16],
            target: "iqn.2026-11.test:t",
            bytes: 0x1112_1314,
        }
    }

    #[test]
    fn a_token_byte_by_byte() {
        let token = seal(7).token(said());
        let mut expected = vec![0, 0x80, 0, 0, 0, 0, 0x01, 0xf8, 1, 2, 3, 4, 5, 6, 7, 8];
        expected.extend([0xe4, 0, 0, 0, 1, 3, 0, 16]);
        expected.extend([0x6a; 16]);
        expected.extend([0, 0, 0, 0, 0, 0, 2, 0]);
        expected.extend([0; 12]);
        expected.extend([0x11, 0x12, 0x13, 0x14]);
        expected.resize(96, 0);
        expected.extend([0, 0, 2, 0]);
        expected.resize(128, 0);
        expected.extend([0x53, 0xa8, 0, 20]);
        expected.extend(b"iqn.2026-11.test:t\0\0");
        expected.resize(472, 0);
        expected.extend([7; 8]);
        assert_eq!(token[..480], expected);
        assert!(token[480..].iter().any(|byte| *byte != 0));
        assert_eq!(token.len(), 512);
    }

    #[test]
    fn a_token_is_known_again_and_by_its_own_seal_only() {
        let token = seal(7).token(said());
        let number = said().number;
        assert_eq!(seal(7).open(token.as_slice()), Ok(Meaning::Kept(number)));
        let other = seal(8).open(token.as_slice());
        assert_eq!(other, Err(TokenError::Unknown), "after a restart");
        // The same start by chance, and still another key.
        let mut secret = [7; KEY_BYTES + START_BYTES];
        secret[0] = 8;
        let other = Seal::new(&secret).open(token.as_slice());
        assert_eq!(other, Err(TokenError::Corrupt));
        let cut = seal(7).open(&token[..511]);
        assert_eq!(cut, Err(TokenError::InvalidLength));
    }

    #[test]
    fn every_bit_of_a_token_counts() {
        let seal = seal(7);
        let token = seal.token(said());
        for bit in 0..TOKEN_BYTES * 8 {
            let mut forged = token.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            let expected = match bit / 8 {
                0..4 => TokenError::UnsupportedType,
                6..8 => TokenError::InvalidLength,
                472..480 => TokenError::Unknown,
                _ => TokenError::Corrupt,
            };
            assert_eq!(seal.open(forged.as_slice()), Err(expected), "bit {bit}");
        }
    }

    #[test]
    fn the_token_of_zeroes_needs_no_seal() {
        let mut zero = [0; TOKEN_BYTES];
        put(&mut zero, 0, &[0xff, 0xff, 0, 1, 0, 0, 1, 0xf8]);
        assert_eq!(seal(7).open(&zero), Ok(Meaning::Zeroes));
        zero[7] = 0;
        assert_eq!(seal(7).open(&zero), Err(TokenError::InvalidLength));
    }

    #[test]
    fn the_sense_of_every_error() {
        let sense = TokenError::Expired.sense().fixed();
        assert_eq!((sense[2], sense[12], sense[13]), (5, 0x23, 7));
    }
}
