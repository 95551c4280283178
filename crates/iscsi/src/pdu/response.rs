//! PDUs from the target.

use super::fields::{Header, array_at, flag, lun, u16_at, u32_at};
use super::{Bhs, Lun, NO_TAG, opcode};

/// Opcodes from the target (RFC 7143 clause 11.2.1.2).
pub mod opcodes {
    /// NOP-In: a ping, or the answer to the initiator's ping.
    pub const NOP_IN: u8 = 0x20;
    /// SCSI Response: status and sense data of a command.
    pub const SCSI_RESPONSE: u8 = 0x21;
    /// Task Management Function Response.
    pub const TASK_MANAGEMENT: u8 = 0x22;
    /// Login Response: text keys and the status of a login.
    pub const LOGIN: u8 = 0x23;
    /// Text Response: text keys after the login.
    pub const TEXT: u8 = 0x24;
    /// SCSI Data-In: data of a read, perhaps with the status.
    pub const DATA_IN: u8 = 0x25;
    /// Logout Response: the outcome of a logout.
    pub const LOGOUT: u8 = 0x26;
    /// Ready To Transfer: asks for data of a write.
    pub const READY_TO_TRANSFER: u8 = 0x31;
    /// Asynchronous Message: an event that no command caused.
    pub const ASYNC: u8 = 0x32;
    /// Reject: a PDU that cannot be answered otherwise.
    pub const REJECT: u8 = 0x3f;
}

/// A PDU from the target, without its data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Clause 11.19.
    NopIn(NopIn),
    /// Clause 11.4.
    ScsiResponse(ScsiResponse),
    /// Clause 11.6.
    TaskManagement(TaskManagement),
    /// Clause 11.13.
    Login(Login),
    /// Clause 11.11.
    Text(Text),
    /// Clause 11.7.
    DataIn(DataIn),
    /// Clause 11.15.
    Logout(Logout),
    /// Clause 11.8.
    ReadyToTransfer(ReadyToTransfer),
    /// Clause 11.9.
    Async(Async),
    /// Clause 11.17.
    Reject(Reject),
}

/// The numbers that every PDU from the target carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// StatSN: the number of this status on this connection. An R2T and a ping carry the next
    /// number and do not consume it.
    pub stat_sn: u32,
    /// ExpCmdSN: all commands with lower numbers have arrived.
    pub exp_cmd_sn: u32,
    /// MaxCmdSN: the highest CmdSN that the window has room for.
    pub max_cmd_sn: u32,
}

/// How far the bytes that the command asked for differ from those that the initiator expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Residual {
    /// The command asked for as many bytes as expected.
    #[default]
    None,
    /// The command asked for that many bytes more than expected.
    Over(u32),
    /// That many of the expected bytes were not moved.
    Under(u32),
}

/// NOP-In: a ping, or the answer to the initiator's ping (clause 11.19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NopIn {
    /// StatSN and the like.
    pub numbers: Numbers,
    /// LUN, for a ping.
    pub lun: Lun,
    /// Initiator task tag of the NOP-Out that this answers; none in a ping.
    pub task_tag: u32,
    /// Target transfer tag that the initiator returns, in a ping; otherwise none.
    pub target_tag: u32,
}

/// SCSI Response (clause 11.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScsiResponse {
    /// StatSN and the like.
    pub numbers: Numbers,
    /// iSCSI service response; 0 when the command completed at the target.
    pub response: u8,
    /// SCSI status byte; it counts only when `response` is 0.
    pub status: u8,
    /// Residual of the data, or of data-out in a bidirectional command.
    pub residual: Residual,
    /// Residual of data-in in a bidirectional command.
    pub bidirectional_residual: Residual,
    /// Initiator task tag of the command.
    pub task_tag: u32,
    /// SNACK tag of the last R-Data SNACK that the target accepted for the command on this
    /// connection; otherwise 0.
    pub snack_tag: u32,
    /// ExpDataSN: Data-In and R2T PDUs sent for this command; 0 when no Data-In was sent, or
    /// `response` is not 0.
    pub exp_data_sn: u32,
}

