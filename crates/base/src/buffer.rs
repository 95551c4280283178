//! Owned, pooled, page-aligned buffers, and shared slices of them.
//!
//! Invariants:
//! - The bytes of a [`Buf`] start on a [`BLOCK_BYTES`] boundary and do not move
//!   while it lives, so a drive may use them for direct I/O.
//! - A [`Buf`] has one owner, who may write. [`Buf::freeze`] gives that up for a
//!   [`Slice`] that any number of readers share (both copies of a mirror are
//!   written from the same bytes).
//! - A buffer may be **length-only**: a size without bytes. Calibrated runs use
//!   those, so that a modelled I/O stores and moves nothing. Every operation
//!   here accepts them; copying to or from one does nothing.
//! - A buffer may end on any thread; its bytes come back to the pool that they are of,
//!   by way of a bin that the pool empties when it has no others. Only a pool itself
//!   stays on one thread, its shard's.
//! - What a fresh [`Buf`] holds is unspecified: whoever takes it fills it whole
//!   or asks for [`BufPool::zeroed`].

use crate::units::BLOCK_BYTES;
use smallvec::SmallVec;
use std::alloc::{Layout, handle_alloc_error};
use std::cell::RefCell;
use std::fmt;
use std::mem;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// The pool keeps buffers of up to this many bytes; larger ones are freed.
pub const POOLED_BYTES_MAX: usize = 1 << 20;

/// The pool keeps at most this many bytes of unused buffers per size class in its bin,
/// and of small ones as many that it has taken from there.
const KEPT_BYTES_PER_CLASS: usize = 8 << 20;

/// Buffers of up to this many bytes are taken from the bin all at once.
const SMALL_BYTES: usize = 64 << 10;

const CLASSES: usize = (POOLED_BYTES_MAX / BLOCK_BYTES).ilog2() as usize + 1;

#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(4096))]
struct Block([u8; BLOCK_BYTES]);

type Blocks = Box<[Block]>;

/// Hands out buffers and takes them back when they are dropped. One per shard.
#[derive(Clone)]
pub struct BufPool {
    shared: Rc<SharedPool>,
}

struct SharedPool {
    length_only: bool,
    /// Taken from first; refilled by all that is in the bin.
    free: [RefCell<Vec<Blocks>>; CLASSES],
    bin: Arc<Bin>,
    zeros: RefCell<Option<Slice>>,
}

/// Where buffers go when they end, from any thread.
#[derive(Default)]
struct Bin {
    returned: [Mutex<Vec<Blocks>>; CLASSES],
    /// Bytes of buffers that are out, for statistics and leak tests.
    outstanding_bytes: AtomicUsize,
    /// The pool is gone: nobody takes anything from here any more.
    closed: AtomicBool,
}

impl Bin {
    // Whoever panicked with this lock held has left a whole list behind.
    fn class(&self, class: usize) -> MutexGuard<'_, Vec<Blocks>> {
        self.returned[class]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn take_back(&self, blocks: Blocks) {
        let held = blocks.len() * BLOCK_BYTES;
        self.outstanding_bytes.fetch_sub(held, Ordering::Relaxed);
        let Some(class) = class_of(blocks.len()) else {
            return;
        };
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        let mut returned = self.class(class);
        if (returned.len() + 1) * held <= KEPT_BYTES_PER_CLASS.max(held) {
            returned.push(blocks);
        }
    }
}

impl Drop for SharedPool {
    fn drop(&mut self) {
        self.bin.closed.store(true, Ordering::Relaxed);
        // One that comes at this moment stays until the last buffer has ended.
        for class in 0..CLASSES {
            self.bin.class(class).clear();
        }
    }
}

impl BufPool {
    /// A pool whose buffers have bytes.
    pub fn new() -> Self {
        Self::with_mode(false)
    }

    /// A pool whose data buffers are a length and nothing else.
    pub fn length_only() -> Self {
        Self::with_mode(true)
    }

    fn with_mode(length_only: bool) -> Self {
        BufPool {
            shared: Rc::new(SharedPool {
                length_only,
                free: Default::default(),
                bin: Arc::default(),
                zeros: RefCell::new(None),
            }),
        }
    }

    /// Whether [`BufPool::data`] gives buffers without bytes.
    pub fn is_length_only(&self) -> bool {
        self.shared.length_only
    }

    /// A buffer for user data: length-only in a length-only pool. Its content is
    /// unspecified.
    pub fn data(&self, len: usize) -> Buf {
        if self.shared.length_only {
            Buf {
                blocks: None,
                len,
                home: None,
            }
        } else {
            self.bytes(len)
        }
    }

