//! REPORT LUNS (SPC-4 clause 6.33).

use crate::lun;
use crate::sense::Sense;

/// Parameter data for `select`, of a target with these LUNs (ascending).
pub(crate) fn report(select: u8, luns: &[u16]) -> Result<Vec<u8>, Sense> {
    let luns = match select {
        // 00h: all but well-known ones. 02h: all. There are no well-known ones.
        0x00 | 0x02 => luns,
        0x01 => &[],
        _ => return Err(Sense::invalid_field(2, None)),
    };
    let mut data = (8 * luns.len() as u32).to_be_bytes().to_vec();
    data.extend([0; 4]);
    for number in luns {
        data.extend(lun::encode(*number));
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_byte_by_byte() {
        let mut expected = vec![0, 0, 0, 16, 0, 0, 0, 0];
        expected.extend([0, 1, 0, 0, 0, 0, 0, 0]);
        expected.extend([0x41, 2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(report(0, &[1, 0x102]), Ok(expected.clone()));
        assert_eq!(report(2, &[1, 0x102]), Ok(expected));
        assert_eq!(report(1, &[1, 0x102]), Ok(vec![0; 8]));
        assert_eq!(report(0, &[]), Ok(vec![0; 8]));
        assert_eq!(report(3, &[1]), Err(Sense::invalid_field(2, None)));
    }
}
