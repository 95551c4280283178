//! Operations that are queued, under way and done; this part of a ring knows no tasks.

use crate::errno;
pub(super) use crate::suspicion::LONG;
use crate::suspicion::Suspicion;
use base::{Buf, Slice};
use io_uring::{IoUring, squeue, types};
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::VecDeque;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem::{self, MaybeUninit};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The most entries that wait for company.
const COMPANY_MAX: usize = 16;

/// The most operations of one drive that workers of the kernel have from one ring.
const PER_DRIVE_MAX: usize = 8;

/// How many workers a ring may have that wait for drives: enough for more drives that hang
/// than any pool can do without. The kernel starts them as they are needed.
const WORKERS_MAX: u32 = 256;

/// How long the kernel may take for what is under way when a ring is dropped.
const DRAIN_MAX: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 5000 });

pub(super) struct Queue {
    uring: IoUring,
    pub(super) slots: Slab<Slot>,
    backlog: VecDeque<squeue::Entry>,
    /// What workers have and what waits for one, by drive.
    workers: FxHashMap<usize, Workers>,
    /// The drives with entries that a submission has not started yet.
    fresh: Vec<Suspicion>,
    /// Entries that are in the submission queue or in the kernel.
    pub(super) under_way: usize,
    under_way_max: usize,
    /// Reused by every turn.
    pub(super) woken: Vec<Waker>,
    /// Drives that workers have done with something of; reused by every turn.
    free: Vec<usize>,
}

/// Operations of one drive for workers.
#[derive(Default)]
struct Workers {
    busy: usize,
    waiting: VecDeque<squeue::Entry>,
}

pub(super) struct Slot {
    /// A worker of the kernel makes it.
    pub(super) worker: bool,
    /// Of its drive.
    pub(super) suspicion: Suspicion,
    pub(super) state: State,
    pub(super) held: KernelBuffers,
    /// Keeps the descriptor open until the kernel is done with it.
    pub(super) _file: Arc<File>,
}

pub(super) enum State {
    Waiting(Option<Waker>),
    Done(i32),
    Abandoned,
}

/// What the kernel may use during an operation.
pub(crate) enum KernelBuffers {
    Read(Buf),
    Write(#[expect(dead_code, reason = "held for the kernel, not for us")] Slice),
    /// And the path that it is asked by.
    Status(
        Box<MaybeUninit<libc::statx>>,
        #[expect(dead_code, reason = "held for the kernel, not for us")] Option<Arc<CStr>>,
    ),
    Nothing,
}

/// What a file is by now.
pub struct FileNow {
    pub bytes: u64,
    /// No directory names it: it is gone when it is closed.
    pub is_deleted: bool,
    pub identity: FileIdentity,
}

/// Tells a file from every other one of this machine while it exists: its device by numbers, and
/// its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: (u32, u32),
    inode: u64,
}

impl KernelBuffers {
    /// What the file is by now whose status was asked for; none when it is not a file.
    pub(crate) fn file_now(self) -> Option<FileNow> {
        let KernelBuffers::Status(status, _) = self else {
            panic!("only a status tells of a file")
        };
        // SAFETY: it was all zero when the kernel got it, which is a valid statx, and the
        // kernel only fills it in.
        let status = unsafe { status.assume_init() };
        let knows = |mask| status.stx_mask & mask != 0;
        let is_file = u32::from(status.stx_mode) & libc::S_IFMT == libc::S_IFREG;
        (is_file && knows(libc::STATX_SIZE)).then_some(FileNow {
            bytes: status.stx_size,
            is_deleted: knows(libc::STATX_NLINK) && status.stx_nlink == 0,
            identity: FileIdentity {
                device: (status.stx_dev_major, status.stx_dev_minor),
                inode: status.stx_ino,
            },
        })
    }

    /// The buffer of a read.
    pub(crate) fn into_buf(self) -> Buf {
        match self {
            KernelBuffers::Read(buf) => buf,
            KernelBuffers::Write(_) | KernelBuffers::Status(..) | KernelBuffers::Nothing => {
                panic!("only a read gives a buffer back")
            }
        }
    }
}

