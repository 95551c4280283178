//! The parser of CDBs.
//!
//! One table (`table`) says which commands there are and which bits of their CDBs
//! may be set. Decoding refuses every other bit, so that no command is run as
//! something else than the initiator meant; REPORT SUPPORTED OPERATION CODES
//! shows the same table.

mod command;
mod table;
mod work;

pub use command::{
    Command, Extent, Inform, LogSense, ModeForm, ModeSelect, ModeSense, OpcodeReport, PageControl,
    ReserveIn, ReserveOut, ReserveOutOrder, Sanitize, SendDiagnostic, WriteSame,
};
pub(crate) use table::{COMMANDS, Definition};
pub use work::Work;

use crate::offload;
use crate::sense::Sense;
use base::{Lba, SECTOR_BYTES};

/// Longest transfer of one command: what the block limits page promises.
pub const MAX_TRANSFER_BLOCKS: u32 = (16 << 20) / SECTOR_BYTES as u32;

/// Longest run that one WRITE SAME covers: what the block limits page promises. No
/// longer than a WRITE, so that it takes no longer, either.
pub const MAX_WRITE_SAME_BLOCKS: u32 = MAX_TRANSFER_BLOCKS;

/// Longest parameter list of PERSISTENT RESERVE OUT.
pub(crate) const RESERVE_LIST_BYTES_MAX: u32 = 64 << 10;

/// Parameter data of READ CAPACITY(10), which has no allocation length.
const READ_CAPACITY10_BYTES: u32 = 8;

/// Of a service action of the table that nothing here decodes: a test finds it.
const UNKNOWN_ACTION: Sense = Sense::invalid_field(1, Some(4));

/// A block that repeats is written in pieces of this many bytes.
pub(crate) const WRITE_SAME_PIECE_BYTES: u64 = 1 << 20;

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
    Ok(match cdb[0] {
        0x00 => Command::TestUnitReady,
        0x03 => request_sense(cdb),
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
        0x2e => write_verify(cdb, bounded(extent10(), 7)?)?,
        0xae => write_verify(cdb, bounded(extent12(), 6)?)?,
        0x8e => write_verify(cdb, bounded(extent16(), 10)?)?,
        0x89 => Command::CompareAndWrite(Extent {
            lba: Lba(be64(cdb, 2)),
            blocks: u32::from(cdb[13]),
        }),
        0x8b => Command::OrWrite(bounded(extent16(), 10)?),
        0x9c => Command::WriteAtomic(Extent {
            lba: Lba(be64(cdb, 2)),
            blocks: u32::from(be16(cdb, 12)),
        }),
        0x34 => Command::Prefetch(extent10()),
        0x90 => Command::Prefetch(extent16()),
        0x48 => sanitize(cdb)?,
        0x35 => Command::SynchronizeCache(extent10()),
        0x91 => Command::SynchronizeCache(extent16()),
        0x12 => inquiry(cdb)?,
        0x1a | 0x5a => mode_sense(cdb),
        0x1b => Command::StartStopUnit {
            start: cdb[4] & 0x01 != 0,
            load_eject: cdb[4] & 0x02 != 0,
            power_condition: cdb[4] >> 4,
        },
        0x1e => Command::PreventAllowMediumRemoval {
            prevent: cdb[4] & 0x01 != 0,
        },
        0x15 => Command::ModeSelect(ModeSelect {
            ten: false,
            save: cdb[1] & 0x01 != 0,
            list_bytes: u16::from(cdb[4]),
        }),
        0x55 => Command::ModeSelect(ModeSelect {
            ten: true,
            save: cdb[1] & 0x01 != 0,
            list_bytes: be16(cdb, 7),
        }),
        0x16 | 0x56 => Command::Reserve,
        0x17 | 0x57 => Command::Release,
        0x1c | 0x37 | 0xb7 => inform(cdb),
        0x1d => send_diagnostic(cdb),
        0x4d => log_sense(cdb),
        0x5e => reserve_in(cdb)?,
        0x5f => reserve_out(cdb)?,
        0x25 => read_capacity10(cdb)?,
        0x41 => write_same(extent10(), 7, cdb[1] & !1)?,
        0x93 => write_same(extent16(), 10, cdb[1])?,
        0x42 => Command::Unmap {
            list_bytes: be16(cdb, 7),
        },
        0x9e => service_action_in(cdb)?,
        0xa0 => report_luns(cdb),
        0xa3 => maintenance_in(cdb)?,
        0x83 | 0x84 => Command::Offload(offload::decode(cdb)?),
        _ => return Err(Sense::INVALID_OPCODE),
    })
}

