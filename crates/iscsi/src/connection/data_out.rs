//! Data-out of one command: immediate, unsolicited, and what R2Ts ask for.
//!
//! Invariants:
//! - Data comes in order (we insist on DataPDUInOrder and DataSequenceInOrder), so
//!   `received` alone says what is there.
//! - Nothing is written past the buffer; bytes that nobody wants are not kept.

use crate::login::Parameters;
use crate::pdu::NO_TAG;
use crate::pdu::request;
use base::{Buf, BufPool, Slice};

/// Data-out that breaks the rules (RFC 7143 clause 11.4.7.2): the additional
/// sense code and qualifier that the command ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Unsolicited data where none is allowed.
    Unexpected,
    /// More or less than the sequence is long.
    Amount,
    /// Data is missing or damaged.
    Damaged,
}

impl Fault {
    pub(super) fn sense_code(self) -> (u8, u8) {
        match self {
            Fault::Unexpected => (0x0c, 0x0c),
            Fault::Amount => (0x0c, 0x0d),
            Fault::Damaged => (0x47, 0x05),
        }
    }
}

/// A burst to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Burst {
    pub(super) number: u32,
    pub(super) offset: u32,
    pub(super) len_bytes: u32,
}

/// What has come of a command's data-out.
#[derive(Debug, Default)]
pub(super) struct DataOut {
    /// The most that can come: expected length, within our limit.
    bound: usize,
    /// What the command wants of it, once the owner has said so.
    wanted: Option<usize>,
    /// How long the buffer is before that is known.
    early: usize,
    buf: Option<Buf>,
    received: usize,
    /// More unsolicited data is announced.
    unsolicited: bool,
    unsolicited_bound: usize,
    /// DataSN that is due in the current sequence.
    data_sn: u32,
    /// Where the first burst starts, once one has been asked for.
    solicited_from: usize,
    /// Bursts asked for, and bursts that have come whole.
    asked: u32,
    done: u32,
    max_burst: usize,
    /// The data has been handed over.
    delivered: bool,
}

impl DataOut {
    pub(super) fn new(
        expected_bytes: u32,
        bound_bytes: u32,
        is_final: bool,
        parameters: &Parameters,
    ) -> DataOut {
        let bound = expected_bytes.min(bound_bytes);
        DataOut {
            bound: bound as usize,
            early: bound as usize,
            unsolicited: !is_final && !parameters.initial_r2t,
            unsolicited_bound: bound.min(parameters.first_burst_bytes) as usize,
            max_burst: parameters.max_burst_bytes as usize,
            ..DataOut::default()
        }
    }

    /// R2Ts sent.
    pub(super) fn asked(&self) -> u32 {
        self.asked
    }

    /// Takes note of `len` bytes of immediate data to come, where commands may hold
    /// `room` bytes before the owner knows of them. Says how many it holds; `None` when
    /// there is too much data.
    pub(super) fn expect_early(
        &mut self,
        len: usize,
        room: usize,
        buffers: &BufPool,
    ) -> Option<usize> {
        if len > self.unsolicited_bound {
            return None;
        }
        if self.bound > room {
            // What comes unasked always has a place. The rest is asked for later.
            self.early = self.unsolicited_bound;
        }
        if len > 0 {
            self.buf = Some(buffers.data(self.early));
        }
        let comes = len > 0 || self.unsolicited;
        Some(if comes { self.early } else { 0 })
    }

    /// Checks a Data-Out PDU with `len` bytes of data, before its data is taken.
    pub(super) fn check(&self, pdu: &request::DataOut, len: usize) -> Result<(), Fault> {
        let end = if pdu.target_tag == NO_TAG {
            if !self.unsolicited {
                return Err(Fault::Unexpected);
            }
            self.unsolicited_bound
        } else {
            if self.done == self.asked {
                return Err(Fault::Amount);
            }
            self.burst_end()
        };
        if pdu.data_sn != self.data_sn || pdu.offset as usize != self.received {
            return Err(Fault::Damaged);
        }
        if self.received + len > end {
            return Err(Fault::Amount);
        }
        let solicited = pdu.target_tag != NO_TAG;
        if solicited && pdu.is_final != (self.received + len == end) {
            return Err(Fault::Amount);
        }
        Ok(())
    }

    /// The number of the burst that is coming.
    pub(super) fn burst(&self) -> u32 {
        self.done
    }

