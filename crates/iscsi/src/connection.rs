//! A connection in full-feature phase.
//!
//! The owner (a shard, or a test) moves bytes and runs commands:
//! 1. [`Connection::receive`] takes what came from the peer.
//! 2. [`Connection::next_event`] says what to do, until `None`.
//! 3. [`Connection::accept`], [`Connection::complete`] and the others answer.
//! 4. [`Connection::output`] is what to send.

use crate::login::{Limits, Negotiated, VisibleTarget};
use base::{BufPool, Payload, Slice};

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
    /// The peer asks for targets (`SendTargets`); answer with
    /// [`Connection::answer_targets`]. No other text request is taken before that.
    SendTargets {
        /// Only this target; all that the initiator may see when `None` (in a
        /// discovery session only).
        target: Option<String>,
    },
    /// The connection has ended this task itself (its data-out came damaged) and
    /// has answered the peer: forget it. Later calls for it do nothing.
    Dropped {
        /// The task.
        task: TaskId,
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

/// One connection in full-feature phase.
pub struct Connection {
    negotiated: Negotiated,
    buffers: BufPool,
    limits: Limits,
}

/// What waits to be sent: header bytes and shared slices, in order.
#[derive(Default)]
pub struct Output {}

impl Output {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        todo!()
    }
    /// Bytes that wait.
    pub fn len(&self) -> usize {
        todo!()
    }
    /// Appends what waits to `iov`, from the front on, at most `max` runs.
    pub fn slices<'a>(&'a self, iov: &mut Vec<std::io::IoSlice<'a>>, max: usize) {
        let _ = (iov, max);
        todo!()
    }
    /// The first `sent_bytes` have been sent.
    pub fn advance(&mut self, sent_bytes: usize) {
        let _ = sent_bytes;
        todo!()
    }
}

impl Connection {
    /// The connection that a login has agreed on. Bytes that the login left over go
    /// to [`Connection::receive`] first.
    pub fn new(negotiated: Negotiated, buffers: BufPool, limits: Limits) -> Self {
        Connection { negotiated, buffers, limits }
    }
    /// What the login agreed on.
    pub fn negotiated(&self) -> &Negotiated {
        &self.negotiated
    }
    /// Whether this is a discovery session (text, NOP and logout only).
    pub fn is_discovery(&self) -> bool {
        self.negotiated.target.is_none()
    }
    /// Takes bytes from the peer, cut anywhere.
    pub fn receive(&mut self, bytes: &[u8]) {
        let _ = (bytes, &self.buffers, &self.limits);
        todo!()
    }
    /// Whether the owner should read from the peer now: not while much waits to be
    /// sent.
    pub fn takes_input(&self) -> bool {
        todo!()
    }
    /// What to do next.
    pub fn next_event(&mut self) -> Option<Event> {
        todo!()
    }
    /// How much data-out the CDB of `task` wants: collects the smaller of that and
    /// the expected length, then gives [`Event::DataOut`].
    pub fn accept(&mut self, task: TaskId, data_out_bytes: u64) {
        let _ = (task, data_out_bytes);
        todo!()
    }
    /// Answers a command. Does nothing for a task that is gone.
    pub fn complete(&mut self, task: TaskId, completion: Completion) {
        let _ = (task, completion);
        todo!()
    }
    /// Answers a task management function (RFC 7143 clause 11.6.1). Does nothing for
    /// a task that is gone.
    pub fn managed(&mut self, task: TaskId, response: u8) {
        let _ = (task, response);
        todo!()
    }
    /// Ends a task without an answer (ABORT TASK, LUN RESET).
    pub fn abort(&mut self, task: TaskId) {
        let _ = task;
        todo!()
    }
    /// Commands in progress, with the LUN field of each.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, [u8; 8])> + '_ {
        std::iter::empty()
    }
    /// Answers [`Event::SendTargets`].
    pub fn answer_targets(&mut self, targets: &[VisibleTarget]) {
        let _ = targets;
        todo!()
    }
    /// Pings an idle peer. False when the last ping is still unanswered: the owner
    /// then gives the connection up.
    pub fn nop_in(&mut self) -> bool {
        todo!()
    }
    /// Asks the peer to log out within `seconds` (the server shuts down).
    pub fn request_logout(&mut self, seconds: u16) {
        let _ = seconds;
        todo!()
    }
    /// What waits to be sent.
    pub fn output(&mut self) -> &mut Output {
        todo!()
    }
}
