//! A connection in full-feature phase.
//!
//! The owner (a shard, or a test) moves bytes and runs commands:
//! 1. [`Connection::receive`] takes what came from the peer.
//! 2. [`Connection::next_event`] says what to do, until `None`.
//! 3. [`Connection::accept`], [`Connection::complete`] and the others answer.
//! 4. [`Connection::output`] is what to send.
//!
//! Invariants:
//! - Commands reach the owner in CmdSN order; a task ends with exactly one answer,
//!   or none when it was aborted.
//! - Whatever the peer sends, memory is bounded by [`Limits`]: by the command
//!   window, the largest transfer, and what may wait to be sent.
//! - After [`Event::Close`] nothing is read and no answer is added.

mod control;
mod data_out;
mod dispatch;
mod input;
mod output;
mod respond;
mod tasks;
mod text_exchange;
mod window;

pub use output::Output;

use crate::login::{Limits, Negotiated, VisibleTarget};
use crate::pdu::Lun;
use base::{BufPool, Payload, Slice};
use dispatch::WaitingRequest;
use input::Input;
use std::collections::{BTreeSet, VecDeque};
use tasks::{Tasks, Work};
use text_exchange::TextExchange;
use window::Window;

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
    /// SCSI status byte, such as 0x00 (GOOD).
    pub status: u8,
    /// Sense data in fixed or descriptor format; empty for none.
    pub sense: Vec<u8>,
    /// Whether sense data of this LUN comes as descriptors: that of commands which the
    /// connection ends by itself does so, too, from now on.
    pub descriptor_sense: bool,
    /// Data-in for the initiator; empty for none.
    pub data: Payload,
    /// Bytes that the CDB itself asks to transfer, in or out, for exact residuals.
    /// (Data-in that is shorter than both this and the expected length is a short
    /// answer, like an INQUIRY's with a generous allocation length: then its own
    /// length counts.)
    pub wanted_bytes: u64,
}

/// More than this waiting to be sent, and no more is to be read from the peer.
const PAUSE_BYTES: usize = 8 << 20;

/// More than this of our own bytes waiting, and the peer has stopped reading.
const UNREAD_BYTES_MAX: usize = 16 << 20;

/// Immediate commands in progress, beyond the command window.
const IMMEDIATE_MAX: usize = 16;

/// Data-out that commands make room for before the owner has said what it wants, of all
/// commands together. Beyond that each has room for what may come unasked only.
const EARLY_BYTES_MAX: usize = 16 << 20;

/// Data of requests that wait for one before them (pings, text). With one connection a session,
/// only an initiator that breaks the rules leaves gaps.
const HELD_BYTES_MAX: usize = 256 << 10;

/// Data-out of a command that comes more slowly than this, between two looks, does not come.
pub const PROGRESS_BYTES: usize = 64 << 10;

/// The deepest command window: task slots and target transfer tags have room for
/// this many.
pub const QUEUE_DEPTH_MAX: u32 = 8192;

/// One connection in full-feature phase.
pub struct Connection {
    negotiated: Negotiated,
    buffers: BufPool,
    limits: Limits,
    input: Input,
    window: Window,
    /// Commands that came after a gap.
    held: Vec<WaitingRequest>,
    /// The CmdSN that they wait for, and for how many looks.
    gap: Option<(u32, u32)>,
    tasks: Tasks,
    /// Sums over the tasks, and the tasks that wait until it is their turn to ask.
    early_bytes: usize,
    /// How much of what comes unasked may be held.
    unasked_room: usize,
    solicited_bytes: usize,
    waiting: VecDeque<TaskId>,
    events: VecDeque<Event>,
    output: Output,
    text: TextExchange,
    stat_sn: u32,
    /// Target transfer tag of the last ping or text exchange.
    last_target_tag: u32,
    /// Target transfer tag of the ping that is not answered.
    ping: Option<u32>,
    /// LUNs whose sense data comes as descriptors, as the last answers said.
    descriptor_sense: BTreeSet<Lun>,
    closed: bool,
}

impl Connection {
    /// The connection that a login has agreed on. Bytes that the login left over go
    /// to [`Connection::receive`] first.
    ///
    /// # Panics
    /// When [`Limits::queue_depth`] is zero or above [`QUEUE_DEPTH_MAX`].
    pub fn new(negotiated: Negotiated, buffers: BufPool, limits: Limits) -> Self {
        let depth = limits.queue_depth;
        assert!(
            (1..=QUEUE_DEPTH_MAX).contains(&depth),
            "a command window of {depth}"
        );
        let window = Window::new(negotiated.cmd_sn, depth);
        let stat_sn = negotiated.stat_sn;
        Connection {
            negotiated,
            buffers,
            limits,
            input: Input::default(),
            window,
            held: Vec::new(),
            gap: None,
            tasks: Tasks::default(),
            early_bytes: 0,
            unasked_room: usize::MAX,
            solicited_bytes: 0,
            waiting: VecDeque::new(),
            events: VecDeque::new(),
            output: Output::default(),
            text: TextExchange::default(),
            stat_sn,
            last_target_tag: 0,
            ping: None,
            descriptor_sense: BTreeSet::new(),
            closed: false,
        }
    }