    fn burst_end(&self) -> usize {
        let ends = self.solicited_from + (self.done as usize + 1) * self.max_burst;
        ends.min(self.wanted.unwrap_or(0))
    }

    /// Copies bytes of the data segment that is coming, `at` bytes into it.
    pub(super) fn put(&mut self, at: usize, bytes: &[u8], buffers: &BufPool) {
        let early = self.early;
        let buf = self.buf.get_or_insert_with(|| buffers.data(early));
        let from = self.received + at;
        if let Some(space) = buf.bytes_mut() {
            space[from..from + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Room for the data segment that is coming, from `at` to its end at `len`; `None`
    /// without bytes.
    pub(super) fn room(&mut self, at: usize, len: usize, buffers: &BufPool) -> Option<&mut [u8]> {
        let early = self.early;
        let buf = self.buf.get_or_insert_with(|| buffers.data(early));
        let (from, to) = (self.received + at, self.received + len);
        buf.bytes_mut()?.get_mut(from..to)
    }

    /// The last `len` bytes that were put, for the digest.
    pub(super) fn segment(&self, len: usize) -> &[u8] {
        let bytes = self.buf.as_ref().and_then(Buf::bytes);
        bytes
            .and_then(|bytes| bytes.get(self.received..self.received + len))
            .unwrap_or(&[])
    }

    /// Immediate data of `len` bytes is complete.
    pub(super) fn take_immediate(&mut self, len: usize) {
        self.received += len;
    }

    /// A Data-Out PDU that was checked is complete.
    pub(super) fn take(&mut self, pdu: &request::DataOut, len: usize) {
        self.received += len;
        self.data_sn = self.data_sn.wrapping_add(1);
        if pdu.is_final {
            self.data_sn = 0;
            if pdu.target_tag == NO_TAG {
                self.unsolicited = false;
            } else {
                self.done += 1;
            }
        }
    }

    /// The owner wants that much. Only the first answer counts.
    pub(super) fn want(&mut self, wanted_bytes: u64, buffers: &BufPool) {
        if self.wanted.is_none() {
            let wanted = usize::try_from(wanted_bytes)
                .unwrap_or(usize::MAX)
                .min(self.bound);
            self.wanted = Some(wanted);
            // Unsolicited data may still come, wanted or not.
            let unasked = if self.unsolicited {
                self.unsolicited_bound
            } else {
                0
            };
            self.provide(wanted.max(unasked), buffers);
        }
    }

    /// Has a buffer of `len` bytes at least, with what has come.
    fn provide(&mut self, len: usize, buffers: &BufPool) {
        match &mut self.buf {
            Some(buf) if buf.len() < len => {
                let mut longer = buffers.data(len);
                if let (Some(to), Some(from)) = (longer.bytes_mut(), buf.bytes()) {
                    to[..from.len()].copy_from_slice(from);
                }
                *buf = longer;
            }
            Some(_) => {}
            None => self.buf = Some(buffers.data(len)),
        }
    }

    /// Bytes that R2Ts have to ask for, once that is known and it is their turn.
    pub(super) fn missing(&self) -> Option<usize> {
        let wanted = self.wanted.filter(|_| !self.unsolicited)?;
        Some(wanted.saturating_sub(self.received))
    }

    /// The next burst to ask for, if one is due.
    pub(super) fn next_burst(&mut self, max_outstanding: u32) -> Option<Burst> {
        let wanted = self.wanted?;
        if self.unsolicited || self.asked - self.done >= max_outstanding {
            return None;
        }
        if self.asked == 0 {
            self.solicited_from = self.received;
        }
        let offset = self.solicited_from + self.asked as usize * self.max_burst;
        let len = wanted
            .checked_sub(offset)
            .filter(|len| *len > 0)?
            .min(self.max_burst);
        self.asked += 1;
        Some(Burst {
            number: self.asked - 1,
            offset: offset as u32,
            len_bytes: len as u32,
        })
    }

    /// The data, once, when all that is wanted has come.
    pub(super) fn complete(&mut self) -> Option<Slice> {
        let wanted = self.wanted?;
        if self.delivered || self.unsolicited || self.received < wanted {
            return None;
        }
        self.delivered = true;
        Some(self.buf.take()?.freeze().slice(0, wanted))
    }
}