    /// A buffer that has bytes in any pool: labels, journal, protocol data. Its
    /// content is unspecified.
    pub fn bytes(&self, len: usize) -> Buf {
        let blocks = len.div_ceil(BLOCK_BYTES).max(1);
        if self.shared.length_only {
            // Modelled drives keep them: no more than what they hold, then.
            return Buf {
                blocks: Some(new_blocks(blocks)),
                len,
                home: None,
            };
        }
        let reused = class_of(blocks).and_then(|class| self.shared.reuse(class));
        let blocks = reused.unwrap_or_else(|| new_blocks(class_blocks(blocks)));
        let held = blocks.len() * BLOCK_BYTES;
        let bin = &self.shared.bin;
        bin.outstanding_bytes.fetch_add(held, Ordering::Relaxed);
        Buf {
            blocks: Some(blocks),
            len,
            home: Some(Arc::clone(bin)),
        }
    }

    /// A buffer of zeroes for user data.
    pub fn zeroed(&self, len: usize) -> Buf {
        let mut buf = self.data(len);
        if let Some(bytes) = buf.bytes_mut() {
            bytes.fill(0);
        }
        buf
    }

    /// `len` shared zeroes; up to [`POOLED_BYTES_MAX`] of them cost nothing.
    pub fn zeros(&self, len: usize) -> Slice {
        if len > POOLED_BYTES_MAX || self.shared.length_only {
            return self.zeroed(len).freeze();
        }
        let mut kept = self.shared.zeros.borrow_mut();
        // Made outside the pool (its home is nowhere), or pool and buffer would
        // keep each other alive.
        let all = kept.get_or_insert_with(|| {
            let blocks = Some(new_blocks(POOLED_BYTES_MAX / BLOCK_BYTES));
            Buf {
                blocks,
                len: POOLED_BYTES_MAX,
                home: None,
            }
            .freeze()
        });
        all.slice(0, len)
    }

    /// A buffer that holds a copy of `bytes` (with bytes in any pool).
    pub fn copy_of(&self, bytes: &[u8]) -> Buf {
        let mut buf = self.bytes(bytes.len());
        if let Some(space) = buf.bytes_mut() {
            space.copy_from_slice(bytes);
        }
        buf
    }

    /// Bytes of buffers taken and not yet dropped.
    pub fn outstanding_bytes(&self) -> usize {
        self.shared.bin.outstanding_bytes.load(Ordering::Relaxed)
    }
}

impl SharedPool {
    fn reuse(&self, class: usize) -> Option<Blocks> {
        if (BLOCK_BYTES << class) > SMALL_BYTES {
            return self.bin.class(class).pop();
        }
        let mut free = self.free[class].borrow_mut();
        if free.is_empty() {
            // One lock for all that have come back meanwhile.
            mem::swap(&mut *free, &mut *self.bin.class(class));
        }
        free.pop()
    }
}

impl Default for BufPool {
    fn default() -> Self {
        Self::new()
    }
}

fn new_blocks(count: usize) -> Blocks {
    match <[Block]>::new_box_zeroed_with_elems(count) {
        Ok(blocks) => blocks,
        // The process ends, as for any other allocation: a panic would end one task of many.
        Err(_) => match Layout::array::<Block>(count) {
            Ok(layout) => handle_alloc_error(layout),
            Err(_) => panic!("no buffer has {count} blocks"),
        },
    }
}

/// `count`, rounded up to what can be taken again for others of its class.
fn class_blocks(count: usize) -> usize {
    match class_of(count) {
        Some(class) => 1 << class,
        None => count,
    }
}

/// Memory that a buffer of `len` bytes takes, in bytes.
pub fn held_bytes(len: usize) -> usize {
    class_blocks(len.div_ceil(BLOCK_BYTES).max(1)) * BLOCK_BYTES
}

fn class_of(blocks: usize) -> Option<usize> {
    let class = blocks.next_power_of_two().ilog2() as usize;
    (class < CLASSES).then_some(class)
}

/// One owner's aligned buffer. Goes back to its pool when dropped.
pub struct Buf {
    blocks: Option<Blocks>,
    len: usize,
    /// Where the bytes go back to; nowhere when `None`.
    home: Option<Arc<Bin>>,
}

impl Buf {
    /// Length in bytes of the content, which may be less than the memory behind it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is of length zero.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory that it takes, in bytes; as many as its length when it is length-only.
    pub fn held_bytes(&self) -> usize {
        let blocks = self.blocks.as_ref().map(|blocks| blocks.len());
        blocks.map_or(self.len, |blocks| blocks * BLOCK_BYTES)
    }

    /// Whether this buffer is a size without bytes.
    pub fn is_length_only(&self) -> bool {
        self.blocks.is_none()
    }

