//! The table of supported commands, with the bits that their CDBs may have.
//!
//! Invariant: a bit that is not in the table is refused, so that no command is run
//! as something else than the initiator meant.

use crate::sense::Sense;

/// A row of the table: a command and the bits that its CDB may have.
pub(crate) struct Definition {
    pub(crate) opcode: u8,
    pub(crate) action: Option<u16>,
    /// Bits that may be set, from the second byte to the last. Its length and
    /// one is the length of the CDB.
    pub(crate) usage: &'static [u8],
}

/// CONTROL: NACA and the obsolete link bits are refused (SAM-5 clause 5.2).
const CONTROL: u8 = 0xc0;

const fn plain(opcode: u8, usage: &'static [u8]) -> Definition {
    Definition {
        opcode,
        action: None,
        usage,
    }
}

const fn with_action(opcode: u8, action: u16, usage: &'static [u8]) -> Definition {
    Definition {
        opcode,
        action: Some(action),
        usage,
    }
}

/// Flags of READ: DPO, FUA, RARC, and the obsolete FUA_NV and RELADR, which old
/// initiators set. RDPROTECT is refused: there is no protection information.
const READ: u8 = 0x1f;
/// Flags of WRITE: as [`READ`], without RARC.
const WRITE: u8 = 0x1b;
/// Flags of VERIFY: DPO, BYTCHK, and the obsolete RELADR.
const VERIFY: u8 = 0x17;
/// Flags of SYNCHRONIZE CACHE: IMMED, and the obsolete SYNC_NV and RELADR.
const SYNC: u8 = 0x07;
/// UNMAP of WRITE SAME. ANCHOR is refused: a page is there or it isn't. So are
/// the obsolete PBDATA and LBDATA, which would change what is written.
const UNMAP: u8 = 0x08;
/// NDOB of WRITE SAME(16): no data-out, the block is zeroes.
const NDOB: u8 = 0x01;
/// GROUP NUMBER.
const GROUP: u8 = 0x1f;

/// Flags of WRITE AND VERIFY: DPO, BYTCHK, and the obsolete RELADR.
const WRITE_VERIFY: u8 = 0x17;
/// Flags of COMPARE AND WRITE, ORWRITE and WRITE ATOMIC: DPO, FUA, and the obsolete
/// FUA_NV.
const ALTER: u8 = 0x1a;
/// Third-party reservations are refused; so are those of extents.
const WHOLE_UNIT: u8 = 0;

const X: u8 = 0xff;

