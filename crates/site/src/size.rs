//! Sizes as people write them: "4 GiB", "1.5 TB".
//!
//! KiB, MiB, GiB, TiB and PiB are powers of 1024, and so are K, M, G, T and P, as in `lvcreate` and
//! `qemu-img`; kB, MB, GB, TB and PB are powers of 1000. Upper and lower case are the same.
//! A size is a whole number of bytes, above zero; arithmetic is exact.

pub use base::size::{counted, human, human_pair};

/// What [`parse`] takes, for messages.
pub const SIZE_RULE: &str = "a number above zero and a unit (KiB, MiB, GiB, TiB, PiB, or K, M, G, T, P for short; decimal kB, MB, GB, TB, PB; or B), such as \"4 GiB\"";

/// Sizes that something may have.
#[derive(Clone, Copy, Debug)]
pub struct SizeLimits {
    /// The smallest, in bytes.
    pub min_bytes: u64,
    /// All sizes are multiples of so many bytes.
    pub grain_bytes: u64,
}

/// Sizes of volumes; the grain is the logical block of LUNs.
pub const VOLUME_SIZES: SizeLimits = SizeLimits {
    min_bytes: VOLUME_GRAIN_BYTES,
    grain_bytes: VOLUME_GRAIN_BYTES,
};

/// Sizes of drives of a pool. Below the least a drive holds labels and journal and little else;
/// the grain is the engine's block.
pub const DRIVE_SIZES: SizeLimits = SizeLimits {
    min_bytes: 64 << 20,
    grain_bytes: 4096,
};

/// Sizes of drives that replace others: what the pool needs, it says itself.
pub const NEW_DRIVE_SIZES: SizeLimits = SizeLimits {
    min_bytes: 1 << 20,
    ..DRIVE_SIZES
};

impl SizeLimits {
    /// Whether it may be so large.
    pub fn admit(self, size_bytes: u64) -> bool {
        (self.min_bytes..=SIZE_BYTES_MAX).contains(&size_bytes)
            && size_bytes.is_multiple_of(self.grain_bytes)
    }

    /// What [`SizeLimits::admit`] takes, for messages.
    pub fn rule(self) -> String {
        let (min, max) = (human(self.min_bytes), human(SIZE_BYTES_MAX));
        format!("{min} to {max}, a multiple of {} bytes", self.grain_bytes)
    }

    /// As [`SizeLimits::rule`], and the sizes next to one that is no multiple.
    pub fn rule_near(self, size_bytes: u64) -> String {
        let below = size_bytes - size_bytes % self.grain_bytes;
        let near = [Some(below), below.checked_add(self.grain_bytes)];
        let near = near.into_iter().flatten().filter(|size| self.admit(*size));
        let near: Vec<String> = near.map(|size| format!("\"{size} B\"")).collect();
        match size_bytes == below || near.is_empty() {
            true => self.rule(),
            false => format!("{}; the nearest: {}", self.rule(), near.join(", ")),
        }
    }

    /// Reads a size such as "4 GiB".
    ///
    /// # Errors
    /// It is none, or may not be so large: what is allowed.
    pub fn parse(self, text: &str) -> Result<u64, String> {
        match parse(text) {
            Some(size_bytes) if self.admit(size_bytes) => Ok(size_bytes),
            Some(size_bytes) => Err(format!("allowed: {}", self.rule_near(size_bytes))),
            None if is_zero(text) => Err(format!("allowed: {}", self.rule())),
            None => Err(format!("allowed: {SIZE_RULE}; {}", self.rule())),
        }
    }
}

fn is_zero(text: &str) -> bool {
    parse_offset(text) == Some(0)
}

/// Largest drive or volume: far above what exists, far below any overflow.
pub(crate) const SIZE_BYTES_MAX: u64 = 1 << 50;

/// The highest limit of what is done in a second: more is no limit.
pub const RATE_BYTES_MAX: u64 = 1 << 50;

/// Grain of volumes, the logical block of LUNs.
pub(crate) const VOLUME_GRAIN_BYTES: u64 = 512;

/// Whether a volume may have this size.
pub fn is_volume_size(size_bytes: u64) -> bool {
    VOLUME_SIZES.admit(size_bytes)
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
    fn a_size_that_may_not_be_is_told_with_the_limits_and_the_nearest() {
        let drives = "allowed: 64 MiB to 1 PiB, a multiple of 4096 bytes";
        for (text, wrong) in [
            ("0", drives.to_owned()),
            ("0 GiB", drives.to_owned()),
            ("63 MiB", drives.to_owned()),
            ("2 PiB", drives.to_owned()),
            (
                "1 GB",
                format!("{drives}; the nearest: \"999997440 B\", \"1000001536 B\""),
            ),
            (
                "67108865 B",
                format!("{drives}; the nearest: \"67108864 B\", \"67112960 B\""),
            ),
            // There is none above it.
            (
                "1125899906842625 B",
                format!("{drives}; the nearest: \"1125899906842624 B\""),
            ),
            ("18446744073709551615 B", drives.to_owned()),
            (
                "100",
                format!("allowed: {SIZE_RULE}; 64 MiB to 1 PiB, a multiple of 4096 bytes"),
            ),
        ] {
            assert_eq!(DRIVE_SIZES.parse(text), Err(wrong), "{text}");
        }
        assert_eq!(DRIVE_SIZES.parse("1 GiB"), Ok(1 << 30));
        assert_eq!(VOLUME_SIZES.parse("512 B"), Ok(512));
        let volumes = "allowed: 512 B to 1 PiB, a multiple of 512 bytes";
        let wrong = format!("{volumes}; the nearest: \"512 B\"");
        assert_eq!(VOLUME_SIZES.parse("1 B"), Err(wrong));
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
