//! The operations in progress on a volume. Nothing here is durable.

use super::Mirror;
use super::copied::Copied;
use crate::meta::InFlight;
use crate::range_lock::RangeLock;
use crate::volume_io::VolumeIo;
use crate::world::World;
use base::PageIndex;
use futures_channel::oneshot;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// How often to look whether operations have ended.
const TURN_REST: Duration = Duration::from_micros(500);

/// I/O in progress on a volume.
#[derive(Default)]
pub struct Live {
    /// Ranges of bytes being read (shared) and written (exclusive).
    pub ranges: RangeLock,
    /// Pages that were copied since others had them, too.
    pub copied: Copied,
    /// Cleared pages stay mapped: it is about to be thick.
    pub keeps_pages: Cell<bool>,
    /// Pages being allocated, with who waits for them.
    allocating: RefCell<BTreeMap<PageIndex, Vec<oneshot::Sender<()>>>>,
    /// Gets what is written, too: the volume is being copied to another pool.
    mirror: RefCell<Option<Rc<Mirror>>>,
    /// Where the volume is by now, if it has moved.
    moved: RefCell<Option<Rc<dyn VolumeIo>>>,
    /// Whether it may not be what it was last: nobody reads or writes it.
    pub withheld: Cell<bool>,
    /// In two generations: those that begin now, and those that began before somebody
    /// wanted to know how long the ones under way take.
    operations: [Cell<u64>; 2],
    generation: Cell<usize>,
    deleted: Cell<bool>,
    drained: RefCell<Option<oneshot::Sender<()>>>,
}

/// An operation in progress; deletion waits for its end.
#[derive(Debug)]
pub struct Operation<'a> {
    live: &'a Live,
    generation: usize,
}

/// The allocation of a page in progress; its end wakes who waits for the page.
#[derive(Debug)]
pub struct Allocation<'a> {
    live: &'a Live,
    page: PageIndex,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations = self.under_way();
        write!(f, "Live {{ {operations} operations }}")
    }
}

impl InFlight for Live {
    fn is_deleted(&self) -> bool {
        self.deleted.get()
    }

    fn has_moved(&self) -> bool {
        self.moved.borrow().is_some()
    }
}

impl Live {
    /// Who gets what is written, too.
    pub fn mirror(&self) -> Option<Rc<Mirror>> {
        self.mirror.borrow().clone()
    }

    /// Has somebody get what is written, too, or nobody any more.
    pub fn set_mirror(&self, mirror: Option<Rc<Mirror>>) {
        self.mirror.replace(mirror);
    }

    /// Where the volume is by now, if it has moved.
    pub fn moved(&self) -> Option<Rc<dyn VolumeIo>> {
        self.moved.borrow().clone()
    }

    /// The volume is there from now on. Nobody writes it while this is called.
    pub fn set_moved(&self, to: Rc<dyn VolumeIo>) {
        self.mirror.replace(None);
        self.moved.replace(Some(to));
    }

    /// An operation begins; `None` when the volume is being deleted.
    pub fn begin(&self) -> Option<Operation<'_>> {
        if self.deleted.get() {
            return None;
        }
        let generation = self.generation.get();
        let operations = &self.operations[generation];
        operations.set(operations.get() + 1);
        let live = self;
        Some(Operation { live, generation })
    }

    /// Operations that have begun and not ended.
    pub(crate) fn under_way(&self) -> u64 {
        self.operations.iter().map(Cell::get).sum()
    }

    /// Ends when all operations that are under way now have ended; others go on beginning.
    /// To be asked by one at a time.
    pub async fn turn_over<W: World>(&self, world: &W) {
        let before = self.generation.get();
        // The last turn left none in the other one.
        self.generation.set(1 - before);
        while self.operations[before].get() > 0 {
            world.sleep(TURN_REST).await;
        }
    }

    /// No operation begins from now on; ends when those in progress have ended.
    pub async fn delete(&self) {
        self.deleted.set(true);
        if self.under_way() == 0 {
            return;
        }
        let (drained, wait) = oneshot::channel();
        self.drained.replace(Some(drained));
        let _ = wait.await;
    }

    /// Whether a page is being allocated, or copied for this volume.
    pub fn is_allocating(&self, page: PageIndex) -> bool {
        self.allocating.borrow().contains_key(&page)
    }

    /// The right to allocate `page`; waits and gives `None` when somebody else is
    /// at it (look at the map again then).
    pub async fn allocate(&self, page: PageIndex) -> Option<Allocation<'_>> {
        let wait = {
            let mut allocating = self.allocating.borrow_mut();
            match allocating.get_mut(&page) {
                None => {
                    allocating.insert(page, Vec::new());
                    return Some(Allocation { live: self, page });
                }
                Some(waiting) => {
                    let (done, wait) = oneshot::channel();
                    waiting.push(done);
                    wait
                }
            }
        };
        let _ = wait.await;
        None
    }
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        let operations = &self.live.operations[self.generation];
        operations.set(operations.get() - 1);
        if self.live.under_way() == 0
            && let Some(drained) = self.live.drained.take()
        {
            let _ = drained.send(());
        }
    }
}

impl Drop for Allocation<'_> {
    fn drop(&mut self) {
        let waiting = self.live.allocating.borrow_mut().remove(&self.page);
        for waiter in waiting.into_iter().flatten() {
            let _ = waiter.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn deletion_waits_for_operations_and_lets_none_begin() {
        let live = Live::default();
        let operation = live.begin().unwrap();
        let mut deletion = Box::pin(live.delete());
        assert!(deletion.as_mut().now_or_never().is_none());
        assert!(live.begin().is_none());
        drop(operation);
        assert!(deletion.now_or_never().is_some());
    }

    #[test]
    fn one_allocates_a_page_and_the_others_look_again() {
        let live = Live::default();
        let page = PageIndex(3);
        let first = live.allocate(page).now_or_never().unwrap().unwrap();
        let mut second = Box::pin(live.allocate(page));
        assert!(second.as_mut().now_or_never().is_none());
        assert!(
            live.allocate(PageIndex(4))
                .now_or_never()
                .unwrap()
                .is_some()
        );
        drop(first);
        assert!(second.now_or_never().unwrap().is_none());
        assert!(live.allocate(page).now_or_never().unwrap().is_some());
    }
}