/// All commands. Reads and writes stand first: they are looked for most.
pub(crate) static COMMANDS: &[Definition] = &[
    plain(0x28, &[READ, X, X, X, X, GROUP, X, X, CONTROL]),
    plain(0x2a, &[WRITE, X, X, X, X, GROUP, X, X, CONTROL]),
    plain(
        0x88,
        &[READ, X, X, X, X, X, X, X, X, X, X, X, X, GROUP, CONTROL],
    ),
    plain(
        0x8a,
        &[WRITE, X, X, X, X, X, X, X, X, X, X, X, X, GROUP, CONTROL],
    ),
    plain(0x00, &[0, 0, 0, 0, CONTROL]),
    plain(0x03, &[0x01, 0, 0, X, CONTROL]),
    plain(0x08, &[0x1f, X, X, X, CONTROL]),
    plain(0x0a, &[0x1f, X, X, X, CONTROL]),
    plain(0x12, &[0x01, X, X, X, CONTROL]),
    plain(0x15, &[0x11, 0, 0, X, CONTROL]),
    plain(0x16, &[WHOLE_UNIT, 0, 0, 0, CONTROL]),
    plain(0x17, &[WHOLE_UNIT, 0, 0, 0, CONTROL]),
    plain(0x1a, &[0x08, X, X, X, CONTROL]),
    plain(0x1b, &[0x01, 0, 0x0f, 0xf7, CONTROL]),
    plain(0x1c, &[0x01, X, X, X, CONTROL]),
    plain(0x1d, &[0xf7, 0, X, X, CONTROL]),
    plain(0x1e, &[0, 0, 0, 0x03, CONTROL]),
    plain(0x25, &[0x01, X, X, X, X, 0, 0, 0x01, CONTROL]),
    plain(0x2e, &[WRITE_VERIFY, X, X, X, X, GROUP, X, X, CONTROL]),
    plain(0x2f, &[VERIFY, X, X, X, X, GROUP, X, X, CONTROL]),
    plain(0x34, &[0x02, X, X, X, X, GROUP, X, X, CONTROL]),
    plain(0x35, &[SYNC, X, X, X, X, GROUP, X, X, CONTROL]),
    plain(0x37, &[0, 0x1f, 0, 0, 0, 0, X, X, CONTROL]),
    plain(0x41, &[UNMAP, X, X, X, X, GROUP, X, X, CONTROL]),
    plain(0x42, &[0, 0, 0, 0, 0, GROUP, X, X, CONTROL]),
    with_action(0x48, 0x02, &[0xbf, 0, 0, 0, 0, 0, 0, 0, CONTROL]),
    with_action(0x48, 0x1f, &[0xbf, 0, 0, 0, 0, 0, 0, 0, CONTROL]),
    plain(0x4d, &[0, X, X, 0, X, X, X, X, CONTROL]),
    plain(0x55, &[0x11, 0, 0, 0, 0, 0, X, X, CONTROL]),
    plain(0x56, &[WHOLE_UNIT, 0, 0, 0, 0, 0, 0, 0, CONTROL]),
    plain(0x57, &[WHOLE_UNIT, 0, 0, 0, 0, 0, 0, 0, CONTROL]),
    plain(0x5a, &[0x18, X, X, 0, 0, 0, X, X, CONTROL]),
    with_action(0x5e, 0x00, &[0x1f, 0, 0, 0, 0, 0, X, X, CONTROL]),
    with_action(0x5e, 0x01, &[0x1f, 0, 0, 0, 0, 0, X, X, CONTROL]),
    with_action(0x5e, 0x02, &[0x1f, 0, 0, 0, 0, 0, X, X, CONTROL]),
    with_action(0x5e, 0x03, &[0x1f, 0, 0, 0, 0, 0, X, X, CONTROL]),
    with_action(0x5f, 0x00, &[0x1f, X, 0, 0, X, X, X, X, CONTROL]),
    with_action(0x5f, 0x01, &[0x1f, X, 0, 0, X, X, X, X, CONTROL]),
    with_action(0x5f, 0x02, &[0x1f, X, 0, 0, X, X, X, X, CONTROL]),
    with_action(0x5f, 0x03, &[0x1f, X, 0, 0, X, X, X, X, CONTROL]),
    with_action(0x5f, 0x04, &[0x1f, X, 0, 0, X, X, X, X, CONTROL]),
    with_action(0x5f, 0x05, &[0x1f, X, 0, 0, X, X, X, X, CONTROL]),
    with_action(0x5f, 0x06, &[0x1f, X, 0, 0, X, X, X, X, CONTROL]),
    with_action(0x5f, 0x07, &[0x1f, X, 0, 0, X, X, X, X, CONTROL]),
    with_action(
        0x83,
        0x00,
        &[0x1f, 0, 0, 0, 0, 0, 0, 0, 0, X, X, X, X, 0, CONTROL],
    ),
    with_action(
        0x83,
        0x10,
        &[0x1f, 0, 0, 0, 0, X, X, X, X, X, X, X, X, GROUP, CONTROL],
    ),
    with_action(
        0x83,
        0x11,
        &[0x1f, 0, 0, 0, 0, X, X, X, X, X, X, X, X, GROUP, CONTROL],
    ),
    with_action(
        0x83,
        0x1c,
        &[0x1f, X, X, X, X, 0, 0, 0, 0, 0, 0, 0, 0, 0, CONTROL],
    ),
    with_action(
        0x84,
        0x00,
        &[0x1f, X, 0, 0, 0, 0, 0, 0, 0, X, X, X, X, 0, CONTROL],
    ),
    with_action(
        0x84,
        0x03,
        &[0x1f, 0, 0, 0, 0, 0, 0, 0, 0, X, X, X, X, 0, CONTROL],
    ),
    with_action(
        0x84,
        0x04,
        &[0x1f, X, 0, 0, 0, 0, 0, 0, 0, X, X, X, X, 0, CONTROL],
    ),
    with_action(
        0x84,
        0x07,
        &[0x1f, X, X, X, X, 0, 0, 0, 0, X, X, X, X, 0, CONTROL],
    ),
    plain(
        0x89,
        &[ALTER, X, X, X, X, X, X, X, X, 0, 0, 0, X, GROUP, CONTROL],
    ),
    plain(
        0x8b,
        &[ALTER, X, X, X, X, X, X, X, X, X, X, X, X, GROUP, CONTROL],
    ),
    plain(
        0x8e,
        &[
            WRITE_VERIFY,
            X,
            X,
            X,
            X,
            X,
            X,
            X,
            X,
            X,
            X,
            X,
            X,
            GROUP,
            CONTROL,
        ],
    ),
    plain(
        0x8f,
        &[VERIFY, X, X, X, X, X, X, X, X, X, X, X, X, GROUP, CONTROL],
    ),
    plain(
        0x90,
        &[0x02, X, X, X, X, X, X, X, X, X, X, X, X, GROUP, CONTROL],
    ),
    plain(
        0x91,
        &[SYNC, X, X, X, X, X, X, X, X, X, X, X, X, GROUP, CONTROL],
    ),
    plain(
        0x93,
        &[
            UNMAP | NDOB,
            X,
            X,
            X,
            X,
            X,
            X,
            X,
            X,
            X,
            X,
            X,
            X,
            GROUP,
            CONTROL,
        ],
    ),
    // WRITE ATOMIC has no boundaries of its own making: ATOMIC BOUNDARY is zero.
    plain(
        0x9c,
        &[ALTER, X, X, X, X, X, X, X, X, 0, 0, X, X, GROUP, CONTROL],
    ),
    with_action(
        0x9e,
        0x10,
        &[0x1f, X, X, X, X, X, X, X, X, X, X, X, X, 0x01, CONTROL],
    ),
    with_action(
        0x9e,
        0x12,
        &[0x1f, X, X, X, X, X, X, X, X, X, X, X, X, 0, CONTROL],
    ),
    plain(0xa0, &[0, X, 0, 0, 0, X, X, X, X, 0, CONTROL]),
    with_action(0xa3, 0x0a, &[0xff, 0, 0, 0, 0, X, X, X, X, 0, CONTROL]),
    with_action(0xa3, 0x0d, &[0x1f, 0x80, 0, 0, 0, X, X, X, X, 0, CONTROL]),
    with_action(0xa3, 0x0c, &[0x1f, 0x87, X, X, X, X, X, X, X, 0, CONTROL]),
    plain(0xa8, &[READ, X, X, X, X, X, X, X, X, GROUP, CONTROL]),
    plain(0xaa, &[WRITE, X, X, X, X, X, X, X, X, GROUP, CONTROL]),
    plain(
        0xae,
        &[WRITE_VERIFY, X, X, X, X, X, X, X, X, GROUP, CONTROL],
    ),
    plain(0xaf, &[VERIFY, X, X, X, X, X, X, X, X, GROUP, CONTROL]),
    plain(0xb7, &[0x1f, X, X, X, X, X, X, X, X, 0, CONTROL]),
];

