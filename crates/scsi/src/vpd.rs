//! Vital product data pages (SPC-4 clause 7.8, SBC-3 clause 6.6).

use crate::cdb::{MAX_TRANSFER_BLOCKS, MAX_WRITE_SAME_BLOCKS};
use crate::commands::alter::COMPARE_BLOCKS_MAX;
use crate::commands::inquiry::{PRODUCT, VENDOR};
use crate::commands::log::THRESHOLD_EXPONENT;
use crate::commands::unmap;
use crate::offload;
use crate::unit::Identity;
use base::SECTOR_BYTES;

/// Pages that there are, ascending, as page 00h lists them.
const PAGES: [u8; 9] = [0x00, 0x80, 0x83, 0x86, 0x87, 0x8f, 0xb0, 0xb1, 0xb2];

/// What the pages of a unit tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) identity: &'a Identity,
    /// Name of the target.
    pub(crate) target: &'a str,
    /// Relative identifier of the target port that is asked by.
    pub(crate) port: u16,
    /// The group that it is in.
    pub(crate) group: u16,
    /// As in [`LogicalUnit::unmap_blocks`](crate::LogicalUnit::unmap_blocks).
    pub(crate) unmap_blocks: Option<u32>,
    /// Blocks that are written whole, at most.
    pub(crate) whole_blocks: u32,
    /// Logical blocks to a physical one.
    pub(crate) blocks_per_physical: u32,
}

/// Transfers of this many bytes need no second page of a pool.
const OPTIMAL_TRANSFER_BYTES: usize = 256 << 10;

/// The page called `code`, whole, or `None` where there is no such page.
pub(crate) fn page(code: u8, facts: Facts<'_>) -> Option<Vec<u8>> {
    let body = match code {
        0x00 => PAGES.to_vec(),
        0x80 => facts.identity.serial.as_bytes().to_vec(),
        0x83 => device_identification(facts),
        0x86 => extended_inquiry(),
        0x87 => mode_page_policy(),
        0x8f => offload::third_party_copy(),
        0xb0 => block_limits(facts),
        0xb1 => block_device_characteristics(facts.unmap_blocks.is_some()),
        0xb2 => logical_block_provisioning(facts.unmap_blocks.is_some()),
        _ => return None,
    };
    // Peripheral qualifier and type 00h: a connected direct-access block device.
    let mut page = vec![0, code];
    page.extend((body.len() as u16).to_be_bytes());
    page.extend(body);
    Some(page)
}

/// Page 83h (SPC-4 clause 7.8.6): the logical unit by NAA and by T10 vendor
/// identifier; the target port by number, group and name.
fn device_identification(facts: Facts<'_>) -> Vec<u8> {
    const BINARY: u8 = 1;
    const ASCII: u8 = 2;
    const UTF8: u8 = 3;
    const ISCSI: u8 = 0x50;
    const PORT: u8 = 0x80 | 0x10;
    let (identity, target, port) = (facts.identity, facts.target, facts.port);
    let number = |number: u16| {
        let [high, low] = number.to_be_bytes();
        [0, 0, high, low]
    };
    let mut vendor_id = VENDOR.to_vec();
    vendor_id.extend(PRODUCT);
    vendor_id.extend(identity.serial.as_bytes());
    let mut port_name = format!("{target},t,0x{port:04x}").into_bytes();
    // Terminated and filled up to whole words (SPC-4 clause 7.8.6.11).
    port_name.resize((port_name.len() + 1).next_multiple_of(4), 0);
    let mut body = Vec::new();
    designator(&mut body, BINARY, 0x03, &identity.naa);
    designator(&mut body, ASCII, 0x01, &vendor_id);
    designator(&mut body, ISCSI | BINARY, PORT | 0x04, &number(port));
    designator(&mut body, ISCSI | BINARY, PORT | 0x05, &number(facts.group));
    designator(&mut body, ISCSI | UTF8, PORT | 0x08, &port_name);
    body
}

