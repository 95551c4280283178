//! Text keys and values (RFC 7143 clause 6.1).

/// A key's name is at most this long (clause 6.1).
const KEY_BYTES_MAX: usize = 63;

/// A value is at most this long (clause 6.1: 255, but lists may be longer; a
/// list of methods that is longer than this is nothing we know).
const VALUE_BYTES_MAX: usize = 1024;

/// A challenge of 1024 bytes, the longest there may be (clause 12.1.3), in hexadecimal.
const CHALLENGE_VALUE_BYTES_MAX: usize = 2 + 2 * 1024;

/// Text that breaks the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// The bytes are not valid UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// A pair does not end in a NUL.
    #[error("the last key=value pair does not end in a NUL")]
    Unterminated,
    /// A pair has no `=`.
    #[error("a key has no value")]
    NoValue,
    /// A key is empty, too long, or has characters that keys don't have.
    #[error("a key's name is empty, longer than 63 bytes or has forbidden characters")]
    BadKey,
    /// A value is too long.
    #[error("a value is longer than 1024 bytes, or a challenge than 2050")]
    LongValue,
}

/// Splits text into its pairs.
///
/// # Errors
/// When anything breaks the format: nothing of such text is used.
pub fn parse(text: &[u8]) -> Result<Vec<(&str, &str)>, TextError> {
    let text = std::str::from_utf8(text).map_err(|_| TextError::NotUtf8)?;
    if !text.is_empty() && !text.ends_with('\0') {
        return Err(TextError::Unterminated);
    }
    // Some initiators pad the text with NULs beyond the last pair's.
    let text = text.trim_end_matches('\0');
    let mut pairs = Vec::new();
    for pair in text.split('\0').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').ok_or(TextError::NoValue)?;
        check_key(key)?;
        let longest = match key {
            "CHAP_C" => CHALLENGE_VALUE_BYTES_MAX,
            _ => VALUE_BYTES_MAX,
        };
        if value.len() > longest {
            return Err(TextError::LongValue);
        }
        pairs.push((key, value));
    }
    Ok(pairs)
}

fn check_key(key: &str) -> Result<(), TextError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-+@_#".contains(&byte);
    let right = (1..=KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(allowed);
    if right {
        Ok(())
    } else {
        Err(TextError::BadKey)
    }
}

/// Appends a pair with its NUL.
pub fn push(text: &mut Vec<u8>, key: &str, value: &str) {
    text.extend_from_slice(key.as_bytes());
    text.push(b'=');
    text.extend_from_slice(value.as_bytes());
    text.push(0);
}

/// A number in decimal or `0x` notation (clause 6.1).
pub fn number(value: &str) -> Option<u64> {
    match value
        .strip_prefix("0x")
        .or_else(|| value.strip_prefix("0X"))
    {
        // `from_str_radix` would take a sign.
        Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
            u64::from_str_radix(hex, 16).ok()
        }
        None if value.bytes().all(|b| b.is_ascii_digit()) => value.parse().ok(),
        _ => None,
    }
}

/// Binary data in hexadecimal (`0x`) or base64 (`0b`) notation (clause 6.1). Every byte
/// has both of its digits, and what stands for no byte is not taken.
pub fn binary(value: &str) -> Option<Vec<u8>> {
    let (notation, digits) = value.split_at_checked(2)?;
    match notation {
        "0x" | "0X" => hexadecimal(digits.as_bytes()),
        "0b" | "0B" => base64(digits.as_bytes()),
        _ => None,
    }
}

fn hexadecimal(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    let (pairs, rest) = digits.as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| Some((value(*high)? << 4 | value(*low)?) as u8);
    pairs
        .iter()
        .map(byte)
        .collect::<Option<_>>()
        .filter(|_| rest.is_empty())
}

/// Groups of four characters are three bytes; the last one may be padded with `=`
/// (RFC 4648 clause 4).
fn base64(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: u8| {
        Some(u32::from(match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        }))
    };
    let (groups, []) = digits.as_chunks::<4>() else {
        return None;
    };
    let mut bytes = Vec::with_capacity(groups.len() * 3);
    for (at, group) in groups.iter().enumerate() {
        let last = at + 1 == groups.len();
        let (known, padding) = match group {
            [_, _, b'=', b'='] if last => (&group[..2], 2),
            [_, _, _, b'='] if last => (&group[..3], 1),
            _ => (&group[..], 0),
        };
        let mut bits = 0;
        for digit in known {
            bits = bits << 6 | value(*digit)?;
        }
        bits <<= 6 * padding;
        let [_, whole @ ..] = bits.to_be_bytes();
        let (kept, cut) = whole.split_at(3 - padding);
        // Bits that no byte has are zero, so that a value has one notation.
        if cut.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_in_order_and_written_back() {
        let pairs = parse(b"A=1\0B=x=y\0C=\0\0\0").unwrap();
        assert_eq!(pairs, [("A", "1"), ("B", "x=y"), ("C", "")]);
        let mut text = Vec::new();
        pairs
            .iter()
            .for_each(|(key, value)| push(&mut text, key, value));
        assert_eq!(text, b"A=1\0B=x=y\0C=\0");
    }

    #[test]
    fn wrong_text_is_refused() {
        let long_key = [b"K".repeat(64), b"=1\0".to_vec()].concat();
        let long_value = [b"K=".to_vec(), b"v".repeat(1025), vec![0]].concat();
        assert_eq!(parse(b"A\xff=1\0"), Err(TextError::NotUtf8));
        assert_eq!(parse(b"A=1\0B=2"), Err(TextError::Unterminated));
        assert_eq!(parse(b"A\0"), Err(TextError::NoValue));
        assert_eq!(parse(b"=1\0"), Err(TextError::BadKey));
        assert_eq!(parse(b"A B=1\0"), Err(TextError::BadKey));
        assert_eq!(parse(&long_key), Err(TextError::BadKey));
        assert_eq!(parse(&long_value), Err(TextError::LongValue));
    }

    #[test]
    fn a_challenge_may_be_longer_than_other_values() {
        let longest = [b"CHAP_C=0x".to_vec(), b"f".repeat(2048), vec![0]].concat();
        assert_eq!(parse(&longest).unwrap()[0].1.len(), 2050);
        let longer = [b"CHAP_C=0x".to_vec(), b"f".repeat(2049), vec![0]].concat();
        assert_eq!(parse(&longer), Err(TextError::LongValue));
    }

    #[test]
    fn binary_values_are_hexadecimal_or_base64() {
        for (value, bytes) in [
            ("0x", &b""[..]),
            ("0x00fF", b"\x00\xff"),
            ("0X0a", b"\x0a"),
            ("0b", b""),
            ("0bAP8=", b"\x00\xff"),
            ("0BZg==", b"f"),
            ("0bZm9v+/8=", b"foo\xfb\xff"),
        ] {
            assert_eq!(binary(value).as_deref(), Some(bytes), "{value}");
        }
        for wrong in [
            "",
            "0",
            "ff",
            "0xf",
            "0xfff",
            "0xgg",
            "0x0x",
            "0x f",
            "0bZ",
            "0bZg=",
            "0bZg=a",
            "0bZh==",
            "0bZm9=",
            "0b====",
            "0bZg==Zg==",
            "0bZm9-",
            "0c00",
            "00",
            "5",
            "0\u{e4}",
        ] {
            assert_eq!(binary(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!(number("65536"), Some(65536));
        assert_eq!(number("0x1F"), Some(31));
        for wrong in ["", "0x", "-1", "+1", "0x+1", "1k", "99999999999999999999"] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }
}
