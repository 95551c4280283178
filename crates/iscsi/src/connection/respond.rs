//! PDUs to the peer: Data-In and status, R2T, Reject; StatSN and digests.

use super::data_out::{Burst, Fault};
use super::dispatch::transfer_tag;
use super::tasks::{Command, Task, Work};
use super::{Completion, Connection, Event, TaskId};
use crate::pdu::response::{self, Numbers, Residual};
use crate::pdu::{self, Bhs, NO_TAG, RejectReason, Response};
use base::checksum::crc32c_of;
use base::{Payload, Slice};

const GOOD: u8 = 0x00;
const CHECK_CONDITION: u8 = 0x02;
const TASK_SET_FULL: u8 = 0x28;

/// Sense key ABORTED COMMAND (SPC-4 clause 4.5.6).
const ABORTED_COMMAND: u8 = 0x0b;

/// Most bytes of sense data: what a fixed or descriptor sense can be long.
const SENSE_BYTES_MAX: usize = 252;

const ZEROES: [u8; 4096] = [0; 4096];

impl Connection {
    /// StatSN for a PDU that has a status, and the window.
    pub(super) fn numbers(&mut self) -> Numbers {
        let numbers = self.numbers_without_status();
        self.stat_sn = self.stat_sn.wrapping_add(1);
        numbers
    }

    /// The next StatSN, not consumed, and the window, of which the peer hears by it.
    pub(super) fn numbers_without_status(&mut self) -> Numbers {
        Numbers {
            stat_sn: self.stat_sn,
            exp_cmd_sn: self.window.expected(),
            max_cmd_sn: self.window.announce(),
        }
    }

    /// Sends a PDU with a data segment of our own bytes.
    pub(super) fn send(&mut self, response: Response, data: &[u8]) {
        self.send_header(response, data.len());
        self.output.push(data);
        self.send_trailer(data.len(), || crc32c_of([data, padding_of(data.len())]));
    }

    fn send_header(&mut self, response: Response, len: usize) {
        let mut bhs = response.encode();
        pdu::set_data_segment_bytes(&mut bhs, len);
        self.output.push(&bhs);
        if self.negotiated.parameters.header_digest {
            self.output.push(&crc32c_of([&bhs[..]]).to_le_bytes());
        }
    }

    fn send_trailer(&mut self, len: usize, digest: impl FnOnce() -> u32) {
        if len > 0 {
            self.output.push(padding_of(len));
            if self.negotiated.parameters.data_digest {
                self.output.push(&digest().to_le_bytes());
            }
        }
    }

    /// Sends a PDU with a data segment of shared slices, which are not copied.
    fn send_shared(&mut self, response: Response, parts: &[Slice], len: usize) {
        self.send_header(response, len);
        for part in parts {
            match part.bytes() {
                Some(_) => self.output.push_shared(part.clone()),
                None => wire_bytes(part).for_each(|run| self.output.push(run)),
            }
        }
        self.send_trailer(len, || {
            let bytes = parts.iter().flat_map(wire_bytes);
            crc32c_of(bytes.chain([padding_of(len)]))
        });
    }

    pub(super) fn respond_to_command(&mut self, task: Task, completion: Completion) {
        let Work::Command(command) = task.work else {
            unreachable!("checked by the caller")
        };
        let (expected, bidirectional) = command.residuals(&completion);
        let limit = command.read_bytes().min(completion.data.len());
        let rides = completion.status == GOOD && completion.sense.is_empty() && limit > 0;
        let rides = rides && !(command.read && command.write);
        let status = rides.then_some((completion.status, expected));
        let sent = self.send_data_in(task.tag, completion.data, limit, status);
        if rides {
            return;
        }
        let response = response::ScsiResponse {
            numbers: self.numbers(),
            response: 0,
            status: completion.status,
            residual: expected,
            bidirectional_residual: bidirectional,
            task_tag: task.tag,
            snack_tag: 0,
            exp_data_sn: sent + command.data_out.asked(),
        };
        let mut segment = Vec::new();
        if !completion.sense.is_empty() {
            let sense = &completion.sense[..completion.sense.len().min(SENSE_BYTES_MAX)];
            segment.extend_from_slice(&(sense.len() as u16).to_be_bytes());
            segment.extend_from_slice(sense);
        }
        self.send(Response::ScsiResponse(response), &segment);
    }

