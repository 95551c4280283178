//! The queue of bytes to send: our own bytes, and slices shared with their reader.
//!
//! Invariant: `waiting` is the sum of the runs, and the own bytes of all runs
//! stand in `own` from `own_at` on, in order.

use base::Slice;
use std::collections::VecDeque;
use std::io::IoSlice;

/// Slices of at most this many bytes are copied: a run of its own costs more.
const COPIED_BYTES_MAX: usize = 512;

/// Own bytes that are sent are given back once there are this many, and no fewer than wait.
const COMPACTED_BYTES: usize = 64 << 10;

/// Bytes to send, ready for vectored writes.
#[derive(Debug, Default)]
pub struct Output {
    runs: VecDeque<Run>,
    own: Vec<u8>,
    own_at: usize,
    waiting: usize,
}

#[derive(Debug)]
enum Run {
    /// That many of the own bytes.
    Own(usize),
    Shared(Slice),
}

impl Output {
    /// Whether no byte waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Bytes that wait to be sent, own and shared.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Own bytes that wait: memory that a peer which never reads makes us hold.
    pub(super) fn own_bytes(&self) -> usize {
        self.own.len() - self.own_at
    }

    /// Appends at most `max` runs of what waits to `iov`, from the front on.
    pub fn slices<'a>(&'a self, iov: &mut Vec<IoSlice<'a>>, max: usize) {
        let mut at = self.own_at;
        for run in self.runs.iter().take(max) {
            match run {
                Run::Own(len) => {
                    iov.push(IoSlice::new(&self.own[at..at + len]));
                    at += len;
                }
                Run::Shared(slice) => iov.push(IoSlice::new(slice.bytes().unwrap_or(&[]))),
            }
        }
    }

    /// The first `sent_bytes` have been sent.
    ///
    /// # Panics
    /// When that is more than waits.
    pub fn advance(&mut self, mut sent_bytes: usize) {
        assert!(
            sent_bytes <= self.waiting,
            "{sent_bytes} sent of {}",
            self.waiting
        );
        self.waiting -= sent_bytes;
        while sent_bytes > 0 {
            let Some(run) = self.runs.front_mut() else {
                break;
            };
            let (len, taken) = match run {
                Run::Own(len) => (*len, sent_bytes.min(*len)),
                Run::Shared(slice) => (slice.len(), sent_bytes.min(slice.len())),
            };
            sent_bytes -= taken;
            match run {
                Run::Own(len) => {
                    *len -= taken;
                    self.own_at += taken;
                }
                Run::Shared(slice) if taken < len => *slice = slice.slice(taken, len - taken),
                Run::Shared(_) => {}
            }
            if taken == len {
                self.runs.pop_front();
            }
        }
        self.compact();
    }

    fn compact(&mut self) {
        if self.own_at == self.own.len() {
            self.own.clear();
            // An answer of many headers leaves nothing behind.
            self.own.shrink_to(COMPACTED_BYTES);
            self.own_at = 0;
        } else if self.own_at >= COMPACTED_BYTES.max(self.own.len() / 2) {
            // No more is moved than was sent.
            self.own.drain(..self.own_at);
            self.own_at = 0;
        }
    }

    /// Appends a copy of `bytes`.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.own.extend_from_slice(bytes);
        self.waiting += bytes.len();
        match self.runs.back_mut() {
            Some(Run::Own(len)) => *len += bytes.len(),
            _ => self.runs.push_back(Run::Own(bytes.len())),
        }
    }

    /// Appends `slice`, which has bytes.
    pub(super) fn push_shared(&mut self, slice: Slice) {
        match slice.bytes() {
            Some(bytes) if bytes.len() <= COPIED_BYTES_MAX => self.push(bytes),
            Some(_) => {
                self.waiting += slice.len();
                self.runs.push_back(Run::Shared(slice));
            }
            None => panic!(
                "a slice of {} bytes without bytes can't be sent",
                slice.len()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::BufPool;

    fn bytes_of(output: &Output) -> Vec<u8> {
        let mut iov = Vec::new();
        output.slices(&mut iov, usize::MAX);
        iov.iter().flat_map(|run| run.to_vec()).collect()
    }

    #[test]
    fn what_is_sent_in_any_steps_is_what_was_pushed() {
        let big: Vec<u8> = (0..=255).cycle().take(3000).collect();
        let slice = BufPool::new().copy_of(&big).freeze();
        for step in 1..100 {
            let mut output = Output::default();
            let mut sent = Vec::new();
            output.push(b"head");
            output.push_shared(slice.clone());
            output.push_shared(slice.slice(5, 7));
            output.push(b"tail");
            while !output.is_empty() {
                let waiting = bytes_of(&output);
                assert_eq!(waiting.len(), output.len());
                let taken = step.min(waiting.len());
                sent.extend_from_slice(&waiting[..taken]);
                output.advance(taken);
                output.push(if sent.len() < step * 2 { b"+" } else { b"" });
            }
            let expected = [b"head", &big[..], &big[5..12], b"tail"].concat();
            assert_eq!(sent[..expected.len()], expected);
        }
    }

    #[test]
    fn large_slices_are_not_copied_and_small_ones_join_the_header() {
        let slice = BufPool::new().copy_of(&[7; 4096]).freeze();
        let mut output = Output::default();
        output.push(b"head");
        output.push_shared(slice.slice(0, 512));
        output.push_shared(slice.clone());
        let mut iov = Vec::new();
        output.slices(&mut iov, 9);
        assert_eq!(
            iov.iter().map(|run| run.len()).collect::<Vec<_>>(),
            [516, 4096]
        );
        assert_eq!(iov[1].as_ptr(), slice.bytes().unwrap().as_ptr());
        let mut first = Vec::new();
        output.slices(&mut first, 1);
        assert_eq!(first.len(), 1);
    }

    #[test]
    fn own_bytes_that_are_sent_are_given_back() {
        let mut output = Output::default();
        for _ in 0..1000 {
            output.push(&[1; 1000]);
            output.advance(output.len() - 1);
        }
        assert_eq!(output.own_bytes(), 1);
        assert!(
            output.own.len() < 2 * COMPACTED_BYTES,
            "{}",
            output.own.len()
        );
    }

    #[test]
    #[should_panic(expected = "2 sent of 1")]
    fn more_than_waits_can_not_have_been_sent() {
        let mut output = Output::default();
        output.push(b"x");
        output.advance(2);
    }
}
