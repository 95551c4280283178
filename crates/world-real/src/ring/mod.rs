//! A shard's io_uring: batches operations and keeps their buffers safe.
//!
//! An operation queues an entry; a driver task submits all queued entries at once after the tasks
//! that were ready have run, and works off what has completed. Small reads go out sooner, when the
//! device has little to do. The driver sleeps on an eventfd, which is muted while a turn is at
//! work: what completes at once, as on tmpfs, rings no bell.
//!
//! Invariants:
//! - An operation's buffer and file live in its slot until its completion has
//!   come, whether or not its future still lives.
//! - The kernel has at most as many operations as its completion queue has room
//!   for, so completions never overflow. The rest wait in the backlog, in order.
//! - A ring is dropped when the kernel has nothing of ours left, or has held on to it for
//!   too long; then what it may still write to is never freed.
//! - No drive has more operations with the kernel's workers than [`queue`] allows, so that one
//!   that hangs leaves workers for the others. The rest wait, each drive's apart.
//! - Wakers run when nothing here is borrowed.

mod operation;
mod queue;
#[cfg(test)]
mod tests;

pub(super) use operation::Operation;
pub(super) use queue::{FileIdentity, FileNow, KernelBuffers};

use super::setup::StartError;
use super::suspicion::Suspicion;
use base::{Buf, Slice};
use io_uring::{IoUring, opcode, squeue, types};
use queue::{Queue, Slot, State};
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The most bytes of one entry; the kernel cuts larger ones.
const TRANSFER_BYTES_MAX: usize = 1 << 30;

/// Reads of up to this many bytes don't wait for all others: a device seldom makes one
/// transfer of two of them.
const SMALL_READ_BYTES: usize = 32 << 10;

/// A handle to the shard's ring.
#[derive(Clone)]
pub(super) struct Ring {
    shared: Rc<SharedRing>,
}

struct SharedRing {
    queue: RefCell<Queue>,
    bell: AsyncFd<OwnedFd>,
    driver: RefCell<Option<Waker>>,
    /// Whether the driver has been woken and has not run yet.
    turn_due: Cell<bool>,
}

