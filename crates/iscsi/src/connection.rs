//! A connection in full-feature phase.
//!
//! The owner (a shard, or a test) moves bytes and runs commands:
//! 1. [`Connection::receive`] takes what came from the peer.
//! 2. [`Connection::next_event`] says what to do, until `None`.
//! 3. [`Connection::accept`], [`Connection::complete`] and the others answer.
//! 4. [`Connection::output`] is what to send.

use base::{Payload, Slice};

/// Names a task on this connection while it is in progress (the initiator task
/// tag, made unique over reuse).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

/// What the owner has to do.
#[derive(Debug)]
pub enum Event {
    /// A SCSI command. When `write` is set, the owner calls
    /// [`Connection::accept`] with the bytes of data-out that the CDB asks for and
    /// waits for [`Event::DataOut`]; else it runs the command at once.
    Command {
        /// The task.
        task: TaskId,
        /// The eight bytes of the LUN field.
        lun: [u8; 8],
        /// The first sixteen bytes of the CDB.
        cdb: [u8; 16],
        /// The task attribute (0 untagged, 1 simple, 2 ordered, 3 head of queue, 4 ACA).
        attribute: u8,
        /// Data-out is to come.
        write: bool,
        /// Data-in is awaited.
        read: bool,
        /// Expected data transfer length.
        expected_bytes: u32,
    },
    /// All of a task's data-out has come.
    DataOut {
        /// The task.
        task: TaskId,
        /// The bytes accepted (fewer when the peer's expected length was smaller).
        data: Slice,
    },
    /// A task management function; answer with [`Connection::managed`].
    TaskManagement {
        /// The function's own task.
        task: TaskId,
        /// Function code (RFC 7143 clause 11.5.1).
        function: u8,
        /// The eight bytes of the LUN field.
        lun: [u8; 8],
        /// For ABORT TASK: the task meant, if it is in progress.
        referenced: Option<TaskId>,
    },
    /// The peer has logged out or broken the rules: send what is in the output,
    /// then close. No event follows.
    Close {
        /// For the log.
        reason: String,
    },
}

/// The outcome of a command.
#[derive(Debug, Default)]
pub struct Completion {
    /// SCSI status byte.
    pub status: u8,
    /// Sense data in fixed or descriptor format; empty for none.
    pub sense: Vec<u8>,
    /// Data-in.
    pub data: Payload,
    /// Bytes that the CDB itself asks to transfer, in or out, for exact residuals.
    pub wanted_bytes: u64,
}