/// A CDB, decoded once: whoever passes it on passes what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cdb {
    opcode: u8,
    command: Result<Command, Sense>,
}

impl From<[u8; 16]> for Cdb {
    fn from(cdb: [u8; 16]) -> Self {
        Cdb {
            opcode: cdb[0],
            command: decode(&cdb),
        }
    }
}

impl Cdb {
    /// What it asks for.
    ///
    /// # Errors
    /// As [`decode`].
    pub fn command(&self) -> Result<Command, Sense> {
        self.command
    }

    /// Whether it is of a command that is answered at a LUN without a unit, too, be it wrong in
    /// itself or not: INQUIRY, REPORT LUNS, REQUEST SENSE.
    pub fn is_answered_anywhere(&self) -> bool {
        let of_opcode = || {
            let mut cdb = [0; 16];
            cdb[0] = self.opcode;
            decode(&cdb)
        };
        let command = self.command.or_else(|_| of_opcode());
        command.is_ok_and(|command| command.is_answered_anywhere())
    }

    /// Bytes of data-out that it wants. Zero for a command that will be refused,
    /// so that nobody waits for data that nobody will look at.
    pub fn data_out_bytes(&self) -> u64 {
        match self.command {
            Ok(
                Command::Write(extent)
                | Command::WriteVerify { extent, .. }
                | Command::OrWrite(extent)
                | Command::WriteAtomic(extent)
                | Command::Verify {
                    extent,
                    compare: true,
                },
            ) => extent.bytes(),
            // What is compared, and what is written. One block more, as below.
            Ok(Command::CompareAndWrite(extent)) => 2 * extent.bytes() + SECTOR_BYTES as u64,
            // One block more than there may be, so that too much is noticed, and
            // refused, and not taken for what was meant.
            Ok(Command::WriteSame(WriteSame { has_data: true, .. })) => 2 * SECTOR_BYTES as u64,
            Ok(list) => u64::from(list_bytes(list)),
            Err(_) => 0,
        }
    }

    /// Bytes of data that it reads or writes, and that are held while it runs.
    pub fn data_bytes(&self) -> u64 {
        match self.command {
            Ok(
                Command::Read(extent)
                | Command::Write(extent)
                | Command::Verify { extent, .. }
                | Command::WriteVerify { extent, .. }
                | Command::WriteAtomic(extent),
            ) => extent.bytes(),
            Ok(Command::CompareAndWrite(extent) | Command::OrWrite(extent)) => 2 * extent.bytes(),
            Ok(Command::WriteSame(WriteSame { extent, .. })) => {
                extent.bytes().min(WRITE_SAME_PIECE_BYTES)
            }
            Ok(Command::Offload(order)) => order.held_bytes(),
            // A parameter list, if any. Each by its name, so that the data of a new one is not
            // forgotten.
            Ok(
                list @ (Command::TestUnitReady
                | Command::ModeSense(_)
                | Command::Prefetch(_)
                | Command::Sanitize(_)
                | Command::SanitizeExit
                | Command::SynchronizeCache(_)
                | Command::Unmap { .. }
                | Command::GetLbaStatus { .. }
                | Command::StartStopUnit { .. }
                | Command::PreventAllowMediumRemoval { .. }
                | Command::ModeSelect(_)
                | Command::LogSense(_)
                | Command::SendDiagnostic(_)
                | Command::Reserve
                | Command::Release
                | Command::ReserveOut(_)
                | Command::Inform { .. }),
            ) => u64::from(list_bytes(list)),
            Err(_) => 0,
        }
    }
}

