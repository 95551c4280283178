//! The dispatch of PDUs: planned when the header is there (so that its data finds its place),
//! carried out when the PDU is complete, in CmdSN order.

use super::data_out::{DataOut, DataOutRoom, Fault};
use super::tasks::{Command, Work};
use super::window::CmdSnPlace;
use super::{Connection, EARLY_BYTES_MAX, Event, HELD_BYTES_MAX, IMMEDIATE_MAX, TaskId};
use crate::pdu::request::{self, Order};
use crate::pdu::{Bhs, NO_TAG, RejectReason, Request, additional};

/// Where the bytes of the current data segment go.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Sink {
    #[default]
    Discard,
    Control,
    Task(TaskId),
}

/// What to do with the PDU that is coming in, once it is whole.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Plan {
    /// Nothing, silently.
    #[default]
    Ignore,
    /// Reject it.
    Reject(RejectReason),
    /// Take it in the order of its CmdSN.
    Ordered(Order, OrderedRequest),
    /// Add its data to a command's.
    DataOut(TaskId, request::DataOut),
    /// End a command whose data-out breaks the rules.
    Fail(TaskId, Fault),
    /// Reject it and close the connection.
    GiveUp(&'static str),
}

/// A request that takes its turn.
#[derive(Clone, Copy, Debug)]
pub(super) enum OrderedRequest {
    Command(TaskId),
    /// A command with data that there is no room for.
    Full(TaskId),
    Management(request::TaskManagement),
    NopOut(request::NopOut),
    Text(request::Text),
    Logout(request::Logout),
    /// It is rejected, but its CmdSN is consumed.
    Rejected(RejectReason, Bhs),
    /// Aborted before it came or before its turn: only its CmdSN counts.
    Void,
}

/// A request that waits for a gap to close.
#[derive(Debug)]
pub(super) struct WaitingRequest {
    pub(super) cmd_sn: u32,
    pub(super) request: OrderedRequest,
    pub(super) data: Vec<u8>,
}

impl Connection {
    /// Decides by the header what becomes of a PDU with `len` bytes of data.
    pub(super) fn plan(&mut self, bhs: &Bhs, ahs: &[u8], len: usize) -> (Plan, Sink) {
        let Some(request) = Request::parse(bhs) else {
            return (
                Plan::Reject(RejectReason::CommandNotSupported),
                Sink::Discard,
            );
        };
        let plan = match request {
            Request::ScsiCommand(pdu) => return self.plan_command(&pdu, bhs, ahs, len),
            Request::DataOut(pdu) => return self.plan_data_out(&pdu, len),
            Request::NopOut(pdu) => Plan::Ordered(pdu.order, OrderedRequest::NopOut(pdu)),
            Request::Text(pdu) => Plan::Ordered(pdu.order, OrderedRequest::Text(pdu)),
            Request::Logout(pdu) => Plan::Ordered(pdu.order, OrderedRequest::Logout(pdu)),
            Request::TaskManagement(pdu) => {
                Plan::Ordered(pdu.order, OrderedRequest::Management(pdu))
            }
            Request::Snack(_) => Plan::Reject(RejectReason::SnackReject),
            Request::Login(_) => Plan::GiveUp("the login is over"),
        };
        match plan {
            Plan::Ordered(order, _) if self.is_outside(order) => (Plan::Ignore, Sink::Discard),
            Plan::Ordered(..) => (plan, Sink::Control),
            _ => (plan, Sink::Discard),
        }
    }

    /// Outside the command window, or there already.
    fn is_outside(&self, order: Order) -> bool {
        let twice = || self.held.iter().any(|held| held.cmd_sn == order.cmd_sn);
        !order.immediate && (self.window.place(order.cmd_sn) == CmdSnPlace::Outside || twice())
    }

    fn plan_command(
        &mut self,
        pdu: &request::ScsiCommand,
        bhs: &Bhs,
        ahs: &[u8],
        len: usize,
    ) -> (Plan, Sink) {
        if self.is_outside(pdu.order) {
            return (Plan::Ignore, Sink::Discard);
        }
        match self.admit_command(pdu, ahs, len) {
            Ok(id) if len > 0 && !self.hold_early(id, len) => (
                Plan::Ordered(pdu.order, OrderedRequest::Full(id)),
                Sink::Discard,
            ),
            Ok(id) if len > 0 => (
                Plan::Ordered(pdu.order, OrderedRequest::Command(id)),
                Sink::Task(id),
            ),
            Ok(id) => (
                Plan::Ordered(pdu.order, OrderedRequest::Command(id)),
                Sink::Discard,
            ),
            Err(reason) => (
                Plan::Ordered(pdu.order, OrderedRequest::Rejected(reason, *bhs)),
                Sink::Discard,
            ),
        }
    }

