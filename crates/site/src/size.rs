//! Sizes as people write them: "4 GiB", "1.5 TB".
//!
//! KiB, MiB, GiB, TiB and PiB are powers of 1024, and so are K, M, G, T and P, as in `lvcreate` and
//! `qemu-img`; kB, MB, GB, TB and PB are powers of 1000. Upper and lower case are the same.
//! A size is a whole number of bytes, above zero; arithmetic is exact.

pub use base::size::{counted, human, human_pair};

/// What [`parse`] takes, for messages.
pub const SIZE_RULE: &str = "a number above zero and a unit (KiB, MiB, GiB, TiB, PiB, or K, M, G, T, P for short; decimal kB, MB, GB, TB, PB; or B), such as \"4 GiB\"";

/// What [`is_volume_size`] takes, for messages.
pub const VOLUME_SIZE_RULE: &str = "up to 1 PiB, a multiple of 512 bytes";

/// Largest drive or volume: far above what exists, far below any overflow.
pub(crate) const SIZE_BYTES_MAX: u64 = 1 << 50;

/// The highest limit of what is done in a second: more is no limit.
pub const RATE_BYTES_MAX: u64 = 1 << 50;

/// Grain of volumes, the logical block of LUNs.
pub(crate) const VOLUME_GRAIN_BYTES: u64 = 512;

/// Whether a volume may have this size.
pub fn is_volume_size(size_bytes: u64) -> bool {
    (1..=SIZE_BYTES_MAX).contains(&size_bytes) && size_bytes.is_multiple_of(VOLUME_GRAIN_BYTES)
}

const UNITS: [(&str, u64); 16] = [
    ("b", 1),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("p", 1 << 50),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("pib", 1 << 50),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("pb", 1_000_000_000_000_000),
];

/// The bytes of a size such as "4 GiB"; `None` when it is none, is zero, isn't a
/// whole number of bytes or doesn't fit 64 bits.
pub fn parse(text: &str) -> Option<u64> {
    number_and_unit(text).filter(|bytes| *bytes > 0)
}

/// As [`parse`], where zero makes sense, too, with or without a unit: a place in a volume.
pub fn parse_offset(text: &str) -> Option<u64> {
    match text.trim() {
        "0" => Some(0),
        text => number_and_unit(text),
    }
}

fn number_and_unit(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(split);
    let unit = unit.trim_start();
    let &(_, unit_bytes) = UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 15 || fraction.contains('.') {
        return None;
    }
    let scale = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let scaled = u128::from(whole.parse::<u64>().ok()?)
        .checked_mul(scale)?
        .checked_add(u128::from(fraction.parse::<u64>().ok()?))?
        .checked_mul(u128::from(unit_bytes))?;
    if !scaled.is_multiple_of(scale) {
        return None;
    }
    u64::try_from(scaled / scale).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_binary_and_decimal_units() {
        assert_eq!(parse("4 GiB"), Some(4 << 30));
        assert_eq!(parse("4GiB"), Some(4 << 30));
        assert_eq!(parse(" 50 MiB "), Some(50 << 20));
        assert_eq!(parse("1.5 TB"), Some(1_500_000_000_000));
        assert_eq!(parse("0.5 KiB"), Some(512));
        assert_eq!(parse("512 B"), Some(512));
        assert_eq!(parse("1 PB"), Some(1_000_000_000_000_000));
        for four in ["4G", "4g", "4 G", "4 gib", "4GIB", "4096M"] {
            assert_eq!(parse(four), Some(4 << 30), "{four}");
        }
    }

    #[test]
    fn refuses_what_is_no_size() {
        for wrong in [
            "",
            "GiB",
            "4",
            "4.5",
            "-4 GiB",
            "NaN GiB",
            "inf GiB",
            "0 GiB",
            "0.0 TiB",
            "4 GiB GiB",
            "1..5 GiB",
            ".5 GiB",
            "5. GiB",
            "0.3 B",
            "1e3 MiB",
            "16777216 TiB",
            "99999999999999999999 B",
            "4 Gi",
            "4 E",
            "٤ GiB",
            "0x10 B",
            "+4 GiB",
        ] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_place_may_be_the_beginning() {
        for zero in ["0", " 0 ", "0 B", "0GiB", "0.0 K"] {
            assert_eq!(parse_offset(zero), Some(0), "{zero:?}");
        }
        assert_eq!(parse_offset("1 GiB"), Some(1 << 30));
        for wrong in ["", "1", "00", "GiB", "-0 B"] {
            assert_eq!(parse_offset(wrong), None, "{wrong:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics_on_any_text(text in ".{0,40}") {
            let _ = parse(&text);
        }
    }
}
