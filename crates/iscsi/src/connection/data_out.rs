//! Data-out of one command: immediate, unsolicited, and solicited by R2Ts.
//!
//! Invariants:
//! - Data comes in order (we insist on DataPDUInOrder and DataSequenceInOrder), so
//!   `received` alone says what is there.
//! - Nothing is written past the buffer; bytes that nobody wants are not kept.
//! - Before the owner has said what it wants, a command holds no more than it is given room
//!   for; after that, no more than what is wanted and what may still come unasked.

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
    /// There is no room for it: no fault of the data, and the command may be sent again.
    NoRoom,
}

impl Fault {
    /// `None` for what is no error of the command.
    pub(super) fn sense_code(self) -> Option<(u8, u8)> {
        match self {
            Fault::Unexpected => Some((0x0c, 0x0c)),
            Fault::Amount => Some((0x0c, 0x0d)),
            Fault::Damaged => Some((0x47, 0x05)),
            Fault::NoRoom => None,
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

/// Room for data-out that commands hold before the owner has said what it wants, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataOutRoom {
    /// What has to be held now may take this much.
    pub(super) most: usize,
    /// A whole buffer may be taken for data that will come later, in so much.
    pub(super) ahead: usize,
}

/// What has come of a command's data-out.
#[derive(Debug, Default)]
pub(super) struct DataOut {
    /// The most that can come: expected length, within our limit.
    bound: usize,
    /// What the command wants of it, once the owner has said so.
    wanted: Option<usize>,
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

    /// Whether `len` bytes may come with the command.
    pub(super) fn takes_immediate(&self, len: usize) -> bool {
        len <= self.unsolicited_bound
    }

    /// Memory that it takes, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.buf.as_ref().map_or(0, Buf::held_bytes)
    }

    /// Has a place for `len` bytes that come next, where the command may hold so much. Whether
    /// there is one.
    pub(super) fn make_room(&mut self, len: usize, room: DataOutRoom, buffers: &BufPool) -> bool {
        let end = self.received + len;
        let has = self.buf.as_ref().map_or(0, Buf::len);
        if end <= has || self.wanted.is_some() {
            return true;
        }
        // Long ones at best, for what is copied to a longer one costs time.
        let ahead = [self.bound, self.unsolicited_bound];
        let longest = ahead.into_iter().find(|len| *len <= room.ahead);
        let doubled = (2 * has).clamp(end, self.unsolicited_bound.max(end));
        let fitting = |len: &usize| base::held_bytes(*len) <= room.most;
        let mut lengths = longest.into_iter().chain([doubled, end]);
        match lengths.find(fitting) {
            Some(len) => self.provide(len.max(end), buffers),
            None => return false,
        }
        true
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
    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        let from = self.received + at;
        if let Some(space) = self.buf.as_mut().and_then(Buf::bytes_mut) {
            space[from..from + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Room for the data segment that is coming, from `at` to its end at `len`; `None`
    /// without bytes.
    pub(super) fn room(&mut self, at: usize, len: usize) -> Option<&mut [u8]> {
        let (from, to) = (self.received + at, self.received + len);
        self.buf.as_mut()?.bytes_mut()?.get_mut(from..to)
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

    /// Has a buffer for `len` bytes, with what has come of them.
    fn provide(&mut self, len: usize, buffers: &BufPool) {
        match &mut self.buf {
            Some(buf) if buf.len() < len || buf.held_bytes() > base::held_bytes(len) => {
                let mut other = buffers.data(len);
                let kept = self.received.min(len);
                if let (Some(to), Some(from)) = (other.bytes_mut(), buf.bytes()) {
                    to[..kept].copy_from_slice(&from[..kept]);
                }
                *buf = other;
            }
            Some(_) => {}
            None => self.buf = Some(buffers.data(len)),
        }
    }

    /// Bytes that have come, while more are due that were asked for or announced.
    pub(super) fn awaited(&self) -> Option<usize> {
        (self.unsolicited || self.asked > self.done).then_some(self.received)
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
