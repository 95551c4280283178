//! Commands with their parameters, as CDBs give them.

use crate::offload;
use base::{Lba, SECTOR_BYTES};

/// A run of logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first logical block of the run.
    pub lba: Lba,
    /// How many; zero is allowed.
    pub blocks: u32,
}

impl Extent {
    /// Length in bytes; 0 for no blocks.
    pub fn bytes(&self) -> u64 {
        u64::from(self.blocks) * SECTOR_BYTES as u64
    }
}

/// What a WRITE SAME asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteSame {
    /// The logical blocks that are written.
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
    /// The values that are in force now.
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
    /// All commands that the unit supports.
    All,
    /// The command of this operation code, which has no service actions.
    Opcode(u8),
    /// The command of this operation code and service action.
    OpcodeAndAction(u8, u16),
    /// As one of the two above, whichever fits.
    Either(u8, u16),
}

/// What PERSISTENT RESERVE IN asks (SPC-4 table 208).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveIn {
    /// READ KEYS.
    Keys,
    /// READ RESERVATION.
    Reservation,
    /// REPORT CAPABILITIES.
    Capabilities,
    /// READ FULL STATUS.
    FullStatus,
}

/// What PERSISTENT RESERVE OUT does (SPC-4 table 219).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveOut {
    /// REGISTER.
    Register,
    /// RESERVE.
    Reserve,
    /// RELEASE.
    Release,
    /// CLEAR.
    Clear,
    /// PREEMPT.
    Preempt,
    /// PREEMPT AND ABORT.
    PreemptAndAbort,
    /// REGISTER AND IGNORE EXISTING KEY.
    RegisterAndIgnore,
    /// REGISTER AND MOVE.
    RegisterAndMove,
}

/// SANITIZE with BLOCK ERASE (SBC-4 clause 5.24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sanitize {
    /// IMMED: answer before it ends.
    pub immediate: bool,
    /// AUSE: EXIT FAILURE MODE ends a failure.
    pub may_exit: bool,
}

/// MODE SELECT (SPC-4 clauses 6.9, 6.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeSelect {
    /// The long form of the command: ten bytes, not six.
    pub ten: bool,
    /// SP: keep it over a power cycle.
    pub save: bool,
    /// PARAMETER LIST LENGTH, in bytes.
    pub list_bytes: u16,
}

/// MODE SENSE (SPC-4 clauses 6.11, 6.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeSense {
    /// Which of the two commands it is.
    pub form: ModeForm,
    /// No block descriptor is wanted.
    pub disable_block_descriptors: bool,
    /// PC: which values are asked for.
    pub control: PageControl,
    /// PAGE CODE; 3Fh for all.
    pub page: u8,
    /// SUBPAGE CODE: which page of those with the page code.
    pub subpage: u8,
    /// ALLOCATION LENGTH: bytes of the answer, at most.
    pub allocation: u32,
}

/// LOG SENSE (SPC-4 clause 6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSense {
    /// PAGE CODE: which page is asked for.
    pub page: u8,
    /// SUBPAGE CODE: which page of those with the page code.
    pub subpage: u8,
    /// PARAMETER POINTER: the first parameter that is asked for.
    pub pointer: u16,
    /// ALLOCATION LENGTH: bytes of the answer, at most.
    pub allocation: u32,
}

/// SEND DIAGNOSTIC (SPC-4 clause 6.42).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendDiagnostic {
    /// SELF-TEST CODE: which self-test, or what to do with one.
    pub code: u8,
    /// SELFTEST: the default self-test.
    pub default_test: bool,
    /// PARAMETER LIST LENGTH, in bytes.
    pub list_bytes: u16,
}

/// PERSISTENT RESERVE OUT (SPC-4 clause 6.16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReserveOutOrder {
    /// SERVICE ACTION: what to do with reservations.
    pub action: ReserveOut,
    /// SCOPE and TYPE, as they stand in the CDB.
    pub scope_and_kind: u8,
    /// PARAMETER LIST LENGTH, in bytes.
    pub list_bytes: u32,
}

/// A command with all it asks for. Allocation lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// TEST UNIT READY (SPC-4 clause 6.47).
    TestUnitReady,
    /// MODE SENSE (SPC-4 clauses 6.11, 6.12).
    ModeSense(ModeSense),
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
    /// WRITE AND VERIFY (SBC-3 clauses 5.34 to 5.36).
    WriteVerify {
        /// What is written.
        extent: Extent,
        /// Compare with data-out, or else only read.
        compare: bool,
    },
    /// COMPARE AND WRITE (SBC-3 clause 5.2).
    CompareAndWrite(Extent),
    /// ORWRITE (SBC-3 clause 5.6).
    OrWrite(Extent),
    /// WRITE ATOMIC (SBC-4 clause 5.48).
    WriteAtomic(Extent),
    /// PRE-FETCH (SBC-3 clauses 5.7, 5.8).
    Prefetch(Extent),
    /// SANITIZE with BLOCK ERASE (SBC-4 clause 5.24).
    Sanitize(Sanitize),
    /// SANITIZE with EXIT FAILURE MODE.
    SanitizeExit,
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
    PreventAllowMediumRemoval {
        /// PREVENT.
        prevent: bool,
    },
    /// MODE SELECT (SPC-4 clauses 6.9, 6.10).
    ModeSelect(ModeSelect),
    /// LOG SENSE (SPC-4 clause 6.8).
    LogSense(LogSense),
    /// SEND DIAGNOSTIC (SPC-4 clause 6.42).
    SendDiagnostic(SendDiagnostic),
    /// RESERVE (SPC-2 clauses 7.21, 7.22).
    Reserve,
    /// RELEASE (SPC-2 clauses 7.16, 7.17).
    Release,
    /// PERSISTENT RESERVE OUT (SPC-4 clause 6.16).
    ReserveOut(ReserveOutOrder),
    /// A command that answers with parameter data from memory.
    Inform {
        /// What is asked.
        what: Inform,
        /// ALLOCATION LENGTH; of a command without one, the length of its data.
        allocation: u32,
    },
    /// A third-party copy (SPC-4 clause 5.17).
    Offload(offload::Order),
}

