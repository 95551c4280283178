//! Sizes and numbers of things, as people read them.

/// `bytes` for people: the largest binary unit, with as many decimals as tell
/// sizes apart at a glance ("4 GiB", "1.5 TiB", "700 MiB").
pub fn human(bytes: u64) -> String {
    const BINARY: [(&str, u64); 5] = [
        ("PiB", 1 << 50),
        ("TiB", 1 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
    ];
    let Some((name, unit)) = BINARY.iter().find(|(_, unit)| bytes >= *unit) else {
        return format!("{bytes} B");
    };
    if bytes.is_multiple_of(*unit) {
        return format!("{} {name}", bytes / unit);
    }
    let hundredths = u128::from(bytes) * 100 / u128::from(*unit);
    format!("{}.{:02} {name}", hundredths / 100, hundredths % 100)
}

/// Two sizes that one message compares. Where they are closer than [`human`] tells, both are in
/// bytes.
pub fn human_pair(one: u64, other: u64) -> (String, String) {
    match one != other && one.abs_diff(other) < one.max(other) / 100 {
        true => (format!("{one} bytes"), format!("{other} bytes")),
        false => (human(one), human(other)),
    }
}

/// So many things: "1 drive", "4 drives"; of what takes an `s`.
pub fn counted(count: u64, thing: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_several() {
        let all = [0, 1, 2].map(|count| counted(count, "pool"));
        assert_eq!(all, ["0 pools", "1 pool", "2 pools"]);
    }

    #[test]
    fn sizes_are_in_the_largest_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1 << 10, "1 KiB"),
            (1536, "1.50 KiB"),
            (200 << 30, "200 GiB"),
            ((1 << 40) - 1, "1023.99 GiB"),
        ] {
            assert_eq!(human(bytes), text);
        }
    }

    #[test]
    fn sizes_that_differ_read_differently() {
        let pair = |one, other| human_pair(one, other);
        assert_eq!(pair(1 << 30, 2 << 30), ("1 GiB".into(), "2 GiB".into()));
        assert_eq!(pair(0, 4096), ("0 B".into(), "4 KiB".into()));
        let (one, other) = pair(1 << 30, (1 << 30) + 4096);
        assert_eq!((&*one, &*other), ("1073741824 bytes", "1073745920 bytes"));
        assert_eq!(pair(1 << 30, 1 << 30).0, "1 GiB");
    }
}
