//! NOP, task management, logout and asynchronous messages.

use super::dispatch::OrderedRequest;
use super::window::CmdSnPlace;
use super::{Connection, TaskId};
use crate::pdu::{NO_TAG, RejectReason, Request, Response, request, response};

/// Task management functions (RFC 7143 clause 11.5.1).
const ABORT_TASK: u8 = 1;
const TASK_REASSIGN: u8 = 8;

/// Task management responses (clause 11.6.1).
const FUNCTION_COMPLETE: u8 = 0;
const TASK_DOES_NOT_EXIST: u8 = 1;
const REASSIGNMENT_NOT_SUPPORTED: u8 = 4;
const FUNCTION_REJECTED: u8 = 255;

/// Logout reasons (clause 11.14.1) and responses (clause 11.15.1).
const CLOSE_SESSION: u8 = 0;
const CLOSE_CONNECTION: u8 = 1;
const REMOVE_FOR_RECOVERY: u8 = 2;
const LOGGED_OUT: u8 = 0;
const CID_NOT_FOUND: u8 = 1;
const RECOVERY_NOT_SUPPORTED: u8 = 2;

/// Asynchronous events (clause 11.9.1): the target asks for a logout; it is about to drop
/// a connection.
const LOGOUT_REQUESTED: u8 = 1;
const CONNECTION_DROPPED: u8 = 2;

impl Connection {
    pub(super) fn take_nop_out(&mut self, pdu: &request::NopOut, data: &[u8]) {
        if pdu.task_tag == NO_TAG {
            if self.ping == Some(pdu.target_tag) {
                self.ping = None;
            }
            return;
        }
        let longest = self.negotiated.parameters.peer_max_recv_data_segment_bytes as usize;
        let echo = &data[..data.len().min(longest)];
        let response = response::NopIn {
            numbers: self.numbers(),
            lun: [0; 8],
            task_tag: pdu.task_tag,
            target_tag: NO_TAG,
        };
        self.send(Response::NopIn(response), echo);
    }

    pub(super) fn send_ping(&mut self) -> bool {
        let target_tag = self.new_target_tag();
        self.ping = Some(target_tag);
        let response = response::NopIn {
            numbers: self.numbers_without_status(),
            lun: [0; 8],
            task_tag: NO_TAG,
            target_tag,
        };
        self.send(Response::NopIn(response), &[]);
        true
    }

    /// The response to a function that needs nothing from the owner.
    pub(super) fn manage_here(&mut self, pdu: &request::TaskManagement) -> Option<u8> {
        match pdu.function {
            ABORT_TASK => self.abort_unseen(pdu),
            TASK_REASSIGN => Some(REASSIGNMENT_NOT_SUPPORTED),
            2..=7 => None,
            _ => Some(FUNCTION_REJECTED),
        }
    }

    /// ABORT TASK for a command that the owner has not been told of: one that
    /// waits for its turn, or one that has not come yet (clause 11.6.1).
    fn abort_unseen(&mut self, pdu: &request::TaskManagement) -> Option<u8> {
        let Some(task) = self.tasks.by_tag(pdu.referenced_tag) else {
            if self.tasks.aborted(pdu.referenced_tag).is_some() {
                return None;
            }
            let before = pdu.order.cmd_sn.wrapping_sub(pdu.referenced_cmd_sn);
            let missing = self.window.place(pdu.referenced_cmd_sn) != CmdSnPlace::Outside;
            if !missing || before == 0 || before > i32::MAX as u32 {
                return Some(TASK_DOES_NOT_EXIST);
            }
            self.consume(pdu.referenced_cmd_sn);
            return Some(FUNCTION_COMPLETE);
        };
        let id = task.id;
        if !self.waits_its_turn(id) {
            return None;
        }
        self.void(id);
        self.remove_task(id);
        Some(FUNCTION_COMPLETE)
    }

    fn waits_its_turn(&self, id: TaskId) -> bool {
        self.held.iter().any(|held| is_of(held.request, id))
    }

    fn void(&mut self, id: TaskId) {
        for held in &mut self.held {
            if is_of(held.request, id) {
                held.request = OrderedRequest::Void;
            }
        }
    }

    /// Counts a CmdSN as received although its command has not come.
    fn consume(&mut self, cmd_sn: u32) {
        if !self.held.iter().any(|held| held.cmd_sn == cmd_sn) {
            let request = OrderedRequest::Void;
            self.held.push(super::dispatch::WaitingRequest {
                cmd_sn,
                request,
                data: Vec::new(),
            });
        }
        self.release_held();
    }

    pub(super) fn respond_to_management(&mut self, task_tag: u32, response: u8) {
        let numbers = self.numbers();
        let response = response::TaskManagement {
            numbers,
            response,
            task_tag,
        };
        self.send(Response::TaskManagement(response), &[]);
    }

    pub(super) fn take_logout(&mut self, pdu: &request::Logout) {
        let response = match pdu.reason {
            CLOSE_SESSION => LOGGED_OUT,
            CLOSE_CONNECTION if pdu.cid == self.negotiated.cid => LOGGED_OUT,
            CLOSE_CONNECTION => CID_NOT_FOUND,
            REMOVE_FOR_RECOVERY => RECOVERY_NOT_SUPPORTED,
            _ => {
                let bhs = Request::Logout(*pdu).encode();
                return self.reject(RejectReason::InvalidPduField, &bhs);
            }
        };
        let numbers = self.numbers();
        self.send(
            Response::Logout(response::Logout {
                numbers,
                response,
                task_tag: pdu.task_tag,
                time2wait: 0,
                time2retain: 0,
            }),
            &[],
        );
        if response == LOGGED_OUT {
            self.close("the initiator has logged out".into());
        }
    }

    pub(super) fn send_logout_request(&mut self, seconds: u16) {
        self.send_async(LOGOUT_REQUESTED, [0, 0, seconds]);
    }

    /// With the time to wait before the next login, and for which the session is kept:
    /// none of either.
    pub(super) fn send_drop_notice(&mut self) {
        let cid = self.negotiated.cid;
        self.send_async(CONNECTION_DROPPED, [cid, 0, 0]);
    }

    fn send_async(&mut self, event: u8, parameters: [u16; 3]) {
        let response = response::Async {
            numbers: self.numbers(),
            lun: [0; 8],
            event,
            vendor_code: 0,
            parameters,
        };
        self.send(Response::Async(response), &[]);
    }
}

/// Whether it is the command of this task that arrives.
fn is_of(request: OrderedRequest, id: TaskId) -> bool {
    matches!(request, OrderedRequest::Command(task) | OrderedRequest::Full(task) if task == id)
}
