//! Text keys and values (RFC 7143 clause 6.1).

/// A key's name is at most this long (clause 6.1).
const KEY_BYTES_MAX: usize = 63;

/// A value is at most this long (clause 6.1: 255, but lists may be longer; a
/// list of methods that is longer than this is nothing we know).
const VALUE_BYTES_MAX: usize = 1024;

/// Text that breaks the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Not UTF-8.
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
    #[error("a value is longer than 1024 bytes")]
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
        if value.len() > VALUE_BYTES_MAX {
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
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!(number("65536"), Some(65536));
        assert_eq!(number("0x1F"), Some(31));
        for wrong in ["", "0x", "-1", "+1", "0x+1", "1k", "99999999999999999999"] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }
}