/// Bytes of the parameter list that a command comes with.
fn list_bytes(command: Command) -> u32 {
    match command {
        Command::Unmap { list_bytes }
        | Command::ModeSelect(ModeSelect { list_bytes, .. })
        | Command::SendDiagnostic(SendDiagnostic { list_bytes, .. }) => u32::from(list_bytes),
        // More than there may be is refused, and need not be sent.
        Command::ReserveOut(order) => order.list_bytes.min(RESERVE_LIST_BYTES_MAX + 1),
        Command::Offload(order) => order.list_bytes(),
        // Each by its name, so that the list of a new one is not forgotten.
        Command::TestUnitReady
        | Command::ModeSense(_)
        | Command::Read(_)
        | Command::Write(_)
        | Command::WriteVerify { .. }
        | Command::WriteSame(_)
        | Command::WriteAtomic(_)
        | Command::CompareAndWrite(_)
        | Command::OrWrite(_)
        | Command::Verify { .. }
        | Command::Prefetch(_)
        | Command::Sanitize(_)
        | Command::SanitizeExit
        | Command::SynchronizeCache(_)
        | Command::GetLbaStatus { .. }
        | Command::StartStopUnit { .. }
        | Command::PreventAllowMediumRemoval { .. }
        | Command::LogSense(_)
        | Command::Reserve
        | Command::Release
        | Command::Inform { .. } => 0,
    }
}

