//! Mirroring writes to the copy of a volume that moves to another pool.
//!
//! Invariants:
//! - Below the cursor the copy has what the volume has, but for what is on its way under
//!   a lock: whoever copies holds a run for reading when the cursor passes it, and whoever
//!   writes holds it alone until the copy has it, too.
//! - A copy that could not be written is never anybody's volume. The volume itself goes on
//!   as if nobody had wanted to move it.

use crate::volume_io::VolumeIo;
use crate::world::World;
use base::Time;
use futures_util::lock::Mutex;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

/// The longest that a copy rests without a look at whether it is wanted still.
const REST_MAX: Duration = Duration::from_millis(50);

/// How far a copy is, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveProgress {
    /// Size of the volume, bytes.
    pub size_bytes: u64,
    /// Bytes that the copy has passed, unmapped pages included.
    pub done_bytes: u64,
    /// Read of the volume and written to the copy.
    pub data_bytes: u64,
}

/// A copy in the making, in another pool.
pub struct Mirror {
    /// The volume that becomes the copy.
    pub to: Rc<dyn VolumeIo>,
    /// Held by the one who takes the next run to be copied: the cursor only rises.
    pub(crate) turn: Mutex<()>,
    /// What lies below is copied, or is being copied.
    pub(crate) cursor: Cell<u64>,
    pub(crate) progress: Cell<MoveProgress>,
    /// Data a second, at most.
    pub(crate) rate_bytes_per_s: Option<u64>,
    /// When the next run may be read.
    pub(crate) due: Cell<Time>,
    /// Why there will be no copy.
    failure: RefCell<Option<String>>,
}

impl Mirror {
    /// Nothing is copied yet. At most `rate_bytes_per_s` of data will be.
    pub fn new(to: Rc<dyn VolumeIo>, size_bytes: u64, rate_bytes_per_s: Option<u64>) -> Self {
        let progress = MoveProgress {
            size_bytes,
            ..MoveProgress::default()
        };
        Mirror {
            to,
            turn: Mutex::default(),
            cursor: Cell::new(0),
            progress: Cell::new(progress),
            rate_bytes_per_s,
            due: Cell::new(Time(0)),
            failure: RefCell::default(),
        }
    }

    /// How far it is.
    pub fn progress(&self) -> MoveProgress {
        self.progress.get()
    }

    /// There will be no copy. The first reason stays.
    pub fn fail(&self, why: String) {
        self.failure.borrow_mut().get_or_insert(why);
    }

    /// Why there will be no copy.
    pub fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// That the copy has all that the volume has, but for what is under a lock.
    ///
    /// # Errors
    /// Why it has not.
    pub fn check_whole(&self) -> Result<(), String> {
        let progress = self.progress();
        match self.failure() {
            Some(why) => Err(why),
            None if progress.done_bytes == progress.size_bytes => Ok(()),
            None => Err("it is not all copied".to_owned()),
        }
    }

    /// The part of a run that the copy has to have.
    pub(crate) fn part(&self, run: Range<u64>) -> Option<Range<u64>> {
        let part = run.start..run.end.min(self.cursor.get());
        (!part.is_empty() && self.failure.borrow().is_none()).then_some(part)
    }

    /// Until the next `len` bytes may be read.
    pub(crate) async fn pace<W: World>(&self, world: &W, len: u64) {
        let Some(rate) = self.rate_bytes_per_s else {
            return;
        };
        // In parts: nobody waits long who wants it to end.
        while self.due.get() > world.now() && self.failure.borrow().is_none() {
            let left = self.due.get() - world.now();
            world.sleep(left.min(REST_MAX)).await;
        }
        let takes = Duration::from_secs_f64(len as f64 / rate.max(1) as f64);
        // What was missed is not made up for.
        self.due.set(self.due.get().max(world.now()) + takes);
    }
}
