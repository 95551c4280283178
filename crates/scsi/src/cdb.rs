//! What a CDB asks for.
//!
//! One table says which commands there are and which bits of their CDBs may be
//! set. Decoding refuses every other bit, so that no command is run as
//! something else than the initiator meant; REPORT SUPPORTED OPERATION CODES
//! shows the same table.

use crate::sense::Sense;
use base::{Lba, SECTOR_BYTES};

/// Longest transfer of one command: what the block limits page promises.
pub const MAX_TRANSFER_BLOCKS: u32 = (16 << 20) / SECTOR_BYTES as u32;

/// A run of logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first.
    pub lba: Lba,
    /// How many; zero is allowed.
    pub blocks: u32,
}

impl Extent {
    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.blocks) * SECTOR_BYTES as u64
    }
}

/// Which values of mode parameters are asked for (SPC-4 table 349).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageControl {
    /// What holds now.
    Current,
    /// Ones where a MODE SELECT could change something.
    Changeable,
    /// What holds at the start.
    Default,
    /// What survives a power cycle.
    Saved,
}

/// Which of the two MODE SENSE commands it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeForm {
    /// MODE SENSE(6): a header of four bytes.
    Six,
    /// MODE SENSE(10): a header of eight bytes; `long_lba` allows a block
    /// descriptor of sixteen.
    Ten {
        /// LLBAA.
        long_lba: bool,
    },
}

/// What a report of operation codes is about (SPC-4 clause 6.35).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpcodeReport {
    /// All commands.
    All,
    /// The command of this operation code, which has no service actions.
    Opcode(u8),
    /// The command of this operation code and service action.
    OpcodeAndAction(u8, u16),
    /// As one of the two above, whichever fits.
    Either(u8, u16),
}

/// A command with all it asks for. Allocation lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// TEST UNIT READY (SPC-4 clause 6.47).
    TestUnitReady,
    /// REQUEST SENSE (SPC-4 clause 6.39).
    RequestSense {
        /// Descriptor format is asked for.
        descriptor: bool,
        /// ALLOCATION LENGTH.
        allocation: u32,
    },
    /// INQUIRY (SPC-4 clause 6.6).
    Inquiry {
        /// A vital product data page instead of the standard data.
        page: Option<u8>,
        /// ALLOCATION LENGTH.
        allocation: u32,
    },
    /// REPORT LUNS (SPC-4 clause 6.33).
    ReportLuns {
        /// SELECT REPORT.
        select: u8,
        /// ALLOCATION LENGTH.
        allocation: u32,
    },
    /// READ CAPACITY(10) (SBC-3 clause 5.15).
    ReadCapacity10,
    /// READ CAPACITY(16) (SBC-3 clause 5.16).
    ReadCapacity16 {
        /// ALLOCATION LENGTH.
        allocation: u32,
    },
    /// MODE SENSE (SPC-4 clauses 6.11, 6.12).
    ModeSense {
        /// Six or ten.
        form: ModeForm,
        /// No block descriptor is wanted.
        disable_block_descriptors: bool,
        /// Which values.
        control: PageControl,
        /// PAGE CODE; 3Fh for all.
        page: u8,
        /// SUBPAGE CODE.
        subpage: u8,
        /// ALLOCATION LENGTH.
        allocation: u32,
    },
    /// READ (SBC-3 clauses 5.10 to 5.13). DPO and FUA change nothing: what is
    /// read is what was acknowledged.
    Read(Extent),
    /// WRITE (SBC-3 clauses 5.30 to 5.33). FUA changes nothing: every
    /// acknowledged write is durable.
    Write(Extent),
    /// VERIFY (SBC-3 clauses 5.26 to 5.28).
    Verify {
        /// What is verified.
        extent: Extent,
        /// Compare with data-out, or else only read.
        compare: bool,
    },
    /// SYNCHRONIZE CACHE (SBC-3 clauses 5.21, 5.22).
    SynchronizeCache(Extent),
    /// START STOP UNIT (SBC-3 clause 5.20).
    StartStopUnit {
        /// START.
        start: bool,
        /// LOEJ: load or eject the medium.
        load_eject: bool,
        /// POWER CONDITION.
        power_condition: u8,
    },
    /// PREVENT ALLOW MEDIUM REMOVAL (SBC-3 clause 5.9).
    PreventAllowMediumRemoval,
    /// REPORT SUPPORTED OPERATION CODES (SPC-4 clause 6.35).
    ReportSupportedOpcodes {
        /// About what.
        report: OpcodeReport,
        /// RCTD: with timeouts descriptors.
        timeouts: bool,
        /// ALLOCATION LENGTH.
        allocation: u32,
    },
}

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
/// GROUP NUMBER.
const GROUP: u8 = 0x1f;

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
    plain(0x1a, &[0x08, X, X, X, CONTROL]),
    plain(0x1b, &[0x01, 0, 0x0f, 0xf7, CONTROL]),
    plain(0x1e, &[0, 0, 0, 0x03, CONTROL]),
    plain(0x25, &[0x01, X, X, X, X, 0, 0, 0x01, CONTROL]),
    plain(0x2f, &[VERIFY, X, X, X, X, GROUP, X, X, CONTROL]),
    plain(0x35, &[SYNC, X, X, X, X, GROUP, X, X, CONTROL]),
    plain(0x5a, &[0x18, X, X, 0, 0, 0, X, X, CONTROL]),
    plain(
        0x8f,
        &[VERIFY, X, X, X, X, X, X, X, X, X, X, X, X, GROUP, CONTROL],
    ),
    plain(
        0x91,
        &[SYNC, X, X, X, X, X, X, X, X, X, X, X, X, GROUP, CONTROL],
    ),
    with_action(
        0x9e,
        0x10,
        &[0x1f, X, X, X, X, X, X, X, X, X, X, X, X, 0x01, CONTROL],
    ),
    plain(0xa0, &[0, X, 0, 0, 0, X, X, X, X, 0, CONTROL]),
    with_action(0xa3, 0x0c, &[0x1f, 0x87, X, X, X, X, X, X, X, 0, CONTROL]),
    plain(0xa8, &[READ, X, X, X, X, X, X, X, X, GROUP, CONTROL]),
    plain(0xaa, &[WRITE, X, X, X, X, X, X, X, X, GROUP, CONTROL]),
    plain(0xaf, &[VERIFY, X, X, X, X, X, X, X, X, GROUP, CONTROL]),
];