    /// Makes a task of a command, unless the command itself is wrong.
    fn admit_command(
        &mut self,
        pdu: &request::ScsiCommand,
        ahs: &[u8],
        len: usize,
    ) -> Result<TaskId, RejectReason> {
        if self.is_discovery() {
            return Err(RejectReason::CommandNotSupported);
        }
        let additional = additional::parse(ahs).map_err(|_| RejectReason::InvalidPduField)?;
        self.check_tag(pdu.task_tag, pdu.order)?;
        if len > 0 && !(pdu.write && self.negotiated.parameters.immediate_data) {
            return Err(RejectReason::ProtocolError);
        }
        if len > pdu.expected_bytes as usize {
            return Err(RejectReason::InvalidPduField);
        }
        let bound = if pdu.write {
            self.limits.max_transfer_bytes
        } else {
            0
        };
        let parameters = &self.negotiated.parameters;
        let data_out = DataOut::new(pdu.expected_bytes, bound, pdu.is_final, parameters);
        if !data_out.takes_immediate(len) {
            return Err(RejectReason::ProtocolError);
        }
        let command = Command {
            cdb: pdu.cdb,
            attribute: pdu.attribute,
            read: pdu.read,
            write: pdu.write,
            expected_bytes: pdu.expected_bytes,
            bidirectional_read_bytes: additional.bidirectional_read_bytes.unwrap_or(0),
            data_out,
        };
        Ok(self
            .tasks
            .add(pdu.task_tag, pdu.lun, Work::Command(command)))
    }

    /// Has a command hold `len` bytes that come unasked. Whether there is room for them.
    fn hold_early(&mut self, id: TaskId, len: usize) -> bool {
        let most = self.unasked_room.saturating_sub(self.unasked_bytes());
        let ahead = EARLY_BYTES_MAX.saturating_sub(self.early_bytes).min(most);
        let Some(task) = self.tasks.get(id) else {
            return false;
        };
        let Work::Command(command) = &mut task.work else {
            return false;
        };
        let own = task.early_bytes;
        let (most, ahead) = (most + own, ahead + own);
        let has_room = command
            .data_out
            .make_room(len, DataOutRoom { most, ahead }, &self.buffers);
        if !task.accepted {
            task.early_bytes = command.data_out.held_bytes();
            self.early_bytes = self.early_bytes - own + task.early_bytes;
        }
        has_room
    }

    /// A tag must be free, and immediate commands are few.
    fn check_tag(&mut self, tag: u32, order: Order) -> Result<(), RejectReason> {
        let most = self.window.occupied() + self.held.len() + IMMEDIATE_MAX;
        if tag == NO_TAG {
            Err(RejectReason::InvalidPduField)
        } else if self.tasks.by_tag(tag).is_some() {
            Err(RejectReason::TaskInProgress)
        } else if order.immediate && self.tasks.len() >= most {
            Err(RejectReason::ImmediateCommandReject)
        } else {
            Ok(())
        }
    }

    fn plan_data_out(&mut self, pdu: &request::DataOut, len: usize) -> (Plan, Sink) {
        // Data may still be on its way for a task that has ended.
        let Some(task) = self.tasks.by_tag(pdu.task_tag) else {
            return (Plan::Ignore, Sink::Discard);
        };
        let id = task.id;
        let Work::Command(command) = &task.work else {
            return (Plan::Reject(RejectReason::InvalidPduField), Sink::Discard);
        };
        let solicited = pdu.target_tag != NO_TAG;
        if solicited && pdu.target_tag != transfer_tag(id, command.data_out.burst()) {
            return (Plan::Reject(RejectReason::InvalidPduField), Sink::Discard);
        }
        match command.data_out.check(pdu, len) {
            Ok(()) if !self.hold_early(id, len) => (Plan::Fail(id, Fault::NoRoom), Sink::Discard),
            Ok(()) => (Plan::DataOut(id, *pdu), Sink::Task(id)),
            Err(fault) => (Plan::Fail(id, fault), Sink::Discard),
        }
    }