    /// What the login agreed on.
    pub fn negotiated(&self) -> &Negotiated {
        &self.negotiated
    }

    /// Whether this is a discovery session (text, NOP and logout only).
    pub fn is_discovery(&self) -> bool {
        self.negotiated.target.is_none()
    }

    /// Takes bytes from the peer, cut anywhere. Data-out is copied once, into
    /// aligned buffers; [`Connection::space`] saves that.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.take_bytes(bytes);
    }

    /// Where the next bytes from the peer belong, while those of a long data segment of
    /// a command are due: an owner that reads them right there saves a copy, and says so
    /// by [`Connection::received`]. Empty for [`Connection::receive`] to take them.
    pub fn space(&mut self) -> &mut [u8] {
        self.place().unwrap_or_default()
    }

    /// `len` bytes have been read into the front of [`Connection::space`].
    ///
    /// # Panics
    /// When that is more than there was.
    pub fn received(&mut self, len: usize) {
        if len > 0 {
            self.take_placed(len);
        }
    }

    /// Whether long data segments are coming: an owner that then reads little more than
    /// a header at a time finds [`Connection::space`] for the rest.
    pub fn expects_long_data(&self) -> bool {
        self.is_long()
    }

    /// The number of the PDU of which a part has come, and not all: an owner that finds
    /// the same one again later has a peer that is too slow.
    pub fn unfinished(&self) -> Option<u64> {
        self.input.unfinished()
    }

    /// Whether the owner should read from the peer now: not while much waits to be
    /// sent.
    pub fn takes_input(&self) -> bool {
        !self.closed && self.output.len() < PAUSE_BYTES
    }

    /// Bytes held of what came unasked: data of commands that the owner has not accepted, and
    /// requests that wait for one before them.
    pub fn unasked_bytes(&self) -> usize {
        let held = self.held.iter().map(|held| held.data.len()).sum::<usize>();
        self.early_bytes + held
    }

    /// From now on, no more than `bytes` of what comes unasked are held. A command whose data
    /// does not fit is answered TASK SET FULL; an owner that does not want that stops reading
    /// while there is less room than one read can bring.
    pub fn set_unasked_room(&mut self, bytes: usize) {
        self.unasked_room = bytes;
    }

    /// The command window: [`Limits::queue_depth`].
    pub fn depth(&self) -> u32 {
        self.limits.queue_depth
    }

    /// Has no more than `commands` in progress from now on, at least one, at most
    /// [`Limits::queue_depth`]. What the peer has been promised already it may use up: MaxCmdSN
    /// never goes back (RFC 7143 clause 4.2.2.1).
    pub fn set_window(&mut self, commands: u32) {
        self.window.narrow(commands);
    }

    /// Looks at the data-out that has been asked for or announced: for how many looks in a row
    /// a command has got less than [`PROGRESS_BYTES`] of it, the worst of them, with the tag of
    /// its task. The owner looks at equal intervals.
    pub fn look_for_data(&mut self) -> Option<(u32, u32)> {
        let mut worst = None;
        for task in self.tasks.all() {
            let Work::Command(command) = &task.work else {
                continue;
            };
            let Some(received) = command.data_out.awaited() else {
                task.looked = (0, 0);
                continue;
            };
            let (before, looks) = task.looked;
            task.looked = match looks {
                0 => (received, 1),
                _ if received >= before + PROGRESS_BYTES => (received, 1),
                _ => (before, looks + 1),
            };
            let passed = task.looked.1 - 1;
            if worst.is_none_or(|(_, most)| passed > most) {
                worst = Some((task.tag, passed));
            }
        }
        worst
    }

    /// Looks at requests that wait for one before them: for how many looks in a row the same one
    /// has not come, with its CmdSN. An initiator sends in the order of CmdSN on a connection
    /// (RFC 7143 clause 4.2.2.1), and a session has one, so it does not come any more. The owner
    /// looks at equal intervals.
    pub fn look_for_gap(&mut self) -> Option<(u32, u32)> {
        let due = self.window.expected();
        self.gap = match self.gap {
            _ if self.held.is_empty() => None,
            Some((before, looks)) if before == due => Some((due, looks + 1)),
            _ => Some((due, 0)),
        };
        self.gap
    }

    /// What to do next.
    pub fn next_event(&mut self) -> Option<Event> {
        while let Some(event) = self.events.pop_front() {
            // What was queued for a task that is gone by now is void.
            match &event {
                Event::Command { task, .. } | Event::TaskManagement { task, .. } => {
                    let Some(task) = self.tasks.get(*task) else {
                        continue;
                    };
                    task.shown = true;
                }
                Event::DataOut { task, .. } if self.tasks.get(*task).is_none() => continue,
                _ => {}
            }
            return Some(event);
        }
        None
    }

    /// How much data-out the CDB of `task` wants: collects the smaller of that, the
    /// expected length and [`Limits::max_transfer_bytes`], then gives
    /// [`Event::DataOut`]. Does nothing for a task that is gone.
    pub fn accept(&mut self, task: TaskId, data_out_bytes: u64) {
        if self.closed {
            return;
        }
        let Some(command) = self.tasks.command(task) else {
            return;
        };
        command.data_out.want(data_out_bytes, &self.buffers);
        if let Some(task) = self.tasks.get(task) {
            self.early_bytes -= std::mem::take(&mut task.early_bytes);
            task.accepted = true;
        }
        self.collect(task);
    }

    /// Answers a command. Does nothing for a task that is gone.
    pub fn complete(&mut self, task: TaskId, completion: Completion) {
        if self.closed || self.tasks.command(task).is_none() {
            return;
        }
        if let Some(task) = self.remove_task(task) {
            match completion.descriptor_sense {
                true => _ = self.descriptor_sense.insert(task.lun),
                false if self.descriptor_sense.is_empty() => {}
                false => _ = self.descriptor_sense.remove(&task.lun),
            }
            self.respond_to_command(task, completion);
        }
    }

    /// Answers a task management function with a response code of RFC 7143 clause
    /// 11.6.1. Does nothing for a task that is gone.
    pub fn managed(&mut self, task: TaskId, response: u8) {
        let managed = self.tasks.get(task);
        if self.closed || !managed.is_some_and(|t| matches!(t.work, Work::Management)) {
            return;
        }
        if let Some(task) = self.remove_task(task) {
            self.respond_to_management(task.tag, response);
        }
    }

    /// Ends a task without an answer (ABORT TASK, LUN RESET). Does nothing for a
    /// task that is gone.
    pub fn abort(&mut self, task: TaskId) {
        self.remove_task(task);
    }

    /// As [`Connection::abort`], for a task whose command still runs. ABORT TASK finds it until
    /// [`Connection::aborted_ended`]: whoever is told that there is no such task must not see it
    /// write later.
    pub fn abort_running(&mut self, task: TaskId) {
        if let Some(removed) = self.remove_task(task) {
            self.tasks.keep_aborted(removed.tag, task);
        }
    }

    /// The command of a task has ended that was aborted by [`Connection::abort_running`].
    pub fn aborted_ended(&mut self, task: TaskId) {
        self.tasks.forget_aborted(task);
    }

    /// Commands in progress that the owner knows of, with the LUN field of each.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, Lun)> + '_ {
        self.tasks.shown()
    }

    /// Answers [`Event::SendTargets`]. Rows that were not asked for are left out.
    /// Does nothing when no such event is open.
    pub fn answer_targets(&mut self, targets: &[VisibleTarget]) {
        if !self.closed {
            self.send_targets(targets);
        }
    }

    /// Pings an idle peer. False when the last ping is still unanswered: the owner
    /// then gives the connection up.
    pub fn nop_in(&mut self) -> bool {
        self.ping.is_none() && !self.closed && self.send_ping()
    }

    /// Asks the peer to log out within `seconds` (RFC 7143 clause 11.9.1, event 1).
    pub fn request_logout(&mut self, seconds: u16) {
        if !self.closed {
            self.send_logout_request(seconds);
        }
    }

    /// Says that the connection is about to be dropped, because the peer has not logged
    /// out when it was asked to (clause 11.9.1, event 2): it may log in again at once.
    pub fn announce_drop(&mut self) {
        if !self.closed {
            self.send_drop_notice();
        }
    }

    /// What waits to be sent.
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    fn remove_task(&mut self, id: TaskId) -> Option<tasks::Task> {
        let task = self.tasks.remove(id)?;
        if task.occupies {
            self.window.vacate();
        }
        self.solicited_bytes -= task.solicited_bytes;
        self.early_bytes -= task.early_bytes;
        if !self.waiting.is_empty() {
            self.waiting.retain(|waiting| *waiting != id);
            self.resume_waiting();
        }
        Some(task)
    }

    fn close(&mut self, reason: String) {
        if !self.closed {
            self.closed = true;
            self.events.push_back(Event::Close { reason });
        }
    }

    /// A target transfer tag that is not in use and not reserved.
    fn new_target_tag(&mut self) -> u32 {
        // Tags of R2Ts have the highest bit clear.
        self.last_target_tag = (self.last_target_tag.wrapping_add(1) & 0x0fff_ffff) | 0x8000_0000;
        self.last_target_tag
    }
}
