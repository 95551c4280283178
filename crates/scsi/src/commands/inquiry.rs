//! INQUIRY: standard data (SPC-4 clause 6.6.2).

/// T10 vendor identification.
pub(crate) const VENDOR: &[u8; 8] = b"ASHLAR  ";
/// Product identification, the same for every volume: initiators match on it.
pub(crate) const PRODUCT: &[u8; 16] = b"VIRTUAL DISK    ";

/// Major and minor version, padded.
const REVISION: &[u8; 4] = {
    const fn digit(text: &str) -> u8 {
        let bytes = text.as_bytes();
        bytes[bytes.len() - 1]
    }
    &[
        digit(env!("CARGO_PKG_VERSION_MAJOR")),
        b'.',
        digit(env!("CARGO_PKG_VERSION_MINOR")),
        b' ',
    ]
};

/// Standards kept to: SAM-5, iSCSI, SPC-4, SBC-3, none with a version claimed.
const VERSION_DESCRIPTORS: [u16; 4] = [0x00a0, 0x0960, 0x0460, 0x04c0];

/// Peripheral qualifier 011b, device type 1Fh: no logical unit here and none
/// possible (SPC-4 clause 6.6.2, and SAM-5 clause 5.11 for absent LUNs).
const ABSENT: u8 = 0x7f;

/// Standard INQUIRY data, 96 bytes.
pub(crate) fn standard(present: bool) -> Vec<u8> {
    let mut data = vec![0; 96];
    data[0] = if present { 0 } else { ABSENT };
    data[2] = 0x06;
    // HISUP, response data format 2.
    data[3] = 0x12;
    data[4] = 96 - 5;
    // TPGS: ports change their state by themselves (implicit ALUA). 3PC: third-party copies.
    data[5] = if present { 0x10 | 0x08 } else { 0 };
    // CMDQUE.
    data[7] = 0x02;
    data[8..16].copy_from_slice(VENDOR);
    data[16..32].copy_from_slice(PRODUCT);
    data[32..36].copy_from_slice(REVISION);
    for (place, descriptor) in VERSION_DESCRIPTORS.iter().enumerate() {
        data[58 + 2 * place..60 + 2 * place].copy_from_slice(&descriptor.to_be_bytes());
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_data_byte_by_byte() {
        let mut expected = vec![0x00, 0, 6, 0x12, 91, 0x18, 0, 2];
        expected.extend(b"ASHLAR  VIRTUAL DISK    0.1 ");
        expected.resize(58, 0);
        expected.extend([0x00, 0xa0, 0x09, 0x60, 0x04, 0x60, 0x04, 0xc0]);
        expected.resize(96, 0);
        assert_eq!(standard(true), expected);
        (expected[0], expected[5]) = (0x7f, 0);
        assert_eq!(standard(false), expected);
    }
}