/// Task Management Function Response (clause 11.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskManagement {
    /// StatSN and the like.
    pub numbers: Numbers,
    /// Response code; 0 when the function is complete.
    pub response: u8,
    /// Initiator task tag of the request.
    pub task_tag: u32,
}

/// Login Response (clause 11.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login {
    /// StatSN and the like.
    pub numbers: Numbers,
    /// The target is ready for the next stage, too.
    pub transit: bool,
    /// The text goes on in the next PDU.
    pub continues: bool,
    /// Current stage, two bits.
    pub current_stage: u8,
    /// Next stage, two bits; it counts only with `transit`.
    pub next_stage: u8,
    /// Highest version that the target supports.
    pub version_max: u8,
    /// The version that this connection uses; the target's lowest when it supports none of the
    /// initiator's.
    pub version_active: u8,
    /// Initiator part of the session identifier.
    pub isid: [u8; 6],
    /// Target part of the session identifier; of a new session, 0 before the final response.
    pub tsih: u16,
    /// Initiator task tag of the request.
    pub task_tag: u32,
    /// Status class: 0 success, 1 redirection, 2 initiator error, 3 target error.
    pub status_class: u8,
    /// Status detail within the class.
    pub status_detail: u8,
}

/// Text Response (clause 11.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// StatSN and the like.
    pub numbers: Numbers,
    /// The exchange is over.
    pub is_final: bool,
    /// The text goes on in the next PDU.
    pub continues: bool,
    /// LUN that the next request returns with the target tag.
    pub lun: Lun,
    /// Initiator task tag of the request.
    pub task_tag: u32,
    /// Target transfer tag that the next request returns; none when the exchange is over.
    pub target_tag: u32,
}

/// SCSI Data-In (clause 11.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataIn {
    /// StatSN (with a status only) and the like.
    pub numbers: Numbers,
    /// Last of its sequence.
    pub is_final: bool,
    /// An acknowledgement is asked for.
    pub acknowledge: bool,
    /// Status and residual, when they ride on the data.
    pub status: Option<(u8, Residual)>,
    /// LUN, with an acknowledgement only.
    pub lun: Lun,
    /// Initiator task tag of the command.
    pub task_tag: u32,
    /// Target transfer tag, with an acknowledgement only.
    pub target_tag: u32,
    /// DataSN: the PDU's number among the command's Data-In PDUs (and R2Ts, if bidirectional).
    pub data_sn: u32,
    /// Buffer offset: where in the command's data the segment belongs.
    pub offset: u32,
}

/// Logout Response (clause 11.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logout {
    /// StatSN and the like.
    pub numbers: Numbers,
    /// Response code; 0 when the connection or session was closed.
    pub response: u8,
    /// Initiator task tag of the request.
    pub task_tag: u32,
    /// Seconds to wait before a reconnect.
    pub time2wait: u16,
    /// Seconds for which tasks are kept after that.
    pub time2retain: u16,
}

/// Ready To Transfer (clause 11.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyToTransfer {
    /// The next StatSN (not consumed) and the like.
    pub numbers: Numbers,
    /// LUN of the command that the data is for.
    pub lun: Lun,
    /// Initiator task tag of the command.
    pub task_tag: u32,
    /// Target transfer tag, which the Data-Out PDUs carry back.
    pub target_tag: u32,
    /// R2TSN: the PDU's number among the command's R2Ts (and Data-In PDUs, if bidirectional).
    pub r2t_sn: u32,
    /// Buffer offset: where in the command's data the wanted bytes begin.
    pub offset: u32,
    /// Bytes that the target wants from `offset` on; never 0.
    pub desired_bytes: u32,
}

/// Asynchronous Message (clause 11.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Async {
    /// StatSN and the like.
    pub numbers: Numbers,
    /// LUN of a SCSI event (0) or of a termination of tasks (5); otherwise reserved.
    pub lun: Lun,
    /// Event code; 0 is sense data of a SCSI event.
    pub event: u8,
    /// AsyncVCode: the vendor's detail of a vendor-specific event (248 to 255); otherwise reserved.
    pub vendor_code: u8,
    /// Parameters 1 to 3; the event code gives them their meaning.
    pub parameters: [u16; 3],
}

