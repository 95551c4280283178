//! PDUs from the initiator.

use super::fields::{Header, array_at, flag, lun, u16_at, u32_at};
use super::{Bhs, Lun, opcode};

/// Opcodes from the initiator (RFC 7143 clause 11.2.1.2).
pub mod opcodes {
    /// NOP-Out: a ping, or the answer to our ping.
    pub const NOP_OUT: u8 = 0x00;
    /// SCSI Command: a CDB, perhaps with immediate data.
    pub const SCSI_COMMAND: u8 = 0x01;
    /// Task Management Function Request.
    pub const TASK_MANAGEMENT: u8 = 0x02;
    /// Login Request: text keys of a login.
    pub const LOGIN: u8 = 0x03;
    /// Text Request: text keys after the login.
    pub const TEXT: u8 = 0x04;
    /// SCSI Data-Out: data of a write.
    pub const DATA_OUT: u8 = 0x05;
    /// Logout Request: the end of a connection or session.
    pub const LOGOUT: u8 = 0x06;
    /// SNACK Request: asks for PDUs again, or acknowledges Data-In PDUs.
    pub const SNACK: u8 = 0x10;
}

/// Marks an immediate command in the opcode byte.
const IMMEDIATE: u8 = 0x40;

/// A PDU from the initiator, without its data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Clause 11.18.
    NopOut(NopOut),
    /// Clause 11.3.
    ScsiCommand(ScsiCommand),
    /// Clause 11.5.
    TaskManagement(TaskManagement),
    /// Clause 11.12.
    Login(Login),
    /// Clause 11.10.
    Text(Text),
    /// Clause 11.7.
    DataOut(DataOut),
    /// Clause 11.14.
    Logout(Logout),
    /// Clause 11.16.
    Snack(Snack),
}

/// Where a command stands in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Outside the command window: CmdSN is not consumed.
    pub immediate: bool,
    /// CmdSN: the command's number in its session.
    pub cmd_sn: u32,
    /// ExpStatSN: all responses with lower numbers have arrived.
    pub exp_stat_sn: u32,
}

/// NOP-Out: a ping, or the answer to our ping (clause 11.18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NopOut {
    /// CmdSN and the like.
    pub order: Order,
    /// LUN, meaningful with a target tag only.
    pub lun: Lun,
    /// Initiator task tag; none when no answer is wanted.
    pub task_tag: u32,
    /// Target transfer tag of the NOP-In that this answers; none in a ping.
    pub target_tag: u32,
}

/// SCSI Command (clause 11.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScsiCommand {
    /// CmdSN and the like.
    pub order: Order,
    /// No unsolicited Data-Out follows.
    pub is_final: bool,
    /// R: the command expects data-in.
    pub read: bool,
    /// W: the command expects data-out.
    pub write: bool,
    /// Task attribute, three bits.
    pub attribute: u8,
    /// LUN that the command addresses.
    pub lun: Lun,
    /// Initiator task tag, which names the command until it ends.
    pub task_tag: u32,
    /// Expected data transfer length; of a bidirectional command, that of its data-out.
    pub expected_bytes: u32,
    /// The first sixteen bytes of the CDB.
    pub cdb: [u8; 16],
}

/// Task Management Function Request (clause 11.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskManagement {
    /// CmdSN and the like.
    pub order: Order,
    /// Function code, seven bits.
    pub function: u8,
    /// LUN that the function is for; reserved for TASK REASSIGN and resets of the target.
    pub lun: Lun,
    /// Initiator task tag of this request.
    pub task_tag: u32,
    /// Initiator task tag of the task, for ABORT TASK and TASK REASSIGN; otherwise none.
    pub referenced_tag: u32,
    /// CmdSN of the task, for ABORT TASK; this request's CmdSN when the task is immediate.
    pub referenced_cmd_sn: u32,
    /// ExpDataSN, for TASK REASSIGN: the first DataSN that the initiator did not acknowledge.
    pub exp_data_sn: u32,
}

