//! What a CDB asks for.
//!
//! One table (`table`) says which commands there are and which bits of their CDBs
//! may be set. Decoding refuses every other bit, so that no command is run as
//! something else than the initiator meant; REPORT SUPPORTED OPERATION CODES
//! shows the same table.

mod table;

pub(crate) use table::{COMMANDS, Definition};

use crate::sense::Sense;
use base::{Lba, SECTOR_BYTES};

/// Longest transfer of one command: what the block limits page promises.
pub const MAX_TRANSFER_BLOCKS: u32 = (16 << 20) / SECTOR_BYTES as u32;

/// Longest run that one WRITE SAME covers: what the block limits page promises. No
/// longer than a WRITE, so that it takes no longer, either.
pub const MAX_WRITE_SAME_BLOCKS: u32 = MAX_TRANSFER_BLOCKS;

/// A block that repeats is written in pieces of this many bytes.
pub(crate) const WRITE_SAME_PIECE_BYTES: u64 = 1 << 20;

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

/// What a WRITE SAME asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteSame {
    /// What is written.
    pub extent: Extent,
    /// UNMAP: pages of zeroes may be given back.
    pub unmap: bool,
    /// A block of data-out comes, or else (NDOB) the block is zeroes.
    pub has_data: bool,
    /// Where the CDB has NUMBER OF LOGICAL BLOCKS.
    pub length_byte: u16,
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
    /// WRITE SAME (SBC-3).
    WriteSame(WriteSame),
    /// UNMAP (SBC-3).
    Unmap {
        /// PARAMETER LIST LENGTH, in bytes.
        list_bytes: u16,
    },
    /// GET LBA STATUS (SBC-3).
    GetLbaStatus {
        /// STARTING LOGICAL BLOCK ADDRESS.
        lba: Lba,
        /// ALLOCATION LENGTH.
        allocation: u32,
    },
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

/// What `cdb` asks for.
///
/// # Errors
/// The sense data of a command that is not there (20/00), or that has a field
/// which may not be so (24/00, with a pointer to it).
pub fn decode(cdb: &[u8; 16]) -> Result<Command, Sense> {
    table::check(cdb)?;
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
        0x41 => write_same(extent10(), 7, cdb[1] & !1)?,
        0x93 => write_same(extent16(), 10, cdb[1])?,
        0x42 => Command::Unmap {
            list_bytes: be16(cdb, 7),
        },
        0x9e => service_action_in(cdb)?,
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
        // One block more than there may be, so that too much is noticed, and
        // refused, and not taken for what was meant.
        Ok(Command::WriteSame(WriteSame { has_data: true, .. })) => 2 * SECTOR_BYTES as u64,
        Ok(Command::Unmap { list_bytes }) => u64::from(list_bytes),
        _ => 0,
    }
}

