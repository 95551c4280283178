//! Sequential readers, found by their reads, and the data that they will read next.
//!
//! Invariants:
//! - What is read ahead of one reader and was not asked for yet is never more than the
//!   window that the caller allows.
//! - A reader that stops costs nothing more.
//! - The zones of what is being read ahead stay in use until that has ended.

use super::Volume;
use crate::cache::Allowed;
use crate::world::World;
use base::{BLOCK_BYTES, PhysPage, PoolOffset};
use futures_util::future::{join, join_all};
use std::ops::Range;

/// The part of the cache that one of few readers may have ahead of it where there is not enough for all.
/// It is half of the queue that new blocks have in any case.
const FEW_PARTS: u64 = 20;

/// The most that is read ahead of a reader, in bytes, where no drive has an arm to move.
const WINDOW_MAX: u64 = 2 << 20;

/// The same for each drive of a pool of disks, and for the whole pool. A disk reads several times less
/// while its arm moves from one reader's data to another's.
const WINDOW_PER_DISK: u64 = 1 << 20;
const WINDOW_OF_DISKS_MAX: u64 = 32 << 20;

impl<W: World> Volume<W> {
    /// After a read of the blocks `start..end` (bytes) has come in: reads ahead, if it
    /// is one of several in order. Nothing waits for it.
    pub(super) fn follow(&self, start: u64, end: u64) {
        let store = self.inner.store();
        let cache = &store.cache;
        if !cache.is_on() {
            return;
        }
        let block = BLOCK_BYTES as u64;
        let allowed = || Allowed {
            of_one: self.window_max(),
            of_all: cache.ahead_bytes_max(),
            of_few: cache.capacity_bytes() / FEW_PARTS,
            coming: cache.fills().blocks() * block,
        };
        let now = self.inner.world().now();
        let readers = cache.readers();
        let Some(range) = readers.note(self.core.id, start..end, now, allowed) else {
            return;
        };
        let end = self.size_bytes().next_multiple_of(block);
        let range = range.start..range.end.min(end);
        if range.is_empty() {
            return;
        }
        let volume = self.clone();
        let reading = async move { volume.read_ahead(range).await };
        self.inner.world().spawn(reading);
    }

    fn window_max(&self) -> u64 {
        let drives = self.inner.drives();
        match drives.has_disks() {
            true => {
                let all = drives.count() as u64 * WINDOW_PER_DISK;
                all.clamp(WINDOW_MAX, WINDOW_OF_DISKS_MAX)
            }
            false => WINDOW_MAX,
        }
    }

    async fn read_ahead(&self, range: Range<u64>) {
        let Some(_operation) = self.core.live.begin() else {
            return;
        };
        if self.inner.check().is_err() {
            return;
        }
        let page_bytes = self.inner.page_bytes();
        let len = (range.end - range.start) as usize;
        let reads = super::io::runs(page_bytes, range.start, len).map(async |run| {
            let phys = self.core.map.borrow().get(run.page);
            // No wait between the look at the map and the beginning there: a page may
            // move, and its zone go out of use.
            let Some(phys) = phys else { return };
            let place = |page: PhysPage| PoolOffset(page.0 * page_bytes + run.inside);
            match self.inner.backings().backing(phys) {
                None => self.inner.store().read_ahead(place(phys), run.len).await,
                Some(backing) => {
                    let own = self.inner.store().read_ahead(place(phys), run.len);
                    let others = self.inner.store().read_ahead(place(backing.page), run.len);
                    join(own, others).await;
                }
            }
        });
        join_all(reads).await;
    }
}