/// What commands ask for that answer with parameter data from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inform {
    /// INQUIRY (SPC-4 clause 6.6).
    Inquiry {
        /// A vital product data page instead of the standard data.
        page: Option<u8>,
    },
    /// REQUEST SENSE (SPC-4 clause 6.39).
    RequestSense {
        /// Descriptor format is asked for.
        descriptor: bool,
    },
    /// REPORT LUNS (SPC-4 clause 6.33).
    ReportLuns {
        /// SELECT REPORT.
        select: u8,
    },
    /// READ CAPACITY(10) (SBC-3 clause 5.15).
    ReadCapacity10,
    /// READ CAPACITY(16) (SBC-3 clause 5.16).
    ReadCapacity16,
    /// PERSISTENT RESERVE IN (SPC-4 clause 6.15).
    ReserveIn {
        /// What is asked.
        action: ReserveIn,
    },
    /// REPORT TARGET PORT GROUPS (SPC-4 clause 6.37).
    ReportPortGroups {
        /// The extended header is asked for.
        extended: bool,
    },
    /// REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS (SPC-4 clause 6.36).
    ReportTaskManagement {
        /// REPD: the extended data.
        extended: bool,
    },
    /// RECEIVE DIAGNOSTIC RESULTS (SPC-4 clause 6.29).
    ReceiveDiagnostic {
        /// PAGE CODE, when PCV says that it counts.
        page: Option<u8>,
    },
    /// READ DEFECT DATA (SBC-3 clauses 5.17, 5.18).
    ReadDefects {
        /// The long form.
        twelve: bool,
        /// REQ_PLIST, REQ_GLIST and the format, as they stand in the CDB.
        wanted: u8,
    },
    /// REPORT SUPPORTED OPERATION CODES (SPC-4 clause 6.35).
    ReportSupportedOpcodes {
        /// About what.
        report: OpcodeReport,
        /// RCTD: with timeouts descriptors.
        timeouts: bool,
    },
}

impl Command {
    /// Whether it is answered at a LUN without a unit, and reports unit attentions in its own way
    /// (SPC-4 clauses 6.6.1, 6.33, 6.39).
    pub(crate) fn is_answered_anywhere(&self) -> bool {
        match self {
            Command::Inform { what, .. } => what.is_answered_anywhere(),
            // Each by its name, so that a new one is decided.
            Command::TestUnitReady
            | Command::ModeSense(_)
            | Command::Read(_)
            | Command::Write(_)
            | Command::Verify { .. }
            | Command::WriteVerify { .. }
            | Command::CompareAndWrite(_)
            | Command::OrWrite(_)
            | Command::WriteAtomic(_)
            | Command::Prefetch(_)
            | Command::Sanitize(_)
            | Command::SanitizeExit
            | Command::SynchronizeCache(_)
            | Command::WriteSame(_)
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
            | Command::Offload(_) => false,
        }
    }

    /// Whether it changes what the medium holds.
    pub(crate) fn writes_medium(&self) -> bool {
        match self {
            Command::Write(_)
            | Command::WriteVerify { .. }
            | Command::WriteSame(_)
            | Command::WriteAtomic(_)
            | Command::CompareAndWrite(_)
            | Command::OrWrite(_)
            | Command::Unmap { .. }
            | Command::Sanitize(_) => true,
            Command::Offload(order) => matches!(order, offload::Order::WriteUsingToken { .. }),
            // Each by its name, so that a new one is not forgotten.
            Command::TestUnitReady
            | Command::ModeSense(_)
            | Command::Read(_)
            | Command::Verify { .. }
            | Command::Prefetch(_)
            | Command::SanitizeExit
            | Command::SynchronizeCache(_)
            | Command::GetLbaStatus { .. }
            | Command::StartStopUnit { .. }
            | Command::PreventAllowMediumRemoval { .. }
            | Command::ModeSelect(_)
            | Command::LogSense(_)
            | Command::SendDiagnostic(_)
            | Command::Reserve
            | Command::Release
            | Command::ReserveOut(_)
            | Command::Inform { .. } => false,
        }
    }
}

impl Inform {
    /// As [`Command::is_answered_anywhere`].
    fn is_answered_anywhere(&self) -> bool {
        match self {
            Inform::Inquiry { .. } | Inform::ReportLuns { .. } | Inform::RequestSense { .. } => {
                true
            }
            Inform::ReadCapacity10
            | Inform::ReadCapacity16
            | Inform::ReserveIn { .. }
            | Inform::ReportPortGroups { .. }
            | Inform::ReportTaskManagement { .. }
            | Inform::ReceiveDiagnostic { .. }
            | Inform::ReadDefects { .. }
            | Inform::ReportSupportedOpcodes { .. } => false,
        }
    }
}