/// Login Request (clause 11.12). Always immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login {
    /// Ready for the next stage.
    pub transit: bool,
    /// The text goes on in the next PDU.
    pub continues: bool,
    /// Current stage, two bits.
    pub current_stage: u8,
    /// Next stage, two bits; it counts only with `transit`.
    pub next_stage: u8,
    /// Highest version that the initiator supports.
    pub version_max: u8,
    /// Lowest version that the initiator supports.
    pub version_min: u8,
    /// Initiator part of the session identifier.
    pub isid: [u8; 6],
    /// Target part; zero for a new session.
    pub tsih: u16,
    /// Initiator task tag, the same in the whole login.
    pub task_tag: u32,
    /// Connection identifier, which the initiator chooses.
    pub cid: u16,
    /// CmdSN of the first command to come.
    pub cmd_sn: u32,
    /// ExpStatSN: all responses with lower numbers have arrived. In a connection's first request
    /// it is that of the old connection, and counts only when the login restarts it.
    pub exp_stat_sn: u32,
}

/// Text Request (clause 11.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// CmdSN and the like.
    pub order: Order,
    /// The initiator has nothing more to negotiate.
    pub is_final: bool,
    /// The text goes on in the next PDU.
    pub continues: bool,
    /// LUN, as the last response gave it.
    pub lun: Lun,
    /// Initiator task tag, which names the exchange.
    pub task_tag: u32,
    /// Target transfer tag; none for a new exchange.
    pub target_tag: u32,
}

/// SCSI Data-Out (clause 11.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataOut {
    /// Last of its sequence.
    pub is_final: bool,
    /// LUN, with a target tag only.
    pub lun: Lun,
    /// Initiator task tag of the command.
    pub task_tag: u32,
    /// Target transfer tag of the R2T; none for unsolicited data.
    pub target_tag: u32,
    /// ExpStatSN: all responses with lower numbers have arrived.
    pub exp_stat_sn: u32,
    /// DataSN: the PDU's number in its sequence.
    pub data_sn: u32,
    /// Buffer offset: where in the command's data the segment belongs.
    pub offset: u32,
}

/// Logout Request (clause 11.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logout {
    /// CmdSN and the like.
    pub order: Order,
    /// Reason code, seven bits.
    pub reason: u8,
    /// Initiator task tag of this request.
    pub task_tag: u32,
    /// Connection to close or to recover; reserved when the reason is to close the session.
    pub cid: u16,
}

/// SNACK Request (clause 11.16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snack {
    /// Type, four bits: 0 Data/R2T, 1 Status, 2 DataACK, 3 R-Data.
    pub kind: u8,
    /// LUN, for DataACK only.
    pub lun: Lun,
    /// Initiator task tag of the command that missed PDUs; none for Status and DataACK.
    pub task_tag: u32,
    /// Target transfer tag for DataACK, SNACK tag for R-Data; otherwise none.
    pub target_tag: u32,
    /// ExpStatSN: all responses with lower numbers have arrived.
    pub exp_stat_sn: u32,
    /// BegRun: the first number that was missed; for DataACK, the next DataSN expected; for
    /// R-Data, 0.
    pub begin: u32,
    /// RunLength: PDUs that were missed; 0 is all from `begin` on. 0 for DataACK and R-Data.
    pub run_length: u32,
}

impl Order {
    fn parse(bhs: &Bhs) -> Order {
        Order {
            immediate: bhs[0] & IMMEDIATE != 0,
            cmd_sn: u32_at(bhs, 24),
            exp_stat_sn: u32_at(bhs, 28),
        }
    }

    fn header(self, opcode: u8, flags: u8) -> Header {
        Header::new(opcode | flag(self.immediate, IMMEDIATE), flags)
            .u32(24, self.cmd_sn)
            .u32(28, self.exp_stat_sn)
    }
}