fn designator(body: &mut Vec<u8>, code_set: u8, kind: u8, value: &[u8]) {
    // Names of targets are at most 223 bytes, so every designator fits one byte
    // of length.
    assert!(value.len() <= 255, "a designator of {} bytes", value.len());
    body.extend([code_set, kind, 0, value.len() as u8]);
    body.extend(value);
}

/// Page 86h (SPC-4 clause 7.8.7): SIMPLE task attributes, nothing else.
fn extended_inquiry() -> Vec<u8> {
    let mut body = vec![0; 60];
    body[1] = 0x01;
    body
}

/// Page 87h (SPC-4 clause 7.8.14): all mode pages are shared by all nexuses.
fn mode_page_policy() -> Vec<u8> {
    vec![0x3f, 0xff, 0, 0]
}

/// Page B0h (SBC-4 clause 6.6.4). The limits of UNMAP are zero for a thick unit. WSNZ is
/// set: WRITE SAME of zero blocks, which would go up to the end of the unit, is refused.
/// WRITE ATOMIC may begin anywhere and have any length up to its limit.
fn block_limits(facts: Facts<'_>) -> Vec<u8> {
    let mut body = vec![0; 60];
    body[0] = 0x01;
    body[1] = COMPARE_BLOCKS_MAX.min(facts.whole_blocks) as u8;
    let granularity = facts.blocks_per_physical as u16;
    body[2..4].copy_from_slice(&granularity.to_be_bytes());
    body[4..8].copy_from_slice(&MAX_TRANSFER_BLOCKS.to_be_bytes());
    let optimal = (OPTIMAL_TRANSFER_BYTES / SECTOR_BYTES) as u32;
    body[8..12].copy_from_slice(&optimal.to_be_bytes());
    if let Some(page_blocks) = facts.unmap_blocks {
        body[16..20].copy_from_slice(&unmap::MAX_BLOCKS.to_be_bytes());
        body[20..24].copy_from_slice(&(unmap::MAX_DESCRIPTORS as u32).to_be_bytes());
        body[24..28].copy_from_slice(&page_blocks.to_be_bytes());
        // UGAVALID: the first page begins at the first block.
        body[28] = 0x80;
    }
    body[32..40].copy_from_slice(&u64::from(MAX_WRITE_SAME_BLOCKS).to_be_bytes());
    body[40..44].copy_from_slice(&facts.whole_blocks.to_be_bytes());
    body
}

/// Page B1h (SBC-3 clause 6.6.3): non-rotating, so that initiators leave the
/// ordering of requests to the array. WABEREQ: what SANITIZE, which thin units have, has
/// erased reads well.
fn block_device_characteristics(is_thin: bool) -> Vec<u8> {
    const WABEREQ_READS: u8 = 0x40;
    let mut body = vec![0; 60];
    body[1] = 0x01;
    body[3] = if is_thin { WABEREQ_READS } else { 0 };
    body
}