/// What `cdb` asks for.
///
/// # Errors
/// The sense data of a command that is not there (20/00), or that has a field
/// which may not be so (24/00, with a pointer to it).
pub fn decode(cdb: &[u8; 16]) -> Result<Command, Sense> {
    check(cdb)?;
    let extent6 = || Extent {
        lba: Lba(u64::from(u32::from_be_bytes([
            0,
            cdb[1] & 0x1f,
            cdb[2],
            cdb[3],
        ]))),
        // Zero means 256 in the old six-byte commands.
        blocks: if cdb[4] == 0 { 256 } else { u32::from(cdb[4]) },
    };
    let extent10 = || Extent {
        lba: Lba(u64::from(be32(cdb, 2))),
        blocks: u32::from(be16(cdb, 7)),
    };
    let extent12 = || Extent {
        lba: Lba(u64::from(be32(cdb, 2))),
        blocks: be32(cdb, 6),
    };
    let extent16 = || Extent {
        lba: Lba(be64(cdb, 2)),
        blocks: be32(cdb, 10),
    };
    let byte4 = u32::from(cdb[4]);
    Ok(match cdb[0] {
        0x00 => Command::TestUnitReady,
        0x03 => Command::RequestSense {
            descriptor: cdb[1] & 1 != 0,
            allocation: byte4,
        },
        0x08 => Command::Read(extent6()),
        0x28 => Command::Read(bounded(extent10(), 7)?),
        0xa8 => Command::Read(bounded(extent12(), 6)?),
        0x88 => Command::Read(bounded(extent16(), 10)?),
        0x0a => Command::Write(extent6()),
        0x2a => Command::Write(bounded(extent10(), 7)?),
        0xaa => Command::Write(bounded(extent12(), 6)?),
        0x8a => Command::Write(bounded(extent16(), 10)?),
        0x2f => verify(cdb, bounded(extent10(), 7)?)?,
        0xaf => verify(cdb, bounded(extent12(), 6)?)?,
        0x8f => verify(cdb, bounded(extent16(), 10)?)?,
        0x35 => Command::SynchronizeCache(extent10()),
        0x91 => Command::SynchronizeCache(extent16()),
        0x12 => inquiry(cdb)?,
        0x1a | 0x5a => mode_sense(cdb),
        0x1b => Command::StartStopUnit {
            start: cdb[4] & 0x01 != 0,
            load_eject: cdb[4] & 0x02 != 0,
            power_condition: cdb[4] >> 4,
        },
        0x1e => Command::PreventAllowMediumRemoval,
        0x25 => read_capacity10(cdb)?,
        0x9e => Command::ReadCapacity16 {
            allocation: be32(cdb, 10),
        },
        0xa0 => Command::ReportLuns {
            select: cdb[2],
            allocation: be32(cdb, 6),
        },
        0xa3 => report_opcodes(cdb)?,
        _ => return Err(Sense::INVALID_OPCODE),
    })
}