impl Request {
    /// The fields of a header; `None` when its opcode is not an initiator's.
    pub fn parse(bhs: &Bhs) -> Option<Request> {
        Some(match opcode(bhs) {
            opcodes::NOP_OUT => Request::NopOut(NopOut::parse(bhs)),
            opcodes::SCSI_COMMAND => Request::ScsiCommand(ScsiCommand::parse(bhs)),
            opcodes::TASK_MANAGEMENT => Request::TaskManagement(TaskManagement::parse(bhs)),
            opcodes::LOGIN => Request::Login(Login::parse(bhs)),
            opcodes::TEXT => Request::Text(Text::parse(bhs)),
            opcodes::DATA_OUT => Request::DataOut(DataOut::parse(bhs)),
            opcodes::LOGOUT => Request::Logout(Logout::parse(bhs)),
            opcodes::SNACK => Request::Snack(Snack::parse(bhs)),
            _ => return None,
        })
    }

    /// The header, with all lengths zero.
    pub fn encode(&self) -> Bhs {
        match self {
            Request::NopOut(pdu) => pdu.encode(),
            Request::ScsiCommand(pdu) => pdu.encode(),
            Request::TaskManagement(pdu) => pdu.encode(),
            Request::Login(pdu) => pdu.encode(),
            Request::Text(pdu) => pdu.encode(),
            Request::DataOut(pdu) => pdu.encode(),
            Request::Logout(pdu) => pdu.encode(),
            Request::Snack(pdu) => pdu.encode(),
        }
    }
}

impl NopOut {
    fn parse(bhs: &Bhs) -> NopOut {
        NopOut {
            order: Order::parse(bhs),
            lun: lun(bhs),
            task_tag: u32_at(bhs, 16),
            target_tag: u32_at(bhs, 20),
        }
    }

    fn encode(&self) -> Bhs {
        let header = self
            .order
            .header(opcodes::NOP_OUT, 0x80)
            .bytes(8, &self.lun);
        header.u32(16, self.task_tag).u32(20, self.target_tag).0
    }
}

impl ScsiCommand {
    fn parse(bhs: &Bhs) -> ScsiCommand {
        ScsiCommand {
            order: Order::parse(bhs),
            is_final: bhs[1] & 0x80 != 0,
            read: bhs[1] & 0x40 != 0,
            write: bhs[1] & 0x20 != 0,
            attribute: bhs[1] & 0x07,
            lun: lun(bhs),
            task_tag: u32_at(bhs, 16),
            expected_bytes: u32_at(bhs, 20),
            cdb: array_at(bhs, 32),
        }
    }

    fn encode(&self) -> Bhs {
        let directions = flag(self.read, 0x40) | flag(self.write, 0x20);
        let flags = flag(self.is_final, 0x80) | directions | self.attribute & 0x07;
        let header = self
            .order
            .header(opcodes::SCSI_COMMAND, flags)
            .bytes(8, &self.lun);
        header
            .u32(16, self.task_tag)
            .u32(20, self.expected_bytes)
            .bytes(32, &self.cdb)
            .0
    }
}

impl TaskManagement {
    fn parse(bhs: &Bhs) -> TaskManagement {
        TaskManagement {
            order: Order::parse(bhs),
            function: bhs[1] & 0x7f,
            lun: lun(bhs),
            task_tag: u32_at(bhs, 16),
            referenced_tag: u32_at(bhs, 20),
            referenced_cmd_sn: u32_at(bhs, 32),
            exp_data_sn: u32_at(bhs, 36),
        }
    }

    fn encode(&self) -> Bhs {
        let flags = 0x80 | self.function & 0x7f;
        let header = self
            .order
            .header(opcodes::TASK_MANAGEMENT, flags)
            .bytes(8, &self.lun);
        let header = header.u32(16, self.task_tag).u32(20, self.referenced_tag);
        header
            .u32(32, self.referenced_cmd_sn)
            .u32(36, self.exp_data_sn)
            .0
    }
}

