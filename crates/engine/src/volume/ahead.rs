//! Sequential readers, found by their reads, and the data that they will read next.
//!
//! Invariants:
//! - What is read ahead of one reader and was not asked for yet is never more than the
//!   window that the caller allows.
//! - A reader that stops costs nothing more.
//! - The zones of what is being read ahead stay in use until that has ended.

use super::Volume;
use crate::world::World;
use base::{BLOCK_BYTES, PhysPage, PoolOffset};
use futures_util::future::{join, join_all};
use std::ops::Range;

/// The part of the cache that one reader may have ahead of it: half of the queue that
/// new blocks wait in, so that they are there still when they are wanted.
const WINDOW_PARTS: u64 = 20;

impl<W: World> Volume<W> {
    /// After a read of the blocks `start..end` (bytes) has come in: reads ahead, if it
    /// is one of several in order. Nothing waits for it.
    pub(super) fn follow(&self, start: u64, end: u64) {
        let cache = &self.inner.store().cache;
        if !cache.is_on() {
            return;
        }
        let block = BLOCK_BYTES as u64;
        let allowed = cache.capacity_bytes() / WINDOW_PARTS / block * block;
        // Two readers' worth at once, for all of the pool.
        let window_max = match cache.fills().blocks() * block >= 2 * allowed {
            true => 0,
            false => allowed,
        };
        let Some(range) = self.core.live.streams.note(start, end, window_max) else {
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
