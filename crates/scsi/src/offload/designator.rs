//! The designators by which copies name logical units: those of VPD page 83h.

use crate::commands::inquiry::{PRODUCT, VENDOR};
use crate::unit::Identity;

/// A designator of a logical unit (SPC-4 clause 7.8.6.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Designator {
    /// CODE SET, four bits: how `value` is coded.
    pub code_set: u8,
    /// DESIGNATOR TYPE, four bits: the form of the name.
    pub kind: u8,
    /// DESIGNATOR: the name itself, without its header.
    pub value: Vec<u8>,
}

impl Designator {
    /// Whether it is one that VPD page 83h shows for the logical unit of this identity.
    pub fn is_of(&self, identity: &Identity) -> bool {
        const BINARY: u8 = 1;
        const ASCII: u8 = 2;
        match (self.code_set, self.kind) {
            (BINARY, 3) => self.value == identity.naa,
            (ASCII, 1) => {
                let parts = [&VENDOR[..], PRODUCT, identity.serial.as_bytes()];
                self.value == parts.concat()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Uuid;

    #[test]
    fn it_is_what_page_83_shows_for_the_unit_and_nothing_else() {
        let identity = Identity::of(Uuid::from_u128(0x0123_4567_89ab_4cde_8f01_2345_6789_abcd));
        let facts = crate::vpd::Facts {
            identity: &identity,
            target: "iqn.2026-11.test:t",
            port: 1,
            group: 1,
            unmap_blocks: None,
            whole_blocks: 0,
            blocks_per_physical: 8,
        };
        let page = crate::vpd::page(0x83, facts).unwrap();
        let (mut rest, mut of_unit) = (&page[4..], 0);
        while let [code_set, flags, _, len, tail @ ..] = rest {
            let (value, next) = tail.split_at(usize::from(*len));
            let is_of_unit = flags & 0x30 == 0;
            let designator = Designator {
                code_set: code_set & 0xf,
                kind: flags & 0xf,
                value: value.to_vec(),
            };
            assert_eq!(designator.is_of(&identity), is_of_unit, "{designator:?}");
            let other = Identity::of(Uuid::from_u128(7));
            assert!(!designator.is_of(&other));
            of_unit += u8::from(is_of_unit);
            rest = next;
        }
        assert_eq!(of_unit, 2);
    }
}
