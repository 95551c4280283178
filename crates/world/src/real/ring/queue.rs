//! What is queued, under way and done; the part of a ring that knows no tasks.

use crate::real::errno;
use base::{Buf, Slice};
use io_uring::{IoUring, squeue};
use slab::Slab;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::mem::{self, MaybeUninit};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::task::Waker;

/// The most entries that wait for company.
const COMPANY_MAX: usize = 16;

pub(super) struct Queue {
    uring: IoUring,
    pub(super) slots: Slab<Slot>,
    backlog: VecDeque<squeue::Entry>,
    /// Entries that are in the submission queue or in the kernel.
    pub(super) under_way: usize,
    under_way_max: usize,
    /// Reused by every turn.
    pub(super) woken: Vec<Waker>,
}

pub(super) struct Slot {
    pub(super) state: State,
    pub(super) held: Held,
    /// Keeps the descriptor open until the kernel is done with it.
    pub(super) _file: Arc<File>,
}

pub(super) enum State {
    Waiting(Option<Waker>),
    Done(i32),
    Abandoned,
}

/// What the kernel may use during an operation.
pub(in crate::real) enum Held {
    Read(Buf),
    Write(#[expect(dead_code, reason = "held for the kernel, not for us")] Slice),
    Status(Box<MaybeUninit<libc::statx>>),
    Nothing,
}

impl Held {
    /// The size of the file whose status was asked for; none when it is not a file.
    pub(in crate::real) fn file_bytes(self) -> Option<u64> {
        let Held::Status(status) = self else {
            panic!("only a status has a size")
        };
        // SAFETY: it was all zero when the kernel got it, which is a valid statx, and the
        // kernel only fills it in.
        let status = unsafe { status.assume_init() };
        let is_file = u32::from(status.stx_mode) & libc::S_IFMT == libc::S_IFREG;
        let known = status.stx_mask & libc::STATX_SIZE != 0;
        (is_file && known).then_some(status.stx_size)
    }

    /// The buffer of a read.
    pub(in crate::real) fn into_buf(self) -> Buf {
        match self {
            Held::Read(buf) => buf,
            Held::Write(_) | Held::Status(_) | Held::Nothing => {
                panic!("only a read gives a buffer back")
            }
        }
    }
}

impl Queue {
    pub(super) fn over(uring: IoUring) -> Queue {
        let under_way_max = uring.params().cq_entries() as usize;
        Queue {
            uring,
            slots: Slab::new(),
            backlog: VecDeque::new(),
            under_way: 0,
            under_way_max,
            woken: Vec::new(),
        }
    }

    pub(super) fn enqueue(&mut self, entry: squeue::Entry, slot: Slot) -> usize {
        let key = self.slots.insert(slot);
        let entry = entry.user_data(key as u64);
        if !self.backlog.is_empty() || !self.push(&entry) {
            self.backlog.push_back(entry);
        }
        key
    }

    /// Whether there was room for `entry`.
    pub(super) fn push(&mut self, entry: &squeue::Entry) -> bool {
        if self.under_way == self.under_way_max {
            return false;
        }
        // SAFETY: the entry's buffer and descriptor are in its slot, which stays
        // until the completion has come; they do not move with the slot.
        let pushed = unsafe { self.uring.submission().push(entry) }.is_ok();
        self.under_way += usize::from(pushed);
        pushed
    }

    /// Submits what is queued, and of the backlog what there is room for. True
    /// when the kernel took not everything, for want of resources.
    pub(super) fn submit(&mut self) -> bool {
        loop {
            while let Some(entry) = self.backlog.front().cloned()
                && self.push(&entry)
            {
                self.backlog.pop_front();
            }
            let queued = self.uring.submission().len();
            // With nothing queued this still runs completions that the kernel
            // has put off (IORING_SETUP_DEFER_TASKRUN).
            if queued == 0 && !self.has_put_off() {
                return false;
            }
            match self.uring.submit() {
                Ok(_) if self.uring.submission().is_empty() && !self.can_submit() => return false,
                Ok(_) => {}
                Err(e) if errno::is_short_of_resources(&e) => return true,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => panic!("io_uring_enter refuses valid operations: {e}"),
            }
        }
    }

    /// Submits what is queued once that is half of what the kernel works on: so an idle
    /// device begins while the tasks that were woken together still make up more for
    /// it, and a busy one costs a call for many. The driver's turn is due already, and
    /// sees to what the kernel does not take now, and to what completes at once.
    pub(super) fn submit_early(&mut self) {
        let queued = self.uring.submission().len();
        let in_kernel = self.under_way - queued;
        if queued >= (in_kernel / 2).clamp(1, COMPANY_MAX) {
            self.mute_bell();
            let _ = self.uring.submit();
        }
    }

    /// Whether something of the backlog need not wait for completions.
    pub(super) fn can_submit(&self) -> bool {
        !self.backlog.is_empty() && self.under_way < self.under_way_max
    }

    /// Takes in what has completed and gives the tasks to wake.
    pub(super) fn reap(&mut self) -> Vec<Waker> {
        let mut woken = mem::take(&mut self.woken);
        for completion in self.uring.completion() {
            self.under_way -= 1;
            let key = completion.user_data() as usize;
            let slot = &mut self.slots[key];
            match mem::replace(&mut slot.state, State::Done(completion.result())) {
                State::Waiting(waker) => woken.extend(waker),
                State::Abandoned => drop(self.slots.remove(key)),
                State::Done(_) => panic!("operation {key} completed twice"),
            }
        }
        woken
    }

    pub(super) fn has_put_off(&mut self) -> bool {
        self.uring.submission().taskrun()
    }

    pub(super) fn has_news(&mut self) -> bool {
        !self.uring.completion().is_empty() || self.has_put_off()
    }

    pub(super) fn nothing_in_kernel(&mut self) -> bool {
        self.under_way == self.uring.submission().len()
    }

    pub(super) fn mute_bell(&mut self) {
        self.uring.completion().disable_eventfd();
    }

    /// From here on what completes rings. What completed before does not: look
    /// for it afterwards.
    pub(super) fn unmute_bell(&mut self) {
        self.uring.completion().enable_eventfd();
        fence(Ordering::SeqCst);
    }

    /// Waits until the kernel has nothing of ours. False when it can't be told.
    pub(super) fn drain(&mut self) -> bool {
        self.backlog.clear();
        while self.under_way > 0 {
            match self.uring.submit_and_wait(1) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if errno::is_short_of_resources(&e) => {}
                Err(_) => return false,
            }
            self.under_way -= self.uring.completion().count();
        }
        true
    }
}