    /// Sends the first `limit` bytes of `data`, cut where the peer and the bursts
    /// want it, with `status` on the last PDU. Returns how many PDUs that took.
    fn send_data_in(
        &mut self,
        task_tag: u32,
        data: Payload,
        limit: usize,
        status: Option<(u8, Residual)>,
    ) -> u32 {
        let longest = self.negotiated.parameters.peer_max_recv_data_segment_bytes as usize;
        let burst = self.negotiated.parameters.max_burst_bytes as usize;
        let whole = data.len();
        let mut cuts = data.cuts();
        let (mut offset, mut data_sn) = (0, 0);
        while offset < limit {
            let left_of_burst = burst - offset % burst;
            let len = longest.min(left_of_burst).min(limit - offset);
            let last = offset + len == limit;
            let status = status.filter(|_| last);
            let numbers = match status {
                Some(_) => self.numbers(),
                None => Numbers {
                    stat_sn: 0,
                    ..self.numbers_without_status()
                },
            };
            let response = Response::DataIn(response::DataIn {
                numbers,
                is_final: last || len == left_of_burst,
                acknowledge: false,
                status,
                lun: [0; 8],
                task_tag,
                target_tag: NO_TAG,
                data_sn,
                offset: offset as u32,
            });
            if len == whole {
                self.send_shared(response, &data.parts, len);
            } else {
                self.send_shared(response, &cuts.take(len).parts, len);
            }
            offset += len;
            data_sn += 1;
        }
        data_sn
    }

    pub(super) fn send_ready_to_transfer(&mut self, id: TaskId, burst: Burst) {
        let numbers = self.numbers_without_status();
        let Some(task) = self.tasks.get(id) else {
            return;
        };
        let response = response::ReadyToTransfer {
            numbers,
            lun: task.lun,
            task_tag: task.tag,
            target_tag: transfer_tag(id, burst.number),
            r2t_sn: burst.number,
            offset: burst.offset,
            desired_bytes: burst.len_bytes,
        };
        self.send(Response::ReadyToTransfer(response), &[]);
    }

    /// Ends a command whose data-out breaks the rules (clause 11.4.7.2), or that there is no
    /// room for (SAM-5 clause 5.3.1: the initiator may send it again).
    pub(super) fn fail(&mut self, id: TaskId, fault: Fault) {
        let Some(task) = self.remove_task(id) else {
            return;
        };
        if task.shown {
            self.events.push_back(Event::Dropped { task: id });
        }
        let Work::Command(command) = &task.work else {
            return;
        };
        let wanted_bytes = u64::from(command.expected_bytes);
        let (status, sense) = match fault.sense_code() {
            Some((code, qualifier)) if self.descriptor_sense.contains(&task.lun) => (
                CHECK_CONDITION,
                vec![0x72, ABORTED_COMMAND, code, qualifier, 0, 0, 0, 0],
            ),
            Some((code, qualifier)) => {
                let mut sense = vec![0; 18];
                (sense[0], sense[2], sense[7]) = (0x70, ABORTED_COMMAND, 10);
                (sense[12], sense[13]) = (code, qualifier);
                (CHECK_CONDITION, sense)
            }
            None => (TASK_SET_FULL, Vec::new()),
        };
        let completion = Completion {
            status,
            sense,
            wanted_bytes,
            ..Completion::default()
        };
        self.respond_to_command(task, completion);
    }

    /// Rejects a PDU with a copy of its header (clause 11.17).
    pub(super) fn reject(&mut self, reason: RejectReason, bhs: &Bhs) {
        let reason = reason as u8;
        let response = response::Reject {
            numbers: self.numbers(),
            reason,
            data_sn: 0,
        };
        self.send(Response::Reject(response), bhs);
    }
}

impl Command {
    /// How much data-in the peer takes.
    fn read_bytes(&self) -> usize {
        match (self.read, self.write) {
            (true, false) => self.expected_bytes as usize,
            (true, true) => self.bidirectional_read_bytes as usize,
            (false, _) => 0,
        }
    }

    /// Residuals of the data (or data-out) and of bidirectional data-in (clauses
    /// 11.4.5.1 and 11.4.5.2).
    fn residuals(&self, completion: &Completion) -> (Residual, Residual) {
        let expected = u64::from(self.expected_bytes);
        let (wanted, given) = (completion.wanted_bytes, completion.data.len() as u64);
        let one_way = |expected: u64| {
            let short = given < expected && given < wanted;
            Residual::of(expected, if short { given } else { wanted })
        };
        match (self.read, self.write) {
            (true, true) => {
                let read = u64::from(self.bidirectional_read_bytes);
                (Residual::of(expected, wanted), Residual::of(read, given))
            }
            (true, false) => (one_way(expected), Residual::None),
            (false, _) => (Residual::of(expected, wanted), Residual::None),
        }
    }
}

fn padding_of(len: usize) -> &'static [u8] {
    &ZEROES[..pdu::padding_bytes(len)]
}

/// What a slice is on the wire: zeroes when it is length-only.
fn wire_bytes(slice: &Slice) -> impl Iterator<Item = &[u8]> {
    let zeroes = if slice.is_length_only() {
        slice.len()
    } else {
        0
    };
    let whole = std::iter::repeat_n(&ZEROES[..], zeroes / ZEROES.len());
    slice
        .bytes()
        .into_iter()
        .chain(whole)
        .chain([&ZEROES[..zeroes % ZEROES.len()]])
}
