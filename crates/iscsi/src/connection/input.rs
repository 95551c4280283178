//! The parser from a byte stream to PDUs: headers, data segments, padding, digests (RFC 7143 clause
//! 11.2).
//!
//! Invariant: at most one header and one data segment outside of task buffers are
//! held, both of bounded length; a longer one closes the connection before any of
//! it is stored.

use super::dispatch::{Plan, Sink};
use super::{Connection, UNREAD_BYTES_MAX};
use crate::pdu::{self, BHS_BYTES, Bhs, DIGEST_BYTES, RejectReason};
use base::checksum::crc32c_of;

/// Additional headers longer than this hold nothing that we know.
const AHS_BYTES_MAX: usize = 280;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Header,
    Data,
    Trailer,
}

/// The PDU that is coming in.
#[derive(Debug, Default)]
pub(super) struct Input {
    phase: Phase,
    header: Vec<u8>,
    bhs: Option<Bhs>,
    plan: Plan,
    sink: Sink,
    len: usize,
    at: usize,
    control: Vec<u8>,
    /// Padding, then the digest.
    trailer: [u8; 3 + DIGEST_BYTES],
    trailer_at: usize,
    /// The last data segment of a task was long.
    long: bool,
    /// PDUs that have come whole.
    whole: u64,
}

impl Input {
    /// The number of the PDU that has begun.
    pub(super) fn unfinished(&self) -> Option<u64> {
        let begun = self.phase != Phase::Header || !self.header.is_empty();
        begun.then_some(self.whole)
    }
}

/// A data segment of this many bytes is worth a read of its own.
const LONG_BYTES: usize = 64 << 10;

/// Splits `bytes` after at most `wanted`.
fn split(bytes: &[u8], wanted: usize) -> (&[u8], &[u8]) {
    bytes.split_at(wanted.min(bytes.len()))
}