/// Reject: it returns the header of a PDU that cannot be answered (clause 11.17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reject {
    /// StatSN and the like.
    pub numbers: Numbers,
    /// Reason code for the reject.
    pub reason: u8,
    /// DataSN or R2TSN that the target would send next, for a Data/R2T SNACK that is rejected as
    /// a protocol error; otherwise reserved.
    pub data_sn: u32,
}

const OVER: u8 = 0x04;
const UNDER: u8 = 0x02;
const BIDIRECTIONAL_OVER: u8 = 0x10;
const BIDIRECTIONAL_UNDER: u8 = 0x08;

impl Numbers {
    fn parse(bhs: &Bhs) -> Numbers {
        Numbers {
            stat_sn: u32_at(bhs, 24),
            exp_cmd_sn: u32_at(bhs, 28),
            max_cmd_sn: u32_at(bhs, 32),
        }
    }

    fn header(self, opcode: u8, flags: u8) -> Header {
        let header = Header::new(opcode, flags).u32(24, self.stat_sn);
        header.u32(28, self.exp_cmd_sn).u32(32, self.max_cmd_sn)
    }
}

impl Residual {
    /// Of `expected` bytes, when the command is about `presented` bytes.
    pub fn of(expected: u64, presented: u64) -> Residual {
        let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        if presented > expected {
            Residual::Over(narrow(presented - expected))
        } else if presented < expected {
            Residual::Under(narrow(expected - presented))
        } else {
            Residual::None
        }
    }

    fn parse(flags: u8, over: u8, under: u8, count: u32) -> Residual {
        match (flags & over != 0, flags & under != 0) {
            (true, false) => Residual::Over(count),
            (false, true) => Residual::Under(count),
            _ => Residual::None,
        }
    }

    fn flags(self, over: u8, under: u8) -> u8 {
        match self {
            Residual::None => 0,
            Residual::Over(_) => over,
            Residual::Under(_) => under,
        }
    }

    fn count(self) -> u32 {
        match self {
            Residual::None => 0,
            Residual::Over(count) | Residual::Under(count) => count,
        }
    }
}

impl Response {
    /// The fields of a header; `None` when its opcode is not a target's.
    pub fn parse(bhs: &Bhs) -> Option<Response> {
        Some(match opcode(bhs) {
            opcodes::NOP_IN => Response::NopIn(NopIn::parse(bhs)),
            opcodes::SCSI_RESPONSE => Response::ScsiResponse(ScsiResponse::parse(bhs)),
            opcodes::TASK_MANAGEMENT => Response::TaskManagement(TaskManagement::parse(bhs)),
            opcodes::LOGIN => Response::Login(Login::parse(bhs)),
            opcodes::TEXT => Response::Text(Text::parse(bhs)),
            opcodes::DATA_IN => Response::DataIn(DataIn::parse(bhs)),
            opcodes::LOGOUT => Response::Logout(Logout::parse(bhs)),
            opcodes::READY_TO_TRANSFER => Response::ReadyToTransfer(ReadyToTransfer::parse(bhs)),
            opcodes::ASYNC => Response::Async(Async::parse(bhs)),
            opcodes::REJECT => Response::Reject(Reject::parse(bhs)),
            _ => return None,
        })
    }

    /// The header, with all lengths zero.
    pub fn encode(&self) -> Bhs {
        match self {
            Response::NopIn(pdu) => pdu.encode(),
            Response::ScsiResponse(pdu) => pdu.encode(),
            Response::TaskManagement(pdu) => pdu.encode(),
            Response::Login(pdu) => pdu.encode(),
            Response::Text(pdu) => pdu.encode(),
            Response::DataIn(pdu) => pdu.encode(),
            Response::Logout(pdu) => pdu.encode(),
            Response::ReadyToTransfer(pdu) => pdu.encode(),
            Response::Async(pdu) => pdu.encode(),
            Response::Reject(pdu) => pdu.encode(),
        }
    }
}