/// Bytes of data that `cdb` reads or writes, and that are held while it runs.
pub fn data_bytes(cdb: &[u8; 16]) -> u64 {
    match decode(cdb) {
        Ok(Command::Read(extent) | Command::Write(extent) | Command::Verify { extent, .. }) => {
            extent.bytes()
        }
        Ok(Command::WriteSame(WriteSame { extent, .. })) => {
            extent.bytes().min(WRITE_SAME_PIECE_BYTES)
        }
        Ok(Command::Unmap { list_bytes }) => u64::from(list_bytes),
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

fn write_same(extent: Extent, length_byte: u16, flags: u8) -> Result<Command, Sense> {
    if extent.blocks > MAX_WRITE_SAME_BLOCKS {
        return Err(Sense::invalid_field(length_byte, None));
    }
    Ok(Command::WriteSame(WriteSame {
        extent,
        unmap: flags & 0x08 != 0,
        has_data: flags & 0x01 == 0,
        length_byte,
    }))
}

fn service_action_in(cdb: &[u8; 16]) -> Result<Command, Sense> {
    let allocation = be32(cdb, 10);
    match cdb[1] & 0x1f {
        0x10 => Ok(Command::ReadCapacity16 { allocation }),
        0x12 => Ok(Command::GetLbaStatus {
            lba: Lba(be64(cdb, 2)),
            allocation,
        }),
        _ => Err(Sense::invalid_field(1, Some(4))),
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
    fn every_command_of_the_table_is_decoded_and_no_other() {
        for opcode in 0..=255 {
            let known = COMMANDS
                .iter()
                .find(|definition| definition.opcode == opcode);
            if known.is_none() {
                assert_eq!(decoded(&[opcode]), Err(Sense::INVALID_OPCODE));
            }
        }
        for definition in COMMANDS {
            let (opcode, action) = (definition.opcode, definition.action.unwrap_or(0));
            let cdb = [opcode, action as u8];
            assert!(decoded(&cdb).is_ok(), "{opcode:#x} {action:#x}");
        }
    }

    #[test]
    fn write_same_in_both_lengths() {
        let command = |unmap, has_data, blocks, length_byte| {
            let lba = Lba(0x0102_0304);
            Ok(Command::WriteSame(WriteSame {
                extent: Extent { lba, blocks },
                unmap,
                has_data,
                length_byte,
            }))
        };
        let ten = |flags| [0x41, flags, 1, 2, 3, 4, 0, 5, 6, 0];
        assert_eq!(decoded(&ten(0)), command(false, true, 0x0506, 7));
        assert_eq!(decoded(&ten(8)), command(true, true, 0x0506, 7));
        let wrong = Err(Sense::invalid_field(1, Some(0)));
        assert_eq!(decoded(&ten(1)), wrong, "only the long one has NDOB");
        let wrong = Err(Sense::invalid_field(1, Some(4)));
        assert_eq!(decoded(&ten(0x18)), wrong, "ANCHOR");
        let sixteen = |flags, blocks: u32| {
            let [a, b, c, d] = blocks.to_be_bytes();
            [0x93, flags, 0, 0, 0, 0, 1, 2, 3, 4, a, b, c, d, 0, 0]
        };
        assert_eq!(decoded(&sixteen(0, 7)), command(false, true, 7, 10));
        assert_eq!(decoded(&sixteen(9, 0)), command(true, false, 0, 10));
        let most = MAX_WRITE_SAME_BLOCKS;
        assert_eq!(decoded(&sixteen(1, most)), command(false, false, most, 10));
        let wrong = Err(Sense::invalid_field(10, None));
        assert_eq!(decoded(&sixteen(1, most + 1)), wrong);
    }

    #[test]
    fn unmap_and_get_lba_status() {
        let unmap = Ok(Command::Unmap { list_bytes: 0x0102 });
        assert_eq!(decoded(&[0x42, 0, 0, 0, 0, 0, 3, 1, 2, 0]), unmap);
        let wrong = Err(Sense::invalid_field(1, Some(0)));
        assert_eq!(
            decoded(&[0x42, 1, 0, 0, 0, 0, 0, 0, 24, 0]),
            wrong,
            "ANCHOR"
        );
        let status = Ok(Command::GetLbaStatus {
            lba: Lba(0x0102_0304_0506_0708),
            allocation: 0x090a,
        });
        let cdb = [0x9e, 0x12, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 9, 10, 0, 0];
        assert_eq!(decoded(&cdb), status);
    }

    #[test]
    fn data_out_is_wanted_by_commands_that_take_data_alone() {
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
        assert_eq!(wanted(&[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0]), (24, 24));
        let same = |flags, blocks| {
            let cdb = [0x93, flags, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, blocks, 1, 0, 0];
            wanted(&cdb)
        };
        assert_eq!(same(0, 0), (1024, 512));
        assert_eq!(same(8, 9), (1024, 1 << 20), "more than a piece");
        assert_eq!(same(1, 9), (0, 1 << 20), "no data");
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