impl Connection {
    pub(super) fn take_bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.closed {
            bytes = match self.input.phase {
                Phase::Header => self.gather_header(bytes),
                Phase::Data => self.gather_data(bytes),
                Phase::Trailer => self.gather_trailer(bytes),
            };
        }
    }

    fn gather_header<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let input = &mut self.input;
        let wanted = match input.bhs {
            None => BHS_BYTES - input.header.len(),
            Some(bhs) => self.negotiated.parameters.header_bytes(&bhs) - input.header.len(),
        };
        let (taken, rest) = split(bytes, wanted);
        input.header.extend_from_slice(taken);
        if taken.len() < wanted {
            return rest;
        }
        match (input.bhs, input.header.first_chunk::<BHS_BYTES>()) {
            (None, Some(bhs)) => {
                let bhs = *bhs;
                input.bhs = Some(bhs);
                if pdu::ahs_bytes(&bhs) > AHS_BYTES_MAX {
                    self.give_up(&bhs, "its additional headers are too long");
                } else if self.negotiated.parameters.header_bytes(&bhs) == BHS_BYTES {
                    self.begin(&bhs);
                }
            }
            (Some(bhs), _) => self.begin(&bhs),
            (None, None) => unreachable!("48 bytes were gathered"),
        }
        rest
    }

    /// The header is complete.
    fn begin(&mut self, bhs: &Bhs) {
        if self.negotiated.parameters.header_digest && !self.header_digest_matches() {
            // Nothing in the header can be trusted, not even its length.
            return self.close("a header does not match its digest".into());
        }
        let len = pdu::data_segment_bytes(bhs);
        if len > self.limits.max_recv_data_segment_bytes as usize {
            return self.give_up(bhs, "its data segment is longer than we said we take");
        }
        let header = std::mem::take(&mut self.input.header);
        let end = BHS_BYTES + pdu::ahs_bytes(bhs);
        let (plan, sink) = self.plan(bhs, header.get(BHS_BYTES..end).unwrap_or(&[]), len);
        let input = &mut self.input;
        input.header = header;
        input.header.clear();
        (input.plan, input.sink) = (plan, sink);
        (input.len, input.at, input.trailer_at) = (len, 0, 0);
        input.control.clear();
        if let Sink::Task(_) = sink {
            input.long = len >= LONG_BYTES;
        }
        if len > 0 {
            input.phase = Phase::Data
        } else {
            self.finish()
        }
    }

    fn header_digest_matches(&self) -> bool {
        let header = &self.input.header;
        match header.split_last_chunk::<DIGEST_BYTES>() {
            Some((covered, digest)) => crc32c_of([covered]).to_le_bytes() == *digest,
            None => false,
        }
    }

    fn gather_data<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let input = &mut self.input;
        let (taken, rest) = split(bytes, input.len - input.at);
        match input.sink {
            Sink::Discard => {}
            Sink::Control => input.control.extend_from_slice(taken),
            Sink::Task(task) => {
                // The owner may have ended the task in the meantime.
                if let Some(command) = self.tasks.command(task) {
                    command.data_out.put(input.at, taken);
                } else {
                    input.sink = Sink::Discard;
                }
            }
        }
        input.at += taken.len();
        if input.at == input.len {
            input.phase = Phase::Trailer;
            if self.trailer_bytes() == 0 {
                self.finish();
            }
        }
        rest
    }

    /// Where the rest of the current data segment belongs, when a task has room for it.
    pub(super) fn place(&mut self) -> Option<&mut [u8]> {
        let input = &self.input;
        let (Phase::Data, Sink::Task(task)) = (input.phase, input.sink) else {
            return None;
        };
        if self.closed || !input.long {
            return None;
        }
        let command = self.tasks.command(task)?;
        command.data_out.room(input.at, input.len)
    }

    /// The next `len` bytes have been put where [`Connection::place`] said.
    pub(super) fn take_placed(&mut self, len: usize) {
        let input = &mut self.input;
        input.at += len;
        assert!(input.at <= input.len, "more than there was room for");
        if input.at == input.len {
            input.phase = Phase::Trailer;
            if self.trailer_bytes() == 0 {
                self.finish();
            }
        }
    }

    pub(super) fn is_long(&self) -> bool {
        self.input.long
    }

    fn trailer_bytes(&self) -> usize {
        let digest = if self.negotiated.parameters.data_digest {
            DIGEST_BYTES
        } else {
            0
        };
        pdu::padding_bytes(self.input.len) + digest
    }

    fn gather_trailer<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let wanted = self.trailer_bytes();
        let input = &mut self.input;
        let (taken, rest) = split(bytes, wanted - input.trailer_at);
        let end = input.trailer_at + taken.len();
        input.trailer[input.trailer_at..end].copy_from_slice(taken);
        input.trailer_at = end;
        if end == wanted {
            self.finish();
        }
        rest
    }

    /// The PDU is complete.
    fn finish(&mut self) {
        let damaged = self.input.len > 0
            && self.negotiated.parameters.data_digest
            && !self.data_digest_matches();
        let plan = std::mem::take(&mut self.input.plan);
        self.input.phase = Phase::Header;
        self.input.whole += 1;
        let Some(bhs) = self.input.bhs.take() else {
            unreachable!("a PDU has a header")
        };
        let len = self.input.len;
        if damaged {
            self.take_damaged(plan, &bhs);
        } else {
            self.carry_out(plan, &bhs, len);
        }
        if self.output.own_bytes() > UNREAD_BYTES_MAX {
            self.close("the peer sends but does not read".into());
        }
    }

    fn data_digest_matches(&mut self) -> bool {
        let pad = pdu::padding_bytes(self.input.len);
        let input = &mut self.input;
        let segment = match input.sink {
            Sink::Discard => return true,
            Sink::Control => &input.control[..],
            Sink::Task(task) => match self.tasks.command(task) {
                Some(command) => command.data_out.segment(input.len),
                None => return true,
            },
        };
        let (padding, digest) = input.trailer[..pad + DIGEST_BYTES].split_at(pad);
        // A length-only buffer has no bytes to check.
        segment.is_empty() || crc32c_of([segment, padding]).to_le_bytes()[..] == *digest
    }

    /// The data segment that came with the current PDU.
    pub(super) fn take_control(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input.control)
    }

    /// Gives the allocation of [`Connection::take_control`] back.
    pub(super) fn return_control(&mut self, data: Vec<u8>) {
        if self.input.control.capacity() < data.capacity() {
            self.input.control = data;
        }
    }

    /// A PDU after which the stream can't be followed any further.
    pub(super) fn give_up(&mut self, bhs: &Bhs, why: &str) {
        self.reject(RejectReason::ProtocolError, bhs);
        self.close(format!(
            "a PDU with opcode {:#04x}: {why}",
            pdu::opcode(bhs)
        ));
    }
}

impl crate::login::Parameters {
    /// Length of a whole header: basic, additional, digest.
    fn header_bytes(&self, bhs: &Bhs) -> usize {
        let digest = if self.header_digest { DIGEST_BYTES } else { 0 };
        BHS_BYTES + pdu::ahs_bytes(bhs) + digest
    }
}