/// What an operation is about.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub file: &'a Arc<File>,
    pub suspicion: &'a Suspicion,
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
    /// Drives `uring` by a task on the caller's local executor.
    ///
    /// # Errors
    /// When the kernel gives no eventfd or event loop.
    pub(super) fn over(uring: IoUring) -> Result<Ring, StartError> {
        let bell = eventfd().map_err(|e| StartError::event_loop(&e))?;
        uring
            .submitter()
            .register_eventfd(bell.as_raw_fd())
            .map_err(|e| StartError::ring(&e))?;
        // SAFETY: the AsyncFd owns the descriptor and keeps it until it is dropped.
        let bell = unsafe { AsyncFd::register_with_interest(bell, Interest::READABLE) }
            .map_err(|e| StartError::event_loop(&e.into()))?;
        let shared = Rc::new(SharedRing {
            queue: RefCell::new(Queue::over(uring)),
            bell,
            driver: RefCell::new(None),
            turn_due: Cell::new(true),
        });
        let driven = Rc::downgrade(&shared);
        tokio::task::spawn_local(poll_fn(move |cx| turn(&driven, cx)));
        Ok(Ring { shared })
    }

    /// Reads into `buf` behind what is done of it. Ends with the bytes read.
    pub(super) fn read(&self, target: Target<'_>, mut buf: Buf, transfer: Transfer) -> Operation {
        let space = match buf.bytes_mut() {
            Some(bytes) => &mut bytes[transfer.done..],
            None => panic!("a length-only buffer in the real world"),
        };
        let len = space.len().min(TRANSFER_BYTES_MAX) as u32;
        let entry = opcode::Read::new(descriptor(target.file), space.as_mut_ptr(), len)
            .offset(transfer.offset)
            .build();
        let worker = transfer.is_for_a_worker(target);
        let operation = self.start_transfer(entry, target, worker, KernelBuffers::Read(buf));
        if len as usize <= SMALL_READ_BYTES && !worker {
            self.shared.queue.borrow_mut().submit_early();
        }
        operation
    }

    /// Writes `data` behind what is done of it; what is written is then as durable
    /// as asked. Ends with the bytes written.
    pub(super) fn write(
        &self,
        target: Target<'_>,
        data: Slice,
        transfer: Transfer,
        durability: Durability,
    ) -> Operation {
        let left = match data.bytes() {
            Some(bytes) => &bytes[transfer.done..],
            None => panic!("a length-only buffer in the real world"),
        };
        let len = left.len().min(TRANSFER_BYTES_MAX) as u32;
        let entry = opcode::Write::new(descriptor(target.file), left.as_ptr(), len)
            .offset(transfer.offset)
            .rw_flags(match durability {
                Durability::AtNextSync => 0,
                Durability::AtOnce => libc::RWF_DSYNC,
            })
            .build();
        let worker = transfer.is_for_a_worker(target);
        self.start_transfer(entry, target, worker, KernelBuffers::Write(data))
    }

    /// Makes the file's data durable: fdatasync(2).
    pub(super) fn sync_data(&self, target: Target<'_>) -> Operation {
        let entry = opcode::Fsync::new(descriptor(target.file))
            .flags(types::FsyncFlags::DATASYNC)
            .build();
        // The kernel always gives these to a worker.
        self.start_operation(entry, target, true, KernelBuffers::Nothing)
    }

    /// Gives a run of bytes back to what lies under the file: fallocate(2) with
    /// FALLOC_FL_PUNCH_HOLE.
    pub(super) fn punch_hole(&self, target: Target<'_>, offset: u64, len_bytes: u64) -> Operation {
        let entry = opcode::Fallocate::new(descriptor(target.file), len_bytes)
            .offset(offset)
            .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
            .build();
        // The kernel always gives these to a worker.
        self.start_operation(entry, target, true, KernelBuffers::Nothing)
    }

    /// What the file is by now, or what is at a path by now: statx(2), by a kernel worker, so
    /// that nobody waits for a file system that hangs.
    pub(super) fn status(&self, target: Target<'_>, path: Option<Arc<CStr>>) -> Operation {
        let mut status = Box::new(MaybeUninit::<libc::statx>::zeroed());
        let space: *mut types::statx = status.as_mut_ptr().cast();
        let (from, name, flags) = match &path {
            None => (descriptor(target.file), c"", libc::AT_EMPTY_PATH),
            Some(path) => (types::Fd(libc::AT_FDCWD), &**path, 0),
        };
        let entry = opcode::Statx::new(from, name.as_ptr(), space)
            .flags(flags)
            .mask(libc::STATX_TYPE | libc::STATX_SIZE | libc::STATX_NLINK | libc::STATX_INO)
            .build();
        self.start_operation(entry, target, true, KernelBuffers::Status(status, path))
    }

    fn start_transfer(
        &self,
        entry: squeue::Entry,
        target: Target<'_>,
        worker: bool,
        held: KernelBuffers,
    ) -> Operation {
        let entry = match worker {
            true => entry.flags(squeue::Flags::ASYNC),
            false => entry,
        };
        self.start_operation(entry, target, worker, held)
    }

    fn start_operation(
        &self,
        entry: squeue::Entry,
        target: Target<'_>,
        worker: bool,
        held: KernelBuffers,
    ) -> Operation {
        let slot = Slot {
            state: State::Waiting(None),
            held,
            worker,
            suspicion: target.suspicion.clone(),
            _file: Arc::clone(target.file),
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
    fn is_for_a_worker(self, target: Target<'_>) -> bool {
        self.in_worker || target.suspicion.in_worker()
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
fn turn(driven: &Weak<SharedRing>, cx: &mut Context<'_>) -> Poll<()> {
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
    if (queue.can_submit() || queue.has_queued()) && !stalled {
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

impl SharedRing {
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

impl Drop for SharedRing {
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
