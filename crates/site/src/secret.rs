//! Secrets of CHAP, which no message shows.

use std::fmt;

/// In the place of a secret in a site file that the array writes: too short to be one.
pub(crate) const NOT_SHOWN: &str = "not shown";

/// What messages say of it where the secret itself has to be.
pub(crate) const NOT_SHOWN_TOLD: &str =
    "\"not shown\", which `ashlar site show` writes for every secret";

/// What [`Secret::parse`] takes, for messages.
pub const SECRET_RULE: &str =
    "a secret of 12 to 255 bytes, as text or as 0x and two hexadecimal digits for each byte";

/// What [`is_chap_name`] takes, for messages.
pub const CHAP_NAME_RULE: &str = "1 to 255 bytes without control characters";

/// RFC 7143 clause 9.2.1 wants 96 bits; clause 12.1.3 has room for 255 bytes.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 12..=255;

/// A secret, as bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// The secret that `text` says; `None` when it says none, or has a wrong length.
    pub fn parse(text: &str) -> Option<Secret> {
        let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let bytes = match hexadecimal {
            Some(digits) => from_hexadecimal(digits)?,
            None => text.as_bytes().to_vec(),
        };
        Secret::new(bytes)
    }

    /// `None` when it has too few bytes to be one, or too many.
    pub fn new(bytes: Vec<u8>) -> Option<Secret> {
        SECRET_BYTES.contains(&bytes.len()).then_some(Secret(bytes))
    }

    /// The secret in plain: CHAP digests it.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// As [`Secret::parse`] takes it; for where secrets are kept.
    pub fn hexadecimal(&self) -> String {
        let digits = self.0.iter().map(|byte| format!("{byte:02x}"));
        std::iter::once("0x".to_owned()).chain(digits).collect()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

fn from_hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let byte = |[high, low]: &[u8; 2]| Some((value(*high)? << 4 | value(*low)?) as u8);
    pairs.iter().map(byte).collect()
}

/// Whether `name` may be a name of CHAP.
pub fn is_chap_name(name: &str) -> bool {
    (1..=255).contains(&name.len()) && !name.chars().any(char::is_control)
}

/// A name with its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// As [`is_chap_name`] takes it.
    pub name: String,
    /// The secret that proves the name.
    pub secret: Secret,
}

/// What initiators have to prove by CHAP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChapAccount {
    /// The initiator's name and secret.
    pub initiator: Credential,
    /// Ours, for initiators that ask us to prove who we are; another secret.
    pub mutual: Option<Credential>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_text_or_hexadecimal() {
        let text = Secret::parse("twelve bytes").map(|secret| secret.bytes().to_vec());
        assert_eq!(text.as_deref(), Some(&b"twelve bytes"[..]));
        let bytes = Secret::parse("0x000102030405060708090aFf");
        let bytes = bytes.as_ref().map(Secret::bytes);
        assert_eq!(bytes, Some(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255][..]));
        for (length, good) in [(11, false), (12, true), (255, true), (256, false)] {
            let again = Secret::parse(&"s".repeat(length));
            assert_eq!(again.is_some(), good, "{length}");
            let again = again.and_then(|secret| Secret::parse(&secret.hexadecimal()));
            assert_eq!(again.is_some(), good, "{length} bytes, written down");
        }
        for wrong in [
            "",
            "0x",
            "0x00010203040506070809zz0b",
            "0x000102030405060708090a0",
        ] {
            assert_eq!(Secret::parse(wrong), None, "{wrong}");
        }
        assert_eq!(
            format!("{:?}", Secret::parse("twelve bytes")),
            "Some(Secret)"
        );
    }

    #[test]
    fn names_of_chap_have_a_length_and_no_control_characters() {
        assert!(is_chap_name("host 1") && is_chap_name(&"n".repeat(255)));
        assert!(!is_chap_name("") && !is_chap_name(&"n".repeat(256)) && !is_chap_name("a\0b"));
    }
}