impl Queue {
    pub(super) fn over(uring: IoUring) -> Queue {
        let under_way_max = uring.params().cq_entries() as usize;
        // Linux 5.15 and later; before, one that hangs may delay others.
        let _ = uring
            .submitter()
            .register_iowq_max_workers(&mut [WORKERS_MAX, 0]);
        Queue {
            uring,
            slots: Slab::new(),
            backlog: VecDeque::new(),
            workers: FxHashMap::default(),
            fresh: Vec::new(),
            under_way: 0,
            under_way_max,
            woken: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn enqueue(&mut self, entry: squeue::Entry, slot: Slot) -> usize {
        let (worker, drive) = (slot.worker, slot.suspicion.key());
        let key = self.slots.insert(slot);
        let entry = entry.user_data(key as u64);
        if worker {
            let workers = self.workers.entry(drive).or_default();
            if workers.busy == PER_DRIVE_MAX {
                workers.waiting.push_back(entry);
                return key;
            }
            workers.busy += 1;
        }
        self.start(entry);
        key
    }

    fn start(&mut self, entry: squeue::Entry) {
        if !self.backlog.is_empty() || !self.push(&entry) {
            self.backlog.push_back(entry);
        }
    }

    /// A worker has done with an operation of this drive: it may have the next.
    fn worker_is_free(&mut self, drive: usize) {
        let Some(workers) = self.workers.get_mut(&drive) else {
            return;
        };
        match workers.waiting.pop_front() {
            Some(entry) => self.start(entry),
            None => {
                workers.busy -= 1;
                if workers.busy == 0 {
                    self.workers.remove(&drive);
                }
            }
        }
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
        let key = entry.get_user_data() as usize;
        if pushed && let Some(slot) = self.slots.get(key) {
            let is_it = |one: &Suspicion| one.is(&slot.suspicion);
            if !slot.worker && !self.fresh.iter().any(is_it) {
                self.fresh.push(slot.suspicion.clone());
            }
        }
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
            match self.enter() {
                Ok(_) if self.uring.submission().is_empty() && !self.can_submit() => return false,
                Ok(_) => {}
                Err(e) if errno::is_short_of_resources(&e) => return true,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => panic!("io_uring_enter refuses valid operations: {e}"),
            }
        }
    }

    /// Has the kernel start what is queued. When that takes long, one of those drives has
    /// blocked it; nobody knows which: workers see to all of them for a while.
    fn enter(&mut self) -> io::Result<usize> {
        let began = Instant::now();
        let entered = self.uring.submit();
        self.entered(began.elapsed());
        entered
    }

    /// A submission of all that was fresh has taken so long.
    pub(super) fn entered(&mut self, took: Duration) {
        if took >= LONG {
            self.fresh.iter().for_each(Suspicion::rouse);
        }
        self.fresh.clear();
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
            let _ = self.enter();
        }
    }

    /// Whether something of the backlog need not wait for completions.
    pub(super) fn can_submit(&self) -> bool {
        !self.backlog.is_empty() && self.under_way < self.under_way_max
    }

    /// Whether something waits to be submitted that there is room for: workers that were
    /// free again have been given it.
    pub(super) fn has_queued(&mut self) -> bool {
        !self.uring.submission().is_empty()
    }

    /// Takes in what has completed and gives the tasks to wake.
    pub(super) fn reap(&mut self) -> Vec<Waker> {
        let mut woken = mem::take(&mut self.woken);
        let mut free = mem::take(&mut self.free);
        for completion in self.uring.completion() {
            self.under_way -= 1;
            let key = completion.user_data() as usize;
            let slot = &mut self.slots[key];
            if slot.worker {
                free.push(slot.suspicion.key());
            }
            match mem::replace(&mut slot.state, State::Done(completion.result())) {
                State::Waiting(waker) => woken.extend(waker),
                State::Abandoned => drop(self.slots.remove(key)),
                State::Done(_) => panic!("operation {key} completed twice"),
            }
        }
        for drive in free.drain(..) {
            self.worker_is_free(drive);
        }
        self.free = free;
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

    /// Waits until the kernel has nothing of ours, for a bounded time. False when it may
    /// still have something.
    pub(super) fn drain(&mut self) -> bool {
        self.backlog.clear();
        self.workers.clear();
        let began = Instant::now();
        while self.under_way > 0 {
            let Some(left) = DRAIN_MAX.checked_sub(began.elapsed()) else {
                return false;
            };
            let left = types::Timespec::from(left);
            let bounds = types::SubmitArgs::new().timespec(&left);
            match self.uring.submitter().submit_with_args(1, &bounds) {
                Ok(_) => {}
                Err(e) if e.raw_os_error() == Some(libc::ETIME) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if errno::is_short_of_resources(&e) => {}
                Err(_) => return false,
            }
            self.under_way -= self.uring.completion().count();
        }
        true
    }
}
