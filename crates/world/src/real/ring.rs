//! A shard's io_uring: batches operations and keeps their buffers safe.
//!
//! An operation queues an entry; a driver task submits all queued entries at
//! once after the tasks that were ready have run, and works off what has
//! completed. It sleeps on an eventfd, which is muted while a turn is at work:
//! what completes at once, as on tmpfs, rings no bell.
//!
//! Invariants:
//! - An operation's buffer and file live in its slot until its completion has
//!   come, whether or not its future still lives.
//! - The kernel has at most as many operations as its completion queue has room
//!   for, so completions never overflow. The rest wait in the backlog, in order.
//! - A ring is dropped only when the kernel has nothing of ours left.
//! - Wakers run when nothing here is borrowed.

use super::errno;
use super::setup::{self, StartError};
use base::{Buf, Slice};
use io_uring::{IoUring, opcode, squeue, types};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::File;
use std::future::{Future, poll_fn};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::atomic::{Ordering, fence};
use std::task::{Context, Poll, Waker};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The most bytes of one entry; the kernel cuts larger ones.
const TRANSFER_BYTES_MAX: usize = 1 << 30;

/// A handle to the shard's ring.
#[derive(Clone)]
pub(super) struct Ring {
    shared: Rc<Shared>,
}

struct Shared {
    queue: RefCell<Queue>,
    bell: AsyncFd<OwnedFd>,
    driver: RefCell<Option<Waker>>,
    /// Whether the driver has been woken and has not run yet.
    turn_due: Cell<bool>,
}

struct Queue {
    uring: IoUring,
    slots: Slab<Slot>,
    backlog: VecDeque<squeue::Entry>,
    /// Entries that are in the submission queue or in the kernel.
    under_way: usize,
    under_way_max: usize,
    /// Reused by every turn.
    woken: Vec<Waker>,
}

struct Slot {
    state: State,
    held: Held,
    /// Keeps the descriptor open until the kernel is done with it.
    _file: Rc<File>,
}

enum State {
    Waiting(Option<Waker>),
    Done(i32),
    Abandoned,
}

/// What the kernel may use during an operation.
pub(super) enum Held {
    Read(Buf),
    Write(#[expect(dead_code, reason = "held for the kernel, not for us")] Slice),
    Nothing,
}

/// When a write is on stable media.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// After the next sync that begins after it.
    AtNextSync,
    /// When it ends.
    AtOnce,
}

/// Where a transfer goes on.
#[derive(Clone, Copy)]
pub(super) struct Transfer {
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes of the buffer that are done already.
    pub done: usize,
    /// Have a kernel worker do it, which may block, and not the submitting call.
    pub in_worker: bool,
}

impl Ring {
    /// A ring with its driver task on the caller's local executor.
    ///
    /// # Errors
    /// When the kernel gives no ring, eventfd or event loop.
    pub(super) fn start() -> Result<Ring, StartError> {
        let uring = setup::ring()?;
        let bell = eventfd().map_err(|e| StartError::event_loop(&e))?;
        uring
            .submitter()
            .register_eventfd(bell.as_raw_fd())
            .map_err(|e| StartError::ring(&e))?;
        // SAFETY: the AsyncFd owns the descriptor and keeps it until it is dropped.
        let bell = unsafe { AsyncFd::register_with_interest(bell, Interest::READABLE) }
            .map_err(|e| StartError::event_loop(&e.into()))?;
        let under_way_max = uring.params().cq_entries() as usize;
        let queue = Queue {
            uring,
            slots: Slab::new(),
            backlog: VecDeque::new(),
            under_way: 0,
            under_way_max,
            woken: Vec::new(),
        };
        let shared = Rc::new(Shared {
            queue: RefCell::new(queue),
            bell,
            driver: RefCell::new(None),
            turn_due: Cell::new(true),
        });
        let driven = Rc::downgrade(&shared);
        tokio::task::spawn_local(poll_fn(move |cx| turn(&driven, cx)));
        Ok(Ring { shared })
    }