    /// The bytes, or `None` for a length-only buffer.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.blocks
            .as_ref()
            .map(|blocks| &blocks.as_bytes()[..self.len])
    }

    /// The bytes to write into, or `None` for a length-only buffer.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let len = self.len;
        self.blocks
            .as_mut()
            .map(|blocks| &mut blocks.as_mut_bytes()[..len])
    }

    /// Copies `from` to `at`. Does nothing when either has no bytes.
    ///
    /// # Panics
    /// When `from` does not fit: a length is never silently cut.
    pub fn put(&mut self, at: usize, from: &Slice) {
        assert!(
            at + from.len() <= self.len,
            "{} bytes at {at} overflow {}",
            from.len(),
            self.len
        );
        if let (Some(to), Some(from)) = (self.bytes_mut(), from.bytes()) {
            to[at..at + from.len()].copy_from_slice(from);
        }
    }

    /// Copies all of `from` to `at`, its parts one after another.
    ///
    /// # Panics
    /// As [`Buf::put`].
    pub fn put_all(&mut self, at: usize, from: &Payload) {
        let mut to = at;
        for part in &from.parts {
            self.put(to, part);
            to += part.len();
        }
    }

    /// Gives up writing for sharing.
    pub fn freeze(self) -> Slice {
        let len = self.len;
        Slice {
            buf: (!self.is_length_only()).then(|| Arc::new(self)),
            start: 0,
            len,
        }
    }
}

impl Drop for Buf {
    fn drop(&mut self) {
        if let (Some(blocks), Some(home)) = (self.blocks.take(), self.home.take()) {
            home.take_back(blocks);
        }
    }
}

impl fmt::Debug for Buf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_length_only() {
            "length-only "
        } else {
            ""
        };
        write!(f, "Buf({kind}{} bytes)", self.len)
    }
}

/// A shared, unchanging run of a buffer. Cloning is cheap, and shards may share it.
#[derive(Clone)]
pub struct Slice {
    /// `None` when length-only: a size, which takes no memory.
    buf: Option<Arc<Buf>>,
    start: usize,
    len: usize,
}

impl Slice {
    /// Length in bytes, also of a slice that is length-only.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is of length zero.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there are no bytes behind it.
    pub fn is_length_only(&self) -> bool {
        self.buf.is_none()
    }

    /// The bytes, or `None` when length-only.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.buf
            .as_ref()?
            .bytes()
            .map(|bytes| &bytes[self.start..self.start + self.len])
    }

    /// The run of `len` bytes from `start` on, shared.
    ///
    /// # Panics
    /// When it reaches past the end.
    pub fn slice(&self, start: usize, len: usize) -> Slice {
        assert!(
            start + len <= self.len,
            "slice {start}+{len} of {}",
            self.len
        );
        Slice {
            buf: self.buf.clone(),
            start: self.start + start,
            len,
        }
    }

    /// Whether the bytes start on a [`BLOCK_BYTES`] boundary in memory.
    pub fn is_aligned(&self) -> bool {
        self.start.is_multiple_of(BLOCK_BYTES)
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.buf {
            Some(buf) => write!(f, "Slice({}+{} of {buf:?})", self.start, self.len),
            None => write!(f, "Slice(length-only {}+{})", self.start, self.len),
        }
    }
}

/// Data as a sequence of slices: what a read returns, ready for a vectored send.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    /// The parts, in order. None is empty.
    pub parts: SmallVec<[Slice; 2]>,
}

impl Payload {
    /// An empty payload, to which slices are appended.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends `part`; an empty one is dropped.
    pub fn push(&mut self, part: Slice) {
        if !part.is_empty() {
            self.parts.push(part);
        }
    }

    /// Length in bytes, summed over all parts.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Slice::len).sum()
    }

    /// Whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The run of `len` bytes from `start` on, shared.
    ///
    /// # Panics
    /// When it reaches past the end.
    pub fn slice(&self, mut start: usize, mut len: usize) -> Payload {
        let mut run = Payload::new();
        for part in &self.parts {
            let skipped = start.min(part.len());
            start -= skipped;
            let taken = len.min(part.len() - skipped);
            run.push(part.slice(skipped, taken));
            len -= taken;
        }
        assert!(
            start == 0 && len == 0,
            "slice reaches {} bytes past the payload",
            start + len
        );
        run
    }

    /// Cuts it into successive runs, from its front on.
    pub fn cuts(&self) -> Cuts<'_> {
        Cuts {
            parts: &self.parts,
            cut: 0,
        }
    }

    /// One copy of all bytes; zeroes where a part is length-only.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len());
        for part in &self.parts {
            match part.bytes() {
                Some(bytes) => all.extend_from_slice(bytes),
                None => all.resize(all.len() + part.len(), 0),
            }
        }
        all
    }
}

/// Cuts a [`Payload`] into successive runs. Each begins where the last one ended, so that all
/// of them together take no longer than the parts and the runs are many.
#[derive(Clone, Debug)]
pub struct Cuts<'a> {
    /// The parts that are left.
    parts: &'a [Slice],
    /// Bytes of the first of them that are cut off.
    cut: usize,
}