impl NopIn {
    fn parse(bhs: &Bhs) -> NopIn {
        NopIn {
            numbers: Numbers::parse(bhs),
            lun: lun(bhs),
            task_tag: u32_at(bhs, 16),
            target_tag: u32_at(bhs, 20),
        }
    }

    fn encode(&self) -> Bhs {
        let header = self
            .numbers
            .header(opcodes::NOP_IN, 0x80)
            .bytes(8, &self.lun);
        header.u32(16, self.task_tag).u32(20, self.target_tag).0
    }
}

impl ScsiResponse {
    fn parse(bhs: &Bhs) -> ScsiResponse {
        let (flags, count, bidirectional) = (bhs[1], u32_at(bhs, 44), u32_at(bhs, 40));
        ScsiResponse {
            numbers: Numbers::parse(bhs),
            response: bhs[2],
            status: bhs[3],
            residual: Residual::parse(flags, OVER, UNDER, count),
            bidirectional_residual: Residual::parse(
                flags,
                BIDIRECTIONAL_OVER,
                BIDIRECTIONAL_UNDER,
                bidirectional,
            ),
            task_tag: u32_at(bhs, 16),
            snack_tag: u32_at(bhs, 20),
            exp_data_sn: u32_at(bhs, 36),
        }
    }

    fn encode(&self) -> Bhs {
        let bidirectional = self.bidirectional_residual;
        let flags = 0x80
            | self.residual.flags(OVER, UNDER)
            | bidirectional.flags(BIDIRECTIONAL_OVER, BIDIRECTIONAL_UNDER);
        let header = self.numbers.header(opcodes::SCSI_RESPONSE, flags);
        let header = header.byte(2, self.response).byte(3, self.status);
        let header = header.u32(16, self.task_tag).u32(20, self.snack_tag);
        let header = header
            .u32(36, self.exp_data_sn)
            .u32(40, bidirectional.count());
        header.u32(44, self.residual.count()).0
    }
}

impl TaskManagement {
    fn parse(bhs: &Bhs) -> TaskManagement {
        TaskManagement {
            numbers: Numbers::parse(bhs),
            response: bhs[2],
            task_tag: u32_at(bhs, 16),
        }
    }

    fn encode(&self) -> Bhs {
        let header = self.numbers.header(opcodes::TASK_MANAGEMENT, 0x80);
        header.byte(2, self.response).u32(16, self.task_tag).0
    }
}

impl Login {
    fn parse(bhs: &Bhs) -> Login {
        Login {
            numbers: Numbers::parse(bhs),
            transit: bhs[1] & 0x80 != 0,
            continues: bhs[1] & 0x40 != 0,
            current_stage: bhs[1] >> 2 & 0x03,
            next_stage: bhs[1] & 0x03,
            version_max: bhs[2],
            version_active: bhs[3],
            isid: array_at(bhs, 8),
            tsih: u16_at(bhs, 14),
            task_tag: u32_at(bhs, 16),
            status_class: bhs[36],
            status_detail: bhs[37],
        }
    }

    fn encode(&self) -> Bhs {
        let stages = (self.current_stage & 0x03) << 2 | self.next_stage & 0x03;
        let flags = flag(self.transit, 0x80) | flag(self.continues, 0x40) | stages;
        let header = self.numbers.header(opcodes::LOGIN, flags);
        let header = header
            .byte(2, self.version_max)
            .byte(3, self.version_active);
        let header = header
            .bytes(8, &self.isid)
            .u16(14, self.tsih)
            .u32(16, self.task_tag);
        header
            .byte(36, self.status_class)
            .byte(37, self.status_detail)
            .0
    }
}

impl Text {
    fn parse(bhs: &Bhs) -> Text {
        Text {
            numbers: Numbers::parse(bhs),
            is_final: bhs[1] & 0x80 != 0,
            continues: bhs[1] & 0x40 != 0,
            lun: lun(bhs),
            task_tag: u32_at(bhs, 16),
            target_tag: u32_at(bhs, 20),
        }
    }

    fn encode(&self) -> Bhs {
        let flags = flag(self.is_final, 0x80) | flag(self.continues, 0x40);
        let header = self
            .numbers
            .header(opcodes::TEXT, flags)
            .bytes(8, &self.lun);
        header.u32(16, self.task_tag).u32(20, self.target_tag).0
    }
}