fn sanitize(cdb: &[u8; 16]) -> Result<Command, Sense> {
    match cdb[1] & 0x1f {
        0x02 => Ok(Command::Sanitize(Sanitize {
            immediate: cdb[1] & 0x80 != 0,
            may_exit: cdb[1] & 0x20 != 0,
        })),
        0x1f => Ok(Command::SanitizeExit),
        _ => Err(UNKNOWN_ACTION),
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

/// WRITE AND VERIFY has BYTCHK where VERIFY has it.
fn write_verify(cdb: &[u8; 16], extent: Extent) -> Result<Command, Sense> {
    match verify(cdb, extent)? {
        Command::Verify { extent, compare } => Ok(Command::WriteVerify { extent, compare }),
        other => Ok(other),
    }
}

/// Commands that tell what there is to tell of a unit.
fn inform(cdb: &[u8; 16]) -> Command {
    let (what, allocation) = match cdb[0] {
        0x1c => {
            let page = (cdb[1] & 1 != 0).then_some(cdb[2]);
            (Inform::ReceiveDiagnostic { page }, u32::from(be16(cdb, 3)))
        }
        0x37 => {
            let (twelve, wanted) = (false, cdb[2] & 0x1f);
            let what = Inform::ReadDefects { twelve, wanted };
            (what, u32::from(be16(cdb, 7)))
        }
        _ => {
            let (twelve, wanted) = (true, cdb[1] & 0x1f);
            (Inform::ReadDefects { twelve, wanted }, be32(cdb, 6))
        }
    };
    Command::Inform { what, allocation }
}

fn request_sense(cdb: &[u8; 16]) -> Command {
    let descriptor = cdb[1] & 1 != 0;
    Command::Inform {
        what: Inform::RequestSense { descriptor },
        allocation: u32::from(cdb[4]),
    }
}

fn report_luns(cdb: &[u8; 16]) -> Command {
    Command::Inform {
        what: Inform::ReportLuns { select: cdb[2] },
        allocation: be32(cdb, 6),
    }
}

fn send_diagnostic(cdb: &[u8; 16]) -> Command {
    Command::SendDiagnostic(SendDiagnostic {
        code: cdb[1] >> 5,
        default_test: cdb[1] & 0x04 != 0,
        list_bytes: be16(cdb, 3),
    })
}

fn log_sense(cdb: &[u8; 16]) -> Command {
    Command::LogSense(LogSense {
        page: cdb[2] & 0x3f,
        subpage: cdb[3],
        pointer: be16(cdb, 5),
        allocation: u32::from(be16(cdb, 7)),
    })
}

fn reserve_in(cdb: &[u8; 16]) -> Result<Command, Sense> {
    let action = match cdb[1] & 0x1f {
        0 => ReserveIn::Keys,
        1 => ReserveIn::Reservation,
        2 => ReserveIn::Capabilities,
        3 => ReserveIn::FullStatus,
        _ => return Err(UNKNOWN_ACTION),
    };
    Ok(Command::Inform {
        what: Inform::ReserveIn { action },
        allocation: u32::from(be16(cdb, 7)),
    })
}

fn reserve_out(cdb: &[u8; 16]) -> Result<Command, Sense> {
    let action = match cdb[1] & 0x1f {
        0 => ReserveOut::Register,
        1 => ReserveOut::Reserve,
        2 => ReserveOut::Release,
        3 => ReserveOut::Clear,
        4 => ReserveOut::Preempt,
        5 => ReserveOut::PreemptAndAbort,
        6 => ReserveOut::RegisterAndIgnore,
        7 => ReserveOut::RegisterAndMove,
        _ => return Err(UNKNOWN_ACTION),
    };
    Ok(Command::ReserveOut(ReserveOutOrder {
        action,
        scope_and_kind: cdb[2],
        list_bytes: be32(cdb, 5),
    }))
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
        0x10 => Ok(Command::Inform {
            what: Inform::ReadCapacity16,
            allocation,
        }),
        0x12 => Ok(Command::GetLbaStatus {
            lba: Lba(be64(cdb, 2)),
            allocation,
        }),
        _ => Err(UNKNOWN_ACTION),
    }
}

fn inquiry(cdb: &[u8; 16]) -> Result<Command, Sense> {
    let page = (cdb[1] & 1 != 0).then_some(cdb[2]);
    if page.is_none() && cdb[2] != 0 {
        return Err(Sense::invalid_field(2, None));
    }
    Ok(Command::Inform {
        what: Inform::Inquiry { page },
        allocation: u32::from(be16(cdb, 3)),
    })
}

fn read_capacity10(cdb: &[u8; 16]) -> Result<Command, Sense> {
    // Without PMI the address means nothing and shall be zero.
    if cdb[8] & 1 == 0 && be32(cdb, 2) != 0 {
        return Err(Sense::invalid_field(2, None));
    }
    Ok(Command::Inform {
        what: Inform::ReadCapacity10,
        allocation: READ_CAPACITY10_BYTES,
    })
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
    Command::ModeSense(ModeSense {
        form,
        disable_block_descriptors: cdb[1] & 0x08 != 0,
        control,
        page: cdb[2] & 0x3f,
        subpage: cdb[3],
        allocation,
    })
}

fn maintenance_in(cdb: &[u8; 16]) -> Result<Command, Sense> {
    let allocation = be32(cdb, 6);
    match cdb[1] & 0x1f {
        0x0a => match cdb[1] >> 5 {
            format @ (0 | 1) => Ok(Command::Inform {
                what: Inform::ReportPortGroups {
                    extended: format == 1,
                },
                allocation,
            }),
            _ => Err(Sense::invalid_field(1, Some(7))),
        },
        0x0d => Ok(Command::Inform {
            what: Inform::ReportTaskManagement {
                extended: cdb[2] & 0x80 != 0,
            },
            allocation,
        }),
        0x0c => report_opcodes(cdb),
        _ => Err(UNKNOWN_ACTION),
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
    Ok(Command::Inform {
        what: Inform::ReportSupportedOpcodes { report, timeouts },
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
mod tests;
