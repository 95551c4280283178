//! The eight bytes of a LUN (SAM-5 clause 4.7).

/// The number in a LUN of one level, by peripheral (bus 0) or flat addressing;
/// `None` for anything else, which no logical unit here has.
pub fn decode(lun: [u8; 8]) -> Option<u16> {
    let [first, second, rest @ ..] = lun;
    if rest != [0; 6] {
        return None;
    }
    match first >> 6 {
        0b00 if first == 0 => Some(u16::from(second)),
        0b01 => Some(u16::from_be_bytes([first & 0x3f, second])),
        _ => None,
    }
}

/// How REPORT LUNS shows `number`: peripheral up to 255, flat above.
pub fn encode(number: u16) -> [u8; 8] {
    let [high, low] = number.to_be_bytes();
    let method = if high == 0 { 0 } else { 0x40 };
    [method | high, low, 0, 0, 0, 0, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_round() {
        for number in 0..=crate::LUN_MAX {
            assert_eq!(decode(encode(number)), Some(number));
        }
        assert_eq!(encode(255)[..2], [0, 255]);
        assert_eq!(encode(256)[..2], [0x41, 0]);
    }

    #[test]
    fn both_addressing_methods_are_understood_and_no_others() {
        assert_eq!(decode([0x40, 7, 0, 0, 0, 0, 0, 0]), Some(7));
        assert_eq!(decode([0x01, 7, 0, 0, 0, 0, 0, 0]), None, "bus 1");
        assert_eq!(decode([0xc1, 1, 0, 0, 0, 0, 0, 0]), None, "well known");
        assert_eq!(
            decode([0x80, 0, 0, 0, 0, 0, 0, 0]),
            None,
            "logical unit addressing"
        );
        assert_eq!(decode([0, 0, 0, 1, 0, 0, 0, 0]), None, "second level");
    }
}
