//! What is in progress on a volume. Nothing here is durable.

use super::ahead::Streams;
use crate::range_lock::RangeLock;
use base::PageIndex;
use futures_channel::oneshot;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// I/O in progress on a volume.
#[derive(Debug, Default)]
pub struct Live {
    /// Ranges of bytes being read (shared) and written (exclusive).
    pub ranges: RangeLock,
    /// Sequential readers.
    pub streams: Streams,
    /// Cleared pages stay mapped: it is about to be thick.
    pub keeps_pages: Cell<bool>,
    /// Pages being allocated, with who waits for them.
    allocating: RefCell<BTreeMap<PageIndex, Vec<oneshot::Sender<()>>>>,
    operations: Cell<u64>,
    deleted: Cell<bool>,
    drained: RefCell<Option<oneshot::Sender<()>>>,
}

/// An operation in progress; deletion waits for its end.
#[derive(Debug)]
pub struct Operation<'a> {
    live: &'a Live,
}

/// The allocation of a page in progress; its end wakes who waits for the page.
#[derive(Debug)]
pub struct Allocation<'a> {
    live: &'a Live,
    page: PageIndex,
}

impl Live {
    /// Whether deletion has begun.
    pub fn is_deleted(&self) -> bool {
        self.deleted.get()
    }

    /// An operation begins; `None` when the volume is being deleted.
    pub fn begin(&self) -> Option<Operation<'_>> {
        if self.deleted.get() {
            return None;
        }
        self.operations.set(self.operations.get() + 1);
        Some(Operation { live: self })
    }

    /// No operation begins from now on; ends when those in progress have ended.
    pub async fn delete(&self) {
        self.deleted.set(true);
        if self.operations.get() == 0 {
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
        let left = self.live.operations.get() - 1;
        self.live.operations.set(left);
        if left == 0
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