    /// Reads into `buf` behind what is done of it. Ends with the bytes read.
    pub(super) fn read(&self, file: &Rc<File>, mut buf: Buf, transfer: Transfer) -> Operation {
        let space = match buf.bytes_mut() {
            Some(bytes) => &mut bytes[transfer.done..],
            None => panic!("a length-only buffer in the real world"),
        };
        let len = space.len().min(TRANSFER_BYTES_MAX) as u32;
        let entry = opcode::Read::new(descriptor(file), space.as_mut_ptr(), len)
            .offset(transfer.offset)
            .build();
        self.start_operation(transfer.mark(entry), file, Held::Read(buf))
    }

    /// Writes `data` behind what is done of it; what is written is then as durable
    /// as asked. Ends with the bytes written.
    pub(super) fn write(
        &self,
        file: &Rc<File>,
        data: Slice,
        transfer: Transfer,
        durability: Durability,
    ) -> Operation {
        let left = match data.bytes() {
            Some(bytes) => &bytes[transfer.done..],
            None => panic!("a length-only buffer in the real world"),
        };
        let len = left.len().min(TRANSFER_BYTES_MAX) as u32;
        let entry = opcode::Write::new(descriptor(file), left.as_ptr(), len)
            .offset(transfer.offset)
            .rw_flags(match durability {
                Durability::AtNextSync => 0,
                Durability::AtOnce => libc::RWF_DSYNC,
            })
            .build();
        self.start_operation(transfer.mark(entry), file, Held::Write(data))
    }

    /// Makes the file's data durable: fdatasync(2).
    pub(super) fn sync_data(&self, file: &Rc<File>) -> Operation {
        let entry = opcode::Fsync::new(descriptor(file))
            .flags(types::FsyncFlags::DATASYNC)
            .build();
        self.start_operation(entry, file, Held::Nothing)
    }

    /// Gives a run of bytes back to what lies under the file: fallocate(2) with
    /// FALLOC_FL_PUNCH_HOLE.
    pub(super) fn punch_hole(&self, file: &Rc<File>, offset: u64, len_bytes: u64) -> Operation {
        let entry = opcode::Fallocate::new(descriptor(file), len_bytes)
            .offset(offset)
            .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
            .build();
        self.start_operation(entry, file, Held::Nothing)
    }

    fn start_operation(&self, entry: squeue::Entry, file: &Rc<File>, held: Held) -> Operation {
        let slot = Slot {
            state: State::Waiting(None),
            held,
            _file: Rc::clone(file),
        };
        let key = self.shared.queue.borrow_mut().enqueue(entry, slot);
        self.shared.call_driver();
        Operation {
            shared: Rc::clone(&self.shared),
            key: Some(key),
        }
    }
}

impl Transfer {
    fn mark(self, entry: squeue::Entry) -> squeue::Entry {
        if self.in_worker {
            entry.flags(squeue::Flags::ASYNC)
        } else {
            entry
        }
    }
}

impl Held {
    /// The buffer of a read.
    pub(super) fn into_buf(self) -> Buf {
        match self {
            Held::Read(buf) => buf,
            Held::Write(_) | Held::Nothing => panic!("only a read gives a buffer back"),
        }
    }
}

fn descriptor(file: &File) -> types::Fd {
    types::Fd(file.as_raw_fd())
}

fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// One turn of the driver task. Ends when the ring is gone.
fn turn(driven: &Weak<Shared>, cx: &mut Context<'_>) -> Poll<()> {
    let Some(shared) = driven.upgrade() else {
        return Poll::Ready(());
    };
    shared.remember_driver(cx.waker());
    shared.turn_due.set(false);
    let mut queue = shared.queue.borrow_mut();
    queue.mute_bell();
    let stalled = queue.submit();
    let mut woken = queue.reap();
    drop(queue);
    woken.drain(..).for_each(Waker::wake);
    let mut queue = shared.queue.borrow_mut();
    queue.woken = woken;
    if queue.can_submit() && !stalled {
        drop(queue);
        shared.call_driver(); // After the tasks that were just woken.
        return Poll::Pending;
    }
    if queue.under_way == 0 {
        return Poll::Pending;
    }
    queue.unmute_bell();
    // Readiness from before this turn is stale: the check below sees whatever
    // completed until here, and what completes later rings again.
    while let Poll::Ready(ready) = shared.bell.poll_read_ready(cx) {
        match ready {
            Ok(mut ready) => ready.clear_ready(),
            Err(_) => return Poll::Ready(()), // The executor is shutting down.
        }
    }
    let idle = stalled && queue.nothing_in_kernel();
    if idle || queue.has_news() {
        drop(queue);
        shared.call_driver();
    }
    Poll::Pending
}