    /// The PDU is whole and undamaged.
    pub(super) fn carry_out(&mut self, plan: Plan, bhs: &Bhs, len: usize) {
        match plan {
            Plan::Ignore => {}
            Plan::Reject(reason) => self.reject(reason, bhs),
            Plan::GiveUp(why) => self.give_up(bhs, why),
            Plan::Fail(task, fault) => self.fail(task, fault),
            Plan::DataOut(task, pdu) => {
                if let Some(command) = self.tasks.command(task) {
                    command.data_out.take(&pdu, len);
                    self.collect(task);
                }
            }
            Plan::Ordered(order, request) => {
                if let OrderedRequest::Command(task) = request
                    && let Some(command) = self.tasks.command(task)
                {
                    command.data_out.take_immediate(len);
                }
                self.take_turn(order, request);
            }
        }
    }

    /// The data segment of a PDU does not match its digest (clause 7.8).
    pub(super) fn take_damaged(&mut self, plan: Plan, bhs: &Bhs) {
        self.reject(RejectReason::DataDigestError, bhs);
        match plan {
            Plan::DataOut(task, _) | Plan::Fail(task, _) => self.fail(task, Fault::Damaged),
            Plan::Ordered(..) => {
                // Its CmdSN stays open, and at recovery level 0 it is not sent again.
                self.close("a command's data does not match its digest".into());
            }
            Plan::Ignore | Plan::Reject(_) | Plan::GiveUp(_) => {}
        }
    }

    fn take_turn(&mut self, order: Order, request: OrderedRequest) {
        let data = self.take_control();
        if order.immediate {
            return self.deliver(request, data, order);
        }
        match self.window.place(order.cmd_sn) {
            CmdSnPlace::Outside => {}
            CmdSnPlace::Ahead => self.hold(order.cmd_sn, request, data),
            CmdSnPlace::Next => {
                self.window.advance();
                self.deliver(request, data, order);
                self.release_held();
            }
        }
    }

    /// Keeps what came behind a gap until that closes.
    fn hold(&mut self, cmd_sn: u32, request: OrderedRequest, mut data: Vec<u8>) {
        data.shrink_to_fit();
        let held: usize = self.held.iter().map(|held| held.data.len()).sum();
        if held + data.len() > HELD_BYTES_MAX {
            return self.close("too much waits for a command that has not come".into());
        }
        self.held.push(WaitingRequest {
            cmd_sn,
            request,
            data,
        });
    }

    /// Delivers what waited for the gap that has just closed.
    pub(super) fn release_held(&mut self) {
        while !self.closed {
            let due = self.window.expected();
            let Some(at) = self.held.iter().position(|held| held.cmd_sn == due) else {
                break;
            };
            let held = self.held.swap_remove(at);
            let order = Order {
                immediate: false,
                cmd_sn: due,
                exp_stat_sn: 0,
            };
            self.window.advance();
            self.deliver(held.request, held.data, order);
        }
    }

    fn deliver(&mut self, request: OrderedRequest, data: Vec<u8>, order: Order) {
        match request {
            OrderedRequest::Command(task) => self.announce(task, order),
            OrderedRequest::Full(task) => self.fail(task, Fault::NoRoom),
            OrderedRequest::Management(pdu) => self.take_management(&pdu, order),
            OrderedRequest::NopOut(pdu) => self.take_nop_out(&pdu, &data),
            OrderedRequest::Text(pdu) => self.take_text(&pdu, &data),
            OrderedRequest::Logout(pdu) => self.take_logout(&pdu),
            OrderedRequest::Rejected(reason, bhs) => self.reject(reason, &bhs),
            OrderedRequest::Void => {}
        }
        // Keep the allocation for the next one.
        self.return_control(data);
    }

    /// A task takes its place in the window, unless it is immediate.
    fn occupy(&mut self, id: TaskId, order: Order) {
        if let Some(task) = self.tasks.get(id).filter(|_| !order.immediate) {
            task.occupies = true;
            self.window.occupy();
        }
    }