impl Login {
    fn parse(bhs: &Bhs) -> Login {
        Login {
            transit: bhs[1] & 0x80 != 0,
            continues: bhs[1] & 0x40 != 0,
            current_stage: bhs[1] >> 2 & 0x03,
            next_stage: bhs[1] & 0x03,
            version_max: bhs[2],
            version_min: bhs[3],
            isid: array_at(bhs, 8),
            tsih: u16_at(bhs, 14),
            task_tag: u32_at(bhs, 16),
            cid: u16_at(bhs, 20),
            cmd_sn: u32_at(bhs, 24),
            exp_stat_sn: u32_at(bhs, 28),
        }
    }

    fn encode(&self) -> Bhs {
        let stages = (self.current_stage & 0x03) << 2 | self.next_stage & 0x03;
        let flags = flag(self.transit, 0x80) | flag(self.continues, 0x40) | stages;
        let header = Header::new(opcodes::LOGIN | IMMEDIATE, flags);
        let header = header.byte(2, self.version_max).byte(3, self.version_min);
        let header = header
            .bytes(8, &self.isid)
            .u16(14, self.tsih)
            .u32(16, self.task_tag);
        header
            .u16(20, self.cid)
            .u32(24, self.cmd_sn)
            .u32(28, self.exp_stat_sn)
            .0
    }
}

impl Text {
    fn parse(bhs: &Bhs) -> Text {
        Text {
            order: Order::parse(bhs),
            is_final: bhs[1] & 0x80 != 0,
            continues: bhs[1] & 0x40 != 0,
            lun: lun(bhs),
            task_tag: u32_at(bhs, 16),
            target_tag: u32_at(bhs, 20),
        }
    }

    fn encode(&self) -> Bhs {
        let flags = flag(self.is_final, 0x80) | flag(self.continues, 0x40);
        let header = self.order.header(opcodes::TEXT, flags).bytes(8, &self.lun);
        header.u32(16, self.task_tag).u32(20, self.target_tag).0
    }
}

impl DataOut {
    fn parse(bhs: &Bhs) -> DataOut {
        DataOut {
            is_final: bhs[1] & 0x80 != 0,
            lun: lun(bhs),
            task_tag: u32_at(bhs, 16),
            target_tag: u32_at(bhs, 20),
            exp_stat_sn: u32_at(bhs, 28),
            data_sn: u32_at(bhs, 36),
            offset: u32_at(bhs, 40),
        }
    }

    fn encode(&self) -> Bhs {
        let header = Header::new(opcodes::DATA_OUT, flag(self.is_final, 0x80)).bytes(8, &self.lun);
        let header = header.u32(16, self.task_tag).u32(20, self.target_tag);
        header
            .u32(28, self.exp_stat_sn)
            .u32(36, self.data_sn)
            .u32(40, self.offset)
            .0
    }
}

impl Logout {
    fn parse(bhs: &Bhs) -> Logout {
        Logout {
            order: Order::parse(bhs),
            reason: bhs[1] & 0x7f,
            task_tag: u32_at(bhs, 16),
            cid: u16_at(bhs, 20),
        }
    }

    fn encode(&self) -> Bhs {
        let header = self
            .order
            .header(opcodes::LOGOUT, 0x80 | self.reason & 0x7f);
        header.u32(16, self.task_tag).u16(20, self.cid).0
    }
}

impl Snack {
    fn parse(bhs: &Bhs) -> Snack {
        Snack {
            kind: bhs[1] & 0x0f,
            lun: lun(bhs),
            task_tag: u32_at(bhs, 16),
            target_tag: u32_at(bhs, 20),
            exp_stat_sn: u32_at(bhs, 28),
            begin: u32_at(bhs, 40),
            run_length: u32_at(bhs, 44),
        }
    }

    fn encode(&self) -> Bhs {
        let header = Header::new(opcodes::SNACK, 0x80 | self.kind & 0x0f).bytes(8, &self.lun);
        let header = header.u32(16, self.task_tag).u32(20, self.target_tag);
        header
            .u32(28, self.exp_stat_sn)
            .u32(40, self.begin)
            .u32(44, self.run_length)
            .0
    }
}