impl Shared {
    fn remember_driver(&self, waker: &Waker) {
        let mut driver = self.driver.borrow_mut();
        if !driver.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *driver = Some(waker.clone());
        }
    }

    fn call_driver(&self) {
        if !self.turn_due.replace(true)
            && let Some(driver) = &*self.driver.borrow()
        {
            driver.wake_by_ref();
        }
    }
}

impl Queue {
    fn enqueue(&mut self, entry: squeue::Entry, slot: Slot) -> usize {
        let key = self.slots.insert(slot);
        let entry = entry.user_data(key as u64);
        if !self.backlog.is_empty() || !self.push(&entry) {
            self.backlog.push_back(entry);
        }
        key
    }

    /// Whether there was room for `entry`.
    fn push(&mut self, entry: &squeue::Entry) -> bool {
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
    fn submit(&mut self) -> bool {
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

    /// Whether something of the backlog need not wait for completions.
    fn can_submit(&self) -> bool {
        !self.backlog.is_empty() && self.under_way < self.under_way_max
    }

    /// Takes in what has completed and gives the tasks to wake.
    fn reap(&mut self) -> Vec<Waker> {
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

    fn has_put_off(&mut self) -> bool {
        self.uring.submission().taskrun()
    }

    fn has_news(&mut self) -> bool {
        !self.uring.completion().is_empty() || self.has_put_off()
    }

    fn nothing_in_kernel(&mut self) -> bool {
        self.under_way == self.uring.submission().len()
    }

    fn mute_bell(&mut self) {
        self.uring.completion().disable_eventfd();
    }

    /// From here on what completes rings. What completed before does not: look
    /// for it afterwards.
    fn unmute_bell(&mut self) {
        self.uring.completion().enable_eventfd();
        fence(Ordering::SeqCst);
    }

    /// Waits until the kernel has nothing of ours. False when it can't be told.
    fn drain(&mut self) -> bool {
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

impl Drop for Shared {
    fn drop(&mut self) {
        let queue = self.queue.get_mut();
        if !queue.drain() {
            // The kernel may still write to these buffers: never free them.
            mem::forget(mem::take(&mut queue.slots));
        }
        if let Some(driver) = self.driver.get_mut() {
            driver.wake_by_ref();
        }
    }
}

/// An operation under way. Dropping it leaves the operation to itself: it may be
/// done or not.
#[must_use = "the result tells whether it was done"]
pub(super) struct Operation {
    shared: Rc<Shared>,
    /// None when the result has been taken.
    key: Option<usize>,
}

impl Future for Operation {
    /// What the kernel said (a count of bytes), and what it had been lent.
    type Output = (io::Result<usize>, Held);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(key) = self.key else {
            panic!("polled after its end")
        };
        let mut queue = self.shared.queue.borrow_mut();
        let slot = &mut queue.slots[key];
        if let State::Waiting(known) = &mut slot.state {
            let outdated = match known {
                Some(waker) if waker.will_wake(cx.waker()) => None,
                _ => known.replace(cx.waker().clone()),
            };
            drop(queue);
            drop(outdated); // May drop a task, and with it another operation.
            return Poll::Pending;
        }
        let slot = queue.slots.remove(key);
        drop(queue);
        self.key = None;
        let State::Done(result) = slot.state else {
            panic!("operation {key} was abandoned")
        };
        Poll::Ready((errno::count(result), slot.held))
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        let mut queue = self.shared.queue.borrow_mut();
        // What is dropped here may be the last of a task, and with it another
        // operation: let go of the queue first.
        if matches!(queue.slots[key].state, State::Done(_)) {
            let slot = queue.slots.remove(key);
            drop(queue);
            drop(slot);
        } else {
            let state = mem::replace(&mut queue.slots[key].state, State::Abandoned);
            drop(queue);
            drop(state);
        }
    }
}