/// Bytes of data-out that `cdb` wants. Zero for a command that will be refused,
/// so that nobody waits for data that nobody will look at.
pub fn data_out_bytes(cdb: &[u8; 16]) -> u64 {
    match decode(cdb) {
        Ok(
            Command::Write(extent)
            | Command::Verify {
                extent,
                compare: true,
            },
        ) => extent.bytes(),
        _ => 0,
    }
}

/// Bytes of data that `cdb` reads or writes, and that are held while it runs.
pub fn data_bytes(cdb: &[u8; 16]) -> u64 {
    match decode(cdb) {
        Ok(Command::Read(extent) | Command::Write(extent) | Command::Verify { extent, .. }) => {
            extent.bytes()
        }
        _ => 0,
    }
}

/// What kind of command an operation code is, for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// READ.
    Read,
    /// WRITE.
    Write,
    /// Any other.
    Other,
}

impl Kind {
    /// The kind of `opcode`.
    pub fn of(opcode: u8) -> Kind {
        match opcode {
            0x08 | 0x28 | 0x88 | 0xa8 => Kind::Read,
            0x0a | 0x2a | 0x8a | 0xaa => Kind::Write,
            _ => Kind::Other,
        }
    }
}

/// Finds the command and refuses bits that it does not have.
fn check(cdb: &[u8; 16]) -> Result<(), Sense> {
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

fn bounded(extent: Extent, length_byte: u16) -> Result<Extent, Sense> {
    if extent.blocks > MAX_TRANSFER_BLOCKS {
        return Err(Sense::invalid_field(length_byte, None));
    }
    Ok(extent)
}

fn verify(cdb: &[u8; 16], extent: Extent) -> Result<Command, Sense> {
    match (cdb[1] >> 1) & 0x3 {
        0 => Ok(Command::Verify {
            extent,
            compare: false,
        }),
        1 => Ok(Command::Verify {
            extent,
            compare: true,
        }),
        _ => Err(Sense::invalid_field(1, Some(2))),
    }
}

fn inquiry(cdb: &[u8; 16]) -> Result<Command, Sense> {
    let page = (cdb[1] & 1 != 0).then_some(cdb[2]);
    if page.is_none() && cdb[2] != 0 {
        return Err(Sense::invalid_field(2, None));
    }
    Ok(Command::Inquiry {
        page,
        allocation: u32::from(be16(cdb, 3)),
    })
}

fn read_capacity10(cdb: &[u8; 16]) -> Result<Command, Sense> {
    // Without PMI the address means nothing and shall be zero.
    if cdb[8] & 1 == 0 && be32(cdb, 2) != 0 {
        return Err(Sense::invalid_field(2, None));
    }
    Ok(Command::ReadCapacity10)
}

fn mode_sense(cdb: &[u8; 16]) -> Command {
    let (form, allocation) = match cdb[0] {
        0x1a => (ModeForm::Six, u32::from(cdb[4])),
        _ => (
            ModeForm::Ten {
                long_lba: cdb[1] & 0x10 != 0,
            },
            u32::from(be16(cdb, 7)),
        ),
    };
    let control = match cdb[2] >> 6 {
        0 => PageControl::Current,
        1 => PageControl::Changeable,
        2 => PageControl::Default,
        _ => PageControl::Saved,
    };
    Command::ModeSense {
        form,
        disable_block_descriptors: cdb[1] & 0x08 != 0,
        control,
        page: cdb[2] & 0x3f,
        subpage: cdb[3],
        allocation,
    }
}

fn report_opcodes(cdb: &[u8; 16]) -> Result<Command, Sense> {
    let (opcode, action) = (cdb[3], be16(cdb, 4));
    let report = match cdb[2] & 0x07 {
        0 => OpcodeReport::All,
        1 => OpcodeReport::Opcode(opcode),
        2 => OpcodeReport::OpcodeAndAction(opcode, action),
        3 => OpcodeReport::Either(opcode, action),
        _ => return Err(Sense::invalid_field(2, Some(2))),
    };
    let timeouts = cdb[2] & 0x80 != 0;
    Ok(Command::ReportSupportedOpcodes {
        report,
        timeouts,
        allocation: be32(cdb, 6),
    })
}

fn be16(cdb: &[u8; 16], at: usize) -> u16 {
    u16::from_be_bytes([cdb[at], cdb[at + 1]])
}

fn be32(cdb: &[u8; 16], at: usize) -> u32 {
    u32::from_be_bytes([cdb[at], cdb[at + 1], cdb[at + 2], cdb[at + 3]])
}

fn be64(cdb: &[u8; 16], at: usize) -> u64 {
    (u64::from(be32(cdb, at)) << 32) | u64::from(be32(cdb, at + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Result<Command, Sense> {
        let mut cdb = [0; 16];
        cdb[..bytes.len()].copy_from_slice(bytes);
        decode(&cdb)
    }

    #[test]
    fn extents_are_read_from_every_length_of_cdb() {
        let extent = |lba, blocks| {
            Ok(Command::Read(Extent {
                lba: Lba(lba),
                blocks,
            }))
        };
        assert_eq!(decoded(&[0x08, 0x1f, 2, 3, 4, 0]), extent(0x1f_0203, 4));
        assert_eq!(
            decoded(&[0x28, 0, 1, 2, 3, 4, 0, 5, 6, 0]),
            extent(0x0102_0304, 0x0506)
        );
        let cdb = [0xa8, 0, 1, 2, 3, 4, 0, 0, 5, 6, 0, 0];
        assert_eq!(decoded(&cdb), extent(0x0102_0304, 0x0506));
        let cdb = [0x88, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x7f, 9, 0, 0];
        assert_eq!(decoded(&cdb), extent(0x0102_0304_0506_0708, 0x7f09));
    }

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

    #[test]
    fn every_command_of_the_table_is_decoded_and_no_other() {
        for opcode in 0..=255 {
            let known = COMMANDS
                .iter()
                .find(|definition| definition.opcode == opcode);
            let action = known.and_then(|definition| definition.action).unwrap_or(0) as u8;
            match known {
                Some(_) => assert!(decoded(&[opcode, action]).is_ok(), "{opcode:#x}"),
                None => assert_eq!(decoded(&[opcode]), Err(Sense::INVALID_OPCODE)),
            }
        }
    }

    #[test]
    fn data_out_is_wanted_by_writes_and_comparisons_alone() {
        let wanted = |bytes: &[u8]| {
            let mut cdb = [0; 16];
            cdb[..bytes.len()].copy_from_slice(bytes);
            (data_out_bytes(&cdb), data_bytes(&cdb))
        };
        assert_eq!(wanted(&[0x2a, 0, 0, 0, 0, 0, 0, 0, 3, 0]), (1536, 1536));
        assert_eq!(wanted(&[0x28, 0, 0, 0, 0, 0, 0, 0, 3, 0]), (0, 1536));
        assert_eq!(wanted(&[0x2f, 2, 0, 0, 0, 0, 0, 0, 3, 0]), (1536, 1536));
        assert_eq!(wanted(&[0x2f, 0, 0, 0, 0, 0, 0, 0, 3, 0]), (0, 1536));
        assert_eq!(
            wanted(&[0x2a, 0x20, 0, 0, 0, 0, 0, 0, 3, 0]),
            (0, 0),
            "to be refused"
        );
        assert_eq!(wanted(&[0x12, 0, 0, 0, 96, 0]), (0, 0));
    }

    #[test]
    fn kinds_agree_with_what_is_decoded() {
        for opcode in 0..=255u8 {
            let kind = match decoded(&[opcode]) {
                Ok(Command::Read(_)) => Kind::Read,
                Ok(Command::Write(_)) => Kind::Write,
                _ => Kind::Other,
            };
            assert_eq!(Kind::of(opcode), kind, "{opcode:#x}");
        }
    }
}