impl DataIn {
    fn parse(bhs: &Bhs) -> DataIn {
        let residual = Residual::parse(bhs[1], OVER, UNDER, u32_at(bhs, 44));
        DataIn {
            numbers: Numbers::parse(bhs),
            is_final: bhs[1] & 0x80 != 0,
            acknowledge: bhs[1] & 0x40 != 0,
            status: (bhs[1] & 0x01 != 0).then_some((bhs[3], residual)),
            lun: lun(bhs),
            task_tag: u32_at(bhs, 16),
            target_tag: u32_at(bhs, 20),
            data_sn: u32_at(bhs, 36),
            offset: u32_at(bhs, 40),
        }
    }

    fn encode(&self) -> Bhs {
        let (status, residual) = self.status.unwrap_or_default();
        let flags = flag(self.is_final, 0x80)
            | flag(self.acknowledge, 0x40)
            | flag(self.status.is_some(), 0x01)
            | residual.flags(OVER, UNDER);
        let header = self.numbers.header(opcodes::DATA_IN, flags).byte(3, status);
        let header = header
            .bytes(8, &self.lun)
            .u32(16, self.task_tag)
            .u32(20, self.target_tag);
        header
            .u32(36, self.data_sn)
            .u32(40, self.offset)
            .u32(44, residual.count())
            .0
    }
}

impl Logout {
    fn parse(bhs: &Bhs) -> Logout {
        Logout {
            numbers: Numbers::parse(bhs),
            response: bhs[2],
            task_tag: u32_at(bhs, 16),
            time2wait: u16_at(bhs, 40),
            time2retain: u16_at(bhs, 42),
        }
    }

    fn encode(&self) -> Bhs {
        let header = self
            .numbers
            .header(opcodes::LOGOUT, 0x80)
            .byte(2, self.response);
        header
            .u32(16, self.task_tag)
            .u16(40, self.time2wait)
            .u16(42, self.time2retain)
            .0
    }
}

impl ReadyToTransfer {
    fn parse(bhs: &Bhs) -> ReadyToTransfer {
        ReadyToTransfer {
            numbers: Numbers::parse(bhs),
            lun: lun(bhs),
            task_tag: u32_at(bhs, 16),
            target_tag: u32_at(bhs, 20),
            r2t_sn: u32_at(bhs, 36),
            offset: u32_at(bhs, 40),
            desired_bytes: u32_at(bhs, 44),
        }
    }

    fn encode(&self) -> Bhs {
        let header = self
            .numbers
            .header(opcodes::READY_TO_TRANSFER, 0x80)
            .bytes(8, &self.lun);
        let header = header.u32(16, self.task_tag).u32(20, self.target_tag);
        header
            .u32(36, self.r2t_sn)
            .u32(40, self.offset)
            .u32(44, self.desired_bytes)
            .0
    }
}

impl Async {
    fn parse(bhs: &Bhs) -> Async {
        Async {
            numbers: Numbers::parse(bhs),
            lun: lun(bhs),
            event: bhs[36],
            vendor_code: bhs[37],
            parameters: [u16_at(bhs, 38), u16_at(bhs, 40), u16_at(bhs, 42)],
        }
    }

    fn encode(&self) -> Bhs {
        let [first, second, third] = self.parameters;
        let header = self
            .numbers
            .header(opcodes::ASYNC, 0x80)
            .bytes(8, &self.lun);
        let header = header
            .u32(16, NO_TAG)
            .byte(36, self.event)
            .byte(37, self.vendor_code);
        header.u16(38, first).u16(40, second).u16(42, third).0
    }
}

impl Reject {
    fn parse(bhs: &Bhs) -> Reject {
        Reject {
            numbers: Numbers::parse(bhs),
            reason: bhs[2],
            data_sn: u32_at(bhs, 36),
        }
    }

    fn encode(&self) -> Bhs {
        let header = self
            .numbers
            .header(opcodes::REJECT, 0x80)
            .byte(2, self.reason);
        header.u32(16, NO_TAG).u32(36, self.data_sn).0
    }
}