impl Cuts<'_> {
    /// The next `len` bytes, shared.
    ///
    /// # Panics
    /// When fewer are left.
    pub fn take(&mut self, mut len: usize) -> Payload {
        let mut run = Payload::new();
        while len > 0 {
            let Some((part, rest)) = self.parts.split_first() else {
                panic!("a cut reaches {len} bytes past the payload");
            };
            let taken = len.min(part.len() - self.cut);
            run.push(part.slice(self.cut, taken));
            self.cut += taken;
            len -= taken;
            if self.cut == part.len() {
                (self.parts, self.cut) = (rest, 0);
            }
        }
        run
    }
}

impl From<Slice> for Payload {
    fn from(part: Slice) -> Self {
        let mut payload = Payload::new();
        payload.push(part);
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_aligned_and_come_back_to_the_pool() {
        let pool = BufPool::new();
        let buf = pool.bytes(5000);
        let address = buf.bytes().unwrap().as_ptr() as usize;
        assert_eq!(address % BLOCK_BYTES, 0);
        assert_eq!(pool.outstanding_bytes(), 8192);
        drop(buf);
        assert_eq!(pool.outstanding_bytes(), 0);
        let again = pool.bytes(8192);
        assert_eq!(
            again.bytes().unwrap().as_ptr() as usize,
            address,
            "the buffer is reused"
        );
    }

    #[test]
    fn a_buffer_outlives_its_pool() {
        let pool = BufPool::new();
        let slice = pool.copy_of(b"stays").freeze();
        drop(pool);
        assert_eq!(slice.bytes().unwrap(), b"stays");
    }

    #[test]
    fn what_comes_back_is_kept_within_bounds() {
        let pool = BufPool::new();
        let out: Vec<_> = (0..40).map(|_| pool.bytes(1 << 20)).collect();
        drop(out);
        let class = class_of((1 << 20) / BLOCK_BYTES).unwrap();
        assert_eq!(pool.shared.bin.class(class).len(), 8);
    }

    #[test]
    fn length_only_buffers_have_a_size_and_no_bytes() {
        let pool = BufPool::length_only();
        let mut buf = pool.data(1 << 40);
        assert_eq!((buf.len(), buf.bytes()), (1 << 40, None));
        buf.put(7, &pool.copy_of(b"dropped").freeze());
        assert!(buf.freeze().slice(9, 4).is_length_only());
        assert!(
            pool.bytes(10).bytes().is_some(),
            "metadata has bytes in any pool"
        );
    }

    #[test]
    fn a_payload_is_sliced_across_its_parts() {
        let pool = BufPool::new();
        let mut payload = Payload::new();
        for part in ["abc", "", "defg", "h"] {
            payload.push(pool.copy_of(part.as_bytes()).freeze());
        }
        assert_eq!(payload.len(), 8);
        assert_eq!(payload.slice(2, 4).to_vec(), b"cdef");
        assert_eq!(payload.slice(8, 0).len(), 0);
    }

    #[test]
    #[should_panic(expected = "past the payload")]
    fn a_payload_is_never_cut_short_silently() {
        let pool = BufPool::new();
        Payload::from(pool.copy_of(b"abc").freeze()).slice(2, 2);
    }

    #[test]
    fn cuts_of_any_length_are_the_payload_in_order() {
        let pool = BufPool::new();
        let mut payload = Payload::new();
        for part in ["abc", "defg", "h", "ijklmn"] {
            payload.push(pool.copy_of(part.as_bytes()).freeze());
        }
        for step in 1..=payload.len() {
            let (mut cuts, mut at) = (payload.cuts(), 0);
            while at < payload.len() {
                let len = step.min(payload.len() - at);
                let run = cuts.take(len);
                assert_eq!(run.to_vec(), payload.slice(at, len).to_vec());
                assert!(run.parts.iter().all(|part| !part.is_empty()));
                at += len;
            }
            assert!(cuts.take(0).is_empty());
        }
    }

    #[test]
    #[should_panic(expected = "a cut reaches 2 bytes past the payload")]
    fn a_cut_is_never_short() {
        let payload = Payload::from(BufPool::new().copy_of(b"abc").freeze());
        let mut cuts = payload.cuts();
        cuts.take(2);
        cuts.take(3);
    }

    #[test]
    fn shared_zeroes_are_zero_even_after_dirty_buffers() {
        let pool = BufPool::new();
        let mut dirty = pool.bytes(4096);
        dirty.bytes_mut().unwrap().fill(0xff);
        drop(dirty);
        assert!(pool.zeros(4096).bytes().unwrap().iter().all(|&b| b == 0));
        assert!(pool.zeroed(4096).bytes().unwrap().iter().all(|&b| b == 0));
    }
}
