//! Rules for descriptions and tags of volumes.

/// Bytes of a description, at most.
pub const DESCRIPTION_BYTES_MAX: usize = 240;
/// What [`is_description`] takes, for messages.
pub const DESCRIPTION_RULE: &str = "up to 240 bytes on one line";
/// Bytes of a tag's key, at most.
pub const TAG_KEY_BYTES_MAX: usize = 23;
/// Bytes of a tag's value, at most.
pub const TAG_VALUE_BYTES_MAX: usize = 64;
/// What [`is_tag`] takes, for messages.
pub const TAG_RULE: &str = "a key of 1 to 23 letters, digits, '-', '_', '.', '/', the first a \
     letter or digit, and a value of 1 to 64 bytes on one line";

/// Whether `text` may say what a volume is for.
pub fn is_description(text: &str) -> bool {
    text.len() <= DESCRIPTION_BYTES_MAX && !text.chars().any(char::is_control)
}

/// Whether people may attach `key` with `value`.
pub fn is_tag(key: &str, value: &str) -> bool {
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    key.starts_with(|c: char| c.is_ascii_alphanumeric())
        && key.len() <= TAG_KEY_BYTES_MAX
        && key.chars().all(is_key)
        && (1..=TAG_VALUE_BYTES_MAX).contains(&value.len())
        && !value.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_short_and_plain() {
        for (key, value) in [
            ("vm", "web01"),
            ("a/b-c_d.e", "ä b"),
            ("k", &"x".repeat(64)),
        ] {
            assert!(is_tag(key, value), "{key}={value}");
        }
        for (key, value) in [
            ("", "x"),
            ("_own", "x"),
            ("a b", "x"),
            ("k", ""),
            ("k", "a\nb"),
            ("k", &"x".repeat(65)),
            (&"k".repeat(24), "x"),
        ] {
            assert!(!is_tag(key, value), "{key}={value}");
        }
    }
}
