//! Reads ahead: data in place comes into the cache before it is asked for.
//!
//! Invariants:
//! - Best effort: what can't be read, or is not what its sum says, is left alone. The
//!   read that comes for it finds that out, and puts it right.
//! - What one brings, another doesn't: readers of clones are often at the same place.
//! - Nothing comes into the cache that was changed since it was looked at
//!   ([`crate::cache::Fills`]); no lock against writes is held.

use super::address::ZoneAddress;
use super::counts::Purpose;
use super::{BLOCK, Store};
use crate::cache::Filling;
use crate::drives::Zone;
use crate::integrity::Sum;
use crate::world::World;
use base::buffer::POOLED_BYTES_MAX;
use base::{BLOCK_BYTES, PoolOffset};
use futures_util::future::join_all;
use std::ops::Range;
use std::rc::Rc;

/// Blocks of one place, one after the other, and their sums.
struct InPlace {
    block: u64,
    sums: Vec<Sum>,
}

impl<W: World> Store<W> {
    /// Brings what is in place of `len` bytes at `at`, whole blocks inside one zone,
    /// into the cache.
    pub(crate) async fn read_ahead(&self, at: PoolOffset, len: usize) {
        let place = self.block_at(at);
        let (zone, first, count) = (place.zone, place.block, len as u64 / BLOCK);
        let start = at.0 / BLOCK;
        let filling = self.cache.fills().begin(start..start + count);
        let _pinned = self.pin_unless_cached(&zone, first, count).await;
        let runs = self.not_in_ram(&zone, first..first + count, &filling);
        let reads = runs.iter().map(|run| self.bring(&zone, run, &filling));
        join_all(reads).await;
    }

    /// The runs that only drives have, and nobody else brings. Their sums are in RAM.
    fn not_in_ram(
        &self,
        zone: &Zone<W>,
        blocks: Range<u64>,
        filling: &Filling<'_>,
    ) -> Vec<InPlace> {
        let mut runs: Vec<InPlace> = Vec::new();
        for block in blocks {
            if filling.is_behind_another(self.pool_block(zone, block)) {
                continue;
            }
            let Some(sum) = self.sum_if_only_in_place(zone, block) else {
                continue;
            };
            match runs.last_mut() {
                Some(run)
                    if run.block + run.sums.len() as u64 == block
                        && self.goes_on(zone, block)
                        && run.sums.len() < POOLED_BYTES_MAX / BLOCK_BYTES =>
                {
                    run.sums.push(sum);
                }
                _ => runs.push(InPlace {
                    block,
                    sums: vec![sum],
                }),
            }
        }
        runs
    }

    fn sum_if_only_in_place(&self, zone: &Zone<W>, block: u64) -> Option<Sum> {
        let is_logged = self.index.borrow().get(zone.locate(block)).is_some();
        if is_logged || self.cache.contains(self.pool_block(zone, block)) {
            return None;
        }
        let sum = self.integrity.peek(&zone.shape, block);
        sum.filter(|sum| sum.is_written())
    }

    async fn bring(&self, zone: &Rc<Zone<W>>, run: &InPlace, filling: &Filling<'_>) {
        let at = zone.locate(run.block);
        let (column, row) = ((at.index / zone.rows()) as usize, at.index % zone.rows());
        let member = self.reader(zone, at.stripe, column);
        // A drive that is in trouble is not asked for what nobody wants yet.
        let Some(member) = member.filter(|member| !member.is_asked_last()) else {
            return;
        };
        let len = run.sums.len() * BLOCK_BYTES;
        self.counts.count(Purpose::AheadRead, len);
        let buf = self.world.buffers().data(len);
        // Nor waited for: those who want the blocks now wait for this.
        let place = zone.on_drive(at.stripe, row);
        let read = member.read_in_line(place, buf);
        let Some(Ok(buf)) = read.await else {
            return;
        };
        let data = buf.freeze();
        if !self.matches(&data, &run.sums) {
            return;
        }
        if !filling.is_sound() && !self.world.planted("read-ahead not invalidated by a write") {
            self.world.reached("read-ahead overtaken by a write");
            return;
        }
        self.world.reached("blocks read ahead");
        let first = self.pool_block(zone, run.block);
        for index in 0..run.sums.len() {
            let block = self.block_alone(&data, index);
            self.cache.insert_ahead(first + index as u64, block);
        }
    }

    /// Waits for what is on its way into the cache of `count` blocks from `first` on, if
    /// a drive would have to be asked for it a second time.
    pub(super) async fn wait_for_fills(&self, zone: &Zone<W>, first: u64, count: u64) {
        let blocks = self.pool_blocks(zone, first, count);
        if !self.cache.fills().concern(&blocks) {
            return;
        }
        let is_here = |block: u64| {
            self.cache.contains(blocks.start + (block - first))
                || self.index.borrow().get(zone.locate(block)).is_some()
        };
        if (first..first + count).all(is_here) {
            return;
        }
        join_all(self.cache.fills().ends(&blocks)).await;
    }
}