/// Page B2h (SBC-3 clause 6.6.5), in step with LBPME and LBPRZ in READ
/// CAPACITY(16): a thin unit takes all ways to unmap, and what is unmapped reads
/// as zeroes; a thick one has none. Nothing is anchored. The threshold is that of the pool
/// (mode page 1Ch/02h).
fn logical_block_provisioning(is_thin: bool) -> Vec<u8> {
    const LBPU: u8 = 0x80;
    const LBPWS: u8 = 0x40;
    const LBPWS10: u8 = 0x20;
    const LBPRZ: u8 = 0x04;
    const THIN: u8 = 2;
    match is_thin {
        true => vec![THRESHOLD_EXPONENT, LBPU | LBPWS | LBPWS10 | LBPRZ, THIN, 0],
        false => vec![0; 4],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Uuid;

    fn identity() -> Identity {
        Identity::of(Uuid::from_u128(0x0123_4567_89ab_4cde_8f01_2345_6789_abcd))
    }

    const PAGE_BLOCKS: Option<u32> = Some(512);

    fn facts(identity: &Identity, unmap_blocks: Option<u32>) -> Facts<'_> {
        Facts {
            identity,
            target: "iqn.2026-11.test:t",
            port: 3,
            group: 1,
            unmap_blocks,
            whole_blocks: 0x200,
            blocks_per_physical: 8,
        }
    }

    fn shown(code: u8) -> Vec<u8> {
        page(code, facts(&identity(), None)).unwrap()
    }

    fn shown_thin(code: u8) -> Vec<u8> {
        page(code, facts(&identity(), PAGE_BLOCKS)).unwrap()
    }

    #[test]
    fn the_list_of_pages_names_exactly_those_that_there_are() {
        assert_eq!(
            shown(0x00),
            [
                0, 0, 0, 9, 0x00, 0x80, 0x83, 0x86, 0x87, 0x8f, 0xb0, 0xb1, 0xb2
            ]
        );
        for code in 0..=255 {
            let identity = identity();
            let there = page(code, facts(&identity, PAGE_BLOCKS));
            assert_eq!(there.is_some(), PAGES.contains(&code), "page {code:#x}");
            if let Some(page) = there {
                assert_eq!(
                    page.len(),
                    4 + usize::from(page[2]) * 256 + usize::from(page[3])
                );
                assert_eq!(page[1], code);
            }
        }
    }

    #[test]
    fn the_serial_number_is_the_uuid() {
        let page = shown(0x80);
        assert_eq!(page[..4], [0, 0x80, 0, 32]);
        assert_eq!(&page[4..], b"0123456789ab4cde8f0123456789abcd");
    }

    #[test]
    fn device_identification_byte_by_byte() {
        let mut expected = vec![0, 0x83, 0, 0];
        expected.extend([0x01, 0x03, 0, 16, 0x60, 0x2a, 0x54, 0x10]);
        expected.extend([0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0]);
        expected.extend([0x12, 0x34, 0x56, 0x78]);
        expected.extend([0x02, 0x01, 0, 56]);
        expected.extend(b"ASHLAR  VIRTUAL DISK    0123456789ab4cde8f0123456789abcd");
        expected.extend([0x51, 0x94, 0, 4, 0, 0, 0, 3]);
        expected.extend([0x51, 0x95, 0, 4, 0, 0, 0, 1]);
        expected.extend([0x53, 0x98, 0, 28]);
        expected.extend(b"iqn.2026-11.test:t,t,0x0003\0");
        expected[3] = (expected.len() - 4) as u8;
        assert_eq!(shown(0x83), expected);
    }

    #[test]
    fn block_limits_byte_by_byte() {
        let mut expected = vec![0, 0xb0, 0, 60, 1, 255, 0, 8, 0, 0, 0x80, 0, 0, 0, 2, 0];
        expected.resize(64, 0);
        // MAXIMUM WRITE SAME LENGTH.
        expected[36..44].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0x80, 0]);
        // MAXIMUM ATOMIC TRANSFER LENGTH.
        expected[44..48].copy_from_slice(&[0, 0, 2, 0]);
        assert_eq!(shown(0xb0), expected, "thick");
        // Maximum blocks and descriptors, granularity, alignment of UNMAP.
        expected[20..28].copy_from_slice(&[0, 0x10, 0, 0, 0, 0, 1, 0]);
        expected[28..36].copy_from_slice(&[0, 0, 2, 0, 0x80, 0, 0, 0]);
        assert_eq!(shown_thin(0xb0), expected);
    }

    #[test]
    fn characteristics_and_provisioning() {
        assert_eq!(shown(0xb1)[..8], [0, 0xb1, 0, 60, 0, 1, 0, 0]);
        assert_eq!(shown_thin(0xb1)[7], 0x40);
        assert_eq!(shown(0xb2), [0, 0xb2, 0, 4, 0, 0, 0, 0], "thick");
        assert_eq!(shown_thin(0xb2), [0, 0xb2, 0, 4, 11, 0xe4, 2, 0]);
        assert_eq!(shown(0x86)[..6], [0, 0x86, 0, 60, 0, 1]);
        assert_eq!(shown(0x87), [0, 0x87, 0, 4, 0x3f, 0xff, 0, 0]);
    }
}