/// Finds the command and refuses bits that it does not have.
pub(super) fn check(cdb: &[u8; 16]) -> Result<(), Sense> {
    let mut known = false;
    for definition in COMMANDS
        .iter()
        .filter(|definition| definition.opcode == cdb[0])
    {
        known = true;
        if definition
            .action
            .is_some_and(|action| action != u16::from(cdb[1] & 0x1f))
        {
            continue;
        }
        for (place, (byte, usage)) in cdb[1..].iter().zip(definition.usage).enumerate() {
            let wrong = byte & !usage;
            if wrong != 0 {
                let bit = 7 - wrong.leading_zeros() as u8;
                return Err(Sense::invalid_field(place as u16 + 1, Some(bit)));
            }
        }
        return Ok(());
    }
    // A known operation code with another service action (SPC-4 clause 4.2.5.2).
    if known {
        Err(Sense::invalid_field(1, Some(4)))
    } else {
        Err(Sense::INVALID_OPCODE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdb::decode;

    #[test]
    fn every_bit_that_a_command_does_not_have_is_refused_and_pointed_at() {
        for definition in COMMANDS {
            for (place, usage) in definition.usage.iter().enumerate() {
                for bit in (0..8).filter(|bit| usage & (1 << bit) == 0) {
                    let mut cdb = [0; 16];
                    cdb[0] = definition.opcode;
                    cdb[1] = definition.action.unwrap_or(0) as u8;
                    cdb[place + 1] |= 1 << bit;
                    let expected = Sense::invalid_field(place as u16 + 1, Some(bit));
                    assert_eq!(decode(&cdb), Err(expected), "CDB {cdb:02x?}");
                }
            }
        }
    }
}