    fn announce(&mut self, id: TaskId, order: Order) {
        self.occupy(id, order);
        let Some(task) = self.tasks.get(id) else {
            return;
        };
        let lun = task.lun;
        let Work::Command(command) = &task.work else {
            return;
        };
        self.events.push_back(Event::Command {
            task: id,
            lun,
            cdb: command.cdb,
            attribute: command.attribute,
            write: command.write,
            read: command.read,
            expected_bytes: command.expected_bytes,
        });
    }

    fn take_management(&mut self, pdu: &request::TaskManagement, order: Order) {
        if self.is_discovery() {
            return self.reject_encoded(RejectReason::CommandNotSupported, *pdu);
        }
        if let Err(reason) = self.check_tag(pdu.task_tag, order) {
            return self.reject_encoded(reason, *pdu);
        }
        if let Some(response) = self.manage_here(pdu) {
            return self.respond_to_management(pdu.task_tag, response);
        }
        let referenced = self.tasks.by_tag(pdu.referenced_tag).map(|task| task.id);
        let referenced = referenced.filter(|id| self.tasks.command(*id).is_some());
        let referenced = referenced.or_else(|| self.tasks.aborted(pdu.referenced_tag));
        let task = self.tasks.add(pdu.task_tag, pdu.lun, Work::Management);
        self.occupy(task, order);
        let (function, lun) = (pdu.function, pdu.lun);
        self.events.push_back(Event::TaskManagement {
            task,
            function,
            lun,
            referenced,
        });
    }

    fn reject_encoded(&mut self, reason: RejectReason, pdu: request::TaskManagement) {
        self.reject(reason, &Request::TaskManagement(pdu).encode());
    }

    /// Hands data-out over when it is complete, else asks for more of it.
    pub(super) fn collect(&mut self, id: TaskId) {
        let most = u32::from(self.negotiated.parameters.max_outstanding_r2t);
        let Some(command) = self.tasks.command(id) else {
            return;
        };
        if let Some(data) = command.data_out.complete() {
            self.events.push_back(Event::DataOut { task: id, data });
            return self.have_come(id);
        }
        if command.data_out.missing().is_none() {
            return;
        }
        let asks = self
            .tasks
            .get(id)
            .is_some_and(|task| task.solicited_bytes > 0);
        if asks || (self.waiting.is_empty() && self.may_ask(id)) {
            self.solicit(id, most);
        } else if !self.waiting.contains(&id) {
            self.waiting.push_back(id);
        }
    }

    /// All data-out of a command is there: others may ask for theirs.
    fn have_come(&mut self, id: TaskId) {
        if let Some(task) = self.tasks.get(id) {
            self.solicited_bytes -= std::mem::take(&mut task.solicited_bytes);
        }
        self.resume_waiting();
    }

    /// Sends the R2Ts that are due.
    fn solicit(&mut self, id: TaskId, most: u32) {
        while let Some(burst) = self
            .tasks
            .command(id)
            .and_then(|command| command.data_out.next_burst(most))
        {
            self.send_ready_to_transfer(id, burst);
        }
    }

    /// Lets a command ask for its data-out if that of few others is on its way. Asked
    /// for all at once, the data of all commands would be complete at about the same
    /// time, and drives and network would wait for each other in turns.
    fn may_ask(&mut self, id: TaskId) -> bool {
        let bound = self.limits.solicited_bytes as usize;
        let Some(task) = self.tasks.get(id) else {
            return false;
        };
        let Work::Command(command) = &task.work else {
            return false;
        };
        if task.solicited_bytes == 0 {
            let missing = command.data_out.missing().unwrap_or(0);
            if self.solicited_bytes > 0 && self.solicited_bytes + missing > bound {
                return false;
            }
            task.solicited_bytes = missing;
            self.solicited_bytes += missing;
        }
        true
    }

    /// Lets commands that wait for their turn ask for their data, in order.
    pub(super) fn resume_waiting(&mut self) {
        let most = u32::from(self.negotiated.parameters.max_outstanding_r2t);
        while !self.closed
            && let Some(id) = self.waiting.front().copied()
        {
            if !self.may_ask(id) {
                break;
            }
            self.solicit(id, most);
            self.waiting.pop_front();
        }
    }
}

/// The target transfer tag of a burst. Its highest bit is clear, so it is never
/// one of the other tags.
pub(super) fn transfer_tag(task: TaskId, burst: u32) -> u32 {
    let serial = (task.0 >> 16) as u32 & 0x7fff;
    serial << 16 | burst & 0xffff
}
