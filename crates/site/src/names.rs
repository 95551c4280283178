//! Rules for names of drives, pools, volumes and iSCSI nodes.

/// What [`is_name`] takes, for messages.
pub const NAME_RULE: &str = "1 to 64 letters, digits, '-', '_' or '.', the first a letter or digit";

/// What [`is_target_name`] takes, for messages.
pub const TARGET_RULE: &str = "an iSCSI qualified name in lower case, \
     iqn.YYYY-MM.reversed.domain[:name], such as \"iqn.2026-11.dev.ashlar:vm1\", at most 223 bytes";

/// iSCSI names are at most this long (RFC 7143 clause 4.2.7.1).
const ISCSI_NAME_BYTES_MAX: usize = 223;

/// Whether `name` may name a drive, pool, volume or VM. It is then also a plain
/// segment of a URL.
pub fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Whether `name` may name a target: the `iqn.` format of RFC 7143 clause
/// 4.2.7.4 over the characters that clause 4.2.7.2 allows from ASCII.
pub fn is_target_name(name: &str) -> bool {
    name.len() <= ISCSI_NAME_BYTES_MAX && is_iqn(name)
}

/// Whether `name` may name an initiator: `iqn.`, `eui.` or `naa.` (RFC 7143
/// clauses 4.2.7.4 to 4.2.7.6), in lower case.
pub fn is_initiator_name(name: &str) -> bool {
    let hex = |digits: &str, lengths: &[usize]| {
        lengths.contains(&digits.len())
            && digits
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    if let Some(digits) = name.strip_prefix("eui.") {
        return hex(digits, &[16]);
    }
    if let Some(digits) = name.strip_prefix("naa.") {
        return hex(digits, &[16, 32]);
    }
    is_target_name(name)
}

fn is_iqn(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("iqn.") else {
        return false;
    };
    let (authority, string) = match rest.split_once(':') {
        Some((authority, string)) => (authority, Some(string)),
        None => (rest, None),
    };
    let Some((date, domain)) = authority.split_once('.') else {
        return false;
    };
    let allowed =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.' | b':');
    is_year_and_month(date)
        && domain.split('.').all(is_domain_label)
        && string.is_none_or(|string| !string.is_empty() && string.bytes().all(allowed))
}

fn is_year_and_month(date: &str) -> bool {
    let Some((year, month)) = date.split_once('-') else {
        return false;
    };
    let digits =
        |text: &str, len: usize| text.len() == len && text.bytes().all(|b| b.is_ascii_digit());
    digits(year, 4) && digits(month, 2) && ("01"..="12").contains(&month)
}

fn is_domain_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_words() {
        for good in ["d0", "net01-system", "A.b_c", "9", &"x".repeat(64)] {
            assert!(is_name(good), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "-a",
            "a b",
            "a/b",
            "ä",
            &"x".repeat(65),
            "a\0",
        ] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn target_names_follow_the_rfc() {
        for good in [
            "iqn.2026-11.dev.ashlar:net01",
            "iqn.2001-04.com.example",
            "iqn.2001-04.com.example:storage:diskarrays-sn-a8675309",
        ] {
            assert!(is_target_name(good), "{good}");
        }
        for bad in [
            "",
            "iqn.",
            "iqn.2026-13.dev.ashlar",
            "iqn.2026-00.dev.ashlar",
            "iqn.26-11.dev.ashlar:x",
            "IQN.2026-11.dev.ashlar:x",
            "iqn.2026-11.dev.ashlar:",
            "iqn.2026-11.Dev.ashlar:x",
            "iqn.2026-11:x",
            "iqn.2026-11.dev..ashlar",
            "iqn.2026-11.-dev:x",
            "eui.0123456789abcdef",
            "iqn.2026-11.dev.ashlar:a b",
            "iqn.2026-11.dev.ashlar:a_b",
        ] {
            assert!(!is_target_name(bad), "{bad}");
        }
        assert!(!is_target_name(&format!(
            "iqn.2026-11.dev.ashlar:{}",
            "x".repeat(201)
        )));
    }

    #[test]
    fn initiators_may_have_eui_and_naa_names_too() {
        assert!(is_initiator_name("eui.02004567a425678d"));
        assert!(is_initiator_name("naa.52004567ba64678d"));
        assert!(is_initiator_name("naa.62004567ba64678d0123456789abcdef"));
        assert!(!is_initiator_name("eui.02004567a425678"));
        assert!(!is_initiator_name("naa.52004567BA64678D"));
    }
}
